package contract

// amendments lead from the description (feature level 372) to level 494. They describe answers and events only,
// not requests.
var amendments = append(append(append(undocumentedAmendments[:], messageAmendments...), channelAmendments...),
	userAmendments...)

// undocumentedAmendments describe answers that servers of every level send but the description omits.
var undocumentedAmendments = []amendment{
	{0, define, "DevelopmentUser", "", "{email: str, realm_url?: str, realm_uri?: str, full_name?: str}"},
	{0, answer, "GET /dev_list_users", "", "{direct_admins: [DevelopmentUser], direct_users: [DevelopmentUser]}"},
	{0, answer, "POST /jwt/fetch_api_key", "", "{api_key: str, email: str, user_id?: int, user?: any}"},
	{0, answer, "POST /users/me/api_key/regenerate", "", "{api_key: str}"},
	{0, answer, "POST /bots/{bot_id}/api_key/regenerate", "", "{api_key: str}"},
	{0, answer, "GET /events", "", "{events: [any], queue_id?: str}"}, // each event is checked separately
	{0, answer, "DELETE /events", "", "{}"},
	{0, answer, "GET /bot_storage", "", "{storage: {*: str}}"},
	{0, answer, "PUT /bot_storage", "", "{}"},
	{0, answer, "DELETE /bot_storage", "", "{}"},
	{0, answer, "GET /realm/domains", "", "{domains: [RealmDomain]}"},
	{0, answer, "POST /realm/domains", "", "{new_domain: [int | str]}"},
	{0, answer, "PATCH /realm/domains/{domain}", "", "{}"},
	{0, answer, "DELETE /realm/domains/{domain}", "", "{}"},
	{0, answer, "PATCH /users/me/profile_data", "", "{}"},
	{0, answer, "DELETE /users/me/profile_data", "", "{}"},
	{0, answer, "PATCH /users/me/subscriptions/{stream_id}", "", "{}"},
	{0, answer, "PATCH /realm", "", "{*: any}"}, // repeats the new values
	{0, answer, "POST /realm/deactivate", "", "{}"},
	{0, answer, "GET /realm/subdomain/{subdomain}", "", "{msg: str, *: any}"}, // tells whether the name is free
	{0, answer, "POST /realm/icon", "", "{icon_url: str}"},
	{0, answer, "DELETE /realm/icon", "", "{icon_url: str}"},
	{0, answer, "POST /realm/logo", "", "{}"},
	{0, answer, "DELETE /realm/logo", "", "{}"},
	{0, answer, "PATCH /realm/profile_fields/{field_id}", "", "{}"},
	{0, answer, "DELETE /realm/profile_fields/{field_id}", "", "{}"},
	{0, define, "OwnBot", "",
		"{username: str, full_name: str, api_key: str, avatar_url: str, default_sending_stream: str?, " +
			"default_events_register_stream: str?, default_all_public_streams: bool, user_id?: int, bot_type?: int, " +
			"services?: [any]}"},
	{0, answer, "GET /bots", "", "{bots: [OwnBot]}"},
	{0, answer, "POST /bots", "",
		"{user_id: int, email?: str, api_key: str, avatar_url: str, default_sending_stream: str?, " +
			"default_events_register_stream: str?, default_all_public_streams: bool}"},
	{0, answer, "PATCH /bots/{bot_id}", "",
		"{full_name: str, avatar_url: str, service_interface?: any, service_payload_url?: any, config_data?: any, " +
			"default_sending_stream: str?, default_events_register_stream: str?, default_all_public_streams: bool, " +
			"bot_owner?: str}"},
	{0, answer, "DELETE /bots/{bot_id}", "", "{}"},
	{0, answer, "POST /submessage", "", "{}"},
	{0, answer, "POST /zcommand", "", "{msg: str, *: any}"}, // msg describes the result
	{0, answer, "GET /messages/summary", "", "{summary: str}"},
	{0, answer, "POST /users/me/avatar", "", "{avatar_url: str}"},
	{0, answer, "DELETE /users/me/avatar", "", "{avatar_url: str}"},
	{0, answer, "POST /users/me/onboarding_steps", "", "{}"},
	{0, answer, "PATCH /settings/display", "", "{}"},
	{0, answer, "PATCH /settings/notifications", "", "{}"},
	{0, answer, "POST /default_stream_groups/create", "", "{}"},
	{0, answer, "PATCH /default_stream_groups/{group_id}", "", "{}"},
	{0, answer, "DELETE /default_stream_groups/{group_id}", "", "{}"},
	{0, answer, "PATCH /default_stream_groups/{group_id}/streams", "", "{}"},
	{0, answer, "POST /calls/zoom/create", "", "{url: str}"},
	{0, answer, "DELETE /export/realm/{export_id}", "", "{}"},

	// Optional fields that the description presents as required, and fields that it omits.
	{0, add, "JsonSuccessBase", "ignored_parameters_unsupported?", "[str]"},
	{0, add, "IgnoredParametersBase", "ignored_parameters_unsupported?", "[str]"},
	{0, add, "JsonSuccessBase", "msg", "''"},
	{0, add, "IgnoredParametersBase", "msg", "''"},
	{0, loosen, "POST /register", "", ""}, // depends on the event types; Register checks the complete list
	{0, add, "POST /register", "result", "'success'"},
	{0, add, "POST /register", "msg", "''"},
	{0, add, "POST /register", "zulip_version zulip_merge_base", "str"},
	{0, add, "POST /register", "queue_id", "str?"},
	{0, add, "POST /register", "zulip_feature_level", "int"},
	{0, add, "GET /streams streams[]", "subscribers?", "[int]"},
	{0, add, "UserBase", "is_active?", "bool"},                 // implied by the two user lists of a registration
	{0, add, "UserBase", "profile_data?", "profile_data"},      // of humans, on request
	{0, add, "UserBase", "avatar_url?", "str?"},                // with user_avatar_url_field_optional
	{0, add, "GET /users/me", "profile_data?", "profile_data"}, // of humans
	{0, add, "POST /users/me/presence", "presence_last_update_id", "int"},
	{0, drop, "POST /users/me/presence", "zephyr_mirror_active", ""},
	{0, add, "POST /messages", "automatic_new_visibility_policy?", "int"},
	{0, add, "CustomProfileField", "field_data?", "str"},
	// of channel messages
	{0, add, "event update_message_flags/remove message_details*", "unmuted_stream_msg?", "bool"},
	{0, add, "event message", "local_message_id?", "str"}, // for the queue of the sender
	{0, add, "event presence", "email?", "str"},           // without slim_presence
	{0, add, "event realm_user/add person", "is_active", "bool"},
	{0, add, "GET /users members[]", "is_active", "bool"},
	{0, add, "GET /users/{user_id} user", "is_active", "bool"},
	{0, add, "GET /users/{email} user", "is_active", "bool"},
	{0, loosen, "event realm/update_dict data", "", ""},
	{0, loosen, "event user_group/update data", "", ""},
	{0, add, "event user_status", "away?", "bool"}, // contains changes only; an empty value clears the status
	{0, add, "event user_status", "status_text? emoji_name? emoji_code?", "str"},
	{0, add, "event user_status", "reaction_type?", "'' | 'unicode_emoji' | 'realm_emoji' | 'zulip_extra_emoji'"},
	{0, add, "event subscription/update", "value", "bool? | int | str"}, // with notification_settings_null
	{0, add, "POST /register", "jitsi_server_url?", "str?"},
	// the specification's name, beside the historical one
	{0, add, "RealmPlayground", "highlighter_language?", "str"},
}

// messageAmendments concern messages, flags and reactions, reminders, and calls.
var messageAmendments = []amendment{
	{381, answer, "POST /reminders", "", "{reminder_id: int}"},
	{382, answer, "POST /messages/{message_id}/report", "", "{}"},
	{399, define, "Reminder", "",
		"{reminder_id: int, type: 'private', to: [int], content: str, rendered_content: str, " +
			"scheduled_delivery_timestamp: int, failed: bool, reminder_target_message_id: int}"},
	{399, answer, "GET /reminders", "", "{reminders: [Reminder]}"},
	{399, answer, "DELETE /reminders/{reminder_id}", "", "{}"},
	{399, event, "event reminders/add", "", "{reminders: [Reminder]}"},
	{399, event, "event reminders/remove", "", "{reminder_id: int}"},
	{399, add, "POST /register", "reminders?", "[Reminder]"},
	{415, add, "POST /register", "max_reminder_note_length?", "int"},
	{435, add, "POST /register", "server_report_message_types?", "[{key: str, name: str}]"},
	{472, drop, "Attachment", "messages", ""},
	{472, add, "Attachment", "message_ids", "[int]"},
	{479, answer, "GET /thumbnail/status/{realm_id_str}/{filename}", "", "{has_thumbnail: bool}"},
	{484, drop, "event reaction/add", "user", ""},
	{484, drop, "event reaction/remove", "user", ""},
	// An exception of ours for the terminal client, which ends with an error if the member is missing.
	{484, add, "event reaction/add", "user?", "{email: str, full_name: str, id: int, user_id: int}"},
	{484, add, "event reaction/remove", "user?", "{email: str, full_name: str, id: int, user_id: int}"},
	{442, add, "POST /register", "tenor_api_key?", "str"},
	{442, add, "POST /register", "klipy_api_key?", "str"}, // a later level adds it; web clients of 12.x require it
	{491, event, "event realm_emoji/add", "", "{emoji: RealmEmoji}"},
	// the name in the specification
	{491, event, "event realm_emoji/edit", "", "{emoji_id: str, data: {deactivated?: bool, *: any}}"},
	// the name that clients expect
	{491, event, "event realm_emoji/update_one", "", "{emoji_id: str, data: {deactivated?: bool, *: any}}"},
	{460, answer, "POST /calls/constructorgroups/create", "", "{url: str}"},
	{465, answer, "POST /calls/nextcloud_talk/create", "", "{url: str}"},
	{493, answer, "POST /calls/webex/create", "", "{url: str}"},
	{493, add, "POST /register", "has_webex_token?", "bool"},
	{493, event, "event has_webex_token", "", "{value: bool}"},
}

// channelAmendments concern channels, channel folders and navigation views.
var channelAmendments = []amendment{
	{389, define, "ChannelFolder", "",
		"{id: int, name: str, description: str, rendered_description: str, creator_id: int?, date_created: int?, " +
			"is_archived: bool, order: int}"},
	{389, answer, "POST /channel_folders/create", "", "{channel_folder_id: int}"},
	{389, answer, "GET /channel_folders", "", "{channel_folders: [ChannelFolder]}"},
	{389, answer, "PATCH /channel_folders/{channel_folder_id}", "", "{}"},
	{414, answer, "PATCH /channel_folders", "", "{}"},
	{389, event, "event channel_folder/add", "", "{channel_folder: ChannelFolder}"},
	{389, event, "event channel_folder/update", "",
		"{channel_folder_id: int, data: {name?: str, description?: str, rendered_description?: str, is_archived?: " +
			"bool}}"},
	{418, event, "event channel_folder/reorder", "", "{order: [int]}"},
	{389, add, "POST /register", "channel_folders?", "[ChannelFolder]"},
	{410, add, "POST /register", "max_channel_folder_name_length? max_channel_folder_description_length?", "int"},
	{389, add, "BasicChannelBase", "folder_id", "int?"},
	{389, add, "Subscription", "folder_id", "int?"},
	{389, add, "event stream/update", "value", "GroupSettingValue | int? | bool | str"},
	{392, define, "TopicsPolicy", "", "'inherit' | 'allow_empty_topic' | 'disable_empty_topic' | 'empty_topic_only'"},
	{392, add, "BasicChannelBase", "topics_policy", "TopicsPolicy"},
	{392, add, "Subscription", "topics_policy", "TopicsPolicy"},
	{392, add, "POST /register", "realm_topics_policy?", "TopicsPolicy"},
	{392, add, "POST /register", "realm_can_set_topics_policy_group?", "GroupSettingValue"},
	{392, add, "event realm/update_dict data", "topics_policy?", "TopicsPolicy"},
	{392, add, "event realm/update_dict data", "can_set_topics_policy_group?", "GroupSettingValue"},
	{394, add, "BasicChannelBase", "subscriber_count", "num"},
	{394, add, "Subscription", "subscriber_count", "num"},
	{396, add, "BasicChannelBase", "can_move_messages_out_of_channel_group can_move_messages_within_channel_group",
		"GroupSettingValue"},
	{396, add, "Subscription", "can_move_messages_out_of_channel_group can_move_messages_within_channel_group",
		"GroupSettingValue"},
	{397, add, "POST /users/me/subscriptions", "new_subscription_messages_sent?", "bool"},
	{397, add, "PATCH /users/me/subscriptions", "new_subscription_messages_sent?", "bool"},
	{397, add, "POST /register", "max_bulk_new_subscription_messages?", "int"},
	{402, add, "BasicChannelBase", "can_resolve_topics_group", "GroupSettingValue"},
	{402, add, "Subscription", "can_resolve_topics_group", "GroupSettingValue"},
	{407, add, "BasicChannelBase", "can_delete_any_message_group can_delete_own_message_group", "GroupSettingValue"},
	{407, add, "Subscription", "can_delete_any_message_group can_delete_own_message_group", "GroupSettingValue"},
	{407, add, "POST /register", "realm_can_set_delete_message_policy_group?", "GroupSettingValue"},
	{407, add, "event realm/update_dict data", "can_set_delete_message_policy_group?", "GroupSettingValue"},
	{412, add, "Subscription", "partial_subscribers?", "[int]"},
	{412, add, "POST /register never_subscribed[]", "partial_subscribers?", "[int]"},
	{417, answer, "POST /channels/create", "", "{id: int}"},
	{434, add, "POST /register", "realm_send_channel_events_messages?", "bool"},
	{434, add, "event realm/update_dict data", "send_channel_events_messages?", "bool"},
	{440, answer, "GET /users/{user_id}/channels", "", "{subscribed_channel_ids: [int]}"},
	{441, add, "BasicChannelBase", "can_create_topic_group", "GroupSettingValue"},
	{441, add, "Subscription", "can_create_topic_group", "GroupSettingValue"},
	{390, define, "NavigationView", "", "{fragment: str, is_pinned: bool, name?: str?}"},
	{390, answer, "GET /navigation_views", "", "{navigation_views: [NavigationView]}"},
	{390, answer, "POST /navigation_views", "", "{}"},
	{390, answer, "PATCH /navigation_views/{fragment}", "", "{}"},
	{390, answer, "DELETE /navigation_views/{fragment}", "", "{}"},
	{390, event, "event navigation_view/add", "", "{navigation_view: NavigationView}"},
	{390, event, "event navigation_view/update", "", "{fragment: str, data: {name?: str?, is_pinned?: bool}}"},
	{390, event, "event navigation_view/remove", "", "{fragment: str}"},
	{390, add, "POST /register", "navigation_views?", "[NavigationView]"},
}
