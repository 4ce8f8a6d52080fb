package actors

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
)

// Source is a disk that is only read.
type Source interface {
	Realms() ([]realm.ID, error)
	// Bounds says that the rows stand at rows and the journal ends at last.
	Bounds(id realm.ID) (rows, last realm.Seq, err error)
	reader
}

// reader is what Source and Disk read alike.
type reader interface {
	Load(id realm.ID, r *realm.Realm, book *presence.Book) ([]realm.Told, error)
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
}

// loaded is a realm as it was when a disk's journal ended where it has been replayed to.
type loaded struct {
	r      *realm.Realm
	book   *presence.Book
	rows   realm.Seq     // the number the rows it came from stand at
	queues []realm.Queue // of the rows
	told   []realm.Told  // what queues may not have acknowledged
	stored int           // of told, those that came from rows

	caughtUp [Shards]realm.Seq // what each session actor's queues have acknowledged, as far as the journal says
	touched  []realm.UserID    // whose accounts facts of the journal may have changed
}

// load reads a realm's rows and plays the facts behind them.
func load(disk reader, id realm.ID, rows realm.Seq, now time.Time) (*loaded, error) {
	l := &loaded{r: realm.New(id), book: presence.New(), rows: rows}
	l.r.Clock(now.Unix())
	var err error
	if l.told, err = disk.Load(id, l.r, l.book); err != nil {
		return nil, fmt.Errorf("load realm %d: %w", id, err)
	}
	l.stored = len(l.told)
	t := readTail(disk, id, rows)
	defer t.close()
	l.r.Stand(rows, atOnce)
	l.r.EachQueue(func(q *realm.Queue) { l.queues = append(l.queues, *q) })
	return l, l.replay(t)
}

// atOnce does parts that have nothing in common at the same time.
func atOnce(parts ...func()) {
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(part)
	}
	all.Wait()
}

// tail is the facts of a realm's journal behind a number, decoded by a goroutine that is ahead of who plays them: they
// are read while rows are being indexed, on another processor.
type tail struct {
	batches chan []numbered
	err     error         // once batches is closed
	unread  chan struct{} // closed when nobody takes any more
}

type numbered struct {
	seq  realm.Seq
	fact realm.Fact
}

// Facts are handed over by tailBatch, and at most tailAhead batches wait: some megabytes.
const (
	tailBatch = 256
	tailAhead = 64
)

var errUnread = errors.New("nobody takes the facts")

func readTail(disk reader, id realm.ID, after realm.Seq) *tail {
	t := &tail{batches: make(chan []numbered, tailAhead), unread: make(chan struct{})}
	go func() {
		defer close(t.batches)
		var batch []numbered
		pass := func() error {
			select {
			case t.batches <- batch:
				batch = nil
				return nil
			case <-t.unread:
				return errUnread
			}
		}
		t.err = disk.Tail(id, after, func(seq realm.Seq, f realm.Fact) error {
			if batch = append(batch, numbered{seq, f}); len(batch) < tailBatch {
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
func (t *tail) close() {
	close(t.unread)
	for range t.batches {
	}
}

// replay plays the facts that are in the journal behind what is there.
func (l *loaded) replay(t *tail) error {
	for batch := range t.batches {
		for _, n := range batch {
			told := l.r.Replay(n.fact)
			if told.Seq != n.seq {
				return fmt.Errorf("replay realm %d: BUG: fact %d applied as %d", l.r.ID(), n.seq, told.Seq)
			}
			if len(told.Notices) > 0 {
				l.told = append(l.told, told)
			}
			switch f := n.fact.(type) {
			case realm.Accounted:
				l.touched = append(l.touched, f.Accounts()...)
			case *realm.QueuesCaughtUp:
				if f.Shards == Shards && f.Shard >= 0 && f.Shard < Shards {
					l.caughtUp[f.Shard] = max(l.caughtUp[f.Shard], f.Through)
				}
			}
		}
	}
	if t.err != nil {
		return fmt.Errorf("replay realm %d: %w", l.r.ID(), t.err)
	}
	return nil
}

// Preloaded is the realms of a disk as they were at some moment, for a house that opens the disk later: it only plays
// what came since. A realm whose rows have moved on meanwhile is loaded anew.
type Preloaded struct {
	realms   map[realm.ID]*loaded
	accounts *accounts
}

// Preload reads every realm of a disk, which may be a copy.
func Preload(disk Source, now time.Time) (*Preloaded, error) {
	ids, err := disk.Realms()
	if err != nil {
		return nil, fmt.Errorf("list realms: %w", err)
	}
	p := &Preloaded{map[realm.ID]*loaded{}, newAccounts()}
	for _, id := range ids {
		rows, _, err := disk.Bounds(id)
		if err != nil {
			return nil, fmt.Errorf("preload realm %d: %w", id, err)
		}
		l, err := load(disk, id, rows, now)
		if err != nil {
			return nil, err
		}
		if l.r.Founded() {
			p.accounts.introduce(l.r)
			l.touched = nil
		}
		p.realms[id] = l
	}
	return p, nil
}

// take hands a realm out, once.
func (p *Preloaded) take(id realm.ID) *loaded {
	if p == nil {
		return nil
	}
	l := p.realms[id]
	delete(p.realms, id)
	return l
}
