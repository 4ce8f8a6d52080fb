package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Events applies an answer of GET /events and returns the id of its last event, or last if there is none.
func (m *Mirror) Events(body []byte, last int64) (int64, error) {
	var v struct {
		Events []Object `json:"events"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return last, fmt.Errorf("events: %w", err)
	}
	for _, e := range v.Events {
		id := Int(e["id"])
		if id <= last {
			return last, fmt.Errorf("event %d after %d", id, last)
		}
		last = id
		if err := m.apply(e); err != nil {
			b, _ := json.Marshal(e)
			return last, fmt.Errorf("%w: %.600s", err, b)
		}
	}
	return last, nil
}

// A handler applies an event of one type to the state.
type handler func(m *Mirror, e Object) error

// ignoredEvents do not change the state of a register: they report something momentary, or answer a request.
var ignoredEvents = map[string]bool{"heartbeat": true, "typing": true, "typing_edit_message": true, "presence": true,
	"realm_export":         true,
	"realm_export_consent": true, "has_zoom_token": true, "has_webex_token": true, "web_reload_client": true}

var handlers = map[string]handler{
	"message": (*Mirror).message, "update_message": (*Mirror).messageUpdated,
	"delete_message":       (*Mirror).messagesDeleted,
	"update_message_flags": (*Mirror).flagsChanged,
	"reaction":             (*Mirror).reaction, "submessage": (*Mirror).submessage,
	"subscription": (*Mirror).subscription, "stream": (*Mirror).stream, "realm_user": (*Mirror).person,
	"user_group": (*Mirror).group,
	"realm":      (*Mirror).organization, "user_topic": (*Mirror).topic, "user_status": (*Mirror).status,
	"realm_emoji":           (*Mirror).emoji,
	"muted_topics":          replaceList("muted_topics", "muted_topics"),
	"alert_words":           replaceList("alert_words", "alert_words"),
	"custom_profile_fields": (*Mirror).profileFields,
	"realm_linkifiers":      replaceList("realm_linkifiers", "realm_linkifiers"),
	"realm_playgrounds":     replaceList("realm_playgrounds", "realm_playgrounds"),
	"default_streams":       replaceList("default_streams", "realm_default_streams"),
	"default_stream_groups": replaceList("default_stream_groups", "realm_default_stream_groups"),
	"onboarding_steps":      replaceList("onboarding_steps", "onboarding_steps"),
	"muted_users":           (*Mirror).mutedUsers, "user_settings": (*Mirror).userSetting,
	"realm_user_settings_defaults": settingHandler("realm_user_settings_defaults"),
	"drafts":                       (*Mirror).draft, "scheduled_messages": (*Mirror).scheduled,
	"reminders":       (*Mirror).reminder,
	"saved_snippets":  (*Mirror).snippet,
	"navigation_view": (*Mirror).view, "channel_folder": (*Mirror).folder, "realm_domains": (*Mirror).domain,
	"realm_bot": (*Mirror).bot,
	"device":    (*Mirror).device, "attachment": (*Mirror).attachment,
	"restart": func(m *Mirror, e Object) error {
		m.set("server_generation", e["server_generation"])
		return nil
	},
	"invites_changed": func(m *Mirror, e Object) error { m.refetch["invites"] = true; return nil },
}

func (m *Mirror) apply(e Object) error {
	kind := str(e["type"])
	if ignoredEvents[kind] {
		return nil
	}
	handler := handlers[kind]
	if handler == nil {
		return errors.New("unknown event type")
	}
	return handler(m, e)
}

// NeedsRefetch reports whether an event asked the client to fetch part again, and clears the request.
func (m *Mirror) NeedsRefetch(part string) bool {
	d := m.refetch[part]
	delete(m.refetch, part)
	return d
}

// set changes a value of the register; values that the register did not contain are ignored.
func (m *Mirror) set(key string, v any) {
	if _, ok := m.flat[key]; ok {
		m.flat[key] = v
	}
}

func (m *Mirror) unfollow(parts ...string) {
	for _, p := range parts {
		m.unfollowed[p] = true
	}
}

// replaceList returns a handler that replaces a list with that of the event.
func replaceList(from, to string) handler {
	return func(m *Mirror, e Object) error {
		m.set(to, e[from])
		return nil
	}
}

func settingHandler(key string) handler {
	return func(m *Mirror, e Object) error {
		o := object(m.flat[key])
		if o == nil {
			return nil
		}
		p := str(e["property"])
		if _, ok := o[p]; !ok {
			return fmt.Errorf("unknown setting %q in %s", p, key)
		}
		o[p] = e["value"]
		return nil
	}
}

// userSetting changes a setting of the user. Without synchronization the user's drafts are deleted, without events
// for them.
func (m *Mirror) userSetting(e Object) error {
	if e["property"] == "enable_drafts_synchronization" && e["value"] == false {
		clear(m.tables["drafts"])
	}
	return settingHandler("user_settings")(m, e)
}

// profileFields replaces the profile fields. Values of removed fields, and of removed choices, disappear from all
// users.
func (m *Mirror) profileFields(e Object) error {
	m.set("custom_profile_fields", e["fields"])
	there := map[string]bool{}
	choices := map[string]Object{}
	for _, f := range objects(e["fields"]) {
		id := idText(f["id"])
		there[id] = true
		if idText(f["type"]) == "3" {
			var of Object
			if err := json.Unmarshal([]byte(idText(f["field_data"])), &of); err != nil {
				return fmt.Errorf("choices of profile field %s: %w", id, err)
			}
			choices[id] = of
		}
	}
	for _, people := range []string{"realm_users", "realm_non_active_users"} {
		for _, o := range m.tables[people] {
			maps.DeleteFunc(object(o["profile_data"]), func(id string, v any) bool {
				of, chosen := choices[id]
				return !there[id] || chosen && of[idText(object(v)["value"])] == nil
			})
		}
	}
	return nil
}

// put adds an object to a table. drop and merge return an error if the object does not exist, since the server then
// violated a guarantee.
func (m *Mirror) put(table, key string, o Object) {
	if t := m.tables[table]; t != nil {
		t[key] = maps.Clone(o)
	}
}

func (m *Mirror) drop(table, key string) error {
	t := m.tables[table]
	if t != nil && t[key] == nil {
		return fmt.Errorf("%s %s does not exist", table, key)
	}
	delete(t, key)
	return nil
}

func (m *Mirror) merge(table, key string, data Object) error {
	t := m.tables[table]
	if t == nil {
		return nil
	}
	o := t[key]
	if o == nil {
		return fmt.Errorf("%s %s does not exist", table, key)
	}
	for k, v := range data {
		o[k] = v
	}
	return nil
}

var errOp = errors.New("unknown op")

// tableEvent applies an event of an object type with the operations add, update and remove. add, update and remove
// are the event's members with the object or its id.
func (m *Mirror) tableEvent(e Object, name, key, add, update, remove string) error {
	switch str(e["op"]) {
	case "add":
		if list, ok := e[add].([]any); ok {
			for _, x := range list {
				m.put(name, idText(object(x)[key]), object(x))
			}
			return nil
		}
		m.put(name, idText(object(e[add])[key]), object(e[add]))
		return nil
	case "update", "change":
		o := object(e[update])
		return m.merge(name, idText(o[key]), o)
	case "remove":
		return m.drop(name, idText(e[remove]))
	}
	return errOp
}

func (m *Mirror) draft(e Object) error {
	return m.tableEvent(e, "drafts", "id", "drafts", "draft", "draft_id")
}

func (m *Mirror) scheduled(e Object) error {
	return m.tableEvent(e, "scheduled_messages", "scheduled_message_id", "scheduled_messages", "scheduled_message",
		"scheduled_message_id")
}

func (m *Mirror) reminder(e Object) error {
	return m.tableEvent(e, "reminders", "reminder_id", "reminders", "", "reminder_id")
}

func (m *Mirror) snippet(e Object) error {
	return m.tableEvent(e, "saved_snippets", "id", "saved_snippet", "saved_snippet", "saved_snippet_id")
}

func (m *Mirror) domain(e Object) error {
	return m.tableEvent(e, "realm_domains", "domain", "realm_domain", "realm_domain", "domain")
}

func (m *Mirror) view(e Object) error {
	if str(e["op"]) == "update" {
		return m.merge("navigation_views", str(e["fragment"]), object(e["data"]))
	}
	return m.tableEvent(e, "navigation_views", "fragment", "navigation_view", "", "fragment")
}

func (m *Mirror) folder(e Object) error {
	switch str(e["op"]) {
	case "update":
		return m.merge("channel_folders", idText(e["channel_folder_id"]), object(e["data"]))
	case "reorder":
		for i, id := range Ints(e["order"]) {
			if err := m.merge("channel_folders", idText(float64(id)), Object{"order": float64(i)}); err != nil {
				return err
			}
		}
		return nil
	}
	return m.tableEvent(e, "channel_folders", "id", "channel_folder", "", "")
}

func (m *Mirror) device(e Object) error {
	id := idText(e["device_id"])
	switch str(e["op"]) {
	case "add":
		m.put("devices", id, Object{"push_key_id": nil, "push_token_id": nil, "pending_push_token_id": nil,
			"push_token_last_updated_timestamp": nil, "push_registration_error_code": nil})
		return nil
	case "remove":
		return m.drop("devices", id)
	}
	data := maps.Clone(e)
	for _, k := range []string{"id", "type", "op", "device_id"} {
		delete(data, k)
	}
	return m.merge("devices", id, data)
}

func (m *Mirror) bot(e Object) error {
	b := object(e["bot"])
	id := idText(b["user_id"])
	switch str(e["op"]) {
	case "add":
		m.put("realm_bots", id, b)
		return nil
	case "update", "delete":
		if t := m.tables["realm_bots"]; m.unfollowed["realm_bots"] && t != nil && t[id] == nil {
			return nil // a bot that only the new role can see
		}
		if str(e["op"]) == "delete" {
			return m.drop("realm_bots", id)
		}
		return m.merge("realm_bots", id, b)
	}
	return errOp
}

func (m *Mirror) mutedUsers(e Object) error {
	t := map[string]Object{}
	for _, o := range objects(e["muted_users"]) {
		t[idText(o["id"])] = o
	}
	m.tables["muted_users"] = t
	return nil
}

func (m *Mirror) topic(e Object) error {
	if Int(e["visibility_policy"]) == 0 {
		delete(m.tables["user_topics"], topicKey(e))
		return nil
	}
	o := Object{}
	for _, k := range []string{"stream_id", "topic_name", "last_updated", "visibility_policy"} {
		o[k] = e[k]
	}
	m.put("user_topics", topicKey(e), o)
	return nil
}

// status merges the members of the event; empty values are removed.
func (m *Mirror) status(e Object) error {
	t, who := m.tables["user_status"], idText(e["user_id"])
	if t == nil {
		return nil
	}
	o := t[who]
	if o == nil {
		o = Object{}
	}
	for _, k := range []string{"away", "status_text", "emoji_name", "emoji_code", "reaction_type"} {
		if v, ok := e[k]; ok {
			o[k] = v
		}
		if o[k] == "" || o[k] == false {
			delete(o, k)
		}
	}
	if o["emoji_name"] == nil {
		delete(o, "emoji_code")
		delete(o, "reaction_type")
	}
	t[who] = o
	if len(o) == 0 {
		delete(t, who)
	}
	return nil
}

func (m *Mirror) emoji(e Object) error {
	switch str(e["op"]) {
	case "update":
		t := map[string]Object{}
		for k, x := range object(e["realm_emoji"]) {
			t[k] = object(x)
		}
		m.tables["realm_emoji"] = t
		return nil
	case "add":
		o := object(e["emoji"])
		m.put("realm_emoji", idText(o["id"]), o)
		return nil
	case "update_one", "edit": // the op that clients know, and the documented one
		return m.merge("realm_emoji", idText(e["emoji_id"]), object(e["data"]))
	}
	return errOp
}

// organization changes one or several values realm_<property>.
func (m *Mirror) organization(e Object) error {
	switch str(e["op"]) {
	case "deactivated":
		return nil
	case "update":
		m.set("realm_"+str(e["property"]), e["value"])
		return nil
	case "update_dict":
		if _, ok := object(e["data"])["can_access_all_users_group"]; ok && m.flat["is_guest"] == true {
			m.unfollow(partsByUserVisibility...)
		}
		prefix := "realm_"
		for k, v := range object(e["data"]) {
			if str(e["property"]) == "night_logo" {
				k = "night_" + strings.TrimPrefix(k, "night_")
			}
			m.set(prefix+k, v)
		}
		return nil
	}
	return errOp
}

// unknownName is the name of an account that the user cannot see.
const unknownName = "Unknown user"

func (m *Mirror) person(e Object) error {
	p := object(e["person"])
	id := idText(p["user_id"])
	switch str(e["op"]) {
	case "add":
		o := maps.Clone(p)
		m.discovered[id] = true
		delete(m.tables["realm_non_active_users"], id)
		active := o["is_active"] != false
		delete(o, "is_active")
		if active {
			m.put("realm_users", id, o)
		} else {
			delete(m.tables["realm_users"], id)
			m.put("realm_non_active_users", id, o)
		}
		return nil
	case "remove":
		if m.tables["realm_users"][id] == nil && m.tables["realm_non_active_users"][id] == nil {
			return fmt.Errorf("user %s does not exist", id)
		}
		delete(m.tables["realm_users"], id)
		delete(m.tables["realm_non_active_users"], id)
		delete(m.tables["user_status"], id)
		if !m.client.Caps["user_list_incomplete"] { // such a client gets a placeholder for every id
			m.put("realm_users", id, Object{"user_id": p["user_id"], "full_name": unknownName})
		}
		return nil
	case "update":
		return m.updatePerson(id, p)
	}
	return errOp
}

// removeFromGroups removes a deactivated account from groups and from permissions that name it: clients that see the
// account get no other event about that.
func (m *Mirror) removeFromGroups(user int64) {
	fromSettings := func(o Object) {
		for name, v := range o {
			if value := object(v); value["direct_members"] != nil && strings.Contains(name, "_group") {
				o[name] = maps.Clone(value)
				changeSet(object(o[name]), "direct_members", []int64{user}, false)
			}
		}
	}
	fromSettings(m.flat)
	for _, table := range []string{"realm_user_groups", "streams", "subscriptions", "unsubscribed",
		"never_subscribed"} {
		for _, o := range m.tables[table] {
			fromSettings(o)
		}
	}
	for _, g := range m.tables["realm_user_groups"] {
		changeSet(g, "members", []int64{user}, false)
	}
}

func (m *Mirror) updatePerson(id string, p Object) error {
	users, gone := m.tables["realm_users"], m.tables["realm_non_active_users"]
	if users == nil {
		return nil
	}
	if on, ok := p["is_active"].(bool); ok {
		from, to := users, gone
		if on {
			from, to = gone, users
		}
		if o := from[id]; o != nil {
			delete(from, id)
			to[id] = o
		}
		if !on {
			m.removeFromGroups(Int(p["user_id"]))
		}
		return nil
	}
	o := users[id]
	if o == nil {
		o = gone[id]
	}
	if o == nil {
		return fmt.Errorf("user %s does not exist", id)
	}
	mine := id == idText(float64(m.me))
	for k, v := range p {
		switch k {
		case "new_email":
			o["email"] = v
			if mine {
				m.set("email", v)
			}
		case "role":
			r := Int(v)
			o["role"], o["is_admin"], o["is_owner"], o["is_guest"] = v, r <= 200, r == 100, r == 600
			if mine {
				m.unfollow(partsByRole...)
				m.unfollow(partsByUserVisibility...)
				m.refetch["invites"] = true
				m.set("is_admin", r <= 200)
				m.set("is_owner", r == 100)
				m.set("is_moderator", r <= 300)
				m.set("is_guest", r == 600)
			}
		case "custom_profile_field":
			profile(o, object(v))
		case "user_id":
		case "avatar_url_medium", "avatar_source":
			if mine {
				m.set(k, v)
			}
		default:
			o[k] = v
			if mine {
				m.set(k, v)
			}
		}
	}
	return nil
}

func profile(o, f Object) {
	data := object(o["profile_data"])
	if data == nil {
		if _, has := o["profile_data"]; !has { // bots have no profile
			return
		}
		data = Object{}
		o["profile_data"] = data
	}
	id := idText(f["id"])
	if f["value"] == nil {
		delete(data, id)
		return
	}
	x := Object{"value": f["value"]}
	if v, ok := f["rendered_value"]; ok {
		x["rendered_value"] = v
	}
	data[id] = x
}

func (m *Mirror) group(e Object) error {
	id := idText(e["group_id"])
	t := m.tables["realm_user_groups"]
	if t == nil {
		return nil
	}
	op := str(e["op"])
	if op == "add" {
		g := object(e["group"])
		m.put("realm_user_groups", idText(g["id"]), g)
		return nil
	}
	g := t[id]
	if g == nil {
		return fmt.Errorf("user group %s does not exist", id)
	}
	switch op {
	case "remove":
		delete(t, id)
	case "add_members", "remove_members":
		changeSet(g, "members", Ints(e["user_ids"]), op == "add_members")
	case "add_subgroups", "remove_subgroups":
		changeSet(g, "direct_subgroup_ids", Ints(e["direct_subgroup_ids"]), op == "add_subgroups")
	case "update":
		return m.merge("realm_user_groups", id, object(e["data"]))
	default:
		return errOp
	}
	return nil
}
