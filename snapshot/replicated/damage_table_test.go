package replicated

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
)

// A core stops when it reads a damaged block of its store for a request: the request gets no answer, the reason names
// the file, and a start is refused with it. The core joins again with an empty directory.
func TestDamagedTableStopsNode(t *testing.T) {
	c := newCluster(t, withoutCompactions, "a", "b", "c")
	ref, text := addLongText(t, c.claim())
	c.expectEqual(11)
	victim := c.follower()
	n := restartWithDamage(c, victim, text)
	if err := n.Err(); err != nil {
		t.Fatalf("the start has read the damaged block: %v", err)
	}
	read := make(chan error, 1)
	go func() {
		_, _, err := n.Disk().Text(1, ref)
		read <- err
	}()
	select {
	case <-n.Failed():
	case err := <-read:
		t.Fatalf("the read returned %v, and the node has not stopped", err)
	case <-time.After(testTimeout):
		t.Fatal("the node has not stopped")
	}
	reason := n.Err()
	expectRejoinAdvice(t, reason)
	select {
	case err := <-read:
		t.Errorf("the read returned %v", err)
	default:
	}
	delete(c.nodes, victim)
	if err := n.Close(); err == nil {
		t.Error("closing the node returned no error")
	}
	<-read // the goroutine has ended

	if again, err := c.open(victim); err == nil || err.Error() != reason.Error() {
		t.Errorf("the start returned %v and %v, want %s", again, err, reason)
	}
	c.replace(victim)
	w := c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(14)
	if b, found, err := c.nodes[victim].Disk().Text(1, ref); err != nil || !found || b.HTML != text {
		t.Errorf("the new copy has a text of %d bytes, %t, %v", len(b.HTML), found, err)
	}
}

// A core stops when a compaction reads a damaged block, while the core starts or later. It is replaced like one that
// has read the block for a request.
func TestDamagedTableIsCompacted(t *testing.T) {
	delay := time.Hour // not before the table is damaged
	c := newCluster(t, func(o *Options) { o.Store.CompactionDelay = delay }, "a", "b", "c")
	_, text := addLongText(t, c.claim())
	c.expectEqual(11)
	victim := c.follower()
	c.stopWithDamage(victim, text)
	delay = 0
	n, reason := c.open(victim)
	if reason == nil {
		select {
		case <-n.Failed():
		case <-time.After(testTimeout):
			t.Fatal("the node has not stopped")
		}
		reason = n.Err()
		n.Close()
	}
	expectRejoinAdvice(t, reason)
	delay = time.Hour
	if again, err := c.open(victim); err == nil || err.Error() != reason.Error() {
		t.Errorf("the start returned %v and %v, want %s", again, err, reason)
	}
	c.replace(victim)
	c.claim().mustAdd(t, 3, 10)
	c.expectEqual(14)
}

// A leader with a damaged block sends no copy of it to a new node: it stops, and the new node gets the backup of the
// next leader.
func TestDamagedTableIsNotCopied(t *testing.T) {
	c := newCluster(t, withoutCompactions, "a", "b", "c")
	ref, text := addLongText(t, c.claim())
	c.expectEqual(11)
	victim := c.follower()
	n := restartWithDamage(c, victim, text)
	c.must(c.leader().MoveLeader(victim))
	c.wait("the damaged node leads", func() bool { return c.leader() == n })
	c.startNew("d", PrepareJoin)
	c.must(n.Add("d", c.address["d"]))
	select {
	case <-n.Failed():
	case <-time.After(testTimeout):
		t.Fatal("the leader has not noticed the damage")
	}
	if reason := n.Err().Error(); !strings.Contains(reason, ".sst: ") {
		t.Errorf("the leader stopped with %q", reason)
	}
	delete(c.nodes, victim)
	c.network.setCut(n.o.Address, true)
	n.Close()
	c.caughtUp("d")
	if b, found, err := c.nodes["d"].Disk().Text(1, ref); err != nil || !found || b.HTML != text {
		t.Errorf("the new copy has a text of %d bytes, %t, %v", len(b.HTML), found, err)
	}
	c.claim().mustAdd(t, 3, 10)
	c.expectEqual(14)
}

// With fewer than three voters there is no majority that has the data: a read returns the damage, and the node goes on.
func TestDamagedTableOfOnlyNode(t *testing.T) {
	c := newCluster(t, withoutCompactions, "a")
	ref, text := addLongText(t, c.claim())
	n := restartWithDamage(c, "a", text)
	var d *snapshot.DamageError
	if _, _, err := n.Disk().Text(1, ref); !errors.As(err, &d) || !strings.Contains(d.Where, ".sst") {
		t.Errorf("the read returned %v", err)
	}
	w := c.claim()
	w.mustAdd(t, 3, 10)
	if err := n.Err(); err != nil {
		t.Errorf("the node stopped: %v", err)
	}
}

// addLongText adds 11 facts, whose texts cannot be compressed and are longer than a block of a table. It returns one of
// them that is in a block of its own.
func addLongText(t *testing.T, w *writer) (ref realm.BodyRef, text string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 11 {
		var long strings.Builder
		for long.Len() < 9000 {
			fmt.Fprintf(&long, "%016x", r.Uint64())
		}
		b := w.batch(0)
		b.Texts[0].Body.HTML = long.String()
		if err := w.journal.Append([]realm.Batch{b})[0]; err != nil {
			t.Fatal(err)
		}
		w.last++
		if i == 5 {
			ref, text = b.Texts[0].Ref, long.String()
		}
	}
	return ref, text
}

// withoutCompactions lets a start read only the data that it needs. A compaction would read the damaged block.
func withoutCompactions(o *Options) { o.Store.CompactionDelay = time.Hour }

// expectRejoinAdvice expects that a core has stopped with a reason that names the damaged table and the remedy.
func expectRejoinAdvice(t *testing.T, reason error) {
	t.Helper()
	for _, part := range []string{"in store/", ".sst: ", rejoinAdvice} {
		if !strings.Contains(reason.Error(), part) {
			t.Errorf("the node stopped with %q, which does not contain %q", reason, part)
		}
	}
}

// restartWithDamage starts a node again with a flipped bit in a text of its tables.
func restartWithDamage(c *cluster, name, text string) *Node {
	c.t.Helper()
	c.stopWithDamage(name, text)
	n := c.start(name)
	c.caughtUp(name)
	return n
}

// stopWithDamage stops a node and flips a bit in a text of its tables.
func (c *cluster) stopWithDamage(name, text string) {
	c.t.Helper()
	c.must(c.nodes[name].Close()) // writes the tables
	delete(c.nodes, name)
	fs, found := c.disks[name], false
	names, err := fs.List("data/store")
	c.must(err)
	for _, file := range names {
		if !strings.HasSuffix(file, ".sst") {
			continue
		}
		path := fs.PathJoin("data/store", file)
		data := readAll(c.t, fs, path)
		if at := bytes.Index(data, []byte(text[4000:4020])); at >= 0 {
			writeByte(c.t, fs, path, at, data[at]^4)
			found = true
		}
	}
	if !found {
		c.t.Fatal("no table has the text")
	}
}
