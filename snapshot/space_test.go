package snapshot

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// smallDisk is a file system with space for a number of writes. Removing the ballast gives space for some more.
type smallDisk struct {
	fs      vfs.FS
	space   atomic.Int64 // writes that find space
	ballast int64        // writes that find space after the ballast is removed
	refused atomic.Int64
}

func newSmallDisk(disk vfs.FS, ballast int64) *smallDisk {
	d := &smallDisk{ballast: ballast}
	d.space.Store(1 << 40)
	d.fs = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpRemove:
			if strings.HasSuffix(op.Path, "/"+ballastFile) {
				if _, err := disk.Stat(op.Path); err == nil {
					d.space.Add(d.ballast)
				}
			}
		case errorfs.OpCreate, errorfs.OpFileWrite:
			if d.space.Add(-1) < 0 {
				d.space.Add(1)
				d.refused.Add(1)
				return syscall.ENOSPC
			}
		}
		return nil
	}))
	return d
}

// fill takes the rest of the space.
func (d *smallDisk) fill() { d.space.Store(0) }

func openSmallDisk(t *testing.T, d *smallDisk, o Options) *Store {
	t.Helper()
	o.FS, o.Ballast = d.fs, 4<<10
	s, err := Open("data", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.RestoreBallast(); err != nil {
		t.Fatal(err)
	}
	return s
}

// The append that meets a full disk finishes in the space of the ballast. After RestoreBallast the store is as before.
func TestBallastLetsAnAppendFinish(t *testing.T) {
	disk := vfs.NewCrashableMem()
	d := newSmallDisk(disk, 100)
	called := make(chan struct{}, 10)
	o := smallOptions(nil)
	o.Full = func() { called <- struct{}{} }
	s := openSmallDisk(t, d, o)
	mustClaim(t, s, 1)
	d.fill()
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a")})
	if !s.Full() || len(called) != 1 || s.MissingBallast() == 0 {
		t.Errorf("after an append on a full disk: full %t, %d calls, %d bytes of ballast are missing",
			s.Full(), len(called), s.MissingBallast())
	}
	d.fill()
	if err := s.RestoreBallast(); !errors.Is(err, syscall.ENOSPC) || !s.Full() {
		t.Errorf("restore the ballast without space: %v, full %t", err, s.Full())
	}
	d.space.Store(1 << 40)
	if err := s.RestoreBallast(); err != nil || s.Full() || s.MissingBallast() != 0 {
		t.Errorf("restore the ballast: %v, full %t, %d bytes of ballast are missing", err, s.Full(), s.MissingBallast())
	}
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: 1, Facts: facts("b")})
	after := mustOpen(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	same(t, "facts after a power loss", tail(t, after, 1, 0), []string{"1 a", "2 b"})
}

// Without a ballast, an append waits for space, and so does a snapshot. Nothing is lost or half done, and reads go on.
func TestAppendWaitsForSpace(t *testing.T) {
	disk := vfs.NewCrashableMem()
	d := newSmallDisk(disk, 0)
	s := openSmallDisk(t, d, smallOptions(nil))
	mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a"), Bodies: []Put{{[]byte("k"), []byte("v")}}})
	d.fill()
	result := make(chan error, 1)
	go func() {
		result <- errors.Join(s.Append([]Entry{{Realm: 1, Epoch: 1, After: 1, Facts: facts("b")}})...)
	}()
	for !s.Full() {
		time.Sleep(time.Millisecond)
	}
	if v, ok, err := s.Body(1, []byte("k")); !ok || err != nil || string(v) != "v" {
		t.Errorf("read while an append waits: %q %t %v", v, ok, err)
	}
	select {
	case err := <-result:
		t.Fatalf("append on a full disk returned %v", err)
	case <-time.After(2 * spacePoll):
	}
	d.space.Store(1 << 40)
	if err := <-result; err != nil {
		t.Fatalf("append after space was made: %v", err)
	}
	saved := make(chan error, 1)
	go func() { saved <- s.Snapshot(1, 1, 2, yieldRows(Row{Table: 1, Key: []byte("r"), Value: []byte("x")})) }()
	select {
	case err := <-saved:
		t.Fatalf("snapshot in a full store returned %v", err)
	case <-time.After(2 * spacePoll):
	}
	if err := s.RestoreBallast(); err != nil {
		t.Fatal(err)
	}
	if err := <-saved; err != nil {
		t.Fatalf("snapshot after space was made: %v", err)
	}
	after := mustOpen(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	same(t, "rows after a power loss", rows(t, after, 1), []string{"1 r=x"})
}

// A store can be closed while it is full, and opened again; acknowledged data is there.
func TestCloseAndOpenOnAFullDisk(t *testing.T) {
	disk := vfs.NewCrashableMem()
	d := newSmallDisk(disk, 30)
	s := openSmallDisk(t, d, smallOptions(nil))
	mustClaim(t, s, 1)
	d.fill()
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a")})
	d.fill()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	without := newSmallDisk(disk.CrashClone(vfs.CrashCloneCfg{}), 30)
	without.fill()
	if _, err := Open("data", smallOptions(without.fs)); !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("open without any space: %v", err)
	}
	d.space.Store(1 << 40)
	f, err := d.fs.Create("data/"+ballastFile, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	d.fill()
	s, err = Open("data", smallOptions(d.fs))
	if err != nil {
		t.Fatalf("open with a ballast: %v", err)
	}
	same(t, "facts", tail(t, s, 1, 0), []string{"1 a"})
	if !s.Full() {
		t.Error("a store that was opened on a full disk is not full")
	}
	d.space.Store(1 << 40)
	mustClose(t, s)
}

// A workload on a disk that is full again and again: every step succeeds once there is space, and a power loss at any
// moment loses nothing that was acknowledged.
func TestFullDiskAgainAndAgain(t *testing.T) {
	seed := seedOf(t)
	met := 0
	for round := range uint64(envInt("PARLEY_FULL_ROUNDS", 6)) {
		met += fullAgainAndAgain(t, seed+round)
		if t.Failed() {
			return
		}
	}
	if met == 0 {
		t.Error("the disk was never full")
	}
	t.Logf("the disk was full %d times", met)
}

func fullAgainAndAgain(t *testing.T, seed uint64) (met int) {
	disk, rng := vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, 3))
	d := newSmallDisk(disk, 8)
	o := crashOptions(nil)
	full := make(chan struct{}, 1)
	o.Full = func() { full <- struct{}{} }
	s := openSmallDisk(t, d, o)
	var operator sync.WaitGroup
	done := make(chan struct{})
	operator.Go(func() { // frees space
		for {
			select {
			case <-done:
				return
			case <-full:
				met++
				for d.space.Store(1 << 40); s.RestoreBallast() != nil; d.space.Store(1 << 40) {
					time.Sleep(time.Millisecond)
				}
			}
		}
	})
	w := newWorkload(seed, s)
	for i := range 60 {
		if rng.IntN(5) == 0 {
			d.space.Store(int64(rng.IntN(4)))
		}
		history := []string{w.render()}
		if err := w.step(); err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, i, err)
		}
		history = append(history, w.render())
		if rng.IntN(4) > 0 {
			continue
		}
		crashed, err := Open(
			"data",
			crashOptions(disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})),
		)
		if err != nil {
			t.Fatalf("seed %d, open after step %d: %v", seed, i, err)
		}
		if got := dumpStore(crashed); !slices.Contains(history[1:], got) {
			t.Errorf("seed %d, after step %d: %s", seed, i, difference(got, history[1]))
		}
		crashed.Close()
	}
	d.space.Store(1 << 40)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := s.RestoreBallast()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	close(done)
	operator.Wait() // a closed store has no ballast: the operator would never succeed
	if err := s.Close(); err != nil {
		t.Errorf("seed %d: close: %v", seed, err)
	}
	return met
}

// A sync that fails is final, even for lack of space: it is unknown what the disk has.
func TestFailedSyncOnAFullDiskIsFinal(t *testing.T) {
	var failing atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if failing.Load() && sync && strings.HasSuffix(op.Path, ".log") {
			return syscall.ENOSPC
		}
		return nil
	}))
	s, err := Open("data", smallOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, 1)
	failing.Store(true)
	err = s.Append([]Entry{{Realm: 1, Epoch: 1, Facts: facts("a")}})[0]
	if !errors.Is(err, ErrFailed) || !errors.Is(err, ErrFull) {
		t.Errorf("append: %v", err)
	}
	s.Close()
}
