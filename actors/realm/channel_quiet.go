package realm

// recentlyActive is how long after its last message a channel still counts as active: 180 days.
const recentlyActive = 180 * day

func (r *Realm) recentlyActive(c *Channel) bool {
	return !c.Quiet && r.by.clock-c.LastActive <= recentlyActive
}

// quietDue finds, once a day, the channels in which nothing was said for so long that they count as active no longer.
func quietDue(r *Realm, now int64) func(*Turn) (any, error) {
	if r.by.quietDay == now/day {
		return nil
	}
	r.by.quietDay = now / day
	f := &ChannelsQuieted{}
	r.EachChannel(func(c *Channel) {
		if !c.Quiet && !c.Archived && now-c.LastActive > recentlyActive {
			f.Channels = append(f.Channels, c.ID)
		}
	})
	if len(f.Channels) == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		for len(f.Channels) > maxQuieted {
			t.Record(&ChannelsQuieted{f.Channels[:maxQuieted]})
			f.Channels = f.Channels[maxQuieted:]
		}
		t.Record(f)
		return nil, nil
	}
}

// maxQuieted is how many channels one fact quiets: each is an event of its own, and a fact tells nobody more than 128.
const maxQuieted = 100

// ChannelsQuieted says channels are no longer recently active.
type ChannelsQuieted struct{ Channels []ChannelID }

func (*ChannelsQuieted) calm() {}

func (f *ChannelsQuieted) apply(r *Realm) {
	for _, c := range f.Channels {
		r.chans.change(c).Quiet = true
	}
}

func (f *ChannelsQuieted) tell(r *Realm) []Notice {
	var out []Notice
	for _, id := range f.Channels {
		c := r.chans.must(id)
		out = append(out, Notice{To: r.knowers(c), Event: &ChannelQuieted{id, c.Name}})
	}
	return out
}

// ChannelQuieted is the event stream/update that a channel is no longer recently active.
type ChannelQuieted struct {
	Channel ChannelID
	Name    string
}

func (*ChannelQuieted) EventType() string { return "stream" }
