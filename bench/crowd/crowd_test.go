package crowd

import (
	"fmt"
	"reflect"
	"testing"
)

func runStory(seed uint64, n int, ok func(Action) bool) []string {
	p := Plan{Users: 10, Channels: 4, Zipf: 1, Seed: seed}
	c := New(seed, p.Users, p.Members())
	var out []string
	for i := 0; i < n; i++ {
		a := c.Next()
		out = append(out, fmt.Sprintf("%+v", a))
		c.Done(a, ok(a))
	}
	return out
}

func TestSameSeedSameActions(t *testing.T) {
	ok := func(a Action) bool { return a.Expect != MustFail }
	a, b := runStory(3, 2000, ok), runStory(3, 2000, ok)
	if !reflect.DeepEqual(a, b) {
		t.Fatal("the same seed and outcomes gave different actions")
	}
	if reflect.DeepEqual(a, runStory(4, 2000, ok)) {
		t.Fatal("two seeds gave the same actions")
	}
}

// A crowd uses all kinds of action, and refers only to objects that exist.
func TestActionsArePossible(t *testing.T) {
	const users, seed = 10, 5
	p := Plan{Users: users, Channels: 4, Zipf: 1, Seed: seed}
	c := New(seed, users, p.Members())
	did := map[Kind]int{}
	sent, gone := 0, map[int]bool{}
	for i := 0; i < 5000; i++ {
		a := c.Next()
		did[a.Kind]++
		if a.User < 0 || a.User >= users || a.Channel >= 4 {
			t.Fatalf("seed %d: no such user or channel: %+v", seed, a)
		}
		switch a.Kind {
		case Edit, Move, Delete, React, Unreact, Flag, Unflag:
			if a.Message >= sent || gone[a.Message] {
				t.Fatalf("seed %d: message %d of %d, gone %v: %v", seed, a.Message, sent, gone[a.Message], a)
			}
		case DM, Typing:
			for _, o := range a.Others {
				if o == a.User {
					t.Fatalf("seed %d: %v is addressed to its own user", seed, a)
				}
			}
		}
		ok := a.Expect != MustFail
		if ok && (a.Kind == Send || a.Kind == DM) {
			sent++
		}
		if ok && a.Kind == Delete {
			gone[a.Message] = true
		}
		c.Done(a, ok)
	}
	for _, k := range []Kind{Send, DM, Edit, Move, Delete, React, Unreact, Flag, Unflag, Subscribe, Unsubscribe,
		Property, Policy, Rename, Presence, Typing, Register, DropQueue, Read} {
		if did[k] == 0 {
			t.Errorf("seed %d: there is no %q in 5000 actions", seed, k)
		}
	}
}

func TestPlanSizes(t *testing.T) {
	m := Plan{Users: 1000, Channels: 10, Zipf: 1, Hundred: 100, Seed: 1}.Members()
	if len(m) != 11 || len(m[0]) != 1000 || len(m[1]) != 500 || len(m[9]) != 100 || len(m[10]) != 100 {
		t.Fatalf("channels of %d, %d, … %d and %d", len(m[0]), len(m[1]), len(m[9]), len(m[10]))
	}
	for c, who := range m {
		for i := 1; i < len(who); i++ {
			if who[i] <= who[i-1] {
				t.Fatalf("channel %d lists a user twice or out of order", c)
			}
		}
	}
	if m := (Plan{Users: 5, Channels: 2}).Members(); len(m[0]) != 5 || len(m[1]) != 5 {
		t.Error("without Zipf not every user is in every channel")
	}
}
