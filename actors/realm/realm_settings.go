package realm

// Setting is one row of a settings table. Form, fact, event and test of each setting are derived from it.
type Setting struct {
	Name       string
	Default    any   // bool, int64, string or nil: the stored types
	Null       bool  // nil is allowed
	Allowed    []any // the allowed values; nil allows every value of the type
	MaxLength  int   // maximum length of a text in code points, 0 for no limit
	OwnerOnly  bool  // only owners may change it
	Hidden     bool  // not settable through the settings endpoint
	UpdateDict bool  // its event is update_dict
	Extension  bool  // the protocol does not have it
}

// intRange returns the integers between from and to, both included.
func intRange(from, to int64) []any {
	var out []any
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// UserSettings are the personal settings. New accounts start with the organization's defaults for them.
var UserSettings = []Setting{
	{Name: "allow_private_data_export", Default: false},
	{Name: "automatically_follow_topics_policy", Default: int64(3), Allowed: intRange(1, 4)},
	{Name: "automatically_follow_topics_where_mentioned", Default: true},
	{Name: "automatically_unmute_topics_in_muted_streams_policy", Default: int64(2), Allowed: intRange(1, 4)},
	{Name: "color_scheme", Default: int64(1), Allowed: intRange(1, 3)},
	{Name: "default_language", Default: "en", MaxLength: 50},
	{Name: "demote_inactive_streams", Default: int64(1), Allowed: intRange(1, 3)},
	{Name: "desktop_icon_count_display", Default: int64(1), Allowed: intRange(1, 4)},
	{Name: "display_emoji_reaction_users", Default: true},
	{Name: "email_address_visibility", Default: int64(1), Allowed: intRange(1, 5)},
	{Name: "email_notifications_batching_period_seconds", Default: int64(120)},
	{Name: "emojiset", Default: "google", Allowed: []any{"google", "twitter", "text", "google-blob"}},
	{Name: "enable_desktop_notifications", Default: true},
	{Name: "enable_digest_emails", Default: true},
	{Name: "enable_drafts_synchronization", Default: true},
	{Name: "enable_followed_topic_audible_notifications", Default: true},
	{Name: "enable_followed_topic_desktop_notifications", Default: true},
	{Name: "enable_followed_topic_email_notifications", Default: true},
	{Name: "enable_followed_topic_push_notifications", Default: true},
	{Name: "enable_followed_topic_wildcard_mentions_notify", Default: true},
	{Name: "enable_login_emails", Default: true},
	{Name: "enable_marketing_emails", Default: true},
	{Name: "enable_offline_email_notifications", Default: true},
	{Name: "enable_offline_push_notifications", Default: true},
	{Name: "enable_online_push_notifications", Default: true},
	{Name: "enable_sounds", Default: true},
	{Name: "enable_stream_audible_notifications", Default: false},
	{Name: "enable_stream_desktop_notifications", Default: false},
	{Name: "enable_stream_email_notifications", Default: false},
	{Name: "enable_stream_push_notifications", Default: false},
	{Name: "enter_sends", Default: false},
	{Name: "fluid_layout_width", Default: false},
	{Name: "hide_ai_features", Default: false},
	{Name: "high_contrast_mode", Default: false},
	{Name: "left_side_userlist", Default: false},
	{Name: "message_content_in_email_notifications", Default: true},
	{Name: "notification_sound", Default: "zulip"},
	{Name: "pm_content_in_desktop_notifications", Default: true},
	{Name: "presence_enabled", Default: true},
	{Name: "realm_name_in_email_notifications_policy", Default: int64(1), Allowed: intRange(1, 3)},
	{Name: "receives_typing_notifications", Default: true},
	{
		Name: "resolved_topic_notice_auto_read_policy", Default: "except_followed",
		Allowed: []any{"always", "except_followed", "never"},
	},
	{Name: "send_private_typing_notifications", Default: true},
	{Name: "send_read_receipts", Default: true},
	{Name: "send_stream_typing_notifications", Default: true},
	{Name: "starred_message_counts", Default: true},
	{Name: "translate_emoticons", Default: false},
	{Name: "twenty_four_hour_time", Default: false, Null: true},
	{Name: "user_list_style", Default: int64(3), Allowed: intRange(1, 3)},
	{Name: "web_animate_image_previews", Default: "on_hover", Allowed: []any{"always", "on_hover", "never"}},
	{Name: "web_channel_default_view", Default: int64(1), Allowed: intRange(1, 4)},
	{Name: "web_escape_navigates_to_home_view", Default: true},
	{Name: "web_font_size_px", Default: int64(16)},
	{Name: "web_home_view", Default: "inbox", Allowed: []any{"inbox", "recent", "all_messages"}},
	{Name: "web_inbox_show_channel_folders", Default: true},
	{Name: "web_left_sidebar_show_channel_folders", Default: true},
	{Name: "web_left_sidebar_unreads_count_summary", Default: true},
	{Name: "web_line_height_percent", Default: int64(140)},
	{Name: "web_mark_read_on_scroll_policy", Default: int64(1), Allowed: intRange(1, 3)},
	{Name: "web_navigate_to_sent_message", Default: true},
	{Name: "web_stream_unreads_count_display_policy", Default: int64(2), Allowed: intRange(1, 3)},
	{Name: "web_suggest_update_timezone", Default: true},
	{Name: "wildcard_mentions_notify", Default: true},
}

// OrgSettings are the organization's settings that are not permission groups. Registrations show them as realm_<name>.
var OrgSettings = []Setting{
	{Name: "allow_browser_push", Default: true, OwnerOnly: true, Extension: true},
	{Name: "allow_external_pictures", Default: true, OwnerOnly: true, Extension: true},
	{Name: "allow_livekit_calls", Default: true, OwnerOnly: true, Extension: true},
	{Name: "allow_message_emails", Default: true, OwnerOnly: true, Extension: true},
	{Name: "allow_message_editing", Default: true, UpdateDict: true},
	{Name: "allow_mobile_push", Default: true, OwnerOnly: true, Extension: true},
	{Name: "allow_outgoing_webhooks", Default: true, OwnerOnly: true, Extension: true},
	{Name: AssistantSetting, Default: false, OwnerOnly: true, Extension: true},
	{Name: "avatar_changes_disabled", Default: false},
	{Name: "default_avatar_source", Default: "J", Allowed: []any{"G", "J"}},
	{Name: "default_code_block_language", Default: ""},
	{Name: "default_language", Default: "en"},
	{Name: "digest_emails_enabled", Default: false},
	{Name: "digest_weekday", Default: int64(1), Allowed: intRange(0, 6)},
	{Name: "disallow_disposable_email_addresses", Default: true, OwnerOnly: true},
	{Name: "email_changes_disabled", Default: false},
	{Name: "emails_restricted_to_domains", Default: false, OwnerOnly: true},
	{Name: "enable_guest_user_dm_warning", Default: true},
	{Name: "enable_guest_user_indicator", Default: true},
	{Name: "enable_read_receipts", Default: true},
	{Name: "enable_spectator_access", Default: false},
	{Name: "gif_rating_policy", Default: int64(1)},
	{Name: "inline_image_preview", Default: true},
	{Name: "inline_url_embed_preview", Default: false},
	{Name: "invite_required", Default: true, OwnerOnly: true},
	{Name: "jitsi_server_url", Default: nil, Null: true},
	{Name: "media_preview_size", Default: int64(100), Allowed: []any{int64(100), int64(150), int64(200)}},
	{Name: MeaningSetting, Default: false, OwnerOnly: true, Extension: true},
	{Name: "message_content_allowed_in_email_notifications", Default: true},
	{Name: "message_content_delete_limit_seconds", Default: int64(600), Null: true},
	{Name: "message_content_edit_limit_seconds", Default: int64(600), Null: true, UpdateDict: true},
	{Name: "message_edit_history_visibility_policy", Default: "all", Allowed: []any{"all", "moves", "none"}},
	{Name: "message_retention_days", Default: int64(-1), OwnerOnly: true},
	{Name: "moderation_request_channel_id", Default: int64(-1)},
	{Name: "move_messages_between_streams_limit_seconds", Default: int64(604800), Null: true},
	{Name: "move_messages_within_stream_limit_seconds", Default: int64(604800), Null: true},
	{Name: "name_changes_disabled", Default: false},
	{Name: "new_stream_announcements_stream_id", Default: int64(-1)},
	{
		Name: "org_type", Default: int64(0),
		Allowed: []any{
			int64(0), int64(10), int64(20), int64(30), int64(35), int64(40), int64(50), int64(60), int64(70),
			int64(80), int64(90), int64(100), int64(1000),
		},
	},
	{Name: "owner_full_content_access", Default: false, Hidden: true},
	{Name: "presence_disabled", Default: false},
	{Name: "require_e2ee_push_notifications", Default: false},
	{Name: "require_unique_names", Default: false},
	{Name: "send_channel_events_messages", Default: true},
	{Name: "send_welcome_emails", Default: true},
	{Name: "signup_announcements_stream_id", Default: int64(-1)},
	{Name: "topics_policy", Default: "allow_empty_topic", Allowed: []any{"allow_empty_topic", "disable_empty_topic"}},
	{Name: "video_chat_provider", Default: int64(0)},
	{Name: "waiting_period_threshold", Default: int64(0), OwnerOnly: true},
	{Name: "want_advertise_in_communities_directory", Default: false},
	{Name: "welcome_message_custom_text", Default: "", MaxLength: 8000},
	{Name: "zulip_update_announcements_stream_id", Default: int64(-1)},
}

// GroupSettingRule describes one permission setting: the group that has the permission by default, and the system
// groups it accepts.
type GroupSettingRule struct {
	Name             string
	Default          string // a system group
	NobodyOK         bool
	EveryoneOK       bool
	SystemOnly       bool
	Allowed          []string // the system groups that are allowed; nil: all that the fields above allow
	AdminManagedOnly bool     // accepts other groups only if no one except administrators manages them
	OwnerOnly        bool     // only owners may change it
	Extension        bool     // the protocol does not have it
}

// OrgGroupSettings are the organization's permission settings.
var OrgGroupSettings = []GroupSettingRule{
	{
		Name: "can_access_all_users_group", Default: "role:everyone", EveryoneOK: true, SystemOnly: true,
		Allowed: []string{"role:everyone", "role:members"},
	},
	{Name: "can_add_custom_emoji_group", Default: "role:members", NobodyOK: true},
	{Name: "can_add_subscribers_group", Default: "role:members", NobodyOK: true},
	{Name: "can_create_bots_group", Default: "role:members", NobodyOK: true},
	{Name: "can_create_groups", Default: "role:members", NobodyOK: true, OwnerOnly: true},
	{Name: "can_create_private_channel_group", Default: "role:members", NobodyOK: true},
	{Name: "can_create_public_channel_group", Default: "role:members", NobodyOK: true},
	{
		Name: "can_create_web_public_channel_group", Default: "role:owners", NobodyOK: true, SystemOnly: true,
		Allowed: []string{"role:moderators", "role:administrators", "role:owners", "role:nobody"},
	},
	{Name: "can_create_write_only_bots_group", Default: "role:members", NobodyOK: true},
	{Name: "can_delete_any_message_group", Default: "role:administrators", NobodyOK: true},
	{Name: "can_delete_own_message_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_invite_users_group", Default: "role:members", NobodyOK: true, OwnerOnly: true},
	{Name: "can_manage_all_groups", Default: "role:owners", OwnerOnly: true},
	{Name: "can_manage_billing_group", Default: "role:administrators", OwnerOnly: true},
	{Name: "can_mention_many_users_group", Default: "role:administrators", NobodyOK: true, EveryoneOK: true},
	{Name: "can_move_messages_between_channels_group", Default: "role:members", NobodyOK: true},
	{Name: "can_move_messages_between_topics_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_resolve_topics_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_set_delete_message_policy_group", Default: "role:moderators", NobodyOK: true},
	{Name: "can_set_topics_policy_group", Default: "role:members", NobodyOK: true, EveryoneOK: true},
	{Name: CallsSetting, Default: "role:members", NobodyOK: true, EveryoneOK: true, Extension: true},
	{Name: "can_summarize_topics_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "create_multiuse_invite_group", Default: "role:administrators", NobodyOK: true, OwnerOnly: true},
	{Name: "direct_message_initiator_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "direct_message_permission_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "workplace_users_group", Default: "role:members", NobodyOK: true, EveryoneOK: true, AdminManagedOnly: true},
}

// findGroupRule returns the rule with that name, or nil.
func findGroupRule(rules []GroupSettingRule, name string) *GroupSettingRule {
	for i := range rules {
		if rules[i].Name == name {
			return &rules[i]
		}
	}
	return nil
}

var (
	userSettingsByName  = settingsByName(UserSettings)
	orgSettingsByName   = settingsByName(OrgSettings)
	orgGroupRulesByName = func() map[string]*GroupSettingRule {
		m := map[string]*GroupSettingRule{}
		for i := range OrgGroupSettings {
			m[OrgGroupSettings[i].Name] = &OrgGroupSettings[i]
		}
		return m
	}()
)

func settingsByName(list []Setting) map[string]*Setting {
	m := map[string]*Setting{}
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}

// settingValue returns the stored value of a setting, or its default. It panics if there is no such setting.
func settingValue(have map[string]any, index map[string]*Setting, name string) any {
	if v, ok := have[name]; ok {
		return normalizeNumber(v)
	}
	s := index[name]
	if s == nil {
		panic("BUG: no setting " + name)
	}
	return s.Default
}

// Setting returns the user's value of a setting: bool, int64, string or nil.
func (u *User) Setting(name string) any        { return settingValue(u.Settings, userSettingsByName, name) }
func (u *User) BoolSetting(name string) bool   { b, _ := u.Setting(name).(bool); return b }
func (u *User) IntSetting(name string) int64   { n, _ := u.Setting(name).(int64); return n }
func (u *User) TextSetting(name string) string { s, _ := u.Setting(name).(string); return s }

// OrgSetting returns the organization's value of a setting: bool, int64, string or nil.
func (r *Realm) OrgSetting(name string) any {
	return settingValue(r.Org().Settings, orgSettingsByName, name)
}
func (r *Realm) OrgBool(name string) bool   { b, _ := r.OrgSetting(name).(bool); return b }
func (r *Realm) OrgInt(name string) int64   { n, _ := r.OrgSetting(name).(int64); return n }
func (r *Realm) OrgText(name string) string { s, _ := r.OrgSetting(name).(string); return s }

// OrgGroup returns the organization's value of a permission setting.
func (r *Realm) OrgGroup(name string) GroupValue {
	if v, ok := r.Org().GroupSettings[name]; ok {
		return v
	}
	rule := orgGroupRulesByName[name]
	if rule == nil {
		panic("BUG: no permission setting " + name)
	}
	return GroupValue{Group: r.SystemGroup(rule.Default)}
}

// HasPermission reports whether a user has one of the organization's permissions.
func (r *Realm) HasPermission(u *User, name string) bool {
	return r.allowed(u, r.OrgGroup(name), orgGroupRulesByName[name].EveryoneOK)
}

// SpectatorsAllowed reports whether logged-out visitors may read web-public channels.
func (r *Realm) SpectatorsAllowed() bool {
	return r.OrgBool("enable_spectator_access") && !r.Org().Deactivated
}

// Stored maps have named types. The codec writes their entries in order of the keys, so that equal rows have equal
// bytes.
type (
	GroupValues map[string]GroupValue
	Counters    map[string]int64
	Profile     map[int64]string
)

// normalizeNumber returns a value read from disk in one of the types that settings have: whole numbers become int64.
func normalizeNumber(v any) any {
	if n, ok := v.(uint64); ok {
		return int64(n)
	}
	return v
}

// UsesUpdateDict reports whether a change of the setting is sent as the event realm/update_dict.
func UsesUpdateDict(name string) bool { s := orgSettingsByName[name]; return s != nil && s.UpdateDict }
