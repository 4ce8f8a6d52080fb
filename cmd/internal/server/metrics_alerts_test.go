package server

import (
	"os"
	"regexp"
	"testing"
)

// The alert rules for Prometheus name metrics that the server has.
func TestAlertRulesNameMetrics(t *testing.T) {
	rules, err := os.ReadFile("../../../.deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range AllMetrics() {
		known[m.Name] = true
	}
	names := regexp.MustCompile(`parley_[a-z_]+`).FindAllString(string(rules), -1)
	if len(names) == 0 {
		t.Fatal("the rules name no metric")
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("the rules name %s, which is no metric of the server", name)
		}
	}
}
