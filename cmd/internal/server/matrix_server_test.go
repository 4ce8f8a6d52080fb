package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	gopath "path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/valyala/fasthttp"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/orgfiles"
	"parley/cmd/internal/sites"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/mail"
	"parley/wire/push"
	"parley/wire/thumbnails"
)

// The permission matrix sends requests to the whole server, from the bytes of a request to the bytes of the answer, but
// without a socket. It checks which callers are allowed to do something and which users receive the events. The
// expected answers are given beside each question as rules in terms of the protocol, independent of the server's code.
// A cell is one question with one expected answer.

// matrixServer is a server in this process with two organizations and a clock that the test moves.
type matrixServer struct {
	*testing.T
	orgs       *actors.Server
	front      *actors.Server // of the node that the requests are sent to, if that is not orgs
	disk       snapshot.Disk
	options    httpd.Options
	server     *httpd.Server
	tools      *wire.Tools
	login      matrixLogin
	sentWith   matrixLogin  // the login of the last request
	now        atomic.Int64 // Unix seconds
	cells      int
	wrong      map[string]int // wrong cells by kind
	wrongCells []wrongCell    // the first ones of each kind
	files      *files.Store
	coverage   *coverage
	asked      []matrixRequest           // since the last cell
	questions  map[string]*askedQuestion // of this table
}

// maxReported is the number of wrong cells of a kind that are reported; the rest are only counted.
const maxReported = 12

// matrixUser is a user, bot or visitor that sends requests.
type matrixUser struct {
	name       string // as the cells name the user
	id         int64
	email, key string // an empty key: a logged-out visitor
	host       string
	firstKey   string         // "" if it is the key that the user logs in with
	session    *matrixSession // nil: the user logs in with the key
	queue      string
	last       int64
}

const (
	ourHost   = "chat.example"
	theirHost = "other.chat.example"
)

func newMatrixServer(t *testing.T, l *coverage) *matrixServer {
	t.Helper()
	c := &matrixServer{T: t, coverage: l, login: l.login}
	c.now.Store(time.Now().Unix())
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	store, err := snapshot.Open("data", snapshot.Options{FS: vfs.NewMem(), MemTable: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	sites := sites.New("http://" + ourHost)
	disk := snapshot.Disk{Store: store}
	library := search.OpenService(filepath.Join(dir, "search"), disk, wire.SearchText, quiet)
	renderer := &wire.Renderer{}
	secret := []byte("a secret of thirty-two characters")
	c.orgs, err = actors.Open(disk, actors.Options{
		Protocol: wire.SessionProtocol{},
		Renderer: renderer,
		Secret:   secret,
		Log:      quiet,
		Site:     sites.Site,
		Search:   library,
		Now:      c.clock,
		Fatal:    func(err error) { panic(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	sites.Orgs, c.disk = c.orgs, disk
	c.files, err = files.Open(filepath.Join(dir, "uploads"), nil)
	if err != nil {
		t.Fatal(err)
	}
	passwords := httpd.NewPasswords(nil)
	tools := &wire.Tools{
		WebPushKey:         push.PublicWebKey(push.NewWebKey([]byte("secret"))),
		Files:              orgfiles.Serve(c.files, nil, nil),
		Sign:               datadir.NewSigner(secret),
		VerifySignature:    datadir.NewSignatureChecker(secret),
		HashPassword:       passwords.Hash,
		CheckPassword:      passwords.Check,
		HashKey:            actors.HashKey,
		Token:              actors.Token,
		Version:            wire.Version,
		Renderer:           renderer,
		ChannelMailPattern: "%s@mail.example",
		Emails:             mail.Composer{},
		LinkToken:          c.orgs.LinkToken,
		StartExport:        func(realm.ID, realm.Export) {},
		StartOwnExport:     func(realm.ID, realm.UserID, realm.OwnExport) {},
		SubdomainTaken:     func(string) bool { return false },
	}
	tools.Calls = testCalls{}
	tools.Places = wire.NewPlaces(c.orgs, c.clock)
	thumbnailWorker := thumbnails.Start(c.orgs, tools.Files, quiet)
	c.orgs.AddOwnerTask(thumbnailWorker)
	tools.Thumbnails = thumbnailWorker
	c.tools = tools
	c.options = httpd.Options{Server: c.orgs, Tools: tools, Realms: sites, Log: quiet,
		Files: orgfiles.Serve(c.files, nil, nil),
		Now:   c.clock}
	c.server = httpd.New(c.options)
	t.Cleanup(func() {
		c.showWrong()
		thumbnailWorker.Close()
		withShutdownTimeout(c.orgs.Close)
		library.Close()
		store.Close()
	})
	return c
}

// waitForFront waits until an edge has everything that the test has changed at the owner without a request.
func (c *matrixServer) waitForFront() {
	if c.front == nil {
		return
	}
	for _, id := range c.orgs.Realms() {
		// A batch of presence is merged in a turn, by the presence actor, and told to others in another turn.
		c.settle(id)
		c.orgs.PresenceOf(id, 0)
		c.settle(id)
		if err := c.front.WaitFor(c.Context(), id, c.orgs.DurableSeq(id)); err != nil {
			c.Error(err)
		}
	}
}

// settle returns when the owner has carried out the commands that it had before.
func (c *matrixServer) settle(id realm.ID) {
	if _, err := c.orgs.View(id, realm.System, func(realm.View) (any, error) { return nil, nil }); err != nil {
		c.Error(err)
	}
}

func (c *matrixServer) clock() time.Time { return time.Unix(c.now.Load(), 0) }

// join creates an account; it needs no permission.
func (c *matrixServer) join(id realm.ID, host, name string, role realm.Role, bot realm.BotType,
	owner int64) *matrixUser {
	c.Helper()
	system := realm.Caller{System: true, Client: "Internal"}
	email := strings.ReplaceAll(strings.ToLower(name), " ", ".") + "@" + host
	u, err := realm.Execute(c.orgs, id, system, realm.CreateUser{Email: email, Name: name, Role: role, Bot: bot,
		BotOwner: realm.UserID(owner), NoDefaults: true, First: true})
	if err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	key, err := realm.Execute(c.orgs, id, system, realm.IssueAPIKey{User: u})
	if err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	p := &matrixUser{name: name, id: int64(u), email: email, key: key, host: host, last: -1}
	c.prepareLogin(p, id, bot)
	return p
}

// reply is the answer to a request.
type reply struct {
	status int
	body   map[string]any
	raw    string
	at     string // the last part of the Location header
}

// msg returns the message of a refusal, or "" for a success.
func (r reply) msg() string {
	if r.status < 400 {
		return ""
	}
	m, _ := r.body["msg"].(string)
	if m == "" {
		return fmt.Sprintf("status %d %s", r.status, r.raw)
	}
	return m
}

func (r reply) int(key string) int64 {
	n, _ := r.body[key].(float64)
	return int64(n)
}

// num returns a number of decoded JSON, or 0 if x is none.
func num(x any) int64 {
	n, _ := x.(float64)
	return int64(n)
}

// nums returns a list of numbers of decoded JSON.
func nums(x any) (out []int64) {
	list, _ := x.([]any)
	for _, e := range list {
		out = append(out, num(e))
	}
	return out
}

// objects returns a list of objects of decoded JSON.
func objects(x any) (out []map[string]any) {
	list, _ := x.([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		out = append(out, m)
	}
	return out
}

// ids returns one numeric field of each object in a list.
func ids(x any, field string) (out []int64) {
	for _, m := range objects(x) {
		out = append(out, num(m[field]))
	}
	return out
}

type pairs []any

// call sends a request whose answer the next cell compares.
func (c *matrixServer) call(user *matrixUser, method, path string, params ...any) reply {
	c.Helper()
	r := c.send(user, method, path, params...)
	code, _ := r.body["code"].(string)
	c.asked = append(c.asked, matrixRequest{user.name, method, path, r.msg(), code})
	return r
}

// send sends a request as a user. Parameters that are no text are sent as JSON. A parameter with the name file is the
// content of a file, one with a hyphen is a header. With the header of resumable uploads the body is one byte.
func (c *matrixServer) send(user *matrixUser, method, path string, params ...any) reply {
	c.Helper()
	form := url.Values{}
	file := ""
	req := &fasthttp.Request{}
	for i := 0; i < len(params); i += 2 {
		name := params[i].(string)
		switch v := params[i+1].(type) {
		case string:
			if name == "file" {
				file = v
				continue
			}
			if strings.Contains(name, "-") {
				req.Header.Set(name, v)
				continue
			}
			form.Set(name, v)
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				c.Fatal(err)
			}
			form.Set(name, string(raw))
		}
	}
	if user.session != nil && slices.Contains(asksAgain, method+" "+path) {
		c.send(user, "POST", "/users/me/confirmation")
	}
	if user.session != nil && slices.Contains(asksPassword, method+" "+path) {
		form.Set("password", matrixPassword)
	}
	req.Header.SetMethod(method)
	target := "http://" + user.host + user.prefix(method, path) + path
	switch {
	case file != "":
		const mark = "xxxxxxxxxxxxxxxxxxxx"
		req.Header.SetContentType("multipart/form-data; boundary=" + mark)
		body := "--" + mark +
			"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: " +
			"text/plain\r\n\r\n" + file + "\r\n"
		for name := range form {
			body += "--" + mark + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + form.Get(name) +
				"\r\n"
		}
		req.SetBodyString(body + "--" + mark + "--\r\n")
	case len(req.Header.Peek("Tus-Resumable")) > 0:
		req.Header.SetContentType(wire.PieceType)
		req.SetBodyString("x")
	case method == "GET":
		if len(form) > 0 {
			target += "?" + form.Encode()
		}
	default:
		req.Header.SetContentType("application/x-www-form-urlencoded")
		req.SetBodyString(form.Encode())
	}
	req.SetRequestURI(target)
	req.Header.SetHost(user.host)
	req.Header.SetUserAgent("ZulipMobile/1")
	c.addCredentials(req, user, method, path)
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	if method == "GET" && path == "/events" && form.Has("queue_id") {
		return c.poll(user, form.Get("queue_id"))
	}
	c.waitForFront()
	c.server.Handle(ctx)
	r := reply{status: ctx.Response.StatusCode(), raw: string(ctx.Response.Body()),
		at: gopath.Base(string(ctx.Response.Header.Peek("Location")))}
	json.Unmarshal([]byte(r.raw), &r.body)
	user.session.takeCookies(&ctx.Response)
	return r
}

// poll is GET /events. A real poll needs a connection to wait on; so this one checks that the user is let in, and then
// calls the actors as the HTTP server does.
func (c *matrixServer) poll(user *matrixUser, queue string) reply {
	c.Helper()
	if r := c.send(user, "GET", "/events"); r.msg() != "Missing 'queue_id' argument" {
		return r
	}
	return c.fetch(user, queue)
}

// fetch polls a queue without the checks of the HTTP server.
func (c *matrixServer) fetch(user *matrixUser, queue string) reply {
	id := ours
	if user.host == theirHost {
		id = theirs
	}
	m := make(pollReply, 1)
	c.waitForFront()
	cmp.Or(
		c.front,
		c.orgs,
	).Poll(
		wire.PollRequest{Realm: id, User: realm.UserID(user.id), Queue: realm.QueueID(queue), Last: user.last,
			DontBlock: true, Reply: m},
	)
	return <-m
}

// must is a request that prepares the scene and has to succeed.
func (c *matrixServer) must(user *matrixUser, method, path string, params ...any) reply {
	c.Helper()
	r := c.send(user, method, path, params...)
	if r.msg() != "" {
		c.Fatalf("%s: %s %s %v: %s", user.name, method, path, params, r.msg())
	}
	return r
}

// check counts one cell and compares the answer with the expected one.
func (c *matrixServer) check(got, want string, name string, args ...any) bool {
	c.Helper()
	want = c.sentWith.expected(want)
	c.cells++
	refused := c.coverage.noteRequests(c.asked)
	c.asked = c.asked[:0]
	for _, a := range refused {
		c.report("form of "+endpointOf(a.method, a.path), fmt.Sprintf(name, args...), "a form that is accepted",
			fmt.Sprintf("the form of %s %s is refused: %s", a.method, a.path, a.refusal))
	}
	if got == want {
		return len(refused) == 0
	}
	c.report(fmt.Sprint(name, args[min(1, len(args)):min(2, len(args))]), fmt.Sprintf(name, args...),
		cmp.Or(want, "done"), cmp.Or(got, "done"))
	return false
}

// wrongCell is a cell with another outcome than the wanted one.
type wrongCell struct{ who, question, wanted, seen string }

// report counts a wrong cell of a kind, and notes the first ones. The text begins with the caller.
func (c *matrixServer) report(kind, text, wanted, seen string) {
	if c.wrong == nil {
		c.wrong = map[string]int{}
	}
	if c.wrong[kind]++; c.wrong[kind] <= maxReported {
		who, question, _ := strings.Cut(text, ": ")
		c.wrongCells = append(c.wrongCells, wrongCell{who, question, wanted, seen})
	}
}

// showWrong fails with a table of the wrong cells.
func (c *matrixServer) showWrong() {
	if len(c.wrongCells) == 0 {
		return
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "caller\tquestion\twanted\tseen")
	for _, x := range c.wrongCells {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.who, x.question, x.wanted, x.seen)
	}
	w.Flush()
	c.Errorf("cells with another outcome:\n%s", b.String())
}

// summary reports the number of cells of the table.
func (c *matrixServer) summary() {
	c.Helper()
	wrong := 0
	for kind, n := range c.wrong {
		wrong += n
		if n > maxReported {
			c.Errorf("%d more of %s", n-maxReported, kind)
		}
	}
	c.coverage.finish(c.Name(), c.cells, wrong)
	c.checkQuestions()
	if len(c.asked) > 0 {
		c.Errorf("%d answers were not compared, the first of %s %s", len(c.asked), c.asked[0].method, c.asked[0].path)
	}
}

// register opens a queue for all events.
func (c *matrixServer) register(user *matrixUser) reply {
	c.Helper()
	r := c.must(user, "POST", "/register", "client_capabilities",
		map[string]bool{"notification_settings_null": true, "bulk_message_deletion": true,
			"user_avatar_url_field_optional": true, "stream_typing_notifications": true,
			"user_settings_object": true, "linkifier_url_template": true, "user_list_incomplete": true,
			"include_deactivated_groups": true, "archived_channels": true, "empty_topic_name": true,
			"simplified_presence_events": true, "individual_emoji_changes": true},
		"include_subscribers", true, "apply_markdown", false, "idle_queue_timeout", 604800, "slim_presence", true)
	user.queue, _ = r.body["queue_id"].(string)
	user.last = r.int("last_event_id")
	return r
}

// pollReply receives the answer to a poll.
type pollReply chan reply

// Answer decodes the answer and passes it on.
func (m pollReply) Answer(status int, parts ...[]byte) bool {
	r := reply{status: status, raw: string(slices.Concat(parts...))}
	json.Unmarshal([]byte(r.raw), &r.body)
	m <- r
	return true
}

// newEvents returns the events of a user since the last call. Events are sent before the answer to the request that
// caused them.
func (c *matrixServer) newEvents(user *matrixUser) []map[string]any {
	c.Helper()
	if user.queue == "" {
		return nil
	}
	r := c.fetch(user, user.queue)
	if r.msg() != "" {
		c.Fatalf("%s polls: %s", user.name, r.raw)
	}
	events := objects(r.body["events"])
	for _, e := range events {
		user.last = max(user.last, num(e["id"]))
	}
	return events
}

// testCalls are calls without a LiveKit server.
type testCalls struct{}

func (testCalls) Address() string { return "wss://calls.example" }

func (testCalls) Join(realm.ID, realm.Call, realm.UserID, string) (string, time.Time, error) {
	return "token", time.Unix(1_900_000_000, 0), nil
}

func (testCalls) Watch(realm.ID) {}
