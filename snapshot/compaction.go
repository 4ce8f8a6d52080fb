package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactionScheduler allows one compaction at a time, as Pebble does by itself, but none for some time after the store
// was opened. Opening would otherwise wait for the first compaction, which can take as long as the rest of the start.
// Further ones would take half of a small machine from loading the realms.
type compactionScheduler struct {
	db    pebble.DBForCompaction // set once, before any other call
	delay time.Duration
	timer *time.Timer

	mu           sync.Mutex
	cond         sync.Cond // of mu; signaled when scheduling becomes 0
	blocked      bool      // no compaction may begin: the delay has not ended, or one is running
	refused      bool      // a compaction was refused since blocked was set
	scheduling   int       // calls of db.Schedule in progress
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

// Unregister returns when no method of the database will be called any more.
func (c *compactionScheduler) Unregister() {
	c.timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregistered = true
	for c.scheduling > 0 {
		c.cond.Wait()
	}
}

// endDelay ends the delay because writes are blocked until tables are compacted. That can happen after many starts in a
// row. It does not block: the database calls it with its lock held.
func (c *compactionScheduler) endDelay() {
	if c.timer.Stop() {
		go c.Done()
	}
}

// TrySchedule reports whether a compaction may begin. The database remembers a refused one.
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

// Done allows the next compaction, and starts it if one was refused.
func (c *compactionScheduler) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for again := true; again && !c.unregistered; again = c.refused {
		c.refused = false
		c.scheduling++
		c.mu.Unlock() // the database locks its mutex before it calls TrySchedule
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

// EraseDeleted removes the bytes of deleted bodies with keys from first up to end, and of a realm's deleted rows and
// records, from the store's files. Before that, the files have deleted values until Pebble happens to compact them. It
// rewrites every table with such keys; appends continue meanwhile. Facts up to number upto are deleted first, if they
// are kept behind the rows.
func (s *Store) EraseDeleted(ctx context.Context, realm RealmID, upto Seq, first, end []byte) error {
	if s.readOnly {
		return ErrReadOnly
	}
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	if err := s.deleteKept(realm, upto); err != nil {
		return err
	}
	for _, span := range [][2][]byte{
		{bodyKey(realm, first), bodyKey(realm, end)},
		{spaceEnd(realm, spaceBodies), spaceEnd(realm, spaceStaged)},
	} {
		if bytes.Compare(span[0], span[1]) >= 0 {
			continue // no text
		}
		_, err := s.callPebble(func() error { return s.db.Compact(ctx, span[0], span[1], false) })
		if err != nil {
			return fmt.Errorf("erase deleted bytes: %w", err)
		}
	}
	return nil
}
