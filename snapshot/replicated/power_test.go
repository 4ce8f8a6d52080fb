package replicated

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"

	"parley/actors/realm"
	"parley/snapshot"
)

// powerSteps is the number of steps of a run: enough for several segments of the log, flushes and backups.
const powerSteps = 40

// powerEntryBytes is so small that some operations have several parts.
const powerEntryBytes = 2500

// TestPowerLoss runs small seeded histories of a follower. Before every write, sync, creation, rename and removal of a
// file, in the log or in Pebble, it clones the disk as after a power loss, with none, half or all of the unsynced data.
// Each clone must open with everything that the follower had confirmed, and must come to the state of the leader when
// it gets the rest of the log. One clone in 32 is started as a real node.
//
// SEED selects the first run and N the number of power losses. Pebble's background flushes depend on timing, so a seed
// repeats the steps but not each single loss.
func TestPowerLoss(t *testing.T) {
	n, seed := envInt("N", 300), uint64(envInt("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("SEED=%d", seed)
	began, losses, runs := time.Now(), 0, 0
	kinds := map[string]int{}
	for ; losses < n && !t.Failed(); runs++ {
		seed := seed + uint64(runs)
		h := newHistory(t, seed, []int{0, 50, 100}[seed%3])
		h.run()
		for _, p := range h.points {
			kinds[p.step]++
		}
		losses += h.checkAll(func(i int) bool { return i%32 == int(h.seed%32) })
	}
	t.Logf("%d power losses in %d runs, %.0f a second, by step: %v", losses, runs,
		float64(losses)/time.Since(began).Seconds(), kinds)
}

// A disk that loses everything that was not synced loses nothing that was confirmed: the same runs at each test, in
// which the faults of the list of mutants are found.
func TestPowerLossOfAllUnsynced(t *testing.T) {
	const least = 600 // power losses
	losses := 0
	for seed := uint64(1); losses < least && !t.Failed(); seed++ {
		h := newHistory(t, seed, 0)
		h.run()
		losses += h.checkAll(func(int) bool { return false })
	}
}

// checkAll checks the disk after each power loss of a run, and returns their number. Those for which started is true
// are checked as a real node.
func (h *history) checkAll(started func(loss int) bool) int {
	for i, p := range h.points {
		if err := h.check(p, started(i)); err != nil {
			h.t.Errorf("repeat with SEED=%d N=1: loss %d, before %s in step %s, %d%% of unsynced data: %v",
				h.seed, i, p.op, p.step, h.percent, err)
			break
		}
	}
	return len(h.points)
}

func envInt(name string, short int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return short
}

// history is one run: a leader that never fails, and a follower whose disk is cloned.
type history struct {
	t       *testing.T
	seed    uint64
	percent int
	random  *rand.Rand
	log     []*raft.Log // of the leader; the first one has the index firstIndex+1
	leader  *snapshot.Store
	epoch   uint64
	last    realm.Seq                    // last fact of the leader
	hashes  map[realm.Seq]snapshot.Chain // of the leader's journal
	lastAt  map[uint64]realm.Seq         // last fact by index of the log

	mu     sync.Mutex
	points []powerPoint
	acked  uint64 // index that the follower has confirmed
	step   string
	voted  uint64
	skip   bool // the follower is not part of the history yet, or any more
}

type powerPoint struct {
	op, step string
	disk     *vfs.MemFS
	acked    uint64
	voted    uint64
}

func newHistory(t *testing.T, seed uint64, percent int) *history {
	return &history{t: t, seed: seed, percent: percent, random: rand.New(rand.NewPCG(seed, 7)),
		hashes: map[realm.Seq]snapshot.Chain{0: {}}, lastAt: map[uint64]realm.Seq{firstIndex: 0}, acked: firstIndex,
		skip: true}
}

func (h *history) options(fs vfs.FS) Options {
	return Options{ID: "a", Address: "a", SegmentBytes: 8 << 10,
		CheckpointInterval: testCheckpoints, ElectionTimeout: 10 * time.Millisecond,
		Store: snapshot.Options{FS: fs, Cache: 1 << 20, MemTable: 64 << 10, SnapshotBatch: 700,
			DurabilityManifestBytes: 20 << 10, MarkInterval: 300 * time.Microsecond,
			Kept: snapshot.Kept{Bytes: 3000, Age: time.Hour}}}.withDefaults()
}

// follower is a node whose log is written by the test instead of Raft.
type follower struct {
	*Node
	machine *stateMachine
}

// open opens a follower, and applies the entries of its log that the store does not have.
func (h *history) open(fs vfs.FS) (f *follower, err error) {
	o := h.options(fs)
	n := &Node{dir: "data", o: o, fs: fs, log: o.Log, failed: newFailure(), closing: make(chan struct{})}
	f = &follower{n, &stateMachine{n: n}}
	if err := errors.Join(n.openStore()); err != nil {
		return f, err
	}
	if err := n.openLog(); err != nil {
		return f, err
	}
	x, err := n.snapshots.read()
	if err != nil {
		return f, err
	}
	last, err := n.wal.LastIndex()
	if err != nil {
		return f, err
	}
	for i := x.Index + 1; i <= last; i++ {
		l := &raft.Log{}
		if err := n.wal.GetLog(i, l); err != nil {
			return f, fmt.Errorf("entry %d of the log: %w", i, err)
		}
		if l.Term == staleTerm { // as Raft does when the leader has another entry
			return f, errors.Join(n.logs.DeleteRange(i, last), n.Err())
		}
		f.machine.ApplyBatch([]*raft.Log{l})
	}
	return f, n.Err()
}

// staleTerm is the term of entries that no majority has.
const staleTerm = 9

// position returns the last index that the follower has.
func (f *follower) position() (uint64, error) {
	x, err := f.snapshots.read()
	if err != nil {
		return 0, err
	}
	last, err := f.wal.LastIndex()
	return max(last, x.Index), err
}

// add stores entries, and then applies them, as Raft does.
func (f *follower) add(logs []*raft.Log) error {
	if err := f.logs.StoreLogs(logs); err != nil {
		return err
	}
	f.machine.ApplyBatch(logs)
	return f.Err()
}

func (f *follower) close() error {
	close(f.closing)
	return f.releaseFiles()
}

// lockAlone lets no file be locked while the disk is cloned. MemFS.Lock takes the lock that CrashClone waits for, and
// takes it a second time when it creates the file: with a clone waiting in between, both would wait for ever.
type lockAlone struct {
	vfs.FS
	cloning *sync.Mutex
}

func (l lockAlone) Lock(name string) (io.Closer, error) {
	l.cloning.Lock()
	defer l.cloning.Unlock()
	return l.FS.Lock(name)
}

// run makes the history.
func (h *history) run() {
	h.t.Helper()
	must := func(err error) {
		if err != nil {
			h.t.Fatalf("SEED=%d, step %s: %v", h.seed, h.step, err)
		}
	}
	leaderFS := vfs.NewMem()
	must(Bootstrap("data", h.options(leaderFS)))
	var err error
	h.leader, err = snapshot.Open("data", snapshot.Options{FS: leaderFS})
	must(err)
	defer h.leader.Close()

	disk, rng := vfs.NewCrashableMem(), rand.New(rand.NewPCG(h.seed, uint64(h.percent)))
	fs := errorfs.Wrap(lockAlone{disk, &h.mu}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.skip {
			h.points = append(h.points, powerPoint{fmt.Sprintf("%v %s", op.Kind, op.Path), h.step,
				disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: h.percent, RNG: rng}), h.acked, h.voted})
		}
		return nil
	}))
	must(Bootstrap("data", h.options(fs)))
	h.set("open", h.acked)
	f, err := h.open(fs)
	must(err)
	for range powerSteps {
		switch k := h.random.IntN(12); {
		case k == 0 && h.last > 0:
			must(h.rows(f))
		case k == 1:
			must(h.takeRaftSnapshot(f))
		case k == 2:
			must(h.install(f))
		case k == 3:
			must(h.conflict(f))
		case k == 4:
			must(h.vote(f))
		default:
			h.append()
			must(h.replicate(f))
		}
	}
	h.set("close", h.acked)
	must(f.close())
	h.mu.Lock()
	h.skip = true
	h.mu.Unlock()
}

// set records the running step and the index that the follower has confirmed.
func (h *history) set(step string, acked uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step, h.acked, h.skip = step, acked, false
}

// append adds entries to the leader's log.
func (h *history) append() {
	var ops []snapshot.LogOp
	if h.epoch == 0 || h.random.IntN(15) == 0 {
		h.epoch++
		ops = append(ops, snapshot.LogOp{Claim: 1, Seen: realm.AnyEpoch})
	}
	for range 1 + h.random.IntN(3) {
		w := writer{epoch: h.epoch, last: h.last}
		size := h.random.IntN(400)
		if h.random.IntN(8) == 0 {
			size = 3 * powerEntryBytes
		}
		e := snapshot.Entries([]realm.Batch{w.batch(size)})
		h.last++
		ops = append(ops, snapshot.LogOp{Entry: &e[0]})
	}
	for _, p := range pack(ops, h.random.Uint64()>>1, powerEntryBytes) {
		index := firstIndex + 1 + uint64(len(h.log))
		h.log = append(h.log, &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: p.data})
		if h.random.IntN(10) == 0 { // an entry without operations, as of a change of the members
			h.log = append(h.log, &raft.Log{Index: index + 1, Term: 1, Type: raft.LogConfiguration,
				Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}})})
		}
	}
	n := &Node{failed: newFailure()}
	n.store.Store(h.leader)
	m := &stateMachine{n: n}
	for _, l := range h.log {
		m.ApplyBatch([]*raft.Log{l})
		hash, last := h.leader.LastHash(1)
		h.hashes[realm.Seq(last)] = hash
		if _, known := h.lastAt[l.Index]; !known {
			h.lastAt[l.Index] = realm.Seq(last)
		}
	}
	if n.Err() != nil {
		h.t.Fatal(n.Err())
	}
}

// rest returns the entries of the leader's log after an index.
func (h *history) rest(after uint64) []*raft.Log {
	var list []*raft.Log
	for _, l := range h.log[after-firstIndex:] {
		x := *l
		list = append(list, &x)
	}
	return list
}

// replicate sends the follower its missing entries. Sometimes it gets nothing.
func (h *history) replicate(f *follower) error {
	at, err := f.position()
	list := h.rest(at)
	if err != nil || len(list) == 0 || h.random.IntN(4) == 0 {
		return err
	}
	h.set("append", h.acked)
	if err := f.add(list); err != nil {
		return err
	}
	h.set("append", list[len(list)-1].Index)
	return nil
}

// rowTable is the table of the row that rows writes: its value is the number of the rows.
const rowTable = 3

func (h *history) rows(f *follower) error {
	rows, last, err := f.Disk().Bounds(1)
	if err != nil || last == 0 {
		return err
	}
	h.set("rows", h.acked)
	at := rows + realm.Seq(h.random.IntN(int(last-rows)+1))
	row := realm.EncodedRow{Table: rowTable, Key: []byte("k"), Value: binary.BigEndian.AppendUint64(nil, uint64(at))}
	return Journal{Node: f.Node}.WriteRows(1, 0, at, []realm.EncodedRow{row})
}

// takeRaftSnapshot makes a Raft snapshot, and then deletes entries of the log.
func (h *history) takeRaftSnapshot(f *follower) error {
	at, err := f.position()
	if err != nil || at == firstIndex || f.machine.parts.pending() {
		return err
	}
	h.set("snapshot", h.acked)
	s, err := f.machine.Snapshot()
	if err != nil {
		return err
	}
	sink, _ := f.snapshots.Create(1, at, 1, raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}, 1, nil)
	if err := s.Persist(sink); err != nil {
		return err
	}
	first, err := f.wal.FirstIndex()
	if upto := at - min(at, uint64(h.random.IntN(6))); err == nil && first > 0 && first <= upto {
		err = f.logs.DeleteRange(first, upto)
	}
	return err
}

// conflict gives the follower entries of a leader that was deposed, and then takes them back.
func (h *history) conflict(f *follower) error {
	at, err := f.position()
	if err != nil {
		return err
	}
	h.set("conflict", h.acked)
	var list []*raft.Log
	for i := range uint64(1 + h.random.IntN(4)) {
		list = append(list, &raft.Log{Index: at + 1 + i, Term: staleTerm, Type: raft.LogCommand,
			Data: encodeEntry(kindOps, make([]byte, h.random.IntN(3000)))})
	}
	if err := f.logs.StoreLogs(list); err != nil {
		return err
	}
	return f.logs.DeleteRange(at+1, at+uint64(len(list)))
}

// vote stores a value that must not be lost, as the vote of this node.
func (h *history) vote(f *follower) error {
	h.set("vote", h.acked)
	err := f.wal.SetUint64([]byte("vote"), h.voted+1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.voted++
	return err
}

// install sends the follower a backup of the leader, as if the leader had deleted the entries.
func (h *history) install(f *follower) error {
	at, err := f.position()
	if err != nil || len(h.rest(at)) == 0 {
		return err
	}
	h.set("install", h.acked)
	var backup bytes.Buffer
	if err := h.leader.Backup(&backup); err != nil {
		return err
	}
	index := h.log[len(h.log)-1].Index
	servers := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}
	sink, _ := f.snapshots.Create(1, index, 1, servers, 1, nil)
	if _, err := sink.Write(backup.Bytes()); err != nil {
		return err
	}
	if err := sink.Close(); err != nil {
		return err
	}
	_, r, err := f.snapshots.Open("")
	if err != nil {
		return err
	}
	if err := errors.Join(f.machine.Restore(r), r.Close()); err != nil {
		return err
	}
	first, err := f.wal.FirstIndex()
	if err != nil {
		return err
	}
	if last, _ := f.wal.LastIndex(); last > 0 {
		err = f.logs.DeleteRange(first, last)
	}
	h.set("install", index)
	return err
}

// check opens the disk after a power loss.
func (h *history) check(p powerPoint, start bool) error {
	f, err := h.open(p.disk)
	closed := false
	defer func() {
		if !closed {
			f.close()
		}
	}()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	at, err := f.position()
	if err != nil {
		return err
	}
	if at < p.acked {
		return fmt.Errorf("the log ends at %d, %d was confirmed", at, p.acked)
	}
	if n, err := f.wal.GetUint64([]byte("vote")); err != nil || n != p.voted && n != p.voted+1 {
		return fmt.Errorf("the vote is %d, %v; %d was stored", n, err, p.voted)
	}
	if err := h.checkStore(f, h.lastAt[p.acked]); err != nil {
		return fmt.Errorf("after the start: %w", err)
	}
	if list := h.rest(at); len(list) > 0 {
		if err := f.add(list); err != nil {
			return fmt.Errorf("go on after %d: %w", at, err)
		}
	}
	if err := h.checkStore(f, h.last); err != nil {
		return fmt.Errorf("after the rest of the log: %w", err)
	}
	if !start {
		return nil
	}
	closed = true
	if err := f.close(); err != nil {
		return err
	}
	return h.checkNode(p.disk)
}

// checkStore compares the journal with that of the leader, from a fact on.
func (h *history) checkStore(f *follower, least realm.Seq) error {
	d := f.Disk()
	rows, last, err := d.Bounds(1)
	if err != nil {
		return err
	}
	hash, _ := d.LastHash(1)
	if want, known := h.hashes[last]; last < least || !known || hash != want {
		return fmt.Errorf("fact %d has hash %x, want %x; at least fact %d", last, hash, want, least)
	}
	n := rows
	if err := d.Tail(1, rows, func(r realm.Record) error {
		n++
		body, found, err := d.Text(1, realm.BodyRef{Message: realm.MessageID(n), Version: 1})
		if err != nil || !found || body.Text != fmt.Sprint("text ", n) {
			return fmt.Errorf("text %d is %q, %t, %v", n, body.Text, found, err)
		}
		return nil
	}); err != nil {
		return err
	}
	if n != last {
		return fmt.Errorf("the journal has facts up to %d of %d", n, last)
	}
	return d.TableRows(1, rowTable, func(r snapshot.Row) error {
		if got := binary.BigEndian.Uint64(r.Value); got != uint64(rows) {
			return fmt.Errorf("the rows at %d have the row of %d", rows, got)
		}
		return nil
	})
}

// checkNode starts a real node, which must accept changes, and lose none of them in another power loss.
func (h *history) checkNode(disk *vfs.MemFS) error {
	last := h.last
	for range 2 {
		n, err := Open("data", h.options(disk))
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		leads := make(chan bool, 4)
		n.OnLeadership(func(on bool) { leads <- on })
		<-leads
		c, err := n.Journal().Claim(1, realm.AnyEpoch)
		if err == nil {
			w := writer{journal: n.Journal(), epoch: c.Epoch, last: c.Last}
			if c.Last != last {
				err = fmt.Errorf("claimed at fact %d of %d", c.Last, last)
			} else if err = w.add(10); err == nil {
				last++
			}
		}
		disk = disk.CrashClone(vfs.CrashCloneCfg{})
		if err := errors.Join(err, n.Close()); err != nil {
			return err
		}
	}
	return nil
}
