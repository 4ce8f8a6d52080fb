package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A workload runs seeded steps against a store and against a model, which implements the store's contract with maps.
// Each step is atomic: after a crash it has happened or not.
type workload struct {
	rng    *rand.Rand
	store  *Store
	realms map[RealmID]*model
	meta   string
}

type model struct {
	epoch  uint64
	first  Seq // of facts
	facts  []string
	bodies map[string]string
	rows   map[string]string
}

func newWorkload(seed uint64, s *Store) *workload {
	return &workload{rng: rand.New(rand.NewPCG(seed, 1)), store: s, realms: map[RealmID]*model{}}
}

func (w *workload) last(realm RealmID) Seq {
	m := w.realms[realm]
	return m.first + Seq(len(m.facts)) - 1
}

// render returns the model's content in the format of dumpStore.
func (w *workload) render() string {
	var b strings.Builder
	ids := slices.Sorted(maps.Keys(w.realms))
	fmt.Fprintln(&b, ids, nil)
	for _, id := range ids {
		m := w.realms[id]
		fmt.Fprintf(&b, "realm %d epoch %d\n", id, m.epoch)
		for i, f := range m.facts {
			fmt.Fprintf(&b, "fact %d %s\n", m.first+Seq(i), f)
		}
		fmt.Fprintln(&b, nil)
		for _, k := range slices.Sorted(maps.Keys(m.rows)) {
			fmt.Fprintf(&b, "row %c %s %s\n", k[0], k[1:], m.rows[k])
		}
		fmt.Fprintln(&b, nil)
		for _, k := range slices.Sorted(maps.Keys(m.bodies)) {
			fmt.Fprintf(&b, "body %s %s\n", k, m.bodies[k])
		}
		fmt.Fprintln(&b, nil)
	}
	fmt.Fprintf(&b, "meta %s %v\n", w.meta, nil)
	return b.String()
}

func (w *workload) text(longest int) string {
	return strings.Repeat(string(rune('a'+w.rng.IntN(26))), 1+w.rng.IntN(longest))
}

// unsyncedTable is the table of rows that are written without a sync.
const unsyncedTable = 99

// step makes one random change in the store and the model. The model changes even if the store fails.
func (w *workload) step() error {
	s := w.store
	if len(w.realms) == 0 || w.rng.IntN(20) == 0 {
		id := RealmID(1 + w.rng.IntN(3))
		if w.realms[id] == nil {
			w.realms[id] = &model{first: 1, bodies: map[string]string{}, rows: map[string]string{}}
		}
		w.realms[id].epoch++
		_, err := s.Claim(id, AnyEpoch)
		return err
	}
	ids := slices.Sorted(maps.Keys(w.realms))
	id := ids[w.rng.IntN(len(ids))]
	switch w.rng.IntN(13) {
	case 12: // may be lost, so no model knows it
		row := Row{Table: unsyncedTable, Key: []byte("k"), Value: []byte(w.text(300))}
		return s.SaveRowsUnsynced(id, w.realms[id].epoch, []Row{row})
	case 0:
		w.meta = w.text(20)
		return s.PutMeta("realms", []byte(w.meta))
	case 1, 2:
		return w.snapshot(id)
	default:
		return w.append(ids)
	}
}

func (w *workload) append(ids []RealmID) error {
	var entries []Entry
	for range 1 + w.rng.IntN(3) {
		id := ids[w.rng.IntN(len(ids))]
		m := w.realms[id]
		e := Entry{Realm: id, Epoch: m.epoch, After: w.last(id)}
		for range 1 + w.rng.IntN(3) {
			text := w.text(300)
			m.facts = append(m.facts, text)
			e.Facts = append(e.Facts, []byte(text))
		}
		for range w.rng.IntN(3) {
			key := fmt.Sprintf("m%02d", w.rng.IntN(30))
			if w.rng.IntN(4) == 0 {
				delete(m.bodies, key)
				e.Bodies = append(e.Bodies, Put{[]byte(key), nil})
				continue
			}
			m.bodies[key] = w.text(2000)
			e.Bodies = append(e.Bodies, Put{[]byte(key), []byte(m.bodies[key])})
		}
		entries = append(entries, e)
	}
	return errors.Join(w.store.Append(entries)...)
}

func (w *workload) snapshot(id RealmID) error {
	m := w.realms[id]
	at := m.first - 1 + Seq(w.rng.IntN(len(m.facts)+1))
	var changed []Row
	for range w.rng.IntN(30) {
		table, key := uint16(1+w.rng.IntN(3)), fmt.Sprintf("k%02d", w.rng.IntN(40))
		name := fmt.Sprintf("%d%s", table, key)
		if w.rng.IntN(3) == 0 {
			delete(m.rows, name)
			changed = append(changed, Row{Table: table, Key: []byte(key), Value: nil})
			continue
		}
		m.rows[name] = w.text(200)
		changed = append(changed, Row{Table: table, Key: []byte(key), Value: []byte(m.rows[name])})
	}
	m.facts = m.facts[at-m.first+1:]
	m.first = at + 1
	return w.store.Snapshot(id, m.epoch, at, yieldRows(changed...))
}

// crashOptions returns options with such small memtables and snapshot batches that flushes and staged snapshots are
// frequent.
func crashOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, Cache: 1 << 20, MemTable: 64 << 10, SnapshotBatch: 700, DurabilityManifestBytes: 20 << 10,
		MarkInterval: 300 * time.Microsecond, // so that many crashes meet one
		Kept:         Kept{Bytes: 3000, Age: time.Hour},
	}
}

func envInt(name string, short int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return short
}

func seedOf(t testing.TB) uint64 {
	seed := uint64(envInt("PARLEY_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("PARLEY_SEED=%d", seed)
	return seed
}

func isWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// TestCrash runs a workload and clones the disk, as a crash would leave it, before writes and syncs of the whole run.
// Every clone must open with the state after all acknowledged steps; the running step may have happened or not. The
// store must be usable then.
func TestCrash(t *testing.T) {
	steps, want := envInt("PARLEY_CRASH_STEPS", 120), envInt("PARLEY_CRASH_POINTS", 150)
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of unsynced data", percent), func(t *testing.T) {
			seed := seedOf(t)
			points := crashPoints(t, seed, steps, want, percent)
			for i, p := range points {
				p.verify(t, seed, i)
				if t.Failed() {
					return
				}
			}
			t.Logf("%d crashes", len(points))
		})
	}
}

type crashPoint struct {
	op      string
	disk    *vfs.MemFS
	before  int      // steps acknowledged when the clone was made
	after   int      // steps begun when the clone was finished
	history []string // states after each number of steps
}

func crashPoints(t *testing.T, seed uint64, steps, want, percent int) []*crashPoint {
	t.Helper()
	var mu sync.Mutex
	var points []*crashPoint
	begun, answered, ops := 0, 0, 0
	rng := rand.New(rand.NewPCG(seed, uint64(percent)))
	every := 1
	disk := vfs.NewCrashableMem()
	picture := func(op errorfs.Op) error {
		if !isWrite(op) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		ops++
		if every == 0 || rng.IntN(every) != 0 {
			return nil
		}
		p := &crashPoint{op: fmt.Sprintf("%v %s", op.Kind, op.Path), before: answered}
		p.disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		p.after = begun
		points = append(points, p)
		return nil
	}
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(picture))

	// The first run counts the operations, so that the crash points of the second are spread over it.
	every = 0
	run := func(fs vfs.FS) []string {
		s, err := Open("data", crashOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		w := newWorkload(seed, s)
		history := []string{w.render()}
		for range steps {
			mu.Lock()
			begun++
			mu.Unlock()
			if err := w.step(); err != nil {
				t.Fatalf("step %d: %v", begun, err)
			}
			mu.Lock()
			answered++
			mu.Unlock()
			history = append(history, w.render())
		}
		if got := dumpStore(s); got != w.render() {
			t.Fatalf("without any crash: %s", difference(got, w.render()))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return history
	}
	run(fs)
	mu.Lock()
	every = max(ops/want, 1)
	begun, answered = 0, 0
	disk = vfs.NewCrashableMem()
	mu.Unlock()
	history := run(errorfs.Wrap(disk, errorfs.InjectorFunc(picture)))
	for _, p := range points {
		p.history = history
	}
	return points
}

// difference returns the first line in which two states differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d is %.60q, was %.60q", i, g[i], append(w, make([]string, len(g))...)[i])
		}
	}
	return fmt.Sprintf("ends at line %d of %d", len(g), len(w))
}

// inspect opens the store read-only, before it was opened for writing.
func (p *crashPoint) inspect(t *testing.T, name string) {
	t.Helper()
	err := Check("data", crashOptions(p.disk), func(f Finding) { t.Errorf("%s: check: %v", name, f) })
	if err != nil {
		t.Errorf("%s: check: %v", name, err)
	}
	s, err := OpenReadOnly("data", crashOptions(p.disk))
	if err != nil {
		t.Errorf("%s: open for reading: %v", name, err)
		return
	}
	if got := dumpStore(s); !slices.Contains(p.history[p.before:p.after+1], got) {
		t.Errorf("%s: read only: %s", name, difference(got, p.history[p.before]))
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", name, err)
	}
}

func (p *crashPoint) verify(t *testing.T, seed uint64, i int) {
	t.Helper()
	name := fmt.Sprintf("seed %d, crash %d before %s, in step %d", seed, i, p.op, p.after)
	if i%7 == 0 && p.before > 0 {
		p.inspect(t, name)
	}
	s, err := Open("data", crashOptions(p.disk))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer s.Close()
	got := dumpStore(s)
	if !slices.Contains(p.history[p.before:p.after+1], got) {
		t.Errorf("%s: %s", name, difference(got, p.history[p.before]))
		return
	}
	for id := range s.realms {
		err := s.scan(spaceKey(id, spaceStaged), spaceEnd(id, spaceStaged),
			func([]byte, []byte) error { return errors.New("left over") })
		if err != nil {
			t.Errorf("%s: staged rows: %v", name, err)
		}
	}
	// The store is usable: claim, append, crash again.
	c, err := s.Claim(1, AnyEpoch)
	if err == nil {
		err = s.Append([]Entry{{Realm: 1, Epoch: c.Epoch, After: c.Last, Facts: facts("on")}})[0]
	}
	if err != nil {
		t.Errorf("%s: does not go on: %v", name, err)
		return
	}
	want := dumpStore(s)
	again := p.disk.CrashClone(vfs.CrashCloneCfg{})
	s.Close()
	s, err = Open("data", crashOptions(again))
	if err != nil {
		t.Errorf("%s: second crash: %v", name, err)
		return
	}
	if got := dumpStore(s); got != want {
		t.Errorf("%s: second crash: %s", name, difference(got, want))
	}
	s.Close()
}
