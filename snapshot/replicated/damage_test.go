package replicated

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// A node whose log has a flipped bit stops and names the entry. With an empty directory it joins again and is equal.
func TestDamagedLogStopsNode(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 30, 100)
	c.expectEqual(30)
	victim := "a"
	if c.leader().o.ID == "a" {
		victim = "b"
	}
	c.kill(victim) // its store has lost entries, which it reads from the log
	flipBit(t, c.disks[victim])
	n := c.start(victim)
	<-n.Failed()
	if err := n.Err(); err == nil || !strings.Contains(err.Error(), "log entry") ||
		!strings.Contains(err.Error(), errChecksum.Error()) {
		t.Errorf("the node stopped with %v", n.Err())
	}
	n.Close()
	delete(c.nodes, victim)

	c.must(c.leader().Remove(victim))
	c.disks[victim] = vfs.NewCrashableMem()
	c.must(Prepare("data", c.options(victim)))
	c.start(victim)
	c.join(victim)
	w = c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(33)
}

// flipBit changes one bit in the middle of the entries of a node's log.
func flipBit(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	names, err := fs.List("data/raft")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".wal") {
			continue
		}
		path := "data/raft/" + name
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		at := -1
		for range 15 { // an entry in the middle
			next := bytes.Index(data[at+1:], []byte{entryFormat, kindOps, opAppend})
			if next < 0 {
				break
			}
			at += 1 + next
		}
		if at < 0 {
			continue
		}
		w, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteAt([]byte{data[at+20] ^ 4}, int64(at+20)); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		return
	}
	t.Fatal("the log has no entries")
}

// Entries are the same after encoding, in one piece and in parts, and damage is found.
func TestEntries(t *testing.T) {
	w := writer{epoch: 3}
	b := w.batch(5000)
	b.Requests = []realm.Request{{ID: "r", Seq: 1}}
	b.Texts = append(b.Texts, realm.TextWrite{Ref: realm.BodyRef{Message: 9}})
	ops := opsOf(b)
	for _, limit := range []int{100, MaxEntryBytes} {
		var p parts
		var got []byte
		for _, x := range pack(ops, 7, limit) {
			kind, payload, err := open(x.data)
			if err != nil {
				t.Fatal(err)
			}
			if kind == kindOps {
				got = payload
			} else if got, _, err = p.add(payload); err != nil {
				t.Fatal(err)
			}
			for i := range x.data {
				damaged := bytes.Clone(x.data)
				damaged[i] ^= 16
				if _, _, err := open(damaged); err == nil {
					t.Errorf("a flipped bit in byte %d of an entry is not found", i)
				}
			}
		}
		decoded, err := decodeOps(got)
		if err != nil || len(decoded) != 1 {
			t.Fatalf("%d operations, %v", len(decoded), err)
		}
		if again := appendOp(nil, &decoded[0]); !bytes.Equal(again, appendOp(nil, &ops[0])) {
			t.Errorf("with %d bytes for an entry the operation is %q, want %q", limit, again, appendOp(nil, &ops[0]))
		}
		for n := range got {
			if _, err := decodeOps(got[:n]); err == nil && n > 0 {
				t.Errorf("the first %d bytes of an operation are decoded", n)
			}
		}
	}
}
