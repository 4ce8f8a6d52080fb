package actors

import (
	"cmp"
	"slices"

	"parley/actors/queue"
	"parley/actors/realm"
)

// Limits of one account's unacked events. The bytes of an event are divided between the accounts that have not
// acknowledged it: its recipients, if these are few, and else every account whose slowest queue is behind it, because
// the events are dropped in order. Beyond a limit the oldest queues of the account are evicted until
// unackedAfterEviction of it is left. Queues of other accounts are not evicted for it. Queues that an edge keeps have
// the limits of their organization and their own only.
const (
	// unackedAccountShare is the part of an organization's bytes that one account can use: by default 64 MiB. That is
	// some thousand messages if no other account is behind, and more than any client can fetch usefully.
	unackedAccountShare = 8
	// MaxUnackedRefs is how many events may wait in all queues of one account: 20 full queues, or 6 MB. Each queue
	// refers to its events, which the bytes of the events do not include.
	MaxUnackedRefs = 20 * queue.MaxUnacked
	// weighPause is for how many seconds the accounts of an organization are not weighed again. It takes some
	// milliseconds of several turns if very much is stored.
	weighPause = 5
	// weighedPerTurn is how many facts are weighed in one turn: about a millisecond.
	weighedPerTurn = 4096
	// maxFewRecipients is how many recipients a fact may have so that its bytes count for these only, and that it is
	// dropped when they have acknowledged it, even if an older one is still needed. These are direct messages, and what
	// users change for themselves; a user could fill the organization's share with them.
	maxFewRecipients = 16
	// maxAccountsEvicted is how many accounts lose queues after one weighing, the largest first.
	maxAccountsEvicted = 16
)

// weighQueues asks a session actor how far the accounts of a realm are behind.
type weighQueues struct {
	realm *realmHandle
	round uint64
}

// accountBehind is one account that has not acknowledged everything.
type accountBehind struct {
	user  realm.UserID
	acked realm.Seq // fact that every queue of the account has acknowledged
	open  realm.Seq // the same without the queues that are closing; noQueue: it has no others
	bytes int64     // its part of the unacked events
	// sharedBefore is accountWeighing.shared as it was before the first fact that the account has not acknowledged.
	sharedBefore int64
}

// behindReport is the answer to weighQueues.
type behindReport struct {
	shard    int
	round    uint64
	newest   realm.Seq       // newest fact that the session actor has received
	accounts []accountBehind // by open
}

// weighStep makes the realm actor weigh further facts.
type weighStep struct{ round uint64 }

// accountWeighing finds out how many bytes of unacked events each account uses. It belongs to the realm actor.
type accountWeighing struct {
	round    uint64
	running  bool
	notUntil int64 // elapsed seconds
	missing  int   // session actors that have not reported
	takes    uint64
	newest   [Shards]realm.Seq
	accounts [Shards][]accountBehind
	passed   [Shards]int // accounts of each list that are behind the next fact
	behind   map[realm.UserID]*accountBehind
	done     realm.Seq    // facts up to this one are weighed
	shared   int64        // bytes so far of an account that has acknowledged none, without facts for few recipients
	parts    []weighedSeq // by seq
	unneeded []realm.Seq  // facts that none of their recipients needs
}

// weighedSeq is the bytes of a fact that count for each account that has not acknowledged it.
type weighedSeq struct {
	seq   realm.Seq
	bytes int64
	few   bool // they count for its recipients only
}

// accountLimit returns how many bytes of unacked events one account of an organization may use now.
func (srv *Server) accountLimit() int64 {
	most := srv.maxUnackedBytes.Load()
	if limit := srv.unackedLimit(); limit < most {
		return int64(float64(srv.maxUnackedAccount.Load()) * float64(limit) / float64(most))
	}
	return srv.maxUnackedAccount.Load()
}

// LargestAccountBytes returns the bytes of unacked events of the account with the most of all organizations, as of the
// last time that the accounts were weighed. They are not weighed where no account can have more than its share.
func (srv *Server) LargestAccountBytes() (most int64) {
	srv.eachRealm(func(r *realmHandle) { most = max(most, r.largestAccount.Load()) })
	return most
}

// AccountLimit returns how many bytes of unacked events one account may use if its organization may use all of its
// share.
func (srv *Server) AccountLimit() int64 { return srv.maxUnackedAccount.Load() }

// limitAccounts begins to weigh the accounts, if one of them can have more than its share.
func (a *realmActor) limitAccounts() {
	w := &a.weighing
	now, limit := a.srv.elapsed(), a.srv.accountLimit()
	if a.unacked.bytes <= limit {
		a.handle.largestAccount.Store(0)
	}
	if a.unacked.bytes <= limit || w.running || now < w.notUntil || a.standby ||
		now < a.unacked.graceUntil && a.unacked.bytes <= 2*limit {
		return
	}
	*w = accountWeighing{round: w.round + 1, running: true, notUntil: now + weighPause, missing: Shards,
		takes: a.unacked.takes, behind: map[realm.UserID]*accountBehind{}}
	for _, s := range a.handle.shards {
		a.srv.runtime.send(s, weighQueues{a.handle, w.round})
	}
}

// weighQueues reports the accounts of a realm that are behind.
func (s *shard) weighQueues(m weighQueues) {
	report := &behindReport{shard: s.index, round: m.round}
	if r := s.realms[m.realm.id]; r != nil {
		report.newest = r.seq
		x := accountBehind{open: noQueue}
		add := func() {
			if x.acked < noQueue && x.user != 0 {
				report.accounts = append(report.accounts, x)
			}
		}
		r.sessions.EachQueue(func(q *queue.Queue) { // the queues of a user follow each other
			if q.UnackedCount() == 0 && !q.Restored() {
				return
			}
			if q.Reg.User != x.user {
				add()
				x = accountBehind{user: q.Reg.User, acked: noQueue, open: noQueue}
			}
			acked := q.AckedThrough(r.seq)
			x.acked = min(x.acked, acked)
			if !q.CloseRequested {
				x.open = min(x.open, acked)
			}
		})
		add()
		slices.SortFunc(report.accounts, func(x, y accountBehind) int { return cmp.Compare(x.open, y.open) })
	}
	s.srv.runtime.send(m.realm.pid, report)
}

// handleBehindReport begins to weigh the facts when every session actor has reported.
func (a *realmActor) handleBehindReport(m *behindReport) {
	w := &a.weighing
	if !w.running || m.round != w.round {
		return
	}
	w.newest[m.shard], w.accounts[m.shard] = m.newest, m.accounts
	for i := range m.accounts {
		w.behind[m.accounts[i].user] = &m.accounts[i]
	}
	if w.missing--; w.missing == 0 {
		a.weighFacts()
	}
}

// weighFacts weighs some facts, and then the next ones in another turn.
func (a *realmActor) weighFacts() {
	w, list := &a.weighing, a.unacked.list
	if a.standby || a.reloading || w.takes != a.unacked.takes { // the reports are about other queues
		a.endWeighing()
		return
	}
	first := a.unacked.indexAfter(w.done)
	for _, t := range list[first:min(first+weighedPerTurn, len(list))] {
		w.weigh(&t)
		w.done = t.Seq
	}
	if first+weighedPerTurn < len(list) {
		a.srv.runtime.send(a.handle.pid, weighStep{w.round})
		return
	}
	a.dropUnneeded()
	a.evictAccounts()
	a.endWeighing()
}

// endWeighing releases the memory of a weighing.
func (a *realmActor) endWeighing() {
	a.weighing = accountWeighing{round: a.weighing.round, notUntil: a.weighing.notUntil}
}

// weigh divides the bytes of a fact between the accounts that have not acknowledged it.
func (w *accountWeighing) weigh(t *unackedFact) {
	holders := 0
	for k := range w.accounts {
		list := w.accounts[k]
		for w.passed[k] < len(list) && list[w.passed[k]].open < t.Seq {
			list[w.passed[k]].sharedBefore = w.shared
			w.passed[k]++
		}
		holders += w.passed[k]
	}
	to := fewRecipients(t)
	if to == nil {
		if holders > 0 {
			part := t.bytes / int64(holders)
			w.shared += part
			w.parts = append(w.parts, weighedSeq{t.Seq, part, false})
		}
		return
	}
	needed := false
	var open []*accountBehind
	for _, u := range to {
		x := w.behind[u]
		needed = needed || t.Seq > w.newest[shardOf(u)] || x != nil && x.acked < t.Seq
		if x != nil && x.open < t.Seq {
			open = append(open, x)
		}
	}
	if !needed {
		w.unneeded = append(w.unneeded, t.Seq)
		return
	}
	for _, x := range open {
		x.bytes += t.bytes / int64(len(open))
	}
	if len(open) > 0 {
		w.parts = append(w.parts, weighedSeq{t.Seq, t.bytes / int64(len(open)), true})
	}
}

// fewRecipients returns the recipients of a fact's events, or nil if they are more than maxFewRecipients.
func fewRecipients(t *unackedFact) []realm.UserID {
	if len(t.Notices) == 1 {
		if to := t.Notices[0].To; len(to) > 0 && len(to) <= maxFewRecipients {
			return to
		}
		return nil
	}
	var all []realm.UserID
	for _, n := range t.Notices {
		for _, u := range n.To {
			if !slices.Contains(all, u) {
				if len(all) == maxFewRecipients {
					return nil
				}
				all = append(all, u)
			}
		}
	}
	return all
}

// dropUnneeded drops facts that all their few recipients have acknowledged, between others that are needed. Where edges
// keep queues it drops none: the session actors of this node know nothing of those.
func (a *realmActor) dropUnneeded() {
	if u := &a.unacked; len(a.weighing.unneeded) > 0 && !a.handle.hasEdges.Load() && len(a.homes.edges) == 0 {
		u.dropFacts(a.weighing.unneeded, &a.srv.Metrics)
	}
}

// dropFacts removes facts from the list. seqs is sorted.
func (u *unackedEvents) dropFacts(seqs []realm.Seq, m *Metrics) {
	in := func(seq realm.Seq) bool {
		_, found := slices.BinarySearch(seqs, seq)
		return found
	}
	before := len(u.list)
	u.list = slices.DeleteFunc(u.list, func(t unackedFact) bool {
		if !in(t.Seq) {
			return false
		}
		u.bytes -= t.bytes
		if t.Seq < u.evictedBefore {
			u.evictingBytes -= t.bytes
		}
		m.UnackedBytes.Add(-t.bytes)
		return true
	})
	m.UnackedFacts.Add(int64(len(u.list) - before))
	u.storedSeqs = slices.DeleteFunc(u.storedSeqs, func(seq realm.Seq) bool {
		if !in(seq) {
			return false
		}
		u.toDelete = append(u.toDelete, seq)
		return true
	})
}

// evictAccounts evicts the oldest queues of the accounts that have more than their share.
func (a *realmActor) evictAccounts() {
	w := &a.weighing
	limit, most := a.srv.accountLimit(), int64(0)
	var over []*accountBehind
	for k, list := range w.accounts {
		for i := range list {
			x := &list[i]
			if i < w.passed[k] {
				x.bytes += w.shared - x.sharedBefore
			}
			if most = max(most, x.bytes); x.bytes > limit && x.open != noQueue {
				over = append(over, x)
			}
		}
	}
	a.handle.largestAccount.Store(most)
	slices.SortFunc(over, func(x, y *accountBehind) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.user, y.user))
	})
	for _, x := range over[:min(len(over), maxAccountsEvicted)] {
		before := a.evictedBefore(x, limit)
		a.srv.log.Warn("too many unacked events of an account: evicting its oldest queues", "realm", a.realm.ID(),
			"user", int64(x.user), "bytes", x.bytes, "limit", limit, "behind", uint64(before))
		a.srv.runtime.send(a.handle.shards[shardOf(x.user)], evictQueues{a.realm.ID(), before, x.user})
	}
}

// evictedBefore returns the fact that the queues of an account must have acknowledged to stay.
func (a *realmActor) evictedBefore(x *accountBehind, limit int64) realm.Seq {
	left := x.bytes
	parts := a.weighing.parts
	bySeq := func(p weighedSeq, seq realm.Seq) int { return cmp.Compare(p.seq, seq) }
	i, _ := slices.BinarySearchFunc(parts, x.open+1, bySeq)
	for ; i < len(parts) && float64(left) > float64(limit)*unackedAfterEviction; i++ {
		if parts[i].few && !a.unacked.isFor(parts[i].seq, x.user) {
			continue
		}
		left -= parts[i].bytes
	}
	if i == len(parts) {
		return a.weighing.done + 1
	}
	return parts[i].seq
}

// isFor reports whether a user is among the recipients of a fact.
func (u *unackedEvents) isFor(seq realm.Seq, user realm.UserID) bool {
	i := u.indexAfter(seq - 1)
	return i < len(u.list) && u.list[i].Seq == seq && slices.ContainsFunc(u.list[i].Notices, func(n realm.Notice) bool {
		return slices.Contains(n.To, user)
	})
}

// limitRefs evicts the oldest queues of an account that refers to too many events. first is the first one of its
// queues, which are linked.
func (s *shard) limitRefs(r *shardRealm, first *queue.Queue, refs int) {
	var open []*queue.Queue
	for q := first; q != nil; q = q.Next {
		if q.CloseRequested {
			refs -= q.UnackedCount()
		} else {
			open = append(open, q)
		}
	}
	limit := s.srv.maxUnackedRefs.Load()
	if int64(refs) <= limit {
		return
	}
	slices.SortStableFunc(open, func(x, y *queue.Queue) int {
		return cmp.Compare(x.AckedThrough(r.seq), y.AckedThrough(r.seq))
	})
	s.srv.log.Warn("too many unacked events in the queues of an account: evicting its oldest queues", "realm",
		r.handle.id, "user", int64(first.Reg.User), "events", refs, "limit", limit)
	for _, q := range open {
		if float64(refs) <= float64(limit)*unackedAfterEviction {
			return
		}
		refs -= q.UnackedCount()
		s.evictOfAccount(r, q)
	}
}

// evictOfAccount closes a queue because of its account's share.
func (s *shard) evictOfAccount(r *shardRealm, q *queue.Queue) {
	s.srv.Metrics.QueuesEvicted.Add(1)
	s.srv.Metrics.QueuesEvictedForAccount.Add(1)
	s.requestClose(r, q)
}
