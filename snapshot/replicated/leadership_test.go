package replicated

import (
	"errors"
	"testing"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// owned makes the leader the owner of a realm by its leadership.
func (c *cluster) owned(id realm.ID) (claimed realm.Claimed, ok bool) {
	c.t.Helper()
	c.wait("the leadership includes the realm", func() bool {
		var err error
		claimed, ok, err = c.leader().Journal().Owned(id)
		if err != nil && !errors.Is(err, realm.ErrMoved) {
			c.t.Fatal(err)
		}
		return err == nil
	})
	return claimed, ok
}

// fact returns a batch with one fact of a realm.
func fact(id realm.ID, epoch uint64, after realm.Seq) []realm.Batch {
	return []realm.Batch{{Realm: id, Epoch: epoch, After: after, Now: 1,
		Facts: [][]byte{codec.EncodeFact(&realm.QueuesCaughtUp{Through: after + 1})}}}
}

// moveLeader makes another node the leader.
func (c *cluster) moveLeader() {
	c.t.Helper()
	old := c.leader()
	c.must(old.MoveLeader(""))
	c.wait("another node leads", func() bool { return c.leader() != old })
}

// One entry of the log gives a new leader all realms. An entry with an epoch from before it is refused, also one that
// the new leader itself adds.
func TestLeadershipFencesOlderOnes(t *testing.T) {
	const realms = 200
	c := newCluster(t, nil, "a", "b", "c")
	epochs := claimMany(t, c.leader().Journal(), realms)
	for i, epoch := range epochs {
		c.must(c.leader().Journal().Append(fact(realm.ID(i+1), epoch, 0))[0])
	}
	old := c.leader()
	oldClaim, _ := c.owned(1)
	before := old.Status().Last
	c.moveLeader()
	if _, ok, err := old.Journal().Owned(1); ok && err == nil {
		t.Error("a node that does not lead has a claim")
	}
	j := c.leader().Journal()
	for i := range realms {
		id := realm.ID(i + 1)
		got, ok := c.owned(id)
		if !ok || got.Epoch <= epochs[i] || got.Last != 1 {
			t.Fatalf("realm %d: claim %+v, %t; its epoch was %d", id, got, ok, epochs[i])
		}
		if err := j.Append(fact(id, epochs[i], 1))[0]; !errors.Is(err, realm.ErrMoved) {
			t.Fatalf("realm %d: an append under the epoch before the leadership returned %v", id, err)
		}
		if i == 0 {
			if err := j.Append(fact(id, oldClaim.Epoch, 1))[0]; !errors.Is(err, realm.ErrMoved) {
				t.Fatalf("an append under the epoch of the earlier leadership returned %v", err)
			}
			before = j.Status().Last - before
			if before > 20 {
				t.Errorf("the change of the leader took %d entries", before)
			}
		}
		c.must(j.Append(fact(id, got.Epoch, 1))[0])
	}
	// The fence is on disk: a start reads no entry of the log again.
	got, _ := c.owned(2)
	for _, name := range []string{"a", "b", "c"} {
		c.must(c.nodes[name].Close())
	}
	for _, name := range []string{"a", "b", "c"} {
		c.start(name)
	}
	again, _ := c.owned(2)
	if again.Epoch <= got.Epoch || again.Last != 2 {
		t.Errorf("after a start of all nodes the claim is %+v, it was %+v", again, got)
	}
	if err := c.leader().Journal().Append(fact(2, got.Epoch, 2))[0]; !errors.Is(err, realm.ErrMoved) {
		t.Errorf("an append under the epoch before the start of all nodes returned %v", err)
	}
}

// A change of the leader does not end the claim of a realm that has no facts: it is being imported.
func TestLeadershipKeepsImports(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	claimed, err := c.leader().Journal().Claim(7, realm.AnyEpoch)
	c.must(err)
	c.moveLeader()
	text := []realm.Batch{{Realm: 7, Epoch: claimed.Epoch, Texts: []realm.TextWrite{{
		Ref: realm.BodyRef{Message: 1, Version: 1}, Body: &realm.Body{Text: "text"}}}}}
	c.must(c.leader().Journal().Append(text)[0])
	next, err := c.leader().Journal().Claim(7, claimed.Epoch)
	c.must(err)
	if err := c.leader().Journal().Append(text)[0]; !errors.Is(err, realm.ErrMoved) {
		t.Errorf("an import goes on after another claim: %v", err)
	}
	c.must(c.leader().Journal().Append(fact(7, next.Epoch, 0))[0])
	if got, _ := c.owned(7); got.Epoch != next.Epoch {
		t.Errorf("the realm has epoch %d, not that of its claim, %d", got.Epoch, next.Epoch)
	}
}

// While older programs are in the cluster, the leader claims each realm, because they do not know the entry of a
// leadership. The first leader after the level was raised has all realms at once.
func TestLeadershipOfMixedReleases(t *testing.T) {
	level := ownLevel - 1
	c := newCluster(t, func(o *Options) { o.Level = level }, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 1, 10)
	if _, ok := c.owned(1); ok {
		t.Fatal("a leadership at an older level includes the realms")
	}
	level = ownLevel
	for _, name := range []string{"a", "b", "c"} {
		c.must(c.nodes[name].Close())
		c.start(name)
	}
	if _, ok := c.owned(1); ok {
		t.Fatal("a leadership before the level was raised includes the realms")
	}
	c.must(c.leader().RaiseLevel(ownLevel))
	w = c.claim()
	c.moveLeader()
	got, ok := c.owned(1)
	if !ok || got.Epoch != w.epoch+1 {
		t.Fatalf("the claim is %+v, %t; the epoch was %d", got, ok, w.epoch)
	}
	if err := w.add(10); !errors.Is(err, realm.ErrMoved) {
		t.Errorf("an append under the epoch of the claim returned %v", err)
	}
}
