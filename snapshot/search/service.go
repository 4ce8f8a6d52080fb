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
	// maxReplayedTexts is how many texts are looked up in the journal before comparing with the disk is quicker.
	maxReplayedTexts = 200_000
	// searchTimeout is how long a search waits for the index to reach what the searcher has seen.
	searchTimeout = 5 * time.Second
	// handOffTimeout is how long what waits is written before it is left to a successor.
	handOffTimeout = 2 * time.Second
	// minRest lets texts gather, so that a busy organization does not write an index segment for each message. A waiting
	// search wakes the writer.
	minRest = time.Second
	// restFactor is how many times as long the writer rests as it wrote: while nobody searches, indexing takes a quarter of a
	// core at most from those who send, and a tenth while more than busy texts a second come: the rest is made up for
	// when fewer do. stretch is after how long it rests also in the middle of a batch.
	restFactor     = 3
	busyRestFactor = 9
	busyRate       = 500
	workSlice      = time.Millisecond
	// maxWorkSlice is what counts of a stretch at most: one that the machine made long is not to be paid back.
	maxWorkSlice = 10 * time.Millisecond
	// StartupRest is how long the writer rests when the library has been opened: those who come back need the machine first. The
	// store merges no tables for as long.
	StartupRest = 5 * time.Second
	// seqInterval is how often the number is written when no text came: a start then need not read far back.
	seqInterval = time.Minute
)

// Disk is where the texts are.
type Disk interface {
	// Tail calls fn with the facts after a number; it fails if rows have taken them over.
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
	// EachText calls fn with every text, versions of one message in order; body reads it.
	EachText(id realm.ID, fn func(ref realm.BodyRef, body func() (realm.Body, error)) error) error
}

// Service is the indexes of all organizations. One goroutine writes.
type Service struct {
	dir   string
	disk  Disk
	plain func(realm.Body) string // what of a text can be found
	log   *slog.Logger

	mu              sync.Mutex // guards shelves and everything in them but the index itself
	realms          map[realm.ID]*realmIndex
	wake            chan struct{}
	urgent          bool         // somebody waits
	workStarted     atomic.Int64 // when the writer began to write, or rested last, Unix nanoseconds; 0: it is at leisure anyway
	rested          atomic.Int64 // nanoseconds it has rested within a batch
	received        atomic.Int64 // texts that came
	restFactor      atomic.Int64 // how many times as long as it works it rests
	handingOver     atomic.Bool  // what waits is left to the successor
	waitingSearches atomic.Int64 // searches that wait for the writer
	stopOnce        sync.Once
	stop            chan struct{}
	stopped         chan struct{}
}

// realmIndex is one organization's index and what waits for it.
type realmIndex struct {
	id           realm.ID
	readText     realm.TextReader
	index        *Index    // nil until the writer has opened it
	journalEnd   realm.Seq // where the journal ended when the organization was taken up
	rowsSeq      realm.Seq // and its rows stood
	needsCompare bool      // the queue is not enough: compare with the disk
	canReplay    bool      // the journal has everything that is missing
	overflowed   bool      // too many texts came before the index was open
	writing      bool      // the writer has taken the queue and not written it yet
	queue        []pendingText
	durable      realm.Seq // what is on disk
	searchable   realm.Seq // what can be searched
	indexed      realm.Seq // what the index itself remembers
	failed       error
	advanced     chan struct{} // closed when at moves
	topics       topicNames
}

// pendingText is what is to be indexed, by name: the pendingText itself is most likely in memory still, for others, when its turn comes.
type pendingText struct {
	realm.BodyRef
	deleted bool
	seq     realm.Seq // the newest fact of its commit
}

// OpenService keeps the indexes below a directory.
func OpenService(dir string, disk Disk, plain func(realm.Body) string, log *slog.Logger) *Service {
	l := &Service{dir: dir, disk: disk, plain: plain, log: log, realms: map[realm.ID]*realmIndex{}, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	go l.run()
	return l
}

func (l *Service) path(id realm.ID) string {
	return filepath.Join(l.dir, strconv.FormatUint(uint64(id), 10))
}

// Attach takes an organization up: its journal ends at last, its rows stand at rows, and text reads its texts. Feed
// follows every commit from then on. The index itself is opened later, by the writer: a predecessor may still be closing
// it.
func (l *Service) Attach(id realm.ID, last, rows realm.Seq, text realm.TextReader) {
	s := &realmIndex{id: id, readText: text, journalEnd: last, rowsSeq: rows, durable: last, needsCompare: true, advanced: make(chan struct{})}
	l.mu.Lock()
	l.realms[id] = s
	l.mu.Unlock()
	l.signal()
}

// open opens an organization's index, and waits until nobody else has it open.
func (l *Service) open(s *realmIndex) error {
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
		if !errors.Is(err, errIndexInUse) {
			return err
		}
		l.log.Warn("search index", "realm", s.id, "error", err)
	}
	x.pause = l.pause
	at, err := x.Seq()
	if err != nil {
		return errors.Join(err, x.Close())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.index, s.indexed = x, at
	s.needsCompare, s.canReplay = at != s.journalEnd || s.overflowed, at >= s.rowsSeq && at < s.journalEnd && !s.overflowed
	switch {
	case s.needsCompare && at > s.journalEnd: // of another life of this organization
		s.searchable = 0
	case !s.needsCompare && len(s.queue) == 0: // no text has come since
		s.queue, at = nil, s.durable
		fallthrough
	default:
		s.searchable = at
	}
	close(s.advanced)
	s.advanced = make(chan struct{})
	return nil
}

// Feed notes what a commit wrote. It never blocks.
func (l *Service) Feed(id realm.ID, upto realm.Seq, texts []realm.TextWrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.realms[id]
	if s == nil {
		return
	}
	s.durable = upto
	l.received.Add(int64(len(texts)))
	switch {
	case s.failed != nil:
		return
	case len(texts) == 0 && len(s.queue) == 0 && !s.needsCompare && !s.writing:
		s.advance(upto)
		return
	case len(s.queue)+len(texts) > MaxQueued:
		s.queue = nil
		s.needsCompare, s.canReplay = true, false
		s.overflowed = s.index == nil
	default:
		for _, t := range texts {
			s.queue = append(s.queue, pendingText{t.Ref, t.Body == nil, upto})
		}
	}
	l.signal()
}

// takeBatch hands out the oldest texts, as many commits as make a batch, and the number at which the index stands with them.
// All of them if all is set. l.mu is held.
func (s *realmIndex) takeBatch(all bool) (texts []pendingText, at realm.Seq) {
	n := len(s.queue)
	if !all && n > batchDocs {
		for n = batchDocs; n < len(s.queue) && s.queue[n].seq == s.queue[n-1].seq; n++ {
		}
	}
	texts, s.queue = s.queue[:n:n], s.queue[n:]
	if len(s.queue) == 0 {
		s.queue = nil
		return texts, s.durable
	}
	return texts, texts[n-1].seq
}

func (l *Service) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// advance notes that everything up to a number can be searched. l.mu is held.
func (s *realmIndex) advance(at realm.Seq) {
	if s.searchable != at {
		s.searchable = at
		close(s.advanced)
		s.advanced = make(chan struct{})
	}
}

// HandOff says that a successor is going to write what waits, which it finds in the journal: texts are indexed from then on
// only for those who wait for them. Before, it writes what waits now, as far as it gets in a while: what the successor
// misses is then little, and in the journal.
func (l *Service) HandOff() {
	deadline := time.NewTimer(handOffTimeout)
	defer deadline.Stop()
	targets := map[realm.ID]realm.Seq{}
	l.mu.Lock()
	for id, s := range l.realms {
		targets[id] = s.durable
	}
	l.mu.Unlock()
	for id, target := range targets {
		if s, _ := l.wait(id, target, deadline.C); s == nil {
			break
		}
	}
	l.handingOver.Store(true)
	l.signal()
}

// Stop ends the writing, when what waits is written, unless that has been left to somebody else. The disk is not read any
// more then.
func (l *Service) Stop() {
	l.stopOnce.Do(func() { close(l.stop) })
	<-l.stopped
}

// Close stops and closes the indexes, which takes the time until the disk has them.
func (l *Service) Close() error {
	l.Stop()
	var closing sync.WaitGroup
	errs := make(chan error, len(l.realms))
	for _, s := range l.realms {
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

func (l *Service) run() {
	defer close(l.stopped)
	stand := time.NewTicker(seqInterval)
	defer stand.Stop()
	l.restFactor.Store(restFactor)
	round := time.Now()
	left := false
	l.waitForTexts(StartupRest)
	for stopping := false; ; {
		select {
		case <-l.wake:
		case <-stand.C:
			l.eachRealm(l.writeSeq)
		case <-l.stop:
			stopping = true
		}
		if l.handingOver.Load() {
			if !left { // the number alone may have moved
				left = true
				l.eachRealm(l.writeSeq)
			}
			if stopping {
				return
			}
			if l.waitingSearches.Load() == 0 {
				continue
			}
		}
		began, more := time.Now(), false
		l.workStarted.Store(began.UnixNano())
		l.rested.Store(0)
		l.eachRealm(func(s *realmIndex) {
			for l.catchUp(s) {
				if more = true; !stopping {
					break
				}
			}
		})
		if stopping {
			l.eachRealm(l.writeSeq)
			return
		}
		if more {
			l.signal()
		}
		l.workStarted.Store(0)
		rested := time.Duration(l.rested.Load())
		l.waitForTexts(max(time.Duration(l.restFactor.Load())*(time.Since(began)-rested)-rested, minRest))
		if took := time.Since(round); l.received.Swap(0) > int64(busyRate*took/time.Second) {
			l.restFactor.Store(busyRestFactor)
		} else {
			l.restFactor.Store(restFactor)
		}
		round = time.Now()
	}
}

// pause rests in the middle of a batch, as long as nobody waits for it. Of the goroutines that make a segment one works at
// a time.
func (l *Service) pause() {
	began := l.workStarted.Load()
	if began == 0 {
		return
	}
	now := time.Now()
	worked := now.Sub(time.Unix(0, began))
	if worked < workSlice {
		return
	}
	l.mu.Lock()
	hurry := l.urgent || l.handingOver.Load()
	l.mu.Unlock()
	select {
	case <-l.stop:
		hurry = true
	default:
	}
	if hurry {
		runtime.Gosched()
	} else {
		time.Sleep(time.Duration(l.restFactor.Load()) * min(worked, maxWorkSlice))
	}
	after := time.Now()
	l.rested.Add(int64(after.Sub(now)))
	l.workStarted.Store(after.UnixNano())
}

// waitForTexts lets texts gather unless somebody waits for them.
func (l *Service) waitForTexts(d time.Duration) {
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
		hurry := l.urgent
		l.urgent = false
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

func (l *Service) eachRealm(fn func(*realmIndex)) {
	l.mu.Lock()
	list := make([]*realmIndex, 0, len(l.realms))
	for _, s := range l.realms {
		list = append(list, s)
	}
	l.mu.Unlock()
	for _, s := range list {
		fn(s)
	}
}

// writeSeq writes the number alone when it has moved without a text.
func (l *Service) writeSeq(s *realmIndex) {
	l.mu.Lock()
	at, idle := s.searchable, len(s.queue) == 0 && !s.needsCompare && s.failed == nil
	l.mu.Unlock()
	if idle && at != s.indexed {
		l.recordResult(s, at, s.index.Write(at, nil))
	}
}

// Find answers a search in the state of a number or later. next hands out the topics made after one. ready is
// false while the index has so much to catch up with that waiting did not help.
func (l *Service) Find(id realm.ID, upto realm.Seq, text string, next func(after realm.TopicID) ([]realm.TopicName, error)) (hits realm.SearchHits, marks realm.Highlighter, ready bool, err error) {
	deadline := time.NewTimer(searchTimeout)
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
	hits = make(realm.SearchHits, 0, len(words)+len(phrases))
	for i, w := range words {
		hits = append(hits, realm.SearchHit{Messages: w.Messages, Topics: s.topics.withStem(q.Words[i])})
	}
	for i, p := range phrases {
		hits = append(hits, realm.SearchHit{Messages: p.Messages, Unbounded: p.All, Phrase: q.Phrases[i], Topics: s.topics.containing(q.Phrases[i])})
	}
	return hits, q.Highlights, true, nil
}

// wait returns when everything up to a number can be searched, or nil when that takes too long.
func (l *Service) wait(id realm.ID, upto realm.Seq, deadline <-chan time.Time) (*realmIndex, error) {
	l.waitingSearches.Add(1)
	defer l.waitingSearches.Add(-1)
	for {
		l.mu.Lock()
		s := l.realms[id]
		if s == nil {
			l.mu.Unlock()
			return nil, fmt.Errorf("realm %d has no search index", id)
		}
		if s.failed != nil || s.searchable >= upto && !s.needsCompare {
			l.mu.Unlock()
			return s, s.failed
		}
		moved := s.advanced
		l.urgent = true
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
func (l *Service) Queued() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.realms {
		n = max(n, len(s.queue))
	}
	return int64(n)
}
