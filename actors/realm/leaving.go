package realm

import (
	"cmp"
	"slices"
)

// When people leave a channel, or it is archived, its messages count as read for them: not at once, since they can be
// many, but in steps of the server's own. Clients count them as read at once, so those of before are read also for who
// comes back in between. A job is what remains to be done.

// Leaving is the row of one job.
type Leaving struct {
	Channel ChannelID
	Users   Set
	Last    MessageID // newest message when they left; 0 in rows of before that was kept: those who came back keep theirs unread
	Backlog int64     // the newest that a step made; 0: none. It may be gone
}

// Backlog is the row of all messages of a channel that many left: what each of them had not read of these takes up to 128 kB
// for a million messages, so it is kept once, and who had much of it unread refers to it. That it may have messages he did
// not receive makes no difference: what he comes by later comes as read.
type Backlog struct {
	Messages Set // never changes
	Readers  int // who refer to it; without them it goes away
}

// When a backlog is worth it.
const (
	backlogUnread  = 1000 // messages that somebody had not read: up to 8 bytes each
	backlogReaders = 20   // for whom a job is still to be done
	// maxBehind is how many backlogs one user refers to, for whoever asks what he has read looks at all of them. What there
	// is beyond becomes his own.
	maxBehind = 16
)

// What one turn looks at, so that it stays below 5 ms: a user counts 1, leavingFound more
// whose unread messages have to be found out, and 1 more is so many of the others.
const (
	leavingStep    = 400
	leavingFound   = 20
	leavingBytes   = 1 << 10 // of sets that are compared or written
	leavingSources = 2 << 10 // of messages that were moved here, compared with all of one more channel he has messages from
	// leavingOrigins is from how many channels messages that were moved here are told apart by where they were sent, once
	// for all who leave: each takes about 30 µs. What came from yet others is looked for in everything somebody received.
	leavingOrigins = 30
)

// leave opens a job; a fact calls it with the next id of "leaving".
func (r *Realm) leave(job int64, c ChannelID, users Set) {
	if users.Empty() {
		return
	}
	r.usedID("leaving", job)
	r.nouns.leaving.put(job, &Leaving{Channel: c, Users: users, Last: MessageID(r.Org().NextMessage - 1)})
}

func leavingDue(r *Realm, _ int64) func(*Turn) (any, error) {
	return stepOfOldest(&r.nouns.leaving, (*Turn).stepLeaving)
}

func (t *Turn) stepLeaving(job int64) {
	l := t.nouns.leaving.must(job)
	c := t.chans.must(l.Channel)
	f := &LeftBehind{Job: job, Channel: l.Channel}
	x := leavers{Turn: t, channel: l.Channel, met: map[int64]bool{}, all: t.by.channel[l.Channel].ids.Between(0, int64(cmp.Or(l.Last, MaxMessageID)))}
	x.here, x.elsewhere = x.all, Without(x.all, t.by.channel[l.Channel].sent)
	if !x.elsewhere.Empty() {
		x.here = Without(x.all, x.elsewhere)
		x.origins, x.elsewhere = t.origins(x.elsewhere, leavingOrigins)
	}
	worth, cost := false, 0
	l.Users.Each(func(id int64) bool {
		u := UserID(id)
		f.Users = append(f.Users, u)
		if cost++; l.Last == 0 && !c.Archived && t.Realm.Subscribed(u, l.Channel) {
			return cost < leavingStep
		}
		unread := x.unread(u)
		cost += x.looked / leavingBytes
		if !unread.shares(x.all) && !unread.shares(x.here) {
			cost += leavingFound
		}
		if !x.elsewhere.Empty() {
			cost += t.sources(u) * (1 + x.elsewhere.size()/leavingSources)
		}
		if unread.Empty() {
			return cost < leavingStep
		}
		i := slices.IndexFunc(f.Together, func(g ReadTogether) bool { return g.Messages.is(unread) })
		if i < 0 {
			i = len(f.Together)
			f.Together = append(f.Together, ReadTogether{Messages: unread})
			cost += unread.size() / leavingBytes
		}
		f.Together[i].Users = append(f.Together[i].Users, u)
		worth = worth || unread.Len() >= backlogUnread
		return cost < leavingStep
	})
	if old := t.nouns.backlogs.find(l.Backlog); worth && old != nil && old.Messages.is(x.all) {
		f.Backlog = l.Backlog
	} else if worth && l.Users.Len() >= backlogReaders {
		f.Backlog, f.All = t.nextID("backlog"), x.all
	}
	t.Record(f)
}

// leavers finds what people who leave a channel have not read.
type leavers struct {
	*Turn
	channel ChannelID
	all     Set // its messages
	// here is those that were sent to it: his relation to it says whether somebody received them; to origins, the same of
	// those that were sent there. What came from yet other channels is elsewhere.
	here      Set
	origins   []sentTo
	elsewhere Set
	met       map[int64]bool // whether backlogs have some of all
	looked    int            // bytes of sets the last one took
}

// unread is what of all messages a user has a row of and has not read. It must not be changed: mostly it is all or here.
func (x *leavers) unread(u UserID) Set {
	rd := x.reading.find(u)
	all, read := x.all, false
	x.looked = 0
	if x.hasReadSome(rd) {
		ids := x.readOf(rd)
		x.looked += ids.size()
		first, _ := all.Min()
		all = all.Between(ids.missing(first), MaxMessageID) // mostly he has read everything up to some message
		x.looked += all.size()
		if all = Without(all, ids); all.Empty() {
			return all
		}
		read = true
	}
	// left is what of some of the messages he has not read.
	left := func(some Set) Set {
		switch {
		case !read:
			return some
		case some.shares(x.all):
			return all
		}
		x.looked += some.size()
		return Both(some, all)
	}
	var parts []Set // which have no message in common
	n := 0
	add := func(s Set) {
		if !s.Empty() {
			parts, n = append(parts, s), n+s.Len()
		}
	}
	received := func(c ChannelID, ids Set) {
		if s := x.SubscriptionOf(u, c); s != nil && len(s.Spans) > 0 {
			ids = left(ids)
			for _, p := range s.Spans {
				add(p.of(ids))
			}
		}
	}
	received(x.channel, x.here)
	for _, o := range x.origins {
		received(o.channel, o.ids)
	}
	if !x.elsewhere.Empty() {
		elsewhere := left(x.elsewhere)
		add(x.rowsWithin(u, &elsewhere))
	}
	if rd == nil || !rd.Rows.Meets(all) && !rd.Lost.Meets(all) {
		switch {
		case n == all.Len():
			return all
		case len(parts) == 1:
			return parts[0]
		}
		x.looked += all.size()
		return Either(parts...)
	}
	x.looked += all.size()
	unread := Either(append(parts, Both(rd.Rows, all))...)
	unread.Subtract(Without(rd.Lost, rd.Rows))
	return unread
}

// hasReadSome reports whether the user whose marks these are has read any of all.
func (x *leavers) hasReadSome(rd *Reading) bool {
	if rd == nil {
		return false
	}
	for _, b := range rd.Behind {
		meets, known := x.met[b]
		if !known {
			meets = x.all.Meets(x.nouns.backlogs.must(b).Messages)
			x.met[b] = meets
		}
		if meets {
			return true
		}
	}
	x.looked += rd.Read.size()
	return x.all.Meets(rd.Read)
}

// LeftBehind says a channel's messages are read for some who left it; the job forgets them.
type LeftBehind struct {
	Job     int64
	Channel ChannelID
	Users   []UserID // looked at
	Readers []UserID // of those, in facts of before Together, who had unread messages
	Read    []Set    // which; one each
	Whole   []UserID // likewise, who had not read any of All
	All     Set      // all messages, if Backlog is made of them
	// Together is those who had unread messages, by which.
	Together []ReadTogether
	Backlog  int64 // to which those refer who had many; 0: nobody
}

// ReadTogether is messages that are read for some users.
type ReadTogether struct {
	Users    []UserID
	Messages Set
}

// together is Together, whenever the fact was written.
func (f *LeftBehind) together() []ReadTogether {
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
	l := r.nouns.leaving.change(f.Job)
	var b *Backlog
	if f.Backlog != 0 {
		if !f.All.Empty() {
			r.usedID("backlog", f.Backlog)
			r.nouns.backlogs.put(f.Backlog, &Backlog{Messages: f.All})
			l.Backlog = f.Backlog
		}
		b = r.nouns.backlogs.change(f.Backlog)
	}
	for _, g := range f.together() {
		many := b != nil && g.Messages.Len() >= backlogUnread
		for _, u := range g.Users {
			rd := r.reading.open(u)
			if many && len(rd.Behind) < maxBehind {
				rd.Behind = append(rd.Behind, f.Backlog)
				b.Readers++
			} else {
				rd.Read.Union(g.Messages)
			}
		}
	}
	if b != nil && b.Readers == 0 {
		r.nouns.backlogs.remove(f.Backlog)
	}
	for _, u := range f.Users {
		l.Users.Remove(int64(u))
	}
	if l.Users.Empty() {
		r.nouns.leaving.remove(f.Job)
	}
}

// forget has a user refer no longer to some backlogs.
func (r *Realm) forget(rd *Reading, some func(*Backlog) bool) {
	rd.Behind = slices.DeleteFunc(rd.Behind, func(id int64) bool {
		if !some(r.nouns.backlogs.must(id)) {
			return false
		}
		b := r.nouns.backlogs.change(id)
		if b.Readers--; b.Readers == 0 {
			r.nouns.backlogs.remove(id)
		}
		return true
	})
	if len(rd.Behind) == 0 {
		rd.Behind = nil
	}
}

func (f *LeftBehind) tell(r *Realm) []Notice {
	var out []Notice
	for _, g := range f.together() {
		if to := r.only(g.Users...); len(to) > 0 {
			out = append(out, Notice{To: to, Event: &ReadBehind{g.Messages}})
		}
	}
	return out
}

// ReadBehind is the event update_message_flags of messages in a channel that was left.
type ReadBehind struct{ Messages Set }

func (*ReadBehind) EventType() string { return "update_message_flags" }
