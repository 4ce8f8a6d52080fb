package replicated

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"parley/snapshot"
)

// logNode is a node whose log is written by the test instead of Raft.
type logNode struct {
	*Node
	t *testing.T
}

// newLogNode returns a node with an empty log, whose next entry is firstIndex+1.
func newLogNode(t *testing.T, name string) *logNode {
	t.Helper()
	o := Options{ID: name, Address: name, SegmentBytes: smallSegment,
		Store: snapshot.Options{FS: vfs.NewMem(), MemTable: 1 << 20, Cache: 1 << 20}}.withDefaults()
	if err := Bootstrap("data", o); err != nil {
		t.Fatal(err)
	}
	n := &Node{dir: "data", o: o, fs: o.Store.FS, log: o.Log, failed: newFailure(), closing: make(chan struct{})}
	if err := errors.Join(n.openStore(), n.openLog()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(n.closing)
		if err := n.releaseFiles(); err != nil {
			t.Error(err)
		}
	})
	return &logNode{n, t}
}

// write stores entries, one at a time. Raft sends an entry to other nodes as the leader's log has it, so a test writes
// a checkpoint at the leader first.
func (n *logNode) write(logs ...*raft.Log) {
	n.t.Helper()
	for _, l := range logs {
		if err := n.logs.StoreLogs([]*raft.Log{l}); err != nil {
			n.t.Fatalf("%s: store entry %d: %v", n.o.ID, l.Index, err)
		}
	}
}

// truncate deletes an entry and all entries after it, as Raft does if the leader has another entry there.
func (n *logNode) truncate(from uint64) {
	n.t.Helper()
	last, err := n.logs.LastIndex()
	if err == nil {
		err = n.logs.DeleteRange(from, last)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// waitForCheckpoints waits until a node has handled a number of checkpoints or has stopped.
func (n *logNode) waitForCheckpoints(count int64) {
	n.t.Helper()
	for end := time.Now().Add(testTimeout); n.Err() == nil; time.Sleep(time.Millisecond) {
		if n.verified.Load()+n.differing.Load()+n.uncompared.Load() >= count {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("%s has not handled %d checkpoints within %v", n.o.ID, count, testTimeout)
		}
	}
}

// expectCompared waits until a node has handled checkpoints. It requires how many comparisons found no difference, how
// many a wrong sum of the leader, and how many checkpoints compared nothing.
func (n *logNode) expectCompared(equal, differing, uncompared int64) {
	n.t.Helper()
	n.waitForCheckpoints(equal + differing + uncompared)
	if err := n.Err(); err != nil {
		n.t.Errorf("%s has stopped, but each of its entries is right: %v", n.o.ID, err)
	}
	got := [...]int64{n.verified.Load(), n.differing.Load(), n.uncompared.Load()}
	if want := [...]int64{equal, differing, uncompared}; got != want {
		n.t.Errorf("comparisons of %s without a difference, with a wrong sum, and without a sum: %v, want %v", n.o.ID,
			got, want)
	}
}

// textEntry returns an entry with operations. Entries with different terms have different contents.
func textEntry(index, term uint64) *raft.Log {
	payload := []byte(fmt.Sprintf("entry %d of term %d", index, term))
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: encodeEntry(kindOps, payload)}
}

func checkpointEntry(index, term uint64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: encodeEntry(kindCheckpoint, nil)}
}

// Deleted entries are not compared. A leader that is cut off writes entries that no other node gets. It deletes them,
// follows another leader, and leads again: no log is damaged, and no checkpoint has a wrong sum.
func TestDeletedEntriesAreNotCompared(t *testing.T) {
	for _, x := range []struct {
		name    string
		deleted []*raft.Log // written and deleted by a
		after   []*raft.Log // written by both
	}{
		{"an entry", []*raft.Log{textEntry(4, 1)}, []*raft.Log{textEntry(4, 2)}},
		{"an entry with the same content", []*raft.Log{textEntry(4, 1)}, []*raft.Log{textEntry(4, 1)}},
		{"several entries", []*raft.Log{textEntry(4, 1), textEntry(5, 1), textEntry(6, 1)},
			[]*raft.Log{textEntry(4, 2)}},
		{"a checkpoint", []*raft.Log{checkpointEntry(4, 1)}, []*raft.Log{textEntry(4, 2)}},
		{"entries without new ones", []*raft.Log{textEntry(4, 1)}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			a, b := newLogNode(t, "a"), newLogNode(t, "b")
			both := func(logs ...*raft.Log) {
				t.Helper()
				a.write(logs...)
				b.write(logs...)
			}
			both(checkpointEntry(2, 1), textEntry(3, 1)) // no entry is before the first checkpoint
			a.waitForCheckpoints(1)
			b.waitForCheckpoints(1)
			a.write(x.deleted...)
			if is, _ := isCheckpoint(x.deleted[0]); is {
				a.waitForCheckpoints(2)
			}
			a.truncate(4)
			both(x.after...)
			next := 4 + uint64(len(x.after))
			before := [...]int64{a.verified.Load(), a.uncompared.Load(), b.verified.Load(), b.uncompared.Load()}

			both(checkpointEntry(next, 3)) // without a sum
			a.expectCompared(before[0], 0, before[1]+1)
			b.expectCompared(before[2], 0, before[3]+1)
			both(textEntry(next+1, 3), checkpointEntry(next+2, 3)) // the comparisons go on
			a.expectCompared(before[0]+1, 0, before[1]+1)
			b.expectCompared(before[2]+1, 0, before[3]+1)
		})
	}
}

// A node that follows deletes entries, too: another node's leader had written them and was deposed. Its own sum begins
// again, and it compares the entries on its disk with the leader's sum.
func TestFollowerDeletesEntries(t *testing.T) {
	a, b := newLogNode(t, "a"), newLogNode(t, "b")
	for _, l := range []*raft.Log{checkpointEntry(2, 1), textEntry(3, 1)} {
		a.write(l)
		b.write(l)
	}
	b.waitForCheckpoints(1)
	b.write(textEntry(4, 1))
	b.truncate(4)
	for _, l := range []*raft.Log{textEntry(4, 2), checkpointEntry(5, 2)} {
		a.write(l)
		b.write(l)
	}
	b.expectCompared(1, 0, 1)
}

// The backup of another node replaces entries that a node has missed. The entries before and after them have no common
// sum.
func TestMissedEntriesAreNotCompared(t *testing.T) {
	a, b := newLogNode(t, "a"), newLogNode(t, "b")
	for _, l := range []*raft.Log{checkpointEntry(2, 1), textEntry(3, 1)} {
		a.write(l)
		b.write(l)
	}
	a.waitForCheckpoints(1)
	b.waitForCheckpoints(1)
	a.write(textEntry(4, 1), textEntry(5, 1))
	b.truncate(2) // all entries, as Raft does when it has installed a backup
	for _, l := range []*raft.Log{textEntry(6, 1), checkpointEntry(7, 1)} {
		a.write(l)
		b.write(l)
	}
	b.waitForCheckpoints(2)
	if b.Err() != nil || b.differing.Load() != 0 {
		t.Errorf("comparisons with a wrong sum: %d, %v", b.differing.Load(), b.Err())
	}
}

// wrongCheckpoint is a checkpoint as older programs have written it, with the sum of other entries.
func wrongCheckpoint(index, from uint64) *raft.Log {
	l := checkpointEntry(index, 3)
	l.Extensions = noSum(from)
	binary.LittleEndian.PutUint64(l.Extensions[16:], 4711)
	return l
}

// A checkpoint of an older program with a wrong sum stops no node whose entries are intact, whether the node has
// written the entries itself or gets the log later. A node whose entry is damaged stops, and names the entry.
func TestWrongSumIsPassedOver(t *testing.T) {
	n, joined := newLogNode(t, "a"), newLogNode(t, "b")
	n.write(checkpointEntry(2, 1), textEntry(3, 1), textEntry(4, 2))
	n.waitForCheckpoints(1)
	n.write(wrongCheckpoint(5, 2))
	n.expectCompared(0, 1, 1)
	n.write(textEntry(6, 3), checkpointEntry(7, 3))
	n.expectCompared(1, 1, 1)

	joined.write(textEntry(3, 1), textEntry(4, 2), wrongCheckpoint(5, 3), textEntry(6, 3))
	joined.expectCompared(0, 1, 0)

	n.damage(t, 6)
	n.write(wrongCheckpoint(8, 5))
	n.waitForCheckpoints(4)
	if err := n.Err(); err == nil || !strings.Contains(err.Error(), "log entry 6 ") {
		t.Errorf("the node with a damaged entry 6 has stopped with %v", err)
	}
}

// damage flips a bit of a stored entry.
func (n *logNode) damage(t *testing.T, index uint64) {
	t.Helper()
	want := []byte(fmt.Sprintf("entry %d of term", index))
	for _, path := range segmentsOf(t, n.fs.(*vfs.MemFS)) {
		data := readAll(t, n.fs, path)
		if at := bytes.Index(data, want); at >= 0 {
			writeByte(t, n.fs, path, at, data[at]^4)
			return
		}
	}
	t.Fatalf("the log has no entry %d", index)
}
