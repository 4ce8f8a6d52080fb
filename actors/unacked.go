package actors

import (
	"cmp"
	"slices"

	"parley/actors/queue"
	"parley/actors/realm"
)

// Limits of kept events: what the facts since the queue farthest behind have told stays in memory, and is written with
// snapshots. Past a limit the queues farthest behind are given up, as many as it takes to come down to unackedAfterEviction of it:
// their clients hear BAD_EVENT_QUEUE_ID and register anew; it is counted (GivenUp) and logged. What one sweep of the
// queues brings may come on top, since they report once a second.
const (
	// MaxUnackedBytes is of one organization: about 25,000 messages to an organization that listens in every shard.
	MaxUnackedBytes = 512 << 20
	// MaxUnackedTotal is of all organizations. Past it each may keep an equal share, and more as long as it was less than
	// MaxUnackedBytes before somebody else grew.
	MaxUnackedTotal = 1 << 30
	// unackedAfterEviction is the part of a limit that is left when queues have been given up, so that it does not happen all the time.
	unackedAfterEviction = 0.75
	// evictionGrace is for how many seconds after a start nobody is given up, unless twice the limit is unackedEvents: until its client
	// pollBatch, nobody knows how far a queue had come, and the replay adds no more than was kept before, and snapshotDelayBytes of
	// journal. A server that never lives so long would add that each time.
	evictionGrace = 60
)

// unackedEvents is what a realm keeps for its queues.
type unackedEvents struct {
	list          []unackedFact // oldest first
	bytes         int64
	storedSeqs    []realm.Seq // those that are on disk, oldest first
	acked         [Shards]realm.Seq
	newestQueue   [Shards]realm.Seq // newest registration of each shard
	evictedBefore realm.Seq         // queues behind it have been given up
	evictingBytes int64             // bytes of what is kept for them alone, and goes when they have ended
	graceUntil    int64             // elapsed seconds until which nobody is
}

type unackedFact struct {
	realm.Told
	bytes int64
}

// evictQueues tells a shard to end the queues of a realm that have not acknowledged the facts before seq.
type evictQueues struct {
	realm realm.ID
	seq   realm.Seq
}

func (u *unackedEvents) add(t realm.Told, m *Metrics) {
	e := unackedFact{t, estimateBytes(&t)}
	u.list = append(u.list, e)
	u.bytes += e.bytes
	m.UnackedFacts.Add(1)
	m.UnackedBytes.Add(e.bytes)
}

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

func (a *realmActor) keepUnacked(t realm.Told) {
	notices := t.Notices
	if slices.ContainsFunc(notices, internalOnly) {
		notices = slices.DeleteFunc(slices.Clone(notices), internalOnly)
	}
	if len(notices) > 0 {
		a.unacked.add(realm.Told{Seq: t.Seq, Notices: notices}, &a.srv.Metrics)
	}
}

// internalOnly notices are for the sessions, not for clients.
func internalOnly(n realm.Notice) bool { return n.Event.EventType() == "" }

// handleAckReport drops kept notices that every queue has acknowledged. A report from before a queue of the shard was opened
// says nothing of that queue.
func (a *realmActor) handleAckReport(m ackReport) {
	u := &a.unacked
	if m.newest < u.newestQueue[m.shard] {
		return
	}
	u.acked[m.shard] = max(u.acked[m.shard], m.seq)
	if seq := min(m.seq, m.newest); m.confirmed && len(u.list) > 0 && u.list[0].Seq <= seq {
		a.runSystemCommand(func(t *realm.Turn) (any, error) {
			t.RecordCaughtUp(&realm.QueuesCaughtUp{Shard: m.shard, Shards: Shards, Through: seq})
			return nil, nil
		})
	}
	low, n := u.ackedThrough(), 0
	for n < len(u.list) && u.list[n].Seq <= low {
		n++
	}
	if n > 0 {
		u.drop(n, &a.srv.Metrics)
	}
}

// ackedThrough is the number up to which every queue has acknowledged everything, as far as is known.
func (u *unackedEvents) ackedThrough() realm.Seq { return slices.Min(u.acked[:]) }

// keepLoadedUnacked keeps what was kept when the organization's last process ended, but for what is known to be acknowledged.
func (a *realmActor) keepLoadedUnacked(l *loadedRealm) {
	u := &a.unacked
	u.acked = l.ackedThrough
	var listening [Shards]bool
	a.realm.EachQueue(func(q *realm.Queue) {
		i := shardOf(q.User)
		listening[i], u.newestQueue[i] = true, max(u.newestQueue[i], q.At)
	})
	for i, some := range listening {
		if !some {
			u.acked[i] = a.realm.Seq()
		}
	}
	low := u.ackedThrough()
	for i, t := range l.told {
		if i < l.toldFromRows {
			u.storedSeqs = append(u.storedSeqs, t.Seq)
		}
		switch {
		case t.Seq <= low:
		case i < l.toldFromRows:
			u.add(t, &a.srv.Metrics)
		default:
			a.keepUnacked(t)
		}
	}
}

// limitUnacked gives up the queues farthest behind when too much is kept for them.
func (a *realmActor) limitUnacked() {
	u := &a.unacked
	limit := a.srv.unackedLimit()
	if u.bytes <= limit || len(u.list) == 0 || a.srv.elapsed() < u.graceUntil && u.bytes <= 2*limit {
		return
	}
	if u.bytes-u.evictingBytes <= limit { // enough are on their way out; every turn asks until they are gone
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
	a.srv.log.Warn("too many events are kept for clients that do not fetch them: giving up the queues farthest behind",
		"realm", a.realm.ID(), "bytes", u.bytes, "limit", limit, "facts", len(u.list), "behind", uint64(seq))
	for _, s := range a.srv.shards {
		a.srv.runtime.send(s, evictQueues{a.realm.ID(), seq})
	}
}

// unackedLimit is how many bytes of events one organization may keep now.
func (srv *Server) unackedLimit() int64 {
	if srv.Metrics.UnackedBytes.Load() <= srv.maxUnackedTotal.Load() {
		return srv.maxUnackedBytes.Load()
	}
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return min(srv.maxUnackedBytes.Load(), srv.maxUnackedTotal.Load()/max(1, int64(len(srv.realms))))
}

// evictQueues ends a realm's queues that are behind.
func (s *shard) evictQueues(m evictQueues) {
	r := s.realms[m.realm]
	if r == nil {
		return
	}
	r.sessions.EachQueue(func(q *queue.Queue) {
		if !q.CloseRequested && q.AckedThrough(r.seq)+1 < m.seq {
			s.srv.Metrics.QueuesEvicted.Add(1)
			s.srv.Metrics.QueuesEvictedForMemory.Add(1)
			s.requestClose(r, q)
		}
	})
}

// encodeUnackedRows writes what a snapshot at a number must add to the kept notices on disk and remove from them, until it is
// enough for once, and reports whether that was all. Notices are kept in the order of their facts and dropped from the
// oldest on, so what is on disk is behind, at both ends.
func (a *realmActor) encodeUnackedRows(at realm.Seq, enough func() bool) bool {
	u := &a.unacked
	for ; len(u.storedSeqs) > 0 && (len(u.list) == 0 || u.storedSeqs[0] < u.list[0].Seq); u.storedSeqs = u.storedSeqs[1:] {
		if enough() {
			return false
		}
		row := a.srv.disk.EncodeUnacked(realm.Told{Seq: u.storedSeqs[0]})
		row.Value = nil
		a.addSnapshotRow(row)
	}
	next := realm.Seq(0)
	if n := len(u.storedSeqs); n > 0 {
		next = u.storedSeqs[n-1] + 1
	}
	i, _ := slices.BinarySearchFunc(u.list, next, func(t unackedFact, seq realm.Seq) int { return cmp.Compare(t.Seq, seq) })
	for ; i < len(u.list) && u.list[i].Seq <= at; i++ {
		if enough() {
			return false
		}
		a.addSnapshotRow(a.srv.disk.EncodeUnacked(u.list[i].Told))
		u.storedSeqs = append(u.storedSeqs, u.list[i].Seq)
	}
	return true
}
