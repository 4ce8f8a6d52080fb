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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// fakeServer is a realm without actors and disk. It runs every turn at once.
type fakeServer struct {
	wire.Server
	t           *testing.T
	mu          sync.Mutex
	r           *realm.Realm
	texts       map[realm.BodyRef]realm.Body
	botMessages chan string // messages that bots sent, as "author: text"
	log         *slog.Logger
}

func (s *fakeServer) turnEnv() realm.TurnEnv {
	return realm.TurnEnv{
		Now:    1_700_000_000,
		Token:  func(n int) string { return strings.Repeat("t", n) },
		UUID:   func() string { return "u" },
		APIKey: func(realm.UserID, int64) string { return "key" },
		Hash:   func(string) (h [32]byte) { return h },
	}
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

func (s *fakeServer) View(_ realm.ID, c realm.Caller, read func(realm.View) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return read(s.r.ViewAs(c, 1_700_000_000))
}

func (s *fakeServer) Text(_ realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.texts[ref]
	return b, ok, nil
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

// newFakeServer has the user Ann, her bot, and a message to the bot that triggers its service.
func newFakeServer(t *testing.T, service string, slack bool) *fakeServer {
	s := &fakeServer{t: t, r: realm.New(1), texts: map[realm.BodyRef]realm.Body{}, botMessages: make(chan string, 1000)}
	system := realm.Caller{System: true}
	runCommand(s, system, realm.FoundRealm{Name: "x"})
	ann := realm.Caller{
		User:   runCommand(s, system, realm.CreateUser{Name: "Ann", Email: "ann@example.org"}),
		Client: "test",
	}
	kind := 1
	if slack {
		kind = 2
	}
	b := runCommand(s, ann, realm.CreateBot{
		Name:      "Robo",
		Email:     "robo-bot@example.org",
		ShortName: "robo",
		Type:      realm.OutgoingWebhook,
		URL:       service,
		Interface: kind,
	})
	send(s, ann, b.ID, "hi *bot*", "<p>hi <em>bot</em></p>")
	v := s.r.ViewAs(system, 1_700_000_000)
	jobs := v.OutboxJobs()
	if len(jobs) != 1 {
		t.Fatalf("a message to the bot is %d jobs", len(jobs))
	}
	e, ok := v.ServiceCall(&jobs[0])
	if !ok || e.Mention || e.Service.URL != service {
		t.Fatalf("a message to the bot triggered %+v", e)
	}
	return s
}

// send sends a message to the bot and takes it out of botMessages.
func send(s *fakeServer, from realm.Caller, to realm.UserID, text, html string) {
	s.t.Helper()
	runCommand(s, from,
		realm.SendMessage{People: []realm.Principal{{ID: to}}, Body: realm.Body{Text: text, HTML: html}})
	<-s.botMessages
}

func (s *fakeServer) client(allow ...string) *Client {
	o := Options{
		Server:     s,
		Log:        s.log,
		Tools:      &wire.Tools{Renderer: &wire.Renderer{}},
		RetryPause: time.Millisecond,
		Now:        func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
	for _, p := range allow {
		o.Allow = append(o.Allow, netip.MustParsePrefix(p))
	}
	return New(o)
}

// startDispatcher has the services called that wait.
func (s *fakeServer) startDispatcher(allow ...string) *dispatch.Dispatcher {
	c := dispatch.New(dispatch.Options{
		Server:      s,
		Site:        func(realm.ID) wire.Site { return wire.Site{Host: "h"} },
		Handlers:    map[realm.OutboxJobKind]dispatch.Handler{realm.OutboxWebhook: s.client(allow...)},
		Concurrency: map[realm.OutboxJobKind]int{realm.OutboxWebhook: MaxCalling},
	})
	c.Begin(1)
	c.Start(0)
	s.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// outboxLength returns the number of unfinished jobs.
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
	case <-time.After(time.Minute):
		s.t.Fatal("no bot sent a message")
	}
	return ""
}

// startService starts a service that answers with the handlers in order, and repeats the last one.
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
		t.Errorf("sent %q", x)
	}
	m, _ := got["message"].(map[string]any)
	if got["data"] != "hi *bot*" || got["trigger"] != "direct_message" || got["bot_full_name"] != "Robo" ||
		got["token"] == "" ||
		m["rendered_content"] != "<p>hi <em>bot</em></p>" ||
		m["type"] != "private" {
		t.Errorf("the service got %v", got)
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
		t.Errorf("sent %q after %v", x, got)
	}
}

func TestRetry(t *testing.T) {
	s := newFakeServer(
		t,
		startService(t, answerWith(503, ""), answerWith(500, ""), answerWith(200, `{"response_string": "third time"}`)),
		false,
	)
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: third time" {
		t.Errorf("sent %q", x)
	}
}

func TestLegacyAnswers(t *testing.T) {
	s := newFakeServer(t, startService(t, answerWith(200, `{"content": "one", "response_string": "other"}`)), false)
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: other" {
		t.Errorf("sent %q", x)
	}
	for _, answer := range []string{`{"content": "hi"}`, `{"response_string": "hi"}`} { // with a byte order mark
		if text, _, ok := parseAnswer(&realm.ServiceTriggered{}, []byte("\uFEFF"+answer)); text != "hi" || !ok {
			t.Errorf("%s makes the bot send %q, ok: %v", answer, text, ok)
		}
	}
	for _, nothing := range []string{`""`, "\uFEFF", "\uFEFF\"\"", "\n", "{}", "null",
		`{"response_not_required": true, "content": "x"}`} {
		if text, _, ok := parseAnswer(&realm.ServiceTriggered{}, []byte(nothing)); text != "" || !ok {
			t.Errorf("%q makes the bot send %q, ok: %v", nothing, text, ok)
		}
	}
}

func TestFailureIsReported(t *testing.T) {
	const unavailable = "Robo: Failure! Third party is unavailable."
	status := func(code string) string {
		return "Robo: Failure! The webhook got a response with status code *" + code + "*."
	}
	for name, x := range map[string]struct {
		reply   http.HandlerFunc
		message string
		reason  string
	}{
		"refused":  {answerWith(400, "no such thing"), status("400"), "no such thing"},
		"down":     {answerWith(502, ""), status("502"), "502"},
		"no JSON":  {answerWith(200, "<html>"), unavailable, "not JSON"},
		"redirect": {answerWith(302, ""), status("302"), "302"},
		"too long": {answerWith(200, strings.Repeat(" ", maxAnswer+1)), unavailable, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, startService(t, x.reply), false)
			s.startDispatcher("127.0.0.0/8")
			if say := s.nextBotMessage(); say != x.message {
				t.Errorf("the bot sent %q", say)
			}
			if say := s.nextBotMessage(); !strings.HasPrefix(say, "Notification Bot: ") ||
				!strings.Contains(say, x.reason) {
				t.Errorf("the owner got %q", say)
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
		t.Errorf("the bot sent %q", <-s.botMessages)
	}
	if n := s.outboxLength(); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
}

func TestInternalAddressesAreBlocked(t *testing.T) {
	called := make(chan bool, 10)
	s := newFakeServer(t, startService(t, func(http.ResponseWriter, *http.Request) { called <- true }), false)
	s.startDispatcher()
	if x := s.nextBotMessage(); x != "Robo: Failure! Third party is unavailable." {
		t.Errorf("the bot sent %q", x)
	}
	if len(called) != 0 {
		t.Error("a service on the loopback was called")
	}
	c := s.client()
	for _, address := range []string{
		"127.0.0.1:80", "[::1]:80", "10.1.2.3:80", "192.168.0.1:80", "172.16.0.1:443", "169.254.169.254:80",
		"[fe80::1%eth0]:80", "[fd00::1]:80", "100.64.0.1:80", "0.0.0.0:80", "[::ffff:10.0.0.1]:80",
		"[64:ff9b::a00:1]:80", "[2002:a00:1::]:80", "224.0.0.1:80", "255.255.255.255:80", "nonsense",
	} {
		var inside *internalAddressError
		if !errors.As(checkAddress(address, c.o.Allow), &inside) {
			t.Errorf("%s may be called", address)
		}
	}
	for _, address := range []string{"93.184.216.34:443", "[2606:2800:220:1::1]:443"} {
		if err := checkAddress(address, c.o.Allow); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The owner of a bot may give its service any name. The report to the owner must not reveal the name's internal
// address, nor whether it has one. The operator's log contains it.
func TestInternalAddressesStayPrivate(t *testing.T) {
	called := make(chan bool, 10)
	port := strings.TrimPrefix(startService(t, func(http.ResponseWriter, *http.Request) { called <- true }),
		"http://127.0.0.1:")
	s := newFakeServer(t, "http://localhost:"+port, false)
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	c := s.startDispatcher()
	s.nextBotMessage() // the bot's message
	report := s.nextBotMessage()
	c.Close(context.Background())
	if len(called) != 0 {
		t.Error("a service on the loopback was called")
	}
	if !strings.Contains(report, "localhost:"+port) || regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|::`).MatchString(report) {
		t.Errorf("the owner got %q", report)
	}
	if !strings.Contains(log.String(), "127.0.0.1") && !strings.Contains(log.String(), "::1") {
		t.Errorf("the log says %q", log.String())
	}
	inside := publicReason(&internalAddressError{"10.1.2.3"})
	none := publicReason(&net.DNSError{Err: "no such host", Name: "x"})
	if inside != none {
		t.Errorf("a name with an internal address reads %q, a name without an address %q", inside, none)
	}
}

func TestPublicReason(t *testing.T) {
	refused := httptest.NewServer(nil)
	refused.Close()
	s := newFakeServer(t, refused.URL, false)
	address := strings.Replace(refused.URL, "127.0.0.1", "localhost", 1)
	_, _, err := s.client("127.0.0.0/8").postOnce(context.Background(), &call{address: address, kind: "text/plain"})
	var down *serviceError
	if !errors.As(err, &down) || !strings.Contains(down.why, "connection refused") ||
		strings.Contains(down.why, "127.0.0.1") ||
		strings.Contains(down.why, "::1") {
		t.Errorf("a closed port: %v", err)
	}
	broken := &net.OpError{
		Op:     "read",
		Net:    "tcp",
		Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3)},
		Addr:   &net.TCPAddr{IP: net.IPv4(10, 4, 5, 6)},
		Err:    syscall.ECONNRESET,
	}
	for _, err := range []error{
		broken,
		&url.Error{Op: "Post", URL: "http://x", Err: broken},
		&url.Error{Op: "Post", URL: "http://x", Err: context.DeadlineExceeded},
		&net.DNSError{Err: "no such host", Name: "x", Server: "10.0.0.53:53"},
	} {
		if why := publicReason(err); why == "" ||
			strings.Contains(why, "10.") && !strings.Contains(why, callTimeout.String()) {
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
		io.Copy(io.Discard, r.Body) // otherwise the end of the connection is not noticed
		close(first)
		<-r.Context().Done() // the server ends before the service has answered
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
		t.Fatalf("the interrupted call sent %d messages, %d jobs are left", len(s.botMessages), s.outboxLength())
	}
	s.startDispatcher("127.0.0.0/8")
	if x := s.nextBotMessage(); x != "Robo: at last" || s.outboxLength() != 0 {
		t.Errorf("sent %q, %d jobs are left", x, s.outboxLength())
	}
	if a, b := <-called, <-called; a == "" || a != b {
		t.Errorf("the calls about one message have the ids %q and %q", a, b)
	}
}

// The owner of a bot whose service was refused reads which setting allows it. A name without an address reads the same,
// so that users do not find out which internal names exist.
func TestRefusedAddressNamesSetting(t *testing.T) {
	inside := publicReason(&internalAddressError{})
	if !strings.Contains(inside, "--webhooks-allow") {
		t.Errorf("got %q", inside)
	}
	if unknown := publicReason(&net.DNSError{}); unknown != inside {
		t.Errorf("an unknown name: %q, an internal address: %q", unknown, inside)
	}
}

// An owner closes the services of bots between two attempts: the second one does not happen, and the bot's owner sees
// the reason. A test of the service is refused.
func TestNoRetryAfterServicesAreClosed(t *testing.T) {
	var s *fakeServer
	var calls atomic.Int64
	address := startService(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		olive := realm.Caller{User: s.r.FindByEmail("olive@example.org").ID, Client: "test"}
		runCommand(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{
			{Name: "allow_outgoing_webhooks", Value: false}}})
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s = newFakeServer(t, address, false)
	runCommand(s, realm.System, realm.CreateUser{Name: "Olive", Email: "olive@example.org", Role: realm.Owner})
	s.startDispatcher("127.0.0.0/8")
	for deadline := time.Now().Add(time.Minute); s.outboxLength() > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the call does not end")
		}
		runtime.Gosched()
	}
	l := s.deliveries()
	if len(l.List) != 1 || calls.Load() != 1 || !strings.Contains(l.List[0].Why, "does not allow") {
		t.Errorf("%d calls; the owner sees %+v", calls.Load(), l.List)
	}
	select {
	case text := <-s.botMessages:
		t.Errorf("a bot sent %q", text)
	default:
	}
	_, err := s.Turn(1, s.ann(), func(t *realm.Turn) (any, error) {
		return realm.TestService{Bot: s.r.FindByEmail("robo-bot@example.org").ID}.Decide(t)
	})
	if err == nil || !strings.Contains(err.Error(), "does not send data") {
		t.Errorf("a test: %v", err)
	}
}
