package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/demo"
	"parley/cmd/internal/orgfiles"
	"parley/cmd/internal/sites"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd"
	"parley/wire/mail"
)

// requestTester is a server in this process whose state can be read between two requests.
type requestTester struct {
	testing.TB
	orgs   *actors.Server
	id     realm.ID
	at     string
	people []credential // the callers, in turn
	valid  map[string]any
	next   int

	seq    realm.Seq // number of the newest fact when digest was computed
	digest string

	requests, refusals, successes int
}

type credential struct{ name, email, key string }

func newRequestTester(t testing.TB) *requestTester {
	t.Helper()
	dir := t.TempDir()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, err := snapshot.Open(dir, snapshot.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	secret := bytes.Repeat([]byte("s"), 64)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sites := sites.New("http://" + l.Addr().String())
	// The clock does not move: otherwise an idle queue could end between a request and the check of its effect.
	began, renderer := time.Now(), &wire.Renderer{}
	orgs, err := actors.Open(snapshot.Disk{Store: store}, actors.Options{
		Protocol: wire.SessionProtocol{},
		Renderer: renderer,
		Secret:   secret,
		Log:      quiet,
		Fatal:    func(err error) { panic(err) },
		Site:     sites.Site,
		Now:      func() time.Time { return began },
		Elapsed:  func() time.Duration { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	sites.Orgs = orgs
	kept, err := files.Open(filepath.Join(dir, "uploads"), nil)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(_ realm.ID, password string) (string, error) { return "hash of " + password, nil }
	tools := &wire.Tools{
		Files:           orgfiles.Serve(kept, nil, nil),
		Sign:            datadir.NewSigner(secret),
		VerifySignature: datadir.NewSignatureChecker(secret),
		HashPassword:    hash,
		CheckPassword: func(_ realm.ID, password, hashed string) (bool, error) {
			return hashed == "hash of "+password, nil
		},
		HashKey:            actors.HashKey,
		Token:              actors.Token,
		Version:            wire.Version,
		Generation:         1,
		Renderer:           renderer,
		Dev:                true,
		ChannelMailPattern: "%s@example.org",
		Emails:             mail.Composer{},
		LinkToken:          orgs.LinkToken,
		StartExport:        func(realm.ID, realm.Export) {},
		StartOwnExport:     func(realm.ID, realm.UserID, realm.OwnExport) {},
		SubdomainTaken:     func(string) bool { return false },
		Places:             wire.NewPlaces(orgs, nil),
	}
	var said bytes.Buffer
	if err := demo.Create(orgs, sites.Site("").URL, demo.Content{}, &said); err != nil {
		t.Fatal(err)
	}
	settings := DefaultSettings()
	parkConfig := settings.parkConfig()
	parkConfig.OnDrain, parkConfig.AnswersLatePolls = orgs.Drain, true
	server := httpd.New(httpd.Options{Server: orgs, Tools: tools, Realms: sites, Log: quiet, Park: parkConfig,
		Files: orgfiles.Serve(kept, nil, nil)})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := withShutdownTimeout(server.Shutdown); err != nil {
			t.Error(err)
		}
		if err := withShutdownTimeout(orgs.Close); err != nil {
			t.Error(err)
		}
		store.Close()
		<-served
	})
	b := &requestTester{TB: t, orgs: orgs, at: "http://" + l.Addr().String()}
	for _, id := range orgs.Realms() {
		b.id = id
	}
	keys := map[string]string{}
	for _, m := range regexp.MustCompile(`(\S+@example\.org) .* (\w{32})\n`).FindAllStringSubmatch(said.String(), -1) {
		keys[m[1]] = m[2]
	}
	keys["nobody@example.org"] = "-"
	for _, name := range []string{"ann", "olive", "gus", "demo-bot", "olive", "ann", "gus", "olive", "nobody"} {
		email := name + "@example.org"
		if keys[email] == "" {
			t.Fatalf("no key of %s in %q", email, said.String())
		}
		b.people = append(b.people, credential{name, email, keys[email]})
	}
	b.createObjects()
	b.currentSeq()
	return b
}

// currentSeq returns the number of the newest fact, and updates the digest if there is a new fact.
func (b *requestTester) currentSeq() realm.Seq {
	v, err := b.orgs.View(b.id, realm.System, func(v realm.View) (any, error) {
		if v.Seq() != b.seq {
			b.seq, b.digest = v.Seq(), snapshot.StateDigest(v.Realm).String()
		}
		return v.Seq(), nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return v.(realm.Seq)
}

// unchanged compares every row with its content at the newest fact: no row may change without a fact.
func (b *requestTester) unchanged(after string) {
	b.Helper()
	v, err := b.orgs.View(b.id, realm.System, func(v realm.View) (any, error) {
		if v.Seq() != b.seq {
			return b.digest, nil
		}
		return snapshot.StateDigest(v.Realm).String(), nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if v.(string) != b.digest {
		b.Fatalf("the refusals of %s changed the state without a fact: it is %s, was %s", after, v, b.digest)
	}
}

// createObjects creates one of each kind of object that has an id, and stores valid values of parameters.
func (b *requestTester) createObjects() {
	ann := b.people[0]
	must := func(method, path string, params url.Values, key string) any {
		status, body := b.send(ann, method, path, params, nil, false)
		var a map[string]any
		if json.Unmarshal(body, &a) != nil || status != 200 {
			b.Fatalf("%s %s: %d %s", method, path, status, body)
		}
		return a[key]
	}
	channel := must("GET", "/get_stream_id", url.Values{"stream": {"general"}}, "stream_id")
	message := must("POST", "/messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
		"content": {"c"}}, "id")
	queue := must("POST", "/register", url.Values{"event_types": {`["message"]`}}, "queue_id")
	draft := must("POST", "/drafts", url.Values{"drafts": {`[{"type":"","to":[],"topic":"","content":"d"}]`}},
		"ids").([]any)[0]
	snippet := must("POST", "/saved_snippets", url.Values{"title": {"t"}, "content": {"c"}}, "saved_snippet_id")
	upload := b.startUpload(ann)
	later := fmt.Sprint(time.Now().Unix() + 86400)
	scheduled := must("POST", "/scheduled_messages",
		url.Values{"type": {"stream"}, "to": {fmt.Sprint(channel)}, "topic": {"t"}, "content": {"c"},
			"scheduled_delivery_timestamp": {later}}, "scheduled_message_id")
	b.valid = map[string]any{"stream_id": channel, "message_id": message, "queue_id": queue, "last_event_id": -1,
		"dont_block": true, "draft_id": draft, "saved_snippet_id": snippet,
		"scheduled_message_id": scheduled, "user_id": 9, "user_id_or_email": 9, "bot_id": 12, "muted_user_id": 9,
		"user_group_id": 1, "anchor": "newest", "num_before": 1, "num_after": 1,
		"to": "general", "type": "stream", "topic": "t", "content": "c", "emoji_name": "tada",
		"subscriptions": []any{map[string]any{"name": "general"}}, "email": "cy@example.org",
		"scheduled_delivery_timestamp": time.Now().Unix() + 86400, "timezone": "UTC", "night": true,
		"realm_id_str": "1", "filename": "a/b",
		"upload": upload, "Upload-Offset": 0, "Upload-Length": 100, "Upload-Metadata": "filename YQ=="}
}

// startUpload begins a resumable upload of 100 kB and returns its name.
func (b *requestTester) startUpload(who credential) string {
	r, err := http.NewRequest("POST", b.at+"/api/v1/tus", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Tus-Resumable", "1.0.0")
	r.Header.Set("Upload-Length", "100000")
	r.SetBasicAuth(who.email, who.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		b.Fatalf("begin an upload: %s", resp.Status)
	}
	return path.Base(resp.Header.Get("Location"))
}

// notCalled are endpoints that would end the test.
var notCalled = []string{"POST /realm/deactivate", "DELETE /users/me", "POST /users/me/api_key/regenerate"}

// partialErrors are errors after a partial change, as the protocol defines them: the other invitations were sent, and
// the owner of a bot is told that it wrote to a channel that does not exist.
var partialErrors = []string{"INVITATION_FAILED", "STREAM_DOES_NOT_EXIST"}

// TestRefusalsChangeNothing sends every parameter of every endpoint with every kind of wrong value. No request fails
// with an internal error, each answer is in the API description, and a refused request changes no row and writes no
// fact.
func TestRefusalsChangeNothing(t *testing.T) {
	b := newRequestTester(t)
	for _, e := range wire.Endpoints() {
		name := e.Method + " " + e.Path
		if slices.Contains(notCalled, name) {
			t.Logf("not called: %s", name)
			continue
		}
		params := e.Params()
		b.try(b.nextCaller(), name, &e, params, "", "")
		for _, p := range params {
			for _, bad := range wrongValues(p) {
				// Callers without permission are refused before the value is looked at, so the owner sends it too.
				b.try(b.nextCaller(), name, &e, params, p.Name, bad)
				b.try(b.owner(), name, &e, params, p.Name, bad)
			}
		}
		b.unchanged(name)
	}
	if b.refusals < 5000 {
		t.Errorf("only %d refusals", b.refusals)
	}
	t.Logf("%d requests, %d refused, %d carried out", b.requests, b.refusals, b.successes)
}

// nextCaller returns the next caller, in turn.
func (b *requestTester) nextCaller() credential {
	b.next++
	return b.people[b.next%len(b.people)]
}

func (b *requestTester) owner() credential {
	return b.people[slices.IndexFunc(b.people, func(c credential) bool { return c.name == "olive" })]
}

// try sends a request in which one parameter has the value with and the others are valid.
func (b *requestTester) try(who credential, name string, e *wire.Endpoint, params []form.Param, spoilt, with string) {
	b.Helper()
	path, values, headers := e.Path, url.Values{}, http.Header{}
	for _, p := range params {
		text := with
		if p.Name != spoilt {
			if !p.Required && b.valid[p.Name] == nil {
				continue
			}
			text = textOf(b.value(p), p.JSON)
		}
		if p.Where == "path" {
			path = strings.NewReplacer("{"+p.Name+"}", url.PathEscape(text), "{"+p.Name+":*}",
				url.PathEscape(text)).Replace(path)
		} else if p.Where == "header" {
			headers.Set(p.Name, strings.Map(func(r rune) rune { // characters that a header can contain
				if r < ' ' || r == 0x7f {
					return '?'
				}
				return r
			}, text))
		} else {
			values.Set(p.Name, text)
		}
	}
	if name == "GET /events" {
		values.Set("dont_block", "true")
	}
	before := b.currentSeq()
	if e.Resumable() {
		headers.Set("Content-Type", wire.PieceType)
		who = b.people[0] // the owner of the upload
	}
	status, body := b.send(who, e.Method, path, values, headers,
		e.Method == "POST" && strings.HasPrefix(name, "POST /user_uploads"))
	b.requests++
	what := fmt.Sprintf("%s as %s with %s=%.60q", name, who.name, spoilt, with)
	if status < 400 {
		if with == truncatedID && strings.Contains(e.Path, "{"+spoilt+"}") &&
			slices.ContainsFunc(params,
				func(p form.Param) bool { return p.Name == spoilt && p.Schema["type"] == "integer" }) {
			b.Errorf("%s: %d", what, status)
		}
		b.successes++
		return
	}
	b.refusals++
	var refusal struct{ Code, Msg string }
	if e.Method == "HEAD" { // it has no body, but its status must be in the description
		refusal.Code = "BAD_REQUEST"
	} else if err := json.Unmarshal(body, &refusal); err != nil || refusal.Msg == "" {
		b.Errorf("%s: %d %.200s", what, status, body)
	}
	if status == 500 || e.ErrorShape(status, refusal.Code) == nil {
		b.Errorf("%s: %d %.200s is not an answer of the API description", what, status, body)
	}
	after := b.currentSeq()
	// A job of an earlier request may have written a fact in between. A refusal that writes does so every time.
	for tries := 0; after != before && tries < 3; tries++ {
		before = after
		b.send(who, e.Method, path, values, headers,
			e.Method == "POST" && strings.HasPrefix(name, "POST /user_uploads"))
		after = b.currentSeq()
	}
	if after != before && !slices.Contains(partialErrors, refusal.Code) {
		b.Errorf("%s: refused with %s, but the journal went from fact %d to %d", what, refusal.Msg, before, after)
	}
}

func (b *requestTester) send(who credential, method, path string, values url.Values, headers http.Header,
	attach bool) (int, []byte) {
	b.Helper()
	target, kind, body := b.at+"/api/v1"+path, "application/x-www-form-urlencoded", values.Encode()
	switch {
	case method == "GET":
		target, body = target+"?"+body, ""
	case headers.Get("Content-Type") == wire.PieceType:
		body = "x"
	case attach:
		var buffer bytes.Buffer
		w := multipart.NewWriter(&buffer)
		w.CreateFormFile("file", "empty")
		w.Close()
		kind, body = w.FormDataContentType(), buffer.String()
	}
	r, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	maps.Copy(r.Header, headers)
	if who.name != "nobody" {
		r.SetBasicAuth(who.email, who.key)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	if err != nil {
		b.Fatalf("%s %s: %v", method, path, err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		b.Fatal(err)
	}
	return a.StatusCode, text
}

// FuzzRequests sends any value in any parameter of any endpoint to the whole server.
func FuzzRequests(f *testing.F) {
	var endpoints []wire.Endpoint
	for _, e := range wire.Endpoints() {
		if !slices.Contains(notCalled, e.Method+" "+e.Path) && len(e.Params()) > 0 {
			endpoints = append(endpoints, e)
		}
	}
	for i, e := range endpoints {
		for j, p := range e.Params() {
			f.Add(uint16(i), uint8(j), textOf(sampleOf(p.Schema), p.JSON))
		}
	}
	b := newRequestTester(f)
	f.Fuzz(func(t *testing.T, endpoint uint16, param uint8, value string) {
		e := endpoints[int(endpoint)%len(endpoints)]
		params := e.Params()
		one := *b
		one.TB = t
		one.currentSeq()
		one.try(one.nextCaller(), e.Method+" "+e.Path, &e, params, params[int(param)%len(params)].Name, value)
		one.unchanged(e.Path)
		one.TB = b.TB
		*b = one
	})
}

// value returns a valid value of a parameter, or at least one of its type.
func (b *requestTester) value(p form.Param) any {
	if v, ok := b.valid[p.Name]; ok {
		return v
	}
	return sampleOf(p.Schema)
}

func sampleOf(schema map[string]any) any {
	if list, ok := schema["enum"].([]string); ok && len(list) > 0 {
		return list[0]
	}
	if list, ok := schema["enum"].([]int64); ok && len(list) > 0 {
		return list[0]
	}
	switch schema["type"] {
	case "integer":
		return 1
	case "boolean":
		return true
	case "array":
		if items, ok := schema["items"].(map[string]any); ok {
			return []any{sampleOf(items)}
		}
		return []any{}
	case "object":
		o := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]string)
		for _, name := range required {
			if s, ok := properties[name].(map[string]any); ok {
				o[name] = sampleOf(s)
			}
		}
		return o
	}
	return "x"
}

func textOf(v any, isJSON bool) string {
	if s, ok := v.(string); ok && !isJSON {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// truncatedID becomes the id of an existing object if it is truncated to 32 bits.
const truncatedID = "4294967297"

// wrongValues returns wrong values of a parameter: of another type, out of range, an id that does not exist, invalid
// JSON.
func wrongValues(p form.Param) []string {
	out := []string{"", "x", "null", "-1", "0", "999999", "99999999999999999999", "1.5", "true", "{", "[]", "[[]]",
		"{}", `"x"`, `["x"]`, `[999999]`, `{"a":{"b":[1]}}`, `{"new":999999}`,
		// and values that are 1 if they are truncated
		"9007199254740993", "9223372036854775807", "-9223372036854775808", "[4294967297]", "18446744073709551617",
		truncatedID, "\x00", "x\x00x", "\xff\xfe", "é\u202e\U0001F600", strings.Repeat("[", 300),
		strings.Repeat("1", 400), strings.Repeat("x", 20000)}
	if limit, ok := p.Schema["maxLength"].(int); ok {
		out = append(out, strings.Repeat("é", limit+1))
	}
	// One wrong element or field in an otherwise valid value.
	switch p.Schema["type"] {
	case "array":
		if items, ok := p.Schema["items"].(map[string]any); ok && items["type"] == "object" {
			out = append(out, spoiltObjects(items, true)...)
		}
	case "object":
		out = append(out, spoiltObjects(p.Schema, false)...)
	}
	return out
}

// spoiltObjects returns objects in which one field after the other is wrong.
func spoiltObjects(schema map[string]any, listed bool) (out []string) {
	properties, _ := schema["properties"].(map[string]any)
	for name := range properties {
		for _, bad := range []any{nil, "x", -1, 999999, []any{"x"}, map[string]any{"a": 1},
			strings.Repeat("x", 20000)} {
			o, _ := sampleOf(schema).(map[string]any)
			o[name] = bad
			v := any(o)
			if listed {
				v = []any{o}
			}
			out = append(out, textOf(v, true))
		}
	}
	slices.Sort(out)
	return out
}
