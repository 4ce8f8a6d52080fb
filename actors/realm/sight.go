package realm

import "slices"

// Who knows of whom: everybody of everybody, unless guests are limited to people they share a channel or a direct
// conversation with. What a limited guest sees follows from rows; the events about it do not, so the turn that moves
// the horizon tells.

// UserAppeared is the event realm_user/add of an account, for one kind of listener.
type UserAppeared struct {
	User    User // without what only the server may know
	Public  bool // everyone is shown the real address
	Sees    bool // these listeners may know it
	Unknown bool // these listeners may not know the account: a stand-in for clients that need one
}

func (*UserAppeared) EventType() string { return "realm_user" }

// UserVanished is the event realm_user/remove: a guest may not know an account any more.
type UserVanished struct{ User UserID }

func (*UserVanished) EventType() string { return "realm_user" }

// introduce tells listeners of an account, each as much of it as he may know. With met they may all know it, even where
// the rows do not say so yet: what they are about to be told makes them acquainted.
func (r *Realm) introduce(u *User, to []UserID, met bool) (out []Notice) {
	var see, blind, strangers []UserID
	for _, id := range to {
		switch w := r.users.must(id); {
		case !met && !r.maySee(w, u):
			strangers = append(strangers, id)
		case r.SeesEmail(w, u):
			see = append(see, id)
		default:
			blind = append(blind, id)
		}
	}
	add := func(to []UserID, e UserAppeared) {
		if len(to) == 0 {
			return
		}
		e.User, e.Public = *u, u.IsBot() || u.Int("email_address_visibility") == 1
		e.User.Keys, e.User.Password, e.User.Settings = nil, "", nil
		e.User.Profile, e.User.ProfileHTML = cloneMap(u.Profile), cloneMap(u.ProfileHTML)
		out = append(out, Notice{To: to, Event: &e})
	}
	add(see, UserAppeared{Sees: true})
	add(blind, UserAppeared{})
	add(strangers, UserAppeared{Unknown: true})
	return out
}

// knows is the people somebody sees, and perhaps bots, whom everybody sees.
func (r *Realm) knows(me *User) (s Set) {
	if !me.IsGuest() || !r.GuestsLimited() {
		r.EachUser(func(u *User) {
			if !u.IsBot() {
				s.Add(int64(u.ID))
			}
		})
		return s
	}
	s.Add(int64(me.ID))
	r.channelsOf(me.ID).Each(func(c int64) bool {
		s.Union(r.by.channel[ChannelID(c)].active)
		return true
	})
	for _, t := range r.by.talksOf[me.ID] {
		if !r.by.talk[t].ids.Empty() {
			for _, u := range r.talks.must(t).Members {
				s.Add(int64(u))
			}
		}
	}
	return s
}

// shifts reports a fact that may change whom somebody sees; nearly all do not.
func (r *Realm) shifts(f Fact) bool {
	switch f := f.(type) {
	case *Subscribed, *Unsubscribed, *JoinedChannels, *LeftChannels, *UserDeactivated, *UserReactivated:
		return true
	case *MessageSent: // the first of a conversation, or the first since all of it was deleted
		return f.Channel == 0 && (f.NewTalk || r.by.talk[f.Talk].ids.Empty())
	case *MessagesDeleted: // the last ones of a conversation
		return f.Channel == 0 && r.by.talk[TalkID(r.message(f.IDs[0]).talk)].ids.Len() == len(f.IDs)
	case *UserChanged:
		return f.Role != nil
	}
	return false
}

// onlookers is the listening people whose sight of others a fact may change, each once.
func (r *Realm) onlookers(f Fact) []UserID {
	var near Set // the guests among them
	switch f := f.(type) {
	case *Subscribed:
		near = Either(r.by.channel[f.Channel].subscribers, SetOf(f.Users...))
	case *Unsubscribed:
		near = r.by.channel[f.Channel].subscribers
	case *JoinedChannels:
		for i := range f.Each {
			near.Union(r.by.channel[f.Each[i].Channel].subscribers)
			near.Union(SetOf(f.Each[i].Users...))
		}
	case *LeftChannels:
		for i := range f.Each {
			near.Union(r.by.channel[f.Each[i].Channel].subscribers)
		}
	case *UserDeactivated:
		near = r.around(f.Channels)
	case *UserReactivated:
		near = r.around(f.Channels)
	case *MessageSent:
		near = SetOf(f.People...)
	case *MessagesDeleted:
		near = SetOf(r.talks.must(TalkID(r.message(f.IDs[0]).talk)).Members...)
	case *UserChanged:
		return r.only(f.ID)
	}
	var out []UserID
	Both(near, r.by.listening).Each(func(u int64) bool {
		if r.users.must(UserID(u)).IsGuest() {
			out = append(out, UserID(u))
		}
		return true
	})
	return out
}

// around is everybody in any of some channels.
func (r *Realm) around(channels []ChannelID) (s Set) {
	for _, c := range channels {
		s.Union(r.by.channel[c].active)
	}
	return s
}

// Limits of telling a listener who came into sight and who went out of it.
const (
	// sightStep is how many accounts one fact tells of: a fact may not tell a queue more than 128 events.
	sightStep = 100
	// maxSightEvents is above how many accounts a listener's queues end instead, so that he registers anew: one
	// answer of the whole list is cheaper than so many events.
	maxSightEvents = 1000
)

// horizon is what onlookers saw before a fact.
type horizon struct {
	viewer UserID
	before Set
}

func (t *Turn) horizons(f Fact) (out []horizon) {
	if !t.shifts(f) || !t.GuestsLimited() {
		return nil
	}
	for _, id := range t.onlookers(f) {
		out = append(out, horizon{id, t.knows(t.users.must(id))})
	}
	return out
}

// acquaint tells onlookers whom they will see by a fact, before they hear of those people: some clients drop what they are
// told of people they do not know.
func (t *Turn) acquaint(f Fact, was []horizon) {
	for i := range was {
		h := &was[i]
		coming := Either(h.before, t.coming(f, h.viewer))
		more := t.withoutBots(Without(coming, h.before))
		if len(more) > maxSightEvents {
			continue
		}
		for ids := range slices.Chunk(more, sightStep) {
			t.Record(&PeopleSeen{Viewer: h.viewer, Appeared: ids})
		}
		h.before = coming
	}
}

// coming is whom a fact says that an onlooker will see.
func (r *Realm) coming(f Fact, viewer UserID) (s Set) {
	join := func(f *Subscribed) {
		if in := Either(r.by.channel[f.Channel].active, SetOf(f.Users...)); in.Has(int64(viewer)) {
			s.Union(in)
		}
	}
	switch f := f.(type) {
	case *Subscribed:
		join(f)
	case *JoinedChannels:
		for i := range f.Each {
			join(&f.Each[i])
		}
	case *UserReactivated: // onlookers share a channel with him
		s = SetOf(f.ID)
	case *MessageSent:
		s = SetOf(f.People...)
	}
	return s
}

// resight tells onlookers whom else they see since a fact, and whom no more.
func (t *Turn) resight(f Fact, was []horizon) {
	for _, h := range was {
		now := t.knows(t.users.must(h.viewer))
		more, less := t.withoutBots(Without(now, h.before)), t.withoutBots(Without(h.before, now))
		if len(more)+len(less) > maxSightEvents {
			t.endQueues(h.viewer)
			continue
		}
		for ids := range slices.Chunk(more, sightStep) {
			t.Record(&PeopleSeen{Viewer: h.viewer, Appeared: ids})
		}
		for ids := range slices.Chunk(less, sightStep) {
			t.Record(&PeopleSeen{Viewer: h.viewer, Vanished: ids})
		}
	}
	if o, ok := f.(*OrganizationChanged); ok && o.Setting == "can_access_all_users_group" {
		// Everything guests know of people may be wrong now.
		for _, id := range t.where((*User).IsGuest) {
			t.endQueues(id)
		}
	}
}

// withoutBots leaves out whom everybody sees anyway.
func (r *Realm) withoutBots(s Set) (out []UserID) {
	s.Each(func(id int64) bool {
		if u := r.users.must(UserID(id)); !u.IsBot() {
			out = append(out, u.ID)
		}
		return true
	})
	return out
}

// endQueues makes somebody's clients register anew.
func (t *Turn) endQueues(u UserID) {
	var ends []QueueID
	t.EachQueue(func(q *Queue) {
		if q.User == u {
			ends = append(ends, q.ID)
		}
	})
	for _, id := range ends {
		t.Record(&QueueClosed{id, u})
	}
}

// PeopleSeen says whom a guest sees now, and whom no more. It changes nothing: it follows from the fact before it, or from
// the one after it, which tells him of people he did not know.
type PeopleSeen struct {
	Viewer             UserID
	Appeared, Vanished []UserID
}

func (*PeopleSeen) apply(*Realm) {}
func (*PeopleSeen) calm()        {}

func (f *PeopleSeen) tell(r *Realm) (out []Notice) {
	to := r.only(f.Viewer)
	if len(to) == 0 {
		return nil
	}
	for _, u := range f.Appeared {
		out = append(out, r.introduce(r.users.must(u), to, true)...)
	}
	for _, u := range f.Vanished {
		out = append(out, Notice{To: to, Event: &UserVanished{u}})
	}
	return out
}

// LogIn notes that somebody logged in.
type LogIn struct{ User UserID }

func (c LogIn) Decide(t *Turn) (Done, error) {
	if u := t.Find(c.User); u != nil && !u.LoggedIn {
		then := *u
		then.Joined = t.Now
		f := &UserLoggedIn{ID: u.ID, At: t.Now, Waits: u.Active && t.listedFull(u) && !t.listedFull(&then)}
		if f.Waits {
			t.keepSight(func() { t.Record(f) })
		} else {
			t.Record(f)
		}
	}
	return Done{}, nil
}

// UserLoggedIn says that somebody used an account that others had made for him: he joined now.
type UserLoggedIn struct {
	ID    UserID
	At    int64
	Waits bool // is no full member any more: his waiting period begins now
}

func (f *UserLoggedIn) apply(r *Realm) {
	u := r.users.change(f.ID)
	u.LoggedIn, u.Joined = true, f.At
}

func (f *UserLoggedIn) tell(r *Realm) (out []Notice) {
	if to := r.whoSee(r.users.must(f.ID)); len(to) > 0 {
		out = append(out, Notice{To: to, Event: f})
	}
	if to := r.everyone(); f.Waits && len(to) > 0 {
		out = append(out, Notice{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Users: []UserID{f.ID}}})
	}
	return out
}

func (*UserLoggedIn) EventType() string { return "realm_user" }
