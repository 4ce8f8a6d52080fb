package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// longText returns a text that fills a block of the store and that compression leaves as it is. word makes it findable.
func longText(word string) string {
	state, b := uint64(len(word))+uint64(word[len(word)-1])*1_000_003, strings.Builder{}
	b.WriteString(word)
	for b.Len() < 9000 {
		state = state*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, " %08x", state>>32)
	}
	return b.String()
}

// flipBit changes one bit of a text in the store's tables. part is a piece of the text that occurs nowhere else.
func flipBit(t *testing.T, dir, part string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for at := bytes.Index(data, []byte(part)); at >= 0; at = bytes.Index(data, []byte(part)) {
			data[at] ^= 0x40
			found++
		}
		if err := os.WriteFile(table, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatalf("no table of %v has the text", tables)
	}
}

// damagedServer is a server that has started with two damaged texts.
type damagedServer struct {
	dir     string
	p       *program
	ann     *account
	whole   int64 // a message that is not damaged
	damaged int64 // a message with a damaged text
	edited  int64 // a message with a damaged text in its edit history
	queue   string
}

// newDamagedServer sends messages, stops the server, flips one bit in each of two texts, and starts the server again.
func newDamagedServer(t *testing.T) *damagedServer {
	t.Helper()
	s := &damagedServer{dir: filepath.Join(t.TempDir(), "data")}
	s.p = demo(t, s.dir)
	s.ann = demoAccount(t, s.p.serving(), "ann@example.org")
	send := func(word string) int64 {
		id, err := s.ann.send(longText(word))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for i := range 4 {
		s.whole = send(fmt.Sprint("whole", i))
	}
	wanted := url.Values{"event_types": {`["message","update_message"]`}}
	s.queue = s.ann.must(t, "POST", "register", wanted)["queue_id"].(string)
	s.damaged = send("damagedx")
	for i := range 4 {
		send(fmt.Sprint("between", i))
	}
	s.edited = send("originaly")
	s.ann.must(t, "PATCH", fmt.Sprint("messages/", s.edited), url.Values{"content": {longText("editedz")}})
	for i := range 4 {
		send(fmt.Sprint("after", i))
	}
	s.p.stop()
	if out, code := runParley("log", "check", s.dir); code != 0 {
		t.Fatalf("check of an undamaged directory: %d, %s", code, out)
	}
	flipBit(t, s.dir, longText("damagedx")[4000:4018])
	flipBit(t, s.dir, longText("originaly")[4000:4018])
	s.p = demo(t, s.dir, "--archive-days", "0") // deleted texts are erased at once
	s.ann.url = s.p.serving()
	return s
}

// TestDamagedTextIsNoSuccess flips bits in the stored texts of a stopped server. Every request that needs one of
// them is answered 500 with a stable code; no answer leaves the message out. /health, the log and log check name the
// damage.
func TestDamagedTextIsNoSuccess(t *testing.T) {
	s := newDamagedServer(t)
	refused := func(method, path string, form url.Values, id int64) {
		t.Helper()
		a, err := s.ann.call(method, path, form)
		if err == nil || !strings.Contains(err.Error(), "status 500") || a["code"] != "MESSAGE_TEXT_DAMAGED" ||
			a["message_id"] != float64(id) {
			t.Errorf("%s %s: %.300v, %v", method, path, a, err)
		}
	}
	around := func(id int64, narrow string) url.Values {
		return url.Values{"anchor": {fmt.Sprint(id)}, "num_before": {"0"}, "num_after": {"0"}, "narrow": {narrow}}
	}
	health := func() string {
		t.Helper()
		r, body := getText(t, s.ann.url+"/health")
		if r.StatusCode != 200 {
			t.Errorf("/health: status %d", r.StatusCode)
		}
		return body
	}
	if h := health(); strings.Contains(h, "degraded") {
		t.Errorf("before any text was read: %s", h)
	}
	one := fmt.Sprint("messages/", s.damaged)
	refused("GET", "messages", around(s.damaged, "[]"), s.damaged)
	refused("GET", "messages", url.Values{"message_ids": {fmt.Sprintf("[%d,%d]", s.whole, s.damaged)}}, s.damaged)
	refused("GET", one, nil, s.damaged)
	refused("GET", one+"/history", nil, s.damaged)
	refused("GET", "messages", around(s.damaged, `[["search","damagedx"]]`), s.damaged)
	refused("GET", "messages", around(s.damaged, `[["search","\"damagedx d\""]]`), s.damaged)
	refused("GET", "messages/matches_narrow", url.Values{"msg_ids": {fmt.Sprintf("[%d]", s.damaged)},
		"narrow": {`[["search","damagedx"]]`}}, s.damaged)
	refused("PATCH", one, url.Values{"content": {"new"}, "prev_content_sha256": {strings.Repeat("0", 64)}}, s.damaged)
	refused("POST", "reminders", url.Values{"message_id": {fmt.Sprint(s.damaged)},
		"scheduled_delivery_timestamp": {fmt.Sprint(time.Now().Unix() + 1000)}}, s.damaged)
	refused("GET", fmt.Sprint("messages/", s.edited, "/history"), nil, s.edited)
	for _, id := range []int64{s.whole, s.whole - 1} {
		s.ann.must(t, "GET", fmt.Sprint("messages/", id), nil)
	}
	if h := health(); !strings.Contains(h, `"health":"degraded"`) || !strings.Contains(h, `"damaged_texts":2`) {
		t.Errorf("/health: %s", h)
	}
	if log := s.p.output(); !strings.Contains(
		log,
		fmt.Sprintf(`msg="message text is damaged" realm=1 message=%d`, s.damaged),
	) {
		t.Errorf("no line of the log names realm %d and message %d", 1, s.damaged)
	}
	s.checkEvents(t)
	s.checkExport(t)
	s.ann.must(t, "DELETE", one, nil)
	eventually(t, "/health counts one damaged text after the other's message was deleted", func() bool {
		return strings.Contains(health(), `"damaged_texts":1`)
	})
	s.p.kill() // a stop would fail if a compaction reads the damage first
	out, code := runParley("log", "check", s.dir)
	if code != exitError || !strings.Contains(out, fmt.Sprintf("realm 1, text of message %d, version 0: ", s.edited)) {
		t.Errorf("log check: code %d, %s", code, out)
		// An edit that does not compare the old text needs none: the author writes the message again.
		s.ann.must(t, "PATCH", one, url.Values{"content": {"new"}})
		s.ann.must(t, "GET", one, nil)
	}
}

// checkEvents expects that the queue has every event, those of damaged texts with a note instead of the text.
func (s *damagedServer) checkEvents(t *testing.T) {
	t.Helper()
	a := s.ann.must(
		t,
		"GET",
		"events",
		url.Values{"queue_id": {s.queue}, "last_event_id": {"-1"}, "dont_block": {"true"}},
	)
	seen, marked := map[string]int{}, 0
	for _, x := range a["events"].([]any) {
		e := x.(map[string]any)
		seen[e["type"].(string)]++
		m, _ := e["message"].(map[string]any)
		if m == nil {
			continue
		}
		marker, id := strings.Contains(m["content"].(string), "is damaged on the server"), int64(m["id"].(float64))
		if marker != (id == s.damaged || id == s.edited) {
			t.Errorf("message %d of %d: the content is %.60q", id, s.damaged, m["content"])
		}
		if marker {
			marked++
		}
	}
	if seen["message"] != 10 || seen["update_message"] != 1 || marked != 2 {
		data, _ := json.Marshal(seen)
		t.Errorf("the queue has %s, %d with damaged texts", data, marked)
	}
}

// checkExport expects that an export fails instead of leaving the message out.
func (s *damagedServer) checkExport(t *testing.T) {
	t.Helper()
	ada := demoAccount(t, s.ann.url, "ada@example.org")
	ada.must(t, "POST", "export/realm", url.Values{"export_type": {"public"}})
	for deadline := time.Now().Add(binaryTimeout); ; time.Sleep(50 * time.Millisecond) {
		list := ada.must(t, "GET", "export/realm", nil)["exports"].([]any)
		x := list[len(list)-1].(map[string]any)
		if x["pending"] == false {
			if x["failed_timestamp"] == nil || x["export_url"] != nil {
				t.Errorf("the export is %v", x)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the export does not end")
		}
	}
}
