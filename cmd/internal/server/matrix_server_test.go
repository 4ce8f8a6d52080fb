package server

import (
	"encoding/base64"
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
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/valyala/fasthttp"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/mail"
	"parley/wire/thumbnails"
)

// The matrix of permissions asks the whole server, from the request's bytes to the answer's, without a socket: who may do
// what, and who hears of it. What the answers should be is said beside each question in words of the protocol, by rules
// that know nothing of the server's code. A cell is one question with one expected answer; one that differs names itself.

// matrixServer is a server in this process with two organizations, and a clock the test moves.
type matrixServer struct {
	*testing.T
	house  *actors.Server
	server *httpd.Server
	now    atomic.Int64 // Unix seconds
	cells  int
	wrong  map[string]int // by the cell's pattern
	book   *coverage
	asked  []matrixRequest // since the last cell
}

// maxReported is how many cells of a kind name themselves before the rest are only counted.
const maxReported = 12

// matrixUser is who asks.
type matrixUser struct {
	name       string // as cells call him
	id         int64
	email, key string // key "": a visitor
	host       string
	queue      string
	last       int64
}

const (
	ourHost   = "chat.example"
	theirHost = "other.chat.example"
)

func newMatrixServer(t *testing.T, l *coverage) *matrixServer {
	t.Helper()
	c := &matrixServer{T: t, book: l}
	c.now.Store(time.Now().Unix())
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	store, err := snapshot.Open("data", snapshot.Options{FS: vfs.NewMem(), MemTable: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	sites := newSiteTable("http://" + ourHost)
	disk := snapshot.Disk{Store: store}
	library := search.OpenService(filepath.Join(dir, "search"), disk, wire.SearchText, quiet)
	renderer := &wire.Renderer{}
	secret := []byte("a secret of thirty-two characters")
	c.house, err = actors.Open(disk, actors.Options{Protocol: wire.SessionProtocol{}, Renderer: renderer, Secret: secret, Log: quiet, Site: sites.site, Search: library, Now: func() time.Time { return time.Unix(c.now.Load(), 0) }, Fatal: func(err error) { panic(err) }})
	if err != nil {
		t.Fatal(err)
	}
	sites.orgs = c.house
	kept, err := files.Open(filepath.Join(dir, "uploads"))
	if err != nil {
		t.Fatal(err)
	}
	passwords := httpd.NewPasswords()
	tools := &wire.Tools{Files: fileStore{kept}, Sign: newSigner(secret), VerifySignature: newSignatureChecker(secret), HashPassword: passwords.Hash, CheckPassword: passwords.Check, HashKey: actors.HashKey,
		Token: actors.Token, Version: wire.Version, Renderer: renderer, ChannelMailPattern: "%s@mail.example", Emails: mail.Composer{}, LinkToken: c.house.LinkToken,
		StartExport: func(realm.ID, realm.Export) {}, SubdomainTaken: func(string) bool { return false }}
	thumbnailWorker := thumbnails.Start(c.house, tools.Files, quiet, nil)
	tools.Thumbnails = thumbnailWorker
	c.server = httpd.New(httpd.Options{Server: c.house, Tools: tools, Realms: sites, Log: quiet, Files: kept})
	t.Cleanup(func() {
		thumbnailWorker.Close()
		withShutdownTimeout(c.house.Close)
		library.Close()
		store.Close()
	})
	return c
}

// join makes an account; it needs no organization's leave.
func (c *matrixServer) join(id realm.ID, host, name string, role realm.Role, bot realm.BotType, owner int64) *matrixUser {
	c.Helper()
	system := realm.Caller{System: true, Client: "Internal"}
	email := strings.ReplaceAll(strings.ToLower(name), " ", ".") + "@" + host
	u, err := execute(c.house, id, system, realm.CreateUser{Email: email, Name: name, Role: role, Bot: bot, BotOwner: realm.UserID(owner), NoDefaults: true, First: true})
	if err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	key, err := execute(c.house, id, system, realm.IssueAPIKey{User: u})
	if err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	return &matrixUser{name: name, id: int64(u), email: email, key: key, host: host, last: -1}
}

// reply is an answer.
type reply struct {
	status int
	body   map[string]any
	raw    string
	at     string // the last piece of the address of what was made
}

// msg is "" for a success, otherwise the message of the refusal.
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

// num is an id or the like in decoded JSON; 0 if it is none.
func num(x any) int64 {
	n, _ := x.(float64)
	return int64(n)
}

// nums is a list of ids in decoded JSON.
func nums(x any) (out []int64) {
	list, _ := x.([]any)
	for _, e := range list {
		out = append(out, num(e))
	}
	return out
}

func objects(x any) (out []map[string]any) {
	list, _ := x.([]any)
	for _, e := range list {
		m, _ := e.(map[string]any)
		out = append(out, m)
	}
	return out
}

// ids is one field of each object in a list.
func ids(x any, field string) (out []int64) {
	for _, m := range objects(x) {
		out = append(out, num(m[field]))
	}
	return out
}

type pairs []any

// call asks a question, for the cell that comes next to compare the answer.
func (c *matrixServer) call(who *matrixUser, method, path string, params ...any) reply {
	c.Helper()
	r := c.send(who, method, path, params...)
	c.asked = append(c.asked, matrixRequest{who.name, method, path, r.msg() == ""})
	return r
}

// send asks as somebody; what is no text among the parameters is sent as JSON. A parameter named file is a file's content,
// one with a hyphen is a header; whoever speaks tus sends a piece of a byte.
func (c *matrixServer) send(who *matrixUser, method, path string, params ...any) reply {
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
	req.Header.SetMethod(method)
	target := "http://" + who.host + "/api/v1" + path
	switch {
	case file != "":
		const mark = "xxxxxxxxxxxxxxxxxxxx"
		req.Header.SetContentType("multipart/form-data; boundary=" + mark)
		body := "--" + mark + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\n" + file + "\r\n"
		for name := range form {
			body += "--" + mark + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + form.Get(name) + "\r\n"
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
	req.Header.SetHost(who.host)
	req.Header.SetUserAgent("ZulipMobile/1")
	if who.key != "" {
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(who.email+":"+who.key)))
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	if method == "GET" && path == "/events" && form.Has("queue_id") {
		return c.poll(who, form.Get("queue_id"))
	}
	c.server.Handle(ctx)
	r := reply{status: ctx.Response.StatusCode(), raw: string(ctx.Response.Body()), at: gopath.Base(string(ctx.Response.Header.Peek("Location")))}
	json.Unmarshal([]byte(r.raw), &r.body)
	return r
}

// poll is GET /events, which needs a connection to wait on: whoever the server lets in is handed to the house as the
// server would hand him.
func (c *matrixServer) poll(who *matrixUser, queue string) reply {
	c.Helper()
	if r := c.send(who, "GET", "/events"); r.msg() != "Missing 'queue_id' argument" {
		return r
	}
	return c.fetch(who, queue)
}

// fetch is a poll of somebody who was let in.
func (c *matrixServer) fetch(who *matrixUser, queue string) reply {
	id := ours
	if who.host == theirHost {
		id = theirs
	}
	m := make(pollReply, 1)
	c.house.Poll(wire.PollRequest{Realm: id, User: realm.UserID(who.id), Queue: realm.QueueID(queue), Last: who.last, DontBlock: true, Reply: m})
	return <-m
}

// must is a call that has to succeed, to set the scene.
func (c *matrixServer) must(who *matrixUser, method, path string, params ...any) reply {
	c.Helper()
	r := c.send(who, method, path, params...)
	if r.msg() != "" {
		c.Fatalf("%s: %s %s %v: %s", who.name, method, path, params, r.msg())
	}
	return r
}

// check counts one question and compares the answer.
func (c *matrixServer) check(got, want string, name string, args ...any) bool {
	c.Helper()
	c.cells++
	c.book.noteRequests(c.asked)
	c.asked = c.asked[:0]
	if got == want {
		return true
	}
	if c.wrong == nil {
		c.wrong = map[string]int{}
	}
	kind := fmt.Sprint(name, args[min(1, len(args)):min(2, len(args))])
	if c.wrong[kind]++; c.wrong[kind] <= maxReported {
		c.Errorf("%s: %s, want %s", fmt.Sprintf(name, args...), shown(got), shown(want))
	}
	return false
}

func shown(outcome string) string {
	if outcome == "" {
		return "done"
	}
	return fmt.Sprintf("%q", outcome)
}

// summary prints what was asked.
func (c *matrixServer) summary() {
	c.Helper()
	wrong := 0
	for kind, n := range c.wrong {
		wrong += n
		if n > maxReported {
			c.Errorf("%d more of %s", n-maxReported, kind)
		}
	}
	c.book.finish(c.Name(), c.cells, wrong)
	if len(c.asked) > 0 {
		c.Errorf("%d answers, the first of %s %s, were compared with nothing", len(c.asked), c.asked[0].method, c.asked[0].path)
	}
}

// register opens a queue for everything.
func (c *matrixServer) register(who *matrixUser) reply {
	c.Helper()
	r := c.must(who, "POST", "/register", "client_capabilities", map[string]bool{"notification_settings_null": true, "bulk_message_deletion": true, "user_avatar_url_field_optional": true, "stream_typing_notifications": true,
		"user_settings_object": true, "linkifier_url_template": true, "user_list_incomplete": true, "include_deactivated_groups": true, "archived_channels": true, "empty_topic_name": true, "simplified_presence_events": true, "individual_emoji_changes": true},
		"include_subscribers", true, "apply_markdown", false, "idle_queue_timeout", 604800, "slim_presence", true)
	who.queue, _ = r.body["queue_id"].(string)
	who.last = r.int("last_event_id")
	return r
}

// pollReply takes a poll's answer.
type pollReply chan reply

func (m pollReply) Answer(status int, parts ...[]byte) bool {
	r := reply{status: status, raw: string(slices.Concat(parts...))}
	json.Unmarshal([]byte(r.raw), &r.body)
	m <- r
	return true
}

// newEvents is every event somebody was told since he last asked. Events leave before the answer of what brought them about.
func (c *matrixServer) newEvents(who *matrixUser) []map[string]any {
	c.Helper()
	if who.queue == "" {
		return nil
	}
	r := c.fetch(who, who.queue)
	if r.msg() != "" {
		c.Fatalf("%s polls: %s", who.name, r.raw)
	}
	events := objects(r.body["events"])
	for _, e := range events {
		who.last = max(who.last, num(e["id"]))
	}
	return events
}
