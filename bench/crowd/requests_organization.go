package crowd

import "fmt"

// organization makes a request of an administrator; one in five comes from a random user.
func (a *RequestGenerator) organization(x *Request) {
	if a.rng.IntN(5) > 0 {
		x.User = 0
	}
	drop := func(kind, name, key string) {
		if id, ok := a.pick(x, kind, 0); ok {
			a.set(x, name, params{key: id})
		}
	}
	switch a.rng.IntN(30) {
	case 0, 1:
		a.set(x, "PATCH /realm", params{choose(a, a.orgSettings...): a.coin()})
	case 2, 3:
		a.set(x, "PATCH /realm", params{choose(a, a.orgPermissions...): params{"new": a.groupValue()}})
	case 4:
		x.User = 0
		a.set(x, "PATCH /realm", params{"can_access_all_users_group": params{"new": choose(a, 7, 8, 6)}})
	case 5, 6:
		a.set(x, "PATCH /realm", choose(a, params{"name": a.numbered("Org")}, params{"description": a.text()},
			params{"topics_policy": choose(a, "allow_empty_topic", "disable_empty_topic")},
			params{"message_edit_history_visibility_policy": choose(a, "all", "moves", "none")},
			params{"message_content_edit_limit_seconds": choose[any](a, 600, `"unlimited"`)},
			params{"default_language": choose(a, "de", "en")}, params{"waiting_period_threshold": a.rng.IntN(3)},
			params{"new_stream_announcements_stream_id": a.channelID()},
			params{"moderation_request_channel_id": a.channelID()}, params{"video_chat_provider": choose(a, 0, 1)},
			params{"message_retention_days": choose[any](a, 100, `"unlimited"`)},
			params{"default_code_block_language": `"go"`},
			params{"signup_announcements_stream_id": a.channelID()},
			params{"zulip_update_announcements_stream_id": a.channelID()}))
	case 7:
		a.set(x, "PATCH /realm/user_settings_defaults", params{choose(a, a.userSettings...): a.coin()})
	case 8:
		x.File = a.numbered("icon")
		a.set(x, "POST /realm/icon", params{})
	case 9:
		x.File = a.numbered("logo")
		a.set(x, "POST /realm/logo", params{"night": a.coin()})
	case 10:
		a.set(x, choose(a, "DELETE /realm/logo", "DELETE /realm/icon"), params{"night": a.coin()})
	case 11, 12:
		x.File = "image " + a.numbered("emoji")
		a.create(x, "emoji", "POST /realm/emoji/{emoji_name}",
			params{"emoji_name": choose(a, "custom", fmt.Sprintf("custom%d", a.count))})
	case 13:
		drop("emoji", "DELETE /realm/emoji/{emoji_name}", "emoji_name")
	case 14:
		a.create(x, "domain", "POST /realm/domains", params{"domain": fmt.Sprintf("d%d.example.org", a.rng.IntN(5)),
			"allow_subdomains": a.coin()})
	case 15:
		if id, ok := a.pick(x, "domain", 0); ok {
			a.set(x, "PATCH /realm/domains/{domain}", params{"domain": id, "allow_subdomains": a.coin()})
		}
	case 16:
		drop("domain", "DELETE /realm/domains/{domain}", "domain")
	case 17:
		a.create(x, "linkifier", "POST /realm/filters",
			params{"pattern": fmt.Sprintf("T%d-(?P<id>[0-9]+)", a.count), "url_template": "https://example.org/{id}"})
	case 18:
		if id, ok := a.pick(x, "linkifier", 0); ok {
			a.set(x, "PATCH /realm/filters/{filter_id}",
				params{"filter_id": id, "pattern": fmt.Sprintf("U%d-(?P<id>[0-9]+)", a.count),
					"url_template": "https://example.org/u/{id}"})
		}
	case 19:
		drop("linkifier", "DELETE /realm/filters/{filter_id}", "filter_id")
	case 20:
		a.create(x, "playground", "POST /realm/playgrounds",
			params{"name": a.numbered("play"), "pygments_language": "Go", "url_template": "https://example.org/{code}"})
	case 21:
		drop("playground", "DELETE /realm/playgrounds/{playground_id}", "playground_id")
	case 22:
		a.create(x, "field", "POST /realm/profile_fields",
			params{"name": a.numbered("field"), "hint": "hint", "field_type": choose(a, 1, 2, 8)})
	case 23:
		if id, ok := a.pick(x, "field", 0); ok {
			a.set(x, "PATCH /realm/profile_fields/{field_id}",
				params{"field_id": id, "name": a.numbered("refield"), "required": a.coin(),
					"editable_by_user": a.coin()})
		}
	case 24:
		drop("field", "DELETE /realm/profile_fields/{field_id}", "field_id")
	case 25:
		a.create(x, "defaults", "POST /default_stream_groups/create",
			params{"group_name": a.numbered("defaults"), "description": "d",
				"stream_names": []string{a.names[a.channelID()]}})
	case 26:
		drop("defaults", "DELETE /default_stream_groups/{group_id}", "group_id")
	case 27:
		a.create(x, "invite", "POST /invites/multiuse", params{"stream_ids": []int64{a.channelID()}})
	case 28:
		a.set(x, "POST /invites", params{"invitee_emails": fmt.Sprintf("guest%d@example.org", a.count),
			"stream_ids": []int64{a.channelID()}})
	case 29:
		a.set(x, "DELETE /invites/multiuse/{invite_id}", params{"invite_id": a.rng.IntN(5) + 1})
	}
}
