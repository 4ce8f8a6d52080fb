package main

import (
	"fmt"
	"slices"
	"testing"
)

const noAdministration = "You do not have permission to administer this channel."

// members: who may know a channel's subscribers. A guest, only where he is one, or everybody may know.
func (x *spot) membership(p *somebody) bool {
	if p.guest() {
		return x.in() || x.kind == "web-public"
	}
	return x.metadata(p)
}

func knowable(p *somebody, x *spot) string {
	if x.metadata(p) {
		return ""
	}
	return hidden(noChannel)
}

// changing is a change of a channel; further says what else is asked of who administers it.
func changing(name string, further func(p *somebody, x *spot) string, change func(s *stage, x *spot) pairs) question {
	return question{"change " + name, false, func(s *stage, p *somebody, x *spot) string {
		return s.call(p, "PATCH", fmt.Sprintf("/streams/%d", x.id), change(s, x)...).msg()
	}, func(p *somebody, x *spot) string {
		switch {
		case !x.metadata(p):
			return hidden(noChannel)
		case !x.governed(p):
			return noAdministration
		case further != nil:
			return further(p, x)
		}
		return ""
	}}
}

func (s *stage) channelQuestions() []question {
	byID := func(path string) func(*stage, *somebody, *spot) string {
		return func(s *stage, p *somebody, x *spot) string { return s.call(p, "GET", fmt.Sprintf(path, x.id)).msg() }
	}
	memberOnly := func(p *somebody, x *spot) string {
		if x.membership(p) {
			return ""
		}
		return hidden(noChannel)
	}
	// needsContent: making a channel readable for others, or for all, takes that one may read it.
	needsContent := func(p *somebody, x *spot) string {
		if x.content(p) {
			return ""
		}
		return "Channel content access is required."
	}
	extra := s.by["extra"].id
	list := []question{
		{"know", false, byID("/streams/%d"), knowable},
		{"find", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "GET", "/get_stream_id", "stream", x.name).msg()
		}, func(p *somebody, x *spot) string {
			if x.metadata(p) {
				return ""
			}
			return "Invalid channel name '" + x.name + "'"
		}},
		{"list with all", false, func(s *stage, p *somebody, x *spot) string {
			r := s.call(p, "GET", "/streams", "include_all", true, "exclude_archived", false)
			if m := r.msg(); m != "" {
				return m
			}
			return shownIf(slices.Contains(ids(r.body["streams"], "stream_id"), x.id))
		}, func(p *somebody, x *spot) string { return shownIf(x.metadata(p)) }},
		{"list with what is readable", false, func(s *stage, p *somebody, x *spot) string {
			r := s.call(p, "GET", "/streams", "include_can_access_content", true, "include_public", false, "include_subscribed", false)
			if m := r.msg(); m != "" {
				return m
			}
			return shownIf(slices.Contains(ids(r.body["streams"], "stream_id"), x.id))
		}, func(p *somebody, x *spot) string { return shownIf(x.content(p)) }},
		{"see subscribers", false, byID("/streams/%d/members"), memberOnly},
		{"see whether somebody is subscribed", false, byID(fmt.Sprintf("/users/%d/subscriptions/%%d", s.keeper.id)), memberOnly},
		{"see among somebody's channels", false, func(s *stage, p *somebody, x *spot) string {
			r := s.call(p, "GET", fmt.Sprintf("/users/%d/channels", s.keeper.id))
			if m := r.msg(); m != "" {
				return m
			}
			return shownIf(slices.Contains(nums(r.body["subscribed_channel_ids"]), x.id))
		}, func(p *somebody, x *spot) string { return shownIf(x.membership(p)) }},
		{"ask the mail address", false, byID("/streams/%d/email_address"), func(p *somebody, x *spot) string {
			if mayWrite(p, x) { // whoever may not write there is not told that it has one
				return ""
			}
			return hidden(noChannel)
		}},
		{"set a colour", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/users/me/subscriptions/properties", "subscription_data", []any{map[string]any{"stream_id": x.id, "property": "color", "value": "#76ce90"}}).msg()
		}, func(p *somebody, x *spot) string {
			switch {
			case x.in():
				return ""
			case !x.metadata(p):
				return hidden(noChannel)
			}
			return fmt.Sprintf("Not subscribed to channel ID %d", x.id)
		}},
		changing("its name", func(*somebody, *spot) string { return "Channel already has that name." }, func(s *stage, x *spot) pairs { return pairs{"new_name", x.name} }),
		changing("its description", nil, func(s *stage, x *spot) pairs { return pairs{"description", ""} }),
		changing("its privacy", needsContent, func(s *stage, x *spot) pairs {
			return pairs{"is_private", x.kind == "private" || x.kind == "protected", "history_public_to_subscribers", x.kind != "protected", "is_web_public", x.kind == "web-public"}
		}),
		changing("its retention", func(p *somebody, x *spot) string {
			if p.name != "owner" {
				return "Must be an organization owner"
			}
			return ""
		}, func(s *stage, x *spot) pairs { return pairs{"message_retention_days", `"realm_default"`} }),
		changing("whether it is a default one", func(p *somebody, x *spot) string {
			if !p.admin() {
				return "You do not have permission to change default channels."
			}
			return ""
		}, func(s *stage, x *spot) pairs { return pairs{"is_default_stream", false} }),
		changing("its folder", nil, func(s *stage, x *spot) pairs { return pairs{"folder_id", nil} }),
		changing("its topics policy", nil, func(s *stage, x *spot) pairs { return pairs{"topics_policy", "inherit"} }),
		{"archive", false, func(s *stage, p *somebody, x *spot) string {
			m := s.call(p, "DELETE", fmt.Sprintf("/streams/%d", x.id)).msg()
			if m == "" {
				s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", x.id), "is_archived", false)
			}
			return m
		}, func(p *somebody, x *spot) string {
			switch {
			case !x.metadata(p):
				return hidden(noChannel)
			case !x.governed(p):
				return noAdministration
			}
			return ""
		}},
		{"unsubscribe another", false, func(s *stage, p *somebody, x *spot) string {
			if x.id != nowhere {
				s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]string{"name": x.name}}, "principals", []int64{extra})
			}
			return s.call(p, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals", []int64{extra}).msg()
		}, func(p *somebody, x *spot) string {
			switch {
			case !x.metadata(p):
				return "Channel(s) (" + x.name + ") do not exist"
			case !x.governed(p):
				return "Insufficient permission"
			}
			return ""
		}},
		{"subscribe another", false, func(s *stage, p *somebody, x *spot) string {
			s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals", []int64{extra})
			return s.call(p, "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]string{"name": x.name}}, "principals", []int64{extra}).msg()
		}, subscribing},
		{"subscribe himself", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]string{"name": x.name}}).msg()
		}, subscribing},
	}
	for _, setting := range []string{"can_add_subscribers_group", "can_administer_channel_group", "can_create_topic_group", "can_delete_any_message_group", "can_delete_own_message_group", "can_move_messages_out_of_channel_group",
		"can_move_messages_within_channel_group", "can_remove_subscribers_group", "can_resolve_topics_group", "can_send_message_group", "can_subscribe_group"} {
		var further func(p *somebody, x *spot) string
		switch setting {
		case "can_add_subscribers_group", "can_subscribe_group":
			further = needsContent
		case "can_delete_any_message_group", "can_delete_own_message_group":
			further = func(p *somebody, x *spot) string {
				if p.admin() || p.name == "moderator" { // the organization's can_set_delete_message_policy_group
					return ""
				}
				return "Insufficient permission"
			}
		}
		q := changing(setting, further, func(s *stage, x *spot) pairs {
			return pairs{setting, map[string]any{"new": s.settings[x.id][setting]}}
		})
		list = slices.Insert(list, len(list)-4, q)
	}
	return list
}

func subscribing(p *somebody, x *spot) string {
	switch {
	case p.guest():
		return "Not allowed for guest users"
	case !x.content(p):
		return "Unable to access channel (" + x.name + ")."
	}
	return ""
}

// registered: in which list of a registration a channel is.
func registered(p *somebody, x *spot) string {
	switch {
	case !x.metadata(p):
		return ""
	case p.visitor(), x.in():
		return "subscriptions"
	case x.relation == left:
		return "unsubscribed"
	}
	return "never_subscribed"
}

func matrixOfChannels(t *testing.T, l *book) {
	s := newStage(t, l)
	s.by["extra"] = s.join(ours, ourHost, "extra", 400, 0, 0)
	s.furnish()
	for _, x := range s.spots {
		stream, _ := s.must(s.keeper, "GET", fmt.Sprintf("/streams/%d", x.id)).body["stream"].(map[string]any)
		s.settings[x.id], s.settings[nowhere] = stream, stream
	}
	strangers := s.strangers()
	all := append(slices.Clone(s.people), strangers...)
	for _, p := range all {
		params := pairs{"include_subscribers", true}
		if p.visitor() {
			params = pairs{}
		}
		r := s.call(p, "POST", "/register", params...)
		if want := login(p, true); want != "" {
			s.cell(r.msg(), want, "%s: register", p.name)
			continue
		}
		for _, x := range s.spots {
			where, unread, subscribers := "", "absent", "absent"
			for _, list := range []string{"subscriptions", "unsubscribed", "never_subscribed"} {
				for _, ch := range things(r.body[list]) {
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
			for _, topic := range things(messages["streams"]) {
				if slices.Contains(nums(topic["unread_message_ids"]), x.message) {
					unread = "shown"
				}
			}
			s.cell(where, registered(p, x), "%s: list of registration in a %s", p.name, x)
			s.cell(unread, shownIf(x.kept(p) && x.relation == subscribed), "%s: unread of registration in a %s", p.name, x)
			s.cell(subscribers, shownIf(x.membership(p) && !p.visitor()), "%s: subscribers of registration in a %s", p.name, x)
		}
	}
	s.pose(all, s.spots, s.channelQuestions())
	s.summary()
}
