package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A report opens in a browser without network and shows its figures and charts.
func TestReportOpensInABrowser(t *testing.T) {
	s := smallScenario("chat")
	s.Phases = []Phase{{Name: "open", Seconds: 3, Rate: 200, Mix: chatMix}}
	res, _ := runAgainst(t, newFake(""), s)
	res.Server.Pid = 1
	for i := 0; i < 20; i++ {
		res.Memory = append(res.Memory, MemPoint{At: float64(i), RSS: int64(50+i) << 20, CPU: 0.3, Goroutines: 40})
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, res); err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?:src|href)=|url\(|@import`).FindString(page.String()); m != "" {
		t.Errorf("the report refers to another file: %s", m)
	}
	const chromium = "/usr/bin/chromium"
	if _, err := os.Stat(chromium); err != nil {
		t.Skip("no " + chromium + ": the report was written but not opened")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	dom, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=1000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	for _, want := range []string{"All guarantees met", "latency by percentile", "memory of the server", "sent→seen",
		"<polyline"} {
		if !strings.Contains(string(dom), want) {
			t.Errorf("the opened report does not show %q", want)
		}
	}
	if shot := os.Getenv("BENCH_SCREENSHOT"); shot != "" {
		exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
			"--window-size=1240,1900", "--screenshot="+shot, "file://"+file).Run()
	}
}

// A comparison has a column for each server, also for phases and kinds that only one of them has.
func TestComparisonHasTwoColumns(t *testing.T) {
	s := smallScenario("chat")
	s.Phases = []Phase{{Name: "open", Seconds: 2, Rate: 100, Mix: map[string]float64{"send": 1, "typing": 1}}}
	a, _ := runAgainst(t, newFake(""), s)
	s.Phases = []Phase{{Name: "open", Seconds: 2, Rate: 100, Mix: map[string]float64{"send": 1}},
		{Name: "later", Seconds: 1, Rate: 50, Mix: map[string]float64{"send": 1}}}
	b, _ := runAgainst(t, newFake(""), s)
	dir := t.TempDir()
	files := [2]string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")}
	for i, res := range []*Result{a, b} {
		text, err := json.Marshal(res)
		if err == nil {
			err = os.WriteFile(files[i], text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "both.html")
	code, _, errs := runMain("compare", files[0], files[1], "--html", file, "--names", "Ours, <b>Theirs</b>")
	page, _ := os.ReadFile(file)
	text := string(page)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"Ours", "&lt;b&gt;Theirs&lt;/b&gt;", "Phase open", "Phase later", "<td>typing</td>",
		"sent to seen: latency by percentile", "send: latency by percentile", "later.send_p50"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comparison does not contain %q", want)
		}
	}
	if m := regexp.MustCompile(`(?:src|href)=|url\(|@import|<b>Theirs`).FindString(text); m != "" {
		t.Errorf("the comparison contains %s", m)
	}
	for _, bad := range []string{"one", ",", "a,"} {
		if code, _, _ := runMain("compare", files[0], files[1], "--names", bad); code != 2 {
			t.Errorf("--names %q: exit code %d", bad, code)
		}
	}
}
