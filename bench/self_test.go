package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func runSelf(t *testing.T, fault string, s Scenario) (*Result, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Serve = []string{"--demo", "--fault=" + fault}
	var out bytes.Buffer
	opt := options{self: true, executable: exe, out: &out}
	if fault != "" {
		opt.drainLimit = time.Second
	}
	res, err := runScenario(s, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	writeTable(&out, res)
	return res, out.String()
}

func crashScenario() Scenario {
	s := smallScenario("restart-herd")
	s.Phases = []Phase{{Name: "crash", Seconds: 2, Rate: 100, Kill: 0.8}, {Name: "after", Count: 20, Closed: 2}}
	return s
}

func TestRecoveryAfterKill(t *testing.T) {
	res, out := runSelf(t, "", crashScenario())
	if res.Broken != 0 {
		t.Fatalf("a server that recovers has violations:\n%s", out)
	}
	f, ok := res.Figure("all_polling_again_s")
	if !ok || f.Value < 0 || f.Value > 5 {
		t.Errorf("all polling again after %v s:\n%s", f.Value, out)
	}
	if res.Phases[0].Kinds["register"].N != 0 {
		t.Error("a poller registered again")
	}
	if _, ok := res.Figure("after.cpu_per_delivery"); !ok {
		t.Errorf("there are no figures of the server's process:\n%s", out)
	}
}

func TestSendsLostInCrashAreReported(t *testing.T) {
	if res, out := runSelf(t, "forgetful", crashScenario()); res.Broken == 0 {
		t.Fatalf("a server that lost acknowledged sends has no violations:\n%s", out)
	}
}

func TestFloorRatios(t *testing.T) {
	t.Parallel() // waits most of the time
	exe, _ := os.Executable()
	s := smallScenario("fanout")
	s.Users, s.Pollers, s.Channels, s.Zipf, s.Hundred = 30, 30, 1, 0, 10
	s.Phases = []Phase{{Name: "warm", Rounds: 2, To: "largest", Warm: true},
		{Name: "rounds", Rounds: 20, To: "largest"},
		{Name: "hundred", Seconds: 0.5, Share: 0.1, Of: "rounds", To: "hundred", Even: true}}
	s.Serve = []string{"--demo"}
	var out bytes.Buffer
	res, err := runScenario(s, options{self: true, executable: exe, out: &out, floor: true, repeat: 3})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, name := range []string{"rounds.deliveries_per_s_to_floor", "floor.rounds.deliveries_per_s",
		"hundred.seen_p50_to_floor"} {
		f, ok := res.Figure(name)
		if !ok || f.Value <= 0 || f.Runs != 3 || f.Low > f.Value || f.High < f.Value {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if res.Phases[0].Delivered != 20*30 {
		t.Errorf("rounds made %d deliveries, not 600", res.Phases[0].Delivered)
	}
	if res.Broken != 0 {
		writeTable(&out, res)
		t.Error(out.String())
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel() // waits most of the time
	exe, _ := os.Executable()
	dir := t.TempDir()
	a, b, h := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"), filepath.Join(dir, "a.html")
	var out, errs bytes.Buffer
	run := func(args ...string) (int, string) {
		out.Reset()
		errs.Reset()
		code := Main(args, &out, &errs)
		return code, out.String() + errs.String()
	}
	for _, file := range []string{a, b} {
		code, text := run("chat", "--self", "--exe", exe, "--serve=--demo", "--users", "10", "--channels", "2",
			"--history", "0", "--rate", "50", "--duration", "1", "--json", file, "--html", h)
		if code != 0 || !strings.Contains(text, "guarantees: all met") {
			t.Fatalf("exit code %d:\n%s", code, text)
		}
	}
	res, err := ReadResult(a)
	if err != nil || res.Scenario.Users != 10 || len(res.Phases) != 1 || len(res.Memory) == 0 {
		t.Fatalf("the JSON file does not read back: %v %+v", err, res)
	}
	if code, text := run("compare", a, b); code != 0 || !strings.Contains(text, "chat.send_p50") ||
		!strings.Contains(text, "±") {
		t.Errorf("compare, exit code %d:\n%s", code, text)
	}
	res.Broken++
	for i := range res.Figures {
		res.Figures[i].Value *= 2
		res.Figures[i].Low, res.Figures[i].High, res.Figures[i].Refused = 0, 0, ""
	}
	changed, _ := json.Marshal(res)
	if err := os.WriteFile(b, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := run("compare", a, b, "--fail-if", "worse=5%"); code != 1 {
		t.Errorf("compare with a result that is worse, exit code %d:\n%s", code, text)
	}
	if code, text := run("compare", "--fail-if", "worse=5%", a, a); code != 0 {
		t.Errorf("compare of a result with itself, exit code %d:\n%s", code, text)
	}
	if code, text := run("compare", a, b, "--fail-if", "better=5"); code != 2 {
		t.Errorf("compare with a bad condition, exit code %d:\n%s", code, text)
	}
	if code, text := run("list"); code != 0 || !strings.Contains(text, "restart-herd") {
		t.Errorf("list, exit code %d:\n%s", code, text)
	}
	for _, bad := range [][]string{{"nonsense"}, {"chat"}, {"chat", "--self", "--target", "http://x"},
		{"chat", "--target", "https://127.0.0.1:1"}, {"compare", a}} {
		if code, text := run(bad...); code != 2 || text == "" {
			t.Errorf("%v: exit code %d: %s", bad, code, text)
		}
	}
	code, text := run("show", "fanout", "--json")
	var sc Scenario
	if err := json.Unmarshal([]byte(text), &sc); code != 0 || err != nil || sc.check() != nil {
		t.Errorf("show does not print a scenario: %d %v", code, err)
	}
}

func TestHuntFindsALimit(t *testing.T) {
	t.Parallel() // waits most of the time
	exe, _ := os.Executable()
	s := smallScenario("chat")
	s.Sample = 0
	s.Gate.Late, s.Gate.Others = 1e6, 1e6 // other tests run at the same time
	s.Phases = []Phase{{Name: "chat", Seconds: 0.3, Rate: 100, Mix: chatMix}}
	b, _ := json.Marshal(s)
	file := filepath.Join(t.TempDir(), "scenario.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := []string{"hunt", "chat", "--self", "--exe", exe, "--serve=--demo", "--scenario", file, "--from", "8",
		"--most", "16", "--rate-per-user", "20"}
	// No server answers in a microsecond, so the smallest crowd is already too large.
	code := Main(append(args, "--gate-p99", "0.001"), &out, &errs)
	if code != 1 || !strings.Contains(out.String(), "outside: p99") ||
		!strings.Contains(out.String(), "most users inside the gate: 0") {
		t.Fatalf("exit code %d:\n%s%s", code, out.String(), errs.String())
	}
	code = Main(args, &out, &errs)
	if code != 0 || !strings.Contains(out.String(), "most users inside the gate: 16") {
		t.Fatalf("exit code %d:\n%s%s", code, out.String(), errs.String())
	}
}
