package mirror

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A Client holds the properties that a client sent with its register, as far as they change events.
type Client struct {
	Caps      map[string]bool // client_capabilities
	AllPublic bool            // it also gets events of public channels without a subscription
}

// Object is decoded JSON.
type Object = map[string]any

// A Mirror is the state of one client.
type Mirror struct {
	client Client
	me     int64
	// tables hold the objects with an id, by the id's text; flat is the rest of the register.
	tables map[string]map[string]Object
	flat   Object

	unread    map[int64]*unread
	starred   map[int64]bool
	hasUnread bool // the register contained unread messages
	messages  map[int64]Object
	order     []int64 // of messages, in order of arrival
	refetch   map[string]bool
	// unfollowed parts get no further events, after a change of the user's role or of the users that guests can see.
	unfollowed map[string]bool
	discovered map[string]bool // users that became visible after the register
}

// unread is the position of an unread message.
type unread struct {
	stream    int64
	topic     string
	people    string // of a direct message: the other participants, ascending
	mentioned bool
	wildcard  bool
}

// maxMessages bounds the messages that a mirror stores and compares.
const maxMessages = 300

// listTables are the tables that a register contains as lists, with the member that is the key.
var listTables = map[string]string{
	"streams": "stream_id", "subscriptions": "stream_id", "unsubscribed": "stream_id", "never_subscribed": "stream_id",
	"realm_users": "user_id", "realm_non_active_users": "user_id", "cross_realm_bots": "user_id",
	"realm_user_groups": "id", "realm_bots": "user_id",
	"drafts": "id", "scheduled_messages": "scheduled_message_id", "reminders": "reminder_id", "saved_snippets": "id",
	"navigation_views": "fragment",
	"channel_folders":  "id", "realm_domains": "domain", "muted_users": "id", "user_topics": "",
}

// mapTables are the tables that a register contains as objects by id.
var mapTables = []string{"user_status", "realm_emoji", "devices"}

// New returns an empty mirror for a client.
func New(k Client) *Mirror { return &Mirror{client: k} }

// Start replaces the state with the answer of a register.
func (m *Mirror) Start(body []byte) error {
	var v Object
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	m.tables, m.flat, m.messages, m.refetch = map[string]map[string]Object{}, v, map[int64]Object{}, map[string]bool{}
	m.order, m.unfollowed, m.discovered = nil, map[string]bool{}, map[string]bool{}
	for name, key := range listTables {
		list, ok := v[name].([]any)
		if !ok {
			continue
		}
		t := map[string]Object{}
		for _, x := range list {
			o := object(x)
			k := keyOf(name, key, o)
			if t[k] != nil {
				return fmt.Errorf("register: %s has %s twice", name, k)
			}
			t[k] = o
		}
		m.tables[name] = t
		delete(v, name)
	}
	for _, name := range mapTables {
		all, ok := v[name].(Object)
		if !ok {
			continue
		}
		t := map[string]Object{}
		for k, x := range all {
			t[k] = object(x)
		}
		m.tables[name] = t
		delete(v, name)
	}
	m.me = Int(v["user_id"])
	m.startUnread()
	for _, name := range []string{"streams", "subscriptions", "unsubscribed", "never_subscribed"} {
		for _, o := range m.tables[name] {
			m.countSubscribers(o)
		}
	}
	return nil
}

func (m *Mirror) startUnread() {
	m.unread, m.starred = map[int64]*unread{}, map[int64]bool{}
	for _, id := range Ints(m.flat["starred_messages"]) {
		m.starred[id] = true
	}
	u, ok := m.flat["unread_msgs"].(Object)
	if m.hasUnread = ok; ok {
		for _, p := range objects(u["pms"]) {
			m.addUnread(p, unread{people: m.others(Int(p["other_user_id"]))})
		}
		for _, p := range objects(u["streams"]) {
			m.addUnread(p, unread{stream: Int(p["stream_id"]), topic: str(p["topic"])})
		}
		for _, p := range objects(u["huddles"]) {
			var who []int64
			for _, s := range strings.Split(str(p["user_ids_string"]), ",") {
				n, _ := strconv.ParseInt(s, 10, 64)
				who = append(who, n)
			}
			m.addUnread(p, unread{people: m.others(who...)})
		}
		for _, id := range Ints(u["mentions"]) {
			if x := m.unread[id]; x != nil {
				x.mentioned = true // or a wildcard mentioned the user, where that counts
			}
		}
	}
	delete(m.flat, "starred_messages")
	delete(m.flat, "unread_msgs")
}

func (m *Mirror) addUnread(group Object, u unread) {
	for _, id := range Ints(group["unread_message_ids"]) {
		m.unread[id] = &u
		u := u
		m.unread[id] = &u
	}
}

// others returns the participants of a direct conversation without the user; "" for messages to oneself.
func (m *Mirror) others(people ...int64) string {
	var out []string
	for _, p := range sorted(people) {
		if p != m.me {
			out = append(out, strconv.FormatInt(p, 10))
		}
	}
	return strings.Join(out, ",")
}

func keyOf(table, key string, o Object) string {
	if table == "user_topics" {
		return topicKey(o)
	}
	return idText(o[key])
}

func topicKey(o Object) string {
	return idText(o["stream_id"]) + " " + strings.ToLower(str(o["topic_name"]))
}

// idText returns an id as the key of a table.
func idText(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return strconv.FormatInt(int64(x), 10)
	}
	return fmt.Sprint(v)
}

// Int returns a JSON number as an integer, 0 for other values.
func Int(v any) int64 { f, _ := v.(float64); return int64(f) }

func str(v any) string    { s, _ := v.(string); return s }
func object(v any) Object { o, _ := v.(Object); return o }

func objects(v any) (out []Object) {
	list, _ := v.([]any)
	for _, x := range list {
		out = append(out, object(x))
	}
	return out
}

// Ints returns a JSON list of numbers.
func Ints(v any) (out []int64) {
	list, _ := v.([]any)
	for _, x := range list {
		out = append(out, Int(x))
	}
	return out
}

// numbers returns a list as JSON decodes it.
func numbers(ids []int64) []any {
	out := []any{}
	for _, x := range ids {
		out = append(out, float64(x))
	}
	return out
}

// changeSet adds ids to a list that represents a set, or removes them.
func changeSet(o Object, key string, change []int64, add bool) {
	now := map[int64]bool{}
	for _, x := range Ints(o[key]) {
		now[x] = true
	}
	for _, x := range change {
		if add {
			now[x] = true
		} else {
			delete(now, x)
		}
	}
	o[key] = numbers(keys(now))
}
