package realm

import "slices"

// Whom a channel's events are for. They are many and go to many, so they are put together from sets instead of asking
// every listening user.

// listeners is who listens, by role; it is kept until somebody begins or ceases to listen, or gets another role.
type listeners struct {
	known                   bool
	members, admins, guests Set // not guests; administrators and owners

	all    []UserID // the members
	except []UserID // whom they were asked for without, last; nil: not yet
	others []UserID // the answer
}

func (r *Realm) listeners() *listeners {
	l := &r.by.roles
	if !l.known {
		*l = listeners{known: true}
		r.by.listening.Each(func(id int64) bool {
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
		l.all = IDs[UserID](l.members)
	}
	return l
}

// without is the members except some, who ascend.
func (l *listeners) without(some []UserID) []UserID {
	if l.except == nil || !slices.Equal(l.except, some) {
		l.except, l.others = some, others(l.all, some)
	}
	return l.others
}

// knowers is every listening user who may know the channel: the audience of its stream events.
func (r *Realm) knowers(c *Channel) []UserID {
	if r.knownToMembers(c) {
		return r.listeners().all
	}
	return IDs[UserID](r.knowing(c))
}

// peers is every listening user who hears of others joining and leaving the channel, except some. They are those who may
// know the channel: guests know only channels they are in and those open to the web.
func (r *Realm) peers(c *Channel, except []UserID) []UserID {
	if c.Private || c.WebPublic {
		return others(r.knowers(c), except)
	}
	l := r.listeners()
	members := l.without(except)
	if r.knownToMembers(c) {
		return members
	}
	guests := others(IDs[UserID](Both(l.guests, r.by.channel[c.ID].subscribers)), except)
	out := make([]UserID, 0, len(members)+len(guests))
	rest := members
	for _, g := range guests { // few among many
		n, _ := slices.BinarySearch(rest, g)
		out, rest = append(append(out, rest[:n]...), g), rest[n:]
	}
	return append(out, rest...)
}

// knownToMembers reports whether just the members among those who listen may know a channel.
func (r *Realm) knownToMembers(c *Channel) bool {
	return !c.Private && !c.WebPublic && !r.by.channel[c.ID].subscribers.Meets(r.listeners().guests)
}

// knowing is every listening user who may know the channel. It must not be changed.
func (r *Realm) knowing(c *Channel) Set {
	if c.WebPublic {
		return r.by.listening
	}
	if r.knownToMembers(c) {
		return r.listeners().members
	}
	in := Both(r.by.channel[c.ID].subscribers, r.by.listening)
	if !c.Private {
		return Either(r.listeners().members, in)
	}
	sets := []Set{in, r.listeners().admins}
	for _, s := range sightSettings {
		sets = append(sets, r.listeningIn(r.ChannelSetting(c, s)))
	}
	return Either(sets...)
}

// listeningIn is the listening users, guests left out, that a permission setting means.
func (r *Realm) listeningIn(v GroupValue) Set {
	if v.Group == groupNobody {
		return Set{}
	}
	l := r.listeners()
	if v.Group == groupMembers || v.Group == groupEveryone {
		return l.members
	}
	var out Set
	if v.Group == 0 && len(v.Subgroups) == 0 {
		for _, u := range v.Members {
			if l.members.Has(int64(u)) {
				out.Add(int64(u))
			}
		}
		return out
	}
	l.members.Each(func(id int64) bool {
		if r.inValue(r.users.must(UserID(id)), v) {
			out.Add(id)
		}
		return true
	})
	return out
}
