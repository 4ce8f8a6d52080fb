package realm

import "slices"

// ArchiveChannel asks to archive a channel. The channel keeps its name, subscribers and messages. No message is sent to
// it, changed or deleted any more, not even a notice; administrators can still change the channel's own properties.
type ArchiveChannel struct{ Channel ChannelID }

func (c ArchiveChannel) Decide(t *Turn) (Done, error) {
	ch, err := t.AdministeredChannel(c.Channel)
	if err != nil {
		return Done{}, err
	}
	if ch.Archived {
		return Done{}, BadRequest("Channel is already deactivated")
	}
	f := &ChannelArchived{Channel: ch.ID, Name: ch.Name, Job: t.nextID("leaving"), At: t.Now}
	for _, s := range announcementSettings {
		if ChannelID(t.OrgInt(s)) == ch.ID {
			f.Cleared = append(f.Cleared, s)
		}
	}
	// The channel is removed from the defaults first: an archived channel must never be one. The message about it comes
	// last: system bots may post into archived channels.
	if ch.Default {
		t.Record(t.defaultChannelFact(ch.ID, false))
	}
	t.removeFromAllDefaultGroups(ch.ID)
	t.Record(f)
	t.beginLeaving(f.Job)
	if t.OrgBool("send_channel_events_messages") {
		t.SendBotMessage(BotMessage{Channel: ch.ID, Topic: t.eventsTopicOf(ch),
			Text: "Channel **" + ch.Name + "** has been archived" + t.byActor() + "."})
	}
	return Done{}, nil
}

// announcementSettings are the organization settings whose value is a channel. Archiving that channel clears them.
var announcementSettings = []string{"moderation_request_channel_id", "new_stream_announcements_stream_id",
	"signup_announcements_stream_id", "zulip_update_announcements_stream_id"}

// ChannelArchived archives a channel. It is the event too: stream/update of is_archived, or stream/delete for clients
// that do not know archived channels.
type ChannelArchived struct {
	Channel ChannelID
	Name    string
	Cleared []string // organization settings that named the channel and are unset now
	Job     int64    // number of the leaving that marks its messages as read for the subscribers; see channel_leave.go
	At      int64
}

func (*ChannelArchived) EventType() string { return "stream" }

func (f *ChannelArchived) apply(r *Realm) {
	c := r.channels.change(f.Channel)
	c.Archived = true
	r.invalidateChannelJSON(c.ID)
	if len(f.Cleared) > 0 {
		o := r.org.change(0)
		for _, s := range f.Cleared {
			o.Settings[s] = int64(-1)
		}
	}
	// deactivated accounts too: they may be reactivated
	r.startLeaving(f.Job, f.Channel, r.index.channels[f.Channel].subscribers.Clone())
}

func (f *ChannelArchived) notices(r *Realm) []Notice {
	out := []Notice{{To: r.channelAudience(r.channels.must(f.Channel)), Event: f}}
	for _, s := range f.Cleared {
		out = append(out, Notice{To: r.everyoneAudience(), Event: &AnnouncementsStopped{s}})
	}
	return out
}

// AnnouncementsStopped is the event realm/update of an organization setting that named a channel and is unset now.
type AnnouncementsStopped struct{ Setting string }

func (*AnnouncementsStopped) EventType() string { return "realm" }

// ChannelUnarchived makes an archived channel active again. It is the event too: stream/update, or stream/create for
// clients that do not know archived channels.
type ChannelUnarchived struct {
	Channel ChannelID
	Name    string
	Info    *ChannelInfo // set by notices
}

func (*ChannelUnarchived) EventType() string { return "stream" }

func (f *ChannelUnarchived) apply(r *Realm) {
	r.channels.change(f.Channel).Archived = false
	r.invalidateChannelJSON(f.Channel)
}

func (f *ChannelUnarchived) notices(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	i := r.ChannelInfo(c)
	out := []Notice{{To: r.channelAudience(c), Event: &ChannelUnarchived{f.Channel, f.Name, &i}}}
	if to := r.usersAudience(r.Subscribers(c.ID)...); len(to) > 0 {
		e := r.newSubscriptionAdded(c, to)
		e.Back = true
		out = append(out, Notice{To: to, Event: &e})
	}
	return out
}

// defaultChannelFact returns the fact that adds a channel to the default channels (is), or removes it from them.
func (r *Realm) defaultChannelFact(c ChannelID, is bool) *DefaultChannelsSet {
	list := slices.DeleteFunc(slices.Clone(r.Org().DefaultChannels), func(x ChannelID) bool { return x == c })
	if is {
		list = append(list, c)
		slices.Sort(list)
	}
	return &DefaultChannelsSet{Channels: list}
}
