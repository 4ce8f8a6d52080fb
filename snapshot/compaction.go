package snapshot

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactionScheduler lets Pebble merge its tables as it would by itself, one merge at a time, but none while the store has just been
// opened: opening would wait for the first one, which what the last process left unmerged may make as long as everything
// else of a start, and the next would take half of a small machine from those who load what is in the store.
type compactionScheduler struct {
	db    pebble.DBForCompaction // set once, before any other call
	delay time.Duration
	timer *time.Timer

	mu           sync.Mutex
	cond         sync.Cond // of mu; when nobody asks any more
	blocked      bool      // no merge may begin: it is too early, or one is under way
	refused      bool      // one would have begun
	scheduling   int       // goroutines that ask the database whether there is one
	unregistered bool
}

func newCompactionScheduler(wait time.Duration) *compactionScheduler {
	c := &compactionScheduler{delay: wait, blocked: true}
	c.cond.L = &c.mu
	return c
}

func (c *compactionScheduler) Register(_ int, db pebble.DBForCompaction) {
	c.db = db
	c.timer = time.AfterFunc(c.delay, c.Done)
}

// Unregister returns when nothing of the database is going to be called any more.
func (c *compactionScheduler) Unregister() {
	c.timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregistered = true
	for c.scheduling > 0 {
		c.cond.Wait()
	}
}

// endDelay ends the wait: writes stand still until tables are merged, as after many starts in a row. It does not block; the
// database calls it with its lock held.
func (c *compactionScheduler) endDelay() {
	if c.timer.Stop() {
		go c.Done()
	}
}

// TrySchedule is the database's question whether a merge may begin. One that may not is remembered there.
func (c *compactionScheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked || c.unregistered {
		c.refused = true
		return false, nil
	}
	c.blocked = true
	return true, c
}

// Done says that the next merge may begin, and begins one that waits.
func (c *compactionScheduler) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for again := true; again && !c.unregistered; again = c.refused {
		c.refused = false
		c.scheduling++
		c.mu.Unlock() // the database locks itself before it comes here
		began := c.db.Schedule(c)
		c.mu.Lock()
		if c.scheduling--; c.scheduling == 0 {
			c.cond.Broadcast()
		}
		if began {
			return
		}
	}
	c.blocked = false
}

func (c *compactionScheduler) UpdateGetAllowedWithoutPermission()                      {}
func (c *compactionScheduler) Started()                                                {}
func (c *compactionScheduler) MeasureCPU(pebble.CompactionGoroutineKind)               {}
func (c *compactionScheduler) CumulativeStats(stats pebble.CompactionGrantHandleStats) {}
