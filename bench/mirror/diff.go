package mirror

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// drifting are parts of a register that no event follows, and why.
var drifting = map[string]string{
	"queue_id": "the queue's own", "last_event_id": "the queue's own", "result": "of the answer",
	"msg": "of the answer", "idle_queue_timeout_secs": "the queue's own",
	"server_timestamp": "the clock", "presences": "told to some, when they come online",
	"presence_last_update_id": "as presences",
	"server_generation": "told in passing when the server begins anew: a second start right " +
		"behind takes the place of the first",
	"muted_topics":                          "names channels, which get other names; user_topics says the same by ids",
	"max_message_id":                        "clients take the newest they have",
	"recent_private_conversations":          "clients add what arrives; nothing is told of where deletion leaves it",
	"can_create_streams":                    "follows from role and settings; clients compute it",
	"can_create_private_streams":            "as can_create_streams",
	"can_create_public_streams":             "as can_create_streams",
	"can_create_web_public_streams":         "as can_create_streams",
	"can_invite_others_to_realm":            "as can_create_streams",
	"realm_create_private_stream_policy":    "an old face of a group setting",
	"realm_create_public_stream_policy":     "an old face of a group setting",
	"realm_create_web_public_stream_policy": "an old face of a group setting",
	"realm_wildcard_mention_policy":         "an old face of a group setting",
	"jitsi_server_url":                      "an old face of realm_jitsi_server_url",
	"ignored_parameters_unsupported":        "of the answer",
}

// driftingFields are fields of objects in tables that no event follows, and why.
var driftingFields = map[string]string{
	"stream_weekly_traffic": "an average that changes with the day",
	"partial_subscribers":   "who was here lately, as of the registration",
	"topic_name":            "known by its key, whatever the spelling",
}

// inherited are settings of a channel in whose place a client that knows no null is told what they go by.
var inherited = map[string]bool{"desktop_notifications": true, "audible_notifications": true,
	"push_notifications": true, "email_notifications": true, "wildcard_mentions_notify": true}

// byRole are parts that are shown to some roles only. Who gets another role is told of channels and groups, and sees the
// rest with the next registration: the protocol has no events for it. The same goes for people's real addresses.
var byRole = []string{"realm_bots", "realm_default_streams", "realm_default_stream_groups", "delivery_email"}

// byKnowing are parts that go by whom a guest may know; of a change of that rule nothing else is told either.
var byKnowing = []string{"realm_users", "realm_non_active_users", "user_status"}

// A Mismatch is the first thing in which two states differ in one part: the smallest witness there is.
type Mismatch struct {
	Part string
	Err  error
}

func (x Mismatch) String() string { return x.Part + ": " + x.Err.Error() }

// Diff compares with what a fresh register of the same client says, part by part.
func (m *Mirror) Diff(fresh *Mirror) (out []Mismatch) {
	add := func(part string, err error) {
		if err != nil {
			out = append(out, Mismatch{part, err})
		}
	}
	a, b := m.compared(), fresh.compared()
	hidden := func(who string, _ Object) bool {
		// Only the statuses of people who are there are shown; of people who came into sight nothing is told of what they are
		// up to, until it changes.
		return m.tables["realm_users"][who] == nil || m.met[who]
	}
	for _, tables := range []map[string]map[string]Object{a, b} {
		if shown := tables["user_status"]; shown != nil {
			shown = maps.Clone(shown) // who is shown no more may come back
			maps.DeleteFunc(shown, hidden)
			tables["user_status"] = shown
		}
	}
	for _, name := range keys(b) {
		if a[name] == nil || m.untold[name] {
			continue // not asked for, or not told
		}
		add(name, m.diffTables(a[name], b[name]))
	}
	for _, k := range keys(fresh.flat) {
		if v, ok := m.flat[k]; ok && drifting[k] == "" && !m.untold[k] {
			if x, y := canonical(v), canonical(fresh.flat[k]); x != y {
				add(k, fmt.Errorf("%s by events, %s by register", x, y))
			}
		}
	}
	if fresh.counts && m.counts {
		add("unread messages", m.diffUnread(fresh))
		add("starred messages", diffSets(m.starred, fresh.starred))
	}
	return out
}

// compared are the tables, with the channels one is not in as one: what was left before the registration and what was
// never joined are told apart by a register only.
func (m *Mirror) compared() map[string]map[string]Object {
	out := map[string]map[string]Object{}
	for name, t := range m.tables {
		switch name {
		case "unsubscribed", "never_subscribed":
			if out["not subscribed"] == nil {
				out["not subscribed"] = map[string]Object{}
			}
			for k, o := range t {
				out["not subscribed"][k] = o
			}
		default:
			out[name] = t
		}
	}
	return out
}

func (m *Mirror) diffTables(a, b map[string]Object) error {
	for _, k := range keys(a) {
		if b[k] == nil {
			return fmt.Errorf("%s is there by events, not by register: %.300s", k, canonical(a[k]))
		}
	}
	for _, k := range keys(b) {
		if a[k] == nil {
			return fmt.Errorf("%s is there by register, not by events: %.300s", k, canonical(b[k]))
		}
		x, y := a[k], b[k]
		if y["full_name"] == unknownName && x["full_name"] == unknownName {
			continue // a stand-in is as good as another
		}
		for _, f := range keys(y) {
			v, both := x[f]
			if !both || driftingFields[f] != "" || m.untold[f] ||
				inherited[f] && !m.kind.Caps["notification_settings_null"] {
				continue
			}
			if v, w := canonical(v), canonical(y[f]); v != w {
				return fmt.Errorf("%s, %s: %s by events, %s by register", k, f, v, w)
			}
		}
	}
	return nil
}

// mention reports whether an unread message counts as one that mentions: everybody's mentions count where they are heard.
func (m *Mirror) mention(u *unread) bool {
	if u.mentioned || !u.wildcard || u.stream == 0 {
		return u.mentioned || u.wildcard
	}
	policy := 0
	if p := m.tables["user_topics"][topicKey(Object{"stream_id": float64(u.stream), "topic_name": u.topic})]; p != nil {
		policy = int(Int(p["visibility_policy"]))
	}
	muted := m.tables["subscriptions"][text(float64(u.stream))]["is_muted"] == true
	return policy == 2 || policy == 3 || policy == 0 && !muted
}

func (m *Mirror) diffUnread(fresh *Mirror) error {
	if err := diffSets(truth(m.unread), truth(fresh.unread)); err != nil {
		return err
	}
	for _, id := range keys(m.unread) {
		x, y := m.unread[id], fresh.unread[id]
		if x.stream != y.stream || !strings.EqualFold(x.topic, y.topic) || x.people != y.people {
			return fmt.Errorf("message %d stands in channel %d, topic %q, people %s by events, in channel %d, "+
				"topic %q, people %s by register", id, x.stream, x.topic, x.people, y.stream, y.topic, y.people)
		}
		if m.mention(x) != y.mentioned {
			return fmt.Errorf("message %d is a mention: %v by events, %v by register", id, m.mention(x), y.mentioned)
		}
	}
	return nil
}

func truth[V any](m map[int64]V) map[int64]bool {
	out := map[int64]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// diffSets answers the first id that only one side has.
func diffSets(a, b map[int64]bool) error {
	for _, id := range keys(a) {
		if !b[id] {
			return fmt.Errorf("%d is there by events, not by register (%d and %d in all)", id, len(a), len(b))
		}
	}
	for _, id := range keys(b) {
		if !a[id] {
			return fmt.Errorf("%d is there by register, not by events (%d and %d in all)", id, len(b), len(a))
		}
	}
	return nil
}

func keys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func sorted(ids []int64) []int64 {
	out := slices.Clone(ids)
	slices.Sort(out)
	return out
}

// canonical is JSON in which lists of numbers are sorted: members of anything are sets.
func canonical(v any) string {
	b, _ := json.Marshal(inOrder(v))
	return string(b)
}

func inOrder(v any) any {
	switch x := v.(type) {
	case Object:
		out := Object{}
		for k, v := range x {
			out[k] = inOrder(v)
		}
		return out
	case []any:
		out := make([]any, len(x))
		numbers := true
		for i, v := range x {
			_, n := v.(float64)
			numbers = numbers && n
			out[i] = inOrder(v)
		}
		if numbers {
			sort.Slice(out, func(i, j int) bool { return out[i].(float64) < out[j].(float64) })
		}
		return out
	}
	return v
}
