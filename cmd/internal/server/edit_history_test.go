package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A single message carries the texts and the HTML of its earlier versions, up to a bound of the whole answer. Listings
// carry the texts up to a smaller bound. An entry beyond a bound leaves both keys out: an empty text would be wrong.
func TestEditHistoryTexts(t *testing.T) {
	d := startDemo(t)
	around := func(id string) url.Values {
		return url.Values{"anchor": {id}, "num_before": {"0"}, "num_after": {"0"}}
	}
	id := d.editedMessage("*a*", "b", "c")
	single, listed := d.revisions("messages/"+id, nil), d.revisions("messages", around(id))
	if x := single[1]; x["prev_content"] != "*a*" || x["prev_rendered_content"] != "<p><em>a</em></p>" {
		t.Errorf("first version of a single message: %v", x)
	}
	if x := listed[1]; x["prev_content"] != "*a*" || x["prev_rendered_content"] != nil {
		t.Errorf("first version in a list: %v", x)
	}
	long := strings.Repeat("x", 9000)
	id = d.editedMessage("1"+long, "2"+long, "3"+long)
	for n, x := range d.revisions("messages", around(id)) {
		if text, ok := x["prev_content"]; ok != (n == 0) || text == "" {
			t.Errorf("entry %d of a list has an old text: %t, an empty one: %t", n, ok, text == "")
		}
	}
	for n, x := range d.revisions("messages/"+id, nil) {
		if x["prev_content"] != fmt.Sprint(2-n)+long {
			t.Errorf("entry %d of a single message lacks its text", n)
		}
	}
}

// editedMessage sends a message and edits it to each further text. It returns the message's id.
func (d *demoServer) editedMessage(texts ...string) string {
	sent := d.call("ann@example.org", "POST", "messages",
		url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"edits"}, "content": {texts[0]}})
	id := fmt.Sprint(sent["id"])
	for _, text := range texts[1:] {
		d.call("ann@example.org", "PATCH", "messages/"+id, url.Values{"content": {text}})
	}
	return id
}

// revisions returns the edit history of the only message of an answer.
func (d *demoServer) revisions(path string, params url.Values) (out []map[string]any) {
	answer := d.call("ann@example.org", "GET", path, params)
	message, single := answer["message"].(map[string]any)
	if !single {
		message = answer["messages"].([]any)[0].(map[string]any)
	}
	for _, x := range message["edit_history"].([]any) {
		out = append(out, x.(map[string]any))
	}
	return out
}

// A message that was edited many times, to texts with twenty times their size of HTML, costs little in listings. Its
// history is complete, but in several answers of bounded size.
func TestLargeEditHistory(t *testing.T) {
	const edits = 24
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
	texts := 0
	for n, x := range d.revisions(path, nil) {
		if _, ok := x["prev_content"]; ok {
			texts++
		} else if n == 0 || x["prev_rendered_content"] != nil {
			t.Errorf("entry %d of the single message: %v", n, x)
		}
	}
	if texts == 0 || texts == edits {
		t.Errorf("the single message has %d of %d old texts, so no bound is visible", texts, edits)
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
