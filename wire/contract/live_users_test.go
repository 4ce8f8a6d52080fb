package contract

func (lt *liveTest) changeOwnUser() {
	lt.mustCall("member", "POST", "/users/me/alert_words", "alert_words", []string{"alarm"})
	lt.mustCall("member", "DELETE", "/users/me/alert_words", "alert_words", []string{"alarm"})
	lt.mustCall("member", "POST", "/users/me/muted_users/{guest}")
	lt.mustCall("member", "DELETE", "/users/me/muted_users/{guest}")
	lt.mustCall("member", "POST", "/users/me/status", "status_text", "busy", "emoji_name", "car", "emoji_code",
		"1f697", "reaction_type", "unicode_emoji")
	lt.mustCall("member", "POST", "/users/me/status", "status_text", "", "emoji_name", "")
	lt.mustCall("owner", "POST", "/users/{member}/status", "status_text", "set by another")
	lt.mustCall("member", "POST", "/users/me/presence", "status", "active", "new_user_input", true)
	lt.mustCall("member", "POST", "/users/me/presence", "status", "idle", "last_update_id", -1)
	lt.mustCall("member", "POST", "/users/me/presence", "status", "idle", "ping_only", true)
	lt.mustCall("member", "PATCH", "/settings", "full_name", "Another Name")
	lt.mustCall("member", "PATCH", "/settings", "timezone", "Europe/Berlin")
	lt.mustCall("member", "PATCH", "/settings", "color_scheme", 2, "enter_sends", true, "web_home_view", "recent",
		"notification_sound", "none")
	lt.mustCall("member", "PATCH", "/settings", "twenty_four_hour_time", "null")
	lt.mustCall("member", "PATCH", "/settings", "default_language", "de")
	lt.mustCall("member", "PATCH", "/settings", "email_address_visibility", 3)
	lt.mustCall("member", "PATCH", "/settings", "email_address_visibility", 1)
	lt.mustCall("member", "PATCH", "/settings/display", "starred_message_counts", false)
	lt.mustCall("member", "PATCH", "/settings/notifications", "enable_sounds", false)
	lt.mustCall("member", "PATCH", "/settings", "presence_enabled", false)
	lt.mustCall("member", "PATCH", "/settings", "presence_enabled", true)
	lt.mustCall("member", "PATCH", "/settings", "allow_private_data_export", true)
	lt.mustUpload("member", "/users/me/avatar", "me.png", pixel)
	lt.mustCall("member", "DELETE", "/users/me/avatar")
	lt.mustCall("member", "POST", "/users/me/onboarding_steps", "onboarding_step", "intro_inbox_view_modal")
	lt.mustCall("other", "PATCH", "/settings", "enable_drafts_synchronization", false)
}

func (lt *liveTest) changeGroups() {
	if !lt.save("new_group", lt.mustCall("owner", "POST", "/user_groups/create", "name", "lunch", "description",
		"eats", "members", []int{lt.savedID("owner")})["group_id"]) {
		return
	}
	lt.mustCall("owner", "PATCH", "/user_groups/{new_group}", "name", "dinner", "description", "later")
	for _, setting := range []string{"can_add_members_group", "can_join_group", "can_leave_group", "can_manage_group",
		"can_mention_group", "can_remove_members_group"} {
		lt.mustCall("owner", "PATCH", "/user_groups/{new_group}", setting,
			map[string]any{"new": map[string]any{"direct_members": []int{lt.savedID("owner"), lt.savedID("other")},
				"direct_subgroups": []int{}}})
	}
	lt.mustCall("owner", "POST", "/user_groups/{new_group}/members", "add", []int{lt.savedID("member")})
	lt.mustCall("owner", "POST", "/user_groups/{new_group}/members", "delete", []int{lt.savedID("member")})
	if lt.saved["user_group_id"] != "" {
		lt.mustCall("owner", "POST", "/user_groups/{new_group}/subgroups", "add", []int{lt.savedID("user_group_id")})
		lt.mustCall("owner", "POST", "/user_groups/{new_group}/subgroups", "delete", []int{lt.savedID("user_group_id")})
	}
	lt.mustCall("owner", "POST", "/user_groups/{new_group}/deactivate")
	lt.mustCall("owner", "PATCH", "/user_groups/{new_group}", "deactivated", false)
	lt.mustCall("owner", "POST", "/user_groups/{new_group}/deactivate")
}

func (lt *liveTest) changeOrganization() {
	lt.mustCall("owner", "PATCH", "/realm", "name", "Conformance")
	lt.mustCall("owner", "PATCH", "/realm", "description", "for *tests*")
	lt.mustCall("owner", "PATCH", "/realm", "waiting_period_threshold", 3, "digest_weekday", 2,
		"enable_read_receipts", true)
	lt.mustCall("owner", "PATCH", "/realm", "waiting_period_threshold", 0)
	lt.mustCall("owner", "PATCH", "/realm", "message_content_edit_limit_seconds", 1200)
	lt.mustCall("owner", "PATCH", "/realm", "topics_policy", "disable_empty_topic")
	lt.mustCall("owner", "PATCH", "/realm", "topics_policy", "allow_empty_topic")
	lt.mustCall("owner", "PATCH", "/realm", "gif_rating_policy", 2, "media_preview_size", 150,
		"welcome_message_custom_text", "hello", "default_avatar_source", "G")
	lt.mustCall("owner", "PATCH", "/realm", "send_channel_events_messages", false)
	lt.mustCall("owner", "PATCH", "/realm", "require_e2ee_push_notifications", true)
	lt.mustCall("owner", "PATCH", "/realm", "video_chat_provider", 0)
	lt.mustCall("owner", "PATCH", "/realm", "can_add_custom_emoji_group",
		map[string]any{"new": map[string]any{"direct_members": []int{lt.savedID("owner"), lt.savedID("other")},
			"direct_subgroups": []int{}}})
	lt.mustCall("owner", "PATCH", "/realm", "moderation_request_channel_id", lt.savedID("private"))
	lt.mustCall("member", "POST", "/messages/{message_id}/report", "report_type", "spam")
	lt.mustCall("owner", "PATCH", "/realm/user_settings_defaults", "color_scheme", 3, "enter_sends", true)
	lt.mustCall("owner", "PATCH", "/realm/user_settings_defaults", "twenty_four_hour_time", true)
	lt.mustCall("owner", "POST", "/realm/domains", "domain", "conform.example.com", "allow_subdomains", false)
	lt.mustCall("owner", "PATCH", "/realm/domains/conform.example.com", "allow_subdomains", true)
	lt.mustCall("owner", "DELETE", "/realm/domains/conform.example.com")
	lt.mustUpload("owner", "/realm/emoji/soon_gone", "e.png", pixel)
	lt.mustCall("owner", "DELETE", "/realm/emoji/soon_gone")
	if lt.save("filter", lt.mustCall("owner", "POST", "/realm/filters", "pattern", "T(?P<id>[0-9]+)", "url_template",
		"https://example.com/t/{id}", "example_input", "T5", "reverse_template", "T{id}", "alternative_url_templates",
		[]string{"https://example.com/old/{id}"})["id"]) {
		lt.mustCall("owner", "PATCH", "/realm/filters/{filter}", "pattern", "T(?P<id>[0-9]+)", "url_template",
			"https://example.com/u/{id}")
		var order []any
		for _, l := range list(lt.mustCall("owner", "GET", "/realm/linkifiers")["linkifiers"]) {
			order = append([]any{l.(map[string]any)["id"]}, order...)
		}
		lt.mustCall("owner", "PATCH", "/realm/linkifiers", "ordered_linkifier_ids", order)
		lt.mustCall("owner", "DELETE", "/realm/filters/{filter}")
	}
	if lt.save("playground", lt.mustCall("owner", "POST", "/realm/playgrounds", "name", "Rust",
		"highlighter_language", "Rust", "url_template", "https://example.com/{code}")["id"]) {
		lt.mustCall("owner", "DELETE", "/realm/playgrounds/{playground}")
	}
	if lt.save("field", lt.mustCall("owner", "POST", "/realm/profile_fields", "name", "Pet", "hint", "its name",
		"field_type", 1, "display_in_profile_summary", true)["id"]) {
		lt.mustCall("member", "PATCH", "/users/me/profile_data", "data",
			[]any{map[string]any{"id": lt.savedID("field"), "value": "*Rex*"}})
		lt.mustCall("owner", "GET", "/users/{member}", "include_custom_profile_fields", true)
		lt.mustCall("member", "DELETE", "/users/me/profile_data", "data", []int{lt.savedID("field")})
		lt.mustCall("owner", "PATCH", "/users/{member}", "profile_data",
			[]any{map[string]any{"id": lt.savedID("field"), "value": "Tom"}})
		lt.mustCall("owner", "PATCH", "/realm/profile_fields/{field}", "name", "Animal")
		var order []any
		for _, f := range list(lt.mustCall("owner", "GET", "/realm/profile_fields")["custom_fields"]) {
			order = append([]any{f.(map[string]any)["id"]}, order...)
		}
		lt.mustCall("owner", "PATCH", "/realm/profile_fields", "order", order)
		lt.mustCall("owner", "DELETE", "/realm/profile_fields/{field}")
	}
	lt.mustUpload("owner", "/realm/icon", "i.png", pixel)
	lt.mustCall("owner", "DELETE", "/realm/icon")
	lt.mustUpload("owner", "/realm/logo", "l.png", pixel, "night", true)
	lt.mustCall("owner", "DELETE", "/realm/logo", "night", true)
	lt.mustCall("owner", "POST", "/realm/test_welcome_bot_custom_message", "welcome_message_custom_text", "welcome")
	lt.mustCall("owner", "POST", "/invites", "invitee_emails", "a@example.net, b@example.net", "stream_ids",
		[]int{lt.savedID("stream_id")})
	lt.mustCall("owner", "POST", "/invites/multiuse", "stream_ids", []int{})
	for _, i := range list(lt.mustCall("owner", "GET", "/invites")["invites"]) {
		invite := i.(map[string]any)
		lt.save("invite_id", invite["id"])
		if multiuse, _ := invite["is_multiuse"].(bool); multiuse {
			lt.mustCall("owner", "DELETE", "/invites/multiuse/{invite_id}")
			continue
		}
		lt.mustCall("owner", "POST", "/invites/{invite_id}/resend")
		lt.mustCall("owner", "DELETE", "/invites/{invite_id}")
	}
	lt.call(lt.users["member"], "PATCH", "/realm", "name", "Mine") // refused with the right form
}

func (lt *liveTest) changeBots() {
	if lt.users["bot"] == nil {
		return
	}
	lt.mustCall("bot", "PUT", "/bot_storage", "storage", map[string]string{"more": "data"})
	lt.mustCall("bot", "GET", "/bot_storage", "keys", []string{"more"})
	lt.mustCall("bot", "DELETE", "/bot_storage", "keys", []string{"more"})
	lt.mustCall("bot", "POST", "/messages", "type", "stream", "to", "conform", "topic", "bots", "content", "beep")
	lt.call(lt.users["bot"], "POST", "/users/me/presence", "status", "active") // refused: for humans only
	lt.mustCall("owner", "PATCH", "/bots/{bot_id}", "full_name", "Crawler the Second")
	lt.mustCall("owner", "PATCH", "/bots/{bot_id}", "default_sending_stream", "conform")
	lt.mustCall("owner", "GET", "/bots/{bot_id}/api_key")
	// the owner sees all bots, so a change of their own bots has no event
	lt.mustCall("owner", "PATCH", "/bots/{bot_id}", "bot_owner_id", lt.savedID("member"))
	lt.mustCall("owner", "PATCH", "/bots/{bot_id}", "bot_owner_id", lt.savedID("other"))
	lt.mustCall("owner", "POST", "/bots/{bot_id}/api_key/regenerate")
	lt.mustCall("owner", "DELETE", "/bots/{bot_id}")
	hook := lt.mustCall("owner", "POST", "/bots", "full_name", "Outgoing", "short_name", "outgoing", "bot_type", 3,
		"payload_url", `"http://127.0.0.1:9/"`, "interface_type", 1)
	lt.save("hook", hook["user_id"])
	lt.mustCall("owner", "GET", "/bots")
}

func (lt *liveTest) changeUsers() {
	lt.mustCall("owner", "PATCH", "/users/{other}", "full_name", "Renamed By Owner")
	for _, role := range []int{300, 200, 400} {
		lt.mustCall("owner", "PATCH", "/users/{other}", "role", role)
	}
	lt.mustCall("owner", "DELETE", "/users/{other}")
	lt.mustCall("owner", "GET", "/users/{other}")
	lt.mustCall("owner", "POST", "/users/{other}/reactivate")
	lt.call(lt.users["owner"], "DELETE", "/users/me") // refused: the only owner; the error has fields of its own
	lt.call(lt.users["guest"], "POST", "/users/me/subscriptions", "subscriptions",
		[]any{map[string]any{"name": "by a guest"}})
	lt.call(lt.users["owner"], "POST", "/users", "email", "created@example.com", "password", "long enough to pass",
		"full_name", "Created")
}
