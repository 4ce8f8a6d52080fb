package bench

import (
	"strings"
	"testing"
)

func TestLedger(t *testing.T) {
	l := newLedger(7)
	all, few := l.addAudience("all", 0, 1, 2), l.addAudience("few", 1)
	x0, x1, x2 := l.addListener(0), l.addListener(1), l.addListener(2)
	see := func(x *listener, message int64, text string) { l.recordSeen(x, message, []byte("<p>"+text+"</p>")) }

	no, text := l.send(0, all, 5, "hello", nil)
	see(x0, 10, text)
	l.recordAnswer(no, 200, 10, false)
	if l.allSeen() {
		t.Fatal("allSeen returned true, but two pollers have not seen the message")
	}
	see(x1, 10, text)
	see(x2, 10, text)
	secret, text2 := l.send(1, few, 6, "psst", nil)
	l.recordAnswer(secret, 200, 11, false)
	see(x1, 11, text2)
	if !l.allSeen() || l.violationCount != 0 {
		t.Fatalf("allSeen returned false, or there are violations: %v", l.violations)
	}

	see(x2, 11, text2)
	see(x1, 11, text2)
	lost, _ := l.send(0, all, 7, "lost", nil)
	l.recordAnswer(lost, 200, 12, false)
	maybe, text3 := l.send(0, all, 8, "server died", nil)
	l.recordAnswer(maybe, 0, 0, true)
	see(x0, 13, text3)
	refused, text4 := l.send(0, all, 9, "no", nil)
	l.recordAnswer(refused, 400, 0, false)
	see(x0, 14, text4)
	late, text5 := l.send(0, few, 9, "late", nil)
	l.recordAnswer(late, 200, 9, false)
	see(x1, 9, text5)
	l.checkLost()
	var kinds []string
	for _, v := range l.violations {
		kinds = append(kinds, v.Kind)
	}
	want := "leak duplicate refused but seen reorder loss loss"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("violations %q, want %q\n%v", got, want, l.violations)
	}
	if _, ok := l.sendNumber([]byte("no mark")); ok {
		t.Error("a message of another sender was taken for one of this run")
	}
}

func TestCompareVerdicts(t *testing.T) {
	for _, c := range []struct {
		a, b Figure
		want string
	}{
		{Figure{Value: 100}, Figure{Value: 105}, "within noise"},
		{Figure{Value: 100}, Figure{Value: 130}, "WORSE"},
		{Figure{Value: 100, More: true}, Figure{Value: 130, More: true}, "better"},
		{Figure{Value: 100, Low: 60, High: 140}, Figure{Value: 130}, "within noise"},
		{Figure{Value: 100}, Figure{Value: 200, Refused: "generator"}, "no verdict"},
	} {
		if _, _, got := judge(c.a, c.b, usualNoise); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestTargetsHaveRuns(t *testing.T) {
	runs := map[string]bool{}
	for _, r := range targetRuns(true) {
		runs[r.name] = true
		if err := r.scenario.check(); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
	for _, x := range Targets {
		if !runs[x.Run] {
			t.Errorf("target %q needs run %q, which does not exist", x.What, x.Run)
		}
	}
	x := Target{Figure: "f", Limit: 10, Stretch: 5}
	for _, c := range []struct {
		f    Figure
		n    int
		want string
	}{{Figure{Value: 4}, 0, "reached, stretch too"}, {Figure{Value: 9}, 0, "reached"},
		{Figure{Value: 11}, 0, "MISSED"}, {Figure{Value: 4}, 1, "MISSED"},
		{Figure{Value: 4, Refused: "x"}, 0, "no verdict"}} {
		c.f.Name = "f"
		if _, got := x.verdict(&Result{Figures: []Figure{c.f}, Broken: c.n}); got != c.want {
			t.Errorf("%v with %d broken: %s, want %s", c.f.Value, c.n, got, c.want)
		}
	}
}
