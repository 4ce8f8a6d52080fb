package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

// shown is a channel the registering client is told of, and its members that are the same for everybody.
type shown struct {
	*realm.Channel
	face []byte
}

// visibleChannels is every channel the registering client may be told of, by name. They are gathered once for all
// sections.
func (s *state) visibleChannels() []shown {
	if s.gathered {
		return s.channels
	}
	var out []*realm.Channel
	s.EachChannel(func(c *realm.Channel) {
		if (!c.Archived || s.Has(realm.CapArchivedChannels)) && s.MaySeeChannel(c) {
			out = append(out, c)
		}
	})
	byName(out)
	s.gathered, s.channels = true, make([]shown, len(out))
	for i, c := range out {
		s.channels[i] = shown{c, s.ChannelFace(c, channelFace)}
	}
	return s.channels
}

// streamsSection is streams: every channel the user can see. Visitors do not get it.
func streamsSection(s *state) {
	if s.Me() == nil {
		return
	}
	channels := s.visibleChannels()
	s.afterwards(func() {
		list := objectsOf(len(channels), 1)
		for _, c := range channels {
			list.add(shared(c.face))
		}
		s.a["streams"] = list.end()
	})
}

// subscriptionsSection is the three lists of channels: subscribed now, formerly, never. A visitor is shown the
// web-public ones as if subscribed.
func subscriptionsSection(s *state) {
	const now, before, never = 0, 1, 2
	type entry struct {
		list         int
		face, roster Part
		personal     bool
		own          realm.Subscription
	}
	var counts [3]int
	recent, channels := recently(s.View, s.c.House), s.visibleChannels()
	entries := make([]entry, 0, len(channels))
	for _, c := range channels {
		x := s.SubscriptionOf(s.User, c.ID)
		e := entry{face: shared(c.face), personal: x != nil || s.Me() == nil}
		switch {
		case x != nil && x.Active, s.Me() == nil:
			e.list = now
		case x != nil:
			e.list = before
		case !s.Me().IsGuest() || c.WebPublic:
			e.list = never
		default:
			continue
		}
		if x != nil {
			e.own = *x
		}
		e.roster = Part{JSON: rosterJSON(s.View, c.Channel, s.Subscribers, recent), Shared: s.Subscribers == form.AllSubscribers}
		entries = append(entries, e)
		counts[e.list]++
	}
	info := s.PersonalInfo(s.User, 0) // what all of his subscriptions inherit
	s.afterwards(func() {
		var lists [3]*objectList
		for i, n := range counts {
			lists[i] = objectsOf(n, 3)
		}
		for _, e := range entries {
			var settings []byte
			if e.personal {
				info.Subscription = e.own
				settings = personalJSON(info, s.Client)
			}
			lists[e.list].add(e.face, own(settings), e.roster)
		}
		s.a["subscriptions"], s.a["unsubscribed"], s.a["never_subscribed"] = lists[now].end(), lists[before].end(), lists[never].end()
	})
}

// member reports a registering user who is not a guest.
func (s *state) member() bool { return s.Me() != nil && !s.Me().IsGuest() }

func defaultStreamsSection(s *state) {
	s.a["realm_default_streams"] = []realm.ChannelID{}
	if s.member() {
		s.a["realm_default_streams"] = nonNil(slices.Clone(s.Org().DefaultChannels))
	}
}

func defaultStreamGroupsSection(s *state) {
	s.a["realm_default_stream_groups"] = []any{}
	if s.member() {
		s.a["realm_default_stream_groups"] = defaultGroupObjects(s.DefaultGroups())
	}
}

func channelFoldersSection(s *state) { s.a["channel_folders"] = folderList(s.View, true) }

func userTopicsSection(s *state) {
	list := []any{}
	for _, p := range s.TopicPoliciesOf(s.User) {
		list = append(list, obj{"stream_id": p.Channel, "topic_name": s.Topic(p.Topic), "last_updated": p.Since, "visibility_policy": p.Policy})
	}
	s.a["user_topics"] = list
}

// mutedTopicsSection is the old list, left out when the client asked by name for it and for its successor.
func mutedTopicsSection(s *state) {
	if !s.explicit || !s.wants("user_topic") {
		s.a["muted_topics"] = mutedTopicList(s.MutedTopics(s.User), s.Client)
	}
}
