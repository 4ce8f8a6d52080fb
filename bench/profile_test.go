package bench

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestScenariosAsTOML requires that every built-in scenario survives being written and read as TOML, and that each of
// its members has a comment.
func TestScenariosAsTOML(t *testing.T) {
	for name, s := range Scenarios() {
		s.Stop, s.Thresholds = []string{"errors < 5%"}, []string{"lost == 0"}
		var b bytes.Buffer
		if err := WriteTOML(&b, s); err != nil {
			t.Fatal(err)
		}
		back, err := parseScenario(b.Bytes(), true)
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: error %v\n%+v\n%+v\n%s", name, err, s, back, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if strings.HasSuffix(strings.TrimSpace(line), "#") {
				t.Errorf("%s: a member has no comment: %s", name, line)
			}
		}
	}
}

// TestScenarioSchema requires that the published schema is that of the program. Run with PARLEY_WRITE_SCHEMA=1 to write
// it.
func TestScenarioSchema(t *testing.T) {
	code, out, errs := runMain("schema")
	if code != 0 || strings.Contains(out, `"description": ""`) {
		t.Fatalf("exit code %d, or a member without description:\n%s%s", code, out, errs)
	}
	const file = "scenario.schema.json"
	if os.Getenv("PARLEY_WRITE_SCHEMA") != "" {
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != out {
		t.Errorf("bench/%s is not the output of parley bench schema: %v", file, err)
	}
}

func TestBadScenarios(t *testing.T) {
	for text, want := range map[string]string{
		`nmae = "x"`:               "unknown field",
		`users = "many"`:           "users",
		`users = `:                 "line 1",
		"[[phases]]\nname = \"a\"": "no end",
		"[[phases]]\nname=\"a\"\nseconds=1\nrate=1\nclosed=2":    "at most one",
		"[[phases]]\nname=\"a\"\nseconds=1\nrate=-1":             "negative",
		"[[phases]]\nname=\"a\"\nseconds=1\nrate=inf":            "",
		"[[phases]]\nname=\"a\"\ncurve=[[0,1]]":                  "points",
		"[[phases]]\nname=\"a\"\ncurve=[[0,1],[5,9],[3,1]]":      "before",
		"[[phases]]\nname=\"a\"\ncurve=[[0,0],[5,0]]":            "has requests",
		"[[phases]]\nname=\"a\"\ncurve=[[0,1],[5,1]]\nseconds=3": "own end",
		"[[phases]]\nname=\"a\"\nseconds=1\nrate=1\nthink=2":     "closed",
		"[[phases]]\nname=\"a\"\nseconds=1\nmix={dance=1}":       "dance",
		"[[phases]]\nname=\"a\"\nseconds=1e9\nrate=1":            "at most",
		`stop = ["errors"]`: "threshold",
		"[[phases]]\nname=\"a\"\nseconds=1\nrate=1\nwarm = true": "warm-up",
		`phases = []`: "phases",
		"x = [" + strings.Repeat("[", 100) + strings.Repeat("]", 101): "unknown field",
	} {
		file := filepath.Join(t.TempDir(), "s.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := runMain("chat", "--self", "--scenario", file)
		if code != 2 || !strings.Contains(errs, want) || errs == "" {
			t.Errorf("%q: exit code %d, want 2 and %q: %s", text, code, want, errs)
		}
	}
}

// TestCurves requires that the numbers of requests follow the area below a curve.
func TestCurves(t *testing.T) {
	p := &Phase{Curve: [][2]float64{{0, 0}, {10, 100}, {20, 100}, {20, 500}, {30, 500}, {40, 0}, {45, 0}, {50, 200}}}
	want := []float64{500, 1000, 5000, 2500, 500} // in each 10 s
	for _, random := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		got := make([]float64, 5)
		s := newSchedule(p, 0)
		last := 0.0
		for {
			amount := 1.0
			if random {
				amount = rng.ExpFloat64()
			}
			at, ok := s.next(amount)
			if !ok {
				break
			}
			if at < last || at > 50.001 || at > 40 && at < 45 {
				t.Fatalf("a request at %v s, after one at %v s", at, last)
			}
			last = at
			got[min(4, int(at/10))]++
		}
		for i := range want {
			off := math.Abs(got[i] - want[i])
			if !random && off > 1 || off > 5*math.Sqrt(want[i]) {
				t.Errorf("random %v: %v requests from second %d on, want %v", random, got[i], 10*i, want[i])
			}
		}
	}
}

// TestStopConditions requires that a run ends early, with exit code 1, when a condition no longer holds, and that
// thresholds of a file count.
func TestStopConditions(t *testing.T) {
	exe, _ := os.Executable()
	file := filepath.Join(t.TempDir(), "s.toml")
	text := "name = \"stops\"\nusers = 10\npollers = 10\nchannels = 2\nhistory = 0\nsample = 0\nstop = " +
		"[\"count(send) < 20\"]\n" +
		"thresholds = [\"lost == 0\"]\n[[phases]]\nname = \"long\"\nseconds = 300\nclosed = 3\nthink = 0.01\n" +
		"[[phases]]\nname = \"never\"\ncurve = [[0, 1], [300, 1]]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runMain("chat", "--self", "--exe", exe, "--serve=--demo", "--scenario", file, "--quiet")
	if code != 1 || !strings.Contains(out, "STOPPED: count(send) < 20 does not hold") ||
		!strings.Contains(out, "threshold lost == 0: kept") || strings.Contains(out, "phase never") {
		t.Errorf("exit code %d:\n%s%s", code, out, errs)
	}
	code, out, _ = runMain("show", file)
	if code != 0 || !strings.Contains(out, "think = 0.01 # closed loop") {
		t.Errorf("show of a file, exit code %d:\n%s", code, out)
	}
}
