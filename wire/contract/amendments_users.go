package contract

// userAmendments concern users, bots, devices, settings and the organization.
var userAmendments = []amendment{
	// Users and their status.
	{407, answer, "POST /users/{user_id}/status", "", "{}"},
	{419, event, "event presence", "", "{presences: {*: ModernPresenceFormat}}"}, // with simplified_presence_events
	{433, add, "UserBase", "is_imported_stub", "bool"},
	{433, add, "GET /users/me", "is_imported_stub", "bool"},
	{0, add, "GET /users/me", "bot_type?", "int?"},     // of bots
	{0, add, "GET /users/me", "bot_owner_id?", "int?"}, // of bots
	{433, variant, "event realm_user/update", "person", "{user_id: int, is_imported_stub: bool}"},
	{475, variant, "event realm_user/update", "person", "{user_id: int, date_joined: str}"},
	{487, add, "GET /users/{user_id_or_email}/presence", "presence",
		"{active_timestamp: int, idle_timestamp: int, aggregated?: StatusAt, website?: StatusAt}"},
	{487, define, "StatusAt", "", "{status: str, timestamp: int, client?: str, pushable?: bool}"},
	{497, add, "GET /users/{user_id_or_email}/presence", "server_timestamp?", "num"},
	{490, add, "UserBase", "is_deleted?", "bool"},
	{490, variant, "event realm_user/update", "person", "{user_id: int, is_deleted: bool}"},

	// Bots.
	{463, answer, "GET /bots/{bot_id}/api_key", "", "{api_key: str}"},
	{474, drop, "BasicBotBase", "api_key avatar_url full_name owner_id", ""},
	{474, drop, "Bot", "api_key avatar_url full_name owner_id email bot_type is_active", ""},
	{474, drop, "BasicBot", "api_key avatar_url full_name owner_id is_active", ""},
	{474, loosen, "event realm_bot/update bot", "", ""},
	// its items were named "validator" before level 485
	{403, add, "POST /register realm_incoming_webhook_bots[]", "url_options",
		"[{key: str, label: str, input_type: str}]"},

	// Devices.
	{468, define, "Device", "",
		"{push_key_id: int?, push_token_id: str?, pending_push_token_id: str?, push_token_last_updated_timestamp: " +
			"int?, push_registration_error_code: str?}"},
	{468, answer, "POST /register_client_device", "", "{device_id: int}"},
	{470, answer, "POST /remove_client_device", "", "{}"},
	{406, answer, "POST /mobile_push/register", "", "{}"},
	{420, answer, "POST /mobile_push/e2ee/test_notification", "", "{}"},
	{406, answer, "POST /remotes/push/e2ee/register", "", "{*: any}"},
	{468, event, "event device/add", "", "{device_id: int}"},
	{468, event, "event device/update", "",
		"{device_id: int, push_key_id?: int?, push_token_id?: str?, pending_push_token_id?: str?, " +
			"push_token_last_updated_timestamp?: int?, push_registration_error_code?: str?}"},
	{468, event, "event device/remove", "", "{device_id: int}"},
	{468, add, "POST /register", "devices?", "{*: Device}"},

	// Registration.
	{481, add, "POST /register", "idle_queue_timeout_secs", "int"},
	{439, drop, "POST /register",
		"enable_desktop_notifications enable_digest_emails enable_login_emails enable_marketing_emails " +
			"email_notifications_batching_period_seconds enable_offline_email_notifications " +
			"enable_offline_push_notifications enable_online_push_notifications enable_sounds " +
			"enable_stream_desktop_notifications enable_stream_email_notifications enable_stream_push_notifications " +
			"enable_stream_audible_notifications wildcard_mentions_notify message_content_in_email_notifications " +
			"notification_sound pm_content_in_desktop_notifications desktop_icon_count_display " +
			"realm_name_in_email_notifications_policy presence_enabled available_notification_sounds color_scheme " +
			"default_language demote_inactive_streams emojiset enable_drafts_synchronization fluid_layout_width " +
			"web_home_view high_contrast_mode left_side_userlist starred_message_counts timezone translate_emoticons " +
			"twenty_four_hour_time enter_sends emojiset_choices", ""},
	{439, retire, "event update_display_settings", "", ""},
	{439, retire, "event update_global_notifications", "", ""},

	// Personal settings.
	{385, add, "POST /register user_settings", "resolved_topic_notice_auto_read_policy", "str"},
	{385, add, "POST /register realm_user_settings_defaults", "resolved_topic_notice_auto_read_policy", "str"},
	{398, add, "POST /register user_settings", "web_left_sidebar_unreads_count_summary", "bool"},
	{398, add, "POST /register realm_user_settings_defaults", "web_left_sidebar_unreads_count_summary", "bool"},
	{408, add, "POST /register user_settings", "twenty_four_hour_time", "bool?"},
	{408, add, "POST /register realm_user_settings_defaults", "twenty_four_hour_time", "bool?"},
	{408, add, "event user_settings/update", "value", "bool? | int | str"},
	{408, add, "event realm_user_settings_defaults/update", "value", "bool? | int | str"},
	{411, add, "POST /register user_settings", "web_left_sidebar_show_channel_folders", "bool"},
	{411, add, "POST /register realm_user_settings_defaults", "web_left_sidebar_show_channel_folders", "bool"},
	{431, add, "POST /register user_settings", "web_inbox_show_channel_folders", "bool"},
	{431, add, "POST /register realm_user_settings_defaults", "web_inbox_show_channel_folders", "bool"},

	// The organization.
	{409, add, "POST /register", "realm_require_e2ee_push_notifications?", "bool"},
	{409, add, "event realm/update_dict data", "require_e2ee_push_notifications?", "bool"},
	{416, add, "POST /register", "realm_welcome_message_custom_text?", "str"},
	{416, add, "event realm/update_dict data", "welcome_message_custom_text?", "str"},
	{416, answer, "POST /realm/test_welcome_bot_custom_message", "", "{message_id: int}"},
	{426, drop, "POST /register", "realm_is_zephyr_mirror_realm", ""},
	{430, add, "GET /export/realm/consents export_consents[]", "email_address_visibility", "int"},
	{438, add, "POST /register", "realm_owner_full_content_access?", "bool"},
	{438, add, "event realm/update_dict data", "owner_full_content_access?", "bool"},
	{449, add, "RealmExport", "export_type", "'public' | 'full_with_consent' | 'full_without_consent'"},
	{453, drop, "POST /register", "giphy_rating_options realm_giphy_rating", ""},
	{453, add, "POST /register", "gif_rating_policy_options?", "{*: {id: int, name: str}}"},
	{453, add, "POST /register", "realm_gif_rating_policy?", "int"},
	{453, drop, "event realm/update_dict data", "giphy_rating", ""},
	{453, add, "event realm/update_dict data", "gif_rating_policy?", "int"},
	{455, add, "CustomProfileField", "use_for_user_matching?", "bool"},
	{456, add, "POST /register", "realm_default_avatar_source?", "str"},
	{456, add, "event realm/update_dict data", "default_avatar_source?", "str"},
	{464, add, "event realm/update_dict data", "rendered_description?", "str"},
	{466, add, "POST /register", "realm_uuid?", "str"},
	{469, add, "POST /register", "realm_media_preview_size?", "int"},
	{469, add, "event realm/update_dict data", "media_preview_size?", "int"},
	{471, add, "GET /realm/linkifiers linkifiers[]", "example_input reverse_template", "str?"},
	{471, add, "POST /register realm_linkifiers[]", "example_input reverse_template", "str?"},
	{471, add, "event realm_linkifiers realm_linkifiers[]", "example_input reverse_template", "str?"},
	{478, add, "GET /realm/linkifiers linkifiers[]", "alternative_url_templates", "[str]"},
	{478, add, "POST /register realm_linkifiers[]", "alternative_url_templates", "[str]"},
	{478, add, "event realm_linkifiers realm_linkifiers[]", "alternative_url_templates", "[str]"},
	{477, add, "POST /register", "realm_workplace_users_group?", "GroupSettingValue"},
	{477, add, "event realm/update_dict data", "workplace_users_group?", "GroupSettingValue"},
}
