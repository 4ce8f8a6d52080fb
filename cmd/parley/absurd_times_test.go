package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/wire"
)

// TestAbsurdTimes sends numbers that are no time, and times that clients cannot show, to every endpoint that takes one.
// They are refused with the protocol's error, and nothing is stored: the lists have only the rows with good times.
func TestAbsurdTimes(t *testing.T) {
	k := newDemoClient(t)
	message := fmt.Sprint(k.must("ann", "POST messages", "type", "direct", "to", []int{k.ids["bo"]}, "content",
		"x")["id"])
	const later = 4_000_000_000 // in the year 2096
	draft := func(at string) string {
		return `{"type":"","to":[],"topic":"","content":"x","timestamp":` + at + `}`
	}
	scheduled := fmt.Sprint(k.must("ann", "POST scheduled_messages", "type", "direct", "to", []int{k.ids["bo"]},
		"content", "x", "scheduled_delivery_timestamp", later)["scheduled_message_id"])
	stored := k.must("ann", "POST drafts", "drafts", "["+draft("5")+"]")["ids"].([]any)[0]
	k.must("ann", "POST reminders", "message_id", message, "scheduled_delivery_timestamp", later)
	const future = "Scheduled delivery time must be in the future."
	for _, c := range []struct{ value, draft, at string }{
		{"1000000000000000000", "NAME is too large", "NAME is too large"},
		{"9223372036854775807", "NAME is too large", "NAME is too large"},
		{"9223372036854775808", "NAME is too large", "NAME is too large"},
		{"1" + strings.Repeat("0", 400), "NAME is too large", "NAME is too large"},
		{fmt.Sprint(wire.MaxTime + 1), "NAME is too large", "NAME is too large"},
		{"1795771339687", "NAME is too large", "NAME is too large"}, // in milliseconds
		{"-1", "Timestamp must not be negative.", future},
		{"-9223372036854775808", "Timestamp must not be negative.", future},
		{"-9223372036854775809", "NAME is too small", "NAME is too small"},
		{"0", "", future},
		{"1.5", "NAME is not an integer", "NAME is not an integer"},
		{"4000000000.0", "NAME is not an integer", "NAME is not an integer"},
		{"4e9", "NAME is not an integer", "NAME is not an integer"},
		{"1e400", "NAME is not an integer", "NAME is not an integer"},
		{`"4000000000"`, "NAME is not an integer", "NAME is not an integer"},
		{"true", "NAME is not an integer", "NAME is not an integer"},
		{"null", "NAME is not an integer", "NAME is not an integer"},
		{"[4000000000]", "NAME is not an integer", "NAME is not an integer"},
		{"NaN", "LIST is not valid JSON", "NAME is not valid JSON"},
		{"-Infinity", "LIST is not valid JSON", "NAME is not valid JSON"},
		{"", "LIST is not valid JSON", "NAME is not valid JSON"},
		{"tomorrow", "LIST is not valid JSON", "NAME is not valid JSON"},
		{"2030-01-01T00:00:00Z", "LIST is not valid JSON", "NAME is not valid JSON"},
	} {
		in := func(text, name, list string) string {
			return strings.NewReplacer("NAME", name, "LIST", list).Replace(text)
		}
		if c.draft != "" {
			k.refused("ann", "POST drafts", "BAD_REQUEST", in(c.draft, `drafts[1]["timestamp"]`, "drafts"), "drafts",
				"["+draft("6")+","+draft(c.value)+"]")
			k.refused("ann", fmt.Sprint("PATCH drafts/", stored), "BAD_REQUEST", in(c.draft, `draft["timestamp"]`,
				"draft"), "draft", draft(c.value))
		}
		at := in(c.at, "scheduled_delivery_timestamp", "")
		k.refused("ann", "POST scheduled_messages", "BAD_REQUEST", at, "type", "direct", "to", []int{k.ids["bo"]},
			"content", "x", "scheduled_delivery_timestamp", c.value)
		k.refused("ann", "PATCH scheduled_messages/"+scheduled, "BAD_REQUEST", at, "scheduled_delivery_timestamp",
			c.value)
		k.refused("ann", "POST reminders", "BAD_REQUEST", at, "message_id", message, "scheduled_delivery_timestamp",
			c.value)
	}
	for _, call := range []string{"GET drafts", "GET scheduled_messages", "GET reminders"} {
		text, err := json.Marshal(k.must("ann", call))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), `timestamp":`); n != 1 {
			t.Errorf("%s: %d rows, want 1: %s", call, n, text)
		}
	}
	k.must("ann", "POST drafts", "drafts", "["+draft(fmt.Sprint(wire.MaxTime))+"]")
	k.must("ann", "POST reminders", "message_id", message, "scheduled_delivery_timestamp", wire.MaxTime)
	k.must("ann", "PATCH scheduled_messages/"+scheduled, "scheduled_delivery_timestamp", wire.MaxTime)
	for _, v := range []string{"2147483648", "106751991167301", "9223372036854775807"} {
		for _, name := range []string{"message_retention_days", "message_content_edit_limit_seconds"} {
			k.refused("olive", "PATCH realm", "REQUEST_VARIABLE_INVALID", "Bad value for '"+name+"': "+v, name, v)
		}
		k.refused("olive", "PATCH realm", "BAD_REQUEST", "waiting_period_threshold is too large",
			"waiting_period_threshold", v)
		k.refused("olive", "PATCH streams/1", "REQUEST_VARIABLE_INVALID", "Bad value for 'message_retention_days': "+v,
			"message_retention_days", v)
	}
}
