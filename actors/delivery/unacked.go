package delivery

import (
	"cmp"
	"slices"
	"sync/atomic"

	"parley/actors/realm"
)

// Limits of unacked events. All events after the fact that the slowest queue has acknowledged stay in memory and are
// written with snapshots. When a limit is exceeded, the slowest queues are evicted until afterEviction of the
// limit is used. Their clients get BAD_EVENT_QUEUE_ID and register again; each eviction is counted (QueuesEvicted) and
// logged. Session actors report acknowledgements once a second, so the limits may be exceeded by the events of one
// second.
const (
	// MaxUnackedTotal is the default of Options.UnackedBytes, which limits all organizations together. Beyond it each
	// organization may use an equal share of it.
	MaxUnackedTotal = 1 << 30
	// unackedShare is the part of the total that one organization can use: the default is about 25,000 messages if
	// every session actor has users with queues.
	unackedShare = 2
	// EvictionGrace is for how many seconds after a start no queue is evicted, unless twice the limit is used. The
	// server does not know the acknowledgements of the client of a restored queue until the client polls. The replay
	// adds at most the events of snapshotDelayBytes of journal to the stored ones. A server that is killed within the
	// grace period each time would add them each time, hence the second limit.
	EvictionGrace = 60
)

// unacked are the events that a realm stores because some queue has not acknowledged them.
type unacked struct {
	list          []unackedFact // by seq
	bytes         int64
	storedSeqs    []realm.Seq              // facts whose events are on disk, by seq
	toDelete      []realm.Seq              // facts whose events are on disk and must be deleted; see dropFactsOfFew
	acked         [SessionActors]realm.Seq // fact that every queue of the session actor has acknowledged
	newestQueue   [SessionActors]realm.Seq // newest registration of each session actor
	evictedBefore realm.Seq                // queues behind this fact have been evicted
	evictingBytes int64                    // bytes of the events before it, dropped when those queues are closed
	graceUntil    int64                    // elapsed seconds; see EvictionGrace

	newest          realm.Seq                // newest fact with events
	journaled       [SessionActors]realm.Seq // acked as the journal has it; see journalAcks
	journaledNewest realm.Seq                // the journal records that every queue has acknowledged up to this fact
}

// unackedFact is the events of one fact, with an estimate of their memory.
type unackedFact struct {
	realm.Publication
	bytes int64
}

// add appends the events of the newest fact.
func (u *unacked) add(t realm.Publication, m *Metrics) {
	e := unackedFact{t, estimateBytes(&t)}
	u.newest = t.Seq
	u.list = append(u.list, e)
	u.bytes += e.bytes
	m.UnackedFacts.Add(1)
	m.UnackedBytes.Add(e.bytes)
}

// drop removes the n oldest facts.
func (u *unacked) drop(n int, m *Metrics) {
	for i := range u.list[:n] {
		u.bytes -= u.list[i].bytes
		if u.list[i].Seq < u.evictedBefore {
			u.evictingBytes -= u.list[i].bytes
		}
		m.UnackedBytes.Add(-u.list[i].bytes)
	}
	clear(u.list[:n])
	u.list = u.list[n:]
	m.UnackedFacts.Add(int64(-n))
}

// dropThrough removes the facts up to a number.
func (u *unacked) dropThrough(seq realm.Seq, m *Metrics) {
	n := 0
	for n < len(u.list) && u.list[n].Seq <= seq {
		n++
	}
	if n > 0 {
		u.drop(n, m)
	}
}

// store stores the events of a fact until every queue has acknowledged them.
func (o *Owned) store(t realm.Publication) {
	notices := t.Notices
	if slices.ContainsFunc(notices, Internal) {
		notices = slices.DeleteFunc(slices.Clone(notices), Internal)
	}
	if len(notices) > 0 {
		o.unacked.add(realm.Publication{Seq: t.Seq, Notices: notices}, o.all.env.Metrics)
	}
}

// HandleOwned drops the events that every queue has acknowledged. It ignores a report that is older than the newest
// queue of the session actor, because the report does not include that queue. A confirmed report is journaled, so that
// the next start does not restore acknowledged events.
func (m AckReport) HandleOwned(o *Owned) {
	u := &o.unacked
	if m.Newest < u.newestQueue[m.SessionActor] || m.Opening < o.all.opened[m.SessionActor] {
		return
	}
	u.acked[m.SessionActor] = max(u.acked[m.SessionActor], m.Seq)
	seq := min(m.Seq, m.Newest, o.homes.lowest(m.SessionActor))
	if m.Confirmed && len(u.list) > 0 && u.list[0].Seq <= seq {
		o.main.Run(func(t *realm.Turn) (any, error) {
			t.RecordCaughtUp(&realm.QueuesCaughtUp{Actor: m.SessionActor, Actors: SessionActors, Through: seq})
			return nil, nil
		})
	}
	o.DropAcknowledged()
}

// DropAcknowledged drops the events that all queues of this node and of all other nodes have acknowledged.
func (o *Owned) DropAcknowledged() {
	u := &o.unacked
	low := u.ackedThrough()
	for k := range SessionActors {
		low = min(low, o.homes.lowest(k))
	}
	u.dropThrough(low, o.all.env.Metrics)
}

// ackedThrough returns the fact up to which, as far as is known, every queue of this node has acknowledged everything.
func (u *unacked) ackedThrough() realm.Seq { return slices.Min(u.acked[:]) }

// Restore stores the events that were unacked when the previous process of the organization ended, except those that
// are acknowledged according to the journal. The first stored publications are those whose events are in the rows on
// disk; acked has the acknowledgements in the journal, by session actor.
func (o *Owned) Restore(publications []realm.Publication, stored int, acked [SessionActors]realm.Seq) {
	u := &o.unacked
	u.acked = acked
	o.ackEmpty()
	o.main.Realm().EachQueue(func(q *realm.Queue) { o.homes.countLocal(q.User, 1) })
	low := u.ackedThrough()
	o.SetStored(publications[:stored])
	for i, t := range publications {
		switch {
		case t.Seq <= low:
		case len(t.Notices) == 0: // stored by an earlier program for no user
			u.dropStored(t.Seq)
		case i < stored:
			u.add(t, o.all.env.Metrics)
		default:
			o.store(t)
		}
	}
}

// dropStored makes the next snapshot delete the stored events of a fact, although older ones are needed.
func (u *unacked) dropStored(seq realm.Seq) {
	if i, found := slices.BinarySearch(u.storedSeqs, seq); found {
		u.storedSeqs = slices.Delete(u.storedSeqs, i, i+1)
		u.toDelete = append(u.toDelete, seq)
	}
}

// SetStored records the publications whose events are in the rows on disk.
func (o *Owned) SetStored(list []realm.Publication) {
	o.unacked.storedSeqs = nil
	for _, t := range list {
		o.unacked.storedSeqs = append(o.unacked.storedSeqs, t.Seq)
	}
}

// Limit evicts the slowest queues when too many events are stored for them: of one account, or of all.
func (o *Owned) Limit() {
	u := &o.unacked
	o.limitAccounts()
	limit := o.all.env.realmLimit()
	if u.bytes <= limit || len(u.list) == 0 || o.all.env.elapsed() < u.graceUntil && u.bytes <= 2*limit {
		return
	}
	if u.bytes-u.evictingBytes <= limit { // enough queues are closing already
		return
	}
	left, n := u.bytes, 0
	for n < len(u.list)-1 && float64(left) > float64(limit)*afterEviction {
		left -= u.list[n].bytes
		n++
	}
	seq := u.list[n].Seq
	if seq <= u.evictedBefore {
		return
	}
	u.evictedBefore, u.evictingBytes = seq, u.bytes-left
	o.all.env.Log.Warn("too many unacked events: evicting the slowest queues",
		"realm", o.all.Realm, "bytes", u.bytes, "limit", limit, "facts", len(u.list), "behind", uint64(seq))
	o.all.SendAll(Evict{Before: seq})
	for home := range o.homes.acks {
		home.EvictQueues(o.all.Realm, seq)
	}
}

// realmLimit returns how many bytes of unacked events one organization may have now.
func (e *Env) realmLimit() int64 {
	if e.Metrics.UnackedBytes.Load() <= e.Limits.Total.Load() {
		return e.Limits.Realm.Load()
	}
	return min(e.Limits.Realm.Load(), e.Limits.Total.Load()/max(1, int64(e.Node.Realms())))
}

// Limits are the limits of the unacknowledged events, in bytes: of one organization, of all and of one account. Tests
// lower them while actors read them.
type Limits struct{ Realm, Total, Account atomic.Int64 }

// Set sets the limits that follow from that of all organizations.
func (l *Limits) Set(total int64) {
	l.Realm.Store(total / unackedShare)
	l.Total.Store(total)
	l.Account.Store(total / unackedShare / unackedAccountShare)
}

// EncodeRows passes the changes of the unacked events in a snapshot at the fact at to add: rows to write and, without a
// value, rows to delete. It stops when enough returns true, and reports whether it is done. New events are appended and
// the oldest are dropped, so the rows on disk differ from the list only at both ends.
func (o *Owned) EncodeRows(at realm.Seq, encode func(realm.Publication) realm.EncodedRow, add func(realm.EncodedRow),
	enough func() bool,
) bool {
	u := &o.unacked
	remove := func(seq realm.Seq) {
		row := encode(realm.Publication{Seq: seq})
		row.Value = nil
		add(row)
	}
	for len(u.toDelete) > 0 {
		if enough() {
			return false
		}
		remove(u.toDelete[0])
		u.toDelete = u.toDelete[1:]
	}
	for o.HasObsoleteRows() {
		if enough() {
			return false
		}
		remove(u.storedSeqs[0])
		u.storedSeqs = u.storedSeqs[1:]
	}
	next := realm.Seq(0)
	if n := len(u.storedSeqs); n > 0 {
		next = u.storedSeqs[n-1] + 1
	}
	bySeq := func(t unackedFact, seq realm.Seq) int { return cmp.Compare(t.Seq, seq) }
	i, _ := slices.BinarySearchFunc(u.list, next, bySeq)
	for ; i < len(u.list) && u.list[i].Seq <= at; i++ {
		if enough() {
			return false
		}
		add(encode(u.list[i].Publication))
		u.storedSeqs = append(u.storedSeqs, u.list[i].Seq)
	}
	return true
}

// HasObsoleteRows reports whether rows on disk have events that every queue has acknowledged.
func (o *Owned) HasObsoleteRows() bool {
	u := &o.unacked
	return len(u.toDelete) > 0 || len(u.storedSeqs) > 0 && (len(u.list) == 0 || u.storedSeqs[0] < u.list[0].Seq)
}
