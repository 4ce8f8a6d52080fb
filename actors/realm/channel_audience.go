package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// The audiences of channel events. These events are frequent and have many receivers, so the audiences are combined
// from sets. Asking each connected user would be too slow.

// connectedUsers is a cache of the connected users by role. It is dropped when a user opens a first queue or closes the
// last one, and when a role changes.
type connectedUsers struct {
	valid                   bool
	members, admins, guests ids.Set // members are all but guests; admins are administrators and owners

	memberIDs  []UserID // members as a list, ascending
	lastExcept []UserID // the argument of the last call of membersExcept; nil: none yet
	lastAnswer []UserID // the result of that call
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

// membersExcept returns the members that are not in some, which ascends. It remembers the last result, because bulk
// changes ask for the same one many times.
func (l *connectedUsers) membersExcept(some []UserID) []UserID {
	if l.lastExcept == nil || !slices.Equal(l.lastExcept, some) {
		l.lastExcept, l.lastAnswer = some, withoutUsers(l.memberIDs, some)
	}
	return l.lastAnswer
}

// channelAudience returns the connected users that are allowed to know that the channel exists. They receive its stream
// events.
func (r *Realm) channelAudience(c *Channel) []UserID {
	if r.onlyMembersCanSee(c) {
		return r.connectedUsers().memberIDs
	}
	return ids.IDs[UserID](r.channelAudienceSet(c))
}

// subscriberChangeAudience returns the connected users that receive the peer_add and peer_remove events of a channel,
// without those in except. They are the users that are allowed to know that the channel exists. Guests are in it only
// for channels they are subscribed to and for web-public ones.
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
	for _, g := range guests { // guests are few among many members
		n, _ := slices.BinarySearch(rest, g)
		out, rest = append(append(out, rest[:n]...), g), rest[n:]
	}
	return append(out, rest...)
}

// onlyMembersCanSee reports whether, among the connected users, exactly the members are allowed to know that the
// channel exists.
func (r *Realm) onlyMembersCanSee(c *Channel) bool {
	return !c.Private && !c.WebPublic && !r.index.channels[c.ID].subscribers.Intersects(r.connectedUsers().guests)
}

// channelAudienceSet returns the same users as channelAudience, as a set. The set is shared: read only.
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

// connectedMembersIn returns the connected members that belong to the value of a permission setting. Guests are left
// out: they have none of these permissions. The set may be shared: read only.
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
