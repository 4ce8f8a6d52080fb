package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// MutedUsers is the row of the users that one user has muted, in the order they were muted.
type MutedUsers struct{ List []MutedUser }

// MutedUser is one muted user.
type MutedUser struct {
	User  UserID
	Since int64
}

// MutedBy returns the users that a user has muted, in the order they were muted.
func (r *Realm) MutedBy(u UserID) []MutedUser {
	if l := r.small.mutedUsers.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return nil
}

// MuteUser asks to mute a user, or to unmute them.
type MuteUser struct {
	User   UserID
	Unmute bool
}

func (c MuteUser) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errNotMember()
	}
	if c.User == me.ID && !c.Unmute {
		return Done{}, BadRequest("Cannot mute self")
	}
	u := t.Find(c.User)
	if u == nil || u.System || !t.MaySeeUser(u) {
		return Done{}, errNoUser()
	}
	switch muted := t.hasMuted(me.ID, u.ID); {
	case c.Unmute && !muted:
		return Done{}, BadRequest("User is not muted")
	case !c.Unmute && muted:
		return Done{}, BadRequest("User already muted")
	}
	t.Record(&UserMuted{User: me.ID, Other: u.ID, Unmuted: c.Unmute, At: t.Now})
	if !c.Unmute {
		t.markReadFrom(me.ID, u.ID)
	}
	return Done{}, nil
}

// markReadFrom marks all messages of a sender as read for a user.
func (t *Turn) markReadFrom(u, sender UserID) {
	t.markRead(u, findSet(t.index.bySender, sender))
}

// UserMuted says that a user muted or unmuted another user.
type UserMuted struct {
	User, Other UserID
	Unmuted     bool
	At          int64
}

func (f *UserMuted) apply(r *Realm) {
	l := r.small.mutedUsers.ensure(f.User)
	if f.Unmuted {
		l.List = slices.DeleteFunc(slices.Clone(l.List), func(m MutedUser) bool { return m.User == f.Other })
		openSet(r.index.mutersOf, f.Other).Remove(int64(f.User))
		return
	}
	l.List = append(slices.Clone(l.List), MutedUser{f.Other, f.At})
	openSet(r.index.mutersOf, f.Other).Add(int64(f.User))
}

func (f *UserMuted) notices(r *Realm) []Notice {
	if to := r.usersAudience(f.User); len(to) > 0 {
		return []Notice{{To: to, Event: &MutedUsersChanged{r.MutedBy(f.User)}}}
	}
	return nil
}

// MutedUsersChanged is the event muted_users with the whole list.
type MutedUsersChanged struct{ List []MutedUser }

func (*MutedUsersChanged) EventType() string { return "muted_users" }

// mutersOf returns the recipients of a message that muted its sender, ascending.
func (t *Turn) mutersOf(f *MessageSent) []UserID {
	s := t.index.mutersOf[f.Sender]
	if s == nil {
		return nil
	}
	var out []UserID
	for _, u := range ids.IDs[UserID](*s) {
		if t.isRecipient(f, u) {
			out = append(out, u)
		}
	}
	return out
}

// hasMuted reports whether a user has muted another.
func (r *Realm) hasMuted(u, other UserID) bool {
	s := r.index.mutersOf[other]
	return s != nil && s.Has(int64(u))
}
