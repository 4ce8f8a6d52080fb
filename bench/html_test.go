package bench

import (
	"bytes"
	"context"
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
