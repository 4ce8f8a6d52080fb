package replicated

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A node that does not lead and has no space goes on running without new entries, and the others go on without it. It
// gets the entries when it has space.
func TestFullDisk(t *testing.T) {
	var full atomic.Bool
	c := newCluster(t, func(o *Options) {
		if o.ID == "b" {
			o.Store.FS = errorfs.Wrap(o.Store.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpCreate, errorfs.OpFilePreallocate:
					if full.Load() {
						return syscall.ENOSPC
					}
				}
				return nil
			}))
		}
	}, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 5, 100)
	c.expectEqual(5)
	b := c.nodes["b"]
	if b == c.leader() {
		c.must(b.MoveLeader("a"))
		w = c.claim()
	}
	full.Store(true)
	w.mustAdd(t, 20, 100)
	c.wait("the store is full", func() bool { return b.Disk().Full() })
	w.mustAdd(t, 20, 100)
	if err := b.Err(); err != nil {
		t.Errorf("a node without space failed: %v", err)
	}
	if _, last, err := b.Disk().Bounds(1); err != nil || last > 25 {
		t.Errorf("a node without space has fact %d, %v", last, err)
	}
	full.Store(false)
	c.must(b.Disk().RestoreBallast())
	c.expectEqual(45)

	// Closing ends a write that waits.
	full.Store(true)
	c.must(c.leader().SetMeta("key", make([]byte, 1000)))
	delete(c.nodes, "b")
	if err := b.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close without space: %v", err)
	}
}
