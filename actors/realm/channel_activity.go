package realm

// recentActivityPeriod is the time after its last message in which a channel counts as active: 180 days.
const recentActivityPeriod = 180 * secondsPerDay

// recentlyActive reports whether a channel had a message in the last recentActivityPeriod and is not marked as inactive
// (Quiet).
func (r *Realm) recentlyActive(c *Channel) bool {
	return !c.Quiet && r.index.clock-c.LastActive <= recentActivityPeriod
}

// inactiveChannelsDue returns, once a day, a turn that marks channels as no longer recently active. Each turn takes at
// most maxInactivePerTurn of them; nil means that none is left today.
func inactiveChannelsDue(r *Realm, now int64) func(*Turn) (any, error) {
	if r.index.activityCheckDay == now/secondsPerDay {
		return nil
	}
	f := &ChannelsQuieted{}
	r.EachChannel(func(c *Channel) {
		if len(f.Channels) < maxInactivePerTurn && !c.Quiet && !c.Archived && now-c.LastActive > recentActivityPeriod {
			f.Channels = append(f.Channels, c.ID)
		}
	})
	if len(f.Channels) == 0 {
		r.index.activityCheckDay = now / secondsPerDay
		return nil
	}
	return func(t *Turn) (any, error) {
		t.Record(f)
		return nil, nil
	}
}

// maxInactivePerTurn is the number of channels in one fact. Each channel is an event of its own. With 10,000 receivers,
// the event's list of users takes 26 kB in the row of unacknowledged events, and a snapshot encodes a row at once.
const maxInactivePerTurn = 10

// ChannelsQuieted marks channels as no longer recently active.
type ChannelsQuieted struct{ Channels []ChannelID }

func (f *ChannelsQuieted) apply(r *Realm) {
	for _, c := range f.Channels {
		r.channels.change(c).Quiet = true
	}
}

func (f *ChannelsQuieted) notices(r *Realm) []Notice {
	var out []Notice
	for _, id := range f.Channels {
		c := r.channels.must(id)
		out = append(out, Notice{To: r.channelAudience(c), Event: &ChannelQuieted{id, c.Name}})
	}
	return out
}

// ChannelQuieted is the event stream/update that a channel is no longer recently active.
type ChannelQuieted struct {
	Channel ChannelID
	Name    string
}

func (*ChannelQuieted) EventType() string { return "stream" }
