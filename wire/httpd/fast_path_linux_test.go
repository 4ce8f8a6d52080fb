package httpd

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire"
)

const (
	testKey    = "abcdefghijklmnopqrstuvwxyz123456"
	testEmail  = "ann@example.com"
	testSecret = "secret-of-a-session-of-a-browser" // 32 characters
)

// sceneServer is a wire.Server with one organization in memory. It answers polls at once, without events, and records
// the polls and commands that it gets.
type sceneServer struct {
	wire.Server // panics for methods that the tested endpoints do not use
	account     *wire.Account
	session     realm.BrowserSession // of the account
	lookups     atomic.Int64         // of sessions

	mu    sync.Mutex
	scene *realmtest.Scene
	calls []string
}

func (s *sceneServer) record(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *sceneServer) takeCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *sceneServer) Turn(id realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Address = "" // the fast path has none: messages have no entries in the audit log
	before := s.scene.Realm.Seq()
	v, err := realmtest.RunTurn(s.scene, c.User, decide)
	if facts := s.scene.Realm.Seq() - before; facts > 0 || err != nil { // others only read
		s.record("turn of realm %d by %+v: %d facts, %v", id, c, facts, err)
	}
	return v, err
}

func (s *sceneServer) View(_ realm.ID, c realm.Caller, look func(realm.View) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return look(s.scene.ViewAs(c.User))
}

func (s *sceneServer) RunAsync(commands []wire.AsyncCommand) {
	for _, c := range commands {
		v, err := s.Turn(c.Realm, c.Caller, c.Decide)
		c.Done(v, err)
	}
}

func (s *sceneServer) Poll(p wire.PollRequest) {
	s.mu.Lock()
	s.record("poll of realm %d by %d: queue %q after %d, dont_block %v", p.Realm, p.User, p.Queue, p.Last, p.DontBlock)
	s.mu.Unlock()
	wire.AnswerPoll(p.Reply, p.Queue, nil)
}

func (s *sceneServer) PollAll(polls []*wire.PollRequest) {
	for _, p := range polls {
		s.Poll(*p)
	}
}

func (s *sceneServer) CancelPoll(wire.PollRequest)          {}
func (s *sceneServer) AuthVersion() uint64                  { return 1 }
func (s *sceneServer) MarkdownConfigSeq(realm.ID) realm.Seq { return 0 }
func (s *sceneServer) Text(realm.ID, realm.BodyRef) (realm.Body, bool, error) {
	return realm.Body{}, false, nil
}
func (s *sceneServer) PresenceSince(realm.ID, int64, int64) []presence.Row { return nil }
func (s *sceneServer) ActiveSince(realm.ID, int64) func(realm.UserID) bool { return nil }
func (s *sceneServer) AccountByEmail(realm.ID, string) (a *wire.Account, found bool) {
	return nil, false
}

func (s *sceneServer) AccountByKeyHash(hash [32]byte) (*wire.Account, bool) {
	return s.account, hash == hashKey(testKey)
}

func (s *sceneServer) AccountBySessionHash(hash [32]byte) (*wire.Account, *realm.BrowserSession) {
	s.lookups.Add(1)
	if hash != hashKey(testSecret) {
		return nil, nil
	}
	return s.account, &s.session
}

func (s *sceneServer) ReportPresence(_ realm.ID, u realm.UserID, active bool) (presence.Row, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("presence of %d: %v", u, active)
	return presence.Row{User: u, Active: 1}, false
}

func (s *sceneServer) ReportPresenceAsync(id realm.ID, u realm.UserID, active bool, done func(presence.Row, bool)) {
	row, announce := s.ReportPresence(id, u, active)
	done(row, announce)
}

// hashKey is a hash good enough for tests.
func hashKey(key string) (h [32]byte) { copy(h[:], key); return h }

// sign is a signature good enough for tests.
func sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newSession returns a session that was just used.
func newSession() realm.BrowserSession { return realm.BrowserSession{ID: 7, Used: time.Now().Unix()} }

// browserLogin returns the headers of a browser with the session, as its scripts send them, and the token.
func browserLogin(u realm.UserID) (headers, token string) {
	token = wire.CSRFToken(&wire.Tools{Sign: sign}, 1, u, newSession().ID)
	return "Cookie: csrftoken=" + token + "; sessionid=" + testSecret + "\r\nX-CSRFToken: " + token +
		"\r\nOrigin: http://example.com\r\nReferer: http://example.com/\r\n", token
}

// oneRealm is a Realms with the test's organization under every host.
type oneRealm struct{}

func (oneRealm) ByHost(string) (realm.ID, wire.Site) {
	return 1, wire.Site{URL: "http://example.com", Host: "example.com", Name: "scene"}
}

func (oneRealm) IsForeign(string) bool { return false }

// serveFast starts an HTTP server in front of s and returns its address. now is its clock; nil: the system's.
func serveFast(t testing.TB, s wire.Server, now func() time.Time) (*Server, string) {
	t.Helper()
	server := New(Options{
		Server: s,
		Tools: &wire.Tools{HashKey: hashKey, Renderer: &wire.Renderer{}, Generation: 1,
			Token: func(n int) string { return strings.Repeat("t", n) }, Sign: sign},
		Realms: oneRealm{},
		Limits: Limits{User: 1 << 40},
		Now:    now,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(func() { server.Shutdown(t.Context()) })
	return server, l.Addr().String()
}

// testRequest is a request before it is written.
type testRequest struct{ method, target, headers, body string }

// write writes the request. With a second User-Agent header it is not offered to the fast path, though the first one
// alone counts.
func (r testRequest) write(w io.Writer, ordinary bool) error {
	agent := "User-Agent: ZulipTerminal/0.7\r\n"
	if ordinary {
		agent += agent
	}
	text := r.method + " " + r.target + " HTTP/1.1\r\nHost: example.com\r\n" + agent + r.headers
	if r.method == "POST" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(r.body))
	}
	_, err := io.WriteString(w, text+"\r\n"+r.body)
	return err
}

// testConn is a connection that is opened again when the server closes it.
type testConn struct {
	t       testing.TB
	address string
	conn    net.Conn
	r       *bufio.Reader
}

// changing matches the parts of an answer that differ between equal requests: times, and IDs of new objects.
var changing = regexp.MustCompile(`"id":\d+|00000000-0000-4000-8000-\d+|"server_timestamp":[0-9.]+`)

// do sends a request and returns status, headers and body, without the parts that differ between equal requests.
func (c *testConn) do(r testRequest, ordinary bool) string {
	c.t.Helper()
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { conn.Close() })
		c.conn, c.r = conn, bufio.NewReader(conn)
	}
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	if err := r.write(c.conn, ordinary); err != nil {
		c.t.Fatal(err)
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("%+v: %v", r, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if res.Close {
		c.conn.Close()
		c.conn = nil
	}
	for _, name := range []string{"Date", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Content-Length"} {
		if res.Header.Get(name) != "" {
			res.Header.Set(name, "some")
		}
	}
	var text strings.Builder
	res.Header.Write(&text)
	return fmt.Sprintf("%d\n%s\n%s", res.StatusCode, text.String(), changing.ReplaceAllString(string(body), "some"))
}

// generator makes requests of which most are ordinary and some are odd in one or more places.
type generator struct {
	*rand.Rand
	token string // CSRF token of the browser that sends the requests; "" for apps with an API key
}

// pick returns one of usual, or now and then one of odd.
func (g generator) pick(usual, odd []string) string {
	if g.IntN(8) == 0 && len(odd) > 0 {
		return odd[g.IntN(len(odd))]
	}
	return usual[g.IntN(len(usual))]
}

// paths returns the paths of an endpoint at which the caller's credentials are usual.
func (g generator) paths(end string) []string {
	if g.token != "" {
		return []string{"/json" + end}
	}
	return []string{"/api/v1" + end, "/json" + end}
}

// credentials returns the headers that identify the caller.
func (g generator) credentials() string {
	if g.token == "" {
		return g.authorization()
	}
	session, token, planted := "sessionid="+testSecret, "csrftoken="+g.token, "csrftoken="+strings.Repeat("p", 32)
	both := session + "; " + token
	line := func(name, value string) string {
		if value == "" {
			return ""
		}
		return name + ": " + value + "\r\n"
	}
	return line("Cookie", g.pick([]string{both, "a=b; " + token + "; c=d;" + session}, []string{"", session, token,
		"sessionid=" + strings.ToUpper(testSecret) + "; " + token, session + "; " + planted,
		planted + "; " + both, both + "; " + planted, "__Host-" + session + "; " + token, "sessionid=; " + both,
		session + " ; " + token, "sessionid=\"" + testSecret + "\"; " + token, "SessionID=" + testSecret + ";" + token,
		both + "\r\nCookie: " + planted})) +
		line("X-CSRFToken", g.pick([]string{g.token, masked(g.token)}, []string{"", strings.Repeat("p", 32),
			g.token[1:], strings.Repeat("A", 400), g.token + "\r\nX-CSRFToken: x"})) +
		line("Origin", g.pick([]string{"", "http://example.com", "http://EXAMPLE.com:80"}, []string{"null",
			"http://evil.example", "https://example.com", "http://example.com:81", "http://example.com.evil",
			"http://example.com\r\nOrigin: http://evil.example"})) +
		line("Referer", g.pick([]string{"", "http://example.com/"}, []string{"http://evil.example/", "x"})) +
		line("Authorization", g.pick([]string{""}, []string{"Basic x"}))
}

func (g generator) authorization() string {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	good := encode(testEmail + ":" + testKey)
	value := g.pick([]string{"Basic " + good}, []string{"", "basic " + good, "BASIC  " + good, "Basic " + good[:10],
		"Bearer x",
		"Basic " + encode("ANN@example.com:"+testKey), "Basic " + encode(" "+testEmail+" : "+testKey+" "),
		"Basic " + encode(testEmail+":"+strings.ToUpper(testKey)), "Basic " + encode(testEmail+":short"),
		"Basic " + encode("a:b:c"), "Basic " + encode("bo@example.com:"+testKey), "Basic !",
		"Basic " + encode(strings.Repeat("x", 300)+":"+testKey)})
	if value == "" {
		return ""
	}
	return "Authorization: " + value + "\r\n"
}

// pairs joins one of each list of url-encoded parameters in any order. Now and then it leaves one out, or adds an odd
// one.
func (g generator) pairs(params ...[]string) string {
	var list []string
	for _, p := range params {
		if g.IntN(12) > 0 {
			list = append(list, p[g.IntN(len(p))])
		}
	}
	if g.IntN(6) == 0 {
		list = append(list, []string{"client=my+bot", "unknown=1", "another=x&unknown=2", "method=patch", "&&=", "a",
			"queue_id=other:2", "last_event_id=3", "last%5fevent_id=4", "content=again",
			"csrfmiddlewaretoken=" + g.token}[g.IntN(11)])
	}
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return strings.Join(list, "&")
}

func (g generator) poll() testRequest {
	ids := []string{"-1", "0", "7", "123456", "-1", "2", "9"}
	odd := []string{"", "-2", "+1", "007", "%2D1", "1.0", "null", "99999999999999999999", "123456789012345678", "x",
		"%31"}
	return testRequest{"GET", g.pick(g.paths("/events?"), []string{"/api/v1/events/?"}) +
		g.pairs(
			[]string{"queue_id=" + g.pick([]string{"q:1", "fb67-a.b_c:17"},
				[]string{"", "q%3A1", "q+1", "%ff", "null"})},
			[]string{"last_event_id=" + g.pick(ids, odd)},
			[]string{"dont_block=" + g.pick([]string{"false", "true"}, []string{"", "1", "%66alse", "False"})},
		), g.credentials(), ""}
}

func (g generator) contentType() string {
	kind := g.pick([]string{"application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8"},
		[]string{"", "application/json", "Application/X-WWW-Form-Urlencoded", "text/plain"})
	if kind == "" {
		return ""
	}
	return "Content-Type: " + kind + "\r\n"
}

func (g generator) message() testRequest {
	content := g.pick([]string{"hello", "/me waves", "/poll lunch\nyes\nno", "> quoted\n\ntext", "<b>&amp;",
		"**bold** *it* `code` https://example.com/?a=b&c=d :smile: 100% ümlaut\n* list"},
		[]string{"$$x$$", "```\ncode\n```", "@**all**", "#**general**", " ", "", "a\x00b", "\xff",
			strings.Repeat("x", 3000), strings.Repeat("y", 11_000)})
	recipient := g.pick([]string{"type=stream&to=general&topic=t", "type=channel&to=%22general%22&subject=t",
		"type=stream&to=1&topic=", "type=direct&to=%5B1%5D", "type=private&to=" + testEmail,
		"type=direct&to=%5B%22bo%40example.com%22%5D", "type=stream&to=nowhere&topic=t"},
		[]string{"type=other", "type=stream&topic=t", "type=stream&to=%7B%7D", "type=direct&to=%5B2%2C1%5D",
			"type=direct&to=999", "type=direct&to=%5B%5D", "type=stream&to=general&topic=t&subject=t",
			"type=stream&to=general&topic=" + strings.Repeat("t", 80)})
	return testRequest{"POST", g.pick(g.paths("/messages"), []string{"/api/v1/messages?topic=query"}),
		g.credentials() + g.contentType(), g.pairs(
			[]string{recipient},
			[]string{"content=" + url.QueryEscape(content)},
			[]string{"read_by_sender=" + g.pick([]string{"true", "false"}, []string{"yes", ""})},
			[]string{"queue_id=q:1&local_id=" + g.pick([]string{"17.01"}, []string{strings.Repeat("l", 101)})},
			[]string{g.pick([]string{"topic2=x", ""}, []string{"widget_content=x", "sender=x", "forged=yes"})})}
}

func (g generator) presence() testRequest {
	return testRequest{"POST", g.pick(g.paths("/users/me/presence"), nil),
		g.credentials() + g.contentType(), g.pairs(
			[]string{"status=" + g.pick([]string{"active", "idle"}, []string{"asleep", ""})},
			[]string{"ping_only=" + g.pick([]string{"true"}, []string{"false", "1"})},
			[]string{"new_user_input=" + g.pick([]string{"true", "false"}, []string{"1"})},
			[]string{"last_update_id=" + g.pick([]string{"-1", "7"}, []string{"x", ""})})}
}

// TestFastPathEqualsOrdinaryPath sends generated requests of apps and browsers on both paths. Answers, and the polls
// and commands that reach the organization, must be the same.
func TestFastPathEqualsOrdinaryPath(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for name, generate := range map[string]func(generator) testRequest{"poll": generator.poll,
		"message": generator.message, "presence": generator.presence} {
		t.Run(name, func(t *testing.T) { testFastPath(t, random, generate, false) })
		t.Run(name+" of a browser", func(t *testing.T) { testFastPath(t, random, generate, true) })
	}
}

func testFastPath(t *testing.T, random *rand.Rand, generate func(generator) testRequest, browser bool) {
	scene := realmtest.New(t)
	ann := scene.Join("Ann")
	scene.Join("Bo")
	realmtest.Do(scene, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "general"}}})
	s := &sceneServer{scene: scene, account: &wire.Account{Realm: 1, User: ann, Email: testEmail, Active: true},
		session: newSession()}
	g := generator{Rand: random}
	if browser {
		_, g.token = browserLogin(ann)
	}
	server, address := serveFast(t, s, nil)
	fast, ordinary := &testConn{t: t, address: address}, &testConn{t: t, address: address}
	const requests = 800
	for range requests {
		r := generate(g)
		// A first message changes settings of its topic, and prepares the rendering of texts.
		ordinary.do(r, true)
		s.takeCalls()
		want := ordinary.do(r, true)
		wantCalls := s.takeCalls()
		got := fast.do(r, false)
		if calls := s.takeCalls(); got != want || !slices.Equal(calls, wantCalls) {
			t.Fatalf("%+v\nfast path: %s\n%q\nordinary path: %s\n%q", r, got, calls, want, wantCalls)
		}
	}
	took := server.Stats().FastPath
	t.Logf("the fast path took %d of %d requests", took, requests)
	if took < requests/8 {
		t.Errorf("the fast path took only %d of %d requests", took, requests)
	}
}

// A connection recognizes the repeated poll of a browser, with all the headers that Chromium sends.
func TestBrowserPollsAreRemembered(t *testing.T) {
	s := &sceneServer{account: &wire.Account{Realm: 1, User: 10, Email: testEmail, Active: true}, session: newSession()}
	_, address := serveFast(t, s, nil)
	headers, token := browserLogin(10)
	headers += "sec-ch-ua-platform: \"Linux\"\r\nX-Requested-With: XMLHttpRequest\r\nX-Form: " + masked(token) +
		"\r\nsec-ch-ua: \"Not:A-Brand\";v=\"8\", \"Chromium\";v=\"156\", \"Google Chrome\";v=\"156\"\r\n" +
		"sec-ch-ua-mobile: ?0\r\nAccept: */*\r\nSec-Fetch-Site: same-origin\r\n" +
		"Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-US,en;q=0.9\r\n" +
		"X-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) " +
		"Chrome/156.0.0.0 Safari/537.36\r\nX-Forwarded-For: 2001:db8:1234:5678:9abc:def0:1234:5678\r\n" +
		"X-Forwarded-Proto: https\r\n" +
		"X-Forwarded-Host: a-long-subdomain.chat.example.org\r\n"
	conn := &testConn{t: t, address: address}
	const polls = 20
	for i := range polls {
		target := fmt.Sprint("/json/events?dont_block=false&queue_id=fb67bf8a-c031-47cc-84cf-ed80accacda8"+
			"&last_event_id=", 1234560+i)
		if a := conn.do(testRequest{"GET", target, headers, ""}, false); !strings.HasPrefix(a, "200") {
			t.Fatal(a)
		}
	}
	// A goroutine that has just accepted or answered may take the next request, too.
	if n := s.lookups.Load(); n > polls/2 {
		t.Errorf("the session was looked up %d times for %d equal polls", n, polls)
	}
}

// The use of a session is recorded once a day, and its cookies are set again, also for a browser that only repeats the
// poll of one connection.
func TestFastPathLeavesRenewals(t *testing.T) {
	var late atomic.Int64 // seconds
	now := func() time.Time { return time.Now().Add(time.Duration(late.Load()) * time.Second) }
	scene := realmtest.New(t)
	ann := scene.Join("Ann")
	s := &sceneServer{scene: scene, account: &wire.Account{Realm: 1, User: ann, Email: testEmail, Active: true},
		session: newSession()}
	server, address := serveFast(t, s, now)
	headers, _ := browserLogin(ann)
	conn := &testConn{t: t, address: address}
	poll := func(i int) string {
		target := fmt.Sprint("/json/events?queue_id=q:1&last_event_id=", i)
		return conn.do(testRequest{"GET", target, headers, ""}, false)
	}
	for _, c := range []struct {
		late    int64
		renewed bool
	}{{0, false}, {3600, false}, {25 * 3600, true}} {
		late.Store(c.late)
		before := server.Stats().FastPath
		for i := range 20 { // a goroutine that has just accepted or answered may take one
			if a := poll(i); !strings.HasPrefix(a, "200") || strings.Contains(a, "sessionid=") != c.renewed {
				t.Fatalf("after %d s: %s", c.late, a)
			}
		}
		if n := server.Stats().FastPath - before; (n == 0) != c.renewed {
			t.Errorf("after %d s: the fast path took %d polls", c.late, n)
		}
	}
	for _, end := range []int64{15 * 24 * 3600, 30 * 24 * 3600} {
		late.Store(end + 24*3600)
		if a := poll(9); !strings.HasPrefix(a, "401") {
			t.Errorf("after %d s the session has not expired:\n%s", end, a)
		}
	}
}

// TestRepeatedPollsEqualOrdinaryPath repeats a poll with generated event IDs, so that the connection recognizes it.
func TestRepeatedPollsEqualOrdinaryPath(t *testing.T) {
	s := &sceneServer{account: &wire.Account{Realm: 1, User: 10, Email: testEmail, Active: true}}
	_, address := serveFast(t, s, nil)
	fast, ordinary := &testConn{t: t, address: address}, &testConn{t: t, address: address}
	g := generator{Rand: rand.New(rand.NewPCG(1, 2))}
	authorization := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(testEmail+":"+testKey)) + "\r\n"
	for range 2000 {
		id := g.pick([]string{"-1", "0", "7", "42", fmt.Sprint(g.Int64())},
			[]string{"", "-2", "+1", "007", "%2D1", "1.0",
				"99999999999999999999", "x", "1&last_event_id=2", "1&dont_block=true", "-", "1%20"})
		r := testRequest{"GET", "/api/v1/events?queue_id=q:1&last_event_id=" + id, authorization, ""}
		want := ordinary.do(r, true)
		wantCalls := s.takeCalls()
		got := fast.do(r, false)
		if calls := s.takeCalls(); got != want || !slices.Equal(calls, wantCalls) {
			t.Fatalf("%q\nfast path: %s\n%q\nordinary path: %s\n%q", id, got, calls, want, wantCalls)
		}
	}
}
