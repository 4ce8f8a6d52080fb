package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Whom a channel's events are for. They are many and go to many, so they are put together from sets instead of asking
// every listening user.

// connectedUsers is who listens, by role; it is kept until somebody begins or ceases to listen, or gets another role.
type connectedUsers struct {
	valid                   bool
	members, admins, guests ids.Set // not guests; administrators and owners

	memberIDs  []UserID // the members
	lastExcept []UserID // whom they were asked for without, last; nil: not yet
	lastAnswer []UserID // the answer
}

func (r *Realm) connectedUsers() *connectedUsers {
	l := &r.index.queueAudiences
	if !l.valid {
		*l = connectedUsers{valid: true}
		r.index.usersWithQueues.Each(func(id int64) bool {
			if u := r.users.must(UserID(id)); !u.IsGuest() {
				l.members.Add(id)
				if u.IsAdmin() {
					l.admins.Add(id)
				}
			} else {
				l.guests.Add(id)
			}
			return true
		})
		l.memberIDs = ids.IDs[UserID](l.members)
	}
	return l
}

// membersExcept is the members except some, who ascend.
func (l *connectedUsers) membersExcept(some []UserID) []UserID {
	if l.lastExcept == nil || !slices.Equal(l.lastExcept, some) {
		l.lastExcept, l.lastAnswer = some, withoutUsers(l.memberIDs, some)
	}
	return l.lastAnswer
}

// channelAudience is every listening user who may know the channel: the audience of its stream events.
func (r *Realm) channelAudience(c *Channel) []UserID {
	if r.onlyMembersCanSee(c) {
		return r.connectedUsers().memberIDs
	}
	return ids.IDs[UserID](r.channelAudienceSet(c))
}

// subscriberChangeAudience is every listening user who hears of others joining and leaving the channel, except some. They are those who may
// know the channel: guests know only channels they are in and those open to the web.
func (r *Realm) subscriberChangeAudience(c *Channel, except []UserID) []UserID {
	if c.Private || c.WebPublic {
		return withoutUsers(r.channelAudience(c), except)
	}
	l := r.connectedUsers()
	members := l.membersExcept(except)
	if r.onlyMembersCanSee(c) {
		return members
	}
	guests := withoutUsers(ids.IDs[UserID](ids.Intersection(l.guests, r.index.channels[c.ID].subscribers)), except)
	out := make([]UserID, 0, len(members)+len(guests))
	rest := members
	for _, g := range guests { // few among many
		n, _ := slices.BinarySearch(rest, g)
		out, rest = append(append(out, rest[:n]...), g), rest[n:]
	}
	return append(out, rest...)
}

// onlyMembersCanSee reports whether just the members among those who listen may know a channel.
func (r *Realm) onlyMembersCanSee(c *Channel) bool {
	return !c.Private && !c.WebPublic && !r.index.channels[c.ID].subscribers.Intersects(r.connectedUsers().guests)
}

// channelAudienceSet is every listening user who may know the channel. It must not be changed.
func (r *Realm) channelAudienceSet(c *Channel) ids.Set {
	if c.WebPublic {
		return r.index.usersWithQueues
	}
	if r.onlyMembersCanSee(c) {
		return r.connectedUsers().members
	}
	in := ids.Intersection(r.index.channels[c.ID].subscribers, r.index.usersWithQueues)
	if !c.Private {
		return ids.Union(r.connectedUsers().members, in)
	}
	sets := []ids.Set{in, r.connectedUsers().admins}
	for _, s := range channelVisibilitySettings {
		sets = append(sets, r.connectedMembersIn(r.ChannelSetting(c, s)))
	}
	return ids.Union(sets...)
}

// connectedMembersIn is the listening users, guests left out, that a permission setting means.
func (r *Realm) connectedMembersIn(v GroupValue) ids.Set {
	if v.Group == groupNobody {
		return ids.Set{}
	}
	l := r.connectedUsers()
	if v.Group == groupMembers || v.Group == groupEveryone {
		return l.members
	}
	var out ids.Set
	if v.Group == 0 && len(v.Subgroups) == 0 {
		for _, u := range v.Members {
			if l.members.Has(int64(u)) {
				out.Add(int64(u))
			}
		}
		return out
	}
	l.members.Each(func(id int64) bool {
		if r.inGroupValue(r.users.must(UserID(id)), v) {
			out.Add(id)
		}
		return true
	})
	return out
}

// subscribersAudience returns the subscribers with a queue, ascending. The cached list is dropped when a user joins,
// leaves, or opens the first or closes the last queue. Callers must not change it.
func (r *Realm) subscribersAudience(c ChannelID) []UserID {
	ix := r.index.channels[c]
	if !ix.connectedSubscribersValid {
		ix.connectedSubscribers = ids.IDs[UserID](ids.Intersection(ix.subscribers, r.index.usersWithQueues))
		ix.connectedSubscribersValid = true
	}
	return ix.connectedSubscribers
}
