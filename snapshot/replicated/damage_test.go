package replicated

import (
	"bytes"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"parley/actors/realm"
)

// A node whose log has a flipped bit does not start, and names the entry. With an empty directory it joins again and is
// equal.
func TestDamagedLogStopsNode(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 30, 100)
	c.expectEqual(30)
	w.mustAdd(t, 1, 100) // damage in the last batch of a log looks like the power loss of this test
	c.expectEqual(31)
	victim := c.follower()
	c.kill(victim) // its store has lost entries, which it reads from the log
	flipBit(t, c.disks[victim], 20, operationBit)
	o := c.options(victim)
	o.Links = c.network.listen(t, c.address[victim])
	n, err := Open("data", o)
	if err == nil {
		n.Close()
	}
	for _, part := range []string{"data/raft/", "entries ", errChecksum.Error(), rejoinAdvice} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the node started with %v, which does not contain %q", err, part)
		}
	}
	o.Links.Close()
	c.replace(victim)
	w = c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(34)
}

// A leader that reads a damaged entry for another node stops and names the entry, whichever part of the entry is
// damaged. The others go on without it, and none of them gets the entry, or deletes its own.
func TestDamagedLogOfLeader(t *testing.T) {
	for name, at := range map[string]int{
		"operation": operationBit, "term": termBit, "length": lengthBit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits for elections
			c := newCluster(t, nil, "a", "b", "c")
			w := c.claim()
			w.mustAdd(t, 10, 100)
			c.expectEqual(10)
			leader, behind := c.leader(), c.follower()
			c.kill(behind)
			w.mustAdd(t, maxAppendEntries+40, 100) // the leader has read the first ones already, and tries to send them
			flipBit(t, c.disks[leader.o.ID], 10+maxAppendEntries+20, at)
			n := c.start(behind)
			select {
			case <-leader.Failed():
			case <-time.After(testTimeout):
				t.Fatal("the leader has not noticed the damage")
			}
			if err := leader.Err(); !strings.Contains(err.Error(), "log entry ") ||
				!strings.Contains(err.Error(), rejoinAdvice) {
				t.Errorf("the leader stopped with %v", err)
			}
			c.network.setCut(leader.o.Address, true)
			leader.Close()
			delete(c.nodes, leader.o.ID)
			w = c.claim()
			w.mustAdd(t, 3, 10)
			c.expectEqual(10 + maxAppendEntries + 43)
			if err := n.Err(); err != nil {
				t.Errorf("the node that was behind stopped with %v", err)
			}
			c.network.setCut(leader.o.Address, false)
			c.replace(leader.o.ID)
			c.expectEqual(10 + maxAppendEntries + 43)
		})
	}
}

// A bit that flips between two nodes is noticed by the receiver, which gets the entry or the backup again.
func TestDamagedStream(t *testing.T) {
	for name, backups := range map[string]int64{"entries": 0, "backup": 1} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(o *Options) {
				if backups > 0 {
					o.LogBytes, o.SegmentBytes = 1<<10, 16<<10
				}
			}, "a", "b", "c")
			w := c.claim()
			w.mustAdd(t, 5, 10)
			c.expectEqual(5)
			behind := c.follower()
			c.kill(behind)
			w.mustAdd(t, 100, 4000)
			for _, n := range c.nodes {
				c.wait("the log is truncated", func() bool { return backups == 0 || n.Truncate() == nil })
			}
			w.mustAdd(t, 5, 10)
			c.network.flip(c.address[behind])
			n := c.start(behind)
			c.expectEqual(110)
			if got := n.Status().Installs; got != backups {
				t.Errorf("%d backups were installed", got)
			}
			if flips := c.network.flipped(); flips != 1 || n.Err() != nil {
				t.Errorf("%d bits flipped; the receiver: %v", flips, n.Err())
			}
		})
	}
}

// Whichever byte of the log is damaged, at rest or while the log is open, no entry is read that was not written, and a
// log with a damaged entry before its last batch is refused.
func TestEveryByteOfLog(t *testing.T) {
	fs := vfs.NewMem()
	if err := makeDir(fs, "log"); err != nil {
		t.Fatal(err)
	}
	w := mustOpenLog(t, fs)
	const entries = 14
	for i := uint64(1); i <= entries; i++ {
		l := &raft.Log{Index: i, Term: 300 + i/5, AppendedAt: time.Unix(1e9, int64(i)),
			Data: encodeEntry(kindOps, bytes.Repeat([]byte{byte(i)}, 100))}
		if i%5 == 0 {
			l.Type, l.Data = raft.LogNoop, nil
		}
		if err := w.StoreLog(l); err != nil {
			t.Fatal(err)
		}
	}
	want := readLogs(t, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	refused, shorter := 0, 0
	for _, path := range segmentsOf(t, fs) {
		data := readAll(t, fs, path)
		end := len(bytes.TrimRight(data, "\x00"))
		for at := range end {
			writeByte(t, fs, path, at, data[at]^(1<<(at%8)))
			w, err := openCheckedLog(fs, "log", smallSegment, slog.New(slog.DiscardHandler), newFailure(), nil)
			if err != nil {
				refused++
			} else {
				got := readLogs(t, w)
				if len(got) < entries-1 || !slices.Equal(got, want[:len(got)]) {
					t.Errorf("byte %d of %s damaged: read %d entries", at, path, len(got))
				}
				if len(got) < entries {
					shorter++
				}
				w.Close()
			}
			restore(t, fs, path, data)
		}
	}
	t.Logf("%d refused, %d without the last entry", refused, shorter)

	w = mustOpenLog(t, fs)
	defer w.Close()
	noticed := 0
	for _, path := range segmentsOf(t, fs) {
		data := readAll(t, fs, path)
		for at := range len(bytes.TrimRight(data, "\x00")) {
			writeByte(t, fs, path, at, data[at]^(1<<(at%8)))
			for i := range uint64(entries) {
				var l raft.Log
				if err := w.read(i+1, &l); err != nil {
					noticed++
				} else if got := logText(&l); got != want[i] {
					t.Errorf("byte %d of %s damaged while open: entry %d is %s", at, path, i+1, got)
				}
			}
			restore(t, fs, path, data)
		}
	}
	t.Logf("%d damaged entries noticed", noticed)
	if refused == 0 || noticed == 0 {
		t.Error("no damage was noticed")
	}
}

// smallSegment is the size of a segment with some entries.
const smallSegment = 1 << 10

func mustOpenLog(t *testing.T, fs vfs.FS) *checkedLog {
	t.Helper()
	w, err := openCheckedLog(fs, "log", smallSegment, slog.New(slog.DiscardHandler), newFailure(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// readLogs returns all entries of a log.
func readLogs(t *testing.T, w *checkedLog) (list []string) {
	t.Helper()
	last, err := w.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= last; i++ {
		var l raft.Log
		if err := w.read(i, &l); err != nil {
			t.Errorf("entry %d: %v", i, err)
			return list
		}
		list = append(list, logText(&l))
	}
	return list
}

// logText returns an entry as text, without its time zone.
func logText(l *raft.Log) string {
	l.AppendedAt = l.AppendedAt.UTC()
	return fmt.Sprintf("%+v", *l)
}

// follower returns a node that does not lead.
func (c *cluster) follower() string {
	c.t.Helper()
	if c.leader().o.ID == "a" {
		return "b"
	}
	return "a"
}

// replace removes a node that is not running, and lets it join with an empty directory.
func (c *cluster) replace(name string) {
	c.t.Helper()
	delete(c.nodes, name)
	c.must(c.leader().Remove(name))
	c.disks[name] = vfs.NewCrashableMem()
	c.must(PrepareJoin("data", c.options(name)))
	c.start(name)
	c.join(name)
}

// Places in the part of a segment that begins with the content of an entry's operation; see flipBit. Before it are the
// frame of the entry, its index, term and type, and the length of the operation.
const (
	operationBit = 20
	termBit      = -4
	lengthBit    = -2
)

// flipBit changes one bit of the entry with the nth batch in a node's log. place is counted from the operation on.
func flipBit(t *testing.T, fs *vfs.MemFS, nth, place int) {
	t.Helper()
	for _, path := range segmentsOf(t, fs) {
		data := readAll(t, fs, path)
		at := -1
		for range nth {
			next := bytes.Index(data[at+1:], []byte{entryFormat, kindOps, opAppend})
			if next < 0 {
				break
			}
			at += 1 + next
		}
		if at < 0 {
			continue
		}
		at += place
		writeByte(t, fs, path, at, data[at]^4)
		return
	}
	t.Fatal("the log has no entries")
}

// segmentsOf returns the paths of a log's segments.
func segmentsOf(t *testing.T, fs vfs.FS) (paths []string) {
	t.Helper()
	for _, dir := range []string{"data/raft", "log"} {
		names, err := fs.List(dir)
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			if strings.HasSuffix(name, ".wal") {
				paths = append(paths, fs.PathJoin(dir, name))
			}
		}
	}
	return paths
}

func readAll(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	data, err := readFile(fs, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// writeByte changes a byte of a file.
func writeByte(t testing.TB, fs vfs.FS, path string, at int, b byte) {
	t.Helper()
	writeAt(t, fs, path, at, []byte{b})
}

// restore writes the whole content of a file.
func restore(t *testing.T, fs vfs.FS, path string, data []byte) {
	t.Helper()
	writeAt(t, fs, path, 0, append([]byte{}, data...))
}

func writeAt(t testing.TB, fs vfs.FS, path string, at int, b []byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.WriteAt(b, int64(at))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Entries are the same after encoding, in one piece and in parts, and damage is found.
func TestEntries(t *testing.T) {
	w := writer{epoch: 3}
	b := w.batch(5000)
	b.Requests = []realm.Request{{ID: "r", Seq: 1}}
	b.Texts = append(b.Texts, realm.TextWrite{Ref: realm.BodyRef{Message: 9}})
	ops := opsOf(b)
	for _, limit := range []int{100, MaxEntryBytes} {
		var p operationParts
		var got []byte
		for _, x := range pack(ops, 7, limit) {
			kind, payload, err := decodeEntry(x.data)
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
				if _, _, err := decodeEntry(damaged); err == nil {
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
