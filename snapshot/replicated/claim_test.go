package replicated

import (
	"sync"
	"testing"

	"parley/actors/realm"
)

// claimMany claims realms at once, as a new leader does.
func claimMany(tb testing.TB, j Journal, realms int) (epochs []uint64) {
	epochs = make([]uint64, realms)
	var all sync.WaitGroup
	for i := range realms {
		all.Go(func() {
			got, err := j.Claim(realm.ID(i+1), realm.AnyEpoch)
			if err != nil {
				tb.Errorf("realm %d: %v", i+1, err)
			}
			epochs[i] = got.Epoch
		})
	}
	all.Wait()
	return epochs
}

// A leader that claims many realms at once gets each of them, and the log has few entries for it.
func TestClaimsShareEntries(t *testing.T) {
	const realms = 500
	c := newCluster(t, nil, "a", "b", "c")
	n := c.leader()
	before := n.Status().Last
	first, second := claimMany(t, n.Journal(), realms), claimMany(t, n.Journal(), realms)
	for i := range realms {
		if first[i] == 0 || second[i] != first[i]+1 {
			t.Errorf("realm %d has got the epochs %d and %d", i+1, first[i], second[i])
		}
	}
	if entries := n.Status().Last - before; entries > realms/5 {
		t.Errorf("%d claims took %d entries of the log", 2*realms, entries)
	}
}

// BenchmarkClaims measures how long a new leader of three nodes needs for the claims of 1,000 realms.
func BenchmarkClaims(b *testing.B) {
	c := newCluster(b, nil, "a", "b", "c")
	j := c.leader().Journal()
	for b.Loop() {
		claimMany(b, j, 1000)
	}
}
