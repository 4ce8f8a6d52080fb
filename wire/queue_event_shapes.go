package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/shape"
)

// eventShape is one shape of an event. An event that kinds of clients get in different formats has several shapes.
type eventShape struct {
	kind, op string
	*shape.Shape
}

// eventShapes is every shape of event that this server sends. Tests check each received event against this list, and
// the list against the types that have a renderer. The OpenAPI document has each shape as an object. Type, op and
// fields distinguish each shape from all others.
var eventShapes []eventShape

// eventNotation is the shape of an event: its fields besides id, type and op, in the notation of package shape.
type eventNotation struct{ kind, op, fields string }

var eventNotations = slices.Concat([]eventNotation{
	{"delete_message", "", "message_type: 'private', message_ids: [int]"},
	{"delete_message", "", "message_type: 'private', message_id: int"},
	{"delete_message", "", "message_type: 'stream', message_ids: [int], stream_id: int, topic: str"},
	{"delete_message", "", "message_type: 'stream', message_id: int, stream_id: int, topic: str"},
	{"heartbeat", "", ""},
	{"message", "", "message: ArrivedMessage, flags: [str], local_message_id?: str"},
	{"realm_bot", "add", "bot: Bot"},
	{"realm_bot", "update",
		"bot: {user_id: int, default_sending_stream?: str?, default_events_register_stream?: str?, " +
			"default_all_public_streams?: bool, services?: [BotService]}"},
	{"realm_bot", "delete", "bot: {user_id: int}"},
	{"restart", "", "zulip_version: str, zulip_merge_base: str, zulip_feature_level: int, server_generation: int"},
	{"stream", "create", "streams: [Channel]"},
	{"stream", "delete", "streams: [{stream_id: int}], stream_ids: [int]"},
	{"stream", "update", channelUpdateFields("name", "str")},
	{"stream", "update", channelUpdateFields("topics_policy", "str")},
	{"stream", "update", channelUpdateFields("description", "str") + ", rendered_description: str"},
	{"stream", "update", channelUpdateFields("message_retention_days", "int?")},
	{"stream", "update", channelUpdateFields("folder_id", "int?")},
	{"stream", "update", channelUpdateFields("first_message_id", "int?")},
	{"stream", "update", channelUpdateFields("stream_post_policy", "int")},
	{"stream", "update", channelUpdateFields("is_announcement_only", "bool")},
	{"stream", "update", channelUpdateFields("is_recently_active", "bool")},
	{"stream", "update", channelUpdateFields("is_archived", "bool")},
	{"stream", "update", channelUpdateFields("invite_only", "bool") +
		", history_public_to_subscribers: bool, is_web_public: bool"},
	{"stream", "update", "stream_id: int, name: str, property: " + enumNotation(ruleNames(realm.ChannelRules)) +
		", value: GroupValue"},
	{"subscription", "add", "subscriptions: [Subscription]"},
	{"subscription", "remove", "subscriptions: [{stream_id: int, name: str}]"},
	{"subscription", "update", "stream_id: int, property: 'color', value: str"},
	{"subscription", "update", "stream_id: int, property: 'in_home_view' | 'is_muted' | 'pin_to_top', value: bool"},
	{"subscription", "update",
		"stream_id: int, " +
			"property: 'desktop_notifications' | 'audible_notifications' | 'push_notifications' | " +
			"'email_notifications' | 'wildcard_mentions_notify', value: bool?"},
	{"subscription", "peer_add", "stream_ids: [int], user_ids: [int]"},
	{"subscription", "peer_remove", "stream_ids: [int], user_ids: [int]"},
	// The present fields depend on the kind of edit. Some fields require others, which the notation cannot express.
	{"update_message", "",
		"user_id: int?, rendering_only: bool, edit_timestamp: int, message_id: int, message_ids: [int], " +
			"flags: [str], stream_id?: int, stream_name?: str, " +
			"content?: str, rendered_content?: str, is_me_message?: bool, orig_content?: str, " +
			"orig_rendered_content?: str, propagate_mode?: 'change_one' | 'change_later' | 'change_all', " +
			"orig_subject?: str, subject?: str, topic_links?: [TopicLink], new_stream_id?: int"},
	{"web_reload_client", "", "immediate: bool"},
},
	settingEventShapes("user_settings", "update", slices.DeleteFunc(slices.Clone(realm.UserSettings),
		func(s realm.Setting) bool { return s.Name == "default_language" })),
	[]eventNotation{{"user_settings", "update", "property: 'default_language', value: str, language_name: str"},
		{"user_settings", "update", "property: 'timezone', value: str"}},
	settingEventShapes("realm_user_settings_defaults", "update", realm.UserSettings),
	settingEventShapes("realm", "update", append(organizationSettings(false),
		realm.Setting{Name: "name", Default: ""})),
	// update_dict sends a setting of the organization together with older fields that are derived from it.
	[]eventNotation{
		{"realm", "update_dict", "property: 'default', data: {" +
			optionalFields(settingFields("", organizationSettings(true))+", "+ruleFields(realm.OrgGroupSettings)) +
			", description?: str, rendered_description?: str, mandatory_topics?: bool, " +
			"authentication_methods?: {*: {enabled: bool, available: bool}}}"},
	},
)

// channelUpdateFields is the fields of an event for one changed channel property.
func channelUpdateFields(property, value string) string {
	return "stream_id: int, name: str, property: '" + property + "', value: " + value
}

// organizationSettings returns the settings that events realm/update_dict contain (dict), or those of realm/update.
func organizationSettings(dict bool) []realm.Setting {
	bundled := []string{"topics_policy"} // see organizationChanged
	return slices.DeleteFunc(slices.Clone(realm.OrgSettings), func(s realm.Setting) bool {
		return dict != (realm.UsesUpdateDict(s.Name) || slices.Contains(bundled, s.Name))
	})
}

// settingEventShapes returns the shapes of setting changes, one for all settings of a type.
func settingEventShapes(kind, op string, table []realm.Setting) (out []eventNotation) {
	byType := map[string][]string{}
	for _, s := range table {
		_, typ, _ := strings.Cut(settingFields("", []realm.Setting{s}), ": ")
		byType[typ] = append(byType[typ], s.Name)
	}
	for _, typ := range []string{"bool", "bool?", "int", "int?", "str", "str?"} {
		if names := byType[typ]; names != nil {
			out = append(out, eventNotation{kind, op, "property: " + enumNotation(names) + ", value: " + typ})
		}
	}
	return out
}

// ruleNames returns the names of permission settings.
func ruleNames(rules []realm.GroupSettingRule) (out []string) {
	for _, r := range rules {
		out = append(out, r.Name)
	}
	return out
}

// enumNotation is the notation for one of some strings.
func enumNotation(names []string) string { return "'" + strings.Join(names, "' | '") + "'" }

// optionalFields marks all fields as optional.
func optionalFields(fields string) string { return strings.ReplaceAll(fields, ": ", "?: ") }

// name is the name of the shape in the OpenAPI document. nth numbers the shapes of one type and op.
func (f eventShape) name(nth int) string {
	name := "Event" + camelCase(f.kind+"_"+f.op, "_")
	if nth > 1 {
		name += strconv.Itoa(nth)
	}
	return name
}

// notation is the notation of the whole event.
func (f eventNotation) notation() string {
	s := "{id: int, type: '" + f.kind + "'"
	if f.op != "" {
		s += ", op: '" + f.op + "'"
	}
	if f.fields != "" {
		s += ", " + f.fields
	}
	return s + "}"
}

// init collects the shapes of events, and adds them to the objects of the OpenAPI document.
func init() {
	for _, k := range eventKindList {
		for _, s := range k.shapes {
			eventShapes = append(eventShapes, newEventShape(s))
		}
	}
	for _, f := range eventNotations {
		eventShapes = append(eventShapes, newEventShape(mustParseShape(f.notation())))
	}
	slices.SortStableFunc(eventShapes, func(a, b eventShape) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.op, b.op))
	})
	seen, any := map[string]int{}, &shape.Shape{Name: "Event"}
	for _, f := range eventShapes {
		seen[f.kind+"/"+f.op]++
		f.Name = f.name(seen[f.kind+"/"+f.op])
		parsedShapes.shapes[f.Name] = f.Shape
		any.AnyOf = append(any.AnyOf, f.Shape)
	}
	parsedShapes.shapes[any.Name] = any
}

// newEventShape returns the shape of an event, with the id that every event has.
func newEventShape(s *shape.Shape) eventShape {
	constant := func(name string) string {
		if f, ok := s.Fields[name]; ok && len(f.Shape.Enum) == 1 {
			return f.Shape.Enum[0]
		}
		return ""
	}
	return eventShape{constant("type"), constant("op"), shape.Merge(mustParseShape("{id: int}"), s)}
}

// CheckEvent checks an encoded event against the declared shapes.
func CheckEvent(event []byte) shape.Findings { return SeenEventShapes{}.Check(event) }

// SeenEventShapes counts checked events by shape.
type SeenEventShapes map[string]int

// Check checks an encoded event against the declared shapes and counts it.
func (seen SeenEventShapes) Check(event []byte) shape.Findings {
	var v any
	d := json.NewDecoder(strings.NewReader(string(event)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return shape.Findings{{Where: "own event", What: "type", Text: "not JSON: " + err.Error()}}
	}
	o, _ := v.(map[string]any)
	kind, _ := o["type"].(string)
	op, _ := o["op"].(string)
	where := "own event " + kind + "/" + op
	var forms []*shape.Shape
	for _, f := range eventShapes {
		if f.kind != kind || f.op != op {
			continue
		}
		if len(f.Check(where, "", v)) == 0 {
			seen[f.Name]++
			return nil
		}
		forms = append(forms, f.Shape)
	}
	if forms == nil {
		return shape.Findings{{Where: where, What: "unknown", Text: "no such event is described"}}
	}
	return (&shape.Shape{AnyOf: forms}).Check(where, "", v)
}

// Unseen returns the names of the shapes without any event.
func (seen SeenEventShapes) Unseen() (out []string) {
	for _, f := range eventShapes {
		if seen[f.Name] == 0 {
			out = append(out, f.Name)
		}
	}
	return out
}
