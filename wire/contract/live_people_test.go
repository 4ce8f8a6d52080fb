package contract

func (w *world) changeMyself() {
	w.must("member", "POST", "/users/me/alert_words", "alert_words", []string{"alarm"})
	w.must("member", "DELETE", "/users/me/alert_words", "alert_words", []string{"alarm"})
	w.must("member", "POST", "/users/me/muted_users/{guest}")
	w.must("member", "DELETE", "/users/me/muted_users/{guest}")
	w.must("member", "POST", "/users/me/status", "status_text", "busy", "emoji_name", "car", "emoji_code", "1f697", "reaction_type", "unicode_emoji")
	w.must("member", "POST", "/users/me/status", "status_text", "", "emoji_name", "")
	w.must("owner", "POST", "/users/{member}/status", "status_text", "set by another")
	w.must("member", "POST", "/users/me/presence", "status", "active", "new_user_input", true)
	w.must("member", "POST", "/users/me/presence", "status", "idle", "last_update_id", -1)
	w.must("member", "POST", "/users/me/presence", "status", "idle", "ping_only", true)
	w.must("member", "PATCH", "/settings", "full_name", "Another Name")
	w.must("member", "PATCH", "/settings", "timezone", "Europe/Berlin")
	w.must("member", "PATCH", "/settings", "color_scheme", 2, "enter_sends", true, "web_home_view", "recent", "notification_sound", "none")
	w.must("member", "PATCH", "/settings", "twenty_four_hour_time", "null")
	w.must("member", "PATCH", "/settings", "default_language", "de")
	w.must("member", "PATCH", "/settings", "email_address_visibility", 3)
	w.must("member", "PATCH", "/settings", "email_address_visibility", 1)
	w.must("member", "PATCH", "/settings/display", "starred_message_counts", false)
	w.must("member", "PATCH", "/settings/notifications", "enable_sounds", false)
	w.must("member", "PATCH", "/settings", "presence_enabled", false)
	w.must("member", "PATCH", "/settings", "presence_enabled", true)
	w.must("member", "PATCH", "/settings", "allow_private_data_export", true)
	w.attach("member", "/users/me/avatar", "me.png", pixel)
	w.must("member", "DELETE", "/users/me/avatar")
	w.must("member", "POST", "/users/me/onboarding_steps", "onboarding_step", "intro_inbox_view_modal")
	w.must("other", "PATCH", "/settings", "enable_drafts_synchronization", false)
}

func (w *world) changeGroups() {
	if !w.keep("new_group", w.must("owner", "POST", "/user_groups/create", "name", "lunch", "description", "eats", "members", []int{w.num("owner")})["group_id"]) {
		return
	}
	w.must("owner", "PATCH", "/user_groups/{new_group}", "name", "dinner", "description", "later")
	for _, setting := range []string{"can_add_members_group", "can_join_group", "can_leave_group", "can_manage_group", "can_mention_group", "can_remove_members_group"} {
		w.must("owner", "PATCH", "/user_groups/{new_group}", setting, map[string]any{"new": map[string]any{"direct_members": []int{w.num("owner"), w.num("other")}, "direct_subgroups": []int{}}})
	}
	w.must("owner", "POST", "/user_groups/{new_group}/members", "add", []int{w.num("member")})
	w.must("owner", "POST", "/user_groups/{new_group}/members", "delete", []int{w.num("member")})
	if w.vars["user_group_id"] != "" {
		w.must("owner", "POST", "/user_groups/{new_group}/subgroups", "add", []int{w.num("user_group_id")})
		w.must("owner", "POST", "/user_groups/{new_group}/subgroups", "delete", []int{w.num("user_group_id")})
	}
	w.must("owner", "POST", "/user_groups/{new_group}/deactivate")
	w.must("owner", "PATCH", "/user_groups/{new_group}", "deactivated", false)
	w.must("owner", "POST", "/user_groups/{new_group}/deactivate")
}

func (w *world) changeOrganization() {
	w.must("owner", "PATCH", "/realm", "name", "Conformance")
	w.must("owner", "PATCH", "/realm", "description", "for *tests*")
	w.must("owner", "PATCH", "/realm", "waiting_period_threshold", 3, "digest_weekday", 2, "enable_read_receipts", true)
	w.must("owner", "PATCH", "/realm", "waiting_period_threshold", 0)
	w.must("owner", "PATCH", "/realm", "message_content_edit_limit_seconds", 1200)
	w.must("owner", "PATCH", "/realm", "topics_policy", "disable_empty_topic")
	w.must("owner", "PATCH", "/realm", "topics_policy", "allow_empty_topic")
	w.must("owner", "PATCH", "/realm", "gif_rating_policy", 2, "media_preview_size", 150, "welcome_message_custom_text", "hello", "default_avatar_source", "G")
	w.must("owner", "PATCH", "/realm", "send_channel_events_messages", false)
	w.must("owner", "PATCH", "/realm", "require_e2ee_push_notifications", true)
	w.must("owner", "PATCH", "/realm", "video_chat_provider", 0)
	w.must("owner", "PATCH", "/realm", "can_add_custom_emoji_group", map[string]any{"new": map[string]any{"direct_members": []int{w.num("owner"), w.num("other")}, "direct_subgroups": []int{}}})
	w.must("owner", "PATCH", "/realm", "moderation_request_channel_id", w.num("private"))
	w.must("member", "POST", "/messages/{message_id}/report", "report_type", "spam")
	w.must("owner", "PATCH", "/realm/user_settings_defaults", "color_scheme", 3, "enter_sends", true)
	w.must("owner", "PATCH", "/realm/user_settings_defaults", "twenty_four_hour_time", true)
	w.must("owner", "POST", "/realm/domains", "domain", "conform.example.com", "allow_subdomains", false)
	w.must("owner", "PATCH", "/realm/domains/conform.example.com", "allow_subdomains", true)
	w.must("owner", "DELETE", "/realm/domains/conform.example.com")
	w.attach("owner", "/realm/emoji/soon_gone", "e.png", pixel)
	w.must("owner", "DELETE", "/realm/emoji/soon_gone")
	if w.keep("filter", w.must("owner", "POST", "/realm/filters", "pattern", "T(?P<id>[0-9]+)", "url_template", "https://example.com/t/{id}", "example_input", "T5", "reverse_template", "T{id}", "alternative_url_templates", []string{"https://example.com/old/{id}"})["id"]) {
		w.must("owner", "PATCH", "/realm/filters/{filter}", "pattern", "T(?P<id>[0-9]+)", "url_template", "https://example.com/u/{id}")
		var order []any
		for _, l := range list(w.must("owner", "GET", "/realm/linkifiers")["linkifiers"]) {
			order = append([]any{l.(map[string]any)["id"]}, order...)
		}
		w.must("owner", "PATCH", "/realm/linkifiers", "ordered_linkifier_ids", order)
		w.must("owner", "DELETE", "/realm/filters/{filter}")
	}
	if w.keep("playground", w.must("owner", "POST", "/realm/playgrounds", "name", "Rust", "highlighter_language", "Rust", "url_template", "https://example.com/{code}")["id"]) {
		w.must("owner", "DELETE", "/realm/playgrounds/{playground}")
	}
	if w.keep("field", w.must("owner", "POST", "/realm/profile_fields", "name", "Pet", "hint", "its name", "field_type", 1, "display_in_profile_summary", true)["id"]) {
		w.must("member", "PATCH", "/users/me/profile_data", "data", []any{map[string]any{"id": w.num("field"), "value": "*Rex*"}})
		w.must("owner", "GET", "/users/{member}", "include_custom_profile_fields", true)
		w.must("member", "DELETE", "/users/me/profile_data", "data", []int{w.num("field")})
		w.must("owner", "PATCH", "/users/{member}", "profile_data", []any{map[string]any{"id": w.num("field"), "value": "Tom"}})
		w.must("owner", "PATCH", "/realm/profile_fields/{field}", "name", "Animal")
		var order []any
		for _, f := range list(w.must("owner", "GET", "/realm/profile_fields")["custom_fields"]) {
			order = append([]any{f.(map[string]any)["id"]}, order...)
		}
		w.must("owner", "PATCH", "/realm/profile_fields", "order", order)
		w.must("owner", "DELETE", "/realm/profile_fields/{field}")
	}
	w.attach("owner", "/realm/icon", "i.png", pixel)
	w.must("owner", "DELETE", "/realm/icon")
	w.attach("owner", "/realm/logo", "l.png", pixel, "night", true)
	w.must("owner", "DELETE", "/realm/logo", "night", true)
	w.must("owner", "POST", "/realm/test_welcome_bot_custom_message", "welcome_message_custom_text", "welcome")
	w.must("owner", "POST", "/invites", "invitee_emails", "a@example.net, b@example.net", "stream_ids", []int{w.num("stream_id")})
	w.must("owner", "POST", "/invites/multiuse", "stream_ids", []int{})
	for _, i := range list(w.must("owner", "GET", "/invites")["invites"]) {
		invite := i.(map[string]any)
		w.keep("invite_id", invite["id"])
		if multiuse, _ := invite["is_multiuse"].(bool); multiuse {
			w.must("owner", "DELETE", "/invites/multiuse/{invite_id}")
			continue
		}
		w.must("owner", "POST", "/invites/{invite_id}/resend")
		w.must("owner", "DELETE", "/invites/{invite_id}")
	}
	w.call(w.people["member"], "PATCH", "/realm", "name", "Mine") // refused, by form
}

func (w *world) changeBots() {
	if w.people["bot"] == nil {
		return
	}
	w.must("bot", "PUT", "/bot_storage", "storage", map[string]string{"more": "data"})
	w.must("bot", "GET", "/bot_storage", "keys", []string{"more"})
	w.must("bot", "DELETE", "/bot_storage", "keys", []string{"more"})
	w.must("bot", "POST", "/messages", "type", "stream", "to", "conform", "topic", "bots", "content", "beep")
	w.call(w.people["bot"], "POST", "/users/me/presence", "status", "active") // refused: humans only
	w.must("owner", "PATCH", "/bots/{bot_id}", "full_name", "Crawler the Second")
	w.must("owner", "PATCH", "/bots/{bot_id}", "default_sending_stream", "conform")
	w.must("owner", "GET", "/bots/{bot_id}/api_key")
	w.must("owner", "PATCH", "/bots/{bot_id}", "bot_owner_id", w.num("member")) // an owner hears of all bots, and so of no loss
	w.must("owner", "PATCH", "/bots/{bot_id}", "bot_owner_id", w.num("other"))
	w.must("owner", "POST", "/bots/{bot_id}/api_key/regenerate")
	w.must("owner", "DELETE", "/bots/{bot_id}")
	hook := w.must("owner", "POST", "/bots", "full_name", "Outgoing", "short_name", "outgoing", "bot_type", 3, "payload_url", `"http://127.0.0.1:9/"`, "interface_type", 1)
	w.keep("hook", hook["user_id"])
	w.must("owner", "GET", "/bots")
}

func (w *world) changePeople() {
	w.must("owner", "PATCH", "/users/{other}", "full_name", "Renamed By Owner")
	for _, role := range []int{300, 200, 400} {
		w.must("owner", "PATCH", "/users/{other}", "role", role)
	}
	w.must("owner", "DELETE", "/users/{other}")
	w.must("owner", "GET", "/users/{other}")
	w.must("owner", "POST", "/users/{other}/reactivate")
	w.call(w.people["owner"], "DELETE", "/users/me") // refused: the only owner, with its own fields
	w.call(w.people["guest"], "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "by a guest"}})
	w.call(w.people["owner"], "POST", "/users", "email", "created@example.com", "password", "long enough to pass", "full_name", "Created")
}
