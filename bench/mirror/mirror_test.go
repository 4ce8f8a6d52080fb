package mirror

import (
	"strings"
	"testing"
)

const registerAnswer = `{"user_id": 8,
	"subscriptions": [{"stream_id": 1, "name": "one", "color": "#112233", "subscribers": [8, 9]}],
	"streams": [{"stream_id": 1, "name": "one"}], "unsubscribed": [], "never_subscribed": [], "starred_messages": [],
	"user_status": {},
	"realm_users": [{"user_id": 8, "full_name": "Ann"}],
	"unread_msgs": {"pms": [], "streams": [{"stream_id": 1, "topic": "lunch", "unread_message_ids": [5]}],
		"huddles": [], "mentions": []}}`

// A mirror that misses an event, or applies a wrong one, differs from a fresh register.
func TestDiff(t *testing.T) {
	for _, c := range []struct{ part, event string }{
		{"", ``},
		{"", `{"id": 1, "type": "user_status", "user_id": 8, "away": true}`},
		{"user_status", `{"id": 1, "type": "user_status", "user_id": 8, "status_text": "out"}`},
		{"subscriptions", `{"id": 1, "type": "subscription", "op": "peer_remove", "stream_ids": [1],
			"user_ids": [9]}`},
		{"unread messages", `{"id": 1, "type": "update_message_flags", "op": "add", "flag": "read",
			"messages": [5]}`},
		{"unread messages", `{"id": 1, "type": "update_message", "message_id": 5, "message_ids": [5],
			"subject": "other", "orig_subject": "lunch"}`},
		{"starred messages", `{"id": 1, "type": "update_message_flags", "op": "add", "flag": "starred",
			"messages": [5]}`},
		{"realm_users", `{"id": 1, "type": "realm_user", "op": "update", "person": {"user_id": 8,
			"full_name": "Anna"}}`},
		{"streams", `{"id": 1, "type": "stream", "op": "update", "stream_id": 1, "property": "name",
			"value": "uno"}`},
	} {
		events, part := "["+c.event+"]", c.part
		m, fresh := New(Client{}), New(Client{})
		if m.Start([]byte(registerAnswer)) != nil || fresh.Start([]byte(registerAnswer)) != nil {
			t.Fatal("the register was not accepted")
		}
		if _, err := m.Events([]byte(`{"events": `+events+`}`), -1); err != nil {
			t.Fatalf("%s: %v", events, err)
		}
		diff := m.Diff(fresh)
		if part == "" && len(diff) > 0 || part != "" &&
			(len(diff) == 0 || !strings.Contains(diff[len(diff)-1].String()+diff[0].String(), part)) {
			t.Errorf("%s: differs in %v, want %q", events, diff, part)
		}
	}
}

// Events that a client cannot apply yield an error.
func TestBrokenEvents(t *testing.T) {
	for _, e := range []string{
		`{"id": 1, "type": "never heard of"}`,
		`{"id": 1, "type": "subscription", "op": "remove", "subscriptions": [{"stream_id": 2}]}`,
		`{"id": 1, "type": "update_message_flags", "op": "remove", "flag": "read", "messages": [7]}`,
		`{"id": -1, "type": "heartbeat"}`,
	} {
		m := New(Client{})
		if err := m.Start([]byte(registerAnswer)); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Events([]byte(`{"events": [`+e+`]}`), -1); err == nil {
			t.Errorf("%s was accepted", e)
		}
	}
}
