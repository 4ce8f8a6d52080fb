package wire

import (
	"bytes"
	"slices"
	"strings"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

var registerEndpoints = []Endpoint{
	Custom("POST", "/register", register).Visitor().Says(registration()),
}

type registerForm struct {
	queueForm
	HistoryDays int64              `form:"presence_history_limit_days,default=14,min=0"`
	FetchTypes  form.Opt[[]string] `form:"fetch_event_types,maxitems=1000"`
}

// queueForm is what a queue is to hold.
type queueForm struct {
	Markdown    bool                    `form:"apply_markdown"`
	Gravatar    form.Opt[bool]          `form:"client_extavatar,alias=client_gravatar"`
	Subscribers form.IncludeSubscribers `form:"include_subscribers"`
	Slim        bool                    `form:"slim_presence"`
	EventTypes  form.Opt[[]string]      `form:"event_types,maxitems=1000"`
	AllPublic   form.Opt[bool]          `form:"all_public_streams"`
	Caps        *capsForm               `form:"client_capabilities"`
	Narrow      form.Narrow             `form:"narrow"`
	Idle        form.IdleTimeout        `form:"idle_queue_timeout,alias=queue_lifespan_secs"`
}

// capsForm is what a client says it understands; keys nobody knows are ignored.
type capsForm struct {
	_                  struct{} `form:",extra"`
	NotificationNull   bool     `form:"notification_settings_null"`
	BulkDeletion       bool     `form:"bulk_message_deletion"`
	AvatarOptional     bool     `form:"user_avatar_url_field_optional"`
	ChannelTyping      bool     `form:"stream_typing_notifications"`
	SettingsObject     bool     `form:"user_settings_object"`
	LinkifierTemplate  bool     `form:"linkifier_url_template"`
	UserListIncomplete bool     `form:"user_list_incomplete"`
	DeactivatedGroups  bool     `form:"include_deactivated_groups"`
	ArchivedChannels   bool     `form:"archived_channels"`
	EmptyTopic         bool     `form:"empty_topic_name"`
	SimplifiedPresence bool     `form:"simplified_presence_events"`
	IndividualEmoji    bool     `form:"individual_emoji_changes"`
}

func (f *capsForm) caps() (c realm.Caps) {
	if f == nil {
		return 0
	}
	for i, is := range []bool{f.NotificationNull, f.BulkDeletion, f.AvatarOptional, f.ChannelTyping, f.SettingsObject, f.LinkifierTemplate,
		f.UserListIncomplete, f.DeactivatedGroups, f.ArchivedChannels, f.EmptyTopic, f.SimplifiedPresence, f.IndividualEmoji} {
		if is {
			c |= 1 << i
		}
	}
	return c
}

func register(c *Call, f registerForm) (Answer, error) {
	q, err := f.queue(c)
	if err != nil {
		return nil, err
	}
	fetch := f.FetchTypes
	if !fetch.Set {
		fetch = f.EventTypes
	}
	wants := func(name string) bool { return !fetch.Set || slices.Contains(fetch.Value, name) }
	var rows []presence.Row
	if wants("presence") && c.Account != nil {
		rows = presenceRows(c, -1, f.HistoryDays)
	}
	if wants("realm_user") {
		if err := warmUsers(c, &q); err != nil {
			return nil, err
		}
	}
	if wants("stream") || wants("subscription") {
		if err := warmChannels(c, wants("subscription") && f.Subscribers == form.AllSubscribers); err != nil {
			return nil, err
		}
	}
	r, err := Play(c, realm.Register{Queue: q, SaysAllPublic: f.AllPublic.Set, State: func(v realm.View, _ *realm.Queue) (any, error) {
		s := &state{c: c, View: v, queue: &q, Client: ClientOf(&q), a: Answer{}, presence: rows, explicit: fetch.Set, wants: wants}
		s.build()
		return s, nil
	}})
	if err != nil {
		return nil, err
	}
	s := r.State.(*state)
	a := s.finished()
	a["zulip_version"], a["zulip_merge_base"], a["zulip_feature_level"] = Version, Version, FeatureLevel
	if r.Queue == nil {
		a["queue_id"], a["idle_queue_timeout_secs"] = nil, realm.DefaultIdle
		return a, nil
	}
	a["queue_id"], a["last_event_id"], a["idle_queue_timeout_secs"] = r.Queue.ID, -1, r.Queue.Idle
	return a, nil
}

// build makes every section that is wanted.
func (s *state) build() {
	var same [][]byte
	for _, x := range sections {
		switch {
		case !x.wanted(s.wants):
		case x.member != nil:
			same = append(same, x.member)
		default:
			x.build(s)
		}
	}
	switch len(same) {
	case 0:
	case constants.n:
		s.a["constants"] = Members{shared(constants.all)}
	default:
		s.a["constants"] = Members{own(bytes.Join(same, comma.JSON))}
	}
}

// constants is all sections that always say the same, in one.
var constants = func() (c struct {
	n   int
	all []byte
}) {
	var all [][]byte
	for _, x := range sections {
		if x.member != nil {
			all = append(all, x.member)
		}
	}
	c.n, c.all = len(all), bytes.Join(all, comma.JSON)
	return c
}()

// queue is the registration a form asks for.
func (f *queueForm) queue(c *Call) (realm.Queue, error) {
	q := realm.Queue{Markdown: f.Markdown, Slim: f.Slim, AllPublic: f.AllPublic.Value, Gravatar: c.Account != nil, Client: c.Caller.Client, Idle: f.Idle.Seconds, Caps: f.Caps.caps()}
	if c.Account == nil {
		if f.Gravatar.Value {
			return q, realm.Bad("Invalid 'client_gravatar' parameter for anonymous request")
		}
		if f.Subscribers != form.NoSubscribers {
			return q, realm.Bad("Invalid 'include_subscribers' parameter for anonymous request")
		}
	}
	switch f.Subscribers {
	case form.AllSubscribers:
		q.Subscribers = "true"
	case form.PartialSubscribers:
		q.Subscribers = "partial"
	default:
		q.Subscribers = "false"
	}
	if f.Idle.Mobile {
		q.Idle = realm.MobileIdle
	}
	if f.Gravatar.Set {
		q.Gravatar = f.Gravatar.Value
	}
	if f.EventTypes.Set {
		q.EventTypes = nonNil(f.EventTypes.Value)
	}
	for i, t := range f.Narrow {
		if t.Operand.Kind != form.OperandText || t.Negated {
			return q, realm.Bad("Invalid narrow[%d]: Value error, element is not a string pair", i)
		}
		operand := t.Operand.Text
		switch t.Operator {
		case "channel", "stream", "topic", "sender", "mentions":
		case "is":
			if operand == "followed" {
				return q, realm.Bad("Operand followed not supported.")
			}
		default:
			return q, realm.Bad("Operator %s not supported.", t.Operator)
		}
		q.Narrow = append(q.Narrow, [2]string{t.Operator, operand})
	}
	return q, nil
}

// state is a registration's answer while it is being built, inside one turn.
type state struct {
	realm.View
	Client
	c        *Call
	queue    *realm.Queue
	a        Answer
	presence []presence.Row
	explicit bool // the fetch types were named
	wants    func(string) bool
	channels []shown // once they are gathered
	gathered bool
	later    []func() // what is left to do when the turn is over
}

// afterwards has something done when the turn is over, with what was copied out of the realm.
func (s *state) afterwards(fn func()) { s.later = append(s.later, fn) }

// finished is the answer, when the turn is over.
func (s *state) finished() Answer {
	for _, fn := range s.later {
		fn()
	}
	return s.a
}

// section is a part of the initial state and the fetch types that ask for it: all of them are needed.
type section struct {
	types  []string
	build  func(*state)
	member []byte // instead of build: name and value, the same in every answer
	fields string // what it puts into the answer, in the notation of package shape; each may be absent
}

func (x section) wanted(wants func(string) bool) bool {
	for _, t := range x.types {
		if !wants(t) {
			return false
		}
	}
	return true
}

func of(types string, build func(*state)) section {
	return section{types: strings.Fields(types), build: build}
}

// says is of and what its part of the answer looks like.
func (x section) says(fields string) section { x.fields = fields; return x }

// registration is what the answer of a registration looks like: every section's part may be absent, for it may not have
// been asked for.
func registration() string {
	fields := make([]string, len(sections))
	for i, x := range sections {
		fields[i] = x.fields
	}
	return "{zulip_version: str, zulip_merge_base: str, zulip_feature_level: int, queue_id: str?, idle_queue_timeout_secs: int, ~last_event_id: int, " + strings.Join(fields, ", ") + "}"
}

// constant is a section that always says the same.
func constant(fetch, key string, value any) section {
	x := of(fetch, nil)
	b := encode(obj{key: value})
	x.member = b[1 : len(b)-1]
	return x
}

// sections is the whole initial state, by fetch type.
var sections = []section{
	of("message", func(s *state) {
		s.a["max_message_id"] = int64(-1)
		if s.Me() != nil {
			s.a["max_message_id"] = maxMessageID(s.View)
		}
	}).says("max_message_id: int"),
	of("realm", orgSection).says(realmFields + ", " + serverFields),
	of("realm_user", usersSection).says("realm_users: [RegisteredUser], realm_non_active_users: [RegisteredUser], cross_realm_bots: [SystemBot]"),
	of("realm_user", selfSection).says(selfFields),
	of("realm_user_groups", groupsSection).says("realm_user_groups: [Group]"),
	of("presence", func(s *state) {
		modern := s.Slim || s.Has(realm.CapSimplifiedPresence)
		out, newest := presenceMap(s.View, s.presence, s.c.Site, modern)
		s.a["presences"], s.a["presence_last_update_id"], s.a["server_timestamp"] = out, newest, now()
	}).says("presences: {*: Presence | OldPresence}, presence_last_update_id: int, server_timestamp: num"),
	of("user_settings", func(s *state) { s.a["user_settings"] = raw(settingsJSON(s.Me(), true)) }).says("user_settings: {" + preferences + ", timezone: str}"),
	of("realm_user_settings_defaults", defaultsSection).says("realm_user_settings_defaults: {" + preferences + "}"),
	of("stream", streamsSection).says("streams: [Channel]"),
	of("subscription", subscriptionsSection).says("subscriptions: [Subscription], unsubscribed: [Subscription], never_subscribed: [OtherChannel]"),
	of("default_streams", defaultStreamsSection).says("realm_default_streams: [int]"),
	of("default_stream_groups", defaultStreamGroupsSection).says("realm_default_stream_groups: [{id: int, name: str, description: str, streams: [int]}]"),
	of("channel_folders", channelFoldersSection).says("channel_folders: [Folder]"),
	of("user_topic", userTopicsSection).says("user_topics: [{stream_id: int, topic_name: str, last_updated: int, visibility_policy: int}]"),
	of("muted_topics", mutedTopicsSection).says("muted_topics: [[str | int]]"),
	constant("giphy", "giphy_api_key", "").says("giphy_api_key: str"),
	constant("tenor", "tenor_api_key", "").says("tenor_api_key: str"),
	constant("realm_billing", "realm_billing", obj{"has_pending_sponsorship_request": false}).says("realm_billing: {has_pending_sponsorship_request: bool}"),
	constant("realm_embedded_bots", "realm_embedded_bots", []any{}).says("realm_embedded_bots: []"),
	constant("realm_filters", "realm_filters", []any{}).says("realm_filters: []"),
	constant("stop_words", "stop_words", []any{}).says("stop_words: []"),
	constant("video_calls", "has_zoom_token", false).says("has_zoom_token: bool"),
	constant("video_calls", "has_webex_token", false).says("has_webex_token: bool"),
	of("onboarding_steps", func(s *state) { s.a["onboarding_steps"] = stepObjects(s.StepsLeft(s.User)) }).says("onboarding_steps: [{type: str, name: str}]"),
	constant("onboarding_steps", "navigation_tour_video_url", nil).says("navigation_tour_video_url: str?"),
	constant("custom_profile_fields", "custom_profile_field_types", profileFieldTypes()).says("custom_profile_field_types: {*: {id: int, name: str}}"),

	of("message update_message_flags", unreadSection).says("unread_msgs: {count: int, pms: [{other_user_id: int, sender_id: int, unread_message_ids: [int]}], streams: [{stream_id: int, topic: str, unread_message_ids: [int]}], " +
		"huddles: [{user_ids_string: str, unread_message_ids: [int]}], mentions: [int], old_unreads_missing: bool}"),
	of("starred_messages", starredSection).says("starred_messages: [int]"),
	of("recent_private_conversations", recentTalksSection).says("recent_private_conversations: [{max_message_id: int, user_ids: [int]}]"),

	// Each line below gives way to its noun's own section.

	of("alert_words", func(s *state) { s.a["alert_words"] = s.AlertWordsOf(s.User) }).says("alert_words: [str]"),

	of("muted_users", func(s *state) { s.a["muted_users"] = mutedObjects(s.MutedBy(s.User)) }).says("muted_users: [{id: int, timestamp: int}]"),

	of("user_status", statusSection).says("user_status: {*: Status}"),

	of("custom_profile_fields", func(s *state) { s.a["custom_profile_fields"] = fieldObjects(s.ProfileFields()) }).says("custom_profile_fields: [ProfileField]"),

	of("realm_bot", func(s *state) { s.a["realm_bots"] = botObjects(s.View) }).says("realm_bots: [Bot]"),

	of("drafts", draftsSection).says("drafts: [Draft]"),

	of("scheduled_messages", func(s *state) { s.a["scheduled_messages"] = scheduledObjects(s.ScheduledOf(s.User), s.Client) }).says("scheduled_messages: [ScheduledMessage]"),

	of("reminders", func(s *state) { s.a["reminders"] = reminderObjects(s.RemindersOf(s.User)) }).says("reminders: [Reminder]"),

	of("saved_snippets", func(s *state) { s.a["saved_snippets"] = snippetObjects(s.SnippetsOf(s.User)) }).says("saved_snippets: [Snippet]"),

	of("navigation_views", func(s *state) { s.a["navigation_views"] = viewObjects(s.ViewsOf(s.User)) }).says("navigation_views: [View]"),

	of("realm_domains", func(s *state) { s.a["realm_domains"] = domainObjects(s.Domains()) }).says("realm_domains: [Domain]"),

	of("realm_playgrounds", func(s *state) { s.a["realm_playgrounds"] = playgroundObjects(s.Playgrounds()) }).says("realm_playgrounds: [Playground]"),

	of("realm_linkifiers", func(s *state) {
		s.a["realm_linkifiers"] = []any{}
		if s.Has(realm.CapLinkifierURLTemplate) {
			s.a["realm_linkifiers"] = linkifierObjects(s.Linkifiers())
		}
	}).says("realm_linkifiers: [Linkifier]"),

	of("realm_emoji", func(s *state) { s.a["realm_emoji"] = emojiObjects(s.CustomEmojis(), s.c.Site) }).says("realm_emoji: {*: Emoji}"),

	constant("realm_incoming_webhook_bots", "realm_incoming_webhook_bots", integrationObjects()).says("realm_incoming_webhook_bots: [Integration]"),

	of("device", func(s *state) { s.a["devices"] = deviceObjects(s.DevicesOf(s.User)) }).says("devices: {*: Device}"),
}

func profileFieldTypes() any {
	o := obj{}
	for i, t := range []struct{ key, name string }{{"SHORT_TEXT", "Text (short)"}, {"LONG_TEXT", "Text (long)"}, {"SELECT", "List of options"}, {"DATE", "Date"},
		{"URL", "Link"}, {"USER", "Users"}, {"EXTERNAL_ACCOUNT", "External account"}, {"PRONOUNS", "Pronouns"}} {
		o[t.key] = obj{"id": i + 1, "name": t.name}
	}
	return o
}

// settingsJSON is an account's preferences as one object, their names in order; a visitor's are the defaults.
func settingsJSON(u *realm.User, own bool) []byte {
	if u == nil {
		u = &realm.User{Settings: map[string]any{"web_home_view": "recent"}}
	}
	b := make([]byte, 0, 3<<10)
	for _, name := range settingNames {
		if name == "timezone" && !own {
			continue
		}
		b = append(append(append(b, `,"`...), name...), `":`...)
		switch name {
		case "timezone":
			b = appendString(b, u.Timezone)
		case "emojiset_choices":
			b = append(b, emojisets...)
		case "available_notification_sounds":
			b = append(b, `["zulip"]`...)
		default:
			b = appendJSON(b, u.Setting(name))
		}
	}
	b[0] = '{'
	return append(b, '}')
}

var emojisets = encode([]any{obj{"key": "google", "text": "Google"}, obj{"key": "twitter", "text": "Twitter"}, obj{"key": "text", "text": "Plain text"}, obj{"key": "google-blob", "text": "Google blobs"}})

// settingNames is every member of settingsJSON.
var settingNames = func() []string {
	names := []string{"timezone", "emojiset_choices", "available_notification_sounds"}
	for _, s := range realm.UserSettings {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}()

// preferences is what settingsJSON makes for an organization's defaults.
var preferences = settingFields("", realm.UserSettings) + ", emojiset_choices: [{key: str, text: str}], available_notification_sounds: [str]"

const selfFields = "avatar_source: str, avatar_url: str, avatar_url_medium: str, delivery_email: str, email: str, full_name: str, user_id: int, is_admin: bool, is_owner: bool, " +
	"is_moderator: bool, is_guest: bool, can_create_private_streams: bool, can_create_public_streams: bool, can_create_streams: bool, can_create_web_public_streams: bool, " +
	"can_invite_others_to_realm: bool"

// selfSection is what the caller is told of himself.
func selfSection(s *state) {
	a, me := s.a, s.Me()
	if me == nil {
		for k, v := range (obj{"avatar_source": "J", "avatar_url": "", "avatar_url_medium": "", "delivery_email": "", "email": "", "full_name": "Anonymous User", "user_id": 0,
			"is_admin": false, "is_owner": false, "is_moderator": false, "is_guest": true, "can_create_private_streams": false, "can_create_public_streams": false,
			"can_create_streams": false, "can_create_web_public_streams": false, "can_invite_others_to_realm": false}) {
			a[k] = v
		}
		return
	}
	p := s.Person(me.ID)
	url := avatarURL(p, s.c.Site, false).(string)
	a["avatar_source"], a["avatar_url"], a["avatar_url_medium"] = me.Avatar, url, strings.Replace(url, ".png", "-medium.png", 1)
	a["delivery_email"], a["email"], a["full_name"], a["user_id"] = me.Email, apiEmail(p, s.c.Site), me.Name, me.ID
	a["is_admin"], a["is_owner"], a["is_moderator"], a["is_guest"] = me.IsAdmin(), me.Role == realm.Owner, me.IsModerator(), me.IsGuest()
	private, public := s.May(me, "can_create_private_channel_group"), s.May(me, "can_create_public_channel_group")
	web := s.SpectatorsAllowed() && s.May(me, "can_create_web_public_channel_group")
	a["can_create_private_streams"], a["can_create_public_streams"], a["can_create_web_public_streams"] = private, public, web
	a["can_create_streams"], a["can_invite_others_to_realm"] = private || public || web, s.May(me, "can_invite_users_group")
}
