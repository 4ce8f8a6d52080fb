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
	Custom("POST", "/register", register).AllowVisitors().Returns(registrationNotation()),
}

type registerForm struct {
	queueForm
	HistoryDays int64              `form:"presence_history_limit_days,default=14,min=0"`
	FetchTypes  form.Opt[[]string] `form:"fetch_event_types,maxitems=1000"`
}

// queueForm is the parameters that describe an event queue.
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

// capsForm is the capabilities that a client declares. Unknown keys are ignored.
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

// caps returns the capabilities as bits. The order of the list is the order of the constants in the realm.
func (f *capsForm) caps() (c realm.Caps) {
	if f == nil {
		return 0
	}
	for i, is := range []bool{f.NotificationNull, f.BulkDeletion, f.AvatarOptional, f.ChannelTyping, f.SettingsObject,
		f.LinkifierTemplate, f.UserListIncomplete, f.DeactivatedGroups, f.ArchivedChannels, f.EmptyTopic,
		f.SimplifiedPresence, f.IndividualEmoji} {
		if is {
			c |= 1 << i
		}
	}
	return c
}

// registrationMemory is the memory of a registration's answer, in bytes, beside the parts that all registrations
// share. It is asked for before the queue is opened, because a client whose registration fails opens another queue.
const registrationMemory = 128 << 10

func register(c *Call, f registerForm) (Answer, error) {
	q, err := f.queue(c)
	if err != nil {
		return nil, err
	}
	if c.QueueOnly {
		return openQueueOnly(c, realm.Register{Queue: q, AllPublicGiven: f.AllPublic.Set})
	}
	if err := c.reserveMemory(registrationMemory); err != nil {
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
		if err := encodeUsersAhead(c, &q); err != nil {
			return nil, err
		}
	}
	if wants("stream") || wants("subscription") {
		if err := encodeChannelsAhead(c, wants("subscription") && f.Subscribers == form.AllSubscribers); err != nil {
			return nil, err
		}
	}
	open := func(cmd realm.Register) (realm.Registered, error) { return Execute(c, cmd) }
	if c.OpenQueue != nil {
		open = c.OpenQueue
	}
	r, err := open(realm.Register{Queue: q, AllPublicGiven: f.AllPublic.Set,
		State: func(v realm.View, _ *realm.Queue) (any, error) {
			s := &initialState{call: c, View: v, queue: &q, Client: ClientOf(&q), answer: Answer{}, presence: rows,
				fetchTypesNamed: fetch.Set, wants: wants}
			s.build()
			return s, nil
		}})
	if err != nil {
		return nil, err
	}
	s := r.State.(*initialState)
	a := s.finish()
	a["zulip_version"], a["zulip_merge_base"], a["zulip_feature_level"] = Version, Version, FeatureLevel
	a["queue_id"], a["last_event_id"], a["idle_queue_timeout_secs"] = nil, -1, realm.DefaultIdle
	if r.Queue != nil { // logged-out visitors have none
		a["queue_id"], a["idle_queue_timeout_secs"] = r.Queue.ID, r.Queue.Idle
	}
	return a, nil
}

// openQueueOnly opens a queue for another node, which builds the state itself.
func openQueueOnly(c *Call, cmd realm.Register) (Answer, error) {
	cmd.State = func(realm.View, *realm.Queue) (any, error) { return nil, nil }
	r, err := Execute(c, cmd)
	if err != nil || r.Queue == nil {
		return Answer{}, err
	}
	return Answer{"queue_id": r.Queue.ID}, nil
}

// build adds all requested sections to the answer.
func (s *initialState) build() {
	var same [][]byte
	for _, x := range sections {
		switch {
		case !x.wanted(s.wants):
		case x.constantJSON != nil:
			same = append(same, x.constantJSON)
		default:
			x.build(s)
		}
	}
	switch len(same) {
	case 0:
	case constants.n:
		s.answer["constants"] = EncodedFields{sharedFragment(constants.all)}
	default:
		s.answer["constants"] = EncodedFields{ownFragment(bytes.Join(same, comma.JSON))}
	}
}

// constants is the encoded fields of all sections that never change.
var constants = func() (c struct {
	n   int
	all []byte
}) {
	var all [][]byte
	for _, x := range sections {
		if x.constantJSON != nil {
			all = append(all, x.constantJSON)
		}
	}
	c.n, c.all = len(all), bytes.Join(all, comma.JSON)
	return c
}()

// queue returns the queue that the form describes. It refuses parameters that logged-out visitors cannot use.
func (f *queueForm) queue(c *Call) (realm.Queue, error) {
	q := realm.Queue{Markdown: f.Markdown, Slim: f.Slim, AllPublic: f.AllPublic.Value, Gravatar: c.Account != nil,
		Client: c.Caller.Client, Idle: f.Idle.Seconds, Caps: f.Caps.caps()}
	if c.Account == nil {
		if f.Gravatar.Value {
			return q, realm.BadRequest("Invalid 'client_gravatar' parameter for anonymous request")
		}
		if f.Subscribers != form.NoSubscribers {
			return q, realm.BadRequest("Invalid 'include_subscribers' parameter for anonymous request")
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
			return q, realm.BadRequest("Invalid narrow[%d]: Value error, element is not a string pair", i)
		}
		operand := t.Operand.Text
		switch t.Operator {
		case "channel", "stream", "topic", "sender", "mentions":
		case "is":
			if operand == "followed" {
				return q, realm.BadRequest("Operand followed not supported.")
			}
		default:
			return q, realm.BadRequest("Operator %s not supported.", t.Operator)
		}
		q.Narrow = append(q.Narrow, [2]string{t.Operator, operand})
	}
	return q, nil
}

// initialState is the answer to a registration while it is built, inside one turn.
type initialState struct {
	realm.View
	Client
	call             *Call
	queue            *realm.Queue
	answer           Answer
	presence         []presence.Row
	fetchTypesNamed  bool // the request named fetch or event types
	wants            func(string) bool
	channels         []visibleChannel // valid if channelsGathered
	channelsGathered bool
	deferred         []func() // run after the turn
}

// afterTurn schedules work with data that is already copied out of the realm, to keep the turn short.
func (s *initialState) afterTurn(fn func()) { s.deferred = append(s.deferred, fn) }

// finish runs the scheduled work and returns the answer. Call it after the turn.
func (s *initialState) finish() Answer {
	for _, fn := range s.deferred {
		fn()
	}
	return s.answer
}

// section is a part of the initial state. The client gets it if it requested all of its fetch types.
type section struct {
	types        []string
	build        func(*initialState)
	constantJSON []byte // instead of build: encoded name and value that never change
	fields       string // its fields in the notation of package shape; each is optional
}

func (x section) wanted(wants func(string) bool) bool {
	for _, t := range x.types {
		if !wants(t) {
			return false
		}
	}
	return true
}

func sectionFor(types string, build func(*initialState)) section {
	return section{types: strings.Fields(types), build: build}
}

// fieldSection is a section with one field, declared in the notation of package shape. value returns its value.
func fieldSection(types, field string, value func(*initialState) any) section {
	name, _, _ := strings.Cut(field, ":")
	return sectionFor(types, func(s *initialState) { s.answer[name] = value(s) }).returns(field)
}

// returns declares the fields of the section.
func (x section) returns(fields string) section { x.fields = fields; return x }

// registrationNotation returns the notation of a registration's answer. Every section's fields are optional, because
// the client may not have requested them.
func registrationNotation() string {
	fields := make([]string, len(sections))
	for i, x := range sections {
		fields[i] = x.fields
	}
	return "{zulip_version: str, zulip_merge_base: str, zulip_feature_level: int, queue_id: str?, " +
		"idle_queue_timeout_secs: int, last_event_id: int, ~" + strings.Join(fields, ", ") + "}"
}

// constantSection is a section with one field, declared in the notation of package shape, whose value never changes.
func constantSection(types, field string, value any) section {
	name, _, _ := strings.Cut(field, ":")
	x := sectionFor(types, nil).returns(field)
	b := encode(obj{name: value})
	x.constantJSON = b[1 : len(b)-1]
	return x
}

// sections is the whole initial state, by fetch type.
var sections = []section{
	sectionFor("message", func(s *initialState) {
		s.answer["max_message_id"] = int64(-1)
		if s.Me() != nil {
			s.answer["max_message_id"] = maxMessageID(s.View)
		}
	}).returns("max_message_id: int"),
	sectionFor("realm", orgSection).returns(realmFields + ", " + serverFields),
	sectionFor("realm_user", usersSection).
		returns("realm_users: [RegisteredUser], realm_non_active_users: [RegisteredUser], " +
			"cross_realm_bots: [SystemBot]"),
	sectionFor("realm_user", ownUserSection).returns(ownUserFields),
	sectionFor("realm_user_groups", groupsSection).returns("realm_user_groups: [Group]"),
	sectionFor("presence", func(s *initialState) {
		modern := s.Slim || s.Has(realm.CapSimplifiedPresence)
		out, newest := newPresenceMap(s.View, s.presence, s.call.Site, modern)
		s.answer["presences"], s.answer["presence_last_update_id"], s.answer["server_timestamp"] = out, newest,
			nowWithFraction(s.call)
	}).returns("presences: {*: Presence | OldPresence}, presence_last_update_id: int, server_timestamp: num"),
	sectionFor("user_settings", func(s *initialState) {
		s.answer["user_settings"] = rawJSON(settingsJSON(s.Me(), true))
	}).returns("user_settings: UserSettings"),
	sectionFor("realm_user_settings_defaults", defaultsSection).
		returns("realm_user_settings_defaults: {" + preferenceFields + "}"),
	sectionFor("stream", streamsSection).returns("streams: [Channel]"),
	sectionFor("subscription", subscriptionsSection).
		returns("subscriptions: [Subscription], unsubscribed: [Subscription], never_subscribed: [OtherChannel]"),
	sectionFor("default_streams", defaultStreamsSection).returns("realm_default_streams: [int]"),
	sectionFor("default_stream_groups", defaultStreamGroupsSection).
		returns("realm_default_stream_groups: [DefaultChannelGroup]"),
	sectionFor("channel_folders", channelFoldersSection).returns("channel_folders: [Folder]"),
	sectionFor("user_topic", userTopicsSection).
		returns("user_topics: [UserTopic]"),
	sectionFor("muted_topics", mutedTopicsSection).returns("muted_topics: [[str | int]]"),
	constantSection("giphy", "giphy_api_key: str", ""),
	constantSection("tenor", "tenor_api_key: str", ""),
	constantSection("klipy", "klipy_api_key: str", ""),
	constantSection("realm_billing", "realm_billing: {has_pending_sponsorship_request: bool}",
		obj{"has_pending_sponsorship_request": false}),
	constantSection("realm_embedded_bots", "realm_embedded_bots: []", []any{}),
	constantSection("realm_filters", "realm_filters: []", []any{}),
	constantSection("stop_words", "stop_words: [str]", realm.StopWords()),
	constantSection("video_calls", "has_zoom_token: bool", false),
	constantSection("video_calls", "has_webex_token: bool", false),
	fieldSection("onboarding_steps", "onboarding_steps: [OnboardingStep]", func(s *initialState) any {
		return newOnboardingSteps(s.OnboardingStepsLeft(s.User))
	}),
	constantSection("onboarding_steps", "navigation_tour_video_url: str?", nil),
	constantSection("custom_profile_fields", "custom_profile_field_types: {*: {id: int, name: str}}",
		profileFieldTypes()),
	sectionFor("message update_message_flags", unreadSection).
		returns("unread_msgs: UnreadMessages"),
	sectionFor("starred_messages", starredSection).returns("starred_messages: [int]"),
	sectionFor("recent_private_conversations", recentDirectConversationsSection).
		returns("recent_private_conversations: [Conversation]"),
	fieldSection("alert_words", "alert_words: [str]", func(s *initialState) any { return s.AlertWordsOf(s.User) }),
	fieldSection("muted_users", "muted_users: [MutedUser]", func(s *initialState) any {
		return newMutedUsers(s.MutedBy(s.User))
	}),
	sectionFor("user_status", statusSection).returns("user_status: {*: Status}"),
	fieldSection("custom_profile_fields", "custom_profile_fields: [ProfileField]", func(s *initialState) any {
		return newProfileFields(s.ProfileFields())
	}),
	fieldSection("realm_bot", "realm_bots: [Bot]", func(s *initialState) any { return botObjects(s.View) }),
	sectionFor("drafts", draftsSection).returns("drafts: [Draft]"),
	fieldSection("scheduled_messages", "scheduled_messages: [ScheduledMessage]", func(s *initialState) any {
		return newScheduledList(s.ScheduledOf(s.User), s.Client)
	}),
	fieldSection("reminders", "reminders: [Reminder]", func(s *initialState) any {
		return each(s.RemindersOf(s.User), newReminder)
	}),
	fieldSection("saved_snippets", "saved_snippets: [Snippet]", func(s *initialState) any {
		return each(s.SnippetsOf(s.User), newSnippet)
	}),
	fieldSection("navigation_views", "navigation_views: [View]", func(s *initialState) any {
		return newViews(s.NavigationViewsOf(s.User))
	}),
	fieldSection("realm_domains", "realm_domains: [Domain]", func(s *initialState) any {
		return each(s.Domains(), newDomain)
	}),
	fieldSection("realm_playgrounds", "realm_playgrounds: [Playground]", func(s *initialState) any {
		return each(s.Playgrounds(), newPlayground)
	}),
	sectionFor("realm_linkifiers", func(s *initialState) {
		s.answer["realm_linkifiers"] = []any{}
		if s.Has(realm.CapLinkifierURLTemplate) {
			s.answer["realm_linkifiers"] = each(s.Linkifiers(), newLinkifier)
		}
	}).returns("realm_linkifiers: [Linkifier]"),
	fieldSection("realm_emoji", "realm_emoji: {*: Emoji}", func(s *initialState) any {
		return emojisByID(s.CustomEmojis(), s.call.Site)
	}),
	fieldSection(
		"realm_incoming_webhook_bots",
		"realm_incoming_webhook_bots: [Integration]",
		func(s *initialState) any {
			return s.call.Tools.integrations().described
		},
	),
	fieldSection("device", "devices: {*: Device}", func(s *initialState) any {
		return devicesByID(s.DevicesOf(s.User))
	}),
}

func profileFieldTypes() any {
	o := obj{}
	for i, t := range []struct {
		key, name string
	}{{"SHORT_TEXT", "Text (short)"}, {"LONG_TEXT", "Text (long)"}, {"SELECT", "List of options"}, {"DATE", "Date"},
		{"URL", "Link"}, {"USER", "Users"}, {"EXTERNAL_ACCOUNT", "External account"}, {"PRONOUNS", "Pronouns"}} {
		o[t.key] = obj{"id": i + 1, "name": t.name}
	}
	return o
}

// settingsJSON returns the preferences of an account as one object with sorted names. A logged-out visitor gets the
// defaults. own includes the time zone.
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
			b = append(b, notificationSounds...)
		default:
			b = appendJSON(b, u.Setting(name))
		}
	}
	b[0] = '{'
	return append(b, '}')
}

var emojisets = encode([]any{obj{"key": "google", "text": "Google"}, obj{"key": "twitter", "text": "Twitter"},
	obj{"key": "text", "text": "Plain text"}, obj{"key": "google-blob", "text": "Google blobs"}})

var notificationSounds = encode(realm.NotificationSounds)

// settingNames is the sorted names of the fields of settingsJSON.
var settingNames = func() []string {
	names := []string{"timezone", "emojiset_choices", "available_notification_sounds"}
	for _, s := range realm.UserSettings {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}()

// preferenceFields is the fields of settingsJSON without the time zone.
var preferenceFields = settingFields("", realm.UserSettings) +
	", emojiset_choices: [{key: str, text: str}], available_notification_sounds: [str]"

const ownUserFields = "avatar_source: str, avatar_url: str, avatar_url_medium: str, delivery_email: str, " +
	"email: str, full_name: str, user_id: int, is_admin: bool, is_owner: bool, " +
	"is_moderator: bool, is_guest: bool, can_create_private_streams: bool, can_create_public_streams: bool, " +
	"can_create_streams: bool, can_create_web_public_streams: bool, " +
	"can_invite_others_to_realm: bool"

// ownUserSection adds the caller's own account. A logged-out visitor gets the values of an anonymous user.
func ownUserSection(s *initialState) {
	a, me := s.answer, s.Me()
	if me == nil {
		for k, v := range (obj{
			"avatar_source":                 "J",
			"avatar_url":                    "",
			"avatar_url_medium":             "",
			"delivery_email":                "",
			"email":                         "",
			"full_name":                     "Anonymous User",
			"user_id":                       0,
			"is_admin":                      false,
			"is_owner":                      false,
			"is_moderator":                  false,
			"is_guest":                      true,
			"can_create_private_streams":    false,
			"can_create_public_streams":     false,
			"can_create_streams":            false,
			"can_create_web_public_streams": false,
			"can_invite_others_to_realm":    false,
		}) {
			a[k] = v
		}
		return
	}
	p := s.UserInfo(me.ID)
	url := ownAvatarURL(p, s.call.Site)
	a["avatar_source"], a["avatar_url"], a["avatar_url_medium"] = me.Avatar, url,
		strings.Replace(url, ".png", "-medium.png", 1)
	a["delivery_email"], a["email"], a["full_name"], a["user_id"] = me.Email, apiEmail(p, s.call.Site), me.Name, me.ID
	a["is_admin"], a["is_owner"], a["is_moderator"], a["is_guest"] = me.IsAdmin(), me.Role == realm.Owner,
		me.IsModerator(), me.IsGuest()
	private, public := s.HasPermission(me, "can_create_private_channel_group"),
		s.HasPermission(me, "can_create_public_channel_group")
	web := s.HasPermission(me, "can_create_web_public_channel_group")
	a["can_create_private_streams"], a["can_create_public_streams"], a["can_create_web_public_streams"] = private,
		public, web
	a["can_create_streams"], a["can_invite_others_to_realm"] = private || public || web,
		s.HasPermission(me, "can_invite_users_group")
}
