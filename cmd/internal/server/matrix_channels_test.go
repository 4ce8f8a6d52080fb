package server

import (
	"fmt"
	"slices"
	"testing"
)

const noAdministration = "You do not have permission to administer this channel."

// canReadSubscribers: readers of the metadata; guests only if they are subscribed or the channel is web-public.
func (x *matrixChannel) canReadSubscribers(p *matrixUser) bool {
	if p.isGuest() {
		return x.isSubscribed() || x.kind == "web-public"
	}
	return x.canReadMetadata(p)
}

func metadataError(p *matrixUser, x *matrixChannel) string {
	if x.canReadMetadata(p) {
		return ""
	}
	return hiddenError(noChannel)
}

// changeQuestion asks for a change of a channel. further returns the expected error for administrators of the channel.
func changeQuestion(name string, further func(p *matrixUser, x *matrixChannel) string,
	change func(s *matrixStage, x *matrixChannel) pairs) matrixQuestion {
	return matrixQuestion{"change " + name, false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
		return s.call(p, "PATCH", fmt.Sprintf("/streams/%d", x.id), change(s, x)...).msg()
	}, func(p *matrixUser, x *matrixChannel) string {
		switch {
		case !x.canReadMetadata(p):
			return hiddenError(noChannel)
		case !x.canAdminister(p):
			return noAdministration
		case further != nil:
			return further(p, x)
		}
		return ""
	}}
}

// channelQuestions are in the order in which they can be asked: the last ones change the subscriptions.
func (s *matrixStage) channelQuestions() []matrixQuestion {
	return slices.Concat(s.knowledgeQuestions(), settingQuestions(), rightQuestions(), s.subscriptionQuestions())
}

// byID asks at an address with the id of the channel.
func byID(path string) func(*matrixStage, *matrixUser, *matrixChannel) string {
	return func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
		return s.call(p, "GET", fmt.Sprintf(path, x.id)).msg()
	}
}

// memberOnly is the rule of the list of subscribers.
func memberOnly(p *matrixUser, x *matrixChannel) string {
	if x.canReadSubscribers(p) {
		return ""
	}
	return hiddenError(noChannel)
}

// needsContent: only readers of the content may give others access to it.
func needsContent(p *matrixUser, x *matrixChannel) string {
	if x.canReadContent(p) {
		return ""
	}
	return "Channel content access is required."
}

// knowledgeQuestions ask for the answers that show a channel.
func (s *matrixStage) knowledgeQuestions() []matrixQuestion {
	return []matrixQuestion{
		{"know", false, byID("/streams/%d"), metadataError},
		{"find", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "GET", "/get_stream_id", "stream", x.name).msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			if x.canReadMetadata(p) {
				return ""
			}
			return "Invalid channel name '" + x.name + "'"
		}},
		{"list with all", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			r := s.call(p, "GET", "/streams", "include_all", true, "exclude_archived", false)
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(slices.Contains(ids(r.body["streams"], "stream_id"), x.id))
		}, func(p *matrixUser, x *matrixChannel) string { return shownOrAbsent(x.canReadMetadata(p)) }},
		{"list with what is readable", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			r := s.call(p, "GET", "/streams", "include_can_access_content", true, "include_public", false,
				"include_subscribed", false)
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(slices.Contains(ids(r.body["streams"], "stream_id"), x.id))
		}, func(p *matrixUser, x *matrixChannel) string { return shownOrAbsent(x.canReadContent(p)) }},
		{"see subscribers", false, byID("/streams/%d/members"), memberOnly},
		{"see whether a user is subscribed", false, byID(fmt.Sprintf("/users/%d/subscriptions/%%d", s.keeper.id)),
			memberOnly},
		{"see among the channels of a user", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			r := s.call(p, "GET", fmt.Sprintf("/users/%d/channels", s.keeper.id))
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(slices.Contains(nums(r.body["subscribed_channel_ids"]), x.id))
		}, func(p *matrixUser, x *matrixChannel) string { return shownOrAbsent(x.canReadSubscribers(p)) }},
		{"ask the mail address", false, byID("/streams/%d/email_address"),
			func(p *matrixUser, x *matrixChannel) string {
				if canSend(p, x) { // others do not learn that it has an address
					return ""
				}
				return hiddenError(noChannel)
			}},
		{"set a colour", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/users/me/subscriptions/properties", "subscription_data",
				[]any{map[string]any{"stream_id": x.id, "property": "color", "value": "#76ce90"}}).msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case x.isSubscribed():
				return ""
			case !x.canReadMetadata(p):
				return hiddenError(noChannel)
			}
			return fmt.Sprintf("Not subscribed to channel ID %d", x.id)
		}},
	}
}

// settingQuestions change the settings of a channel.
func settingQuestions() []matrixQuestion {
	return []matrixQuestion{
		renaming(),
		changeQuestion("its description", nil,
			func(s *matrixStage, x *matrixChannel) pairs { return pairs{"description", ""} }),
		changeQuestion("its privacy", needsContent, func(s *matrixStage, x *matrixChannel) pairs {
			return pairs{"is_private", x.kind == "private" || x.kind == "protected", "history_public_to_subscribers",
				x.kind != "protected", "is_web_public", x.kind == "web-public"}
		}),
		changeQuestion("its retention", func(p *matrixUser, x *matrixChannel) string {
			if p.name != "owner" {
				return "Must be an organization owner"
			}
			return ""
		}, func(s *matrixStage, x *matrixChannel) pairs {
			return pairs{"message_retention_days", `"realm_default"`}
		}),
		changeQuestion("whether it is a default one", func(p *matrixUser, x *matrixChannel) string {
			if !p.isAdmin() {
				return "You do not have permission to change default channels."
			}
			return ""
		}, func(s *matrixStage, x *matrixChannel) pairs { return pairs{"is_default_stream", false} }),
		changeQuestion("its folder", nil,
			func(s *matrixStage, x *matrixChannel) pairs { return pairs{"folder_id", nil} }),
		changeQuestion("its topics policy", nil,
			func(s *matrixStage, x *matrixChannel) pairs { return pairs{"topics_policy", "inherit"} }),
	}
}

// rightQuestions change the permissions of a channel.
func rightQuestions() (list []matrixQuestion) {
	for _, setting := range []string{"can_add_subscribers_group", "can_administer_channel_group",
		"can_create_topic_group", "can_delete_any_message_group", "can_delete_own_message_group",
		"can_move_messages_out_of_channel_group",
		"can_move_messages_within_channel_group", "can_remove_subscribers_group", "can_resolve_topics_group",
		"can_send_message_group", "can_subscribe_group"} {
		var further func(p *matrixUser, x *matrixChannel) string
		switch setting {
		case "can_add_subscribers_group", "can_subscribe_group":
			further = needsContent
		case "can_delete_any_message_group", "can_delete_own_message_group":
			further = func(p *matrixUser, x *matrixChannel) string {
				if p.isAdmin() || p.name == "moderator" { // can_set_delete_message_policy_group of the organization
					return ""
				}
				return "Insufficient permission"
			}
		}
		q := changeQuestion(setting, further, func(s *matrixStage, x *matrixChannel) pairs {
			return pairs{setting, map[string]any{"new": s.settings[x.id][setting]}}
		})
		list = append(list, q)
	}
	return list
}

// subscriptionQuestions archive a channel and change its subscriptions.
func (s *matrixStage) subscriptionQuestions() []matrixQuestion {
	extra := s.by["extra"].id
	return []matrixQuestion{
		{"archive", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			m := s.call(p, "DELETE", fmt.Sprintf("/streams/%d", x.id)).msg()
			if m == "" {
				s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", x.id), "is_archived", false)
			}
			return m
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case !x.canReadMetadata(p):
				return hiddenError(noChannel)
			case !x.canAdminister(p):
				return noAdministration
			}
			return ""
		}},
		{"unsubscribe another", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			if x.id != missingID {
				s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
					[]any{map[string]string{"name": x.name}}, "principals", []int64{extra})
			}
			return s.call(p, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals",
				[]int64{extra}).msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case !x.canReadMetadata(p):
				return "Channel(s) (" + x.name + ") do not exist"
			case !x.canAdminister(p):
				return "Insufficient permission"
			}
			return ""
		}},
		{"subscribe another", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals",
				[]int64{extra})
			return s.call(p, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": x.name}}, "principals", []int64{extra}).msg()
		}, subscribing},
		{"subscribe", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": x.name}}).msg()
		}, subscribing},
	}
}

// renaming asks for another name of a channel. The keeper gives the channel its name back.
func renaming() matrixQuestion {
	q := changeQuestion("its name", nil,
		func(_ *matrixStage, x *matrixChannel) pairs { return pairs{"new_name", "renamed " + x.name} })
	ask := q.ask
	q.ask = func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
		refusal := ask(s, p, x)
		if refusal == "" {
			s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", x.id), "new_name", x.name)
		}
		return refusal
	}
	return q
}

func subscribing(p *matrixUser, x *matrixChannel) string {
	switch {
	case p.isGuest():
		return "Not allowed for guest users"
	case !x.canReadContent(p):
		return "Unable to access channel (" + x.name + ")."
	}
	return ""
}

// registered returns the list of a registration that contains a channel.
func registered(p *matrixUser, x *matrixChannel) string {
	switch {
	case !x.canReadMetadata(p):
		return ""
	case p.isVisitor(), x.isSubscribed():
		return "subscriptions"
	case x.relation == unsubscribed:
		return "unsubscribed"
	}
	return "never_subscribed"
}

func matrixChannels(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.by["extra"] = s.join(ours, ourHost, "extra", 400, 0, 0)
	s.createChannels()
	for _, x := range s.channels {
		stream, _ := s.must(s.keeper, "GET", fmt.Sprintf("/streams/%d", x.id)).body["stream"].(map[string]any)
		s.settings[x.id], s.settings[missingID] = stream, stream
	}
	strangers := s.outsiders()
	all := append(slices.Clone(s.people), strangers...)
	for _, p := range all {
		params := pairs{"include_subscribers", true}
		if p.isVisitor() {
			params = pairs{}
		}
		r := s.call(p, "POST", "/register", params...)
		if want := loginError(p, true); want != "" {
			s.check(r.msg(), want, "%s: register", p.name)
			continue
		}
		for _, x := range s.channels {
			where, unread, subscribers := "", "absent", "absent"
			for _, list := range []string{"subscriptions", "unsubscribed", "never_subscribed"} {
				for _, ch := range objects(r.body[list]) {
					if num(ch["stream_id"]) != x.id {
						continue
					}
					where += list
					if slices.Contains(nums(ch["subscribers"]), s.keeper.id) {
						subscribers = "shown"
					}
				}
			}
			messages, _ := r.body["unread_msgs"].(map[string]any)
			for _, topic := range objects(messages["streams"]) {
				if slices.Contains(nums(topic["unread_message_ids"]), x.message) {
					unread = "shown"
				}
			}
			s.check(where, registered(p, x), "%s: list of registration in a %s", p.name, x)
			s.check(unread, shownOrAbsent(x.keepsRecord(p) && x.relation == subscribed),
				"%s: unread of registration in a %s", p.name, x)
			s.check(subscribers, shownOrAbsent(x.canReadSubscribers(p) && !p.isVisitor()),
				"%s: subscribers of registration in a %s", p.name, x)
		}
	}
	s.askAll(all, s.channels, s.channelQuestions())
	s.summary()
}
