package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// ownWriteRounds is how often a client changes its node. Without the question for the newest fact, the edge refuses
// about one of ten reads.
const ownWriteRounds = 100

// alternating is a client without cookies that uses a core and an edge in turn.
type alternating struct {
	*account
	t     *testing.T
	nodes [2]string
	http  *http.Client
}

// at sends a request to the core (0) or the edge (1). An answer of 4xx is an error.
func (c *alternating) at(node int, method, path string, form url.Values) map[string]any {
	c.t.Helper()
	as := *c.account
	as.url = c.nodes[node]
	a, err := as.callWith(c.http, method, path, form)
	if err != nil {
		c.t.Errorf("%s %s at node %d: %v", method, path, node, err)
	}
	return a
}

// A client without cookies that changes between a core and an edge after each write finds what it wrote: messages,
// their reactions and edits, channels, and its new key.
func TestOwnWritesAtCoreAndEdge(t *testing.T) {
	all := startEdgesOf(t, 1, "--rate-limit", "0")
	c := &alternating{demoAccount(t, all.core.url(), "ann@example.org"), t,
		[2]string{all.core.url(), all.edges[0].url()}, &http.Client{Timeout: binaryTimeout}}
	for i := range ownWriteRounds {
		here, there := i%2, (i+1)%2
		sent := c.at(here, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
			"content": {fmt.Sprint("text ", i)}})
		path := fmt.Sprintf("messages/%v", sent["id"])
		c.at(there, "GET", path, nil)
		c.at(here, "POST", path+"/reactions", url.Values{"emoji_name": {"smile"}})
		c.at(there, "DELETE", path+"/reactions", url.Values{"emoji_name": {"smile"}})
		c.at(here, "PATCH", path, url.Values{"content": {fmt.Sprint("new ", i)}})
		c.at(there, "GET", path+"/history", nil)
		if i%10 < 2 {
			name := fmt.Sprint("channel ", i)
			c.at(here, "POST", "users/me/subscriptions",
				url.Values{"subscriptions": {fmt.Sprintf(`[{"name": %q}]`, name)}})
			id := c.at(there, "GET", "get_stream_id", url.Values{"stream": {name}})["stream_id"]
			c.at(there, "GET", fmt.Sprintf("users/me/%v/topics", id), nil)
			key, ok := c.at(here, "POST", "users/me/api_key/regenerate", nil)["api_key"].(string)
			if ok {
				c.key = key
			}
			c.at(there, "GET", "users/me", nil)
		}
		if t.Failed() && i > 20 {
			t.FailNow()
		}
	}
}

// A browser that changes between a core and an edge after each write finds its message as the newest one of the list.
func TestOwnWritesOfBrowserAtCoreAndEdge(t *testing.T) {
	all := startEdgesOf(t, 1, "--rate-limit", "0")
	mustRun(t, "user", "password", "--data", all.core.data, "--email", "ann@example.org", "--password", browserPassword)
	nodes := [2]string{all.core.url(), all.edges[0].url()}
	b := newBrowser(t, nodes[0]).logIn("ann@example.org", browserPassword)
	missing := 0
	for i := range ownWriteRounds {
		text := fmt.Sprint("text ", i)
		b.at = nodes[i%2]
		sent := b.must("POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
			"content": {text}})
		b.at = nodes[(i+1)%2]
		a := b.call("GET", "messages?anchor=newest&num_before=1&num_after=0&apply_markdown=false", nil)
		if a.status != 200 || !strings.Contains(a.body, fmt.Sprintf(`"content":%q`, text)) {
			missing++
		}
		b.must("GET", fmt.Sprintf("messages/%v", sent["id"]), nil)
	}
	if missing > 0 {
		t.Errorf("%d of %d lists lack the browser's own message", missing, ownWriteRounds)
	}
}

// An organization can be used at an edge as soon as it was created, also if its subdomain was asked for just before.
func TestNewOrganizationAtCoreAndEdge(t *testing.T) {
	all := startEdges(t, 1)
	ask := func(name string) (status int, body string) {
		b := newBrowser(t, all.edges[0].url())
		b.host = name + "." + all.core.listen
		a := b.send("GET", "/api/v1/server_settings", nil)
		return a.status, a.body
	}
	for i := range 3 {
		name := fmt.Sprint("new-", i)
		for range 2 {
			if _, body := ask(name); strings.Contains(body, `"realm_name":"New"`) {
				t.Fatalf("before it is created: %s", body)
			}
		}
		mustRun(t, "realm", "create", "--data", all.core.data, "--realm", name, "--name", "New")
		if status, body := ask(name); status != 200 || !strings.Contains(body, `"realm_name":"New"`) {
			t.Errorf("%s right after its creation: %d %s", name, status, body)
		}
	}
}
