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

// connectedUsers returns the cache, and fills it first if it was dropped.
func (r *Realm) connectedUsers() *connectedUsers {
	cache := &r.index.queueAudiences
	if !cache.valid {
		*cache = connectedUsers{valid: true}
		r.index.usersWithQueues.Each(func(id int64) bool {
			if u := r.users.must(UserID(id)); !u.IsGuest() {
				cache.members.Add(id)
				if u.IsAdmin() {
					cache.admins.Add(id)
				}
			} else {
				cache.guests.Add(id)
			}
			return true
		})
		cache.memberIDs = ids.IDs[UserID](cache.members)
	}
	return cache
}

// membersExcept returns the members that are not in except, which ascends. It remembers the last result, because bulk
// changes ask for the same one many times.
func (c *connectedUsers) membersExcept(except []UserID) []UserID {
	if c.lastExcept == nil || !slices.Equal(c.lastExcept, except) {
		c.lastExcept, c.lastAnswer = except, withoutUsers(c.memberIDs, except)
	}
	return c.lastAnswer
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
	connected := r.connectedUsers()
	members := connected.membersExcept(except)
	if r.onlyMembersCanSee(c) {
		return members
	}
	subscribedGuests := ids.Intersection(connected.guests, r.index.channels[c.ID].subscribers)
	guests := withoutUsers(ids.IDs[UserID](subscribedGuests), except)
	audience := make([]UserID, 0, len(members)+len(guests))
	rest := members
	for _, guest := range guests { // guests are few among many members
		at, _ := slices.BinarySearch(rest, guest)
		audience, rest = append(append(audience, rest[:at]...), guest), rest[at:]
	}
	return append(audience, rest...)
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
	connected := r.connectedUsers()
	if v.Group == groupMembers || v.Group == groupEveryone {
		return connected.members
	}
	var out ids.Set
	if v.Group == 0 && len(v.Subgroups) == 0 {
		for _, u := range v.Members {
			if connected.members.Has(int64(u)) {
				out.Add(int64(u))
			}
		}
		return out
	}
	connected.members.Each(func(id int64) bool {
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
