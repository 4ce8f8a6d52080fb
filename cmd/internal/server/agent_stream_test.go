package server

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// agent is a client of the Model Context Protocol.
type agent struct {
	d       *demoServer
	email   string
	key     string // "": that of the user
	from    net.IP // nil: any address of this machine
	session string
}

// do sends a request with further headers, "name: value", and returns its status and body. A header of the same name
// replaces the usual one; one without a value removes it.
func (a *agent) do(method, body string, headers ...string) (int, string) {
	a.d.t.Helper()
	r, err := http.NewRequest(method, a.d.BaseURL()+"/mcp", strings.NewReader(body))
	if err != nil {
		a.d.t.Fatal(err)
	}
	r.SetBasicAuth(a.email, cmp.Or(a.key, a.d.keys[a.email]))
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if a.session != "" {
		r.Header.Set("Mcp-Session-Id", a.session)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	client := &http.Client{Timeout: eventTimeout}
	if a.from != nil {
		t := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: a.from}}).DialContext}
		defer t.CloseIdleConnections()
		client.Transport = t
	}
	resp, err := client.Do(r)
	if err != nil {
		a.d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.d.t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		a.session = id
	}
	if method == "GET" && resp.StatusCode == 200 && resp.Header.Get("Content-Type") != "text/event-stream" {
		a.d.t.Errorf("the stream is %s", resp.Header.Get("Content-Type"))
	}
	return resp.StatusCode, string(text)
}

// ask sends a request of the protocol.
func (a *agent) ask(method, params string) string {
	a.d.t.Helper()
	status, body := a.do("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	if status != 200 || !strings.Contains(body, `"result"`) {
		a.d.t.Fatalf("%s: status %d %s", method, status, body)
	}
	return body
}

// TestAgentStreams holds that the short way of streams has the answers and refusals of the long one: the second stream
// of each session can take it.
func TestAgentStreams(t *testing.T) {
	d := startDemo(t)
	a := &agent{d: d, email: "ann@example.org"}
	a.ask("initialize", `{"protocolVersion":"2025-11-25"}`)
	general := d.call("ann@example.org", "GET", "get_stream_id", url.Values{"stream": {"general"}})
	channel := fmt.Sprint(general["stream_id"])
	uri := "parley://channel/" + channel + "/topic/a%2F%3Cb%3E"
	a.ask("resources/subscribe", `{"uri":"`+uri+`"}`)
	say := func(topic string) {
		d.call("bo@example.org", "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {topic},
			"content": {"hi"}})
	}
	seen := ""
	for i := range 3 {
		say("a/<b>")
		status, stream := a.do("GET", "")
		const updated = `"method":"notifications/resources/updated","params":{"uri":"`
		if status != 200 || strings.Count(stream, updated+uri+`"}`) != 1 {
			t.Fatalf("stream %d: status %d %s", i, status, stream)
		}
		_, seen, _ = strings.Cut(stream, "id: ")
		seen, _, _ = strings.Cut(seen, "\n")
	}
	say("elsewhere")
	status, stream := a.do("GET", "", "Last-Event-ID: "+seen)
	if status != 200 || !strings.Contains(stream, "nothing has changed") {
		t.Errorf("after another topic: %d %s", status, stream)
	}
	for header, want := range map[string]int{"Accept: application/json": 406, "Mcp-Session-Id: ": 405,
		"Mcp-Session-Id: other": 404, "Mcp-Protocol-Version: 1": 400, "Origin: http://evil.example": 403,
		"Authorization: ": 401, "Authorization: Bearer x": 401} {
		if status, body := a.do("GET", "", header); status != want {
			t.Errorf("%s: status %d %s, want %d", header, status, body, want)
		}
	}
	bo := &agent{d: d, email: "bo@example.org", session: a.session}
	if status, _ := bo.do("GET", ""); status != 404 {
		t.Errorf("the session of another user: status %d", status)
	}
	testAgentSessionEnds(t, a)
}

// testAgentSessionEnds ends a session while its stream waits.
func testAgentSessionEnds(t *testing.T, a *agent) {
	parked := a.d.http.Stats().Parked
	ended := make(chan string)
	go func() {
		code, stream := a.do("GET", "", "Authorization: Bearer "+a.d.keys[a.email])
		ended <- fmt.Sprint(code, " ", stream)
	}()
	eventually(t, "the stream waits", func() bool { return a.d.http.Stats().Parked > parked })
	if code, body := a.do("DELETE", ""); code != 204 {
		t.Errorf("the end of the session: %d %s", code, body)
	}
	if got := <-ended; !strings.HasPrefix(got, "200 retry:") || strings.Contains(got, "updated") {
		t.Errorf("the stream of a session that ends: %s", got)
	}
	if code, _ := a.do("GET", ""); code != 404 {
		t.Errorf("after the end of the session: status %d", code)
	}
}
