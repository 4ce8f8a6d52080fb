package crowd

import (
	"fmt"
	"math/rand/v2"
)

// personal is what somebody has for himself.
func (a *Askers) personal(x *Ask) {
	content := func() params {
		return params{"type": "stream", "to": []int64{a.somewhere()}, "topic": a.subject(), "content": a.numbered("draft"), "timestamp": a.Now}
	}
	switch a.rng.IntN(26) {
	case 0, 1:
		a.make(x, "draft", "POST /drafts", params{"drafts": []params{content(), content()}})
	case 2:
		if id, ok := a.one(x, "draft", 90); ok {
			a.ask(x, "PATCH /drafts/{draft_id}", params{"draft_id": id, "draft": content()})
		}
	case 3:
		if id, ok := a.one(x, "draft", 90); ok {
			a.ask(x, "DELETE /drafts/{draft_id}", params{"draft_id": id})
		}
	case 4, 5:
		a.make(x, "scheduled", "POST /scheduled_messages", params{"type": "stream", "to": a.somewhere(), "topic": a.subject(), "content": a.text(), "scheduled_delivery_timestamp": a.Now + 1 + a.rng.Int64N(600)})
		if a.rng.IntN(3) == 0 {
			x.Params["type"], x.Params["to"] = "direct", a.someone(2)
			delete(x.Params, "topic")
		}
	case 6:
		if id, ok := a.one(x, "scheduled", 90); ok {
			a.ask(x, "PATCH /scheduled_messages/{scheduled_message_id}", params{"scheduled_message_id": id, "content": a.text(), "scheduled_delivery_timestamp": a.Now + 100})
		}
	case 7:
		if id, ok := a.one(x, "scheduled", 90); ok {
			a.ask(x, "DELETE /scheduled_messages/{scheduled_message_id}", params{"scheduled_message_id": id})
		}
	case 8:
		if id, ok := a.one(x, "message", 20); ok {
			a.make(x, "reminder", "POST /reminders", params{"message_id": id, "scheduled_delivery_timestamp": a.Now + 1 + a.rng.Int64N(900), "note": "note"})
		}
	case 9:
		if id, ok := a.one(x, "reminder", 90); ok {
			a.ask(x, "DELETE /reminders/{reminder_id}", params{"reminder_id": id})
		}
	case 10:
		a.make(x, "snippet", "POST /saved_snippets", params{"title": a.numbered("title"), "content": a.text()})
	case 11:
		if id, ok := a.one(x, "snippet", 90); ok {
			a.ask(x, "PATCH /saved_snippets/{saved_snippet_id}", params{"saved_snippet_id": id, choose(a, "title", "content"): a.numbered("changed")})
		}
	case 12:
		if id, ok := a.one(x, "snippet", 90); ok {
			a.ask(x, "DELETE /saved_snippets/{saved_snippet_id}", params{"saved_snippet_id": id})
		}
	case 13:
		a.make(x, "view", "POST /navigation_views", params{"fragment": fmt.Sprintf("narrow/is/view%d", a.rng.IntN(9)), "is_pinned": a.yes(), "name": a.numbered("view")})
	case 14:
		if id, ok := a.one(x, "view", 90); ok {
			p := params{"fragment": id, "is_pinned": a.yes()}
			if a.yes() {
				p = params{"fragment": id, "name": a.numbered("renamed")}
			}
			a.ask(x, "PATCH /navigation_views/{fragment:*}", p)
		}
	case 15:
		if id, ok := a.one(x, "view", 90); ok {
			a.ask(x, "DELETE /navigation_views/{fragment:*}", params{"fragment": id})
		}
	case 16:
		a.ask(x, choose(a, "POST", "DELETE")+" /users/me/alert_words", params{"alert_words": []string{choose(a, "octopus", "text", "lunch")}})
	case 17:
		a.ask(x, choose(a, "POST", "DELETE")+" /users/me/muted_users/{muted_user_id}", params{"muted_user_id": a.person()})
	case 18, 19:
		a.ask(x, "POST /users/me/status", params{"status_text": choose(a, "", "busy", "away"), "emoji_name": choose(a, "", "wave", "tada")})
		if a.yes() {
			delete(x.Params, choose(a, "status_text", "emoji_name"))
		}
	case 20, 21:
		a.ask(x, "PATCH /settings", params{choose(a, a.bools...): a.yes()})
	case 22:
		a.ask(x, "PATCH /settings", choose(a, params{"timezone": choose(a, "Europe/Berlin", "Asia/Tokyo")}, params{"default_language": choose(a, "de", "en")}, params{"email_address_visibility": choose(a, 1, 2, 3, 4, 5)},
			params{"web_font_size_px": 16 + a.rng.IntN(3)}, params{"full_name": a.numbered("Name")}, params{"emojiset": choose(a, "google", "twitter")}))
	case 23:
		a.ask(x, "POST /users/me/onboarding_steps", params{"onboarding_step": choose(a, "visibility_policy_banner", "intro_inbox_view_modal", "intro_recent_view_modal")})
	case 24:
		x.File = a.numbered("picture")
		a.ask(x, "POST /users/me/avatar", params{})
		if a.rng.IntN(3) == 0 {
			x.File = ""
			a.ask(x, "DELETE /users/me/avatar", params{})
		}
	case 25:
		a.make(x, "device", "POST /register_client_device", params{})
		if id, ok := a.one(x, "device", 90); ok && a.yes() {
			x.kind = ""
			a.ask(x, "POST /remove_client_device", params{"device_id": id})
		}
	}
}

// people is what is done to accounts, bots and groups of them.
func (a *Askers) people(x *Ask) {
	u := a.person()
	switch a.rng.IntN(20) {
	case 0:
		a.make(x, "user", "POST /users", params{"email": fmt.Sprintf("joined%d@example.org", a.count), "password": "some password", "full_name": a.numbered("Joined")})
	case 1:
		if u != a.People[0] {
			x.User = 0
			a.ask(x, "DELETE /users/{user_id}", params{"user_id": u})
		}
	case 2, 3:
		x.User = 0
		a.ask(x, "POST /users/{user_id}/reactivate", params{"user_id": u})
	case 4, 5:
		if u != a.People[0] {
			x.User = 0
			a.ask(x, "PATCH /users/{user_id}", params{"user_id": u, "role": choose(a, 100, 200, 300, 400, 600)})
		}
	case 6:
		a.ask(x, "PATCH /users/{user_id}", params{"user_id": u, "full_name": a.numbered("Called")})
	case 7:
		a.ask(x, "PATCH /users/{user_id}", params{"user_id": u, "new_email": fmt.Sprintf("new%d@example.org", a.count)})
	case 8:
		a.make(x, "user", "POST /bots", params{"full_name": a.numbered("Bot"), "short_name": fmt.Sprintf("bot%d", a.count), "bot_type": choose(a, 1, 2, 3), "payload_url": `"https://example.org/hook"`})
	case 9:
		p := params{"bot_id": u}
		switch a.rng.IntN(6) {
		case 0:
			p["full_name"] = a.numbered("Robot")
		case 1:
			p["bot_owner_id"] = a.person()
		case 2:
			p["role"] = choose(a, 200, 400, 600)
		case 3:
			p["default_sending_stream"] = a.names[a.somewhere()]
		case 4:
			p["default_all_public_streams"] = a.yes()
		default:
			p["service_payload_url"] = `"https://example.org/other"`
		}
		a.ask(x, "PATCH /bots/{bot_id}", p)
	case 10:
		a.ask(x, "DELETE /bots/{bot_id}", params{"bot_id": u})
	case 11:
		a.ask(x, "POST /bots/{bot_id}/api_key/regenerate", params{"bot_id": u})
	case 12:
		a.make(x, "group", "POST /user_groups/create", params{"name": a.numbered("group"), "description": "group", "members": a.someone(3), "subgroups": []any{a.group()}})
	case 13, 14:
		a.ask(x, "POST /user_groups/{user_group_id}/members", params{"user_group_id": a.group(), choose(a, "add", "delete"): a.someone(2)})
	case 15:
		a.ask(x, "POST /user_groups/{user_group_id}/subgroups", params{"user_group_id": a.group(), choose(a, "add", "delete"): []any{a.group()}})
	case 16:
		p := params{"user_group_id": a.group()}
		switch a.rng.IntN(4) {
		case 0:
			p["name"] = a.numbered("regroup")
		case 1:
			p["description"] = a.numbered("about")
		case 2:
			p["deactivated"] = a.yes()
		default:
			p[choose(a, "can_manage_group", "can_join_group", "can_leave_group", "can_mention_group", "can_add_members_group", "can_remove_members_group")] = params{"new": a.groupValue()}
		}
		a.ask(x, "PATCH /user_groups/{user_group_id}", p)
	case 17:
		a.ask(x, "POST /user_groups/{user_group_id}/deactivate", params{"user_group_id": a.group()})
	case 18:
		if id, ok := a.one(x, "field", 0); ok {
			a.ask(x, "PATCH /users/me/profile_data", params{"data": []params{{"id": id, "value": a.numbered("value")}}})
			if a.rng.IntN(3) == 0 {
				a.ask(x, "DELETE /users/me/profile_data", params{"data": []any{id}})
			}
		}
	case 19:
		a.ask(x, "POST /users/{user_id}/status", params{"user_id": u, "status_text": "set by others"})
	}
}

// organization is what administrators do.
func (a *Askers) organization(x *Ask) {
	if a.rng.IntN(5) > 0 {
		x.User = 0
	}
	drop := func(kind, name, key string) {
		if id, ok := a.one(x, kind, 0); ok {
			a.ask(x, name, params{key: id})
		}
	}
	switch a.rng.IntN(30) {
	case 0, 1:
		a.ask(x, "PATCH /realm", params{choose(a, a.org...): a.yes()})
	case 2, 3:
		a.ask(x, "PATCH /realm", params{choose(a, a.groups...): params{"new": a.groupValue()}})
	case 4:
		x.User = 0
		a.ask(x, "PATCH /realm", params{"can_access_all_users_group": params{"new": choose(a, 7, 8, 6)}})
	case 5, 6:
		a.ask(x, "PATCH /realm", choose(a, params{"name": a.numbered("Org")}, params{"description": a.text()}, params{"topics_policy": choose(a, "allow_empty_topic", "disable_empty_topic")},
			params{"message_edit_history_visibility_policy": choose(a, "all", "moves", "none")}, params{"message_content_edit_limit_seconds": choose[any](a, 600, `"unlimited"`)},
			params{"default_language": choose(a, "de", "en")}, params{"waiting_period_threshold": a.rng.IntN(3)}, params{"new_stream_announcements_stream_id": a.somewhere()},
			params{"moderation_request_channel_id": a.somewhere()}, params{"video_chat_provider": choose(a, 0, 1)}, params{"message_retention_days": choose[any](a, 100, `"unlimited"`)}, params{"default_code_block_language": `"go"`},
			params{"signup_announcements_stream_id": a.somewhere()}, params{"zulip_update_announcements_stream_id": a.somewhere()}))
	case 7:
		a.ask(x, "PATCH /realm/user_settings_defaults", params{choose(a, a.bools...): a.yes()})
	case 8:
		x.File = a.numbered("icon")
		a.ask(x, "POST /realm/icon", params{})
	case 9:
		x.File = a.numbered("logo")
		a.ask(x, "POST /realm/logo", params{"night": a.yes()})
	case 10:
		a.ask(x, choose(a, "DELETE /realm/logo", "DELETE /realm/icon"), params{"night": a.yes()})
	case 11, 12:
		x.File = "image " + a.numbered("emoji")
		a.make(x, "emoji", "POST /realm/emoji/{emoji_name}", params{"emoji_name": choose(a, "custom", fmt.Sprintf("custom%d", a.count))})
	case 13:
		drop("emoji", "DELETE /realm/emoji/{emoji_name}", "emoji_name")
	case 14:
		a.make(x, "domain", "POST /realm/domains", params{"domain": fmt.Sprintf("d%d.example.org", a.rng.IntN(5)), "allow_subdomains": a.yes()})
	case 15:
		if id, ok := a.one(x, "domain", 0); ok {
			a.ask(x, "PATCH /realm/domains/{domain}", params{"domain": id, "allow_subdomains": a.yes()})
		}
	case 16:
		drop("domain", "DELETE /realm/domains/{domain}", "domain")
	case 17:
		a.make(x, "linkifier", "POST /realm/filters", params{"pattern": fmt.Sprintf("T%d-(?P<id>[0-9]+)", a.count), "url_template": "https://example.org/{id}"})
	case 18:
		if id, ok := a.one(x, "linkifier", 0); ok {
			a.ask(x, "PATCH /realm/filters/{filter_id}", params{"filter_id": id, "pattern": fmt.Sprintf("U%d-(?P<id>[0-9]+)", a.count), "url_template": "https://example.org/u/{id}"})
		}
	case 19:
		drop("linkifier", "DELETE /realm/filters/{filter_id}", "filter_id")
	case 20:
		a.make(x, "playground", "POST /realm/playgrounds", params{"name": a.numbered("play"), "pygments_language": "Go", "url_template": "https://example.org/{code}"})
	case 21:
		drop("playground", "DELETE /realm/playgrounds/{playground_id}", "playground_id")
	case 22:
		a.make(x, "field", "POST /realm/profile_fields", params{"name": a.numbered("field"), "hint": "hint", "field_type": choose(a, 1, 2, 8)})
	case 23:
		if id, ok := a.one(x, "field", 0); ok {
			a.ask(x, "PATCH /realm/profile_fields/{field_id}", params{"field_id": id, "name": a.numbered("refield"), "required": a.yes(), "editable_by_user": a.yes()})
		}
	case 24:
		drop("field", "DELETE /realm/profile_fields/{field_id}", "field_id")
	case 25:
		a.make(x, "defaults", "POST /default_stream_groups/create", params{"group_name": a.numbered("defaults"), "description": "d", "stream_names": []string{a.names[a.somewhere()]}})
	case 26:
		drop("defaults", "DELETE /default_stream_groups/{group_id}", "group_id")
	case 27:
		a.make(x, "invite", "POST /invites/multiuse", params{"stream_ids": []int64{a.somewhere()}})
	case 28:
		a.ask(x, "POST /invites", params{"invitee_emails": fmt.Sprintf("guest%d@example.org", a.count), "stream_ids": []int64{a.somewhere()}})
	case 29:
		a.ask(x, "DELETE /invites/multiuse/{invite_id}", params{"invite_id": a.rng.IntN(5) + 1})
	}
}

// Beside is a request that changes little of what others ask for, made up by other dice: what passes, and what one keeps
// of one's files. It may be none.
func (a *Askers) Beside(dice *rand.Rand) Ask {
	defer func(r *rand.Rand) { a.rng = r }(a.rng)
	a.rng = dice
	x := Ask{User: a.rng.IntN(len(a.People))}
	switch a.rng.IntN(18) {
	case 0:
		a.ask(&x, "POST /typing", params{"op": choose(a, "start", "stop"), "type": "direct", "to": a.someone(2)})
	case 1:
		a.ask(&x, "POST /typing", params{"op": choose(a, "start", "stop"), "type": "stream", "stream_id": a.somewhere(), "topic": a.subject()})
	case 2:
		if id, ok := a.one(&x, "message", 90); ok {
			a.ask(&x, "POST /messages/{message_id}/typing", params{"message_id": id, "op": choose(a, "start", "stop")})
		}
	case 3:
		a.ask(&x, "POST /users/me/presence", params{"status": choose(a, "active", "idle"), "last_update_id": -1})
	case 4, 5:
		a.make(&x, "attachment", "GET /attachments", params{})
	case 6:
		if id, ok := a.one(&x, "attachment", 90); ok {
			a.ask(&x, "DELETE /attachments/{attachment_id}", params{"attachment_id": id})
		}
	case 7:
		if id, ok := a.one(&x, "message", 95); ok { // texts whose files change
			a.ask(&x, "PATCH /messages/{message_id}", params{"message_id": id, "content": a.text() + " " + a.text()})
		}
	case 8:
		a.ask(&x, "PATCH /settings", params{"send_read_receipts": a.yes()})
	case 9:
		x.User = 0
		a.ask(&x, "PATCH /realm", params{"message_edit_history_visibility_policy": choose(a, "all", "all", "moves", "none")})
	case 10:
		x.File = a.numbered("content")
		a.make(&x, "file", "POST /user_uploads", params{})
	case 11:
		a.ask(&x, "POST /zcommand", params{"command": choose(a, "/dark", "/light", "/fluid-width")})
	case 12:
		a.ask(&x, "POST /users/me/subscriptions/properties", params{"subscription_data": []params{{"stream_id": a.somewhere(), "property": "color", "value": choose(a, "#aabbcc", "#112233")}}})
	case 13: // on a message few have an opinion of, so that it is taken back now and then
		if list := a.known["message"]; len(list) > 0 {
			a.ask(&x, choose(a, "POST", "DELETE")+" /messages/{message_id}/reactions", params{"message_id": list[len(list)-1].id, "emoji_name": "tada"})
			x.User = choose(a, 0, 1, 2)
		}
	case 14:
		x.User = 0
		a.ask(&x, "PATCH /realm/user_settings_defaults", choose(a, params{"color_scheme": choose(a, 1, 2, 3)}, params{"twenty_four_hour_time": choose[any](a, true, false, nil)}, params{"emojiset": choose(a, "google", "twitter")}))
	case 15:
		x.User = 0
		a.ask(&x, "PATCH /realm", choose(a, params{"jitsi_server_url": choose(a, `"https://meet.example.org"`, `"default"`)}, params{"message_content_delete_limit_seconds": choose[any](a, 60, `"unlimited"`)},
			params{"move_messages_within_stream_limit_seconds": choose[any](a, 60, `"unlimited"`)}, params{"move_messages_between_streams_limit_seconds": choose[any](a, 60, `"unlimited"`)}))
	case 16:
		x.User = 0
		g := a.group()
		a.ask(&x, "POST /user_groups/{user_group_id}/subgroups", params{"user_group_id": choose(a, a.known["group"]...).id, choose(a, "add", "delete"): []any{g}})
		if a.rng.IntN(3) == 0 {
			a.ask(&x, "PATCH /user_groups/{user_group_id}", params{"user_group_id": g, "deactivated": a.yes()})
		}
	case 17:
		x.User = 0
		if id, ok := a.one(&x, "folder", 0); ok {
			order := []any{}
			for _, f := range a.known["folder"] {
				order = append([]any{f.id}, order...)
			}
			a.ask(&x, "PATCH /channel_folders", params{"order": order})
			if a.yes() {
				a.ask(&x, "PATCH /channel_folders/{channel_folder_id}", params{"channel_folder_id": id, "description": a.text(), "name": a.numbered("folder")})
			}
		}
	}
	return x
}
