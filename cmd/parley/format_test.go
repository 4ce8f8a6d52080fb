package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// A data directory as the first release wrote it, in a backup, with rows, a journal behind them, and events that a client
// had not acknowledged. Every later release must serve from it. The file is never replaced: a release that changes what is
// written adds its own beside it.
func TestFirstFormatIsServed(t *testing.T) {
	const queue = "c123a611-5f0e-4556-92d2-7a6d04b9ad98" // Ann's, registered before anything was said
	file := filepath.Join("testdata", "first.tar")
	data := filepath.Join(t.TempDir(), "data")
	digests(t, "verify", file)
	digests(t, "restore", file, data)
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
	ann := demoAccount(t, p.serving(), "ann@example.org")
	a, err := ann.call("GET", "events", url.Values{"queue_id": {queue}, "last_event_id": {"-1"}, "dont_block": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	for _, x := range a["events"].([]any) {
		e := x.(map[string]any)
		switch e["type"] {
		case "message":
			heard = append(heard, e["message"].(map[string]any)["content"].(string))
		case "update_message":
			heard = append(heard, "edited: "+e["content"].(string))
		case "reaction":
			heard = append(heard, e["emoji_name"].(string))
		}
	}
	if got := strings.Join(heard, "; "); got != "the first message; a word to Ann; wave; edited: the first message, edited; behind the snapshot" {
		t.Errorf("Ann's queue holds %q", got)
	}
	a, err = ann.call("GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"3"}, "num_after": {"0"}, "apply_markdown": {"false"}})
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, x := range a["messages"].([]any) {
		read = append(read, x.(map[string]any)["content"].(string))
	}
	if got := strings.Join(read, "; "); got != "the first message, edited; a word to Ann; behind the snapshot" {
		t.Errorf("she reads %q", got)
	}
	first := a["messages"].([]any)[0].(map[string]any)
	if n := len(first["reactions"].([]any)); n != 1 || !strings.Contains(strings.Join(textsOf(first["flags"].([]any)), " "), "starred") {
		t.Errorf("the first message has %d reactions and flags %v", n, first["flags"])
	}
	if _, err := ann.send("it goes on"); err != nil {
		t.Error(err)
	}
}

func textsOf(list []any) (out []string) {
	for _, x := range list {
		out = append(out, x.(string))
	}
	return out
}
