package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// In a cluster with two edges, a call of a bot's service, a scheduled message and a reminder are done once, by the
// core, whichever node the requests were sent to.
func TestEdgesDoNoDutyTwice(t *testing.T) {
	var calls atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, fmt.Sprintf(`{"content": "call %d"}`, calls.Add(1)))
	}))
	defer service.Close()
	dir := t.TempDir()
	c := &edgesOfCore{t: t, dir: dir,
		core: &edgeProcess{id: "a", data: filepath.Join(dir, "a"), listen: freeAddress(t)}}
	mustRun(t, "cluster", "init", "--data", c.core.data, "--node", "a", "--peer-listen", freeAddress(t))
	c.start(c.core, "--webhooks-allow", "127.0.0.0/8")
	c.addEdge("b")
	c.addEdge("c")
	ann, bo := demoAccount(t, c.edges[0].url(), "ann@example.org"), demoAccount(t, c.edges[1].url(), "bo@example.org")
	me := bo.must(t, "GET", "users/me", nil)["user_id"]
	to := fmt.Sprintf("[%v]", me)
	due := fmt.Sprint(time.Now().Unix() + 5) // later than the requests that name it, also on a busy machine
	bo.must(t, "POST", "scheduled_messages", url.Values{"type": {"private"}, "to": {to}, "content": {"scheduled text"},
		"scheduled_delivery_timestamp": {due}})
	sent := bo.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {to}, "content": {"remind me"}})
	bo.must(t, "POST", "reminders", url.Values{"message_id": {fmt.Sprint(sent["id"])}, "note": {"noted"},
		"scheduled_delivery_timestamp": {due}})
	bot := ann.must(t, "POST", "bots", url.Values{"full_name": {"Robo"}, "short_name": {"robo"}, "bot_type": {"3"},
		"payload_url": {`"` + service.URL + `/bot"`}, "interface_type": {"1"}})
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%v]", bot["user_id"])},
		"content": {"for your service"}})
	count := func(a *account, text string) (n int) {
		x := a.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"50"}, "num_after": {"0"},
			"apply_markdown": {"false"}})
		for _, m := range x["messages"].([]any) {
			if strings.Contains(m.(map[string]any)["content"].(string), text) {
				n++
			}
		}
		return n
	}
	eventually(t, "all is done", func() bool {
		return count(ann, "call 1") == 1 && count(bo, "scheduled text") == 1 && count(bo, "noted") == 1
	})
	if n := calls.Load(); n != 1 || count(ann, "call 2") > 0 {
		t.Errorf("the service was called %d times", n)
	}
	// Another tick of the clock of all nodes.
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%v]", bot["user_id"])},
		"content": {"again"}})
	eventually(t, "the second call is answered", func() bool { return count(ann, "call 2") == 1 })
	if n := count(bo, "scheduled text") + count(bo, "noted"); n != 2 || calls.Load() != 2 {
		t.Errorf("%d messages for one scheduled message and one reminder, %d calls", n, calls.Load())
	}
	c.verify(3)
}
