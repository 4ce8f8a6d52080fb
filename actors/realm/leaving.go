package realm

// When people leave a channel, or it is archived, its messages count as read for them: not at once, since they can be
// many, but in steps of the server's own. Clients count them as read at once, so those of before are read also for who
// comes back in between. A job is what remains to be done.

// Leaving is the row of one job.
type Leaving struct {
	Channel ChannelID
	Users   Set
	Last    MessageID // newest message when they left; 0 in rows of before that was kept: those who came back keep theirs unread
}

// leavingStep is how many users one turn looks at: each costs a few set operations, so a step stays below 5 ms.
const leavingStep = 500

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
	l.Users.Each(func(id int64) bool {
		u := UserID(id)
		f.Users = append(f.Users, u)
		if l.Last == 0 && !c.Archived && t.Realm.Subscribed(u, l.Channel) {
			return len(f.Users) < leavingStep
		}
		unread := Both(t.unreadOf(u), t.by.channel[l.Channel].ids)
		if l.Last != 0 {
			unread = unread.Between(0, int64(l.Last))
		}
		if !unread.Empty() {
			f.Readers, f.Read = append(f.Readers, u), append(f.Read, unread)
		}
		return len(f.Users) < leavingStep
	})
	t.Record(f)
}

// LeftBehind says a channel's messages are read for some who left it; the job forgets them.
type LeftBehind struct {
	Job     int64
	Channel ChannelID
	Users   []UserID // looked at
	Readers []UserID // of those, who had unread messages
	Read    []Set    // which; one each
}

func (f *LeftBehind) apply(r *Realm) {
	for i, u := range f.Readers {
		r.reading.open(u).Read.Union(f.Read[i])
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
	return out
}

// ReadBehind is the event update_message_flags of messages in a channel that was left.
type ReadBehind struct{ Messages Set }

func (*ReadBehind) EventType() string { return "update_message_flags" }
