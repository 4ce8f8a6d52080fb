package crowd

// channels is what is done to channels and topics.
func (a *Askers) channels(x *Ask) {
	c := a.somewhere()
	name := a.names[c]
	switch d := a.rng.IntN(100); {
	case d < 7:
		p := params{"name": a.numbered("channel"), "description": "*here*", "subscribers": a.someone(3),
			"invite_only": a.yes(), "announce": a.rng.IntN(4) == 0}
		if p["invite_only"] == true {
			p["history_public_to_subscribers"] = a.yes()
		} else {
			p["is_web_public"] = a.rng.IntN(3) == 0
		}
		a.make(x, "channel", "POST /channels/create", p)
	case d < 25:
		a.ask(x, "POST /users/me/subscriptions", params{"subscriptions": []params{{"name": name}},
			"principals": a.someone(3)})
	case d < 33:
		a.ask(x, "POST /users/me/subscriptions", params{"subscriptions": []params{{"name": name, "color": "#123456"}}})
	case d < 41:
		a.ask(x, "DELETE /users/me/subscriptions", params{"subscriptions": []string{name}, "principals": a.someone(2)})
	case d < 47:
		a.ask(x, "DELETE /users/me/subscriptions", params{"subscriptions": []string{name}})
	case d < 55:
		prop := choose(a, "is_muted", "in_home_view", "pin_to_top", "desktop_notifications", "audible_notifications",
			"push_notifications", "email_notifications", "wildcard_mentions_notify")
		a.ask(x, "POST /users/me/subscriptions/properties",
			params{"subscription_data": []params{{"stream_id": c, "property": prop, "value": a.yes()}}})
	case d < 63:
		a.ask(x, "POST /user_topics", params{"stream_id": c, "topic": a.subject(), "visibility_policy": a.rng.IntN(4)})
	case d < 65:
		a.ask(x, "PATCH /users/me/subscriptions/muted_topics",
			params{"stream_id": c, "topic": a.subject(), "op": choose(a, "add", "remove")})
	case d < 68:
		a.ask(x, "DELETE /streams/{stream_id}", params{"stream_id": c})
	case d < 72:
		a.ask(x, "PATCH /streams/{stream_id}", params{"stream_id": c, "is_archived": false})
	case d < 80:
		p := params{"stream_id": c, "is_private": a.yes()}
		if a.yes() {
			p["history_public_to_subscribers"] = a.yes()
		}
		if p["is_private"] == false && a.rng.IntN(3) == 0 {
			p["is_web_public"] = true
		}
		a.ask(x, "PATCH /streams/{stream_id}", p)
	case d < 84:
		p := params{"stream_id": c, "new_name": a.numbered("renamed")}
		a.names[c] = p["new_name"].(string) // or it is not, and asking for it makes one of that name
		a.ask(x, "PATCH /streams/{stream_id}", p)
	case d < 90:
		a.ask(x, "PATCH /streams/{stream_id}", params{"stream_id": c,
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
			p["is_default_stream"] = a.yes()
		default:
			p["folder_id"] = nil
			if f := a.known["folder"]; len(f) > 0 && a.yes() {
				p["folder_id"] = choose(a, f...).id
			}
		}
		a.ask(x, "PATCH /streams/{stream_id}", p)
	case d < 96:
		a.ask(x, choose(a, "POST", "DELETE")+" /default_streams", params{"stream_id": c})
	case d < 98:
		a.make(x, "folder", "POST /channel_folders/create",
			params{"name": a.numbered("folder"), "description": "**folder**"})
	default:
		if id, ok := a.one(x, "folder", 50); ok {
			a.ask(x, "PATCH /channel_folders/{channel_folder_id}",
				params{"channel_folder_id": id, choose(a, "name", "description"): a.numbered("other")})
			switch a.rng.IntN(3) {
			case 0:
				a.ask(x, "PATCH /channel_folders/{channel_folder_id}",
					params{"channel_folder_id": id, "is_archived": a.yes()})
			case 1:
				order := []any{}
				for _, f := range a.known["folder"] {
					order = append([]any{f.id}, order...)
				}
				a.ask(x, "PATCH /channel_folders", params{"order": order})
			}
		}
	}
}
