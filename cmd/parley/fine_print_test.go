package main

import (
	"fmt"
	"testing"
)

// TestFinePrint asks for what the pages about the protocol say in passing, through the binary as clients do.
func TestFinePrint(t *testing.T) {
	k := newTalk(t)
	dig := func(a map[string]any, path ...string) any {
		t.Helper()
		var v any = a
		for _, p := range path {
			o, ok := v.(map[string]any)
			if !ok {
				t.Errorf("no %v in %v", path, a)
				return nil
			}
			v = o[p]
		}
		return v
	}

	t.Run("dates of anchors", func(t *testing.T) {
		for _, path := range []string{"GET messages", "POST messages/flags/narrow"} {
			more := []any{"num_before", 1, "num_after", 0, "narrow", []any{}, "op", "add", "flag", "read", "anchor_date", "some day"}
			k.must("ann", path, append(more, "anchor", "newest")...)
			k.refused("ann", path, "BAD_REQUEST", "anchor_date is not a date", append(more, "anchor", "date")...)
		}
	})
	t.Run("subjects of matches", func(t *testing.T) {
		direct := fmt.Sprint(k.must("ann", "POST messages", "type", "direct", "to", []any{k.ids["bo"]}, "content", "walrus")["id"])
		posted := fmt.Sprint(k.must("ann", "POST messages", "type", "channel", "to", "general", "topic", "", "content", "walrus")["id"])
		for _, narrow := range []any{[]any{[]any{"search", "walrus"}}, []any{}} {
			a := k.must("ann", "GET messages/matches_narrow", "msg_ids", "["+direct+","+posted+"]", "narrow", narrow)
			if s := dig(a, "messages", direct, "match_subject"); s != "" {
				t.Errorf("a direct message has the topic %q", s)
			}
			if s := dig(a, "messages", posted, "match_subject"); s != "general chat" {
				t.Errorf("the empty topic is called %q", s)
			}
		}
	})
	t.Run("mentions by id", func(t *testing.T) {
		id := k.must("ann", "POST messages", "type", "channel", "to", "general", "topic", "tea", "content", "@**Bo Park** tea?")["id"]
		a := k.must("ann", "GET messages", "anchor", "newest", "num_before", 5, "num_after", 0, "narrow", []any{map[string]any{"operator": "mentions", "operand": k.ids["bo"]}})
		if m := a["messages"].([]any); len(m) != 1 || m[0].(map[string]any)["id"] != id {
			t.Errorf("bo is mentioned in %v", m)
		}
	})
}
