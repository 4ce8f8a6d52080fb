package wire

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var registerEndpoints = []Endpoint{
	Custom("POST", "/register", register).AllowVisitors(),
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
	ShortUserList      bool     `form:"short_user_list"`
}

// caps returns the capabilities as bits. The order of the list is the order of the constants in the realm.
func (f *capsForm) caps() (c realm.Caps) {
	if f == nil {
		return 0
	}
	for i, is := range []bool{f.NotificationNull, f.BulkDeletion, f.AvatarOptional, f.ChannelTyping, f.SettingsObject,
		f.LinkifierTemplate, f.UserListIncomplete, f.DeactivatedGroups, f.ArchivedChannels, f.EmptyTopic,
		f.SimplifiedPresence, f.IndividualEmoji, f.ShortUserList} {
		if is {
			c |= 1 << i
		}
	}
	return c
}

// registrationMemory is the memory of a registration's answer, in bytes, beside the parts that all registrations
// share. It is asked for before the queue is opened, because a client whose registration fails opens another queue.
const registrationMemory = 128 << 10

func register(c *Call, f registerForm) (*registration, error) {
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
	scope := c.KeyScope()
	wants := func(name string) bool {
		return (!fetch.Set || slices.Contains(fetch.Value, name)) && scope.AllowsEvents(name)
	}
	short, err := prepareUserList(c, &q, wants)
	if err != nil {
		return nil, err
	}
	var rows []presence.Row
	switch {
	case c.Account == nil || !wants("presence"):
	case short:
		rows, err = presenceOfListed(c, f.HistoryDays)
	default:
		rows = presenceRows(c, -1, f.HistoryDays)
	}
	if err != nil {
		return nil, err
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
			s := &initialState{call: c, View: v, queue: &q, Client: ClientOf(&q), answer: &registration{},
				presence: rows, fetchTypesNamed: fetch.Set, wants: wants,
				short: v.GetsShortList(q.Caps)}
			s.build()
			return s, nil
		}})
	if err != nil {
		return nil, err
	}
	s := r.State.(*initialState)
	a := s.finish()
	a.serverVersion, a.LastEvent, a.Idle = thisVersion, -1, realm.DefaultIdle
	if r.Queue != nil { // logged-out visitors have none
		a.Queue, a.Idle = r.Queue.ID, r.Queue.Idle
	}
	return a, nil
}

// openQueueOnly opens a queue for another node, which builds the state itself and reads nothing of the answer.
func openQueueOnly(c *Call, cmd realm.Register) (*registration, error) {
	cmd.State = func(realm.View, *realm.Queue) (any, error) { return nil, nil }
	_, err := Execute(c, cmd)
	return nil, err
}

// build adds all requested sections to the answer.
func (s *initialState) build() {
	for _, x := range sections {
		if x.wanted(s.wants) {
			x.build(s)
		}
	}
	var same [][]byte
	for _, x := range constants {
		if s.wants(x.fetchType) {
			same = append(same, x.json)
		}
	}
	switch len(same) {
	case 0:
	case len(constants):
		s.answer.Constants.Fragment = allConstants
	default:
		s.answer.Constants.Fragment = ownFragment(bytes.Join(same, comma.JSON))
	}
}

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
	answer           *registration
	presence         []presence.Row
	fetchTypesNamed  bool // the request named fetch or event types
	wants            func(string) bool
	channels         []visibleChannel // valid if channelsGathered
	channelsGathered bool
	deferred         []func() // run after the turn
	short            bool     // the client gets a short list of users
	listed           []listedUser
}

// afterTurn schedules work with data that is already copied out of the realm, to keep the turn short.
func (s *initialState) afterTurn(fn func()) { s.deferred = append(s.deferred, fn) }

// finish runs the scheduled work and returns the answer. Call it after the turn.
func (s *initialState) finish() *registration {
	for _, fn := range s.deferred {
		fn()
	}
	return s.answer
}

// section is a part of the initial state. The client gets it if it requested all of its fetch types.
type section struct {
	types []string
	build func(*initialState)
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
	return section{strings.Fields(types), build}
}

// registration is the answer to a registration. The fields of a section are absent if the client did not request it.
type registration struct {
	serverVersion
	Queue     realm.QueueID `json:"queue_id" zero:"null"`
	LastEvent int           `json:"last_event_id"` // always -1
	Idle      int64         `json:"idle_queue_timeout_secs"`

	Constants encodedFields[constantTable]
	Realm     encodedFields[registeredOrganization]
	*ownUser
	*presencesAnswer
	UserSettings *userSettingsJSON `json:"user_settings,omitzero"`
	*terminalSettings
	Defaults encoded[preferences]  `json:"realm_user_settings_defaults,omitzero"`
	Devices  map[string]deviceJSON `json:"devices,omitzero"`

	Users         encoded[[]registeredUserJSON]  `json:"realm_users,omitzero"`
	InactiveUsers encoded[[]registeredUserJSON]  `json:"realm_non_active_users,omitzero"`
	SystemBots    encoded[[]systemBotJSON]       `json:"cross_realm_bots,omitzero"`
	Groups        encoded[[]registeredGroupJSON] `json:"realm_user_groups,omitzero"`
	Bots          []botJSON                      `json:"realm_bots,omitzero"`
	Statuses      map[string]statusJSON          `json:"user_status,omitzero"`
	MutedUsers    []mutedUserJSON                `json:"muted_users,omitzero"`
	ShortList     bool                           `json:"realm_users_incomplete,omitzero"`
	ActiveUsers   int                            `json:"realm_active_user_count,omitzero"`

	Channels        encoded[[]channelJSON]      `json:"streams,omitzero"`
	Subscriptions   encoded[[]subscriptionJSON] `json:"subscriptions,omitzero"`
	Unsubscribed    encoded[[]subscriptionJSON] `json:"unsubscribed,omitzero"`
	NeverSubscribed encoded[[]otherChannelJSON] `json:"never_subscribed,omitzero"`
	DefaultChannels []realm.ChannelID           `json:"realm_default_streams,omitzero"`
	DefaultGroups   []defaultChannelGroupJSON   `json:"realm_default_stream_groups,omitzero"`
	Folders         []folderJSON                `json:"channel_folders,omitzero"`
	UserTopics      []userTopicJSON             `json:"user_topics,omitzero"`
	MutedTopics     []mutedTopic                `json:"muted_topics,omitzero"`

	MaxMessage    *int64                 `json:"max_message_id,omitzero"`
	Unread        *unreadMessagesJSON    `json:"unread_msgs,omitzero"`
	Starred       []realm.MessageID      `json:"starred_messages,omitzero"`
	Conversations []conversationJSON     `json:"recent_private_conversations,omitzero"`
	AlertWords    []string               `json:"alert_words,omitzero"`
	Drafts        []draftJSON            `json:"drafts,omitzero"`
	Scheduled     []scheduledMessageJSON `json:"scheduled_messages,omitzero"`
	Reminders     []reminderJSON         `json:"reminders,omitzero"`
	Snippets      []snippetJSON          `json:"saved_snippets,omitzero"`
	Views         []viewJSON             `json:"navigation_views,omitzero"`
	Onboarding    []onboardingStepJSON   `json:"onboarding_steps,omitzero"`

	ProfileFields []profileFieldJSON         `json:"custom_profile_fields,omitzero"`
	Domains       []domainJSON               `json:"realm_domains,omitzero"`
	Playgrounds   []playgroundJSON           `json:"realm_playgrounds,omitzero"`
	Linkifiers    []linkifierJSON            `json:"realm_linkifiers,omitzero"`
	Emoji         map[string]emojiJSON       `json:"realm_emoji,omitzero"`
	Integrations  encoded[[]integrationJSON] `json:"realm_incoming_webhook_bots,omitzero"`

	GIPHYKey *string `json:"giphy_api_key,omitzero"`
	KLIPYKey *string `json:"klipy_api_key,omitzero"`
	TenorKey *string `json:"tenor_api_key,omitzero"`
}

// sections is the whole initial state but for constants, by fetch type.
var sections = []section{
	sectionFor("message", func(s *initialState) {
		s.answer.MaxMessage = ptr(int64(-1))
		if s.Me() != nil {
			s.answer.MaxMessage = ptr(maxMessageID(s.View))
		}
	}),
	sectionFor("realm", orgSection),
	sectionFor("realm_user", usersSection),
	sectionFor("realm_user", ownUserSection),
	sectionFor("realm_user_groups", groupsSection),
	sectionFor("presence", func(s *initialState) {
		modern := s.Slim || s.Has(realm.CapSimplifiedPresence)
		out, newest := newPresenceMap(s.View, s.presence, s.call.Site, modern)
		s.answer.presencesAnswer = &presencesAnswer{out, newest, nowWithFraction(s.call)}
	}),
	sectionFor("user_settings", func(s *initialState) { s.answer.UserSettings = newUserSettings(s.Me()) }),
	sectionFor("update_display_settings update_global_notifications", terminalSection),
	sectionFor("realm_user_settings_defaults", defaultsSection),
	sectionFor("stream", streamsSection),
	sectionFor("subscription", subscriptionsSection),
	sectionFor("default_streams", defaultStreamsSection),
	sectionFor("default_stream_groups", defaultStreamGroupsSection),
	sectionFor("channel_folders", func(s *initialState) { s.answer.Folders = folderList(s.View, true) }),
	sectionFor("user_topic", userTopicsSection),
	sectionFor("muted_topics", mutedTopicsSection),
	sectionFor("onboarding_steps", func(s *initialState) {
		s.answer.Onboarding = newOnboardingSteps(s.OnboardingStepsLeft(s.User))
	}),
	sectionFor("message update_message_flags", unreadSection),
	sectionFor("starred_messages", starredSection),
	sectionFor("recent_private_conversations", recentDirectConversationsSection),
	sectionFor("alert_words", func(s *initialState) { s.answer.AlertWords = nonNil(s.AlertWordsOf(s.User)) }),
	sectionFor("muted_users", func(s *initialState) { s.answer.MutedUsers = newMutedUsers(s.MutedBy(s.User)) }),
	sectionFor("user_status", statusSection),
	sectionFor("custom_profile_fields", func(s *initialState) {
		s.answer.ProfileFields = newProfileFields(s.ProfileFields())
	}),
	sectionFor("realm_bot", func(s *initialState) { s.answer.Bots = visibleBots(s.View, s.short) }),
	sectionFor("drafts", draftsSection),
	sectionFor("scheduled_messages", func(s *initialState) {
		s.answer.Scheduled = newScheduledList(s.ScheduledOf(s.User), s.Client)
	}),
	sectionFor("reminders", func(s *initialState) { s.answer.Reminders = each(s.RemindersOf(s.User), newReminder) }),
	sectionFor("saved_snippets", func(s *initialState) { s.answer.Snippets = each(s.SnippetsOf(s.User), newSnippet) }),
	sectionFor("navigation_views", func(s *initialState) { s.answer.Views = newViews(s.NavigationViewsOf(s.User)) }),
	sectionFor("realm_domains", func(s *initialState) { s.answer.Domains = each(s.Domains(), newDomain) }),
	sectionFor("realm_playgrounds", func(s *initialState) {
		s.answer.Playgrounds = each(s.Playgrounds(), newPlayground)
	}),
	sectionFor("realm_linkifiers", func(s *initialState) {
		s.answer.Linkifiers = []linkifierJSON{}
		if s.Has(realm.CapLinkifierURLTemplate) {
			s.answer.Linkifiers = each(s.Linkifiers(), newLinkifier)
		}
	}),
	sectionFor("realm_emoji", func(s *initialState) {
		s.answer.Emoji = emojisByID(s.CustomEmojis(), s.call.Site)
	}),
	sectionFor("realm_incoming_webhook_bots", func(s *initialState) {
		s.answer.Integrations = inFragments[[]integrationJSON](s.call.Tools.integrations().described...)
	}),
	sectionFor("giphy", func(s *initialState) { s.answer.GIPHYKey = ptr(s.gifKeys().GIPHY) }),
	sectionFor("klipy", func(s *initialState) { s.answer.KLIPYKey = ptr(s.gifKeys().KLIPY) }),
	sectionFor("tenor", func(s *initialState) { s.answer.TenorKey = ptr(s.gifKeys().Tenor) }),
	sectionFor("device", func(s *initialState) { s.answer.Devices = devicesByID(s.DevicesOf(s.User)) }),
}

// constant is a section with one field that never changes.
type constant struct {
	fetchType string
	field     shape.TableField
	json      []byte // name and value
}

func newConstant[T any](fetchType, name string, value T) constant {
	return constant{fetchType, shape.TableField{Name: name, Shape: formOf[T]()},
		append(append(appendString(nil, name), ':'), encode(value)...)}
}

// constants is the part of the initial state that never changes.
var constants = []constant{
	newConstant("realm_billing", "realm_billing", billing{}),
	newConstant("realm_embedded_bots", "realm_embedded_bots", noElements{}),
	newConstant("realm_filters", "realm_filters", noElements{}),
	newConstant("stop_words", "stop_words", realm.StopWords()),
	newConstant("video_calls", "has_zoom_token", false),
	newConstant("video_calls", "has_webex_token", false),
	newConstant("onboarding_steps", "navigation_tour_video_url", (*string)(nil)),
	newConstant("custom_profile_fields", "custom_profile_field_types", profileFieldTypes),
}

// allConstants is the encoded fields of all constants, which nearly all registrations contain.
var allConstants = sharedFragment(bytes.Join(each(constants, func(c constant) []byte { return c.json }), comma.JSON))

// constantTable is an object with the fields of all constants.
type constantTable struct{}

// JSONShape returns the shape of the object.
func (constantTable) JSONShape() *shape.Shape {
	out := &shape.Shape{Kind: "object", Closed: true, Fields: map[string]shape.Field{}}
	for _, c := range constants {
		out.Fields[c.field.Name] = shape.Field{Shape: c.field.Shape, ListedRequired: true}
	}
	return out
}

type billing struct {
	Pending bool `json:"has_pending_sponsorship_request"`
}

// numberedName is the number and the name of a choice.
type numberedName struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

var profileFieldTypes = map[string]numberedName{"SHORT_TEXT": {1, "Text (short)"}, "LONG_TEXT": {2, "Text (long)"},
	"SELECT": {3, "List of options"}, "DATE": {4, "Date"}, "URL": {5, "Link"}, "USER": {6, "Users"},
	"EXTERNAL_ACCOUNT": {7, "External account"}, "PRONOUNS": {8, "Pronouns"}}

// preferences is the settings of an account, or the defaults of new accounts.
type preferences struct {
	Values    preferenceValues
	Emojisets encoded[[]emojiset] `json:"emojiset_choices"`
	Sounds    encoded[[]string]   `json:"available_notification_sounds"`
}

// preferenceValues is an account of which only the settings are used.
type preferenceValues struct{ *realm.User }

// JSONFields returns a field for each setting.
func (preferenceValues) JSONFields() []shape.TableField {
	return settingFields(realm.UserSettings, false)
}

// JSONField returns the value of a setting.
func (p preferenceValues) JSONField(i int) any { return p.Setting(realm.UserSettings[i].Name) }

type userSettingsJSON struct {
	preferences
	Timezone string `json:"timezone"`
}

type emojiset struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

var (
	emojisets = encodedAs[[]emojiset](encode([]emojiset{{"google", "Google"}, {"twitter", "Twitter"},
		{"text", "Plain text"}, {"google-blob", "Google blobs"}}))
	notificationSounds = encodedAs[[]string](encode(realm.NotificationSounds))
)

// newPreferences returns settings by name. The map must not change until they are encoded.
func newPreferences(settings map[string]any) preferences {
	return preferences{preferenceValues{&realm.User{Settings: settings}}, emojisets, notificationSounds}
}

// newUserSettings returns the settings of an account. A logged-out visitor gets the defaults.
func newUserSettings(u *realm.User) *userSettingsJSON {
	if u == nil {
		return &userSettingsJSON{preferences: newPreferences(map[string]any{"web_home_view": "recent"})}
	}
	return &userSettingsJSON{newPreferences(maps.Clone(u.Settings)), u.Timezone}
}

// terminalSettings are copies of two settings that answers had until feature level 439. Release 0.7.0 of the terminal
// client, the newest that package managers have, ends at its start without them. Its later versions read user_settings.
type terminalSettings struct {
	TwentyFourHours bool `json:"twenty_four_hour_time"`
	DirectContents  bool `json:"pm_content_in_desktop_notifications"`
}

// terminalSection answers the terminal client if it names the former fetch types of its settings.
func terminalSection(s *initialState) {
	if !s.fetchTypesNamed || s.Me() == nil || ClientName(s.call.Agent) != "ZulipTerminal" {
		return
	}
	hours, _ := s.Me().Setting("twenty_four_hour_time").(bool) // null, which the client does not know, is false
	contents, _ := s.Me().Setting("pm_content_in_desktop_notifications").(bool)
	s.answer.terminalSettings = &terminalSettings{hours, contents}
}

// ownUser is the caller's own account.
type ownUser struct {
	ID               realm.UserID `json:"user_id"`
	Email            string       `json:"email"`
	DeliveryEmail    string       `json:"delivery_email"`
	Name             string       `json:"full_name"`
	AvatarSource     string       `json:"avatar_source"`
	Avatar           string       `json:"avatar_url"`
	AvatarMedium     string       `json:"avatar_url_medium"`
	IsOwner          bool         `json:"is_owner"`
	IsAdmin          bool         `json:"is_admin"`
	IsModerator      bool         `json:"is_moderator"`
	IsGuest          bool         `json:"is_guest"`
	CreatesChannels  bool         `json:"can_create_streams"`
	CreatesPrivate   bool         `json:"can_create_private_streams"`
	CreatesPublic    bool         `json:"can_create_public_streams"`
	CreatesWebPublic bool         `json:"can_create_web_public_streams"`
	Invites          bool         `json:"can_invite_others_to_realm"`
}

// ownUserSection adds the caller's own account. A logged-out visitor gets the values of an anonymous user.
func ownUserSection(s *initialState) {
	me := s.Me()
	if me == nil {
		s.answer.ownUser = &ownUser{AvatarSource: "J", Name: "Anonymous User", IsGuest: true}
		return
	}
	p := s.UserInfo(me.ID)
	url := ownAvatarURL(p, s.call.Site)
	out := &ownUser{
		ID:               me.ID,
		Email:            apiEmail(p, s.call.Site),
		DeliveryEmail:    me.Email,
		Name:             me.Name,
		AvatarSource:     me.Avatar,
		Avatar:           url,
		AvatarMedium:     strings.Replace(url, ".png", "-medium.png", 1),
		IsOwner:          me.Role == realm.Owner,
		IsAdmin:          me.IsAdmin(),
		IsModerator:      me.IsModerator(),
		IsGuest:          me.IsGuest(),
		CreatesPrivate:   s.HasPermission(me, "can_create_private_channel_group"),
		CreatesPublic:    s.HasPermission(me, "can_create_public_channel_group"),
		CreatesWebPublic: s.HasPermission(me, "can_create_web_public_channel_group"),
		Invites:          s.HasPermission(me, "can_invite_users_group"),
	}
	out.CreatesChannels = out.CreatesPrivate || out.CreatesPublic || out.CreatesWebPublic
	s.answer.ownUser = out
}
