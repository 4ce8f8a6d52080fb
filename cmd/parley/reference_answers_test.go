package main

import (
	"fmt"
	"testing"
)

// TestReferenceAnswers checks answers that differed from the reference server, with requests to the real program.
func TestReferenceAnswers(t *testing.T) {
	k := newDemoClient(t)
	for _, x := range []struct {
		name  string
		check func(t *testing.T, k *demoClient)
	}{
		{"changed settings of the organization", answerChangedSettings},
		{"capabilities without the first one", answerCapabilities},
		{"sounds of notifications", answerNotificationSounds},
		{"system bots", answerSystemBots},
		{"order of refusals", answerRefusals},
		{"events", answerEvents},
	} {
		t.Run(x.name, func(t *testing.T) {
			sub := *k
			sub.T = t
			x.check(t, &sub)
		})
	}
}

// PATCH /realm returns the settings that changed: numbers and groups with the new value, text as "updated".
func answerChangedSettings(t *testing.T, k *demoClient) {
	for _, x := range []struct {
		name       string
		sent, want any
	}{
		{"waiting_period_threshold", 2, 2.0},
		{"digest_emails_enabled", true, true},
		{"message_content_edit_limit_seconds", `"unlimited"`, nil},
		{"default_language", "de", "updated"},
		{"name", "Another", "updated"},
		{"description", "**new**", "updated"},
		{"can_invite_users_group", map[string]any{"new": 2}, 2.0},
		{"can_create_groups", map[string]any{"new": map[string]any{"direct_members": []any{k.ids["ann"]},
			"direct_subgroups": []int{2}}},
			map[string]any{"direct_members": []any{k.ids["ann"]}, "direct_subgroups": []any{2.0}}},
	} {
		a := k.must("olive", "PATCH realm", x.name, x.sent)
		if got, ok := a[x.name]; !ok || fmt.Sprint(got) != fmt.Sprint(x.want) || len(a) != 3 {
			t.Errorf("changing %s: %v, want %v", x.name, a, x.want)
		}
		if a := k.must("olive", "PATCH realm", x.name, x.sent); len(a) != 2 {
			t.Errorf("%s is already changed: %v", x.name, a)
		}
	}
	a := k.must("olive", "PATCH realm", "waiting_period_threshold", 0, "digest_emails_enabled", true)
	k.equal(
		"of two settings one changed",
		a,
		map[string]any{"msg": "", "result": "success", "waiting_period_threshold": 0},
	)
}

func answerCapabilities(t *testing.T, k *demoClient) {
	for _, caps := range []string{"{}", `{"bulk_message_deletion":true}`, `{"unknown":true}`} {
		k.must("ann", "POST register", "client_capabilities", caps) // the specification requires no capability
	}
	k.must("ann", "POST register", "client_capabilities", `{"notification_settings_null":false,"unknown":true}`)
	k.must("ann", "POST register")
}

func answerNotificationSounds(t *testing.T, k *demoClient) {
	a := k.must("ann", "POST register", "fetch_event_types", []string{"user_settings", "realm_user_settings_defaults"})
	for _, place := range []string{"user_settings", "realm_user_settings_defaults"} {
		sounds := dig(t, a, place, "available_notification_sounds").([]any)
		if len(sounds) != 30 || sounds[0] != "ascend" || sounds[29] != "zulip" {
			t.Errorf("sounds of %s: %v", place, sounds)
		}
		for _, sound := range append(sounds, "none") {
			k.must("ann", "PATCH settings", "notification_sound", sound)
		}
	}
	k.refused("ann", "PATCH settings", "BAD_REQUEST", "Invalid notification sound 'gong'", "notification_sound", "gong")
}

// System bots are in the registration only, and are active there.
func answerSystemBots(t *testing.T, k *demoClient) {
	for _, bot := range k.must("ann", "POST register", "fetch_event_types",
		[]string{"realm_user"})["cross_realm_bots"].([]any) {
		b := bot.(map[string]any)
		k.equal("is_active of a system bot", b["is_active"], true)
		k.refused("ann", fmt.Sprintf("GET users/%v", b["user_id"]), "BAD_REQUEST", "No such user")
	}
	if a := k.must("ann", "GET messages/1"); dig(t, a, "message", "avatar_url") == "" {
		t.Errorf("message without a picture: %v", a)
	}
}

func answerRefusals(t *testing.T, k *demoClient) {
	k.refused("ada", "POST realm/domains", "UNAUTHORIZED_PRINCIPAL", "Must be an organization owner", "domain", "z.com")
	k.refused(
		"olive",
		"POST realm/domains",
		"REQUEST_VARIABLE_MISSING",
		"Missing 'allow_subdomains' argument",
		"domain",
		"z.com",
	)
	k.refused("olive", "POST realm/domains", "REQUEST_VARIABLE_MISSING", "Missing 'domain' argument")
	k.refused("ann", "POST user_groups/create", "REQUEST_VARIABLE_MISSING", "Missing 'members' argument", "name", "z")
	for _, more := range [][]any{{"bot_type", 9}, {"bot_type", 3}, {"short_name", ""}} {
		k.refused(
			"ann",
			"POST bots",
			"BAD_REQUEST",
			"Name too short!",
			append([]any{"full_name", "q", "short_name", "qt"},
				more...)...)
	}
	k.refused("gus", "POST bots", "BAD_REQUEST", "Not allowed for guest users", "full_name", "q", "short_name", "qt")
	k.refused(
		"ann",
		"POST messages",
		"BAD_REQUEST",
		"You are not allowed to mention user group 'role:members'.",
		"type",
		"channel",
		"to",
		"general",
		"topic",
		"t",
		"content",
		"@*role:members*",
	)
}

// answerEvents checks the forms of events that differed.
func answerEvents(t *testing.T, k *demoClient) {
	queue := k.must(
		"ann",
		"POST register",
		"event_types",
		[]string{"realm", "user_group", "user_status", "update_message"},
	)
	last := -1.0
	next := func(n int) (out []map[string]any) {
		for len(out) < n {
			for _, e := range k.must("ann", "GET events", "queue_id", queue["queue_id"], "last_event_id",
				last)["events"].([]any) {
				event := e.(map[string]any)
				last = event["id"].(float64)
				out = append(out, event)
			}
		}
		return out
	}
	k.equal("number of the visibility", k.must("olive", "PATCH realm", "message_edit_history_visibility_policy",
		"moves")["message_edit_history_visibility_policy"], 2)
	e := next(1)[0]
	k.equal("visibility of edit history", []any{e["op"], e["property"], e["value"]},
		[]any{"update", "message_edit_history_visibility_policy", "moves"})
	for _, name := range []string{"message_content_delete_limit_seconds", "move_messages_within_stream_limit_seconds",
		"move_messages_between_streams_limit_seconds"} {
		k.must("olive", "PATCH realm", name, 7200)
		e := next(1)[0]
		k.equal(name, []any{e["op"], e["property"], e["value"]}, []any{"update", name, 7200})
	}
	group := k.must("ann", "POST user_groups/create", "name", "reds", "description", "", "members",
		[]any{k.ids["ann"]})["group_id"]
	next(1)
	k.must("ann", fmt.Sprintf("PATCH user_groups/%v", group), "name", "blues", "description", "new")
	got := next(2)
	k.equal("data of a changed group", []any{got[0]["data"], got[1]["data"]},
		[]any{map[string]any{"name": "blues"}, map[string]any{"description": "new"}})
	k.must("ann", "POST users/me/status", "emoji_name", "car")
	k.must("ann", "POST users/me/status", "emoji_name", "")
	k.equal("type of a removed emoji", next(2)[1]["reaction_type"], "unicode_emoji")
	id := k.must("olive", "POST messages", "type", "channel", "to", "general", "topic", "t", "content", "tea")["id"]
	k.must("olive", fmt.Sprintf("PATCH messages/%v", id), "content", "@**all** tea")
	k.equal("flags of a changed message", next(1)[0]["flags"], []any{"stream_wildcard_mentioned"})
}
