package main

import (
	"fmt"
	"testing"
)

// TestStatusRequests holds the order of the checks of a status, and that of the events: the setting, the presence, and
// one event with the whole change of the status.
func TestStatusRequests(t *testing.T) {
	k := newDemoClient(t)
	const nothing, noName = "Client did not pass any new values.",
		"Client must pass emoji_name if they pass either emoji_code or reaction_type."
	const bots = "This endpoint does not accept bot requests."
	for _, c := range []struct {
		who, msg string
		params   []any
	}{
		{"ann", nothing, nil},
		{"ann", nothing, []any{"emoji_code", "1f697"}},
		{"ann", nothing, []any{"reaction_type", "unicode_emoji"}},
		{"ann", noName, []any{"emoji_code", "1f697", "status_text", "x"}},
		{"ann", noName, []any{"reaction_type", "unicode_emoji", "away", "true"}},
		{"ann", "away is not valid JSON", []any{"away", "zork", "status_text", fmt.Sprintf("%061d", 0)}},
		{"ann", "Emoji 'zork' does not exist", []any{"emoji_name", "zork", "away", "true"}},
		{"demo-bot", bots, nil},
		{"demo-bot", bots, []any{"emoji_name", "zork"}},
		{"demo-bot", bots, []any{"emoji_code", "1f697"}},
	} {
		k.refused(c.who, "POST users/me/status", "BAD_REQUEST", c.msg, c.params...)
	}
	k.refused("ann", "POST users/{bo}/status", "UNAUTHORIZED_PRINCIPAL", "Must be an organization administrator",
		"emoji_name", "zork")
	k.refused("ada", "POST users/{bo}/status", "BAD_REQUEST", nothing, "emoji_code", "1f697")
	k.must("ann", "POST users/me/status", "status_text", "x", "emoji_code", "")
	queue := k.must("bo", "POST register", "event_types", []string{"presence", "user_status"})["queue_id"]
	last := -1.0
	for _, c := range []struct {
		params []any
		want   string
	}{
		{[]any{"away", "true", "status_text", "tea"}, "[presence user_status true tea]"},
		{[]any{"away", "true", "status_text", "milk"}, "[user_status <nil> milk]"},
		{[]any{"away", "true"}, "[]"},
		{[]any{"away", "false"}, "[presence user_status false <nil>]"},
	} {
		k.must("ann", "POST users/me/status", c.params...)
		got := []any{}
		a := k.must("bo", "GET events", "queue_id", queue, "last_event_id", last, "dont_block", true)
		for _, e := range a["events"].([]any) {
			e := e.(map[string]any)
			last = e["id"].(float64)
			if got = append(got, e["type"]); e["type"] == "user_status" {
				got = append(got, e["away"], e["status_text"])
			}
		}
		k.equal(fmt.Sprint(c.params), got, c.want)
	}
}

// TestChangedBotFields holds that the answer to a change of a bot has the fields of its service for every kind of bot.
func TestChangedBotFields(t *testing.T) {
	k := newDemoClient(t)
	for kind, want := range map[string]string{"1": "1 <nil> <nil>", "2": "1 <nil> <nil>",
		"3": "2 http://127.0.0.1:1/x <nil>"} {
		params := []any{"full_name", "Bot " + kind, "short_name", "kind" + kind, "bot_type", kind}
		if kind == "3" {
			params = append(params, "payload_url", `"http://127.0.0.1:1/x"`, "interface_type", "2")
		}
		bot := k.must("ann", "POST bots", params...)["user_id"]
		a := k.must("ann", fmt.Sprint("PATCH bots/", bot), "full_name", "Robot "+kind)
		for _, name := range []string{"service_interface", "service_payload_url", "config_data", "full_name",
			"avatar_url", "bot_owner", "default_sending_stream", "default_events_register_stream",
			"default_all_public_streams"} {
			if _, ok := a[name]; !ok {
				t.Errorf("a bot of type %s has no %s", kind, name)
			}
		}
		k.equal("type "+kind, fmt.Sprint(a["service_interface"], " ", a["service_payload_url"], " ",
			a["config_data"]), want)
	}
}
