// Package mirror is what a real client keeps: the state a register answered, changed by every event since, as the
// protocol says events change it. It knows nothing of the server. What a fresh register answers must be the same; where
// it is not, an event was missing, wrong, or told too much.
package mirror

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A Kind is what a client said of itself when it registered, as far as it changes how events read.
type Kind struct {
	Caps      map[string]bool // client_capabilities
	AllPublic bool            // it hears public channels it is not in
}

// Object is decoded JSON.
type Object = map[string]any

// Mirror is one client's state.
type Mirror struct {
	kind Kind
	me   int64
	// tables hold what has an id, by the id's text; flat is everything else of the register.
	tables map[string]map[string]Object
	flat   Object

	unread   map[int64]*unread
	starred  map[int64]bool
	counts   bool // the register told unread messages
	messages map[int64]Object
	order    []int64 // of messages, as they came
	dirty    map[string]bool
	untold   map[string]bool // parts that no event follows since its owner's role, or what guests may know, has changed
	met      map[string]bool // people who came into sight
}

// unread is where a message stands that has not been read.
type unread struct {
	stream    int64
	topic     string
	people    string // of a direct message: everybody but oneself, ascending
	mentioned bool
	wildcard  bool
}

// maxMessages bounds the messages a mirror compares.
const maxMessages = 300

// listed are the tables a register answers as lists, and what their objects are known by.
var listed = map[string]string{
	"streams": "stream_id", "subscriptions": "stream_id", "unsubscribed": "stream_id", "never_subscribed": "stream_id",
	"realm_users": "user_id", "realm_non_active_users": "user_id", "cross_realm_bots": "user_id",
	"realm_user_groups": "id", "realm_bots": "user_id",
	"drafts": "id", "scheduled_messages": "scheduled_message_id", "reminders": "reminder_id", "saved_snippets": "id",
	"navigation_views": "fragment",
	"channel_folders":  "id", "realm_domains": "domain", "muted_users": "id", "user_topics": "",
}

// mapped are the tables a register answers as objects by id.
var mapped = []string{"user_status", "realm_emoji", "devices"}

// New is a mirror that knows nothing yet.
func New(k Kind) *Mirror { return &Mirror{kind: k} }

// Start takes a register's answer.
func (m *Mirror) Start(body []byte) error {
	var v Object
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	m.tables, m.flat, m.messages, m.dirty = map[string]map[string]Object{}, v, map[int64]Object{}, map[string]bool{}
	m.order, m.untold, m.met = nil, map[string]bool{}, map[string]bool{}
	for name, key := range listed {
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
	for _, name := range mapped {
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
			m.counted(o)
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
	if m.counts = ok; ok {
		for _, p := range objects(u["pms"]) {
			m.unreads(p, unread{people: m.others(Int(p["other_user_id"]))})
		}
		for _, p := range objects(u["streams"]) {
			m.unreads(p, unread{stream: Int(p["stream_id"]), topic: str(p["topic"])})
		}
		for _, p := range objects(u["huddles"]) {
			var who []int64
			for _, s := range strings.Split(str(p["user_ids_string"]), ",") {
				n, _ := strconv.ParseInt(s, 10, 64)
				who = append(who, n)
			}
			m.unreads(p, unread{people: m.others(who...)})
		}
		for _, id := range Ints(u["mentions"]) {
			if x := m.unread[id]; x != nil {
				x.mentioned = true // or everybody was, where that counts
			}
		}
	}
	delete(m.flat, "starred_messages")
	delete(m.flat, "unread_msgs")
}

func (m *Mirror) unreads(group Object, u unread) {
	for _, id := range Ints(group["unread_message_ids"]) {
		m.unread[id] = &u
		u := u
		m.unread[id] = &u
	}
}

// others is a direct conversation without oneself; alone it is with oneself.
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
	return text(o[key])
}

func topicKey(o Object) string {
	return text(o["stream_id"]) + " " + strings.ToLower(str(o["topic_name"]))
}

// text is an id as a table's key.
func text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return strconv.FormatInt(int64(x), 10)
	}
	return fmt.Sprint(v)
}

// Int is a JSON number.
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

// Ints is a JSON list of numbers.
func Ints(v any) (out []int64) {
	list, _ := v.([]any)
	for _, x := range list {
		out = append(out, Int(x))
	}
	return out
}

// numbers is a list as JSON decodes it.
func numbers(ids []int64) []any {
	out := []any{}
	for _, x := range ids {
		out = append(out, float64(x))
	}
	return out
}

// changeSet adds ids to a list that is a set, or takes them away.
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
