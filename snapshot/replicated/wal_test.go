package replicated

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
)

// The log accepts entries after a power loss between the append that completes a segment and the begin of the next
// segment, and after one that has left a part of that append. TestPowerLoss found them with SEED=665080257 and SEED=50.
func TestPowerLossBeforeRotation(t *testing.T) {
	disk := vfs.NewCrashableMem()
	var mu sync.Mutex
	var clones, torn []*vfs.MemFS
	rng := rand.New(rand.NewPCG(1, 1))
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case op.Kind == errorfs.OpCreate && op.Path == "log/meta.new":
			clones = append(clones, disk.CrashClone(vfs.CrashCloneCfg{}))
		case op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, ".wal"):
			torn = append(torn, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}))
		}
		return nil
	}))
	if err := makeDir(fs, "log"); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(fs, "log", 4<<10, newFailure(), nil)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(n uint64) []*raft.Log { return []*raft.Log{{Index: n, Data: make([]byte, 1000)}} }
	for n := range uint64(30) {
		if err := w.StoreLogs(entry(n + 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(clones) < 5 {
		t.Fatalf("the log began %d segments", len(clones))
	}
	for i, c := range append(clones[1:], torn...) {
		w, err := openWAL(c, "log", 4<<10, newFailure(), nil)
		if err != nil {
			t.Fatalf("segment %d: %v", i, err)
		}
		last, err := w.LastIndex()
		if err == nil {
			err = w.StoreLogs(entry(last + 1))
		}
		if err != nil || last == 0 && i < len(clones)-1 {
			t.Errorf("segment %d: append after entry %d: %v", i, last, err)
		}
		var l raft.Log
		first, _ := w.FirstIndex()
		for n := first; n <= last+1; n++ {
			if err := w.GetLog(n, &l); err != nil || l.Index != n {
				t.Errorf("segment %d: entry %d: %v", i, n, err)
			}
		}
		w.Close()
	}
}
