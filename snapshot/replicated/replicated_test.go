package replicated

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
)

// All nodes have the acknowledged facts; each node follows with its own rows, and the leader can change.
func TestReplication(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 50, 100)
	c.expectEqual(50)

	followed := make(chan realm.Batch, 100)
	stop := c.nodes["b"].Journal().Follow(1, 48, func(b realm.Batch) error { followed <- b; return nil },
		func(error) { close(followed) })
	w.mustAdd(t, 1, 100)
	var got realm.Seq
	for got < 51 {
		b := <-followed
		got = b.Last()
		if b.After == 50 && (len(b.Texts) != 1 || b.Texts[0].Body.Text != "text 51" || b.Now != 1051) {
			t.Errorf("the follower of b got %+v", b)
		}
	}
	stop()
	for range followed {
	}

	for name, n := range c.nodes {
		at := realm.Seq(len(name) * 20)
		if err := n.Journal().WriteRows(1, 0, at, nil); err != nil {
			t.Errorf("rows of %s: %v", name, err)
		}
	}
	old := c.leader()
	c.must(old.MoveLeader(""))
	c.wait("another leader", func() bool { return c.leader() != old })
	if err := w.add(1); !errors.Is(err, realm.ErrMoved) {
		t.Errorf("an append at the old leader returned %v", err)
	}
	next := c.claim()
	if next.epoch != w.epoch+2 || next.last != 51 { // one for the leadership, one for the claim
		t.Errorf("claimed epoch %d at fact %d", next.epoch, next.last)
	}
	next.mustAdd(t, 20, 100)
	c.expectEqual(71)
}

// An owner of an older epoch is refused, also by the leader itself.
func TestOldEpochIsRefused(t *testing.T) {
	c := newCluster(t, nil, "a")
	old := c.claim()
	old.mustAdd(t, 3, 10)
	c.claim()
	if err := old.add(10); !errors.Is(err, realm.ErrMoved) || !errors.Is(err, snapshot.ErrMoved) {
		t.Errorf("an append under an old epoch returned %v", err)
	}
}

// Without a majority nothing is acknowledged, and refused facts are not stored elsewhere.
func TestNoQuorum(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	old := c.leader()
	c.network.setCut(old.o.Address, true)
	if err := w.add(10); !errors.Is(err, realm.ErrMoved) {
		t.Errorf("an append without a majority returned %v", err)
	}
	next := c.claim()
	if next.last != 5 {
		t.Errorf("the new leader has facts up to %d", next.last)
	}
	next.mustAdd(t, 5, 10)
	c.network.setCut(old.o.Address, false)
	c.expectEqual(10)
}

// A node that is killed comes back with everything, although its store was not synced. All nodes may be killed at once.
func TestKill(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	acked := realm.Seq(0)
	for round, victims := range [][]string{{"a"}, {"b"}, {"c"}, {"a", "b", "c"}, {"b", "c"}} {
		w := c.claim()
		if w.last < acked {
			t.Fatalf("round %d: the journal ends at %d, %d was acknowledged", round, w.last, acked)
		}
		w.mustAdd(t, 20, 1000)
		acked = w.last
		for _, name := range victims {
			c.kill(name)
		}
		if len(victims) == 1 {
			w = c.claim()
			w.mustAdd(t, 20, 1000)
			acked = w.last
		}
		for _, name := range victims {
			c.start(name)
		}
		c.expectEqual(c.claim().last)
	}
	if acked != 160 {
		t.Errorf("%d facts were acknowledged", acked)
	}
}

// A node that is too far behind installs a backup, also if it is killed meanwhile; so does a new node.
func TestFarBehind(t *testing.T) {
	c := newCluster(t, func(o *Options) { o.LogBytes, o.SegmentBytes = 1<<10, 16<<10 }, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	leader := c.leader()
	behind := "a"
	if leader.o.ID == "a" {
		behind = "b"
	}
	before := c.nodes[behind].Status().Installs
	c.kill(behind)
	w.mustAdd(t, 200, 1000)
	for _, n := range c.nodes {
		c.wait("the log is shortened", func() bool { return n.Truncate() == nil })
	}
	w.mustAdd(t, 20, 1000)
	n := c.start(behind)
	c.expectEqual(225)
	if got := n.Status().Installs; got != 1 {
		t.Errorf("%d backups were installed, before %d", got, before)
	}
	c.kill(behind)
	c.start(behind)
	w = c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(230)
}

// A node takes Raft snapshots, so that a start reads few entries. That deletes none: a node that was away
// needs no backup. Entries of former processes count when the log is to be shortened.
func TestNotesBetweenShortenings(t *testing.T) {
	const threshold = 50
	c := newCluster(t, func(o *Options) { o.SnapshotThreshold = threshold }, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	away := c.follower()
	c.kill(away)
	w.mustAdd(t, 300, 10)
	for name, n := range c.nodes {
		if name == away {
			continue
		}
		c.wait("a Raft snapshot", func() bool { return n.raft.AppliedIndex() < n.snapshots.index.Load()+threshold })
		if first, err := n.wal.FirstIndex(); err != nil || first != firstIndex+1 && first != firstIndex {
			t.Errorf("%s: the log begins at %d: %v", name, first, err)
		}
	}
	n := c.start(away)
	c.expectEqual(305)
	if got := n.Status().Installs; got != 0 {
		t.Errorf("%d backups were installed", got)
	}
	other := c.leader().o.ID
	before := c.nodes[other].logEntries.Load()
	c.kill(other)
	if got := c.start(other).logEntries.Load(); got < before-threshold || got > before+threshold {
		t.Errorf("the log has %d entries since it was shortened, before the start %d", got, before)
	}
}

// A leader dies with an entry that no other node has. The next leader has another one in its place, and that is what
// the first leader applies when it is back, whichever request of the new leader reaches it first.
func TestStaleEntryOfDeadLeader(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	old := c.leader()
	last, err := old.wal.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	c.network.setCut(old.o.Address, true) // it leads for a moment, in which it takes the change
	lost := make(chan error, 1)
	go func() { lost <- w.journal.Append([]realm.Batch{w.batch(20)})[0] }()
	c.wait("the entry is in the log of the leader", func() bool {
		got, err := old.wal.LastIndex()
		return err == nil && got > last
	})
	c.kill(old.o.ID)
	if err := <-lost; err == nil {
		t.Fatal("a change was acknowledged that only one node has")
	}
	w = c.claim()
	w.mustAdd(t, 5, 10)
	c.start(old.o.ID)
	c.expectEqual(10)
}

// A node that starts is current when it has applied everything that the leader had committed before, and not when it
// has heard from the leader.
func TestCurrentAfterStart(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	behind := c.follower()
	c.kill(behind)
	w.mustAdd(t, 5*maxAppendEntries, 100)
	n := c.start(behind)
	c.wait("the node is current", n.IsCaughtUp)
	if _, got, err := n.Disk().Bounds(1); err != nil || got < 5+5*maxAppendEntries {
		t.Errorf("the node is current with fact %d, %v", got, err)
	}
	// It needs no new entry for it after another start, and the leader is current itself.
	c.expectEqual(5 + 5*maxAppendEntries)
	c.kill(behind)
	n = c.start(behind)
	c.wait("the node is current again", n.IsCaughtUp)
	c.wait("the leader is current", c.leader().IsCaughtUp)
	c.expectEqual(5 + 5*maxAppendEntries)
}

// Batches of any size are stored as a whole, in parts if they are large.
func TestLargeBatches(t *testing.T) {
	c := newCluster(t, func(o *Options) { o.SegmentBytes = 4 << 20 }, "a", "b")
	w := c.claim()
	w.mustAdd(t, 1, 5<<20)
	var list []realm.Batch
	for range 40 {
		list = append(list, w.batch(100<<10))
		w.last++
	}
	if err := errors.Join(w.journal.Append(list)...); err != nil {
		t.Fatal(err)
	}
	w.mustAdd(t, 1, MaxEntryBytes)
	c.expectEqual(42)
	c.kill("b")
	c.start("b")
	w = c.claim()
	w.mustAdd(t, 1, 2<<20)
	c.expectEqual(43)
}

// A node writes its rows, whichever node claims the realm at that moment.
func TestRowsWhileOwnersChange(t *testing.T) {
	c := newCluster(t, nil, "a")
	w := c.claim()
	w.mustAdd(t, 3, 10)
	var claims sync.WaitGroup
	done := make(chan struct{})
	claims.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := w.journal.Claim(1, realm.AnyEpoch); err != nil {
				t.Errorf("a claim: %v", err)
				return
			}
		}
	})
	for range 2000 {
		if err := w.journal.WriteRows(1, w.epoch, 3, nil); err != nil {
			t.Errorf("rows: %v", err)
			break
		}
	}
	close(done)
	claims.Wait()
}

// A request id is accepted once, and the limits of the journal hold.
func TestRefusedBatches(t *testing.T) {
	c := newCluster(t, nil, "a")
	w := c.claim()
	b := w.batch(1)
	b.Requests = []realm.Request{{ID: "one", Seq: 1}}
	again := b
	again.After = 1
	good := realm.Batch{Realm: 1, Epoch: w.epoch, After: 1, Now: 1, Facts: b.Facts}
	errs := w.journal.Append([]realm.Batch{b, again, good})
	if errs[0] != nil || !errors.Is(errs[1], snapshot.ErrDuplicate) || !errors.Is(errs[1], realm.ErrMoved) ||
		errs[2] != nil {
		t.Errorf("a repeated request: %v", errs)
	}
	if seq, found, err := w.journal.FindRequest(1, "one"); seq != 1 || !found || err != nil {
		t.Errorf("the request is at %d, %t, %v", seq, found, err)
	}
	if _, err := w.journal.Claim(1, w.epoch+1); !errors.Is(err, realm.ErrMoved) {
		t.Errorf("a claim of another epoch returned %v", err)
	}
	if _, err := w.journal.Claim(0, realm.AnyEpoch); err == nil || errors.Is(err, realm.ErrMoved) {
		t.Errorf("a claim of the process returned %v", err)
	}
	store := c.nodes["a"].store.Load()
	if _, err := store.Claim(1, realm.AnyEpoch); !errors.Is(err, snapshot.ErrReplicated) {
		t.Errorf("a claim beside the log returned %v", err)
	}
	if err := store.Append([]snapshot.Entry{{Realm: 1}})[0]; !errors.Is(err, snapshot.ErrReplicated) {
		t.Errorf("an append beside the log returned %v", err)
	}
}

// All callers that ask at a time share one check, and a deposed leader gets an error.
func TestVerifyLeader(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	n := c.leader()
	ask := func() (err error) {
		var done sync.WaitGroup
		var mu sync.Mutex
		for range 100 {
			done.Add(1)
			n.VerifyLeader(func(e error) {
				mu.Lock()
				defer mu.Unlock()
				err = errors.Join(err, e)
				done.Done()
			})
		}
		done.Wait()
		return err
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	n.rounds.mu.Lock()
	rounds := n.rounds.rounds
	n.rounds.mu.Unlock()
	if rounds > 20 {
		t.Errorf("100 callers took %d rounds", rounds)
	}
	c.network.setCut(n.o.Address, true)
	if err := ask(); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a leader that is cut off got %v", err)
	}
}

// An answer that was on the way before a check began does not confirm it: the leader may have been stopped meanwhile,
// while another node has taken over.
func TestVerifyLeaderTakesNoOldAnswer(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	n := c.leader()
	held := c.network.holdAnswers(n.o.Address)
	for from := map[string]bool{}; len(from) < 2; {
		from[<-held.arrived] = true
	}
	c.network.cutWrites()
	verified := make(chan error, 1)
	n.VerifyLeader(func(err error) { verified <- err })
	time.Sleep(testElection / 5) // how long the process is stopped: less than the lease lasts
	close(held.release)
	if err := <-verified; !errors.Is(err, ErrNotLeader) {
		t.Errorf("the check of a leader that is cut off ended with %v", err)
	}
}

// The watchers learn in order that the node is the leader, and that it is not.
func TestOnLeadership(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	n := c.leader()
	calls := make(chan bool, 10)
	n.OnLeadership(func(on bool) { calls <- on })
	if !<-calls {
		t.Error("the leader was not told")
	}
	c.network.setCut(n.o.Address, true)
	if <-calls {
		t.Error("the deposed leader was told that it leads")
	}
	c.network.setCut(n.o.Address, false)
	c.leader()
}

// A node whose journal differs from that of the leader stops and names the place.
func TestDivergedNodeStops(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(3)
	victim := "a"
	if c.leader().o.ID == "a" {
		victim = "b"
	}
	n := c.nodes[victim]
	// The store of the victim applies an entry that no other node has, and forgets its index.
	s := n.store.Load()
	b := w.batch(10)
	b.Now++
	e := snapshot.Entries([]realm.Batch{b})
	index := s.Applied() + 1
	if _, err := s.ApplyLog([]snapshot.LogEntry{{Index: index, Ops: []snapshot.LogOp{{Entry: &e[0]}}}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.must(w.add(10))
	}
	<-n.Failed()
	var diverged *snapshot.DivergedError
	if err := n.Err(); !errors.As(err, &diverged) || diverged.Realm != 1 || diverged.Seq != 4 {
		t.Errorf("the node stopped with %v", n.Err())
	}
}

// The verifier compares the logs, and a member can be added, promoted and removed.
func TestMembers(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 10, 100)
	c.must(c.leader().Checkpoint())
	w.mustAdd(t, 10, 100)
	c.must(c.leader().Checkpoint())
	for name, n := range c.nodes {
		c.wait(name+" compares its log", func() bool { return n.Status().Verified > 0 })
	}
	s := c.leader().Status()
	if len(s.Members) != 3 || s.LeaderID != s.ID || !s.Leading || s.Term == 0 {
		t.Errorf("%+v", s)
	}
	for _, m := range s.Members {
		if !m.Voter || m.Leader != (m.ID == s.ID) {
			t.Errorf("member %+v", m)
		}
	}
	c.must(c.leader().Remove("c"))
	c.nodes["c"].Close()
	delete(c.nodes, "c")
	if err := c.leader().Promote("c"); err == nil || !strings.Contains(err.Error(), "no node c") {
		t.Errorf("promoting a removed node: %v", err)
	}
	w = c.claim()
	w.mustAdd(t, 1, 10)
	if got := fmt.Sprint(c.leader().Status().Members); strings.Contains(got, "c ") || len(c.nodes) != 2 {
		t.Errorf("members %v", got)
	}
	c.expectEqual(21)
}

// Follow ends when a backup is installed, with an error after which the caller follows again.
func TestFollowAcrossInstall(t *testing.T) {
	c := newCluster(t, func(o *Options) { o.LogBytes, o.SegmentBytes = 1<<10, 16<<10 }, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	behind := "a"
	if c.leader().o.ID == "a" {
		behind = "b"
	}
	n := c.nodes[behind]
	ended := make(chan error, 1)
	n.Journal().Follow(1, 5, func(realm.Batch) error { return nil }, func(err error) { ended <- err })
	c.network.setCut(n.o.Address, true)
	w.mustAdd(t, 200, 1000)
	for _, x := range c.nodes {
		if x != n {
			c.wait("the log is shortened", func() bool { return x.Truncate() == nil })
		}
	}
	c.network.setCut(n.o.Address, false)
	select {
	case err := <-ended:
		if !errors.Is(err, snapshot.ErrClosed) && !errors.Is(err, realm.ErrBehind) {
			t.Errorf("following ended with %v", err)
		}
	case <-time.After(testTimeout):
		t.Error("following has not ended")
	}
	c.expectEqual(205)
}

// A value of the cluster is the same on every node, also on one that gets a backup.
func TestMeta(t *testing.T) {
	c := newCluster(t, nil, "a", "b")
	if err := c.leader().SetMeta("members", []byte("one")); err != nil {
		t.Fatal(err)
	}
	for name, n := range c.nodes {
		got := make(chan string, 10)
		if err := n.OnMeta("members", func(v []byte) { got <- string(v) }); err != nil {
			t.Fatal(err)
		}
		if err := c.leader().SetMeta("members", []byte("two")); err != nil {
			t.Fatal(err)
		}
		for v := ""; v != "two"; {
			select {
			case v = <-got:
			case <-time.After(testTimeout):
				t.Fatalf("%s does not get the value", name)
			}
		}
	}
	for _, n := range c.nodes {
		if n == c.leader() {
			continue
		}
		if err := n.SetMeta("members", nil); !errors.Is(err, realm.ErrMoved) {
			t.Errorf("a change at a node that does not lead returned %v", err)
		}
	}
}

// A node that no leader has contacted yet counts the silence from its start.
func TestContactBeforeFirstLeader(t *testing.T) {
	began := time.Now()
	c := newCluster(t, nil)
	c.startNew("a", PrepareJoin)
	if s := c.nodes["a"].Status(); s.Heard || s.Contact <= 0 || s.Contact > time.Since(began) {
		t.Errorf("no leader for %v, %v after the start, heard one: %t", s.Contact, time.Since(began), s.Heard)
	}
}
