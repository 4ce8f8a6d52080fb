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

// notFollowed are parts of a register that no event updates, with the reason.
var notFollowed = map[string]string{
	"queue_id": "belongs to the queue", "last_event_id": "belongs to the queue", "result": "belongs to the answer",
	"msg": "belongs to the answer", "idle_queue_timeout_secs": "belongs to the queue",
	"server_timestamp": "the clock", "presences": "sent only to some clients, while they are online",
	"presence_last_update_id":               "like presences",
	"server_generation":                     "sent when the server starts: a second start replaces the first",
	"muted_topics":                          "refers to channels by name; user_topics has the same by id",
	"max_message_id":                        "clients use their newest message",
	"recent_private_conversations":          "clients add new messages; no event updates it after a deletion",
	"can_create_streams":                    "clients compute it from role and settings",
	"can_create_private_streams":            "like can_create_streams",
	"can_create_public_streams":             "like can_create_streams",
	"can_create_web_public_streams":         "like can_create_streams",
	"can_invite_others_to_realm":            "like can_create_streams",
	"realm_create_private_stream_policy":    "old form of a group setting",
	"realm_create_public_stream_policy":     "old form of a group setting",
	"realm_create_web_public_stream_policy": "old form of a group setting",
	"realm_wildcard_mention_policy":         "old form of a group setting",
	"jitsi_server_url":                      "old form of realm_jitsi_server_url",
	"realm_allow_edit_history":              "old form of realm_message_edit_history_visibility_policy",
	"ignored_parameters_unsupported":        "belongs to the answer",
}

// notFollowedFields are fields of objects in tables that no event updates, with the reason.
var notFollowedFields = map[string]string{
	"stream_weekly_traffic": "an average that changes every day",
	"partial_subscribers":   "recently active users at the time of the register",
	"topic_name":            "part of the key, in any spelling",
	"first_message_id":      "neither the first message of a channel nor a move sends an event about it",
	"away":                  "old form of the setting presence_enabled, which only its owner gets",
}

// inherited are channel settings that can be null. A client without the capability for null gets the value they
// inherit.
var inherited = map[string]bool{"desktop_notifications": true, "audible_notifications": true,
	"push_notifications": true, "email_notifications": true, "wildcard_mentions_notify": true}

// partsByRole are parts that only some roles see. When a user's role changes, the protocol sends events about
// channels and groups; the other parts change with the next register. The same holds for the real email addresses of
// users.
var partsByRole = []string{"realm_bots", "realm_default_streams", "realm_default_stream_groups", "delivery_email"}

// partsByUserVisibility are parts that depend on the users a guest can see; when that rule changes there are no
// events for them.
var partsByUserVisibility = []string{"realm_users", "realm_non_active_users", "user_status"}

// A Mismatch is the first difference between two states in one part.
type Mismatch struct {
	Part string
	Err  error
}

func (x Mismatch) String() string { return x.Part + ": " + x.Err.Error() }

// Diff compares the state with a fresh register of the same client, part by part.
func (m *Mirror) Diff(fresh *Mirror) (out []Mismatch) {
	add := func(part string, err error) {
		if err != nil {
			out = append(out, Mismatch{part, err})
		}
	}
	a, b := m.compared(), fresh.compared()
	hidden := func(who string, _ Object) bool {
		// Only statuses of visible users are compared. When a user becomes visible, their status is sent only with
		// its next change.
		return m.tables["realm_users"][who] == nil || m.discovered[who]
	}
	for _, tables := range []map[string]map[string]Object{a, b} {
		if shown := tables["user_status"]; shown != nil {
			shown = maps.Clone(shown) // a user that is no longer visible may become visible again
			maps.DeleteFunc(shown, hidden)
			maps.DeleteFunc(shown, func(_ string, o Object) bool { return !hasFollowedField(o) })
			tables["user_status"] = shown
		}
	}
	for _, name := range keys(b) {
		if a[name] == nil || m.unfollowed[name] {
			continue // not requested, or not followed by events
		}
		add(name, m.diffTables(a[name], b[name]))
	}
	for _, k := range keys(fresh.flat) {
		if v, ok := m.flat[k]; ok && notFollowed[k] == "" && !m.unfollowed[k] {
			if x, y := canonical(v), canonical(fresh.flat[k]); x != y {
				add(k, fmt.Errorf("%s by events, %s by register", x, y))
			}
		}
	}
	if fresh.hasUnread && m.hasUnread {
		add("unread messages", m.diffUnread(fresh))
		add("starred messages", diffSets(m.starred, fresh.starred))
	}
	return out
}

// hasFollowedField reports whether an object has a field that events update.
func hasFollowedField(o Object) bool {
	for field := range o {
		if notFollowedFields[field] == "" {
			return true
		}
	}
	return false
}

// compared returns the tables, with all channels without a subscription in one table: only a register distinguishes
// channels left before the registration from those never subscribed.
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
			return fmt.Errorf("%s exists by events, not by register: %.300s", k, canonical(a[k]))
		}
	}
	for _, k := range keys(b) {
		if a[k] == nil {
			return fmt.Errorf("%s exists by register, not by events: %.300s", k, canonical(b[k]))
		}
		x, y := a[k], b[k]
		if y["full_name"] == unknownName && x["full_name"] == unknownName {
			continue // any placeholder equals another
		}
		for _, f := range keys(y) {
			v, both := x[f]
			if !both || notFollowedFields[f] != "" || m.unfollowed[f] ||
				inherited[f] && !m.client.Caps["notification_settings_null"] {
				continue
			}
			if v, w := canonical(v), canonical(y[f]); v != w {
				return fmt.Errorf("%s, %s: %s by events, %s by register", k, f, v, w)
			}
		}
	}
	return nil
}

// countsAsMention reports whether an unread message counts as a mention. A wildcard mention counts in channels and
// topics that are not muted.
func (m *Mirror) countsAsMention(u *unread) bool {
	if u.mentioned || !u.wildcard || u.stream == 0 {
		return u.mentioned || u.wildcard
	}
	policy := 0
	if p := m.tables["user_topics"][topicKey(Object{"stream_id": float64(u.stream), "topic_name": u.topic})]; p != nil {
		policy = int(Int(p["visibility_policy"]))
	}
	muted := m.tables["subscriptions"][idText(float64(u.stream))]["is_muted"] == true
	return policy == 2 || policy == 3 || policy == 0 && !muted
}

func (m *Mirror) diffUnread(fresh *Mirror) error {
	if err := diffSets(idSet(m.unread), idSet(fresh.unread)); err != nil {
		return err
	}
	for _, id := range keys(m.unread) {
		x, y := m.unread[id], fresh.unread[id]
		if x.stream != y.stream || !strings.EqualFold(x.topic, y.topic) || x.people != y.people {
			return fmt.Errorf("message %d is in channel %d, topic %q, users %s by events, in channel %d, "+
				"topic %q, users %s by register", id, x.stream, x.topic, x.people, y.stream, y.topic, y.people)
		}
		if m.countsAsMention(x) != y.mentioned {
			return fmt.Errorf("message %d is a mention: %v by events, %v by register", id, m.countsAsMention(x),
				y.mentioned)
		}
	}
	return nil
}

func idSet[V any](m map[int64]V) map[int64]bool {
	out := map[int64]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// diffSets returns an error with the first id that is in only one set.
func diffSets(a, b map[int64]bool) error {
	for _, id := range keys(a) {
		if !b[id] {
			return fmt.Errorf("%d exists by events, not by register (%d and %d in total)", id, len(a), len(b))
		}
	}
	for _, id := range keys(b) {
		if !a[id] {
			return fmt.Errorf("%d exists by register, not by events (%d and %d in total)", id, len(b), len(a))
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

// canonical returns JSON with sorted lists of numbers, since those lists are sets.
func canonical(v any) string {
	b, _ := json.Marshal(sortLists(v))
	return string(b)
}

func sortLists(v any) any {
	switch x := v.(type) {
	case Object:
		out := Object{}
		for k, v := range x {
			out[k] = sortLists(v)
		}
		return out
	case []any:
		out := make([]any, len(x))
		numbers := true
		for i, v := range x {
			_, n := v.(float64)
			numbers = numbers && n
			out[i] = sortLists(v)
		}
		if numbers {
			sort.Slice(out, func(i, j int) bool { return out[i].(float64) < out[j].(float64) })
		}
		return out
	}
	return v
}
