package wire

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"parley/actors/realm"
	"parley/wire/shape"
)

// objectTypes is the JSON objects that are structs and that notations name.
var objectTypes = []reflect.Type{
	reflect.TypeFor[attachmentJSON](),
	reflect.TypeFor[deviceJSON](),
	reflect.TypeFor[emojiJSON](),
	reflect.TypeFor[exportJSON](),
	reflect.TypeFor[integrationJSON](),
	reflect.TypeFor[topicLinkJSON](),
	reflect.TypeFor[submessageJSON](),
	reflect.TypeFor[revisionJSON](),
	reflect.TypeFor[personJSON](),
	reflect.TypeFor[messageJSON](),
	reflect.TypeFor[foundMessageJSON](),
	reflect.TypeFor[arrivedMessageJSON](),
	reflect.TypeFor[reactionJSON](),
	reflect.TypeFor[inviteJSON](),
	reflect.TypeFor[groupValueJSON](),
	reflect.TypeFor[groupJSON](),
	reflect.TypeFor[linkifierJSON](),
	reflect.TypeFor[playgroundJSON](),
	reflect.TypeFor[defaultChannelGroupJSON](),
	reflect.TypeFor[domainJSON](),
	reflect.TypeFor[folderJSON](),
	reflect.TypeFor[userTopicJSON](),
	reflect.TypeFor[scheduledMessageJSON](),
	reflect.TypeFor[reminderJSON](),
	reflect.TypeFor[snippetJSON](),
	reflect.TypeFor[draftJSON](),
	reflect.TypeFor[viewJSON](),
	reflect.TypeFor[userJSON](),
	reflect.TypeFor[systemBotJSON](),
	reflect.TypeFor[statusJSON](),
	reflect.TypeFor[registeredUserJSON](),
	reflect.TypeFor[reactionTypeJSON](),
	reflect.TypeFor[profileFieldJSON](),
	reflect.TypeFor[presenceJSON](),
	reflect.TypeFor[ownUserJSON](),
	reflect.TypeFor[onboardingStepJSON](),
	reflect.TypeFor[oldPresenceJSON](),
	reflect.TypeFor[mutedUserJSON](),
	reflect.TypeFor[listedUserJSON]()}

// objectNotations is the JSON objects in answers, by their name in the OpenAPI document, in the notation of package
// shape. Parts that follow from a table of the realm are made from that table.
var objectNotations = map[string]string{
	"BotService":    "{base_url: str, interface: int, token: str} | {service_name: str, config_data: {*: str}}",
	"Bot":           "{" + botFields + "}",
	"Channel":       "{" + channelFields + "}",
	"Conversation":  "{max_message_id: int, user_ids: [int]}",
	"ListedChannel": "{" + channelFields + ", is_default?: bool}",
	"OwnBot":        "{" + botFields + ", username: str, full_name: str, avatar_url: str, api_key: str}",
	"PastMessage": "{topic: str, content: str, rendered_content: str, timestamp: int, user_id: int?, " +
		"prev_topic?: str, prev_content?: str, prev_rendered_content?: str, " +
		"prev_stream?: int, stream?: int, content_html_diff?: str}",
	"OtherChannel": "{" + channelFields + ", " + subscriberListFields + "}",
	"PermissionRule": "{require_system_group: bool, allow_internet_group: bool, allow_nobody_group: bool, " +
		"allow_everyone_group: bool, default_group_name: str, " +
		"default_for_system_groups: str?, allowed_system_groups: [str]}",
	"Subscription": "{" + channelFields + ", " + personalFields + ", " + subscriberListFields + "}",
	"UnreadMessages": "{count: int, pms: [{other_user_id: int, sender_id: int, unread_message_ids: [int]}], " +
		"streams: [{stream_id: int, topic: str, unread_message_ids: [int]}], " +
		"huddles: [{user_ids_string: str, unread_message_ids: [int]}], mentions: [int], " +
		"old_unreads_missing: bool}",
	"UserSettings": "{" + preferenceFields + ", timezone: str}",
}

const (
	botFields = "user_id: int, default_sending_stream: str?, default_events_register_stream: str?, " +
		"default_all_public_streams: bool, services: [BotService]"
	personalFields = "color: str, is_muted: bool, in_home_view: bool, pin_to_top: bool, " +
		"desktop_notifications: bool?, audible_notifications: bool?, push_notifications: bool?, " +
		"email_notifications: bool?, wildcard_mentions_notify: bool?"
	subscriberListFields = "subscribers?: [int], partial_subscribers?: [int]"
	personFields         = "user_id: int, email: str, full_name: str, date_joined: str, is_owner: bool, " +
		"is_admin: bool, is_guest: bool, is_bot: bool, role: int, " +
		"avatar_version: int, is_imported_stub: bool, profile_data?: {*: {value: str, " +
		"rendered_value?: str}}"
	userFields = personFields + ", timezone: str, delivery_email: str?, avatar_url: str?, is_deleted?: bool"
)

var channelFields = "stream_id: int, name: str, description: str, rendered_description: str, date_created: int, " +
	"creator_id: int?, invite_only: bool, is_web_public: bool, " +
	"history_public_to_subscribers: bool, is_archived: bool, is_announcement_only: bool, stream_post_policy: int, " +
	"message_retention_days: int?, first_message_id: int?, folder_id: int?, " +
	"topics_policy: 'inherit' | 'allow_empty_topic' | 'disable_empty_topic' | 'empty_topic_only', " +
	"is_recently_active: bool, stream_weekly_traffic: int?, subscriber_count: int, " +
	ruleFields(realm.ChannelRules)

// ruleFields returns the fields of a table of permission settings.
func ruleFields(rules []realm.GroupSettingRule) string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Name+": GroupValue")
	}
	return strings.Join(out, ", ")
}

// settingFields returns the fields of a table of settings, with a prefix before each name.
func settingFields(prefix string, table []realm.Setting) string {
	var out []string
	for _, s := range table {
		kind := "str"
		switch s.Default.(type) {
		case bool:
			kind = "bool"
		case int64:
			kind = "int"
		}
		if s.Null {
			kind += "?"
		}
		out = append(out, prefix+s.Name+": "+kind)
	}
	return strings.Join(out, ", ")
}

// parsedShapes caches the parsed shapes of objects.
var parsedShapes = struct {
	sync.Mutex
	shapes map[string]*shape.Shape
}{shapes: map[string]*shape.Shape{}}

// mustParseShape parses a declared shape. It panics on a wrong notation, which is a programming error.
func mustParseShape(text string) *shape.Shape {
	parsedShapes.Lock()
	defer parsedShapes.Unlock()
	s, err := shape.Parse(text, objectShape)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return s
}

// objectShape returns the shape of a named object. The caller holds the lock of parsedShapes.
func objectShape(name string) (*shape.Shape, error) {
	if s, ok := parsedShapes.shapes[name]; ok {
		return s, nil
	}
	for _, t := range objectTypes {
		if s := shape.Of(t); s.Name == name {
			return s, nil
		}
	}
	text, ok := objectNotations[name]
	if !ok {
		return nil, fmt.Errorf("no object %q", name)
	}
	s, err := shape.Parse(text, objectShape)
	if err != nil {
		return nil, err
	}
	named := *s
	named.Name = name
	parsedShapes.shapes[name] = &named
	return &named, nil
}

// SuccessShape returns the shape of an endpoint's whole success, including result and msg. It returns nil if the
// endpoint never succeeds, redirects, or has no JSON answer.
func (e *Endpoint) SuccessShape() *shape.Shape {
	if e.alwaysFails || e.redirects || e.tus != nil {
		return nil
	}
	success := e.answerShape()
	common := *formOf[envelope]()
	if _, ok := success.Fields["msg"]; ok {
		common.Fields = maps.Clone(common.Fields)
		delete(common.Fields, "msg") // the endpoint declares its own
	}
	return shape.Merge(&common, success)
}

// answerShape returns the shape of the fields of a success.
func (e *Endpoint) answerShape() *shape.Shape {
	t := e.answerType
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case e.answer != "":
		return mustParseShape(e.answer)
	case t.Kind() == reflect.Struct:
		return shape.Of(t)
	}
	return formOf[noFields]()
}

// envelope is the fields that every success has.
type envelope struct {
	_       struct{} `const:"result=success msg="`
	Ignored []string `json:"ignored_parameters_unsupported,omitzero"`
}
