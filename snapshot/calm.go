package snapshot

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// calm lets Pebble merge its tables as it would by itself, one merge at a time, but none while the store has just been
// opened: opening would wait for the first one, which what the last process left unmerged may make as long as everything
// else of a start, and the next would take half of a small machine from those who load what is in the store.
type calm struct {
	db    pebble.DBForCompaction // set once, before any other call
	wait  time.Duration
	timer *time.Timer

	mu      sync.Mutex
	cond    sync.Cond // of mu; when nobody asks any more
	busy    bool      // no merge may begin: it is too early, or one is under way
	refused bool      // one would have begun
	asking  int       // goroutines that ask the database whether there is one
	over    bool
}

func newCalm(wait time.Duration) *calm {
	c := &calm{wait: wait, busy: true}
	c.cond.L = &c.mu
	return c
}

func (c *calm) Register(_ int, db pebble.DBForCompaction) {
	c.db = db
	c.timer = time.AfterFunc(c.wait, c.Done)
}

// Unregister returns when nothing of the database is going to be called any more.
func (c *calm) Unregister() {
	c.timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for c.asking > 0 {
		c.cond.Wait()
	}
}

// hurry ends the wait: writes stand still until tables are merged, as after many starts in a row. It does not block; the
// database calls it with its lock held.
func (c *calm) hurry() {
	if c.timer.Stop() {
		go c.Done()
	}
}

// TrySchedule is the database's question whether a merge may begin. One that may not is remembered there.
func (c *calm) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || c.over {
		c.refused = true
		return false, nil
	}
	c.busy = true
	return true, c
}

// Done says that the next merge may begin, and begins one that waits.
func (c *calm) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for again := true; again && !c.over; again = c.refused {
		c.refused = false
		c.asking++
		c.mu.Unlock() // the database locks itself before it comes here
		began := c.db.Schedule(c)
		c.mu.Lock()
		if c.asking--; c.asking == 0 {
			c.cond.Broadcast()
		}
		if began {
			return
		}
	}
	c.busy = false
}

func (c *calm) UpdateGetAllowedWithoutPermission()                      {}
func (c *calm) Started()                                                {}
func (c *calm) MeasureCPU(pebble.CompactionGoroutineKind)               {}
func (c *calm) CumulativeStats(stats pebble.CompactionGrantHandleStats) {}
