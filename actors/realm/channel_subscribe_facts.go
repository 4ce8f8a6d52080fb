package realm

import "slices"

// One request may join or leave several channels. Clients get few events about it: each event covers all channels of
// one kind.

// How many channels one fact joins or leaves. One fact may send a queue at most 128 events.
const (
	// maxChannelsPerFact is for facts with several users: each channel causes at most three events for one client.
	maxChannelsPerFact = 40
	// maxChannelsPerUserFact is for facts with a single user, which cause at most four events. The bound keeps the
	// write to disk at about 1 ms; most of it is the row of unacked events.
	maxChannelsPerUserFact = 100
)

// maxSubscriptionsPerFact is how many subscriptions one fact makes or ends: a fact is one record on disk.
const maxSubscriptionsPerFact = 20000

// factsPerBatch returns how many of the facts, from the first on, are combined into one.
func factsPerBatch[F any](facts []F, users func(F) []UserID) int {
	n, subscriptions, single := 0, 0, true
	for ; n < len(facts) && n < maxChannelsPerUserFact; n++ {
		members := users(facts[n])
		single = single && len(members) == 1 && members[0] == users(facts[0])[0]
		subscriptions += len(members)
		if n > 0 && (subscriptions > maxSubscriptionsPerFact || n >= maxChannelsPerFact && !single) {
			break
		}
	}
	return n
}

// slab allocates small slices from larger pieces of memory. Slices of one slab are used and released together.
type slab[T any] struct {
	free []T
	size int
}

// maxSlabSize is the number of values in one piece, unless a single slice needs more.
const maxSlabSize = 1024

// alloc returns a slice of n zero values that cannot grow into the next one.
func (x *slab[T]) alloc(n int) []T {
	if n > len(x.free) {
		x.size = max(n, min(2*x.size, maxSlabSize))
		x.free = make([]T, x.size)
	}
	out := x.free[:n:n]
	x.free = x.free[n:]
	return out
}

// recordSubscribed records planned joins, several combined into one fact. Limited guests may see other users
// afterwards.
func (t *Turn) recordSubscribed(facts []Subscribed) {
	t.finishLeaving(facts)
	for len(facts) > 0 {
		n := factsPerBatch(facts, func(f Subscribed) []UserID { return f.Users })
		if n == 1 {
			t.recordWithVisibility(&facts[0])
		} else {
			t.recordWithVisibility(&JoinedChannels{facts[:n]})
		}
		facts = facts[n:]
	}
}

// recordUnsubscribed records planned leaves, several combined into one fact. Limited guests may see other users
// afterwards.
func (t *Turn) recordUnsubscribed(facts []Unsubscribed) {
	for len(facts) > 0 {
		n := factsPerBatch(facts, func(f Unsubscribed) []UserID { return f.Users })
		if n == 1 {
			t.recordWithVisibility(&facts[0])
		} else {
			t.recordWithVisibility(&LeftChannels{facts[:n]})
		}
		facts = facts[n:]
	}
}

// JoinedChannels says that users joined several channels.
type JoinedChannels struct{ Each []Subscribed }

func (f *JoinedChannels) apply(r *Realm) {
	if u := f.singleUser(); u != 0 {
		r.subscriptions.ensure(u).ensureAll(f.Each)
	}
	for i := range f.Each {
		f.Each[i].apply(r)
	}
}

// singleUser returns the user who joins, if it is only one and the channels ascend; else 0.
func (f *JoinedChannels) singleUser() UserID {
	for i := range f.Each {
		x := &f.Each[i]
		if len(x.Users) != 1 || x.Users[0] != f.Each[0].Users[0] || i > 0 && x.Channel <= f.Each[i-1].Channel {
			return 0
		}
	}
	return f.Each[0].Users[0]
}

// notices combines the events of several channels: first channels that became visible, then subscriptions, then the
// changes of subscribers for other users.

func (f *JoinedChannels) notices(r *Realm) []Notice {
	var appeared []Notice
	var peers peerGroups
	added := &SubscriptionsAdded{Each: make([]SubscriptionAdded, 0, len(f.Each))}
	var events subscriptionAddedBuilder
	var joiners []UserID
	for i := range f.Each {
		x := &f.Each[i]
		c := r.channels.must(x.Channel)
		if to := r.usersAudience(x.Appears...); len(to) > 0 {
			e := r.channelsAppeared(x.Channel)
			appeared = mergeNotice(appeared, Notice{To: to, Event: e}, func(o Event) {
				o.(*ChannelAppeared).Channels = append(o.(*ChannelAppeared).Channels, e.Channels...)
			})
		}
		if to := r.usersAudience(x.Users...); len(to) > 0 {
			added.Each = append(added.Each, events.event(r, c, to))
			if joiners == nil {
				joiners = to
			} else if !slices.Equal(joiners, to) {
				joiners = sortUnique(slices.Concat(joiners, to))
			}
		}
		peers.add(x.Users, c.ID)
	}
	if len(joiners) > 0 {
		appeared = append(appeared, Notice{To: joiners, Event: added})
	}
	return append(appeared, r.peerGroupNotices(peers, true)...)
}

// peerGroup is a set of users that join or leave the same channels.
type peerGroup struct {
	users    []UserID // ascending
	channels []ChannelID
}

// peerGroups lists which users join or leave which channels. Usually there is only one group: the request names the
// same users for each channel, and few of them are subscribed already.
type peerGroups []peerGroup

// add adds a channel to the group with these users.
func (l *peerGroups) add(users []UserID, c ChannelID) {
	for i := range *l {
		if o := &(*l)[i]; equalUsers(o.users, users) {
			o.channels = append(o.channels, c)
			return
		}
	}
	*l = append(*l, peerGroup{users, []ChannelID{c}})
}

// peerGroupNotices returns the events for other users.
func (r *Realm) peerGroupNotices(list peerGroups, joined bool) (out []Notice) {
	for _, x := range list {
		out = append(out, r.peerNotices(x.channels, x.users, joined)...)
	}
	return out
}

// LeftChannels says that users left several channels.
type LeftChannels struct{ Each []Unsubscribed }

func (f *LeftChannels) apply(r *Realm) {
	for i := range f.Each {
		f.Each[i].apply(r)
	}
}

func (f *LeftChannels) notices(r *Realm) []Notice {
	var left, vanished []Notice
	var peers peerGroups
	removals, losses := map[UserID]*SubscriptionsRemoved{}, map[UserID]*ChannelVanished{}
	for i := range f.Each {
		x := &f.Each[i]
		c := r.channels.must(x.Channel)
		for _, u := range r.usersAudience(x.Users...) {
			e := removals[u]
			if e == nil {
				e = &SubscriptionsRemoved{}
				removals[u], left = e, append(left, Notice{To: []UserID{u}, Event: e})
			}
			e.Each = append(e.Each, SubscriptionRemoved{c.ID, c.Name, c.Archived})
			if r.hasMetadataAccess(r.users.must(u), c) {
				continue
			}
			v := losses[u]
			if v == nil {
				v = &ChannelVanished{}
				losses[u], vanished = v, append(vanished, Notice{To: []UserID{u}, Event: v})
			}
			v.Channels, v.Shut = append(v.Channels, c.ID), append(v.Shut, r.archivedAmong([]ChannelID{c.ID})...)
		}
		peers.add(x.Users, c.ID)
	}
	return slices.Concat(left, vanished, r.peerGroupNotices(peers, false))
}

// SubscriptionsAdded is the event subscription/add of several channels. Each subscriber gets its own version.
type SubscriptionsAdded struct{ Each []SubscriptionAdded }

func (*SubscriptionsAdded) EventType() string { return "subscription" }

// For returns the subscriptions as one of the users gets them.
func (e *SubscriptionsAdded) For(u UserID) (out []SubscriptionInfo) {
	for i := range e.Each {
		if _, ok := slices.BinarySearch(e.Each[i].Users, u); ok {
			out = append(out, e.Each[i].For(u))
		}
	}
	return out
}

// SubscriptionsRemoved is the event subscription/remove of several channels, for the user who left.
type SubscriptionsRemoved struct{ Each []SubscriptionRemoved }

func (*SubscriptionsRemoved) EventType() string { return "subscription" }

// equalUsers reports whether two lists are equal. Usually they share their memory.
func equalUsers(a, b []UserID) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// mergeNotice appends a notice to the list. If the list has a notice with the same audience, it calls add with that
// notice's event instead.
func mergeNotice(list []Notice, n Notice, add func(Event)) []Notice {
	for _, o := range list {
		if equalUsers(o.To, n.To) {
			add(o.Event)
			return list
		}
	}
	return append(list, n)
}
