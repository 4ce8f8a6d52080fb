package crowd

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"testing"
)

func stepNames(names ...string) (out []Step[string]) {
	for i, n := range names {
		out = append(out, Step[string]{n, float64(1 + i), n})
	}
	return out
}

// An additional step takes some turns. In all others the same step is the first and draws the same numbers, for every
// seed and wherever the step is in the list.
func TestNewStepLeavesDrawsOfOthers(t *testing.T) {
	old := stepNames("send", "poll", "crash")
	for at := range len(old) + 1 {
		list := append([]Step[string]{}, old[:at]...)
		list = append(append(list, Step[string]{"new", 1, "new"}), old[at:]...)
		taken := 0
		const turns = 2000
		for turn := range uint64(turns) {
			before, after := Draw(turn%7, turn, old), Draw(turn%7, turn, list)
			if after[0].Name == "new" {
				taken++
				after = after[1:]
			}
			for range 20 {
				if x, y := before[0].Random.Uint64(), after[0].Random.Uint64(); before[0].Name != after[0].Name ||
					x != y {
					t.Fatalf("turn %d: %s draws %d, was %s with %d", turn, after[0].Name, y, before[0].Name, x)
				}
			}
		}
		if share := float64(taken) / turns; share < 0.10 || share > 0.19 {
			t.Errorf("a step of weight 1 of 7 takes %.3f of the turns", share)
		}
	}
}

// Steps are drawn in proportion to their weights.
func TestStepWeights(t *testing.T) {
	steps, first := stepNames("one", "two", "three", "four"), map[string]int{}
	const turns = 20_000
	for turn := range uint64(turns) {
		first[Draw(3, turn, steps)[0].Name]++
	}
	for i, s := range steps {
		if want, got := float64(1+i)/10, float64(first[s.Name])/turns; got < want*0.9 || got > want*1.1 {
			t.Errorf("%s takes %.3f of the turns, want %.3f", s.Name, got, want)
		}
	}
}

// registerAnswer is the part of an answer to a registration that the generator needs.
func registerAnswer() map[string]any {
	return map[string]any{
		"user_settings": map[string]any{"twenty_four_hour_time": true, "enter_sends": false}, "realm_flag": true,
		"server_supported_permission_settings": map[string]any{"realm": map[string]any{"can_add_emoji_group": 1}},
		"streams":                              []any{map[string]any{"stream_id": 1.0, "name": "one"}},
		"realm_user_groups":                    []any{map[string]any{"id": 7.0}},
	}
}

func requests(a *RequestGenerator, n int) (out []string) {
	for i := range n {
		x := a.Next()
		out = append(out, fmt.Sprintf("%+v", x))
		a.Done(x, 200, map[string]any{"id": float64(100 + i)}) // every request succeeds
	}
	return out
}

// The requests of a generator with an additional step are the same in the turns that the new step does not take.
func TestNewRequestLeavesOthers(t *testing.T) {
	for seed := range uint64(20) {
		a, b := NewRequestGenerator(seed, []int64{1, 2, 3}, registerAnswer()),
			NewRequestGenerator(seed, []int64{1, 2, 3}, registerAnswer())
		b.steps = append([]Step[requestStep]{{"new", 10, func(b *RequestGenerator, x *Request) {
			b.set(x, "GET /new", params{"a": b.userID()})
		}}}, b.steps...)
		taken := 0
		for turn := range 300 {
			x, y := a.Next(), b.Next()
			if y.Name == "GET /new" {
				taken++
				b.names = maps.Clone(a.names) // as the request that it replaces leaves them
			} else if fmt.Sprintf("%+v", x) != fmt.Sprintf("%+v", y) {
				t.Fatalf("seed %d, turn %d: %+v, was %+v", seed, turn, y, x)
			}
		}
		if taken == 0 || taken > 60 {
			t.Errorf("seed %d: the new step took %d of 300 turns", seed, taken)
		}
	}
}

// knownRequests is a digest of the requests of each step that existed when this test was written. A change means that
// old seeds make other requests: make a new kind of request a step of its own, not a case of an existing one.
const knownRequests = "74c901474aaee266"

func TestStepsMakeKnownRequests(t *testing.T) {
	sum := sha256.New()
	for _, steps := range [][]Step[requestStep]{requestSteps[:6], minorSteps[:1]} {
		for _, s := range steps {
			a := NewRequestGenerator(1, []int64{1, 2, 3}, registerAnswer())
			a.steps = []Step[requestStep]{s, {"messages", 0.01, (*RequestGenerator).messages}}
			for _, x := range requests(a, 500) {
				fmt.Fprintln(sum, x)
			}
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != knownRequests {
		t.Errorf("the steps make other requests than before: their digest is %q, want %q", got, knownRequests)
	}
}
