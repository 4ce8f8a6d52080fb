package server

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// The alert rules for Prometheus name metrics that the server has, and each rule has a test in which it fires and one
// in which it does not. make alerts-check runs those tests.
func TestAlertRules(t *testing.T) {
	rules, tests := readDeployFile(t, "alerts.yml"), readDeployFile(t, "alerts_test.yml")
	known := map[string]bool{}
	for _, m := range AllMetrics() {
		known[m.Name] = true
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		known[f.GetName()] = true
	}
	names := regexp.MustCompile(`\b(parley|process)_[a-z_]+`).FindAllString(rules, -1)
	if len(names) == 0 {
		t.Fatal("the rules name no metric")
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("the rules name %s, which is no metric of the server", name)
		}
	}

	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("there are no rules")
	}
	for _, alert := range alerts {
		if !strings.Contains(tests, "alertname: "+alert[1]+"\n") {
			t.Errorf("no test expects that %s fires", alert[1])
		}
		if !strings.Contains(tests, "{alertname: "+alert[1]+", ") {
			t.Errorf("no test expects that %s does not fire", alert[1])
		}
	}
}

func readDeployFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../.deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
