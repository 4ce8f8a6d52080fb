package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Every user may see every other user, unless guests are limited. A limited guest sees only users that share a channel
// or a direct conversation with the guest. This follows from the rows, but the guest's clients must get events when it
// changes. Facts that can change it are therefore recorded with recordWithVisibility.

// UserAppeared is the event realm_user/add, for connected users that see the same fields of the account.
type UserAppeared struct {
	User    User // without fields that only the server may know
	Public  bool // all users see the real email address
	Sees    bool // these users may see the email address
	Unknown bool // these users may not see the account; clients that need it get a placeholder
}

func (*UserAppeared) EventType() string { return "realm_user" }

// UserVanished is the event realm_user/remove: a guest may no longer see an account.
type UserVanished struct{ User UserID }

func (*UserVanished) EventType() string { return "realm_user" }

// announceUser sends u to each of the connected users in to, limited to the fields that user may see. With allMaySee,
// all of them may see the account, even if the rows do not say so yet: the fact that follows makes it visible.
func (r *Realm) announceUser(u *User, to []UserID, allMaySee bool) (out []Notice) {
	var withEmail, withoutEmail, hidden []UserID
	for _, id := range to {
		switch viewer := r.users.must(id); {
		case !allMaySee && !r.maySeeUser(viewer, u):
			hidden = append(hidden, id)
		case r.SeesEmail(viewer, u):
			withEmail = append(withEmail, id)
		default:
			withoutEmail = append(withoutEmail, id)
		}
	}
	add := func(to []UserID, e UserAppeared) {
		if len(to) == 0 {
			return
		}
		e.User, e.Public = *u, u.IsBot() || u.IntSetting("email_address_visibility") == 1
		e.User.Keys, e.User.KeyInfo, e.User.Password, e.User.Settings = nil, nil, "", nil
		e.User.Profile, e.User.ProfileHTML = cloneMap(u.Profile), cloneMap(u.ProfileHTML)
		out = append(out, Notice{To: to, Event: &e})
	}
	add(withEmail, UserAppeared{Sees: true})
	add(withoutEmail, UserAppeared{})
	add(hidden, UserAppeared{Unknown: true})
	return out
}

// visibleUsers returns the users that me may see. It may omit bots, which everyone sees.
func (r *Realm) visibleUsers(me *User) (s ids.Set) {
	if !me.IsGuest() || !r.GuestsLimited() {
		r.EachUser(func(u *User) {
			if !u.IsBot() {
				s.Add(int64(u.ID))
			}
		})
		return s
	}
	s.Add(int64(me.ID))
	r.subscribedChannelSet(me.ID).Each(func(c int64) bool {
		s.Union(r.index.channels[ChannelID(c)].active)
		return true
	})
	for _, t := range r.index.conversationsOf[me.ID] {
		if !r.index.conversations[t].ids.Empty() {
			for _, u := range r.conversations.must(t).Members {
				s.Add(int64(u))
			}
		}
	}
	return s
}

// mayChangeUserVisibility reports whether a fact may change which users a limited guest sees. For nearly all facts it
// does not.
func (r *Realm) mayChangeUserVisibility(f Fact) bool {
	switch f := f.(type) {
	case *Subscribed, *Unsubscribed, *JoinedChannels, *LeftChannels, *UserDeactivated, *UserReactivated:
		return true
	case *MessageSent: // the first of a conversation, or the first since all of them were deleted
		return f.Channel == 0 && (f.NewTalk || r.index.conversations[f.Talk].ids.Empty())
	case *MessagesDeleted: // the last ones of a conversation
		if f.Channel != 0 {
			return false
		}
		conversation := DirectConversationID(r.message(f.IDs[0]).conversation)
		return r.index.conversations[conversation].ids.Len() == len(f.IDs)
	case *MessagesArchived: // the last ones of a conversation
		return slices.ContainsFunc(f.Groups, func(g ArchivedGroup) bool {
			return g.Channel == 0 && r.index.conversations[r.message(g.IDs[0]).conversation].ids.Len() == len(g.IDs)
		})
	case *MessagesRestored: // the first ones of a conversation
		return !r.emptyConversations(f).Empty()
	case *UserChanged:
		return f.Role != nil
	}
	return false
}

// emptyConversations returns the direct conversations that have no message before a fact restores some.
func (r *Realm) emptyConversations(f *MessagesRestored) (out ids.Set) {
	row := r.small.archived.must(f.Row)
	f.IDs.Each(func(id int64) bool {
		if m := row.message(id); m.channel == 0 && r.index.conversations[m.conversation].ids.Empty() {
			out.Add(int64(m.conversation))
		}
		return true
	})
	return out
}

// activeSubscribersOf returns the active subscribers of any of the channels.
func (r *Realm) activeSubscribersOf(channels []ChannelID) (s ids.Set) {
	for _, c := range channels {
		s.Union(r.index.channels[c].active)
	}
	return s
}

// Limits of the facts and events about users that a guest starts or stops seeing.
const (
	// maxUsersPerVisibilityFact is how many accounts one fact contains: one fact may send a queue at most 128 events.
	maxUsersPerVisibilityFact = 100
	// maxVisibilityEvents is the maximum number of accounts sent as events. Above it the guest's queues are closed, so
	// that the clients register again: one answer with the whole list is cheaper.
	maxVisibilityEvents = 1000
)

// recordWithVisibility records a fact that may change which users limited guests see. For each connected guest
// concerned it also records PeopleSeen facts. The users that the guest will see because of f come before f. All other
// users that the guest sees now, and those no longer seen, come after it. For facts that change nothing of that, and
// where guests are not limited, it is the same as Record.
func (t *Turn) recordWithVisibility(f Fact) {
	before := t.usersVisibleBefore(f)
	t.announceNewUsers(f, before)
	t.record(f)
	t.recordVisibilityChanges(before)
}

// visibleBefore is the before-set of a guest: the users that the guest saw before a fact.
type visibleBefore struct {
	viewer UserID
	users  ids.Set
}

// usersVisibleBefore returns the before-sets of the guests for whom f may change which users they see.
func (t *Turn) usersVisibleBefore(f Fact) (out []visibleBefore) {
	if !t.mayChangeUserVisibility(f) || !t.GuestsLimited() {
		return nil
	}
	for _, id := range t.userVisibilityAudience(f) {
		out = append(out, visibleBefore{id, t.visibleUsers(t.users.must(id))})
	}
	return out
}

// announceNewUsers records PeopleSeen for the users that guests will see after the fact f. Their clients must get these
// users before the events of f: some clients ignore events about unknown users.
func (t *Turn) announceNewUsers(f Fact, before []visibleBefore) {
	for i := range before {
		b := &before[i]
		visible := ids.Union(b.users, t.usersShownBy(f, b.viewer))
		appeared := t.withoutBots(ids.Difference(visible, b.users))
		if len(appeared) > maxVisibilityEvents {
			continue // recordVisibilityChanges closes the queues instead
		}
		for part := range slices.Chunk(appeared, maxUsersPerVisibilityFact) {
			t.Record(&PeopleSeen{Viewer: b.viewer, Appeared: part})
		}
		b.users = visible
	}
}

// usersShownBy returns the users that viewer will see because of the fact, as far as the fact itself says so.
func (r *Realm) usersShownBy(f Fact, viewer UserID) (s ids.Set) {
	join := func(f *Subscribed) {
		if in := ids.Union(r.index.channels[f.Channel].active, ids.SetOf(f.Users...)); in.Has(int64(viewer)) {
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
	case *UserReactivated: // the audience shares a channel with that user
		s = ids.SetOf(f.ID)
	case *MessageSent:
		s = ids.SetOf(f.People...)
	}
	return s
}

// recordVisibilityChanges records PeopleSeen for the users that guests see now, but did not see before, and for those
// they no longer see.
func (t *Turn) recordVisibilityChanges(before []visibleBefore) {
	for _, b := range before {
		now := t.visibleUsers(t.users.must(b.viewer))
		appeared := t.withoutBots(ids.Difference(now, b.users))
		vanished := t.withoutBots(ids.Difference(b.users, now))
		if len(appeared)+len(vanished) > maxVisibilityEvents {
			t.closeQueuesOf(b.viewer)
			continue
		}
		for part := range slices.Chunk(appeared, maxUsersPerVisibilityFact) {
			t.Record(&PeopleSeen{Viewer: b.viewer, Appeared: part})
		}
		for part := range slices.Chunk(vanished, maxUsersPerVisibilityFact) {
			t.Record(&PeopleSeen{Viewer: b.viewer, Vanished: part})
		}
	}
}

// closeGuestQueues closes the queues of all guests, so that their clients register again. Call it after a change of
// can_access_all_users_group: every guest's list of users may be wrong then.
func (t *Turn) closeGuestQueues() {
	for _, id := range t.matchingAudience((*User).IsGuest) {
		t.closeQueuesOf(id)
	}
}

// withoutBots returns the ids of s that are not bots. Everyone sees bots anyway.
func (r *Realm) withoutBots(s ids.Set) (out []UserID) {
	s.Each(func(id int64) bool {
		if u := r.users.must(UserID(id)); !u.IsBot() {
			out = append(out, u.ID)
		}
		return true
	})
	return out
}

// closeQueuesOf closes all queues of a user, so that the user's clients register again.
func (t *Turn) closeQueuesOf(u UserID) {
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

// PeopleSeen says which users a guest sees now and which no longer. It changes no row. recordWithVisibility records it
// directly before or after the fact that is the reason.
type PeopleSeen struct {
	Viewer             UserID
	Appeared, Vanished []UserID
}

func (*PeopleSeen) apply(*Realm) {}

func (f *PeopleSeen) notices(r *Realm) (out []Notice) {
	to := r.usersAudience(f.Viewer)
	if len(to) == 0 {
		return nil
	}
	for _, u := range f.Appeared {
		out = append(out, r.announceUser(r.users.must(u), to, true)...)
	}
	for _, u := range f.Vanished {
		out = append(out, Notice{To: to, Event: &UserVanished{u}})
	}
	return out
}
