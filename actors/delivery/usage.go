package delivery

import (
	"cmp"
	"slices"

	"parley/actors/realm"
)

// Limits of one account's unacked events. The bytes of an event are charged in equal parts to the accounts that have
// not acknowledged it: its recipients, if these are few, and otherwise every account whose slowest queue is behind it,
// because events are dropped in order. A person and the person's bots are one account. If an account exceeds a limit,
// its oldest queues are evicted until it uses
// afterEviction of the limit. Queues of other accounts are not evicted because of it. Queues that another node hosts
// are not charged to accounts: only the limits of their organization and of one queue apply.
const (
	// unackedAccountShare is the part of an organization's bytes that one account can use: by default 64 MiB. That is
	// some thousand messages if no other account is behind, and more than any client can fetch usefully.
	unackedAccountShare = 8
	// UsageInterval is the least time in seconds between two computations of the usage of the accounts of an
	// organization. One takes some milliseconds in each of several turns if very many events are stored.
	UsageInterval = 5
	// factsPerChargeStep is how many facts are charged to accounts in one turn: about a millisecond of work.
	factsPerChargeStep = 4096
	// maxFewRecipients is the largest number of recipients with which a fact is charged only to them, and dropped as
	// soon as they have acknowledged it, even if an older fact is still needed. These facts are direct messages and
	// changes that users make to their own data; one user could fill the organization's share with them.
	maxFewRecipients = 16
	// maxAccountsEvicted is how many accounts lose queues after one computation, those with the highest usage first.
	maxAccountsEvicted = 16
)

// laggingAccount is an account with unacked events.
type laggingAccount struct {
	LaggingAccount
	bytes int64 // of unacked events that are charged to it
	// sharedBefore is the value of accountUsage.shared before the first fact that the account has not acknowledged.
	sharedBefore int64
}

// accountUsage computes how many bytes of unacked events each account uses, in several steps. It belongs to the realm
// actor.
type accountUsage struct {
	round    uint64
	running  bool
	notUntil int64  // elapsed seconds
	missing  int    // session actors that have not reported
	openings uint64 // Sessions.openings at the beginning
	newest   [SessionActors]realm.Seq
	accounts [SessionActors][]laggingAccount
	passed   [SessionActors]int // accounts of each list that are behind the next fact
	behind   map[realm.UserID]*laggingAccount
	done     realm.Seq    // facts up to this one are charged
	shared   int64        // bytes charged to an account that has acknowledged nothing, so far
	charges  []factCharge // by seq
	unneeded []realm.Seq  // facts that none of their recipients needs
}

// factCharge is the number of bytes that a fact charges to each account that has not acknowledged it.
type factCharge struct {
	seq   realm.Seq
	bytes int64
	few   bool // only to its recipients
}

// accountLimit returns how many bytes of unacked events one account of an organization may use now.
func (e *Env) accountLimit() int64 {
	most := e.Limits.Realm.Load()
	if limit := e.realmLimit(); limit < most {
		return int64(float64(e.Limits.Account.Load()) * float64(limit) / float64(most))
	}
	return e.Limits.Account.Load()
}

// LargestAccount returns the highest usage of unacked events of one account, in bytes, according to the last
// computation. The usage is not computed while no account can exceed its share.
func (all *Sessions) LargestAccount() int64 { return all.largestAccount.Load() }

// limitAccounts begins to compute the usage of the accounts, if one of them can exceed its share.
func (o *Owned) limitAccounts() {
	w := &o.usage
	now, limit := o.all.env.elapsed(), o.all.env.accountLimit()
	if o.unacked.bytes <= limit {
		o.all.largestAccount.Store(0)
	}
	if o.unacked.bytes <= limit || w.running || now < w.notUntil ||
		now < o.unacked.graceUntil && o.unacked.bytes <= 2*limit {
		return
	}
	*w = accountUsage{round: w.round + 1, running: true, notUntil: now + UsageInterval, missing: SessionActors,
		openings: o.all.openings, behind: map[realm.UserID]*laggingAccount{}}
	o.all.SendAll(FindLagging{Round: w.round})
}

// HandleOwned begins to charge the facts to accounts when every session actor has reported.
func (m *LaggingReport) HandleOwned(o *Owned) {
	w := &o.usage
	if !w.running || m.Round != w.round {
		return
	}
	accounts := make([]laggingAccount, len(m.Accounts))
	for i := range m.Accounts {
		accounts[i].LaggingAccount = m.Accounts[i]
		w.behind[accounts[i].User] = &accounts[i]
	}
	w.newest[m.SessionActor], w.accounts[m.SessionActor] = m.Newest, accounts
	if w.missing--; w.missing == 0 {
		o.chargeFacts()
	}
}

// chargeFacts charges some facts to accounts, and continues in another turn.
func (o *Owned) chargeFacts() {
	w, list := &o.usage, o.unacked.list
	if !o.main.Owns() || w.openings != o.all.openings { // the reports are about other queues
		o.endUsageScan()
		return
	}
	first := o.unacked.indexAfter(w.done)
	for _, t := range list[first:min(first+factsPerChargeStep, len(list))] {
		w.charge(&t)
		w.done = t.Seq
	}
	if first+factsPerChargeStep < len(list) {
		o.all.env.Runtime.Send(o.all.main, chargeStep{w.round})
		return
	}
	o.dropFactsOfFew()
	o.evictAccounts()
	o.endUsageScan()
}

// endUsageScan releases the memory of the computation.
func (o *Owned) endUsageScan() {
	o.usage = accountUsage{round: o.usage.round, notUntil: o.usage.notUntil}
}

// charge divides the bytes of a fact among the accounts that have not acknowledged it.
func (w *accountUsage) charge(t *unackedFact) {
	holders := 0
	for k := range w.accounts {
		list := w.accounts[k]
		for w.passed[k] < len(list) && list[w.passed[k]].Open < t.Seq {
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
			w.charges = append(w.charges, factCharge{t.Seq, part, false})
		}
		return
	}
	needed := false
	var open []*laggingAccount
	for _, u := range to {
		x := w.behind[u]
		needed = needed || t.Seq > w.newest[ActorOf(u)] || x != nil && x.Acked < t.Seq
		if x != nil && x.Open < t.Seq {
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
		w.charges = append(w.charges, factCharge{t.Seq, t.bytes / int64(len(open)), true})
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

// dropFactsOfFew drops the facts whose few recipients have all acknowledged them, although older facts are still
// needed. While other nodes host queues it drops none, because the session actors of this node do not know what those
// queues have acknowledged.
func (o *Owned) dropFactsOfFew() {
	if u := &o.unacked; len(o.usage.unneeded) > 0 && !o.all.Shared.Load() && len(o.homes.remote) == 0 {
		u.dropFacts(o.usage.unneeded, o.all.env.Metrics)
	}
}

// dropFacts removes facts from the list. seqs is sorted.
func (u *unacked) dropFacts(seqs []realm.Seq, m *Metrics) {
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

// evictAccounts evicts the oldest queues of the accounts that exceed their share. A person and the person's bots have
// one share. The queues of bots are evicted first, those of the account with the most bytes before others.
func (o *Owned) evictAccounts() {
	w := &o.usage
	limit, most := o.all.env.accountLimit(), int64(0)
	charged := map[realm.UserID]*chargedAccounts{}
	for k, list := range w.accounts {
		for i := range list {
			x := &list[i]
			if i < w.passed[k] {
				x.bytes += w.shared - x.sharedBefore
			}
			u := o.main.Realm().ChargedUser(x.User)
			if charged[u] == nil {
				charged[u] = &chargedAccounts{user: u}
			}
			charged[u].bytes += x.bytes
			charged[u].accounts = append(charged[u].accounts, x)
		}
	}
	var over []*chargedAccounts
	for _, c := range charged {
		if most = max(most, c.bytes); c.bytes > limit {
			over = append(over, c)
		}
	}
	o.all.largestAccount.Store(most)
	slices.SortFunc(over, func(x, y *chargedAccounts) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.user, y.user))
	})
	for _, c := range over[:min(len(over), maxAccountsEvicted)] {
		o.evictCharged(c, limit)
	}
}

// chargedAccounts are the accounts that count as one: a person and the person's bots.
type chargedAccounts struct {
	user     realm.UserID
	bytes    int64
	accounts []*laggingAccount
}

// evictCharged evicts the oldest queues of accounts that exceed their common share, until afterEviction of it is
// left.
func (o *Owned) evictCharged(c *chargedAccounts, limit int64) {
	slices.SortFunc(c.accounts, func(x, y *laggingAccount) int {
		if own := x.User == c.user; own != (y.User == c.user) {
			if own {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.User, y.User))
	})
	excess := c.bytes - int64(float64(limit)*afterEviction)
	for _, x := range c.accounts {
		if excess <= 0 {
			return
		}
		if x.Open == NoQueue { // all its queues are being closed
			excess -= x.bytes
			continue
		}
		leave := max(0, x.bytes-excess)
		before := o.evictedBefore(x, leave)
		o.all.env.Log.Warn("too many unacked events of an account: evicting its oldest queues", "realm", o.all.Realm,
			"user", int64(x.User), "bytes", x.bytes, "charged", int64(c.user), "charged_bytes", c.bytes, "limit", limit,
			"behind", uint64(before))
		o.all.Send(ActorOf(x.User), Evict{Before: before, User: x.User})
		excess -= x.bytes - leave
	}
}

// evictedBefore returns a fact: the queues of the account that have not acknowledged all facts before it are evicted,
// so that the account uses about leave bytes.
func (o *Owned) evictedBefore(x *laggingAccount, leave int64) realm.Seq {
	left := x.bytes
	parts := o.usage.charges
	bySeq := func(p factCharge, seq realm.Seq) int { return cmp.Compare(p.seq, seq) }
	i, _ := slices.BinarySearchFunc(parts, x.Open+1, bySeq)
	for ; i < len(parts) && left > leave; i++ {
		if parts[i].few && !o.unacked.isFor(parts[i].seq, x.User) {
			continue
		}
		left -= parts[i].bytes
	}
	if i == len(parts) {
		return o.usage.done + 1
	}
	return parts[i].seq
}

// isFor reports whether a user is among the recipients of a fact.
func (u *unacked) isFor(seq realm.Seq, user realm.UserID) bool {
	i := u.indexAfter(seq - 1)
	return i < len(u.list) && u.list[i].Seq == seq && slices.ContainsFunc(u.list[i].Notices, func(n realm.Notice) bool {
		return slices.Contains(n.To, user)
	})
}
