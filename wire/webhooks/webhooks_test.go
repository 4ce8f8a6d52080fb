package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// fakeServer is a realm without actors or disk, as the calls see the server: every turn is done at once.
type fakeServer struct {
	Server
	t           *testing.T
	mu          sync.Mutex
	r           *realm.Realm
	texts       map[realm.BodyRef]realm.Body
	botMessages chan string // what bots said, as "author: text"
	log         *slog.Logger
}

func (s *fakeServer) turnEnv() realm.TurnEnv {
	return realm.TurnEnv{Now: 1_700_000_000, Token: func(n int) string { return strings.Repeat("t", n) }, UUID: func() string { return "u" }, APIKey: func(realm.UserID, int64) string { return "key" },
		Hash: func(string) (h [32]byte) { return h }}
}

func (s *fakeServer) Turn(_ realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, facts, _, err := realm.RunTurn(s.r, c, s.turnEnv(), decide)
	for _, f := range facts {
		if m, ok := f.(*realm.MessageSent); ok {
			s.texts[realm.BodyRef{Message: m.ID}] = m.Body
			s.botMessages <- s.r.Find(m.Sender).Name + ": " + m.Body.Text
		}
	}
	return a, err
}

func (s *fakeServer) View(_ realm.ID, c realm.Caller, look func(realm.View) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return look(s.r.ViewAs(c, 1_700_000_000))
}

func (s *fakeServer) Text(_ realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.texts[ref]
	return b, ok
}

func (s *fakeServer) MarkdownConfigSeq(realm.ID) realm.Seq { return 0 }

func runCommand[A any](s *fakeServer, c realm.Caller, cmd realm.Command[A]) A {
	s.t.Helper()
	a, err := s.Turn(1, c, func(t *realm.Turn) (any, error) {
		a, err := cmd.Decide(t)
		return a, err
	})
	if err != nil {
		s.t.Fatalf("%T: %v", cmd, err)
	}
	v, _ := a.(A)
	return v
}

// newFakeServer has Ann, her bot, and a message to it that its service is to be told of.
func newFakeServer(t *testing.T, service string, slack bool) *fakeServer {
	s := &fakeServer{t: t, r: realm.New(1), texts: map[realm.BodyRef]realm.Body{}, botMessages: make(chan string, 1000)}
	system := realm.Caller{System: true}
	runCommand(s, system, realm.FoundRealm{Name: "x"})
	ann := realm.Caller{User: runCommand(s, system, realm.CreateUser{Name: "Ann", Email: "ann@example.org"}), Client: "test"}
	kind := 1
	if slack {
		kind = 2
	}
	b := runCommand(s, ann, realm.CreateBot{Name: "Robo", Email: "robo-bot@example.org", ShortName: "robo", Type: realm.OutgoingWebhook, URL: service, Interface: kind})
	send(s, ann, b.ID, "hi *bot*", "<p>hi <em>bot</em></p>")
	v := s.r.ViewAs(system, 1_700_000_000)
	errands := v.OutboxJobs()
	if len(errands) != 1 {
		t.Fatalf("a message to the bot is %d errands", len(errands))
	}
	e, ok := v.ServiceCall(&errands[0])
	if !ok || e.Mention || e.Service.URL != service {
		t.Fatalf("a message to the bot triggered %+v", e)
	}
	return s
}

// send has somebody write to the bot, unheard by the test.
func send(s *fakeServer, from realm.Caller, to realm.UserID, text, html string) {
	s.t.Helper()
	runCommand(s, from, realm.SendMessage{People: []realm.Principal{{ID: to}}, Body: realm.Body{Text: text, HTML: html}})
	<-s.botMessages
}

func (s *fakeServer) client(allow ...string) *Client {
	o := Options{Server: s, Log: s.log, Tools: &wire.Tools{Renderer: &wire.Renderer{}}, RetryPause: time.Millisecond, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	for _, p := range allow {
		o.Allow = append(o.Allow, netip.MustParsePrefix(p))
	}
	return New(o)
}

// startDispatcher has the services called that wait.
func (s *fakeServer) startDispatcher(allow ...string) *dispatch.Dispatcher {
	c := dispatch.New(dispatch.Options{Server: s, Handlers: map[realm.OutboxJobKind]dispatch.Handler{realm.OutboxWebhook: s.client(allow...)}, Concurrency: map[realm.OutboxJobKind]int{realm.OutboxWebhook: MaxCalling}})
	c.Begin(0, map[realm.ID]wire.Site{1: {Host: "h"}})
	s.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// outboxLength is how many errands are left.
func (s *fakeServer) outboxLength() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.r.ViewAs(realm.Caller{System: true}, 1_700_000_000).OutboxJobs())
}

func (s *fakeServer) nextBotMessage() string {
	s.t.Helper()
	select {
	case x := <-s.botMessages:
		return x
	case <-time.After(10 * time.Second):
		s.t.Fatal("nobody said anything")
	}
	return ""
}

// startService answers each call with the next of some handlers, the last one over and over.
func startService(t *testing.T, handlers ...http.HandlerFunc) string {
	var mu sync.Mutex
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		next := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		mu.Unlock()
		next(w, r)
	}))
	t.Cleanup(h.Close)
	return h.URL
}

func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestBotSendsAnswer(t *testing.T) {
	var got map[string]any
	s := newFakeServer(t, startService(t, func(w http.ResponseWriter, r *http.Request) {
		json.NewDecoder(r.Body).Decode(&got)
		io.WriteString(w, `{"content": "hello yourself"}`)
	}), false)
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: hello yourself" {
		t.Errorf("said %q", x)
	}
	m, _ := got["message"].(map[string]any)
	if got["data"] != "hi *bot*" || got["trigger"] != "direct_message" || got["bot_full_name"] != "Robo" || got["token"] == "" || m["rendered_content"] != "<p>hi <em>bot</em></p>" || m["type"] != "private" {
		t.Errorf("the service was told %v", got)
	}
}

func TestSlackInterface(t *testing.T) {
	var got url.Values
	s := newFakeServer(t, startService(t, func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		got = r.PostForm
		io.WriteString(w, `{"text": "ok"}`)
	}), true)
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: ok" || got.Get("text") != "hi *bot*" || got.Get("user_name") != "Ann" {
		t.Errorf("said %q after %v", x, got)
	}
}

func TestRetry(t *testing.T) {
	s := newFakeServer(t, startService(t, answerWith(503, ""), answerWith(500, ""), answerWith(200, `{"response_string": "third time"}`)), false)
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: third time" {
		t.Errorf("said %q", x)
	}
}

func TestLegacyAnswers(t *testing.T) {
	s := newFakeServer(t, startService(t, answerWith(200, `{"content": "one", "response_string": "other"}`)), false)
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: other" {
		t.Errorf("said %q", x)
	}
	for _, nothing := range []string{`""`, "\n", "{}", "null", `{"response_not_required": true, "content": "x"}`} {
		if text, _, ok := parseAnswer(&realm.ServiceTriggered{}, []byte(nothing)); text != "" || !ok {
			t.Errorf("%q says %q, understood: %v", nothing, text, ok)
		}
	}
}

func TestFailureIsReported(t *testing.T) {
	for name, x := range map[string]struct {
		reply  http.HandlerFunc
		say    string
		reason string
	}{
		"refused":  {answerWith(400, "no such thing"), "Robo: Failure! The webhook got a response with status code *400*.", "no such thing"},
		"down":     {answerWith(502, ""), "Robo: Failure! The webhook got a response with status code *502*.", "502"},
		"no JSON":  {answerWith(200, "<html>"), "Robo: Failure! Third party is unavailable.", "not JSON"},
		"redirect": {answerWith(302, ""), "Robo: Failure! The webhook got a response with status code *302*.", "302"},
		"endless":  {answerWith(200, strings.Repeat(" ", maxAnswer+1)), "Robo: Failure! Third party is unavailable.", "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, startService(t, x.reply), false)
			s.startDispatcher("127.0.0.0/8")
			if say := s.nextBotMessage(); say != x.say {
				t.Errorf("the bot said %q", say)
			}
			if say := s.nextBotMessage(); !strings.HasPrefix(say, "Notification Bot: ") || !strings.Contains(say, x.reason) {
				t.Errorf("the owner was told %q", say)
			}
		})
	}
}

func TestEmptyAnswer(t *testing.T) {
	called := make(chan bool, 2)
	s := newFakeServer(t, startService(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"response_not_required": true, "content": "x"}`)
		called <- true
	}), false)
	c := s.startDispatcher("127.0.0.0/8")
	<-called
	c.Close(context.Background())
	if len(s.botMessages) != 0 {
		t.Errorf("the bot said %q", <-s.botMessages)
	}
	if n := s.outboxLength(); n != 0 {
		t.Errorf("%d errands are left", n)
	}
}

func TestInternalAddressesAreBlocked(t *testing.T) {
	called := make(chan bool, 10)
	s := newFakeServer(t, startService(t, func(http.ResponseWriter, *http.Request) { called <- true }), false)
	s.startDispatcher()
	if x := s.nextBotMessage(); x != "Robo: Failure! Third party is unavailable." {
		t.Errorf("the bot said %q", x)
	}
	if len(called) != 0 {
		t.Error("a service on the loopback was called")
	}
	c := s.client()
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "10.1.2.3:80", "192.168.0.1:80", "172.16.0.1:443", "169.254.169.254:80", "[fe80::1%eth0]:80", "[fd00::1]:80", "100.64.0.1:80",
		"0.0.0.0:80", "[::ffff:10.0.0.1]:80", "[64:ff9b::a00:1]:80", "[2002:a00:1::]:80", "224.0.0.1:80", "255.255.255.255:80", "nonsense"} {
		var inside *internalAddressError
		if !errors.As(c.checkAddress(address), &inside) {
			t.Errorf("%s may be called", address)
		}
	}
	for _, address := range []string{"93.184.216.34:443", "[2606:2800:220:1::1]:443"} {
		if err := c.checkAddress(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Whoever owns a bot may give its service any name: what he is told of it does not say which address it has inside, not even
// whether it has one. The operator's log does.
func TestInternalAddressesStayPrivate(t *testing.T) {
	called := make(chan bool, 10)
	port := strings.TrimPrefix(startService(t, func(http.ResponseWriter, *http.Request) { called <- true }), "http://127.0.0.1:")
	s := newFakeServer(t, "http://localhost:"+port, false)
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	c := s.startDispatcher()
	s.nextBotMessage() // the bot itself
	told := s.nextBotMessage()
	c.Close(context.Background())
	if len(called) != 0 {
		t.Error("a service on the loopback was called")
	}
	if !strings.Contains(told, "localhost:"+port) || regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|::`).MatchString(told) {
		t.Errorf("the owner was told %q", told)
	}
	if !strings.Contains(log.String(), "127.0.0.1") && !strings.Contains(log.String(), "::1") {
		t.Errorf("the log says %q", log.String())
	}
	if inside, none := publicReason(&internalAddressError{"10.1.2.3"}), publicReason(&net.DNSError{Err: "no such host", Name: "x"}); inside != none {
		t.Errorf("a name inside is told from one that is none: %q and %q", inside, none)
	}
}

func TestPublicReason(t *testing.T) {
	refused := httptest.NewServer(nil)
	refused.Close()
	s := newFakeServer(t, refused.URL, false)
	_, _, err := s.client("127.0.0.0/8").postOnce(context.Background(), strings.Replace(refused.URL, "127.0.0.1", "localhost", 1), "text/plain", "1", nil)
	var down *serviceError
	if !errors.As(err, &down) || !strings.Contains(down.why, "connection refused") || strings.Contains(down.why, "127.0.0.1") || strings.Contains(down.why, "::1") {
		t.Errorf("a closed port: %v", err)
	}
	broken := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3)}, Addr: &net.TCPAddr{IP: net.IPv4(10, 4, 5, 6)}, Err: syscall.ECONNRESET}
	for _, err := range []error{broken, &url.Error{Op: "Post", URL: "http://x", Err: broken}, &url.Error{Op: "Post", URL: "http://x", Err: context.DeadlineExceeded}, &net.DNSError{Err: "no such host", Name: "x", Server: "10.0.0.53:53"}} {
		if why := publicReason(err); why == "" || strings.Contains(why, "10.") && !strings.Contains(why, callTimeout.String()) {
			t.Errorf("%v: %q", err, why)
		}
	}
}

func TestCallsAreBoundedAndOrdered(t *testing.T) {
	release := make(chan bool)
	var mu sync.Mutex
	var order []int64
	s := newFakeServer(t, startService(t, func(w http.ResponseWriter, r *http.Request) {
		var got struct{ Message struct{ ID int64 } }
		json.NewDecoder(r.Body).Decode(&got)
		mu.Lock()
		order = append(order, got.Message.ID)
		mu.Unlock()
		<-release
	}), false)
	ann, bot := s.r.FindByEmail("ann@example.org").ID, s.r.FindByEmail("robo-bot@example.org").ID
	for range 150 {
		send(s, realm.Caller{User: ann, Client: "test"}, bot, "again", "<p>again</p>")
	}
	if n := s.outboxLength(); n != 100 {
		t.Errorf("%d calls wait for one bot", n)
	}
	c := s.startDispatcher("127.0.0.0/8")
	for range 10 {
		release <- true
	}
	close(release)
	c.Close(context.Background())
	if !slices.IsSorted(order) || len(order) < 10 {
		t.Errorf("called in the order %v", order)
	}
	if n := s.outboxLength(); n > 90 {
		t.Errorf("%d calls wait after 10 were made", n)
	}
}

func TestInterruptedCallIsRepeated(t *testing.T) {
	called := make(chan string, 10)
	first := make(chan bool)
	s := newFakeServer(t, startService(t, func(w http.ResponseWriter, r *http.Request) {
		called <- r.Header.Get("Idempotency-Key")
		io.Copy(io.Discard, r.Body) // only then a client that goes is noticed
		close(first)
		<-r.Context().Done() // the server dies before the service has answered
	}, func(w http.ResponseWriter, r *http.Request) {
		called <- r.Header.Get("Idempotency-Key")
		io.WriteString(w, `{"content": "at last"}`)
	}), false)
	c := s.startDispatcher("127.0.0.0/8")
	<-first
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	c.Close(dead)
	if len(s.botMessages) != 0 || s.outboxLength() != 1 {
		t.Fatalf("the call cut off said %d things, %d errands are left", len(s.botMessages), s.outboxLength())
	}
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: at last" || s.outboxLength() != 0 {
		t.Errorf("said %q, %d errands are left", x, s.outboxLength())
	}
	if a, b := <-called, <-called; a == "" || a != b {
		t.Errorf("one message was passed on as %q and %q", a, b)
	}
}
