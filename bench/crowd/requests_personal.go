package crowd

import "fmt"

// personal makes a request about a user's own drafts, settings, status and the like.
func (a *RequestGenerator) personal(x *Request) {
	content := func() params {
		return params{"type": "stream", "to": []int64{a.channelID()}, "topic": a.topic(),
			"content": a.numbered("draft"), "timestamp": a.Now}
	}
	switch a.rng.IntN(26) {
	case 0, 1:
		a.create(x, "draft", "POST /drafts", params{"drafts": []params{content(), content()}})
	case 2:
		if id, ok := a.pick(x, "draft", 90); ok {
			a.set(x, "PATCH /drafts/{draft_id}", params{"draft_id": id, "draft": content()})
		}
	case 3:
		if id, ok := a.pick(x, "draft", 90); ok {
			a.set(x, "DELETE /drafts/{draft_id}", params{"draft_id": id})
		}
	case 4, 5:
		a.create(x, "scheduled", "POST /scheduled_messages",
			params{"type": "stream", "to": a.channelID(), "topic": a.topic(), "content": a.text(),
				"scheduled_delivery_timestamp": a.Now + 1 + a.rng.Int64N(600)})
		if a.rng.IntN(3) == 0 {
			x.Params["type"], x.Params["to"] = "direct", a.userIDs(2)
			delete(x.Params, "topic")
		}
	case 6:
		if id, ok := a.pick(x, "scheduled", 90); ok {
			a.set(x, "PATCH /scheduled_messages/{scheduled_message_id}",
				params{"scheduled_message_id": id, "content": a.text(), "scheduled_delivery_timestamp": a.Now + 100})
		}
	case 7:
		if id, ok := a.pick(x, "scheduled", 90); ok {
			a.set(x, "DELETE /scheduled_messages/{scheduled_message_id}", params{"scheduled_message_id": id})
		}
	case 8:
		if id, ok := a.pick(x, "message", 20); ok {
			a.create(x, "reminder", "POST /reminders",
				params{"message_id": id, "scheduled_delivery_timestamp": a.Now + 1 + a.rng.Int64N(900), "note": "note"})
		}
	case 9:
		if id, ok := a.pick(x, "reminder", 90); ok {
			a.set(x, "DELETE /reminders/{reminder_id}", params{"reminder_id": id})
		}
	case 10:
		a.create(x, "snippet", "POST /saved_snippets", params{"title": a.numbered("title"), "content": a.text()})
	case 11:
		if id, ok := a.pick(x, "snippet", 90); ok {
			a.set(x, "PATCH /saved_snippets/{saved_snippet_id}",
				params{"saved_snippet_id": id, choose(a, "title", "content"): a.numbered("changed")})
		}
	case 12:
		if id, ok := a.pick(x, "snippet", 90); ok {
			a.set(x, "DELETE /saved_snippets/{saved_snippet_id}", params{"saved_snippet_id": id})
		}
	case 13:
		a.create(x, "view", "POST /navigation_views", params{"fragment": fmt.Sprintf("narrow/is/view%d", a.rng.IntN(9)),
			"is_pinned": a.coin(), "name": a.numbered("view")})
	case 14:
		if id, ok := a.pick(x, "view", 90); ok {
			p := params{"fragment": id, "is_pinned": a.coin()}
			if a.coin() {
				p = params{"fragment": id, "name": a.numbered("renamed")}
			}
			a.set(x, "PATCH /navigation_views/{fragment:*}", p)
		}
	case 15:
		if id, ok := a.pick(x, "view", 90); ok {
			a.set(x, "DELETE /navigation_views/{fragment:*}", params{"fragment": id})
		}
	case 16:
		a.set(x, choose(a, "POST", "DELETE")+" /users/me/alert_words",
			params{"alert_words": []string{choose(a, "octopus", "text", "lunch")}})
	case 17:
		a.set(x, choose(a, "POST", "DELETE")+" /users/me/muted_users/{muted_user_id}",
			params{"muted_user_id": a.userID()})
	case 18, 19:
		a.set(x, "POST /users/me/status", params{"status_text": choose(a, "", "busy", "away"),
			"emoji_name": choose(a, "", "wave", "tada")})
		if a.coin() {
			delete(x.Params, choose(a, "status_text", "emoji_name"))
		}
	case 20, 21:
		a.set(x, "PATCH /settings", params{choose(a, a.userSettings...): a.coin()})
	case 22:
		a.set(x, "PATCH /settings", choose(a, params{"timezone": choose(a, "Europe/Berlin", "Asia/Tokyo")},
			params{"default_language": choose(a, "de", "en")},
			params{"email_address_visibility": choose(a, 1, 2, 3, 4, 5)},
			params{"web_font_size_px": 16 + a.rng.IntN(3)}, params{"full_name": a.numbered("Name")},
			params{"emojiset": choose(a, "google", "twitter")}))
	case 23:
		a.set(x, "POST /users/me/onboarding_steps", params{"onboarding_step": choose(a, "visibility_policy_banner",
			"intro_inbox_view_modal", "intro_recent_view_modal")})
	case 24:
		x.File = a.numbered("picture")
		a.set(x, "POST /users/me/avatar", params{})
		if a.rng.IntN(3) == 0 {
			x.File = ""
			a.set(x, "DELETE /users/me/avatar", params{})
		}
	case 25:
		a.create(x, "device", "POST /register_client_device", params{})
		if id, ok := a.pick(x, "device", 90); ok && a.coin() {
			x.creates = ""
			a.set(x, "POST /remove_client_device", params{"device_id": id})
		}
	}
}
