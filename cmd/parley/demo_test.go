package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var demoKey = regexp.MustCompile(`curl -sSu (\S+):(\S+) `)

// TestDemoPrintsAccountsAtEachStart starts a demo organization twice. Both starts print an example request whose key is
// valid, also after the kill.
func TestDemoPrintsAccountsAtEachStart(t *testing.T) {
	data := t.TempDir()
	for start := 1; start <= 2; start++ {
		p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
		url := p.serving()
		login := demoKey.FindStringSubmatch(p.output())
		if login == nil {
			t.Fatalf("start %d prints no example request", start)
		}
		r, err := http.NewRequest("GET", url+"/api/v1/users/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(login[1], login[2])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("start %d: the printed key got %s", start, answer.Status)
		}
		p.kill()
	}
}

// TestDemoConversations: the demo organization shows each kind of content, and every person has unread messages.
func TestDemoConversations(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data, "--demo-content")
	url := p.serving()
	ann := demoAccount(t, url, "ann@example.org")
	if got := len(ann.must(t, "GET", "users/me/subscriptions", nil)["subscriptions"].([]any)); got != 5 {
		t.Errorf("Ann has %d channels; all but the private one are 5", got)
	}
	page := fmt.Sprint(ann.must(t, "GET", "messages",
		map[string][]string{"anchor": {"newest"}, "num_before": {"200"}, "num_after": {"0"}})["messages"])
	for what, part := range map[string]string{
		"code": "codehilite", "formula": "katex-display", "inline formula": `class="katex"`, "table": "<table>",
		"picture": `data-original-dimensions="720x405"`, "spoiler": "spoiler-block",
		"poll": "canned,0", "task": "0,canned",
		"mention": `data-user-id="11">@Ann Lee`, "resolved topic": "✔ map tiles", "quotation": "<blockquote>",
		"link to a topic": "stream-topic", "reaction": "emoji_name:tada", "star": "starred",
		"direct message": "type:private",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("there is no %s", what)
		}
	}
	for _, name := range []string{"olive", "ada", "mo", "ann", "bo", "cy", "di", "ed", "fay", "gus"} {
		state := demoAccount(t, url, name+"@example.org").must(t, "POST", "register",
			map[string][]string{"fetch_event_types": {`["message","update_message_flags"]`}})
		if n := state["unread_msgs"].(map[string]any)["count"].(float64); n < 1 || n > 20 {
			t.Errorf("%s has %v unread messages", name, n)
		}
	}
	fay := demoAccount(t, url, "fay@example.org")
	if got := len(fay.must(t, "GET", "scheduled_messages", nil)["scheduled_messages"].([]any)); got != 1 {
		t.Errorf("Fay has %d scheduled messages", got)
	}
	if loaded := "outbox jobs of the last process loaded"; strings.Contains(p.output(), loaded) {
		t.Error("emails about messages of the demo wait")
	}
}
