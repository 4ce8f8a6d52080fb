package realm

import "slices"

// Who subscribes or unsubscribes very many people makes a sequence of turns, so that nobody else waits for all of them.
// The first turn checks everybody and everything, creates the channels and joins the first people; what it refuses is
// refused as a whole. Each later turn joins some more, with facts and events of their own. In between some have joined and
// some have not, as if they had been subscribed by several requests. The answer waits for the last turn. When the server
// stops in between, those who joined have joined, nothing was acknowledged, and the same request joins the rest, or one
// that subscribes if a channel was to be created; what the notification bot writes in a new channel comes with the last
// turn, or not at all. People leave in the same way.

// MaxJoinedAtOnce is how many subscriptions one turn makes of a request that makes more: a thousand are about 1 ms.
const MaxJoinedAtOnce = 1000

// JoinMore asks to go on with a Subscribe that was allowed. Accounts and channels that were closed since are left out.
type JoinMore struct {
	Channels []ChannelID
	Colors   []string // as asked for, one each
	Users    []UserID
	AtOnce   int
	Created  []ChannelID // of Channels, those the first turn created: everybody is in them before the first message
	Announce bool
}

// split leaves the first people in a joining, as many as may join at once, and says what then is left to do. As few as
// may be told one by one are never split: they are told in the turn that joins them.
func (c Subscribe) split(j *joining, created []ChannelID) *JoinMore {
	if c.AtOnce == 0 || len(j.users) <= MaxNewSubscriptionMessages || len(j.users)*len(j.joins) <= c.AtOnce {
		return nil
	}
	n := max(1, c.AtOnce/len(j.joins))
	m := &JoinMore{AtOnce: c.AtOnce, Created: created, Announce: c.Announce}
	for _, x := range j.joins {
		m.Channels, m.Colors = append(m.Channels, x.existing.ID), append(m.Colors, x.color)
	}
	for _, u := range j.users[n:] {
		m.Users = append(m.Users, u.ID)
	}
	j.users = j.users[:n]
	return m
}

func (c JoinMore) Decide(t *Turn) (Joined, error) {
	n := min(len(c.Users), max(1, c.AtOnce/len(c.Channels)))
	j := &joining{}
	for _, id := range c.Users[:n] {
		if u := t.Find(id); u != nil && u.Active {
			j.users = append(j.users, u)
		}
	}
	for i, id := range c.Channels {
		if ch := t.chans.find(id); ch != nil && !ch.Archived {
			j.joins = append(j.joins, join{existing: ch, color: c.Colors[i]})
		}
	}
	a := Joined{Subscribed: make(map[UserID][]string, n), Already: map[UserID][]string{}}
	t.join(j, &a)
	if c.Users = c.Users[n:]; len(c.Users) > 0 {
		a.Rest = &c
		return a, nil
	}
	var created []*Channel
	for _, x := range j.joins {
		if slices.Contains(c.Created, x.existing.ID) {
			created = append(created, x.existing)
		}
	}
	t.welcomeNew(created, c.Announce)
	return a, nil
}

// LeaveMore asks to go on with an Unsubscribe that was allowed.
type LeaveMore struct {
	Channels []ChannelID
	Users    []UserID
	AtOnce   int // as in Unsubscribe
}

func (c LeaveMore) Decide(t *Turn) (Left, error) {
	n := len(c.Users)
	if c.AtOnce != 0 && n*len(c.Channels) > c.AtOnce {
		n = min(n, max(1, c.AtOnce/len(c.Channels)))
	}
	var channels []*Channel
	for _, id := range c.Channels {
		if ch := t.chans.find(id); ch != nil {
			channels = append(channels, ch)
		}
	}
	a := t.leaveChannels(channels, c.Users[:n])
	if c.Users = c.Users[n:]; len(c.Users) > 0 {
		a.Rest = &c
	}
	return a, nil
}

// Add makes the answer of a later turn part of the first one's.
func (a *Left) Add(more Left) {
	for _, name := range more.Removed {
		if !slices.Contains(a.Removed, name) {
			a.Removed = append(a.Removed, name)
		}
	}
	a.NotRemoved = slices.DeleteFunc(a.NotRemoved, func(name string) bool { return slices.Contains(more.Removed, name) })
	a.Rest = more.Rest
}

// Add makes the answer of a later turn part of the first one's.
func (a *Joined) Add(more Joined) {
	for u, names := range more.Subscribed {
		a.Subscribed[u] = names
	}
	for u, names := range more.Already {
		a.Already[u] = names
	}
	a.Rest = more.Rest
}
