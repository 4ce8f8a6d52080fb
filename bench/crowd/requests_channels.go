package crowd

// channels makes a request about channels or topics.
func (a *RequestGenerator) channels(x *Request) {
	c := a.channelID()
	name := a.names[c]
	switch d := a.rng.IntN(100); {
	case d < 7:
		p := params{"name": a.numbered("channel"), "description": "*here*", "subscribers": a.userIDs(3),
			"invite_only": a.coin(), "announce": a.rng.IntN(4) == 0}
		if p["invite_only"] == true {
			p["history_public_to_subscribers"] = a.coin()
		} else {
			p["is_web_public"] = a.rng.IntN(3) == 0
		}
		a.create(x, "channel", "POST /channels/create", p)
	case d < 25:
		a.set(x, "POST /users/me/subscriptions", params{"subscriptions": []params{{"name": name}},
			"principals": a.userIDs(3)})
	case d < 33:
		a.set(x, "POST /users/me/subscriptions", params{"subscriptions": []params{{"name": name, "color": "#123456"}}})
	case d < 41:
		a.set(x, "DELETE /users/me/subscriptions", params{"subscriptions": []string{name}, "principals": a.userIDs(2)})
	case d < 47:
		a.set(x, "DELETE /users/me/subscriptions", params{"subscriptions": []string{name}})
	case d < 55:
		prop := choose(a, "is_muted", "in_home_view", "pin_to_top", "desktop_notifications", "audible_notifications",
			"push_notifications", "email_notifications", "wildcard_mentions_notify")
		a.set(x, "POST /users/me/subscriptions/properties",
			params{"subscription_data": []params{{"stream_id": c, "property": prop, "value": a.coin()}}})
	case d < 63:
		a.set(x, "POST /user_topics", params{"stream_id": c, "topic": a.topic(), "visibility_policy": a.rng.IntN(4)})
	case d < 65:
		a.set(x, "PATCH /users/me/subscriptions/muted_topics",
			params{"stream_id": c, "topic": a.topic(), "op": choose(a, "add", "remove")})
	case d < 68:
		a.set(x, "DELETE /streams/{stream_id}", params{"stream_id": c})
	case d < 72:
		a.set(x, "PATCH /streams/{stream_id}", params{"stream_id": c, "is_archived": false})
	case d < 80:
		p := params{"stream_id": c, "is_private": a.coin()}
		if a.coin() {
			p["history_public_to_subscribers"] = a.coin()
		}
		if p["is_private"] == false && a.rng.IntN(3) == 0 {
			p["is_web_public"] = true
		}
		a.set(x, "PATCH /streams/{stream_id}", p)
	case d < 84:
		p := params{"stream_id": c, "new_name": a.numbered("renamed")}
		// If the renaming is rejected, a later subscription creates a channel of the new name.
		a.names[c] = p["new_name"].(string)
		a.set(x, "PATCH /streams/{stream_id}", p)
	case d < 90:
		a.set(x, "PATCH /streams/{stream_id}", params{"stream_id": c,
			choose(a, "can_send_message_group", "can_administer_channel_group", "can_subscribe_group",
				"can_add_subscribers_group",
				"can_remove_subscribers_group", "can_delete_any_message_group", "can_resolve_topics_group",
				"can_create_topic_group"): params{"new": a.groupValue()}})
	case d < 94:
		p := params{"stream_id": c}
		switch a.rng.IntN(5) {
		case 0:
			p["description"] = a.text()
		case 1:
			p["topics_policy"] = `"` + choose(a, "inherit", "allow_empty_topic", "disable_empty_topic",
				"empty_topic_only") + `"`
		case 2:
			p["message_retention_days"] = choose[any](a, 30, `"unlimited"`, `"realm_default"`)
		case 3:
			p["is_default_stream"] = a.coin()
		default:
			p["folder_id"] = nil
			if f := a.created["folder"]; len(f) > 0 && a.coin() {
				p["folder_id"] = choose(a, f...).id
			}
		}
		a.set(x, "PATCH /streams/{stream_id}", p)
	case d < 96:
		a.set(x, choose(a, "POST", "DELETE")+" /default_streams", params{"stream_id": c})
	case d < 98:
		a.create(x, "folder", "POST /channel_folders/create",
			params{"name": a.numbered("folder"), "description": "**folder**"})
	default:
		if id, ok := a.pick(x, "folder", 50); ok {
			a.set(x, "PATCH /channel_folders/{channel_folder_id}",
				params{"channel_folder_id": id, choose(a, "name", "description"): a.numbered("other")})
			switch a.rng.IntN(3) {
			case 0:
				a.set(x, "PATCH /channel_folders/{channel_folder_id}",
					params{"channel_folder_id": id, "is_archived": a.coin()})
			case 1:
				order := []any{}
				for _, f := range a.created["folder"] {
					order = append([]any{f.id}, order...)
				}
				a.set(x, "PATCH /channel_folders", params{"order": order})
			}
		}
	}
}
