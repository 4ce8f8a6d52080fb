package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// clusterAgent is a client of the Model Context Protocol.
type clusterAgent struct {
	*account
	session string
}

// send sends a request and returns its status and body; 0: the core could not be reached.
func (a *clusterAgent) send(method, body string) (int, string) {
	r, err := http.NewRequest(method, a.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.SetBasicAuth(a.email, a.key)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if a.session != "" {
		r.Header.Set("Mcp-Session-Id", a.session)
	}
	resp, err := (&http.Client{Timeout: 2 * time.Minute}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		a.session = id
	}
	return resp.StatusCode, string(text)
}

// listen begins a session that is subscribed to a resource.
func (a *clusterAgent) listen(uri string) error {
	a.session = ""
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`,
	} {
		if status, text := a.send("POST", body); status != 200 || !strings.Contains(text, `"result"`) {
			return fmt.Errorf("%s: %d %s", body, status, text)
		}
	}
	return nil
}

// The leader moves while an agent waits, and the organization has vectors for search by meaning. The stream of the
// agent ends, its session is not known at the new leader, and the agent begins another one. The new leader copies the
// vectors and does not pay for them again.
func TestLeaderMovesWithAgents(t *testing.T) {
	service := newVectorService(t)
	all := startCluster(t, newCores(t, t.TempDir(), []string{"a", "b", "c"}, "--embed-url", service.URL,
		"--embed-model", "tiny", "--assist-allow", "127.0.0.0/8")...)
	leader := all.leader(all.list[0])
	olive := demoAccount(t, "http://"+leader.listen, "olive@example.org")
	const texts = 110 // more than a new leader would rather pay for
	for i := range texts {
		olive.say(t, "noon", "general", fmt.Sprint("soup number ", i))
	}
	olive.must(t, "PATCH", "realm", url.Values{"meaning_search_enabled": {"true"}})
	olive.awaitMeaning(t, "lunch", "soup number 60")
	paid := service.got("soup number")

	general := jsonID(olive.must(t, "GET", "get_stream_id", url.Values{"stream": {"general"}})["stream_id"])
	agent := &clusterAgent{account: olive}
	if err := agent.listen("parley://channel/" + general); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		status, text := agent.send("GET", "")
		ended <- fmt.Sprint(status, " ", text)
	}()
	next := all.list[slices.IndexFunc(all.list, func(c *runningCore) bool { return c != leader })]
	all.moveLeader(next.name, olive)
	t.Logf("the stream that waited: %s", <-ended)
	olive.url = "http://" + next.listen
	all.retry("the session is not known any more", func() error {
		if status, text := agent.send("GET", ""); status != 404 {
			return fmt.Errorf("a stream at the new leader: %d %s", status, text)
		}
		return nil
	})
	all.retry("the agent begins again", func() error { return agent.listen("parley://channel/" + general) })
	olive.say(t, "noon", "general", "after the move")
	if status, text := agent.send("GET", ""); status != 200 || !strings.Contains(text, "resources/updated") {
		t.Errorf("the stream of the new session: %d %s", status, text)
	}

	olive.awaitMeaning(t, "lunch", "soup number 60")
	if again := service.got("soup number") - paid; again != 0 {
		t.Errorf("the new leader pays for %d texts again", again)
	}
}
