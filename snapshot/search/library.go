package search

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/realm"
)

// Limits of a library.
const (
	// MaxQueued is how many texts of one organization may wait to be indexed, 32 bytes each: only their names wait. When
	// more come, the queue is dropped and the index is compared with the disk instead: it costs a scan, but no memory.
	MaxQueued = 1_000_000
	// batchDocs and batchBytes bound what is written in one step. A text costs as much CPU among 500 as among 2,000, and
	// half as much again among 100 (BenchmarkWrite); but the end of a step, the dictionary of its words, is made without
	// a pause: 2,000 texts held a processor for 14 ms, and whoever sent meanwhile waited.
	batchDocs  = 500
	batchBytes = 4 << 20
	// replayed is how many texts are looked up in the journal before comparing with the disk is quicker.
	replayed = 200_000
	// patience is how long a search waits for the index to reach what the searcher has seen.
	patience = 5 * time.Second
	// leaving is how long what waits is written before it is left to a successor.
	leaving = 2 * time.Second
	// nap lets texts gather, so that a busy organization does not write an index segment for each message. A waiting
	// search wakes the writer.
	nap = time.Second
	// leisure is how many times as long the writer rests as it wrote: while nobody searches, indexing takes a quarter of a
	// core at most from those who send, and a tenth while more than busy texts a second come: the rest is made up for
	// when fewer do. stretch is after how long it rests also in the middle of a batch.
	leisure     = 3
	busyLeisure = 9
	busy        = 500
	stretch     = time.Millisecond
	// maxStretch is what counts of a stretch at most: one that the machine made long is not to be paid back.
	maxStretch = 10 * time.Millisecond
	// Calm is how long the writer rests when the library has been opened: those who come back need the machine first. The
	// store merges no tables for as long.
	Calm = 5 * time.Second
	// standEvery is how often the number is written when no text came: a start then need not read far back.
	standEvery = time.Minute
)

// Disk is where the texts are.
type Disk interface {
	// Tail calls fn with the facts after a number; it fails if rows have taken them over.
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
	// EachText calls fn with every text, versions of one message in order; body reads it.
	EachText(id realm.ID, fn func(ref realm.BodyRef, body func() (realm.Body, error)) error) error
}

// Library is the indexes of all organizations. One goroutine writes.
type Library struct {
	dir   string
	disk  Disk
	plain func(realm.Body) string // what of a text can be found
	log   *slog.Logger

	mu      sync.Mutex // guards shelves and everything in them but the index itself
	shelves map[realm.ID]*shelf
	wake    chan struct{}
	hurry   bool         // somebody waits
	began   atomic.Int64 // when the writer began to write, or rested last, Unix nanoseconds; 0: it is at leisure anyway
	rested  atomic.Int64 // nanoseconds it has rested within a batch
	fed     atomic.Int64 // texts that came
	leisure atomic.Int64 // how many times as long as it works it rests
	leaving atomic.Bool  // what waits is left to the successor
	waiting atomic.Int64 // searches that wait for the writer
	ending  sync.Once
	stop    chan struct{}
	stopped chan struct{}
}

// shelf is one organization's index and what waits for it.
type shelf struct {
	id     realm.ID
	text   realm.TextReader
	index  *Index    // nil until the writer has opened it
	ends   realm.Seq // where the journal ended when the organization was taken up
	stands realm.Seq // and its rows stood
	behind bool      // the queue is not enough: compare with the disk
	tail   bool      // the journal has everything that is missing
	missed bool      // too many texts came before the index was open
	busy   bool      // the writer has taken the queue and not written it yet
	queue  []text
	target realm.Seq // what is on disk
	at     realm.Seq // what can be searched
	stored realm.Seq // what the index itself remembers
	failed error
	moved  chan struct{} // closed when at moves
	topics topics
}

// text is what is to be indexed, by name: the text itself is most likely in memory still, for others, when its turn comes.
type text struct {
	realm.BodyRef
	gone bool
	upto realm.Seq // the newest fact of its commit
}

// OpenLibrary keeps the indexes below a directory.
func OpenLibrary(dir string, disk Disk, plain func(realm.Body) string, log *slog.Logger) *Library {
	l := &Library{dir: dir, disk: disk, plain: plain, log: log, shelves: map[realm.ID]*shelf{}, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	go l.work()
	return l
}

func (l *Library) path(id realm.ID) string {
	return filepath.Join(l.dir, strconv.FormatUint(uint64(id), 10))
}

// Attach takes an organization up: its journal ends at last, its rows stand at rows, and text reads its texts. Feed
// follows every commit from then on. The index itself is opened later, by the writer: a predecessor may still be closing
// it.
func (l *Library) Attach(id realm.ID, last, rows realm.Seq, text realm.TextReader) {
	s := &shelf{id: id, text: text, ends: last, stands: rows, target: last, behind: true, moved: make(chan struct{})}
	l.mu.Lock()
	l.shelves[id] = s
	l.mu.Unlock()
	l.signal()
}

// open opens an organization's index, and waits until nobody else has it open.
func (l *Library) open(s *shelf) error {
	var x *Index
	for {
		var err error
		if x, err = Open(l.path(s.id)); err == nil {
			break
		}
		select {
		case <-l.stop:
			return err
		default:
		}
		if !errors.Is(err, errHeld) {
			return err
		}
		l.log.Warn("search index", "realm", s.id, "error", err)
	}
	x.pace = l.pace
	at, err := x.At()
	if err != nil {
		return errors.Join(err, x.Close())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.index, s.stored = x, at
	s.behind, s.tail = at != s.ends || s.missed, at >= s.stands && at < s.ends && !s.missed
	switch {
	case s.behind && at > s.ends: // of another life of this organization
		s.at = 0
	case !s.behind && len(s.queue) == 0: // no text has come since
		s.queue, at = nil, s.target
		fallthrough
	default:
		s.at = at
	}
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

// Feed notes what a commit wrote. It never blocks.
func (l *Library) Feed(id realm.ID, upto realm.Seq, texts []realm.TextWrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shelves[id]
	if s == nil {
		return
	}
	s.target = upto
	l.fed.Add(int64(len(texts)))
	switch {
	case s.failed != nil:
		return
	case len(texts) == 0 && len(s.queue) == 0 && !s.behind && !s.busy:
		s.move(upto)
		return
	case len(s.queue)+len(texts) > MaxQueued:
		s.queue = nil
		s.behind, s.tail = true, false
		s.missed = s.index == nil
	default:
		for _, t := range texts {
			s.queue = append(s.queue, text{t.Ref, t.Body == nil, upto})
		}
	}
	l.signal()
}

// take hands out the oldest texts, as many commits as make a batch, and the number at which the index stands with them.
// All of them if all is set. l.mu is held.
func (s *shelf) take(all bool) (texts []text, at realm.Seq) {
	n := len(s.queue)
	if !all && n > batchDocs {
		for n = batchDocs; n < len(s.queue) && s.queue[n].upto == s.queue[n-1].upto; n++ {
		}
	}
	texts, s.queue = s.queue[:n:n], s.queue[n:]
	if len(s.queue) == 0 {
		s.queue = nil
		return texts, s.target
	}
	return texts, texts[n-1].upto
}

func (l *Library) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// move notes that everything up to a number can be searched. l.mu is held.
func (s *shelf) move(at realm.Seq) {
	if s.at != at {
		s.at = at
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

// Leave says that a successor is going to write what waits, which it finds in the journal: texts are indexed from then on
// only for those who wait for them. Before, it writes what waits now, as far as it gets in a while: what the successor
// misses is then little, and in the journal.
func (l *Library) Leave() {
	deadline := time.NewTimer(leaving)
	defer deadline.Stop()
	targets := map[realm.ID]realm.Seq{}
	l.mu.Lock()
	for id, s := range l.shelves {
		targets[id] = s.target
	}
	l.mu.Unlock()
	for id, target := range targets {
		if s, _ := l.wait(id, target, deadline.C); s == nil {
			break
		}
	}
	l.leaving.Store(true)
	l.signal()
}

// Stop ends the writing, when what waits is written, unless that has been left to somebody else. The disk is not read any
// more then.
func (l *Library) Stop() {
	l.ending.Do(func() { close(l.stop) })
	<-l.stopped
}

// Close stops and closes the indexes, which takes the time until the disk has them.
func (l *Library) Close() error {
	l.Stop()
	var closing sync.WaitGroup
	errs := make(chan error, len(l.shelves))
	for _, s := range l.shelves {
		if s.index != nil {
			closing.Go(func() { errs <- s.index.Close() })
		}
	}
	closing.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func (l *Library) work() {
	defer close(l.stopped)
	stand := time.NewTicker(standEvery)
	defer stand.Stop()
	l.leisure.Store(leisure)
	round := time.Now()
	left := false
	l.rest(Calm)
	for stopping := false; ; {
		select {
		case <-l.wake:
		case <-stand.C:
			l.eachShelf(l.stand)
		case <-l.stop:
			stopping = true
		}
		if l.leaving.Load() {
			if !left { // the number alone may have moved
				left = true
				l.eachShelf(l.stand)
			}
			if stopping {
				return
			}
			if l.waiting.Load() == 0 {
				continue
			}
		}
		began, more := time.Now(), false
		l.began.Store(began.UnixNano())
		l.rested.Store(0)
		l.eachShelf(func(s *shelf) {
			for l.catchUp(s) {
				if more = true; !stopping {
					break
				}
			}
		})
		if stopping {
			l.eachShelf(l.stand)
			return
		}
		if more {
			l.signal()
		}
		l.began.Store(0)
		rested := time.Duration(l.rested.Load())
		l.rest(max(time.Duration(l.leisure.Load())*(time.Since(began)-rested)-rested, nap))
		if took := time.Since(round); l.fed.Swap(0) > int64(busy*took/time.Second) {
			l.leisure.Store(busyLeisure)
		} else {
			l.leisure.Store(leisure)
		}
		round = time.Now()
	}
}

// pace rests in the middle of a batch, as long as nobody waits for it. Of the goroutines that make a segment one works at
// a time.
func (l *Library) pace() {
	began := l.began.Load()
	if began == 0 {
		return
	}
	now := time.Now()
	worked := now.Sub(time.Unix(0, began))
	if worked < stretch {
		return
	}
	l.mu.Lock()
	hurry := l.hurry || l.leaving.Load()
	l.mu.Unlock()
	select {
	case <-l.stop:
		hurry = true
	default:
	}
	if hurry {
		runtime.Gosched()
	} else {
		time.Sleep(time.Duration(l.leisure.Load()) * min(worked, maxStretch))
	}
	after := time.Now()
	l.rested.Add(int64(after.Sub(now)))
	l.began.Store(after.UnixNano())
}

// rest lets texts gather unless somebody waits for them.
func (l *Library) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	woken := false
	defer func() {
		if woken {
			l.signal() // it is still to be done
		}
	}()
	for {
		l.mu.Lock()
		hurry := l.hurry
		l.hurry = false
		woken = woken || hurry
		l.mu.Unlock()
		if hurry {
			return
		}
		select {
		case <-t.C:
			return
		case <-l.stop:
			return
		case <-l.wake:
			woken = true
		}
	}
}

func (l *Library) eachShelf(fn func(*shelf)) {
	l.mu.Lock()
	list := make([]*shelf, 0, len(l.shelves))
	for _, s := range l.shelves {
		list = append(list, s)
	}
	l.mu.Unlock()
	for _, s := range list {
		fn(s)
	}
}

// stand writes the number alone when it has moved without a text.
func (l *Library) stand(s *shelf) {
	l.mu.Lock()
	at, idle := s.at, len(s.queue) == 0 && !s.behind && s.failed == nil
	l.mu.Unlock()
	if idle && at != s.stored {
		l.note(s, at, s.index.Write(at, nil))
	}
}

// Find answers a search in the state of a number or later. next hands out the topics made after one. ready is
// false while the index has so much to catch up with that waiting did not help.
func (l *Library) Find(id realm.ID, upto realm.Seq, text string, next func(after realm.TopicID) ([]realm.TopicName, error)) (hits realm.Hits, marks realm.Marks, ready bool, err error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	s, err := l.wait(id, upto, deadline.C)
	if s == nil || err != nil {
		return nil, nil, false, err
	}
	if err := s.topics.update(next); err != nil {
		return nil, nil, false, err
	}
	q := Parse(text)
	words, phrases, err := s.index.Find(q)
	if err != nil {
		return nil, nil, false, err
	}
	hits = make(realm.Hits, 0, len(words)+len(phrases))
	for i, w := range words {
		hits = append(hits, realm.Hit{Messages: w.Messages, Topics: s.topics.word(q.Words[i])})
	}
	for i, p := range phrases {
		hits = append(hits, realm.Hit{Messages: p.Messages, Any: p.Any, Phrase: q.Phrases[i], Topics: s.topics.phrase(q.Phrases[i])})
	}
	return hits, q.Marks, true, nil
}

// wait returns when everything up to a number can be searched, or nil when that takes too long.
func (l *Library) wait(id realm.ID, upto realm.Seq, deadline <-chan time.Time) (*shelf, error) {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	for {
		l.mu.Lock()
		s := l.shelves[id]
		if s == nil {
			l.mu.Unlock()
			return nil, fmt.Errorf("realm %d has no search index", id)
		}
		if s.failed != nil || s.at >= upto && !s.behind {
			l.mu.Unlock()
			return s, s.failed
		}
		moved := s.moved
		l.hurry = true
		l.mu.Unlock()
		l.signal()
		select {
		case <-moved:
		case <-deadline:
			return nil, nil
		case <-l.stop:
			return nil, nil
		}
	}
}

// Queued is how many texts of one organization wait to be indexed, at most.
func (l *Library) Queued() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.shelves {
		n = max(n, len(s.queue))
	}
	return int64(n)
}
