package realm

import "slices"

// People join and leave several channels with one request. What everybody hears of that is told in few events: all the
// channels of one sort together.

// maxTogether is how many channels one fact joins or leaves: each may be three events for somebody at worst, and a fact
// tells nobody more than 128.
const maxTogether = 40

// maxPairs is how many subscriptions one fact makes or ends: a fact is one record on disk.
const maxPairs = 20000

// portion is how many of the facts from the first on go together.
func portion[F any](facts []F, users func(F) int) int {
	n, pairs := 0, 0
	for n < len(facts) && n < maxTogether && (n == 0 || pairs+users(facts[n]) <= maxPairs) {
		pairs += users(facts[n])
		n++
	}
	return n
}

// joinTogether records joinings that were planned.
func (t *Turn) joinTogether(facts []Subscribed) {
	for len(facts) > 0 {
		n := portion(facts, func(f Subscribed) int { return len(f.Users) })
		if n == 1 {
			t.Record(&facts[0])
		} else {
			t.Record(&JoinedChannels{facts[:n]})
		}
		facts = facts[n:]
	}
}

// leaveTogether records leavings that were planned.
func (t *Turn) leaveTogether(facts []Unsubscribed) {
	for len(facts) > 0 {
		n := portion(facts, func(f Unsubscribed) int { return len(f.Users) })
		if n == 1 {
			t.Record(&facts[0])
		} else {
			t.Record(&LeftChannels{facts[:n]})
		}
		facts = facts[n:]
	}
}

// JoinedChannels says users joined several channels.
type JoinedChannels struct{ Each []Subscribed }

func (*JoinedChannels) calm() {}

func (f *JoinedChannels) apply(r *Realm) {
	for i := range f.Each {
		f.Each[i].apply(r)
	}
}

func (f *JoinedChannels) tell(r *Realm) []Notice {
	var all []Notice
	for i := range f.Each {
		all = append(all, f.Each[i].tell(r)...)
	}
	return together(all)
}

// LeftChannels says users left several channels.
type LeftChannels struct{ Each []Unsubscribed }

func (*LeftChannels) calm() {}

func (f *LeftChannels) apply(r *Realm) {
	for i := range f.Each {
		f.Each[i].apply(r)
	}
}

func (f *LeftChannels) tell(r *Realm) []Notice {
	var all []Notice
	for i := range f.Each {
		all = append(all, f.Each[i].tell(r)...)
	}
	return together(all)
}

// SubscriptionsAdded is the event subscription/add of several channels, to each of his own.
type SubscriptionsAdded struct{ Each []SubscriptionAdded }

func (*SubscriptionsAdded) EventType() string { return "subscription" }

// For is the subscriptions as one of the users is told of them.
func (e *SubscriptionsAdded) For(u UserID) (out []SubscriptionInfo) {
	for i := range e.Each {
		if _, ok := slices.BinarySearch(e.Each[i].Users, u); ok {
			out = append(out, e.Each[i].For(u))
		}
	}
	return out
}

// SubscriptionsRemoved is the event subscription/remove of several channels, to the one who left.
type SubscriptionsRemoved struct{ Each []SubscriptionRemoved }

func (*SubscriptionsRemoved) EventType() string { return "subscription" }

// together makes few notices of those of several channels: first what came into sight, then what was joined or left,
// then what went out of sight, then what others hear.
func together(all []Notice) []Notice {
	var appeared, left, vanished, peers []Notice
	added := &SubscriptionsAdded{}
	var joiners Set
	for _, n := range all {
		switch e := n.Event.(type) {
		case *ChannelAppeared:
			appeared = merge(appeared, n, func(o Event) { o.(*ChannelAppeared).Channels = append(o.(*ChannelAppeared).Channels, e.Channels...) }, nil)
		case *SubscriptionAdded:
			added.Each = append(added.Each, *e)
			joiners.Union(SetOf(n.To...))
		case *SubscriptionRemoved:
			n.Event = &SubscriptionsRemoved{[]SubscriptionRemoved{*e}}
			left = merge(left, n, func(o Event) { o.(*SubscriptionsRemoved).Each = append(o.(*SubscriptionsRemoved).Each, *e) }, nil)
		case *ChannelVanished:
			vanished = merge(vanished, n, func(o Event) {
				v := o.(*ChannelVanished)
				v.Channels, v.Shut = append(v.Channels, e.Channels...), append(v.Shut, e.Shut...)
			}, nil)
		case *PeersChanged:
			peers = merge(peers, n, func(o Event) {
				p := o.(*PeersChanged)
				p.Channels, p.Archived = append(p.Channels, e.Channels...), append(p.Archived, e.Archived...)
			}, func(o Event) bool { return slices.Equal(o.(*PeersChanged).Users, e.Users) })
		default:
			panic("BUG: joining or leaving tells something new")
		}
	}
	out := appeared
	if len(added.Each) > 0 {
		out = append(out, Notice{To: IDs[UserID](joiners), Event: added})
	}
	return slices.Concat(out, left, vanished, peers)
}

// sameAudience reports whether two lists are the same; mostly they share their memory.
func sameAudience(a, b []UserID) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// merge adds a notice to a list, or its content to the notice there that has the same audience and fits.
func merge(list []Notice, n Notice, add func(Event), fits func(Event) bool) []Notice {
	for _, o := range list {
		if sameAudience(o.To, n.To) && (fits == nil || fits(o.Event)) {
			add(o.Event)
			return list
		}
	}
	return append(list, n)
}
