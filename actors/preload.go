package actors

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
)

// ReadOnlyDisk is a disk that is only read.
type ReadOnlyDisk interface {
	Realms() ([]realm.ID, error)
	// Bounds says that the rows stand at rows and the journal ends at last.
	Bounds(id realm.ID) (rows, last realm.Seq, err error)
	realmLoader
}

// realmLoader is what ReadOnlyDisk and Disk read alike.
type realmLoader interface {
	Load(id realm.ID, r *realm.Realm, book *presence.Table) ([]realm.Told, error)
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
}

// loadedRealm is a realm as it was when a disk's journal ended where it has been replayed to.
type loadedRealm struct {
	realm        *realm.Realm
	presence     *presence.Table
	rowsSeq      realm.Seq     // the number the rows it came from stand at
	queues       []realm.Queue // of the rows
	told         []realm.Told  // what queues may not have acknowledged
	toldFromRows int           // of told, those that came from rows

	ackedThrough     [Shards]realm.Seq // what each session actor's queues have acknowledged, as far as the journal says
	accountsToUpdate []realm.UserID    // whose accounts facts of the journal may have changed
}

// load reads a realm's rows and plays the facts behind them.
func load(disk realmLoader, id realm.ID, rows realm.Seq, now time.Time) (*loadedRealm, error) {
	l := &loadedRealm{realm: realm.New(id), presence: presence.New(), rowsSeq: rows}
	l.realm.SetClock(now.Unix())
	var err error
	if l.told, err = disk.Load(id, l.realm, l.presence); err != nil {
		return nil, fmt.Errorf("load realm %d: %w", id, err)
	}
	l.toldFromRows = len(l.told)
	t := readJournalTail(disk, id, rows)
	defer t.close()
	l.realm.SetSeq(rows, runParallel)
	l.realm.EachQueue(func(q *realm.Queue) { l.queues = append(l.queues, *q) })
	return l, l.replay(t)
}

// runParallel does parts that have nothing in common at the same time.
func runParallel(parts ...func()) {
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(part)
	}
	all.Wait()
}

// journalTail is the facts of a realm's journal behind a number, decoded by a goroutine that is ahead of who plays them: they
// are read while rows are being indexed, on another processor.
type journalTail struct {
	batches chan []numberedFact
	err     error         // once batches is closed
	stop    chan struct{} // closed when nobody takes any more
}

type numberedFact struct {
	seq  realm.Seq
	fact realm.Fact
}

// Facts are handed over by tailBatch, and at most tailAhead batches wait: some megabytes.
const (
	tailBatch = 256
	tailAhead = 64
)

var errTailStopped = errors.New("nobody takes the facts")

func readJournalTail(disk realmLoader, id realm.ID, after realm.Seq) *journalTail {
	t := &journalTail{batches: make(chan []numberedFact, tailAhead), stop: make(chan struct{})}
	go func() {
		defer close(t.batches)
		var batch []numberedFact
		pass := func() error {
			select {
			case t.batches <- batch:
				batch = nil
				return nil
			case <-t.stop:
				return errTailStopped
			}
		}
		t.err = disk.Tail(id, after, func(seq realm.Seq, f realm.Fact) error {
			if batch = append(batch, numberedFact{seq, f}); len(batch) < tailBatch {
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

// close ends the reading, if it has not come to its end, and waits until the disk is left alone.
func (t *journalTail) close() {
	close(t.stop)
	for range t.batches {
	}
}

// replay plays the facts that are in the journal behind what is there.
func (l *loadedRealm) replay(t *journalTail) error {
	for batch := range t.batches {
		for _, n := range batch {
			told := l.realm.Replay(n.fact)
			if told.Seq != n.seq {
				return fmt.Errorf("replay realm %d: BUG: fact %d applied as %d", l.realm.ID(), n.seq, told.Seq)
			}
			if len(told.Notices) > 0 {
				l.told = append(l.told, told)
			}
			switch f := n.fact.(type) {
			case realm.CredentialChange:
				l.accountsToUpdate = append(l.accountsToUpdate, f.Accounts()...)
			case *realm.QueuesCaughtUp:
				if f.Shards == Shards && f.Shard >= 0 && f.Shard < Shards {
					l.ackedThrough[f.Shard] = max(l.ackedThrough[f.Shard], f.Through)
				}
			}
		}
	}
	if t.err != nil {
		return fmt.Errorf("replay realm %d: %w", l.realm.ID(), t.err)
	}
	return nil
}

// Preloaded is the realms of a disk as they were at some moment, for a house that opens the disk later: it only plays
// what came since. A realm whose rows have moved on meanwhile is loaded anew.
type Preloaded struct {
	realms   map[realm.ID]*loadedRealm
	accounts *accountTable
}

// Preload reads every realm of a disk, which may be a copy.
func Preload(disk ReadOnlyDisk, now time.Time) (*Preloaded, error) {
	ids, err := disk.Realms()
	if err != nil {
		return nil, fmt.Errorf("list realms: %w", err)
	}
	p := &Preloaded{map[realm.ID]*loadedRealm{}, newAccountTable()}
	for _, id := range ids {
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

// take hands a realm out, once.
func (p *Preloaded) take(id realm.ID) *loadedRealm {
	if p == nil {
		return nil
	}
	l := p.realms[id]
	delete(p.realms, id)
	return l
}
