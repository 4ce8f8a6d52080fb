package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// faultyFS fails the n-th write, sync or other change of a file system, and all later ones unless once is set. If a
// sync failed, later writes must not be trusted even if they succeed, so once is the harder case.
type faultyFS struct {
	fs     vfs.FS
	count  atomic.Int64
	failAt int64
	once   bool
	err    error
	hit    atomic.Pointer[string]
}

func newFaultyFS(fs vfs.FS, failAt int64, once bool, err error) *faultyFS {
	f := &faultyFS{failAt: failAt, once: once, err: err}
	f.fs = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !isWrite(op) {
			return nil
		}
		n := f.count.Add(1)
		if n == f.failAt || n > f.failAt && !f.once {
			what := fmt.Sprintf("%v %s", op.Kind, op.Path)
			f.hit.CompareAndSwap(nil, &what)
			return f.err
		}
		return nil
	}))
	return f
}

func TestEveryFailingWrite(t *testing.T) {
	const never = int64(1) << 60
	steps := envInt("PARLEY_FAULT_STEPS", 40)
	seed := seedOf(t)
	sound := vfs.NewCrashableMem()
	count := newFaultyFS(sound, never, true, nil)
	runFaulty(t, seed, steps, count, sound, "no fault")
	total := count.count.Load()
	step := int64(sampleStep(int(total)/60 + 1))
	failed := 0
	for _, once := range []bool{true, false} {
		for n := int64(1); n <= total && !t.Failed(); n += step {
			disk := vfs.NewCrashableMem()
			f := newFaultyFS(disk, n, once, syscall.EIO)
			name := fmt.Sprintf("seed %d, fault at %d of %d, once %v", seed, n, total, once)
			if runFaulty(t, seed, steps, f, disk, name) {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("no fault made the store fail")
	}
	t.Logf("%d stores failed", failed)
}

// runFaulty runs a workload until it fails. It checks that the failure is final and that nothing acknowledged is lost.
func runFaulty(t *testing.T, seed uint64, steps int, f *faultyFS, disk *vfs.MemFS, name string) (failed bool) {
	t.Helper()
	history, answered := []string{"[] <nil>\nmeta  <nil>\n"}, 0
	s, err := Open("data", crashOptions(f.fs))
	if err == nil {
		w := newWorkload(seed, s)
		for range steps {
			err = w.step()
			history = append(history, w.render())
			if err != nil {
				break
			}
			answered++
		}
		if err != nil {
			failed = true
			checkFailedStore(t, s, w, err, name)
		}
		if err := s.Close(); failed && !errors.Is(err, ErrFailed) {
			t.Errorf("%s: close after a failure: %v", name, err)
		}
	}
	if hit := f.hit.Load(); hit != nil {
		name += ", " + *hit
	}
	for _, percent := range []int{0, 100} {
		clone := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newWorkload(seed, nil).rng})
		s, err := Open("data", crashOptions(clone))
		if err != nil {
			t.Errorf("%s: reopen: %v", name, err)
			return failed
		}
		if got := dumpStore(s); !slices.Contains(history[answered:], got) {
			t.Errorf("%s: %d steps were answered: %s", name, answered, difference(got, history[answered]))
		}
		s.Close()
	}
	return failed
}

func checkFailedStore(t *testing.T, s *Store, w *workload, err error, name string) {
	t.Helper()
	if !errors.Is(err, ErrFailed) || !errors.Is(s.Err(), ErrFailed) {
		t.Errorf("%s: a step failed with %v, the store with %v", name, err, s.Err())
	}
	select {
	case <-s.Failed():
	default:
		t.Errorf("%s: Failed is not closed", name)
	}
	for id, m := range w.realms {
		for range 2 {
			err := s.Append([]Entry{{Realm: id, Epoch: m.epoch, After: w.last(id), Facts: facts("x")}})[0]
			if !errors.Is(err, ErrFailed) {
				t.Errorf("%s: append after the failure: %v", name, err)
			}
		}
		if _, err := s.Claim(id, AnyEpoch); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: claim after the failure: %v", name, err)
		}
		if err := s.Snapshot(id, m.epoch, m.first-1, yieldRows()); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: snapshot after the failure: %v", name, err)
		}
	}
}

func TestFailedSyncIsNotRetried(t *testing.T) {
	var syncs, failing atomic.Int64
	disk := vfs.NewCrashableMem()
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if failing.Load() == 0 || !isSync || !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		if syncs.Add(1) == 1 {
			return syscall.EIO
		}
		return nil
	}))
	s, err := Open("data", smallOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a")})
	failing.Store(1)
	for i := range 3 {
		if err := s.Append([]Entry{{Realm: 1, Epoch: 1, After: 1, Facts: facts("b")}})[0]; !errors.Is(err, ErrFailed) ||
			!errors.Is(err, syscall.EIO) {
			t.Fatalf("append %d after the sync failed: %v", i, err)
		}
	}
	s.Close()
	if n := syncs.Load(); n != 1 {
		t.Errorf("the log was synced %d times after a failed sync", n-1)
	}
}
