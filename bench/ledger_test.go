package bench

import (
	"strings"
	"testing"
)

func TestLedger(t *testing.T) {
	l := newLedger(7)
	all, few := l.audience("all", 0, 1, 2), l.audience("few", 1)
	x0, x1, x2 := l.listen(0), l.listen(1), l.listen(2)
	see := func(x *listener, message int64, text string) { l.saw(x, message, []byte("<p>"+text+"</p>")) }

	no, text := l.send(0, all, 5, "hello", nil)
	see(x0, 10, text)
	l.answered(no, 200, 10, false)
	if l.settled() {
		t.Fatal("settled, though two pollers wait")
	}
	see(x1, 10, text)
	see(x2, 10, text)
	secret, text2 := l.send(1, few, 6, "psst", nil)
	l.answered(secret, 200, 11, false)
	see(x1, 11, text2)
	if !l.settled() || l.brokenN != 0 {
		t.Fatalf("not settled, or blamed without cause: %v", l.broken)
	}

	see(x2, 11, text2)
	see(x1, 11, text2)
	lost, _ := l.send(0, all, 7, "lost", nil)
	l.answered(lost, 200, 12, false)
	maybe, text3 := l.send(0, all, 8, "server died", nil)
	l.answered(maybe, 0, 0, true)
	see(x0, 13, text3)
	refused, text4 := l.send(0, all, 9, "no", nil)
	l.answered(refused, 400, 0, false)
	see(x0, 14, text4)
	late, text5 := l.send(0, few, 9, "late", nil)
	l.answered(late, 200, 9, false)
	see(x1, 9, text5)
	l.close()
	var kinds []string
	for _, v := range l.broken {
		kinds = append(kinds, v.Kind)
	}
	want := "leak duplicate refused but seen reorder loss loss"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("judged %q, want %q\n%v", got, want, l.broken)
	}
	if _, ok := l.number([]byte("no mark")); ok {
		t.Error("a stranger's message was taken for ours")
	}
}

func TestCompareJudges(t *testing.T) {
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
		if _, _, got := judge(c.a, c.b); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestTargetsNameWhatIsMeasured(t *testing.T) {
	runs := map[string]bool{}
	for _, r := range targetRuns(true) {
		runs[r.name] = true
		if err := r.sc.check(); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
	for _, x := range Targets {
		if !runs[x.Run] {
			t.Errorf("target %q wants run %q, which nobody makes", x.What, x.Run)
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
