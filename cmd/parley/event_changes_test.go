package main

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Events about a bot, and about the users who can post in a channel, contain only changed properties.
func TestEventsContainOnlyChanges(t *testing.T) {
	k := newDemoClient(t)
	q := k.must("ada", "POST register", "event_types", []string{"realm_bot", "stream"})
	last := q["last_event_id"]
	received := func(id string) (out []string) {
		t.Helper()
		for _, e := range k.must("ada", "GET events", "queue_id", q["queue_id"].(string), "last_event_id", last,
			"dont_block", true)["events"].([]any) {
			e := e.(map[string]any)
			last = e["id"]
			switch bot, _ := e["bot"].(map[string]any); {
			case e["op"] == "update" && bot != nil && fmt.Sprint(bot["user_id"]) == id:
				delete(bot, "user_id")
				out = append(out, slices.Sorted(maps.Keys(bot))...)
			case e["op"] == "update":
				out = append(out, fmt.Sprint(e["property"], " ", e["value"]))
			}
		}
		return out
	}
	bot := fmt.Sprint(k.must("ann", "POST bots", "full_name", "Hook", "short_name", "hook", "bot_type", 3,
		"payload_url", `"http://example.org/"`)["user_id"])
	received(bot)
	for _, x := range []struct {
		params []any
		events []string
	}{
		{[]any{"default_sending_stream", "general"}, []string{"default_sending_stream"}},
		{[]any{"default_sending_stream", "general", "default_all_public_streams", true},
			[]string{"default_all_public_streams"}},
		{[]any{"service_payload_url", `"http://example.org/there"`, "default_events_register_stream", "engineering"},
			[]string{"default_events_register_stream", "services"}},
		{[]any{"full_name", "Hooked"}, nil},
	} {
		k.must("ann", "PATCH bots/"+bot, x.params...)
		if got := received(bot); !slices.Equal(got, x.events) {
			t.Errorf("%v: events with %v, want %v", x.params, got, x.events)
		}
	}

	groups := map[string]any{}
	for _, g := range k.must("ada", "GET user_groups")["user_groups"].([]any) {
		g := g.(map[string]any)
		groups[fmt.Sprint(g["name"])] = g["id"]
	}
	for _, x := range []struct {
		group string
		old   []string
	}{
		{"role:members", nil}, {"role:administrators", []string{"stream_post_policy 2", "is_announcement_only true"}},
		{"role:administrators", nil},
		{"role:moderators", []string{"stream_post_policy 4", "is_announcement_only false"}},
		{"role:owners", []string{"stream_post_policy 1", "is_announcement_only false"}}, {"role:everyone", nil},
	} {
		before := fmt.Sprint(k.must("ada", "GET streams/1")["stream"].(map[string]any)["can_send_message_group"])
		k.must("olive", "PATCH streams/1", "can_send_message_group", map[string]any{"new": groups[x.group]})
		want := x.old
		if now := fmt.Sprint(groups[x.group]); now != before {
			want = append([]string{"can_send_message_group " + now}, want...)
		}
		if got := received(bot); !slices.Equal(got, want) {
			t.Errorf("%s may post: events with %v, want %v", x.group, got, want)
		}
	}
}
