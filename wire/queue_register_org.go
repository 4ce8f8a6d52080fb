package wire

import (
	"strings"

	"parley/actors/realm"
)

// realmFields is the fields that realmSection adds.
var realmFields = settingFields("realm_", realm.OrgSettings) + ", " + orgGroupFields() +
	", realm_name: str, realm_description: str, realm_date_created: int, realm_uuid: str, " +
	"realm_uri: str, realm_url: str, realm_bot_domain: str, realm_icon_source: str, realm_icon_url: str, " +
	"realm_logo_source: str, realm_logo_url: str, " +
	"realm_night_logo_source: str, realm_night_logo_url: str, realm_authentication_methods: {*: {enabled: bool, " +
	"available: bool}}, " +
	"realm_available_video_chat_providers: {*: {id: int, name: str}}, realm_email_auth_enabled: bool, " +
	"realm_password_auth_enabled: bool, realm_allow_edit_history: bool, " +
	"realm_mandatory_topics: bool, realm_empty_topic_display_name: str, realm_create_private_stream_policy: int, " +
	"realm_create_public_stream_policy: int, " +
	"realm_create_web_public_stream_policy: int, realm_wildcard_mention_policy: int, realm_plan_type: int, " +
	"realm_upload_quota_mib: int?, " +
	"realm_push_notifications_enabled: bool, realm_push_notifications_enabled_end_timestamp: int?, " +
	"realm_default_external_accounts: {*: {text: str, name: str, hint: str, url_pattern: str}}, " +
	"realm_allow_message_editing: bool"

func orgGroupFields() string {
	var out []string
	for _, x := range realm.OrgGroupSettings {
		out = append(out, registeredGroupSetting(x.Name)+": GroupValue")
	}
	return strings.Join(out, ", ")
}

// orgCacheKey is everything besides the organization itself that orgSection depends on.
type orgCacheKey struct {
	part       string
	site       Site
	generation int64
	push       bool
	previews   bool
	visitor    bool
}

func (s *initialState) orgCacheKey(part string) orgCacheKey {
	t := s.call.Tools
	return orgCacheKey{part, s.call.Site, t.Generation, t.Push != nil, t.FetchPreview != nil, s.Me() == nil}
}

// orgSection adds the organization and server fields. They are the same for all users of a kind, so the encoded bytes
// are cached.
func orgSection(s *initialState) {
	s.answer["realm"] = EncodedFields{sharedFragment(s.OrgJSON(s.orgCacheKey("realm"), func() []byte {
		x := *s
		x.answer = Answer{}
		realmSection(&x)
		serverSection(&x)
		b := encode(obj(x.answer))
		return b[1 : len(b)-1]
	}))}
}

// defaultsSection adds the default preferences of new accounts.
func defaultsSection(s *initialState) {
	s.answer["realm_user_settings_defaults"] = Fragments{sharedFragment(s.OrgJSON(s.orgCacheKey("defaults"),
		func() []byte {
			return settingsJSON(&realm.User{Settings: s.Org().UserDefaults}, false)
		}))}
}

// realmSection adds every setting of the organization, as realm_<name>.
func realmSection(s *initialState) {
	a, o := s.answer, s.Org()
	for _, x := range realm.OrgSettings {
		a["realm_"+x.Name] = s.OrgSetting(x.Name)
	}
	for _, x := range realm.OrgGroupSettings {
		a[registeredGroupSetting(x.Name)] = groupValue(s.WithoutDeactivated(s.OrgGroup(x.Name)))
	}
	a["realm_name"], a["realm_description"], a["realm_date_created"], a["realm_uuid"] = o.Name, o.Description,
		o.Created, o.UUID
	a["realm_uri"], a["realm_url"], a["realm_bot_domain"] = s.call.Site.URL, s.call.Site.URL, s.call.Site.Host
	picturesSection(s)
	a["realm_authentication_methods"] = authenticationMethods(s.PasswordLogin(), s.call.Site)
	a["realm_available_video_chat_providers"] = obj{"disabled": obj{"id": 0, "name": "None"},
		"jitsi_meet": obj{"id": 1, "name": "Jitsi Meet"}}
	a["realm_email_auth_enabled"], a["realm_password_auth_enabled"] = s.PasswordLogin(), s.PasswordLogin()
	a["realm_allow_edit_history"] = s.OrgText("message_edit_history_visibility_policy") != "none"
	a["realm_mandatory_topics"] = s.OrgText("topics_policy") == "disable_empty_topic"
	a["realm_empty_topic_display_name"] = realm.EmptyTopicName
	a["realm_create_private_stream_policy"] = legacyPolicyNumber(s.OrgGroup("can_create_private_channel_group"), 1)
	a["realm_create_public_stream_policy"] = legacyPolicyNumber(s.OrgGroup("can_create_public_channel_group"), 1)
	a["realm_create_web_public_stream_policy"] = legacyPolicyNumber(s.OrgGroup("can_create_web_public_channel_group"),
		7)
	a["realm_wildcard_mention_policy"] = legacyWildcardPolicy(s.OrgGroup("can_mention_many_users_group"))
	a["realm_plan_type"], a["realm_upload_quota_mib"] = 1, nil
	pushRightsSection(s)
	a["realm_default_external_accounts"] = obj{
		"twitter": obj{"text": "Twitter", "name": "Twitter username", "hint": "",
			"url_pattern": "https://twitter.com/%(username)s"},
		"github": obj{"text": "GitHub", "name": "GitHub username", "hint": "",
			"url_pattern": "https://github.com/%(username)s"},
	}
	if s.Me() == nil {
		a["realm_allow_message_editing"], a["realm_presence_disabled"] = false, true
	}
}

// pushRightsSection adds whether phones get notifications. A bouncer decides that for each organization; without one it
// depends only on whether a service is configured.
func pushRightsSection(s *initialState) {
	enabled, end := s.call.Tools.Push != nil, any(nil)
	if enabled && s.call.Tools.PushBouncer {
		state := s.PushState()
		if enabled = state.Allowed; state.End != 0 {
			end = state.End
		}
	}
	s.answer["realm_push_notifications_enabled"] = enabled
	s.answer["realm_push_notifications_enabled_end_timestamp"] = end
}

// registeredGroupSetting returns the name of a permission setting in a registration.
func registeredGroupSetting(name string) string { return "realm_" + name }

// legacyPolicyNumber returns the older number of a permission to create channels. otherwise is returned for groups
// without one.
func legacyPolicyNumber(g realm.GroupValue, otherwise int) int {
	switch g.Group {
	case 1:
		return 6
	case 2:
		return 7
	case 3:
		return 2
	case 4:
		return 4
	case 5:
		return 3
	case 6:
		return 1
	}
	return otherwise
}

// legacyWildcardPolicy returns the older number of the permission to use wildcard mentions.
func legacyWildcardPolicy(g realm.GroupValue) int {
	switch g.Group {
	case 7, 8:
		return 1
	case 6:
		return 2
	case 5:
		return 3
	case 1:
		return 6
	case 4:
		return 7
	}
	return 5
}

// serverFields is the fields that serverSection adds.
const serverFields = "development_environment: bool, event_queue_longpoll_timeout_seconds: int, " +
	"gif_rating_policy_options: {*: {id: int, name: str}}, jitsi_server_url: str?, " +
	"max_avatar_file_size_mib: int, max_bulk_new_subscription_messages: int, " +
	"max_channel_folder_description_length: int, max_channel_folder_name_length: int, " +
	"max_file_upload_size_mib: int, max_icon_file_size_mib: int, max_logo_file_size_mib: int, " +
	"max_message_length: int, max_reminder_note_length: int, " +
	"max_stream_description_length: int, max_stream_name_length: int, max_topic_length: int, " +
	"password_max_length: int, password_min_guesses: int, password_min_length: int, " +
	"server_avatar_changes_disabled: bool, server_can_summarize_topics: bool, server_emoji_data_url: str, " +
	"server_generation: int, server_inline_image_preview: bool, " +
	"server_inline_url_embed_preview: bool, server_jitsi_server_url: str?, " +
	"server_max_deactivated_realm_deletion_days: int?, server_min_deactivated_realm_deletion_days: int?, " +
	"server_name_changes_disabled: bool, server_needs_upgrade: bool, " +
	"server_presence_offline_threshold_seconds: int, server_presence_ping_interval_seconds: int, " +
	"server_report_message_types: [{key: str, name: str}], " +
	"server_supported_permission_settings: {realm: {*: PermissionRule}, stream: {*: PermissionRule}, " +
	"group: {*: PermissionRule}}, " +
	"server_thumbnail_formats: [{name: str, max_width: int, max_height: int, format: str, animated: bool}], " +
	"server_typing_started_expiry_period_milliseconds: int, server_typing_started_wait_period_milliseconds: int, " +
	"server_typing_stopped_wait_period_milliseconds: int, server_web_public_streams_enabled: bool, " +
	"settings_send_digest_emails: bool, upgrade_text_for_wide_organization_logo: str, " +
	"zulip_plan_is_not_limited: bool"

// serverSection adds the constants and limits of the server.
func serverSection(s *initialState) {
	a := s.answer
	for k, v := range (obj{
		"development_environment":                          false,
		"event_queue_longpoll_timeout_seconds":             90,
		"gif_rating_policy_options":                        gifRatingsJSON,
		"jitsi_server_url":                                 s.OrgSetting("jitsi_server_url"),
		"max_avatar_file_size_mib":                         5,
		"max_bulk_new_subscription_messages":               realm.MaxNewSubscriptionMessages,
		"max_channel_folder_description_length":            realm.MaxFolderDescription,
		"max_channel_folder_name_length":                   realm.MaxFolderName,
		"max_file_upload_size_mib":                         100,
		"max_icon_file_size_mib":                           5,
		"max_logo_file_size_mib":                           5,
		"max_message_length":                               realm.MaxMessage,
		"max_reminder_note_length":                         realm.MaxReminderNote,
		"max_stream_description_length":                    realm.MaxDescription,
		"max_stream_name_length":                           realm.MaxChannelName,
		"max_topic_length":                                 realm.MaxTopic,
		"password_max_length":                              MaxPasswordLength,
		"password_min_guesses":                             MinPasswordGuesses,
		"password_min_length":                              MinPasswordLength,
		"server_avatar_changes_disabled":                   false,
		"server_can_summarize_topics":                      false,
		"server_emoji_data_url":                            s.call.Tools.emojiTable(),
		"server_generation":                                s.call.Tools.Generation,
		"server_inline_image_preview":                      true,
		"server_inline_url_embed_preview":                  s.call.Tools.FetchPreview != nil,
		"server_jitsi_server_url":                          nil,
		"server_max_deactivated_realm_deletion_days":       nil,
		"server_min_deactivated_realm_deletion_days":       14,
		"server_name_changes_disabled":                     false,
		"server_needs_upgrade":                             false,
		"server_presence_offline_threshold_seconds":        200,
		"server_presence_ping_interval_seconds":            60,
		"server_report_message_types":                      reportTypesJSON,
		"server_supported_permission_settings":             supportedSettingsJSON,
		"server_thumbnail_formats":                         thumbnailFormatsJSON,
		"server_typing_started_expiry_period_milliseconds": 45000,
		"server_typing_started_wait_period_milliseconds":   30000,
		"server_typing_stopped_wait_period_milliseconds":   12000,
		"server_web_public_streams_enabled":                true,
		"settings_send_digest_emails":                      false,
		"upgrade_text_for_wide_organization_logo":          "",
		"zulip_plan_is_not_limited":                        true,
	}) {
		a[k] = v
	}
}

// Values that never change while the server runs are encoded once.
var (
	gifRatingsJSON = rawJSON(encode(obj{
		"disabled": obj{"id": 0, "name": "GIFs disabled"},
		"g":        obj{"id": 1, "name": "Allow GIFs rated G"},
		"pg":       obj{"id": 2, "name": "Allow GIFs rated PG"},
		"pg-13":    obj{"id": 3, "name": "Allow GIFs rated PG-13"},
		"r":        obj{"id": 4, "name": "Allow GIFs rated R"},
	}))
	reportTypesJSON       = rawJSON(encode(reportTypes()))
	thumbnailFormatsJSON  = rawJSON(encode(thumbnailFormats()))
	supportedSettingsJSON = rawJSON(encode(supportedSettings))
)

// supportedSettings is the table of all permission settings.
var supportedSettings = func() obj {
	of := func(rules []realm.GroupSettingRule, system any) obj {
		o := obj{}
		for _, r := range rules {
			o[r.Name] = obj{
				"require_system_group":      r.SystemOnly,
				"allow_internet_group":      false,
				"allow_nobody_group":        r.NobodyOK,
				"allow_everyone_group":      r.EveryoneOK,
				"default_group_name":        r.Default,
				"default_for_system_groups": system,
				"allowed_system_groups":     nonNil(r.Allowed),
			}
		}
		return o
	}
	return obj{"realm": of(realm.OrgGroupSettings, nil), "stream": of(realm.ChannelRules, nil),
		"group": of(realm.GroupRules, "role:nobody")}
}()
