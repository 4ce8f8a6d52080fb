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
		k.refused("ann", "POST register", "BAD_REQUEST",
			`client_capabilities["notification_settings_null"] field is missing`, "client_capabilities", caps)
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
