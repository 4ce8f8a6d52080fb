package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A message that was edited many times, to texts with twenty times their size of HTML, costs little in listings. Its
// history is complete, but in several answers of bounded size.
func TestLargeEditHistory(t *testing.T) {
	const edits = 20
	d := startDemo(t)
	text := func(n int) string { return fmt.Sprint(n, " ") + strings.Repeat(":o: ", 2490) }
	sent := d.call("ann@example.org", "POST", "messages",
		url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"bomb"}, "content": {text(0)}})
	path := fmt.Sprint("messages/", sent["id"])
	for n := range edits {
		d.call("ann@example.org", "PATCH", path, url.Values{"content": {text(n + 1)}})
	}
	listing := d.call("ann@example.org", "GET", "messages", url.Values{"anchor": {fmt.Sprint(sent["id"])},
		"num_before": {"0"}, "num_after": {"0"}, "apply_markdown": {"false"}})
	data, _ := json.Marshal(listing)
	if s := string(data); len(s) > 40_000 || strings.Contains(s, "prev_rendered_content") {
		t.Errorf("the listing has %d bytes, old HTML: %t", len(s), strings.Contains(s, "prev_rendered_content"))
	}
	var seen []string
	pages, offset := 0, "0"
	for ; ; pages++ {
		a := d.call("ann@example.org", "GET", path+"/history", url.Values{"offset": {offset}})
		if data, _ := json.Marshal(a); len(data) > 12<<20 {
			t.Errorf("an answer has %d bytes", len(data))
		}
		for _, x := range a["message_history"].([]any) {
			number, _, _ := strings.Cut(x.(map[string]any)["content"].(string), " ")
			seen = append(seen, number)
		}
		next, more := a["next_offset"].(float64)
		if !more {
			break
		}
		offset = fmt.Sprint(next)
	}
	var want []string
	for n := range edits + 1 {
		want = append(want, fmt.Sprint(n))
	}
	if strings.Join(seen, " ") != strings.Join(want, " ") || pages < 2 {
		t.Errorf("%d pages: %v", pages, seen)
	}
}
