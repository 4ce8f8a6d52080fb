package realm

import "cmp"

// When people leave a channel, or it is archived, its messages count as read for them: not at once, since they can be
// many, but in steps of the server's own. Clients count them as read at once, so those of before are read also for who
// comes back in between. A job is what remains to be done.

// Leaving is the row of one job.
type Leaving struct {
	Channel ChannelID
	Users   Set
	Last    MessageID // newest message when they left; 0 in rows of before that was kept: those who came back keep theirs unread
}

// How much one turn looks at, so that it stays below 5 ms: users, each a few set operations, and messages, which are
// written for whoever has not read them.
const (
	leavingStep     = 500
	leavingMessages = 300_000
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
	all := t.by.channel[l.Channel].ids.Between(0, int64(cmp.Or(l.Last, MaxMessageID)))
	elsewhere, looked := Without(all, t.by.channel[l.Channel].sent), 0
	l.Users.Each(func(id int64) bool {
		u := UserID(id)
		f.Users = append(f.Users, u)
		if l.Last == 0 && !c.Archived && t.Realm.Subscribed(u, l.Channel) {
			return len(f.Users) < leavingStep
		}
		unread := t.unreadIn(u, l.Channel, all, elsewhere)
		switch unread.Len() {
		case 0:
		case all.Len():
			f.Whole, f.All = append(f.Whole, u), all
		default:
			f.Readers, f.Read = append(f.Readers, u), append(f.Read, unread)
		}
		looked += all.Len() + 2*unread.Len()
		return len(f.Users) < leavingStep && looked < leavingMessages
	})
	t.Record(f)
}

// unreadIn is what of all messages of a channel a user has a row of and has not read; elsewhere is those of them that were
// sent to another channel. Of the others his relation to this one says whether he received them.
func (t *Turn) unreadIn(u UserID, c ChannelID, all, elsewhere Set) Set {
	rd := t.reading.find(u)
	if rd != nil {
		all = Without(all, rd.Read)
	}
	if all.Empty() {
		return all
	}
	var sets []Set
	if s := t.SubscriptionOf(u, c); s != nil {
		here := all
		if !elsewhere.Empty() {
			here = Without(all, elsewhere)
		}
		for _, p := range s.Spans {
			sets = append(sets, p.of(here))
		}
	}
	if moved := Both(all, elsewhere); !moved.Empty() {
		sets = append(sets, t.rowsWithin(u, &moved))
	}
	if rd != nil {
		sets = append(sets, Both(rd.Rows, all))
	}
	unread := Either(sets...)
	if rd != nil && !rd.Lost.Empty() {
		unread.Subtract(Without(rd.Lost, rd.Rows))
	}
	return unread
}

// LeftBehind says a channel's messages are read for some who left it; the job forgets them.
type LeftBehind struct {
	Job     int64
	Channel ChannelID
	Users   []UserID // looked at
	Readers []UserID // of those, who had unread messages
	Read    []Set    // which; one each
	Whole   []UserID // who had not read any of a set of messages, mostly all of the channel
	All     Set      // that set
}

func (f *LeftBehind) apply(r *Realm) {
	for i, u := range f.Readers {
		r.reading.open(u).Read.Union(f.Read[i])
	}
	for _, u := range f.Whole {
		r.reading.open(u).Read.Union(f.All)
	}
	l := r.nouns.leaving.change(f.Job)
	for _, u := range f.Users {
		l.Users.Remove(int64(u))
	}
	if l.Users.Empty() {
		r.nouns.leaving.remove(f.Job)
	}
}

func (f *LeftBehind) tell(r *Realm) []Notice {
	var out []Notice
	for i, u := range f.Readers {
		if to := r.only(u); len(to) > 0 {
			out = append(out, Notice{To: to, Event: &ReadBehind{f.Read[i]}})
		}
	}
	if to := r.only(f.Whole...); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &ReadBehind{f.All}})
	}
	return out
}

// ReadBehind is the event update_message_flags of messages in a channel that was left.
type ReadBehind struct{ Messages Set }

func (*ReadBehind) EventType() string { return "update_message_flags" }
