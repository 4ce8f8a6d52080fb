package wire

import (
	"parley/actors/realm"
	"parley/wire/shape"
)

// registeredOrganization is the organization and the server, which are the same for all users of a kind.
type registeredOrganization struct {
	organizationFields
	serverFields
}

type organizationFields struct {
	Settings         registeredSettings
	Permissions      registeredPermissions
	Name             string                     `json:"realm_name"`
	Description      string                     `json:"realm_description"`
	Created          int64                      `json:"realm_date_created"`
	UUID             string                     `json:"realm_uuid"`
	URI              string                     `json:"realm_uri"` // older name of URL
	URL              string                     `json:"realm_url"`
	BotDomain        string                     `json:"realm_bot_domain"`
	IconSource       string                     `json:"realm_icon_source"`
	IconURL          string                     `json:"realm_icon_url"`
	LogoSource       string                     `json:"realm_logo_source"`
	LogoURL          string                     `json:"realm_logo_url"`
	NightLogoSource  string                     `json:"realm_night_logo_source"`
	NightLogoURL     string                     `json:"realm_night_logo_url"`
	LoginMethods     map[string]loginWay        `json:"realm_authentication_methods"`
	EmailLogin       bool                       `json:"realm_email_auth_enabled"`
	PasswordLogin    bool                       `json:"realm_password_auth_enabled"`
	VideoProviders   map[string]numberedName    `json:"realm_available_video_chat_providers"`
	ShowsHistory     bool                       `json:"realm_allow_edit_history"`
	MandatoryTopics  bool                       `json:"realm_mandatory_topics"`
	EmptyTopic       string                     `json:"realm_empty_topic_display_name"`
	CreatePrivate    int                        `json:"realm_create_private_stream_policy"`
	CreatePublic     int                        `json:"realm_create_public_stream_policy"`
	CreateWebPublic  int                        `json:"realm_create_web_public_stream_policy"`
	Wildcards        int                        `json:"realm_wildcard_mention_policy"`
	Plan             int                        `json:"realm_plan_type"`
	UploadQuota      int64                      `json:"realm_upload_quota_mib" zero:"null"`
	PushEnabled      bool                       `json:"realm_push_notifications_enabled"`
	PushEnd          int64                      `json:"realm_push_notifications_enabled_end_timestamp" zero:"null"`
	ExternalAccounts map[string]externalAccount `json:"realm_default_external_accounts"`
}

type externalAccount struct {
	Text    string `json:"text"`
	Name    string `json:"name"`
	Hint    string `json:"hint"`
	Pattern string `json:"url_pattern"`
}

// registeredSettings is the settings of an organization, as realm_<name>.
type registeredSettings struct{ s *initialState }

// JSONFields returns a field for each setting.
func (registeredSettings) JSONFields() []shape.TableField {
	return registeredFields(settingFields(realm.OrgSettings, false), func(i int) bool {
		return realm.OrgSettings[i].Extension
	})
}

// registeredFields returns the fields of settings in a registration. Those that the protocol does not have are
// optional.
func registeredFields(fields []shape.TableField, isExtension func(i int) bool) []shape.TableField {
	for i := range fields {
		fields[i].Name, fields[i].Optional = "realm_"+fields[i].Name, isExtension(i)
	}
	return fields
}

// JSONField returns the value of a setting.
func (r registeredSettings) JSONField(i int) any {
	name := realm.OrgSettings[i].Name
	shown := true
	switch {
	case name == realm.AssistantSetting:
		summaries, translations := r.s.call.offers()
		shown = summaries || translations
	case name == realm.MeaningSetting:
		shown = r.s.call.offersMeaning()
	case realm.OrgSettings[i].Extension:
		shown = r.s.knowsExtensions()
	}
	if !shown {
		return shape.Absent{}
	}
	if r.s.Me() == nil {
		switch name {
		case "allow_message_editing":
			return false
		case "presence_disabled":
			return true
		}
	}
	return r.s.OrgSetting(name)
}

// registeredPermissions is the permission settings of an organization, as realm_<name>.
type registeredPermissions struct{ s *initialState }

// JSONFields returns a field for each setting.
func (registeredPermissions) JSONFields() []shape.TableField {
	return registeredFields(ruleTableFields(realm.OrgGroupSettings, false), func(i int) bool {
		return realm.OrgGroupSettings[i].Extension
	})
}

// JSONField returns the value of a setting.
func (r registeredPermissions) JSONField(i int) any {
	x := &realm.OrgGroupSettings[i]
	if x.Name == realm.CallsSetting && r.s.call.Tools.Calls == nil {
		return shape.Absent{}
	}
	return groupValueJSON{r.s.WithoutDeactivated(r.s.OrgGroup(x.Name))}
}

// orgCacheKey is everything besides the organization itself that orgSection depends on.
type orgCacheKey struct {
	part       string
	site       Site
	generation int64
	push       bool
	previews   bool
	visitor    bool
	offers     assistantOffers
	calls      bool
	extensions bool
}

func (s *initialState) orgCacheKey(part string) orgCacheKey {
	t := s.call.Tools
	summaries, translations := s.call.offers() // of an edge, they are those of the core that it follows
	return orgCacheKey{part, s.call.Site, t.Generation, t.Push != nil, t.FetchPreview != nil, s.Me() == nil,
		assistantOffers{summaries, translations, s.call.offersMeaning()}, t.Calls != nil, s.knowsExtensions()}
}

// knowsExtensions reports whether the client named a capability that only this server has. Others do not show the
// switches of places.
func (s *initialState) knowsExtensions() bool { return s.queue.Caps&realm.CapShortUserList != 0 }

// orgSection adds the organization and server fields. They are the same for all users of a kind, so the encoded bytes
// are cached.
func orgSection(s *initialState) {
	s.answer.Realm.Fragment = sharedFragment(s.OrgJSON(s.orgCacheKey("realm"), func() []byte {
		return encodedFieldsOf(registeredOrganization{newOrganizationFields(s), newServerFields(s)})
	}))
}

// defaultsSection adds the default preferences of new accounts.
func defaultsSection(s *initialState) {
	s.answer.Defaults = inFragments[preferences](sharedFragment(s.OrgJSON(s.orgCacheKey("defaults"), func() []byte {
		return encode(newPreferences(s.Org().UserDefaults))
	})))
}

func newOrganizationFields(s *initialState) organizationFields {
	o, site := s.Org(), s.call.Site
	icon, logo, night := o.PictureOf(realm.Icon), o.PictureOf(realm.Logo), o.PictureOf(realm.NightLogo)
	enabled, end := s.pushRights()
	return organizationFields{
		Settings:        registeredSettings{s},
		UploadQuota:     s.call.Tools.UploadQuota >> 20,
		Permissions:     registeredPermissions{s},
		Name:            o.Name,
		Description:     o.Description,
		Created:         o.Created,
		UUID:            o.UUID,
		URI:             site.URL,
		URL:             site.URL,
		BotDomain:       site.Host,
		IconSource:      icon.Source,
		IconURL:         pictureURL(realm.Icon, icon, site),
		LogoSource:      logo.Source,
		LogoURL:         pictureURL(realm.Logo, logo, site),
		NightLogoSource: night.Source,
		NightLogoURL:    pictureURL(realm.NightLogo, night, site),
		LoginMethods:    loginMethods(s.PasswordLogin(), site),
		EmailLogin:      s.PasswordLogin(),
		PasswordLogin:   s.PasswordLogin(),
		VideoProviders:  map[string]numberedName{"disabled": {0, "None"}, "jitsi_meet": {1, "Jitsi Meet"}},
		ShowsHistory:    s.OrgText("message_edit_history_visibility_policy") != "none",
		MandatoryTopics: s.OrgText("topics_policy") == "disable_empty_topic",
		EmptyTopic:      realm.EmptyTopicName,
		CreatePrivate:   legacyPolicyNumber(s.OrgGroup("can_create_private_channel_group"), 1),
		CreatePublic:    legacyPolicyNumber(s.OrgGroup("can_create_public_channel_group"), 1),
		CreateWebPublic: legacyPolicyNumber(s.OrgGroup("can_create_web_public_channel_group"), 7),
		Wildcards:       legacyWildcardPolicy(s.OrgGroup("can_mention_many_users_group")),
		Plan:            1,
		PushEnabled:     enabled,
		PushEnd:         end,
		ExternalAccounts: map[string]externalAccount{
			"twitter": {Text: "Twitter", Name: "Twitter username", Pattern: "https://twitter.com/%(username)s"},
			"github":  {Text: "GitHub", Name: "GitHub username", Pattern: "https://github.com/%(username)s"},
		},
	}
}

// pushRights reports whether phones get notifications, and until when, in Unix seconds; 0: no end. A bouncer decides
// that for each organization; without one it depends only on whether a service is configured.
func (s *initialState) pushRights() (enabled bool, end int64) {
	if enabled = s.call.Tools.Push != nil; enabled && s.call.Tools.PushBouncer {
		state := s.PushState()
		return state.Allowed, state.End
	}
	return enabled, 0
}

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

// serverFields is the constants and limits of the server.
type serverFields struct {
	Development           bool                     `json:"development_environment"`
	LongPollTimeout       int                      `json:"event_queue_longpoll_timeout_seconds"`
	GIFRatings            map[string]numberedName  `json:"gif_rating_policy_options"`
	JitsiURL              *string                  `json:"jitsi_server_url"`
	MaxAvatar             int                      `json:"max_avatar_file_size_mib"`
	MaxNewSubscriptions   int                      `json:"max_bulk_new_subscription_messages"`
	MaxFolderDescription  int                      `json:"max_channel_folder_description_length"`
	MaxFolderName         int                      `json:"max_channel_folder_name_length"`
	MaxUpload             int                      `json:"max_file_upload_size_mib"`
	MaxIcon               int                      `json:"max_icon_file_size_mib"`
	MaxLogo               int                      `json:"max_logo_file_size_mib"`
	MaxMessage            int                      `json:"max_message_length"`
	MaxReminderNote       int                      `json:"max_reminder_note_length"`
	MaxChannelDescription int                      `json:"max_stream_description_length"`
	MaxChannelName        int                      `json:"max_stream_name_length"`
	MaxTopic              int                      `json:"max_topic_length"`
	MaxPassword           int                      `json:"password_max_length"`
	MinPasswordGuesses    int                      `json:"password_min_guesses"`
	MinPassword           int                      `json:"password_min_length"`
	AvatarsFixed          bool                     `json:"server_avatar_changes_disabled"`
	Summarizes            bool                     `json:"server_can_summarize_topics"`
	Offered               assistantOffers          `json:"server_assistant,omitzero"`
	Calls                 bool                     `json:"server_calls,omitzero"`
	EmojiTable            string                   `json:"server_emoji_data_url"`
	Generation            int64                    `json:"server_generation"`
	ImagePreviews         bool                     `json:"server_inline_image_preview"`
	LinkPreviews          bool                     `json:"server_inline_url_embed_preview"`
	ServerJitsiURL        *string                  `json:"server_jitsi_server_url"`
	MaxDeletionDays       *int                     `json:"server_max_deactivated_realm_deletion_days"`
	MinDeletionDays       *int                     `json:"server_min_deactivated_realm_deletion_days"`
	NamesFixed            bool                     `json:"server_name_changes_disabled"`
	NeedsUpgrade          bool                     `json:"server_needs_upgrade"`
	OfflineAfter          int                      `json:"server_presence_offline_threshold_seconds"`
	PingInterval          int                      `json:"server_presence_ping_interval_seconds"`
	ReportTypes           []reportType             `json:"server_report_message_types"`
	Permissions           encoded[permissionRules] `json:"server_supported_permission_settings"`
	Thumbnails            []thumbnailFormat        `json:"server_thumbnail_formats"`
	TypingExpiry          int                      `json:"server_typing_started_expiry_period_milliseconds"`
	TypingStartWait       int                      `json:"server_typing_started_wait_period_milliseconds"`
	TypingStopWait        int                      `json:"server_typing_stopped_wait_period_milliseconds"`
	WebPublicChannels     bool                     `json:"server_web_public_streams_enabled"`
	DigestEmails          bool                     `json:"settings_send_digest_emails"`
	WideLogoUpgrade       string                   `json:"upgrade_text_for_wide_organization_logo"`
	Unlimited             bool                     `json:"zulip_plan_is_not_limited"`
}

// assistantOffers says whether the server makes summaries and translations, and searches by meaning, for users of
// organizations whose owners agree. It is left out if the server does none of these.
type assistantOffers struct {
	Summaries    bool `json:"summaries"`
	Translations bool `json:"translations"`
	Meaning      bool `json:"search_by_meaning,omitzero"`
}

// permissionRules is the rules of all permission settings, by name.
type permissionRules struct {
	Realm   map[string]permissionRuleJSON `json:"realm"`
	Channel map[string]permissionRuleJSON `json:"stream"`
	Group   map[string]permissionRuleJSON `json:"group"`
}

type permissionRuleJSON struct {
	SystemOnly       bool     `json:"require_system_group"`
	InternetOK       bool     `json:"allow_internet_group"` // always false
	NobodyOK         bool     `json:"allow_nobody_group"`
	EveryoneOK       bool     `json:"allow_everyone_group"`
	Default          string   `json:"default_group_name"`
	DefaultForSystem *string  `json:"default_for_system_groups"`
	Allowed          []string `json:"allowed_system_groups"`
}

func newServerFields(s *initialState) serverFields {
	var jitsi *string
	if url, ok := s.OrgSetting("jitsi_server_url").(string); ok {
		jitsi = &url
	}
	summaries, translations := s.call.offers()
	agreed := s.OrgBool(realm.AssistantSetting)
	permissions := supportedPermissions
	if s.call.Tools.Calls != nil {
		permissions = supportedWithCalls
	}
	return serverFields{
		Summarizes:      summaries && agreed,
		Offered:         assistantOffers{summaries, translations, s.call.offersMeaning()},
		Calls:           s.call.Tools.Calls != nil,
		LongPollTimeout: 90,
		GIFRatings: map[string]numberedName{"disabled": {0, "GIFs disabled"}, "g": {1, "Allow GIFs rated G"},
			"pg": {2, "Allow GIFs rated PG"}, "pg-13": {3, "Allow GIFs rated PG-13"}, "r": {4, "Allow GIFs rated R"}},
		JitsiURL:              jitsi,
		MaxAvatar:             5,
		MaxNewSubscriptions:   realm.MaxNewSubscriptionMessages,
		MaxFolderDescription:  realm.MaxFolderDescription,
		MaxFolderName:         realm.MaxFolderName,
		MaxUpload:             100,
		MaxIcon:               5,
		MaxLogo:               5,
		MaxMessage:            realm.MaxMessage,
		MaxReminderNote:       realm.MaxReminderNote,
		MaxChannelDescription: realm.MaxDescription,
		MaxChannelName:        realm.MaxChannelName,
		MaxTopic:              realm.MaxTopic,
		MaxPassword:           MaxPasswordLength,
		MinPasswordGuesses:    MinPasswordGuesses,
		MinPassword:           MinPasswordLength,
		EmojiTable:            s.call.Tools.emojiTable(),
		Generation:            s.call.Tools.Generation,
		ImagePreviews:         true,
		LinkPreviews:          s.call.Tools.FetchPreview != nil,
		MinDeletionDays:       ptr(14),
		OfflineAfter:          200,
		PingInterval:          60,
		ReportTypes:           reportTypes(),
		Permissions:           permissions,
		Thumbnails:            thumbnailFormats(),
		TypingExpiry:          45000,
		TypingStartWait:       30000,
		TypingStopWait:        12000,
		WebPublicChannels:     true,
		Unlimited:             true,
	}
}

// supportedPermissions and supportedWithCalls are the tables of all permission settings, on a server without calls and
// with them. They never change, so they are encoded once.
var supportedPermissions, supportedWithCalls = encodePermissions(false), encodePermissions(true)

func encodePermissions(extensions bool) encoded[permissionRules] {
	of := func(rules []realm.GroupSettingRule, system *string) map[string]permissionRuleJSON {
		out := map[string]permissionRuleJSON{}
		for _, r := range rules {
			if r.Extension && !extensions {
				continue
			}
			out[r.Name] = permissionRuleJSON{SystemOnly: r.SystemOnly, NobodyOK: r.NobodyOK, EveryoneOK: r.EveryoneOK,
				Default: r.Default, DefaultForSystem: system, Allowed: r.Allowed}
		}
		return out
	}
	return encodedAs[permissionRules](encode(permissionRules{of(realm.OrgGroupSettings, nil),
		of(realm.ChannelRules, nil), of(realm.GroupRules, ptr("role:nobody"))}))
}
