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

// Limits of a Service.
const (
	// MaxQueued is how many texts of one organization may wait to be indexed, 32 bytes each: only references wait. If
	// more arrive, the queue is dropped and the index is compared with the disk instead. That costs a scan of all
	// texts, but no memory.
	MaxQueued = 1_000_000
	// batchDocs and batchBytes bound one write to an index. A text takes the same CPU time in a batch of 500 as in one
	// of 2,000, and half as much again in one of 100 (BenchmarkWrite). But the last step of a write, making the
	// dictionary, has no pauses: with 2,000 texts it blocked a processor for 14 ms.
	batchDocs  = 500
	batchBytes = 4 << 20
	// maxReplayedTexts is how many texts are indexed from the journal. If more are missing, comparing with the disk is
	// faster.
	maxReplayedTexts = 200_000
	// searchTimeout is how long a search waits for the index to contain everything the user may have seen.
	searchTimeout = 5 * time.Second
	// handOffTimeout is how long HandOff writes pending texts before it leaves them to the successor.
	handOffTimeout = 2 * time.Second
	// stopTimeout is how long Stop writes pending texts. Thousands of new organizations have more of them than can be
	// written before the service manager ends a process; the next one reads them from the disk, as after a crash.
	stopTimeout = 2 * time.Second
	// minPause is the shortest pause between two batches. Texts accumulate meanwhile, so that a busy organization does
	// not get an index segment for each message. A waiting search ends the pause.
	minPause = time.Second
	// A batch waits until an organization has gatherTexts texts, or gatherTime has passed, or a search waits. Each
	// batch writes a segment, syncs it, and is merged with others later: with 20 messages a second, a batch each second
	// was a twelfth of the server's CPU time.
	gatherTexts = batchDocs / 2
	gatherTime  = 8 * time.Second
	// The writer pauses pauseFactor times as long as it worked, so indexing takes at most a quarter of a core. While
	// more than busyRate texts a second arrive, it pauses busyPauseFactor times as long; the rest of the texts is
	// indexed later. Within a batch it pauses after each workSlice.
	pauseFactor     = 3
	busyPauseFactor = 9
	busyRate        = 500
	workSlice       = time.Millisecond
	// maxWorkSlice bounds the work that a pause is computed from: a slice that the operating system interrupted must
	// not cause a long pause.
	maxWorkSlice = 10 * time.Millisecond
	// StartupPause is how long the writer pauses after OpenService, while clients reconnect. The store delays
	// compactions as long.
	StartupPause = 5 * time.Second
	// seqInterval is how often the sequence number is written if no text arrives. So the next start reads less of the
	// journal.
	seqInterval = time.Minute
)

// Disk provides the texts.
type Disk interface {
	// Tail calls fn with the facts after a number. It fails if the rows have replaced these facts.
	Tail(id realm.ID, after realm.Seq, fn func(realm.Record) error) error
	// EachText calls fn with every text, and the versions of one message in order; body reads the text.
	EachText(id realm.ID, fn func(ref realm.BodyRef, body func() (realm.Body, error)) error) error
	// NewestTexts calls fn with the newest text of each message after a message, in their order, until fn returns
	// false.
	NewestTexts(
		id realm.ID, after realm.MessageID, fn func(ref realm.BodyRef, body realm.Body) (more bool, err error),
	) error
}

// Service has the indexes of all organizations. One goroutine writes to them; any number may search.
type Service struct {
	dir   string
	disk  Disk
	plain func(realm.Body) string // returns the searchable part of a text
	log   *slog.Logger

	noBuilds func() bool // see LimitSpace
	noWrites func() bool

	mu              sync.Mutex // guards realms, and the fields of each except its index
	realms          map[realm.ID]*realmIndex
	detached        []*realmIndex // indexes that the writer has to close
	opened, maxOpen int           // open indexes; see parked.go
	uses            int64         // counts the uses of indexes
	visiting        bool          // parked indexes are opened for few texts too
	closing         map[realm.ID]chan struct{}
	closers         chan struct{} // indexes that are being closed
	wake            chan struct{}
	urgent          bool          // a search waits
	workStarted     atomic.Int64  // when the current work slice began, in Unix nanoseconds; 0 between batches
	paused          atomic.Int64  // nanoseconds of pauses within the batch
	received        atomic.Int64  // texts since the last batch
	pauseFactor     atomic.Int64  // pauseFactor or busyPauseFactor
	handingOff      atomic.Bool   // pending texts are left to the successor
	waitingSearches atomic.Int64  // searches that wait for the writer
	stopTime        time.Duration // stopTimeout; shorter in tests
	stopOnce        sync.Once
	writeUntil      atomic.Int64 // when Stop leaves the pending texts, in Unix nanoseconds; 0 before it
	stop            chan struct{}
	stopped         chan struct{}
}

// realmIndex is one organization's index and the texts that wait for it.
type realmIndex struct {
	id           realm.ID
	readText     realm.TextReader
	index        *Index    // nil until the writer has opened it, and while it is parked
	parked       bool      // it has been open, and is closed again
	wanted       bool      // a search waits until it is open
	users        int       // searches that use the index
	lastUse      int64     // see Service.uses
	journalEnd   realm.Seq // the end of the journal at Attach
	rowsSeq      realm.Seq // the number of the rows at Attach
	needsCompare bool      // the queue is incomplete: compare with the disk
	canReplay    bool      // the journal contains everything that is missing
	overflowed   bool      // the queue was dropped before the index was open
	writing      bool      // the writer has taken the queue and is writing it
	queue        []pendingText
	durable      realm.Seq // the newest fact on disk
	searchable   realm.Seq // the newest fact that searches cover
	indexed      realm.Seq // the number in the index itself
	failed       error
	advanced     chan struct{} // closed when searchable changes, or the index fails
	rewriteAsked bool          // Rewrite was called, and the writer has not begun
	rewritten    chan struct{} // closed when everything was written again; nil: Rewrite was not called
	topics       topicNames
}

// pendingText refers to a text that waits to be indexed. The text is read when it is indexed; most likely it is cached
// in memory.
type pendingText struct {
	realm.BodyRef
	deleted bool
	seq     realm.Seq // the newest fact of its commit
}

// OpenService opens the indexes in a directory and starts the writer.
func OpenService(dir string, disk Disk, plain func(realm.Body) string, log *slog.Logger) *Service {
	s := &Service{
		dir:      dir,
		disk:     disk,
		plain:    plain,
		log:      log,
		realms:   map[realm.ID]*realmIndex{},
		wake:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
		stopTime: stopTimeout,
		maxOpen:  maxOpenHere(),
		closing:  map[realm.ID]chan struct{}{},
		closers:  make(chan struct{}, maxClosing),
	}
	s.noBuilds, s.noWrites = func() bool { return false }, func() bool { return false }
	go s.run()
	return s
}

// LimitSpace stops the writer while the disk has too little space: while noBuilds, no index is made or compared with
// the texts, and while noWrites, nothing is written at all. A search then finds the texts that are indexed already.
// LimitSpace is called before the first Attach.
func (s *Service) LimitSpace(noBuilds, noWrites func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noBuilds, s.noWrites = noBuilds, noWrites
}

// mayWrite reports whether there is space for the next write to an index.
func (s *Service) mayWrite(r *realmIndex) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.noWrites() && !(r.needsCompare && s.noBuilds())
}

func (s *Service) path(id realm.ID) string { return IndexDir(s.dir, id) }

// IndexDir returns the directory of an organization's index, given that of all indexes. A missing index is made again
// at the next start.
func IndexDir(dir string, id realm.ID) string {
	return filepath.Join(dir, strconv.FormatUint(uint64(id), 10))
}

// Attach adds an organization whose journal ends at last and whose rows are at number rows; text reads its texts. Feed
// is called for every later commit. The writer opens the index later, because a predecessor may still be closing it.
func (s *Service) Attach(id realm.ID, last, rows realm.Seq, text realm.TextReader) {
	r := &realmIndex{
		id:           id,
		readText:     text,
		journalEnd:   last,
		rowsSeq:      rows,
		durable:      last,
		needsCompare: true,
		advanced:     make(chan struct{}),
	}
	s.mu.Lock()
	s.realms[id] = r
	s.mu.Unlock()
	s.signal()
}

// Detach removes an organization that is unloaded from memory. The writer writes its texts and closes its index. Attach
// can add it again at once.
func (s *Service) Detach(id realm.ID) {
	s.mu.Lock()
	if r := s.realms[id]; r != nil {
		delete(s.realms, id)
		s.detached = append(s.detached, r)
	}
	s.mu.Unlock()
	s.signal()
}

// closeDetached closes the indexes of the organizations that were unloaded, after their texts are written. The disk has
// the texts that could not be written, and the next Attach finds them there.
func (s *Service) closeDetached() {
	s.mu.Lock()
	list := s.detached
	s.detached = nil
	s.mu.Unlock()
	for _, r := range list {
		if r.index == nil && (!r.parked || r.isComplete()) { // never opened, or nothing is to be written
			continue
		}
		r.wanted = true
		for !s.mustStop() && s.catchUp(r) {
		}
		if x := r.index; x != nil {
			s.writeSeq(r)
			r.index = nil
			s.closeIndex(r.id, x)
		}
	}
}

// isComplete reports whether the index has everything that searches cover. Nothing else uses r.
func (r *realmIndex) isComplete() bool {
	return len(r.queue) == 0 && !r.needsCompare && r.searchable == r.indexed
}

// open opens an organization's index. It waits while another process has it open.
func (s *Service) open(r *realmIndex) error {
	var x *Index
	s.waitForClose(r.id)
	for {
		var err error
		if x, err = Open(s.path(r.id)); err == nil {
			break
		}
		select {
		case <-s.stop:
			return err
		default:
		}
		if !errors.Is(err, errIndexInUse) {
			return err
		}
		s.log.Warn("search index not opened yet", "realm", r.id, "err", err)
	}
	x.pause = s.pause
	at, err := x.Seq()
	if err != nil {
		return errors.Join(err, x.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		close(r.advanced)
		r.advanced = make(chan struct{})
	}()
	s.opened++
	s.touch(r)
	r.index, r.wanted = x, false
	if r.parked {
		if r.parked = false; at != r.indexed { // the disk has not got the last write
			r.needsCompare, r.canReplay = true, true
		}
		r.indexed = at
		return nil
	}
	r.indexed = at
	r.needsCompare = at != r.journalEnd || r.overflowed
	r.canReplay = at >= r.rowsSeq && at < r.journalEnd && !r.overflowed
	switch {
	case r.needsCompare && at > r.journalEnd: // the index is of another organization with the same number
		r.searchable = 0
	case !r.needsCompare && len(r.queue) == 0: // no text was written since
		r.queue, at = nil, r.durable
		fallthrough
	default:
		r.searchable = at
	}
	return nil
}

// Feed queues the texts that a commit wrote or erased. It never blocks.
func (s *Service) Feed(id realm.ID, upto realm.Seq, texts []realm.TextWrite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.realms[id]
	if r == nil {
		return
	}
	r.durable = upto
	s.received.Add(int64(len(texts)))
	switch {
	case r.failed != nil:
		return
	case len(texts) == 0 && len(r.queue) == 0 && !r.needsCompare && !r.writing:
		r.advance(upto)
		return
	case len(r.queue)+len(texts) > MaxQueued:
		r.queue = nil
		r.needsCompare, r.canReplay = true, false
		r.overflowed = r.index == nil
	default:
		before := len(r.queue)
		for _, t := range texts {
			r.queue = append(r.queue, pendingText{t.Ref, t.Body == nil, upto})
		}
		if before > 0 && (before >= gatherTexts || len(r.queue) < gatherTexts) {
			return // the writer knows, and is not woken for each message
		}
		if !s.isDue(r) {
			return
		}
	}
	s.signal()
}

// takeBatch removes the oldest texts from the queue, in whole commits, and returns the index's number after them. With
// all set it takes the whole queue. s.mu is held.
func (r *realmIndex) takeBatch(all bool) (texts []pendingText, at realm.Seq) {
	n := len(r.queue)
	if !all && n > batchDocs {
		for n = batchDocs; n < len(r.queue) && r.queue[n].seq == r.queue[n-1].seq; n++ {
		}
	}
	texts, r.queue = r.queue[:n:n], r.queue[n:]
	if len(r.queue) == 0 {
		r.queue = nil
		return texts, r.durable
	}
	return texts, texts[n-1].seq
}

func (s *Service) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// advance records that searches cover everything up to a number. s.mu is held.
func (r *realmIndex) advance(at realm.Seq) {
	if r.searchable != at {
		r.searchable = at
		close(r.advanced)
		r.advanced = make(chan struct{})
	}
}

// HandOff prepares the end of the process. It writes pending texts for at most handOffTimeout; the successor finds the
// rest in the journal. After that, texts are indexed only for searches that wait for them.
func (s *Service) HandOff() {
	deadline := time.NewTimer(handOffTimeout)
	defer deadline.Stop()
	targets := map[realm.ID]realm.Seq{}
	s.mu.Lock()
	for id, r := range s.realms {
		if !r.parked {
			targets[id] = r.durable
		}
	}
	s.mu.Unlock()
	for id, target := range targets {
		r, err := s.wait(id, target, deadline.C)
		if r == nil {
			break
		}
		if err == nil {
			s.release(r)
		}
	}
	s.handingOff.Store(true)
	s.signal()
}

// Stop ends the writer after it has written the pending texts, for at most stopTimeout, unless HandOff left them to the
// successor. It then does not read the disk any more.
func (s *Service) Stop() {
	s.stopOnce.Do(func() {
		s.writeUntil.Store(time.Now().Add(s.stopTime).UnixNano())
		close(s.stop)
	})
	<-s.stopped
}

// mustStop reports whether Stop has waited long enough for the pending texts.
func (s *Service) mustStop() bool {
	until := s.writeUntil.Load()
	return until != 0 && time.Now().UnixNano() > until
}

// Close stops the writer and closes the indexes. That takes until they are on disk.
func (s *Service) Close() error {
	s.Stop()
	s.closeDetached()
	for range maxClosing {
		s.closers <- struct{}{} // each waits until an index is closed
	}
	var closing sync.WaitGroup
	errs := make(chan error, len(s.realms))
	for _, r := range s.realms {
		if r.index != nil {
			closing.Go(func() { errs <- r.index.Close() })
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

func (s *Service) run() {
	defer close(s.stopped)
	seqTicker := time.NewTicker(seqInterval)
	defer seqTicker.Stop()
	s.pauseFactor.Store(pauseFactor)
	round := time.Now()
	handedOff, more, visited := false, false, round
	s.sleep(StartupPause, nil)
	for stopping := false; ; {
		select {
		case <-s.wake:
		case <-seqTicker.C:
			s.eachRealm(s.writeSeq)
			if time.Since(visited) >= visitInterval {
				visited = time.Now()
				s.setVisiting(true)
			}
		case <-s.stop:
			stopping = true
		}
		if s.handingOff.Load() {
			if !handedOff { // the number may have changed without a text
				handedOff = true
				s.eachRealm(s.writeSeq)
			}
			if stopping {
				return
			}
			if s.waitingSearches.Load() == 0 {
				continue
			}
		}
		if !stopping && !more {
			s.sleep(gatherTime, s.hasWork)
		}
		s.closeDetached()
		began := time.Now()
		more = false
		s.workStarted.Store(began.UnixNano())
		s.paused.Store(0)
		most := s.parkIdle(0)
		s.eachRealm(func(r *realmIndex) {
			for !s.mustStop() && s.catchUp(r) {
				if more = true; !stopping {
					break
				}
			}
			most = s.parkIdle(most)
		})
		s.setVisiting(false)
		if stopping {
			s.eachRealm(s.writeSeq)
			return
		}
		if !more && !s.handingOff.Load() {
			s.eachRealm(func(r *realmIndex) { more = s.upgrade(r) || more })
		}
		if more {
			s.signal()
		}
		s.workStarted.Store(0)
		paused := time.Duration(s.paused.Load())
		s.sleep(max(time.Duration(s.pauseFactor.Load())*(time.Since(began)-paused)-paused, minPause), nil)
		if took := time.Since(round); s.received.Swap(0) > int64(busyRate*took/time.Second) {
			s.pauseFactor.Store(busyPauseFactor)
		} else {
			s.pauseFactor.Store(pauseFactor)
		}
		round = time.Now()
	}
}

// pause sleeps within a batch unless a search waits for it. The library makes a segment in one goroutine at a time.
func (s *Service) pause() {
	began := s.workStarted.Load()
	if began == 0 {
		return
	}
	now := time.Now()
	worked := now.Sub(time.Unix(0, began))
	if worked < workSlice {
		return
	}
	s.mu.Lock()
	urgent := s.urgent || s.handingOff.Load()
	s.mu.Unlock()
	select {
	case <-s.stop:
		urgent = true
	default:
	}
	if urgent {
		runtime.Gosched()
	} else {
		time.Sleep(time.Duration(s.pauseFactor.Load()) * min(worked, maxWorkSlice))
	}
	after := time.Now()
	s.paused.Add(int64(after.Sub(now)))
	s.workStarted.Store(after.UnixNano())
}

// sleep waits for the duration, or until a search waits for the writer, or until enough reports true, which is asked
// whenever the writer is woken. s.mu is held during enough.
func (s *Service) sleep(d time.Duration, enough func() bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	woken := false
	defer func() {
		if woken {
			s.signal() // the work is still to be done
		}
	}()
	for {
		s.mu.Lock()
		urgent := s.urgent
		s.urgent = false
		woken = woken || urgent
		done := urgent || enough != nil && enough()
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-t.C:
			return
		case <-s.stop:
			return
		case <-s.wake:
			woken = true
		}
	}
}

// hasWork reports whether a batch need not wait for more texts: an organization has enough of them, its index must be
// opened or compared, a search waits, or no text waits at all. s.mu is held.
func (s *Service) hasWork() bool {
	waiting := false
	for _, r := range s.realms {
		if !s.isDue(r) {
			continue
		}
		waiting = waiting || len(r.queue) > 0
		if len(r.queue) >= gatherTexts || r.needsCompare || r.index == nil && r.failed == nil {
			return true
		}
	}
	return !waiting || s.waitingSearches.Load() > 0 || s.handingOff.Load()
}

func (s *Service) eachRealm(fn func(*realmIndex)) {
	s.mu.Lock()
	list := make([]*realmIndex, 0, len(s.realms))
	for _, r := range s.realms {
		list = append(list, r)
	}
	s.mu.Unlock()
	for _, r := range list {
		fn(r)
	}
}

// writeSeq writes the number if it has changed without a text.
func (s *Service) writeSeq(r *realmIndex) {
	s.mu.Lock()
	at, idle := r.searchable, len(r.queue) == 0 && !r.needsCompare && r.failed == nil
	s.mu.Unlock()
	if idle && r.index != nil && at != r.indexed && s.mayWrite(r) {
		s.recordResult(r, at, r.index.Write(at, nil))
	}
}

// Find searches the state of number upto or later. next returns the topics created after a topic. ready is false if the
// index did not reach the number within searchTimeout.
func (s *Service) Find(
	id realm.ID,
	upto realm.Seq,
	text string,
	next func(after realm.TopicID) ([]realm.TopicName, error),
) (hits realm.SearchHits, marks realm.Highlighter, ready bool, err error) {
	deadline := time.NewTimer(searchTimeout)
	defer deadline.Stop()
	r, err := s.wait(id, upto, deadline.C)
	if r == nil || err != nil {
		return nil, nil, false, err
	}
	defer s.release(r)
	if err := r.topics.update(next); err != nil {
		return nil, nil, false, err
	}
	q := Parse(text)
	if q.Empty() {
		return realm.SearchHits{{}}, q.Highlights, true, nil
	}
	words, phrases, err := r.index.Find(q)
	if err != nil {
		return nil, nil, false, err
	}
	hits = make(realm.SearchHits, 0, len(words)+len(phrases))
	for i, w := range words {
		hits = append(hits, realm.SearchHit{Messages: w.Messages, Topics: r.topics.withStem(q.Words[i])})
	}
	for i, p := range phrases {
		hits = append(hits, realm.SearchHit{
			Messages:  p.Messages,
			Unbounded: p.All,
			Phrase:    q.Phrases[i],
			Topics:    r.topics.containing(q.Phrases[i]),
		})
	}
	return hits, q.Highlights, true, nil
}

// wait returns the index when it covers everything up to a number, and nil if it does not before the deadline. An index
// without error stays open until release.
func (s *Service) wait(id realm.ID, upto realm.Seq, deadline <-chan time.Time) (*realmIndex, error) {
	s.waitingSearches.Add(1)
	defer s.waitingSearches.Add(-1)
	for {
		s.mu.Lock()
		r := s.realms[id]
		if r == nil {
			s.mu.Unlock()
			return nil, fmt.Errorf("realm %d has no search index", id)
		}
		if r.failed != nil {
			s.mu.Unlock()
			return r, r.failed
		}
		if r.index != nil && (r.searchable >= upto || s.noWrites()) && !r.needsCompare {
			r.users++
			s.touch(r)
			s.mu.Unlock()
			return r, nil
		}
		moved := r.advanced
		s.urgent, r.wanted = true, r.index == nil
		s.mu.Unlock()
		s.signal()
		select {
		case <-moved:
		case <-deadline:
			return nil, nil
		case <-s.stop:
			return nil, nil
		}
	}
}

// Queued returns the number of texts that wait to be indexed, of the organization with the most.
func (s *Service) Queued() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.realms {
		n = max(n, len(r.queue))
	}
	return int64(n)
}
