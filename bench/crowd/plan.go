package crowd

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Plan is the size and shape of an organization.
type Plan struct {
	Users    int
	Channels int
	Zipf     float64 // a channel has Users / rank^Zipf members; 0 puts every user in every channel
	Hundred  int     // size of one more channel; 0 for none
	Room     int     // size of further channels that divide the users among them; 0 for none
	Seed     uint64
}

// minChannel is the smallest size of a channel.
const minChannel = 2

// Members returns for each channel the users (0 to Users-1) that are subscribed to it, in rising order. The channel
// of Hundred, if there is one, follows the ordinary channels. The rooms are the last.
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
	return append(out, p.rooms(rng)...)
}

// rooms divides the users at random. The last room can be smaller than the others.
func (p Plan) rooms(rng *rand.Rand) (out [][]int32) {
	if p.Room < 1 {
		return nil
	}
	all := make([]int32, p.Users)
	for i, u := range rng.Perm(p.Users) {
		all[i] = int32(u)
	}
	for room := range slices.Chunk(all, p.Room) {
		slices.Sort(room)
		out = append(out, room)
	}
	return out
}

// pick draws n different numbers below total, in rising order.
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
