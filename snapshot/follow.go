package snapshot

import (
	"errors"
	"sync"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

const (
	// FollowedBytes is how many bytes of the newest batches are kept in memory for the followers of a realm, once for
	// all of them. A follower that is further behind reads the journal.
	FollowedBytes = 4 << 20
	// maxFollowedBatch limits the facts in a batch that is read from the journal, in bytes, so that it fits the message
	// of a link.
	maxFollowedBatch = 128 << 10
	// maxJournalReaders is how many followers read the journal at the same time. When the leadership of a cluster
	// changes, those of thousands of organizations want to: more at once are no faster, and each holds an iterator and
	// competes for the lock of the store.
	maxJournalReaders = 16
)

// ErrFollowStopped is the end of a Follow that its caller has stopped.
var ErrFollowStopped = errors.New("following was stopped")

// feeds has a feed for every realm that is followed. It is one lock for all of them, held for moments.
type feeds struct {
	mu      sync.Mutex
	realm   map[realm.ID]*feed
	readers chan struct{} // has room for maxJournalReaders
}

// feed is the newest committed batches of one realm. They are read only.
type feed struct {
	last      realm.Seq // the last fact that was committed, as far as the feed knows
	batches   []realm.Batch
	bytes     int
	followers map[*follower]struct{}
}

// follower is one caller of Follow.
type follower struct {
	wake chan struct{} // has room for one
	stop chan struct{}
	once sync.Once
}

// commit adds committed batches, and wakes the followers.
func (f *feeds) commit(batches []realm.Batch, errs []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.realm) == 0 {
		return
	}
	for i := range batches {
		if x := f.realm[batches[i].Realm]; x != nil && errs[i] == nil {
			x.add(batches[i])
		}
	}
}

// has reports whether a realm has followers.
func (f *feeds) has(id realm.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.realm[id] != nil
}

// add adds a batch, unless a reader of the journal may have seen it before the feed began. If it does not continue the
// feed, the feed begins with it: the followers read the journal in between.
func (x *feed) add(b realm.Batch) {
	if b.Last() > x.last {
		if b.After != x.last {
			x.batches, x.bytes = nil, 0
		}
		x.batches, x.bytes, x.last = append(x.batches, b), x.bytes+batchBytes(&b), b.Last()
		for len(x.batches) > 0 && x.bytes > FollowedBytes {
			x.bytes -= batchBytes(&x.batches[0])
			x.batches[0] = realm.Batch{}
			x.batches = x.batches[1:]
		}
	}
	for w := range x.followers {
		select {
		case w.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// batchBytes estimates the memory of a batch.
func batchBytes(b *realm.Batch) int {
	n := 200
	for _, f := range b.Facts {
		n += 24 + len(f)
	}
	for _, t := range b.Texts {
		n += 40
		if t.Body != nil {
			n += len(t.Body.Text) + len(t.Body.HTML)
		}
	}
	return n
}

// follow adds a follower.
func (f *feeds) follow(id realm.ID) *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.realm[id]
	if x == nil {
		x = &feed{followers: map[*follower]struct{}{}}
		if f.realm == nil {
			f.realm = map[realm.ID]*feed{}
		}
		f.realm[id] = x
	}
	w := &follower{wake: make(chan struct{}, 1), stop: make(chan struct{})}
	x.followers[w] = struct{}{}
	return w
}

// unfollow removes a follower, and the feed with the last one.
func (f *feeds) unfollow(id realm.ID, w *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.realm[id]
	if delete(x.followers, w); len(x.followers) == 0 {
		delete(f.realm, id)
	}
}

// after returns the batches after a fact. It reports false if they must be read from the journal.
func (f *feeds) after(id realm.ID, seq realm.Seq) ([]realm.Batch, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.realm[id]
	if x.last > 0 && seq >= x.last { // the journal may have a commit that the feed gets in a moment
		return nil, true
	}
	for i := range x.batches {
		if x.batches[i].After == seq {
			return append([]realm.Batch{}, x.batches[i:]...), true
		}
	}
	return nil, false
}

// Follow calls fn with every batch of a realm after a fact: first from the journal, then as they are committed, in
// order and without a gap. One goroutine calls fn; a slow one delays only itself, and takes no more memory. It ends
// with the first error of fn, with ErrFollowStopped after stop, with ErrClosed, and with realm.ErrBehind if the facts
// are not in the journal any more. Then it calls done once. stop may be called more than once and does not wait.
//
// A batch from the journal has the facts of one clock reading and rule level, which may be of several turns, and the
// present texts: of an erased text it has the erasure.
func (d Disk) Follow(id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error)) (stop func()) {
	w := d.feeds.follow(id)
	go func() {
		err := d.follow(id, after, w, fn)
		d.feeds.unfollow(id, w)
		done(err)
	}()
	return func() { w.once.Do(func() { close(w.stop) }) }
}

// follow is Follow in its goroutine.
func (d Disk) follow(id realm.ID, after realm.Seq, w *follower, fn func(realm.Batch) error) error {
	for {
		batches, current := d.feeds.after(id, after)
		if !current {
			select {
			case d.feeds.readers <- struct{}{}:
			case <-w.stop:
				return ErrFollowStopped
			case <-d.closing:
				return ErrClosed
			}
			var err error
			batches, err = d.journalBatches(id, after)
			<-d.feeds.readers
			if err != nil {
				return err
			}
		}
		for _, b := range batches {
			select {
			case <-w.stop:
				return ErrFollowStopped
			case <-d.closing:
				return ErrClosed
			default:
			}
			if err := fn(b); err != nil {
				return err
			}
			after = b.Last()
		}
		if len(batches) > 0 {
			continue
		}
		select {
		case <-w.wake:
		case <-w.stop:
			return ErrFollowStopped
		case <-d.closing:
			return ErrClosed
		}
	}
}

// journalBatches reads the next batches after a fact from the journal; none if it ends there.
func (d Disk) journalBatches(id realm.ID, after realm.Seq) (list []realm.Batch, err error) {
	bytes := 0
	err = d.Store.Tail(id, after, func(r Record) error {
		if bytes > 0 && bytes+len(r.Fact) > maxFollowedBatch {
			return errEnough
		}
		bytes += len(r.Fact)
		next := realm.Batch{
			Realm: id, After: r.Seq - 1, Now: r.Now, Level: r.Level,
			Facts: [][]byte{append([]byte{}, r.Fact...)},
		}
		if r.Request != "" {
			next.Requests = []realm.Request{{ID: r.Request, Seq: r.Seq}}
		}
		f, err := codec.DecodeFact(r.Fact)
		if err != nil {
			return err
		}
		if next.Texts, err = realm.StoredTexts(f, func(ref realm.BodyRef) (realm.Body, bool, error) {
			return d.Text(id, ref)
		}); err != nil {
			return err
		}
		if n := len(list); n == 0 || !list[n-1].Join(next) {
			list = append(list, next)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, behind(err)
}

// EachRow calls fn with every row of a realm, with presence and unacked events, as of its last snapshot. It returns the
// number of the last fact that the rows contain. Snapshots and appends continue while fn runs.
func (d Disk) EachRow(id realm.ID, fn func(realm.EncodedRow) error) (realm.Seq, error) {
	return d.Store.rowsAtOneMoment(id, fn)
}
