package actors

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
)

// ReadOnlyDisk is a disk from which realms can only be loaded, such as a copy.
type ReadOnlyDisk interface {
	Realms() ([]realm.ID, error)
	// Bounds returns the sequence number of the stored rows and the last fact in the journal.
	Bounds(id realm.ID) (rows, last realm.Seq, err error)
	realmLoader
}

// realmLoader is the part that ReadOnlyDisk and Disk share.
type realmLoader interface {
	Load(id realm.ID, r *realm.Realm, table *presence.Table) ([]realm.Publication, error)
	Tail(id realm.ID, after realm.Seq, fn func(realm.Record) error) error
}

// loadedRealm is a realm's state after the journal was replayed up to some fact.
type loadedRealm struct {
	realm        *realm.Realm
	presence     *presence.Table
	rowsSeq      realm.Seq           // sequence number of the rows it was loaded from
	queues       []realm.Queue       // from the rows
	publications []realm.Publication // events that queues may not have acknowledged
	fromRows     int                 // how many of the publications are from the rows; the others were replayed

	ackedThrough     [SessionActors]realm.Seq // per session actor, as far as the journal says
	accountsToUpdate []realm.UserID           // users whose accounts replayed facts may have changed
}

// load reads a realm's rows and replays the facts after them.
func load(disk realmLoader, id realm.ID, rows realm.Seq, now time.Time) (*loadedRealm, error) {
	l := &loadedRealm{realm: realm.New(id), presence: presence.New(), rowsSeq: rows}
	l.realm.SetClock(now.Unix())
	var err error
	if l.publications, err = disk.Load(id, l.realm, l.presence); err != nil {
		return nil, fmt.Errorf("load realm %d: %w", id, err)
	}
	l.fromRows = len(l.publications)
	t := readJournalTail(disk, id, rows)
	defer t.close()
	l.realm.SetSeq(rows, runParallel)
	l.realm.EachQueue(func(q *realm.Queue) { l.queues = append(l.queues, *q) })
	return l, l.replay(t)
}

// runParallel runs independent functions at the same time and waits for all.
func runParallel(parts ...func()) {
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(part)
	}
	all.Wait()
}

// journalTail is the facts of a realm's journal after a sequence number. A goroutine decodes them ahead of the replay:
// the facts are read on another processor while the rows are being indexed.
type journalTail struct {
	batches chan []realm.Record
	err     error         // valid when batches is closed
	stop    chan struct{} // closed when the facts are not needed any more
}

// tailBatch is how many facts are handed over at once. At most tailAhead batches wait: some megabytes.
const (
	tailBatch = 256
	tailAhead = 64
)

var errTailStopped = errors.New("reading the journal was stopped")

// readJournalTail starts to read. The caller must call close.
func readJournalTail(disk realmLoader, id realm.ID, after realm.Seq) *journalTail {
	t := &journalTail{batches: make(chan []realm.Record, tailAhead), stop: make(chan struct{})}
	go func() {
		defer close(t.batches)
		var batch []realm.Record
		pass := func() error {
			select {
			case t.batches <- batch:
				batch = nil
				return nil
			case <-t.stop:
				return errTailStopped
			}
		}
		t.err = disk.Tail(id, after, func(r realm.Record) error {
			if batch = append(batch, r); len(batch) < tailBatch {
				return nil
			}
			return pass()
		})
		if t.err == nil {
			t.err = pass()
		}
	}()
	return t
}

// close stops the reading if it is not done, and waits until the disk is not used any more.
func (t *journalTail) close() {
	close(t.stop)
	for range t.batches {
	}
}

// replay applies the facts of the tail.
func (l *loadedRealm) replay(t *journalTail) error {
	for batch := range t.batches {
		for _, n := range batch {
			p := l.realm.ReplayAt(n.Fact, n.Now, n.Level)
			if p.Seq != n.Seq {
				return fmt.Errorf("replay realm %d: BUG: fact %d applied as %d", l.realm.ID(), n.Seq, p.Seq)
			}
			if len(p.Notices) > 0 {
				l.publications = append(l.publications, p)
			}
			switch f := n.Fact.(type) {
			case realm.CredentialChange:
				l.accountsToUpdate = append(l.accountsToUpdate, f.Accounts()...)
			case *realm.QueuesCaughtUp:
				if f.Actors == SessionActors && f.Actor >= 0 && f.Actor < SessionActors {
					l.ackedThrough[f.Actor] = max(l.ackedThrough[f.Actor], f.Through)
				}
			}
		}
	}
	if t.err != nil {
		return fmt.Errorf("replay realm %d: %w", l.realm.ID(), t.err)
	}
	return nil
}

// Preloaded is the realms of a disk as Preload found them, for a server that opens the disk later: it only replays the
// facts that were added since. A realm whose rows changed in the meantime is loaded again.
type Preloaded struct {
	realms   map[realm.ID]*loadedRealm
	accounts *accountTable
}

// Preload loads every realm of a disk, which may be a copy.
func Preload(disk ReadOnlyDisk, now time.Time) (*Preloaded, error) {
	ids, err := disk.Realms()
	if err != nil {
		return nil, fmt.Errorf("list realms: %w", err)
	}
	p := &Preloaded{map[realm.ID]*loadedRealm{}, newAccountTable()}
	sleeping, _ := disk.(SleepingDisk)
	for _, id := range ids {
		if sleeping != nil {
			if _, ok := sleeping.Asleep(id); ok {
				continue
			}
		}
		rows, _, err := disk.Bounds(id)
		if err != nil {
			return nil, fmt.Errorf("preload realm %d: %w", id, err)
		}
		l, err := load(disk, id, rows, now)
		if err != nil {
			return nil, err
		}
		if l.realm.Founded() {
			p.accounts.addRealm(l.realm)
			l.accountsToUpdate = nil
		}
		p.realms[id] = l
	}
	return p, nil
}

// take returns a realm and forgets it; nil if it was not preloaded.
func (p *Preloaded) take(id realm.ID) *loadedRealm {
	if p == nil {
		return nil
	}
	l := p.realms[id]
	delete(p.realms, id)
	return l
}
