package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// When people leave a channel, or it is archived, its messages count as read for them: not at once, since they can be
// many, but in steps of the server's own. Clients count them as read at once, so those of before are read also for who
// comes back in between. A job is what remains to be done.

// Leaving is the row of one job.
type Leaving struct {
	Channel ChannelID
	Users   ids.Set
	Last    MessageID // newestIDs message when they left; 0 in rows of before that was kept: those who came back keep theirs unread
	Backlog int64     // the newest that a step made; 0: none. It may be gone
}

// Backlog is the row of all messages of a channel that many left: what each of them had not read of these takes up to 128 kB
// for a million messages, so it is kept once, and who had much of it unread refers to it. That it may have messages he did
// not receive makes no difference: what he comes by later comes as read.
type Backlog struct {
	Messages ids.Set // never changes
	Readers  int     // who refer to it; without them it goes away
}

// When a backlog is worth it.
const (
	minBacklogUnread  = 1000 // messages that somebody had not read: up to 8 bytes each
	minBacklogReaders = 20   // for whom a job is still to be done
	// maxBacklogsOfUser is how many backlogs one user refers to, for whoever asks what he has read looks at all of them. What there
	// is beyond becomes his own.
	maxBacklogsOfUser = 16
)

// What one turn looks at, so that it stays below 5 ms: a user counts 1, leavingScanCost more
// whose unread messages have to be found out, and 1 more is so many of the others.
const (
	leavingBudget             = 400
	leavingScanCost           = 20
	leavingBytesPerCost       = 1 << 10 // of sets that are compared or written
	leavingSourceBytesPerCost = 2 << 10 // of messages that were moved here, compared with all of one more channel he has messages from
	// maxLeavingOrigins is from how many channels messages that were moved here are told apart by where they were sent, once
	// for all who leave: each takes about 30 µs. What came from yet others is looked for in everything somebody received.
	maxLeavingOrigins = 30
)

// startLeaving opens a job; a fact calls it with the next id of "leaving".
func (r *Realm) startLeaving(job int64, c ChannelID, users ids.Set) {
	if users.Empty() {
		return
	}
	r.reserveID("leaving", job)
	r.small.leaving.put(job, &Leaving{Channel: c, Users: users, Last: MessageID(r.Org().NextMessage - 1)})
}

func leavingDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return oldestJobStep(&r.small.leaving, (*Turn).stepLeaving)
}

func (t *Turn) stepLeaving(job int64) {
	l := t.small.leaving.must(job)
	c := t.channels.must(l.Channel)
	f := &LeftBehind{Job: job, Channel: l.Channel}
	x := leavingScan{Turn: t, channel: l.Channel, overlaps: map[int64]bool{}, all: t.index.channels[l.Channel].ids.Between(0, int64(cmp.Or(l.Last, MaxMessageID)))}
	x.sentHere, x.fromOtherChannels = x.all, ids.Difference(x.all, t.index.channels[l.Channel].sent)
	if !x.fromOtherChannels.Empty() {
		x.sentHere = ids.Difference(x.all, x.fromOtherChannels)
		x.origins, x.fromOtherChannels = t.messageOrigins(x.fromOtherChannels, maxLeavingOrigins)
	}
	worth, cost := false, 0
	l.Users.Each(func(id int64) bool {
		u := UserID(id)
		f.Users = append(f.Users, u)
		if cost++; l.Last == 0 && !c.Archived && t.Realm.Subscribed(u, l.Channel) {
			return cost < leavingBudget
		}
		unread := x.unread(u)
		cost += x.bytesRead / leavingBytesPerCost
		if !unread.SharesBitmap(x.all) && !unread.SharesBitmap(x.sentHere) {
			cost += leavingScanCost
		}
		if !x.fromOtherChannels.Empty() {
			cost += t.countSources(u) * (1 + x.fromOtherChannels.SizeBytes()/leavingSourceBytesPerCost)
		}
		if unread.Empty() {
			return cost < leavingBudget
		}
		i := slices.IndexFunc(f.Together, func(g ReadTogether) bool { return g.Messages.Equal(unread) })
		if i < 0 {
			i = len(f.Together)
			f.Together = append(f.Together, ReadTogether{Messages: unread})
			cost += unread.SizeBytes() / leavingBytesPerCost
		}
		f.Together[i].Users = append(f.Together[i].Users, u)
		worth = worth || unread.Len() >= minBacklogUnread
		return cost < leavingBudget
	})
	if old := t.small.backlogs.find(l.Backlog); worth && old != nil && old.Messages.Equal(x.all) {
		f.Backlog = l.Backlog
	} else if worth && l.Users.Len() >= minBacklogReaders {
		f.Backlog, f.All = t.nextID("backlog"), x.all
	}
	t.Record(f)
}

// leavingScan finds what people who leave a channel have not read.
type leavingScan struct {
	*Turn
	channel ChannelID
	all     ids.Set // its messages
	// here is those that were sent to it: his relation to it says whether somebody received them; to origins, the same of
	// those that were sent there. What came from yet other channels is elsewhere.
	sentHere          ids.Set
	origins           []originPart
	fromOtherChannels ids.Set
	overlaps          map[int64]bool // whether backlogs have some of all
	bytesRead         int            // bytes of sets the last one took
}

// unread is what of all messages a user has a row of and has not read. It must not be changed: mostly it is all or here.
func (x *leavingScan) unread(u UserID) ids.Set {
	rd := x.marks.find(u)
	all, read := x.all, false
	x.bytesRead = 0
	if x.hasReadAny(rd) {
		idSet := x.readSet(rd)
		x.bytesRead += idSet.SizeBytes()
		first, _ := all.Min()
		all = all.Between(idSet.FirstMissing(first), MaxMessageID) // mostly he has read everything up to some message
		x.bytesRead += all.SizeBytes()
		if all = ids.Difference(all, idSet); all.Empty() {
			return all
		}
		read = true
	}
	// left is what of some of the messages he has not read.
	left := func(some ids.Set) ids.Set {
		switch {
		case !read:
			return some
		case some.SharesBitmap(x.all):
			return all
		}
		x.bytesRead += some.SizeBytes()
		return ids.Intersection(some, all)
	}
	var parts []ids.Set // which have no message in common
	n := 0
	add := func(s ids.Set) {
		if !s.Empty() {
			parts, n = append(parts, s), n+s.Len()
		}
	}
	received := func(c ChannelID, ids ids.Set) {
		if s := x.SubscriptionOf(u, c); s != nil && len(s.Spans) > 0 {
			ids = left(ids)
			for _, p := range s.Spans {
				add(p.messagesWithin(ids))
			}
		}
	}
	received(x.channel, x.sentHere)
	for _, o := range x.origins {
		received(o.channel, o.ids)
	}
	if !x.fromOtherChannels.Empty() {
		elsewhere := left(x.fromOtherChannels)
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

// hasReadAny reports whether the user whose marks these are hasKey read any of all.
func (x *leavingScan) hasReadAny(rd *MessageMarks) bool {
	if rd == nil {
		return false
	}
	for _, b := range rd.Behind {
		meets, known := x.overlaps[b]
		if !known {
			meets = x.all.Intersects(x.small.backlogs.must(b).Messages)
			x.overlaps[b] = meets
		}
		if meets {
			return true
		}
	}
	x.bytesRead += rd.Read.SizeBytes()
	return x.all.Intersects(rd.Read)
}

// LeftBehind says a channel's messages are read for some who left it; the job forgets them.
type LeftBehind struct {
	Job     int64
	Channel ChannelID
	Users   []UserID  // looked at
	Readers []UserID  // of those, in facts of before Together, who had unread messages
	Read    []ids.Set // which; one each
	Whole   []UserID  // likewise, who had not read any of All
	All     ids.Set   // all messages, if Backlog is made of them
	// Together is those who had unread messages, by which.
	Together []ReadTogether
	Backlog  int64 // to which those refer who had many; 0: nobody
}

// ReadTogether is messages that are read for some users.
type ReadTogether struct {
	Users    []UserID
	Messages ids.Set
}

// readGroups is Together, whenever the fact was written.
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
	l := r.small.leaving.change(f.Job)
	var b *Backlog
	if f.Backlog != 0 {
		if !f.All.Empty() {
			r.reserveID("backlog", f.Backlog)
			r.small.backlogs.put(f.Backlog, &Backlog{Messages: f.All})
			l.Backlog = f.Backlog
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
	for _, u := range f.Users {
		l.Users.Remove(int64(u))
	}
	if l.Users.Empty() {
		r.small.leaving.remove(f.Job)
	}
}

// dropBacklogs has a user refer no longer to some backlogs.
func (r *Realm) dropBacklogs(rd *MessageMarks, some func(*Backlog) bool) {
	rd.Behind = slices.DeleteFunc(rd.Behind, func(id int64) bool {
		if !some(r.small.backlogs.must(id)) {
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

func (f *LeftBehind) tell(r *Realm) []Notice {
	var out []Notice
	for _, g := range f.readGroups() {
		if to := r.usersAudience(g.Users...); len(to) > 0 {
			out = append(out, Notice{To: to, Event: &MessagesReadAfterLeaving{g.Messages}})
		}
	}
	return out
}

// MessagesReadAfterLeaving is the event update_message_flags of messages in a channel that was left.
type MessagesReadAfterLeaving struct{ Messages ids.Set }

func (*MessagesReadAfterLeaving) EventType() string { return "update_message_flags" }
