package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

// visibleChannel is a channel that the registering client gets, with its cached JSON.
type visibleChannel struct {
	*realm.Channel
	fieldsJSON []byte
}

// visibleChannels returns the channels that the registering client gets, by name. The list is built once for all
// sections.
func (s *initialState) visibleChannels() []visibleChannel {
	if s.channelsGathered {
		return s.channels
	}
	var out []*realm.Channel
	s.EachChannel(func(c *realm.Channel) {
		if (!c.Archived || s.Has(realm.CapArchivedChannels)) && s.MaySeeChannel(c) {
			out = append(out, c)
		}
	})
	sortByName(out)
	s.channelsGathered, s.channels = true, make([]visibleChannel, len(out))
	for i, c := range out {
		s.channels[i] = visibleChannel{c, s.ChannelJSON(c, channelFieldsJSON)}
	}
	return s.channels
}

// streamsSection adds every channel that the user can see. Logged-out visitors do not get the section.
func streamsSection(s *initialState) {
	if s.Me() == nil {
		return
	}
	channels := s.visibleChannels()
	s.afterTurn(func() {
		list := newObjectList(len(channels), 1)
		for _, c := range channels {
			list.add(sharedFragment(c.fieldsJSON))
		}
		s.answer.Channels = inFragments[[]channelJSON](list.end()...)
	})
}

// subscriptionsSection adds three lists of channels: subscribed, formerly subscribed, never subscribed. A logged-out
// visitor gets the web-public channels as if subscribed.
func subscriptionsSection(s *initialState) {
	const now, before, never = 0, 1, 2
	type entry struct {
		list         int
		face, roster Fragment
		personal     bool
		own          realm.Subscription
	}
	var counts [3]int
	channels := s.visibleChannels()
	var recent func(realm.UserID) bool
	if !s.short {
		recent = recentUsers(s.View, s.call.Server)
	}
	entries := make([]entry, 0, len(channels))
	for _, c := range channels {
		x := s.SubscriptionOf(s.User, c.ID)
		e := entry{face: sharedFragment(c.fieldsJSON), personal: x != nil || s.Me() == nil}
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
		if s.short && s.Subscribers == form.PartialSubscribers {
			e.roster = ownFragment(s.shortSubscriberList(c.Channel))
		} else {
			e.roster = Fragment{JSON: subscriberListJSON(s.View, c.Channel, s.Subscribers, recent),
				Shared: s.Subscribers == form.AllSubscribers}
		}
		entries = append(entries, e)
		counts[e.list]++
	}
	info := s.PersonalSubscription(s.User, 0) // the defaults that all subscriptions of the user inherit
	s.afterTurn(func() {
		var lists [3]*objectList
		for i, n := range counts {
			lists[i] = newObjectList(n, 3)
		}
		for _, e := range entries {
			var settings []byte
			if e.personal {
				info.Subscription = e.own
				settings = personalSettingsJSON(info, s.Client)
			}
			lists[e.list].add(e.face, ownFragment(settings), e.roster)
		}
		s.answer.Subscriptions = inFragments[[]subscriptionJSON](lists[now].end()...)
		s.answer.Unsubscribed = inFragments[[]subscriptionJSON](lists[before].end()...)
		s.answer.NeverSubscribed = inFragments[[]otherChannelJSON](lists[never].end()...)
	})
}

// isMember reports whether the registering user is logged in and not a guest.
func (s *initialState) isMember() bool { return s.Me() != nil && !s.Me().IsGuest() }

func defaultStreamsSection(s *initialState) {
	s.answer.DefaultChannels = []realm.ChannelID{}
	if s.isMember() {
		s.answer.DefaultChannels = nonNil(slices.Clone(s.Org().DefaultChannels))
	}
}

func defaultStreamGroupsSection(s *initialState) {
	s.answer.DefaultGroups = []defaultChannelGroupJSON{}
	if s.isMember() {
		s.answer.DefaultGroups = each(s.DefaultGroups(), newDefaultChannelGroup)
	}
}

func userTopicsSection(s *initialState) {
	s.answer.UserTopics = []userTopicJSON{}
	for _, p := range s.TopicPoliciesOf(s.User) {
		s.answer.UserTopics = append(s.answer.UserTopics, userTopicJSON{p.Channel, s.Topic(p.Topic), p.Since, p.Policy})
	}
}

// mutedTopicsSection adds the older list of muted topics. It is left out if the client explicitly requested the newer
// user_topic too.
func mutedTopicsSection(s *initialState) {
	if !s.fetchTypesNamed || !s.wants("user_topic") {
		s.answer.MutedTopics = mutedTopicList(s.MutedTopics(s.User), s.Client)
	}
}
