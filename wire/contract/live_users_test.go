package contract

func (w *liveTest) changeOwnUser() {
	w.mustCall("member", "POST", "/users/me/alert_words", "alert_words", []string{"alarm"})
	w.mustCall("member", "DELETE", "/users/me/alert_words", "alert_words", []string{"alarm"})
	w.mustCall("member", "POST", "/users/me/muted_users/{guest}")
	w.mustCall("member", "DELETE", "/users/me/muted_users/{guest}")
	w.mustCall("member", "POST", "/users/me/status", "status_text", "busy", "emoji_name", "car", "emoji_code", "1f697", "reaction_type", "unicode_emoji")
	w.mustCall("member", "POST", "/users/me/status", "status_text", "", "emoji_name", "")
	w.mustCall("owner", "POST", "/users/{member}/status", "status_text", "set by another")
	w.mustCall("member", "POST", "/users/me/presence", "status", "active", "new_user_input", true)
	w.mustCall("member", "POST", "/users/me/presence", "status", "idle", "last_update_id", -1)
	w.mustCall("member", "POST", "/users/me/presence", "status", "idle", "ping_only", true)
	w.mustCall("member", "PATCH", "/settings", "full_name", "Another Name")
	w.mustCall("member", "PATCH", "/settings", "timezone", "Europe/Berlin")
	w.mustCall("member", "PATCH", "/settings", "color_scheme", 2, "enter_sends", true, "web_home_view", "recent", "notification_sound", "none")
	w.mustCall("member", "PATCH", "/settings", "twenty_four_hour_time", "null")
	w.mustCall("member", "PATCH", "/settings", "default_language", "de")
	w.mustCall("member", "PATCH", "/settings", "email_address_visibility", 3)
	w.mustCall("member", "PATCH", "/settings", "email_address_visibility", 1)
	w.mustCall("member", "PATCH", "/settings/display", "starred_message_counts", false)
	w.mustCall("member", "PATCH", "/settings/notifications", "enable_sounds", false)
	w.mustCall("member", "PATCH", "/settings", "presence_enabled", false)
	w.mustCall("member", "PATCH", "/settings", "presence_enabled", true)
	w.mustCall("member", "PATCH", "/settings", "allow_private_data_export", true)
	w.mustUpload("member", "/users/me/avatar", "me.png", pixel)
	w.mustCall("member", "DELETE", "/users/me/avatar")
	w.mustCall("member", "POST", "/users/me/onboarding_steps", "onboarding_step", "intro_inbox_view_modal")
	w.mustCall("other", "PATCH", "/settings", "enable_drafts_synchronization", false)
}

func (w *liveTest) changeGroups() {
	if !w.save("new_group", w.mustCall("owner", "POST", "/user_groups/create", "name", "lunch", "description", "eats", "members", []int{w.savedID("owner")})["group_id"]) {
		return
	}
	w.mustCall("owner", "PATCH", "/user_groups/{new_group}", "name", "dinner", "description", "later")
	for _, setting := range []string{"can_add_members_group", "can_join_group", "can_leave_group", "can_manage_group", "can_mention_group", "can_remove_members_group"} {
		w.mustCall("owner", "PATCH", "/user_groups/{new_group}", setting, map[string]any{"new": map[string]any{"direct_members": []int{w.savedID("owner"), w.savedID("other")}, "direct_subgroups": []int{}}})
	}
	w.mustCall("owner", "POST", "/user_groups/{new_group}/members", "add", []int{w.savedID("member")})
	w.mustCall("owner", "POST", "/user_groups/{new_group}/members", "delete", []int{w.savedID("member")})
	if w.saved["user_group_id"] != "" {
		w.mustCall("owner", "POST", "/user_groups/{new_group}/subgroups", "add", []int{w.savedID("user_group_id")})
		w.mustCall("owner", "POST", "/user_groups/{new_group}/subgroups", "delete", []int{w.savedID("user_group_id")})
	}
	w.mustCall("owner", "POST", "/user_groups/{new_group}/deactivate")
	w.mustCall("owner", "PATCH", "/user_groups/{new_group}", "deactivated", false)
	w.mustCall("owner", "POST", "/user_groups/{new_group}/deactivate")
}

func (w *liveTest) changeOrganization() {
	w.mustCall("owner", "PATCH", "/realm", "name", "Conformance")
	w.mustCall("owner", "PATCH", "/realm", "description", "for *tests*")
	w.mustCall("owner", "PATCH", "/realm", "waiting_period_threshold", 3, "digest_weekday", 2, "enable_read_receipts", true)
	w.mustCall("owner", "PATCH", "/realm", "waiting_period_threshold", 0)
	w.mustCall("owner", "PATCH", "/realm", "message_content_edit_limit_seconds", 1200)
	w.mustCall("owner", "PATCH", "/realm", "topics_policy", "disable_empty_topic")
	w.mustCall("owner", "PATCH", "/realm", "topics_policy", "allow_empty_topic")
	w.mustCall("owner", "PATCH", "/realm", "gif_rating_policy", 2, "media_preview_size", 150, "welcome_message_custom_text", "hello", "default_avatar_source", "G")
	w.mustCall("owner", "PATCH", "/realm", "send_channel_events_messages", false)
	w.mustCall("owner", "PATCH", "/realm", "require_e2ee_push_notifications", true)
	w.mustCall("owner", "PATCH", "/realm", "video_chat_provider", 0)
	w.mustCall("owner", "PATCH", "/realm", "can_add_custom_emoji_group", map[string]any{"new": map[string]any{"direct_members": []int{w.savedID("owner"), w.savedID("other")}, "direct_subgroups": []int{}}})
	w.mustCall("owner", "PATCH", "/realm", "moderation_request_channel_id", w.savedID("private"))
	w.mustCall("member", "POST", "/messages/{message_id}/report", "report_type", "spam")
	w.mustCall("owner", "PATCH", "/realm/user_settings_defaults", "color_scheme", 3, "enter_sends", true)
	w.mustCall("owner", "PATCH", "/realm/user_settings_defaults", "twenty_four_hour_time", true)
	w.mustCall("owner", "POST", "/realm/domains", "domain", "conform.example.com", "allow_subdomains", false)
	w.mustCall("owner", "PATCH", "/realm/domains/conform.example.com", "allow_subdomains", true)
	w.mustCall("owner", "DELETE", "/realm/domains/conform.example.com")
	w.mustUpload("owner", "/realm/emoji/soon_gone", "e.png", pixel)
	w.mustCall("owner", "DELETE", "/realm/emoji/soon_gone")
	if w.save("filter", w.mustCall("owner", "POST", "/realm/filters", "pattern", "T(?P<id>[0-9]+)", "url_template", "https://example.com/t/{id}", "example_input", "T5", "reverse_template", "T{id}", "alternative_url_templates", []string{"https://example.com/old/{id}"})["id"]) {
		w.mustCall("owner", "PATCH", "/realm/filters/{filter}", "pattern", "T(?P<id>[0-9]+)", "url_template", "https://example.com/u/{id}")
		var order []any
		for _, l := range list(w.mustCall("owner", "GET", "/realm/linkifiers")["linkifiers"]) {
			order = append([]any{l.(map[string]any)["id"]}, order...)
		}
		w.mustCall("owner", "PATCH", "/realm/linkifiers", "ordered_linkifier_ids", order)
		w.mustCall("owner", "DELETE", "/realm/filters/{filter}")
	}
	if w.save("playground", w.mustCall("owner", "POST", "/realm/playgrounds", "name", "Rust", "highlighter_language", "Rust", "url_template", "https://example.com/{code}")["id"]) {
		w.mustCall("owner", "DELETE", "/realm/playgrounds/{playground}")
	}
	if w.save("field", w.mustCall("owner", "POST", "/realm/profile_fields", "name", "Pet", "hint", "its name", "field_type", 1, "display_in_profile_summary", true)["id"]) {
		w.mustCall("member", "PATCH", "/users/me/profile_data", "data", []any{map[string]any{"id": w.savedID("field"), "value": "*Rex*"}})
		w.mustCall("owner", "GET", "/users/{member}", "include_custom_profile_fields", true)
		w.mustCall("member", "DELETE", "/users/me/profile_data", "data", []int{w.savedID("field")})
		w.mustCall("owner", "PATCH", "/users/{member}", "profile_data", []any{map[string]any{"id": w.savedID("field"), "value": "Tom"}})
		w.mustCall("owner", "PATCH", "/realm/profile_fields/{field}", "name", "Animal")
		var order []any
		for _, f := range list(w.mustCall("owner", "GET", "/realm/profile_fields")["custom_fields"]) {
			order = append([]any{f.(map[string]any)["id"]}, order...)
		}
		w.mustCall("owner", "PATCH", "/realm/profile_fields", "order", order)
		w.mustCall("owner", "DELETE", "/realm/profile_fields/{field}")
	}
	w.mustUpload("owner", "/realm/icon", "i.png", pixel)
	w.mustCall("owner", "DELETE", "/realm/icon")
	w.mustUpload("owner", "/realm/logo", "l.png", pixel, "night", true)
	w.mustCall("owner", "DELETE", "/realm/logo", "night", true)
	w.mustCall("owner", "POST", "/realm/test_welcome_bot_custom_message", "welcome_message_custom_text", "welcome")
	w.mustCall("owner", "POST", "/invites", "invitee_emails", "a@example.net, b@example.net", "stream_ids", []int{w.savedID("stream_id")})
	w.mustCall("owner", "POST", "/invites/multiuse", "stream_ids", []int{})
	for _, i := range list(w.mustCall("owner", "GET", "/invites")["invites"]) {
		invite := i.(map[string]any)
		w.save("invite_id", invite["id"])
		if multiuse, _ := invite["is_multiuse"].(bool); multiuse {
			w.mustCall("owner", "DELETE", "/invites/multiuse/{invite_id}")
			continue
		}
		w.mustCall("owner", "POST", "/invites/{invite_id}/resend")
		w.mustCall("owner", "DELETE", "/invites/{invite_id}")
	}
	w.call(w.users["member"], "PATCH", "/realm", "name", "Mine") // refused, by form
}

func (w *liveTest) changeBots() {
	if w.users["bot"] == nil {
		return
	}
	w.mustCall("bot", "PUT", "/bot_storage", "storage", map[string]string{"more": "data"})
	w.mustCall("bot", "GET", "/bot_storage", "keys", []string{"more"})
	w.mustCall("bot", "DELETE", "/bot_storage", "keys", []string{"more"})
	w.mustCall("bot", "POST", "/messages", "type", "stream", "to", "conform", "topic", "bots", "content", "beep")
	w.call(w.users["bot"], "POST", "/users/me/presence", "status", "active") // refused: humans only
	w.mustCall("owner", "PATCH", "/bots/{bot_id}", "full_name", "Crawler the Second")
	w.mustCall("owner", "PATCH", "/bots/{bot_id}", "default_sending_stream", "conform")
	w.mustCall("owner", "GET", "/bots/{bot_id}/api_key")
	w.mustCall("owner", "PATCH", "/bots/{bot_id}", "bot_owner_id", w.savedID("member")) // an owner hears of all bots, and so of no loss
	w.mustCall("owner", "PATCH", "/bots/{bot_id}", "bot_owner_id", w.savedID("other"))
	w.mustCall("owner", "POST", "/bots/{bot_id}/api_key/regenerate")
	w.mustCall("owner", "DELETE", "/bots/{bot_id}")
	hook := w.mustCall("owner", "POST", "/bots", "full_name", "Outgoing", "short_name", "outgoing", "bot_type", 3, "payload_url", `"http://127.0.0.1:9/"`, "interface_type", 1)
	w.save("hook", hook["user_id"])
	w.mustCall("owner", "GET", "/bots")
}

func (w *liveTest) changeUsers() {
	w.mustCall("owner", "PATCH", "/users/{other}", "full_name", "Renamed By Owner")
	for _, role := range []int{300, 200, 400} {
		w.mustCall("owner", "PATCH", "/users/{other}", "role", role)
	}
	w.mustCall("owner", "DELETE", "/users/{other}")
	w.mustCall("owner", "GET", "/users/{other}")
	w.mustCall("owner", "POST", "/users/{other}/reactivate")
	w.call(w.users["owner"], "DELETE", "/users/me") // refused: the only owner, with its own fields
	w.call(w.users["guest"], "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "by a guest"}})
	w.call(w.users["owner"], "POST", "/users", "email", "created@example.com", "password", "long enough to pass", "full_name", "Created")
}
