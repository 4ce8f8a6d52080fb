package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/realm"
)

// These tests send the streams of agents and the polls of programs with limited keys over connections, because the
// permission matrix has none: on a connection, most of them do not go through an endpoint.

// agentScene is a server with a channel of Ann and Bo, in which agents of Ann listen.
type agentScene struct {
	*demoServer
	late    atomic.Int64 // seconds by which its clock is ahead
	short   int          // streams that took the short way
	ann     realm.UserID
	channel int64
	private int64
}

func newAgentScene(t *testing.T) *agentScene {
	x := &agentScene{}
	x.demoServer = startDemoAt(t, func() time.Time { return time.Now().Add(time.Duration(x.late.Load()) * time.Second) })
	x.ann = realm.UserID(x.call("ann@example.org", "GET", "users/me", nil)["user_id"].(float64))
	create := func(name string, private bool) int64 {
		me := fmt.Sprint(x.call("bo@example.org", "GET", "users/me", nil)["user_id"])
		return int64(x.call("bo@example.org", "POST", "channels/create", url.Values{"name": {name},
			"subscribers": {fmt.Sprintf("[%d,%s]", x.ann, me)}, "invite_only": {fmt.Sprint(private)}})["id"].(float64))
	}
	x.channel, x.private = create("release", false), create("secret plans", true)
	return x
}

// agent returns an agent of Ann with a new key, which has a scope and a lifetime in seconds; 0: without end.
func (x *agentScene) agent(scope realm.KeyScope, lifetime int64) (a *agent, key int64) {
	x.t.Helper()
	if scope.Rights == nil {
		scope.Rights = []string{realm.RightRead}
	}
	k, err := realm.Execute(x.orgs, ours, realm.System, realm.AddKey{User: x.ann, Label: "agent", Scope: &scope,
		Lifetime: lifetime})
	if err != nil {
		x.t.Fatal(err)
	}
	return &agent{d: x.demoServer, email: "ann@example.org", key: k.Secret}, k.ID
}

// topicURI returns the address of a topic of a channel.
func topicURI(channel int64, topic string) string {
	return fmt.Sprintf("parley://channel/%d/topic/%s", channel, topic)
}

// listen begins a session that is subscribed to resources.
func (a *agent) listen(uris ...string) {
	a.d.t.Helper()
	a.ask("initialize", `{"protocolVersion":"2025-11-25"}`)
	for _, uri := range uris {
		a.ask("resources/subscribe", `{"uri":"`+uri+`"}`)
	}
}

// say sends a message of Bo and returns its id.
func (x *agentScene) say(channel int64, topic string) int64 {
	x.t.Helper()
	return int64(x.call("bo@example.org", "POST", "messages", url.Values{"type": {"channel"},
		"to": {fmt.Sprint(channel)}, "topic": {topic}, "content": {"hi"}})["id"].(float64))
}

// wait parks a stream of an agent and returns a function that waits for its end.
func (x *agentScene) wait(a *agent) (ended func() string) {
	x.t.Helper()
	before := x.http.Stats()
	out := make(chan string, 1)
	go func() {
		status, stream := a.do("GET", "")
		out <- fmt.Sprint(status, " ", stream)
	}()
	eventually(x.t, "the stream waits", func() bool {
		now := x.http.Stats()
		return now.Parked > before.Parked && now.Requests > before.Requests
	})
	if x.http.Stats().FastPath > before.FastPath { // a goroutine that has just answered may take the next request
		x.short++
	}
	return func() string { return <-out }
}

// checkShortWay fails the test if its streams were not served on the loops.
func (x *agentScene) checkShortWay() {
	x.t.Helper()
	if x.short == 0 {
		x.t.Error("no stream took the short way")
	}
}

// updated returns the resources that a stream says have changed.
func updated(stream string) (uris []string) {
	for _, part := range strings.Split(stream, `"uri":"`)[1:] {
		uri, _, _ := strings.Cut(part, `"`)
		uris = append(uris, uri)
	}
	slices.Sort(uris)
	return uris
}

// TestScopedAgentsHearTheirTopic checks that a key that is limited to a topic hears no other topic, channel or direct
// message while its stream waits, also when messages are moved.
func TestScopedAgentsHearTheirTopic(t *testing.T) {
	x := newAgentScene(t)
	deploy := "deploy"
	a, _ := x.agent(realm.KeyScope{Places: []realm.KeyPlace{{Channel: realm.ChannelID(x.channel), Topic: &deploy}}}, 0)
	inside, outside := topicURI(x.channel, "deploy"), topicURI(x.channel, "salaries")
	a.listen(inside, outside, fmt.Sprint("parley://channel/", x.channel))
	want := []string{fmt.Sprint("parley://channel/", x.channel), inside}
	other, _ := x.agent(realm.KeyScope{Places: []realm.KeyPlace{{Channel: realm.ChannelID(x.channel)}}}, 0)
	other.listen(outside)
	heard, ended := x.wait(other), x.wait(a)
	x.say(x.channel, "salaries")
	if got := updated(heard()); !slices.Equal(got, []string{outside}) {
		t.Fatalf("a key for the channel hears %v", got)
	}
	x.say(x.private, "deploy")
	moved := x.say(x.channel, "deploy")
	if got := updated(ended()); !slices.Equal(got, want) {
		t.Errorf("the key hears %v, want %v", got, want)
	}
	ended = x.wait(a)
	x.call("bo@example.org", "PATCH", fmt.Sprint("messages/", moved), url.Values{"topic": {"salaries"},
		"propagate_mode": {"change_one"}, "send_notification_to_old_thread": {"false"},
		"send_notification_to_new_thread": {"false"}})
	if got := updated(ended()); !slices.Equal(got, want) {
		t.Errorf("when a message leaves the topic, the key hears %v, want %v", got, want)
	}
	ended = x.wait(a)
	x.call("bo@example.org", "PATCH", fmt.Sprint("messages/", moved), url.Values{"content": {"a secret"}})
	x.say(x.channel, "deploy")
	if got := updated(ended()); !slices.Equal(got, want) {
		t.Errorf("after the move the key hears %v, want %v", got, want)
	}
	x.checkShortWay()
}

// TestScopedAgentsLoseChannels unsubscribes the user of a key from a private channel while a stream waits.
func TestScopedAgentsLoseChannels(t *testing.T) {
	x := newAgentScene(t)
	a, _ := x.agent(realm.KeyScope{}, 0)
	private, public := topicURI(x.private, "deploy"), topicURI(x.channel, "deploy")
	a.listen(private, public)
	ended := x.wait(a)
	x.say(x.private, "deploy")
	if got := updated(ended()); !slices.Equal(got, []string{private}) {
		t.Fatalf("a subscriber hears %v", got)
	}
	ended = x.wait(a)
	x.call("bo@example.org", "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["secret plans"]`},
		"principals": {fmt.Sprintf("[%d]", x.ann)}})
	x.say(x.private, "deploy")
	x.say(x.channel, "deploy")
	if got := updated(ended()); !slices.Equal(got, []string{public}) {
		t.Errorf("after the end of the subscription the key hears %v", got)
	}
	x.checkShortWay()
}

// TestScopedAgentsAreRefused checks that the short way refuses what the ordinary one refuses: other networks, keys that
// are not allowed to poll, and keys that ended while a stream waited.
func TestScopedAgentsAreRefused(t *testing.T) {
	x := newAgentScene(t)
	uri := topicURI(x.channel, "deploy")
	near, _ := x.agent(realm.KeyScope{Networks: []string{"127.0.0.1/32"}}, 0)
	near.from = net.IPv4(127, 0, 0, 1)
	near.listen(uri)
	ended := x.wait(near)
	x.say(x.channel, "deploy")
	if got := updated(ended()); !slices.Equal(got, []string{uri}) {
		t.Errorf("a key that is used from its network hears %v", got)
	}
	near.from = net.IPv4(127, 0, 0, 2)
	if status, body := near.do("GET", ""); status != 403 || !strings.Contains(body, "API_KEY_SCOPE") {
		t.Errorf("a key from another network: %d %s", status, body)
	}
	deaf, _ := x.agent(realm.KeyScope{Endpoints: []string{"GET /messages", "POST /register"}}, 0)
	deaf.listen(uri)
	for range 3 {
		if status, body := deaf.do("GET", ""); status != 403 || !strings.Contains(body, "API_KEY_SCOPE") {
			t.Errorf("a key that is not allowed to poll: %d %s", status, body)
		}
	}
	polling, _ := x.agent(realm.KeyScope{Endpoints: []string{"GET /messages", "POST /register", "GET /events"}}, 0)
	polling.listen(uri)
	ended = x.wait(polling)
	x.say(x.channel, "deploy")
	if got := updated(ended()); !slices.Equal(got, []string{uri}) {
		t.Errorf("a key that is allowed to poll hears %v", got)
	}
	x.checkShortWay()
}

// TestParkedAgentsEnd ends the credentials of agents while their streams wait: the streams end without an update, and
// the next ones are refused.
func TestParkedAgentsEnd(t *testing.T) {
	x := newAgentScene(t)
	uri := topicURI(x.channel, "deploy")
	for _, c := range []struct {
		what string
		end  func(key int64)
	}{
		{"revoked", func(key int64) {
			if _, err := realm.Execute(x.orgs, ours, realm.System, realm.RevokeKey{User: x.ann, Key: key}); err != nil {
				t.Fatal(err)
			}
		}},
		{"expired", func(int64) { x.late.Add(realm.MinKeyLifetime + 1) }},
		{"of a deactivated account", func(int64) {
			x.call("olive@example.org", "DELETE", fmt.Sprint("users/", x.ann), nil)
		}},
	} {
		a, key := x.agent(realm.KeyScope{}, realm.MinKeyLifetime)
		whole := &agent{d: x.demoServer, email: a.email}
		a.listen(uri)
		whole.listen(uri)
		ended, wholeEnded := x.wait(a), x.wait(whole)
		c.end(key)
		if got := ended(); !strings.HasPrefix(got, "200 ") || updated(got) != nil {
			t.Errorf("the stream of a key that is %s: %s", c.what, got)
		}
		x.say(x.channel, "deploy")
		if status, body := a.do("GET", ""); status != 401 {
			t.Errorf("a stream with a key that is %s: %d %s", c.what, status, body)
		}
		wholeEnded()
		if status, body := whole.do("GET", ""); (status == 401) != (c.what == "of a deactivated account") {
			t.Errorf("after a key is %s, the whole key of its account: %d %s", c.what, status, body)
		}
	}
	x.checkShortWay()
}

// TestRepeatedSubscriptions subscribes to a resource twice: an update is told once, and one end is enough.
func TestRepeatedSubscriptions(t *testing.T) {
	x := newAgentScene(t)
	uri := topicURI(x.channel, "deploy")
	a, _ := x.agent(realm.KeyScope{}, 0)
	a.listen(uri, uri)
	x.say(x.channel, "deploy")
	if _, stream := a.do("GET", ""); !slices.Equal(updated(stream), []string{uri}) {
		t.Errorf("one update of a resource with two subscriptions: %s", stream)
	}
	a.ask("resources/unsubscribe", `{"uri":"`+uri+`"}`)
	a.ask("resources/unsubscribe", `{"uri":"`+uri+`"}`)
	x.say(x.channel, "deploy")
	if _, stream := a.do("GET", ""); updated(stream) != nil {
		t.Errorf("after the subscription has ended: %s", stream)
	}
}

// poller sends polls on one connection, so that the short way knows them again.
type poller struct {
	*agentScene
	conn net.Conn
	r    *bufio.Reader
	auth string
}

func (x *agentScene) poller(a *agent) *poller {
	x.t.Helper()
	conn, err := net.Dial("tcp", x.Addr())
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { conn.Close() })
	r, _ := http.NewRequest("GET", "/", nil)
	r.SetBasicAuth(a.email, a.key)
	return &poller{x, conn, bufio.NewReader(conn), r.Header.Get("Authorization")}
}

// poll returns the status and the body of a poll that does not wait.
func (p *poller) poll(queue string) (int, string) {
	p.t.Helper()
	p.conn.SetDeadline(time.Now().Add(eventTimeout))
	host := strings.TrimPrefix(p.BaseURL(), "http://")
	fmt.Fprintf(p.conn, "GET /api/v1/events?dont_block=true&queue_id=%s&last_event_id=-1 HTTP/1.1\r\nHost: %s\r\n"+
		"Authorization: %s\r\n\r\n", queue, host, p.auth)
	resp, err := http.ReadResponse(p.r, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// register opens an event queue with the key of an agent.
func (x *agentScene) register(a *agent) string {
	x.t.Helper()
	was := x.keys[a.email]
	defer func() { x.keys[a.email] = was }()
	x.keys[a.email] = a.key
	return x.call(a.email, "POST", "register", url.Values{"event_types": {`["message"]`}})["queue_id"].(string)
}

// TestScopedPolls checks polls with limited keys that repeat on a connection.
func TestScopedPolls(t *testing.T) {
	x := newAgentScene(t)
	whole := &agent{d: x.demoServer, email: "ann@example.org", key: x.keys["ann@example.org"]}
	deploy := "deploy"
	place := realm.KeyPlace{Channel: realm.ChannelID(x.channel), Topic: &deploy}
	a, _ := x.agent(realm.KeyScope{Places: []realm.KeyPlace{place}}, 0)
	queue, p := x.register(a), x.poller(a)
	x.say(x.channel, "salaries")
	x.say(x.channel, "deploy")
	fast := x.http.Stats().FastPath
	for range 10 {
		if status, body := p.poll(queue); status != 200 || !strings.Contains(body, `"subject":"deploy"`) ||
			strings.Contains(body, "salaries") {
			t.Fatalf("the queue of the key: %d %s", status, body)
		}
	}
	eventually(t, "the polls take the short way", func() bool { return x.http.Stats().FastPath > fast+5 })
	for range 3 {
		if status, body := p.poll(x.register(whole)); status != 400 || !strings.Contains(body, "BAD_EVENT_QUEUE_ID") {
			t.Errorf("the queue of another key: %d %s", status, body)
		}
	}
	deaf, _ := x.agent(realm.KeyScope{Endpoints: []string{"POST /register"}}, 0)
	blind, _ := x.agent(realm.KeyScope{Rights: []string{realm.RightSend}}, 0)
	far, _ := x.agent(realm.KeyScope{Networks: []string{"198.51.100.0/24"}}, 0)
	for name, a := range map[string]*agent{"without the endpoint": deaf, "without the right": blind,
		"of another network": far} {
		p := x.poller(a)
		for range 3 {
			if status, body := p.poll(queue); status != 403 || !strings.Contains(body, "API_KEY_SCOPE") {
				t.Errorf("a key %s: %d %s", name, status, body)
			}
		}
	}
	short, _ := x.agent(realm.KeyScope{}, realm.MinKeyLifetime)
	queue, p = x.register(short), x.poller(short)
	for range 5 {
		if status, body := p.poll(queue); status != 200 {
			t.Fatalf("before the key expires: %d %s", status, body)
		}
	}
	x.late.Add(realm.MinKeyLifetime + 1)
	if status, body := p.poll(queue); status != 401 {
		t.Errorf("after the key has expired: %d %s", status, body)
	}
}
