package actors

import (
	"cmp"
	"slices"

	"parley/actors/delivery"
	"parley/actors/realm"
)

// Limits of unacked events. All events after the fact that the slowest queue has acknowledged stay in memory and are
// written with snapshots. When a limit is exceeded, the slowest queues are evicted until unackedAfterEviction of the
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
	// unackedAfterEviction is the part of a limit that is left after an eviction, so that evictions are rare.
	unackedAfterEviction = 0.75
	// evictionGrace is for how many seconds after a start no queue is evicted, unless twice the limit is used. The
	// server does not know what the client of a restored queue has acknowledged until the client polls. The replay adds
	// at most the events of snapshotDelayBytes of journal to the stored ones. A server that is killed within the grace
	// period each time would add them each time, hence the second limit.
	evictionGrace = 60
)

// unackedEvents are the events that a realm stores because some queue has not acknowledged them.
type unackedEvents struct {
	list            []unackedFact // by seq
	bytes           int64
	storedSeqs      []realm.Seq              // facts whose events are on disk, by seq
	toDelete        []realm.Seq              // facts whose events are on disk and must be deleted; see dropFactsOfFew
	acked           [SessionActors]realm.Seq // fact that every queue of the session actor has acknowledged
	newestQueue     [SessionActors]realm.Seq // newest registration of each session actor
	generation      uint64                   // of the queues of this node; counts openLocalQueues and replaceQueues
	sentGenerations [SessionActors]uint64    // newest generation that each session actor was sent
	evictedBefore   realm.Seq                // queues behind this fact have been evicted
	evictingBytes   int64                    // bytes of the events before it, dropped when those queues are closed
	graceUntil      int64                    // elapsed seconds; see evictionGrace

	newest          realm.Seq                // newest fact with events
	journaled       [SessionActors]realm.Seq // acked as the journal has it; see journalAcks
	journaledNewest realm.Seq                // the journal records that every queue has acknowledged up to this fact
}

// unackedFact is the events of one fact, with an estimate of their memory.
type unackedFact struct {
	realm.Publication
	bytes int64
}

// evictQueues makes a replica close the queues that have not acknowledged the facts before one.
type evictQueues struct{ seq realm.Seq }

// add appends the events of the newest fact.
func (u *unackedEvents) add(t realm.Publication, m *Metrics) {
	e := unackedFact{t, estimateBytes(&t)}
	u.newest = t.Seq
	u.list = append(u.list, e)
	u.bytes += e.bytes
	m.UnackedFacts.Add(1)
	m.UnackedBytes.Add(e.bytes)
}

// drop removes the n oldest facts.
func (u *unackedEvents) drop(n int, m *Metrics) {
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
func (u *unackedEvents) dropThrough(seq realm.Seq, m *Metrics) {
	n := 0
	for n < len(u.list) && u.list[n].Seq <= seq {
		n++
	}
	if n > 0 {
		u.drop(n, m)
	}
}

// storeUnacked stores the events of a fact until every queue has acknowledged them.
func (a *realmActor) storeUnacked(t realm.Publication) {
	notices := t.Notices
	if slices.ContainsFunc(notices, delivery.Internal) {
		notices = slices.DeleteFunc(slices.Clone(notices), delivery.Internal)
	}
	if len(notices) > 0 {
		a.unacked.add(realm.Publication{Seq: t.Seq, Notices: notices}, &a.srv.Metrics)
	}
}

// handleAckReport drops the events that every queue has acknowledged. It ignores a report that is older than the newest
// queue of the session actor, because the report does not include that queue. A confirmed report is journaled, so that
// the next start does not restore acknowledged events.
func (a *realmActor) handleAckReport(m delivery.AckReport) {
	u := &a.unacked
	if a.standby {
		a.replicaClients.handleAckReport(m)
		return
	}
	if m.Newest < u.newestQueue[m.SessionActor] || m.Generation < u.sentGenerations[m.SessionActor] {
		return
	}
	u.acked[m.SessionActor] = max(u.acked[m.SessionActor], m.Seq)
	seq := min(m.Seq, m.Newest, a.homes.lowest(m.SessionActor))
	if m.Confirmed && len(u.list) > 0 && u.list[0].Seq <= seq {
		a.runSystemCommand(func(t *realm.Turn) (any, error) {
			t.RecordCaughtUp(&realm.QueuesCaughtUp{Actor: m.SessionActor, Actors: SessionActors, Through: seq})
			return nil, nil
		})
	}
	a.dropUnacked()
}

// dropUnacked drops the events that all queues of this node and of all edges have acknowledged.
func (a *realmActor) dropUnacked() {
	u := &a.unacked
	low := u.ackedThrough()
	for k := range SessionActors {
		low = min(low, a.homes.lowest(k))
	}
	u.dropThrough(low, &a.srv.Metrics)
}

// ackedThrough returns the fact up to which, as far as is known, every queue of this node has acknowledged everything.
func (u *unackedEvents) ackedThrough() realm.Seq { return slices.Min(u.acked[:]) }

// storedSeqs returns the numbers of the facts whose unacked events are in the loaded rows.
func (l *loadedRealm) storedSeqs() (out []realm.Seq) {
	for _, t := range l.publications[:l.fromRows] {
		out = append(out, t.Seq)
	}
	return out
}

// restoreUnacked stores the events that were unacked when the previous process of the organization ended, except those
// that are acknowledged according to the journal.
func (a *realmActor) restoreUnacked(l *loadedRealm) {
	u := &a.unacked
	u.acked = l.ackedThrough
	var hasQueue [SessionActors]bool
	a.realm.EachQueue(func(q *realm.Queue) {
		i := delivery.ActorOf(q.User)
		hasQueue[i], u.newestQueue[i] = true, max(u.newestQueue[i], q.At)
		a.homes.countLocal(q.User, 1)
	})
	for i, has := range hasQueue {
		if !has {
			u.acked[i] = a.realm.Seq()
		}
	}
	low := u.ackedThrough()
	u.storedSeqs = l.storedSeqs()
	for i, t := range l.publications {
		switch {
		case t.Seq <= low:
		case i < l.fromRows:
			u.add(t, &a.srv.Metrics)
		default:
			a.storeUnacked(t)
		}
	}
}

// limitUnacked evicts the slowest queues when too many events are stored for them: of one account, or of all.
func (a *realmActor) limitUnacked() {
	u := &a.unacked
	a.limitAccounts()
	limit := a.srv.unackedLimit()
	if u.bytes <= limit || len(u.list) == 0 || a.srv.elapsed() < u.graceUntil && u.bytes <= 2*limit {
		return
	}
	if u.bytes-u.evictingBytes <= limit { // enough queues are closing already
		return
	}
	left, n := u.bytes, 0
	for n < len(u.list)-1 && float64(left) > float64(limit)*unackedAfterEviction {
		left -= u.list[n].bytes
		n++
	}
	seq := u.list[n].Seq
	if seq <= u.evictedBefore {
		return
	}
	u.evictedBefore, u.evictingBytes = seq, u.bytes-left
	a.srv.log.Warn("too many unacked events: evicting the slowest queues",
		"realm", a.realm.ID(), "bytes", u.bytes, "limit", limit, "facts", len(u.list), "behind", uint64(seq))
	a.handle.sessions.SendAll(delivery.Evict{Before: seq})
	for e := range a.homes.acks {
		e.link.EvictQueues(a.realm.ID(), seq)
	}
}

// EvictQueues closes the queues of a realm on this node that have not acknowledged the facts before one, because the
// owner stores too many events for them.
func (srv *Server) EvictQueues(id realm.ID, before realm.Seq) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.Send(r.pid, evictQueues{before})
	}
}

// UnackedLimit returns how many bytes of unacked events all organizations together may have.
func (srv *Server) UnackedLimit() int64 { return srv.maxUnackedTotal.Load() }

// unackedLimit returns how many bytes of unacked events one organization may have now.
func (srv *Server) unackedLimit() int64 {
	if srv.Metrics.UnackedBytes.Load() <= srv.maxUnackedTotal.Load() {
		return srv.maxUnackedBytes.Load()
	}
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return min(srv.maxUnackedBytes.Load(), srv.maxUnackedTotal.Load()/max(1, int64(len(srv.realms))))
}

// encodeUnackedRows adds the changes of the unacked events to a snapshot at the fact at: rows to write and rows to
// delete. It stops when enough returns true, and reports whether it is done. New events are appended and the oldest are
// dropped, so the rows on disk differ from the list only at both ends.
func (a *realmActor) encodeUnackedRows(at realm.Seq, enough func() bool) bool {
	u := &a.unacked
	for len(u.toDelete) > 0 {
		if enough() {
			return false
		}
		a.addSnapshotRow(a.deletedUnackedRow(u.toDelete[0]))
		u.toDelete = u.toDelete[1:]
	}
	for u.hasObsoleteRows() {
		if enough() {
			return false
		}
		a.addSnapshotRow(a.deletedUnackedRow(u.storedSeqs[0]))
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
		a.addSnapshotRow(a.srv.disk.EncodeUnacked(u.list[i].Publication))
		u.storedSeqs = append(u.storedSeqs, u.list[i].Seq)
	}
	return true
}

// hasObsoleteRows reports whether rows on disk have events that every queue has acknowledged.
func (u *unackedEvents) hasObsoleteRows() bool {
	return len(u.toDelete) > 0 || len(u.storedSeqs) > 0 && (len(u.list) == 0 || u.storedSeqs[0] < u.list[0].Seq)
}

// deletedUnackedRow returns the row with which a snapshot deletes the events of a fact.
func (a *realmActor) deletedUnackedRow(seq realm.Seq) realm.EncodedRow {
	row := a.srv.disk.EncodeUnacked(realm.Publication{Seq: seq})
	row.Value = nil
	return row
}
