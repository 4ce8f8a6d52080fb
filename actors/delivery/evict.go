package delivery

import (
	"cmp"
	"slices"

	"parley/actors/queue"
	"parley/actors/realm"
)

// MaxUnackedRefs is how many events may wait in all queues of one account: 20 full queues, or 6 MB. Each queue refers
// to its events, which the bytes of the events do not include.
const MaxUnackedRefs = 20 * queue.MaxUnacked

// afterEviction is the part of a limit that is left after an eviction, so that evictions are rare.
const afterEviction = 0.75

// Messages about the queues of slow clients.
type (
	// Evict closes the queues that have not acknowledged the facts before one.
	Evict struct {
		Before realm.Seq
		User   realm.UserID // only queues of this account, because of its share; 0: of all
	}
	// FindLagging asks which accounts have unacked events. The answer is a *LaggingReport.
	FindLagging struct{ Round uint64 }
)

func (m Evict) handle(s *sessionActor) {
	r := s.state
	if r == nil {
		return
	}
	if m.User != 0 {
		for q := r.session(m.User).FirstQueue(); q != nil; q = q.Next {
			if !q.CloseRequested && q.AckedThrough(r.seq)+1 < m.Before {
				s.evictOfAccount(q)
			}
		}
		return
	}
	r.sessions.EachQueue(func(q *queue.Queue) {
		if !q.CloseRequested && q.AckedThrough(r.seq)+1 < m.Before {
			s.all.env.Metrics.QueuesEvicted.Add(1)
			s.all.env.Metrics.QueuesEvictedForMemory.Add(1)
			s.requestClose(q)
		}
	})
}

func (m FindLagging) handle(s *sessionActor) {
	report := &LaggingReport{SessionActor: s.index, Round: m.Round}
	if r := s.state; r != nil {
		report.Newest = r.seq
		x := LaggingAccount{Open: NoQueue}
		add := func() {
			if x.Acked < NoQueue && x.User != 0 {
				report.Accounts = append(report.Accounts, x)
			}
		}
		r.sessions.EachQueue(func(q *queue.Queue) { // the queues of a user follow each other
			if q.UnackedCount() == 0 && !q.Restored() {
				return
			}
			if q.Reg.User != x.User {
				add()
				x = LaggingAccount{User: q.Reg.User, Acked: NoQueue, Open: NoQueue}
			}
			acked := q.AckedThrough(r.seq)
			x.Acked = min(x.Acked, acked)
			if !q.CloseRequested {
				x.Open = min(x.Open, acked)
			}
		})
		add()
		slices.SortFunc(report.Accounts, func(x, y LaggingAccount) int { return cmp.Compare(x.Open, y.Open) })
	}
	s.all.env.Runtime.Send(s.all.main, report)
}

// uncountedRefs: an account with less than this part of MaxUnackedRefs is not counted. So a member with a hundred bots
// uses at most a tenth more.
const uncountedRefs = 1000

// accountRefs is the number of unacked events in the open queues of an account.
type accountRefs struct {
	user, charged realm.UserID
	refs          int
}

// limitRefs evicts the oldest queues of accounts with too many unacked events. An account counts together with the
// accounts that share its bounds: a person with the person's bots, also if their queues belong to other session actors.
// Each account loses events in proportion to those that it has.
func (s *sessionActor) limitRefs(r *sessionState, accounts []accountRefs, now int64) {
	own := &s.all.refs[s.index]
	if len(accounts) == 0 {
		own.Store(nil)
		return
	}
	sums := map[realm.UserID]int{}
	for i := range accounts {
		x := &accounts[i]
		x.charged, _ = s.all.env.Node.Charged(s.all.Realm, x.user)
		sums[x.charged] += x.refs
	}
	own.Store(&sums)
	if now < s.refsSince {
		return
	}
	limit := float64(s.all.env.MaxRefs.Load())
	for _, x := range accounts {
		total := 0
		for k := range s.all.refs {
			if m := s.all.refs[k].Load(); m != nil {
				total += (*m)[x.charged]
			}
		}
		if float64(total) > limit {
			s.evictRefs(r, x, limit*float64(x.refs)/float64(total), total)
		}
	}
}

// evictRefs evicts the oldest queues of an account until afterEviction of its part of the limit is left. total
// is the number of events of all accounts that share its bounds.
func (s *sessionActor) evictRefs(r *sessionState, x accountRefs, part float64, total int) {
	var open []*queue.Queue
	for q := r.session(x.user).FirstQueue(); q != nil; q = q.Next {
		if !q.CloseRequested {
			open = append(open, q)
		}
	}
	slices.SortStableFunc(open, func(x, y *queue.Queue) int {
		return cmp.Compare(x.AckedThrough(r.seq), y.AckedThrough(r.seq))
	})
	s.all.env.Log.Warn("too many unacked events in the queues of an account: evicting its oldest queues", "realm",
		s.all.Realm, "user", int64(x.user), "events", x.refs, "charged", int64(x.charged), "charged_events", total,
		"limit", s.all.env.MaxRefs.Load())
	refs := x.refs
	for _, q := range open {
		if float64(refs) <= part*afterEviction {
			return
		}
		refs -= q.UnackedCount()
		s.evictOfAccount(q)
	}
}

// evictOfAccount closes a queue because of its account's share.
func (s *sessionActor) evictOfAccount(q *queue.Queue) {
	s.all.env.Metrics.QueuesEvicted.Add(1)
	s.all.env.Metrics.QueuesEvictedForAccount.Add(1)
	s.requestClose(q)
}
