package crowd

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
)

// A Step is one kind of thing that a random run does in a turn.
type Step[F any] struct {
	Name   string
	Weight float64 // how often it is done, compared with the other steps; more than 0
	Do     F
}

// A Drawn step has the random source from which it draws in its turn.
type Drawn[F any] struct {
	Step[F]
	Random *rand.Rand
}

// Draw returns all steps in the order in which a turn of a run tries them. The random source of a step depends on the
// seed, the turn and the name of the step only. A step is the first with a probability in proportion to its weight, and
// its place depends on its own source: an additional step takes some turns, and the other turns stay as they were. So a
// new kind of request changes neither which fault an old seed finds nor which steps lead to it, except where its own
// requests interfere.
func Draw[F any](seed, turn uint64, steps []Step[F]) []Drawn[F] {
	type ranked struct {
		Drawn[F]
		at float64
	}
	all := make([]ranked, len(steps))
	for i, s := range steps {
		r := StepRandom(seed, turn, s.Name)
		// The smallest of exponential values with these rates belongs to a step in proportion to its weight.
		all[i] = ranked{Drawn[F]{s, r}, -math.Log(1-r.Float64()) / s.Weight}
	}
	slices.SortStableFunc(all, func(x, y ranked) int { return cmp.Compare(x.at, y.at) })
	out := make([]Drawn[F], len(all))
	for i, x := range all {
		out[i] = x.Drawn
	}
	return out
}

// StepRandom returns the random source of a step in a turn.
func StepRandom(seed, turn uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed^h.Sum64(), turn))
}
