package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// The messages of a channel become read for users that leave the channel, and for all subscribers when it is archived.
// Messages that move to another channel become read for users that are not subscribed to it. Clients count the messages
// as read immediately. So the turn that makes users leave also marks the messages read, for as many users as
// leavingBudget allows. The rest is a job: the server does it in further steps, a turn each. Users that rejoin before
// that are marked before they join.

// Leaving is the row of one job: users that left a channel, whose unread messages there are not marked read yet.
type Leaving struct {
	Channel ChannelID
	Users   ids.Set
	// Last is the newest message when they left. In rows written before this field existed it is 0: then users that
	// rejoined are skipped.
	Last    MessageID
	Backlog int64 // newest backlog made by a step, or 0. The backlog may have been removed since
}

// Backlog is the row of all messages of a channel that many users left. The unread messages of one user take up to
// 128 kB for a million messages. So the set is stored once, and users that had many of them unread refer to it. A
// backlog may contain messages that a user did not receive. That does no harm: if the user receives them later, they
// are read.
type Backlog struct {
	Messages ids.Set // never changes
	Readers  int     // how many users refer to it; without any the row is removed
}

// When a step makes a backlog.
const (
	minBacklogUnread  = 1000 // unread messages of at least one user; up to 8 bytes each
	minBacklogReaders = 20   // users whose messages the job has still to mark
	// maxBacklogsOfUser limits how many backlogs one user refers to, because every lookup of read messages looks at
	// all of them. Further messages are added to the user's own set.
	maxBacklogsOfUser = 16
)

// Costs of a step. leavingBudget keeps a turn below 5 ms. A user costs 1; leavingScanCost is added if the user's
// unread messages have to be computed. The other costs are per so many bytes.
const (
	leavingBudget       = 400
	leavingScanCost     = 20
	leavingBytesPerCost = 1 << 10 // bytes of sets that are compared or written
	// leavingSourceBytesPerCost is in bytes of the messages that were moved here. They are compared with the
	// messages of each channel the user has messages from.
	leavingSourceBytesPerCost = 2 << 10
	// maxLeavingOrigins limits for how many channels the messages moved here are grouped by the channel they were
	// sent to, once for all leaving users. Each takes about 30 µs. Messages from further channels are looked up among
	// all received messages of each user.
	maxLeavingOrigins = 30
)

// startLeaving adds a job. It is called when a fact is applied; job is the next id of "leaving", which the fact
// carries.
func (r *Realm) startLeaving(job int64, c ChannelID, users ids.Set) {
	if users.Empty() {
		return
	}
	r.reserveID("leaving", job)
	r.small.leaving.put(job, &Leaving{Channel: c, Users: users.Clone(), Last: MessageID(r.Org().NextMessage - 1)})
}

// leavingDue returns a turn that runs the next step of the jobs, the oldest first, or nil without a job.
func leavingDue(r *Realm, _ int64) func(*Turn) (any, error) {
	if r.small.leaving.size() == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		for budget := leavingBudget; budget > 0; {
			job, ok := t.small.leaving.firstKey()
			if !ok {
				break
			}
			budget -= t.stepLeaving(job, budget)
		}
		return nil, nil
	}
}

// beginLeaving runs the first step of jobs that the turn has started. Most jobs need no other.
func (t *Turn) beginLeaving(jobs ...int64) {
	budget := leavingBudget
	for _, job := range jobs {
		if budget > 0 && t.small.leaving.find(job) != nil {
			budget -= t.stepLeaving(job, budget)
		}
	}
}

// finishLeaving marks the messages of channels read for users that are about to rejoin them. If they are very many,
// the job does the rest.
func (t *Turn) finishLeaving(joins []Subscribed) {
	if t.small.leaving.size() == 0 {
		return
	}
	budget := leavingBudget
	for _, job := range t.small.leaving.keys() {
		for i := range joins {
			l := t.small.leaving.find(job)
			if l == nil || l.Channel != joins[i].Channel || budget <= 0 {
				continue
			}
			if back := ids.Intersection(l.Users, ids.SetOf(joins[i].Users...)); !back.Empty() {
				budget -= t.stepLeavingOf(job, back, budget)
			}
		}
	}
}

// stepLeaving marks the channel's messages as read for the next users of a job, as many as the budget allows. It
// returns the cost.
func (t *Turn) stepLeaving(job int64, budget int) int {
	return t.stepLeavingOf(job, t.small.leaving.must(job).Users, budget)
}

// stepLeavingOf does the same for some users of the job.
func (t *Turn) stepLeavingOf(job int64, users ids.Set, budget int) int {
	l := t.small.leaving.must(job)
	c := t.channels.must(l.Channel)
	f := &LeftBehind{Job: job, Channel: l.Channel}
	all := t.index.channels[l.Channel].ids.Between(0, int64(cmp.Or(l.Last, MaxMessageID)))
	rejoined := func(u UserID) bool { return l.Last == 0 && !c.Archived && t.Realm.Subscribed(u, l.Channel) }
	x := t.newLeavingScan(l.Channel, all)
	cost, large := x.plan(f, users, rejoined, budget)
	if old := t.small.backlogs.find(l.Backlog); large && old != nil && old.Messages.Equal(x.all) {
		f.Backlog = l.Backlog
	} else if large && l.Users.Len() >= minBacklogReaders {
		f.Backlog, f.All = t.nextID("backlog"), x.all
	}
	t.Record(f)
	return cost
}

// readMovingMessages marks messages, before they move to another channel, as read for the users in Strangers. The users
// that the budget does not cover stay in Strangers: their messages become read by a job.
func (t *Turn) readMovingMessages(m *MessageMove) {
	if m.Strangers.Empty() {
		return
	}
	f := &LeftBehind{Channel: m.From}
	x := t.newLeavingScan(m.From, m.IDs)
	none := func(UserID) bool { return false }
	if _, large := x.plan(f, m.Strangers, none, leavingBudget); large && len(f.Users) >= minBacklogReaders {
		f.Backlog, f.All = t.nextID("backlog"), x.all
	}
	m.Strangers = ids.Difference(m.Strangers, ids.SetOf(f.Users...))
	if f.Users = nil; len(f.Together) > 0 {
		t.Record(f)
	}
}

// plan adds users to a fact, as many as the budget allows, with their unread messages unless skip returns true. It
// returns the cost, and whether at least one user has many unread messages.
func (x *leavingScan) plan(f *LeftBehind, users ids.Set, skip func(UserID) bool, budget int) (cost int, large bool) {
	users.Each(func(id int64) bool {
		u := UserID(id)
		f.Users = append(f.Users, u)
		if cost++; skip(u) {
			return cost < budget
		}
		unread := x.unread(u)
		cost += x.bytesRead / leavingBytesPerCost
		if !unread.SharesBitmap(x.all) && !unread.SharesBitmap(x.sentHere) {
			cost += leavingScanCost
		}
		if !x.fromOtherChannels.Empty() {
			cost += x.countSources(u) * (1 + x.fromOtherChannels.SizeBytes()/leavingSourceBytesPerCost)
		}
		if unread.Empty() {
			return cost < budget
		}
		i := slices.IndexFunc(f.Together, func(g ReadTogether) bool { return g.Messages.Equal(unread) })
		if i < 0 {
			i = len(f.Together)
			f.Together = append(f.Together, ReadTogether{Messages: unread})
			cost += unread.SizeBytes() / leavingBytesPerCost
		}
		f.Together[i].Users = append(f.Together[i].Users, u)
		large = large || unread.Len() >= minBacklogUnread
		return cost < budget
	})
	return cost, large
}

// leavingScan computes the unread messages of users who left a channel.
type leavingScan struct {
	*Turn
	channel ChannelID
	all     ids.Set // the channel's messages
	// sentHere are the messages that were sent to this channel: the user's subscription here decides about them.
	// origins are messages moved here, grouped by the channel they were sent to, whose subscription decides.
	// fromOtherChannels are the messages moved here from yet other channels.
	sentHere          ids.Set
	origins           []originPart
	fromOtherChannels ids.Set
	overlaps          map[int64]bool // by backlog: whether it contains some of all
	bytesRead         int            // bytes of sets that the last call of unread looked at
}

// newLeavingScan returns the scan of some messages, which are in a channel.
func (t *Turn) newLeavingScan(c ChannelID, all ids.Set) *leavingScan {
	x := &leavingScan{Turn: t, channel: c, overlaps: map[int64]bool{}, all: all}
	x.sentHere, x.fromOtherChannels = all, ids.Difference(all, t.index.channels[c].sent)
	if !x.fromOtherChannels.Empty() {
		x.sentHere = ids.Difference(all, x.fromOtherChannels)
		x.origins, x.fromOtherChannels = t.messageOrigins(x.fromOtherChannels, maxLeavingOrigins)
	}
	return x
}

// unread returns the channel's messages that a user received and has not read. The caller must not change the set:
// often it is all or sentHere.
func (x *leavingScan) unread(u UserID) ids.Set {
	rd := x.marks.find(u)
	all, read := x.all, false
	x.bytesRead = 0
	if x.hasReadAny(rd) {
		seen := x.readSet(rd)
		x.bytesRead += seen.SizeBytes()
		first, _ := all.Min()
		// Most users have read everything up to some message.
		all = all.Between(seen.FirstMissing(first), MaxMessageID)
		x.bytesRead += all.SizeBytes()
		if all = ids.Difference(all, seen); all.Empty() {
			return all
		}
		read = true
	}
	// unreadOf returns the messages of a set that the user has not read.
	unreadOf := func(messages ids.Set) ids.Set {
		switch {
		case !read:
			return messages
		case messages.SharesBitmap(x.all):
			return all
		}
		x.bytesRead += messages.SizeBytes()
		return ids.Intersection(messages, all)
	}
	var parts []ids.Set // disjoint
	n := 0
	add := func(s ids.Set) {
		if !s.Empty() {
			parts, n = append(parts, s), n+s.Len()
		}
	}
	received := func(c ChannelID, sent ids.Set) {
		if s := x.SubscriptionOf(u, c); s != nil && len(s.Spans) > 0 {
			sent = unreadOf(sent)
			for _, p := range s.Spans {
				add(p.messagesWithin(sent))
			}
		}
	}
	received(x.channel, x.sentHere)
	for _, o := range x.origins {
		received(o.channel, o.ids)
	}
	if !x.fromOtherChannels.Empty() {
		elsewhere := unreadOf(x.fromOtherChannels)
		add(x.rowsWithin(u, &elsewhere))
	}
	if rd == nil || !rd.Rows.Intersects(all) && !rd.Lost.Intersects(all) {
		switch {
		case n == all.Len():
			return all
		case len(parts) == 1:
			return parts[0]
		}
		x.bytesRead += all.SizeBytes()
		return ids.Union(parts...)
	}
	x.bytesRead += all.SizeBytes()
	unread := ids.Union(append(parts, ids.Intersection(rd.Rows, all))...)
	unread.Subtract(ids.Difference(rd.Lost, rd.Rows))
	return unread
}

// hasReadAny reports whether the user with these marks has read any of the channel's messages. rd may be nil.
func (x *leavingScan) hasReadAny(rd *MessageMarks) bool {
	if rd == nil {
		return false
	}
	for _, b := range rd.Behind {
		overlap, known := x.overlaps[b]
		if !known {
			overlap = x.all.Intersects(x.small.backlogs.must(b).Messages)
			x.overlaps[b] = overlap
		}
		if overlap {
			return true
		}
	}
	x.bytesRead += rd.Read.SizeBytes()
	return x.all.Intersects(rd.Read)
}

// LeftBehind says that the messages of a channel are read for some users that left it. These users are removed from
// the job.
type LeftBehind struct {
	Job     int64 // 0: none, the messages are about to move
	Channel ChannelID
	Users   []UserID  // users of this step
	Readers []UserID  // set in facts older than Together: those of Users that had unread messages
	Read    []ids.Set // set in older facts: the unread messages of each of Readers
	Whole   []UserID  // set in older facts: those of Users that had read none of All
	All     ids.Set   // all messages of the channel, if this fact makes the backlog
	// Together groups the users that had unread messages by the set of these messages.
	Together []ReadTogether
	Backlog  int64 // users with many unread messages refer to it from now on; 0: none
}

// ReadTogether is a set of messages that become read for some users.
type ReadTogether struct {
	Users    []UserID
	Messages ids.Set
}

// readGroups returns Together, also for facts written before that field existed.
func (f *LeftBehind) readGroups() []ReadTogether {
	out := f.Together
	for i, u := range f.Readers {
		out = append(out, ReadTogether{[]UserID{u}, f.Read[i]})
	}
	if len(f.Whole) > 0 {
		out = append(out, ReadTogether{f.Whole, f.All})
	}
	return out
}

func (f *LeftBehind) apply(r *Realm) {
	var l *Leaving
	if f.Job != 0 {
		l = r.small.leaving.change(f.Job)
	}
	var b *Backlog
	if f.Backlog != 0 {
		if !f.All.Empty() {
			r.reserveID("backlog", f.Backlog)
			r.small.backlogs.put(f.Backlog, &Backlog{Messages: f.All})
			if l != nil {
				l.Backlog = f.Backlog
			}
		}
		b = r.small.backlogs.change(f.Backlog)
	}
	for _, g := range f.readGroups() {
		many := b != nil && g.Messages.Len() >= minBacklogUnread
		for _, u := range g.Users {
			rd := r.marks.ensure(u)
			if many && len(rd.Behind) < maxBacklogsOfUser {
				rd.Behind = append(rd.Behind, f.Backlog)
				b.Readers++
			} else {
				rd.Read.Union(g.Messages)
			}
		}
	}
	if b != nil && b.Readers == 0 {
		r.small.backlogs.remove(f.Backlog)
	}
	if l == nil {
		return
	}
	for _, u := range f.Users {
		l.Users.Remove(int64(u))
	}
	if l.Users.Empty() {
		r.small.leaving.remove(f.Job)
	}
}

// dropBacklogs removes those of a user's references to backlogs for which drop returns true, and backlogs without
// users.
func (r *Realm) dropBacklogs(rd *MessageMarks, drop func(*Backlog) bool) {
	rd.Behind = slices.DeleteFunc(rd.Behind, func(id int64) bool {
		if !drop(r.small.backlogs.must(id)) {
			return false
		}
		b := r.small.backlogs.change(id)
		if b.Readers--; b.Readers == 0 {
			r.small.backlogs.remove(id)
		}
		return true
	})
	if len(rd.Behind) == 0 {
		rd.Behind = nil
	}
}

func (f *LeftBehind) notices(r *Realm) []Notice {
	var out []Notice
	for _, g := range f.readGroups() {
		if to := r.usersAudience(g.Users...); len(to) > 0 {
			out = append(out, Notice{To: to, Event: &MessagesReadAfterLeaving{g.Messages}})
		}
	}
	return out
}

// MessagesReadAfterLeaving is the event update_message_flags for messages of a channel that the user left, or that move
// to a channel without the user.
type MessagesReadAfterLeaving struct{ Messages ids.Set }

func (*MessagesReadAfterLeaving) EventType() string { return "update_message_flags" }
