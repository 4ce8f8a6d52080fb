package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/first.tar is a backup of a data directory in the format of the first release, with rows, a journal after
// them, and events that a client had not acknowledged. Every later release must be able to serve it. The file is never
// replaced: a release that changes the format adds another file.
func TestFirstFormatIsServed(t *testing.T) {
	const queue = "c123a611-5f0e-4556-92d2-7a6d04b9ad98" // Ann's queue, registered before the first message
	file := filepath.Join("testdata", "first.tar")
	data := filepath.Join(t.TempDir(), "data")
	digests(t, "verify", file)
	digests(t, "restore", file, data)
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
	ann := demoAccount(t, p.serving(), "ann@example.org")
	a, err := ann.call("GET", "events", url.Values{"queue_id": {queue}, "last_event_id": {"-1"},
		"dont_block": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, x := range a["events"].([]any) {
		e := x.(map[string]any)
		switch e["type"] {
		case "message":
			events = append(events, e["message"].(map[string]any)["content"].(string))
		case "update_message":
			events = append(events, "edited: "+e["content"].(string))
		case "reaction":
			events = append(events, e["emoji_name"].(string))
		}
	}
	if got := strings.Join(events,
		"; "); got != "the first message; a word to Ann; wave; edited: the first message, edited; behind the snapshot" {
		t.Errorf("Ann's queue holds %q", got)
	}
	a, err = ann.call("GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"3"}, "num_after": {"0"},
		"apply_markdown": {"false"}})
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, x := range a["messages"].([]any) {
		read = append(read, x.(map[string]any)["content"].(string))
	}
	if got := strings.Join(read, "; "); got != "the first message, edited; a word to Ann; behind the snapshot" {
		t.Errorf("Ann reads %q", got)
	}
	first := a["messages"].([]any)[0].(map[string]any)
	if n := len(first["reactions"].([]any)); n != 1 ||
		!strings.Contains(strings.Join(textsOf(first["flags"].([]any)), " "), "starred") {
		t.Errorf("the first message has %d reactions and flags %v", n, first["flags"])
	}
	if _, err := ann.send("a new message"); err != nil {
		t.Error(err)
	}
}

func textsOf(list []any) (out []string) {
	for _, x := range list {
		out = append(out, x.(string))
	}
	return out
}
