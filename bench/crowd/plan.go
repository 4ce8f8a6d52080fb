// Package crowd makes up users: who is in which channel, and what they do next. It is pure data, no clock, no network,
// no goroutine: the same seed gives the same crowd and, as long as the answers are the same, the same actions. The load
// harness lets a crowd act over HTTP; tests of the core may let it act in memory.
package crowd

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Plan is the shape of an organization.
type Plan struct {
	Users    int
	Channels int
	Zipf     float64 // a channel's size is Users / rank^Zipf; 0 puts everybody everywhere
	Hundred  int     // size of one more channel; 0 for none
	Seed     uint64
}

// minChannel is the size below which a channel would be nobody's.
const minChannel = 2

// Members lists, channel by channel, the users (0 … Users-1) subscribed to it, in rising order. The channel of Hundred,
// if there is one, comes last.
func (p Plan) Members() [][]int32 {
	rng := rand.New(rand.NewPCG(p.Seed, 0x706c616e))
	var out [][]int32
	for c := 0; c < p.Channels; c++ {
		n := p.Users
		if p.Zipf > 0 {
			n = int(float64(p.Users) / math.Pow(float64(c+1), p.Zipf))
		}
		out = append(out, pick(rng, p.Users, max(n, min(minChannel, p.Users))))
	}
	if p.Hundred > 0 {
		out = append(out, pick(rng, p.Users, min(p.Hundred, p.Users)))
	}
	return out
}

// pick draws n of total, without repeats.
func pick(rng *rand.Rand, total, n int) []int32 {
	all := make([]int32, total)
	for i := range all {
		all[i] = int32(i)
	}
	if n < total {
		for i := 0; i < n; i++ {
			j := i + rng.IntN(total-i)
			all[i], all[j] = all[j], all[i]
		}
		all = all[:n]
		slices.Sort(all)
	}
	return all
}
