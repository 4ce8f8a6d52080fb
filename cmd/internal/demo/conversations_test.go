package demo

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"parley/wire/markdown/emoji"
)

// The conversations are in the order of their times, whatever the hour of the start, and all names in them exist.
func TestConversations(t *testing.T) {
	logins := map[string]bool{}
	for _, a := range accounts {
		logins[a.login] = true
	}
	for hour := range 24 {
		now := time.Date(2026, 3, 1, hour, 20, 0, 0, time.UTC)
		list, err := parseConversations(conversationTexts, now)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := parseConversations(conversationTexts, now)
		if len(list) < 60 || !reflect.DeepEqual(list, again) {
			t.Fatalf("%d messages, or not the same ones twice", len(list))
		}
		firstOfToday := slices.IndexFunc(list, func(m *message) bool { return m.today })
		for i, m := range list {
			if m.text == "" || m.at >= now.Unix() || m.today != (i >= firstOfToday) {
				t.Errorf("at %d:20, message %d of %s at %v: %q", hour, i, m.from, time.Unix(m.at, 0).UTC(), m.text)
			}
			for _, r := range append(m.reactions, reaction{"tada", m.from}) {
				if _, known := emoji.CodeOf(r.emoji); !known || !logins[r.login] {
					t.Errorf("no emoji %s or no account %s", r.emoji, r.login)
				}
			}
		}
	}
	if _, err := parseConversations("== general\n", time.Now()); err == nil {
		t.Error("a heading without a topic is accepted")
	}
	if _, err := parseConversations("== general > lunch\nHello\n", time.Now()); err == nil {
		t.Error("a text without a sender is accepted")
	}
}
