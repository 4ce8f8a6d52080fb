package realm

// recentActivityPeriod is how long after its last message a channel still counts as active: 180 days.
const recentActivityPeriod = 180 * secondsPerDay

func (r *Realm) recentlyActive(c *Channel) bool {
	return !c.Quiet && r.index.clock-c.LastActive <= recentActivityPeriod
}

// quietChannelsDue finds, once a day, the channels in which nothing was said for so long that they count as active no longer. Each
// turn takes some of them.
func quietChannelsDue(r *Realm, now int64) func(*Turn) (any, error) {
	if r.index.quietCheckDay == now/secondsPerDay {
		return nil
	}
	f := &ChannelsQuieted{}
	r.EachChannel(func(c *Channel) {
		if len(f.Channels) < maxQuietedPerTurn && !c.Quiet && !c.Archived && now-c.LastActive > recentActivityPeriod {
			f.Channels = append(f.Channels, c.ID)
		}
	})
	if len(f.Channels) == 0 {
		r.index.quietCheckDay = now / secondsPerDay
		return nil
	}
	return func(t *Turn) (any, error) {
		t.Record(f)
		return nil, nil
	}
}

// maxQuietedPerTurn is how many channels one fact quiets: each is an event of its own, with a list of the ten thousand who hear it
// that takes 26 kB in the row of what is kept for the queues, and a snapshot encodes a row at once.
const maxQuietedPerTurn = 10

// ChannelsQuieted says channels are no longer recently active.
type ChannelsQuieted struct{ Channels []ChannelID }

func (*ChannelsQuieted) keepsMarkdownConfig() {}

func (f *ChannelsQuieted) apply(r *Realm) {
	for _, c := range f.Channels {
		r.channels.change(c).Quiet = true
	}
}

func (f *ChannelsQuieted) tell(r *Realm) []Notice {
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
