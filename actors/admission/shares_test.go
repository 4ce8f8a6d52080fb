package admission

import "testing"

// Of several organizations, each has half of a budget, at least one unit; the only one has all of it. What an
// organization had before a second one was made is not taken back.
func TestShares(t *testing.T) {
	for _, max := range []int64{1, 2, 3, 64, 8192} {
		several := false
		s := NewShares(max, func() bool { return several })
		fill := func(name string) (n int64) {
			for n < 2*max && s.Take(name, 1) {
				n++
			}
			return n
		}
		for range max {
			if !s.Take("a", 1) {
				t.Fatalf("of %d units, the only organization has %d", max, s.Used("a"))
			}
		}
		several = true
		if s.Take("a", 1) {
			t.Errorf("of %d units, an organization has more than half", max)
		}
		s.Give("a", max)
		if got := fill("a"); got != (max+1)/2 {
			t.Errorf("of %d units, an organization has %d", max, got)
		}
		if got := fill("b"); got != (max+1)/2 {
			t.Errorf("of %d units, the second organization has %d", max, got)
		}
		if s.Give("a", 1); !s.Take("a", 1) || s.Take("a", 1) {
			t.Errorf("of %d units, one that was given back cannot be taken once", max)
		}
	}
	s := NewShares(10, func() bool { return true })
	if !s.Take("a", 9) || s.Take("a", 1) {
		t.Error("a single use of more than half does not fit, or another one beside it does")
	}
	if s.Give("a", 9); len(s.used) != 0 {
		t.Error("an organization without uses is remembered")
	}
	alone := NewShares(1, nil)
	for range 2 {
		if !alone.Take("", 1) {
			t.Error("without organizations there is no share")
		}
	}
}
