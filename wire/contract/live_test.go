package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests named TestLive… start the binary that PARLEY_LIVE names and talk to it; `make conform` runs them.

const (
	// startWait bounds the start of a demo organization, which takes well under a second.
	startWait = 20 * time.Second
	// eventWait bounds the way of an event to its queue; it takes milliseconds.
	eventWait = 10 * time.Second
)

// A world is a running server, some of its people, and what has been learnt of both.
type liveTest struct {
	*testing.T
	contract  *Contract
	base      string
	client    *http.Client
	users     map[string]*liveUser
	mu        sync.Mutex
	report    Report
	record    io.Writer
	refused   []string
	skipped   []string // calls that wanted something an earlier call should have made
	missingID bool     // since the last call, num was asked for what is not known
	// vars fills the {names} of paths.
	saved map[string]string
}

type liveUser struct {
	email, key string
	id         int
	role       int
}

func newLiveTest(t *testing.T) *liveTest {
	t.Helper()
	binary := os.Getenv("PARLEY_LIVE")
	if binary == "" {
		t.Skip("PARLEY_LIVE does not name a server to start; make conform sets it")
	}
	w := &liveTest{T: t, contract: load(t), client: &http.Client{Timeout: 30 * time.Second}, users: map[string]*liveUser{}, saved: map[string]string{}}
	w.start(binary)
	w.openRecording()
	w.logInUsers()
	return w
}

func (w *liveTest) start(binary string) {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	w.base = "http://" + address
	dir := w.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		w.Fatal(err)
	}
	server := exec.Command(binary, "serve", "--data", filepath.Join(dir, "data"), "--listen", address, "--demo")
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		w.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- server.Wait() }()
	w.Cleanup(func() {
		server.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			w.Error("the server did not stop in 10 s")
			server.Process.Kill()
			<-gone
		}
		log.Close()
		if w.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				w.Logf("server log, last lines:\n%s", text[max(0, len(text)-3000):])
			}
		}
	})
	for deadline := time.Now().Add(startWait); time.Now().Before(deadline); {
		if answer, err := w.client.Get(w.base + "/api/v1/server_settings"); err == nil {
			answer.Body.Close()
			return
		}
		select {
		case err := <-gone:
			gone <- err
			text, _ := os.ReadFile(log.Name())
			w.Fatalf("the server ended: %v\n%s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.Fatalf("the server did not answer in %v", startWait)
}

func (w *liveTest) openRecording() {
	dir := os.Getenv("PARLEY_RECORDING")
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, "crawler.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { f.Close() })
	w.record = f
}

// logInUsers logs in an owner, a member, a guest and another member, and makes a bot.
func (w *liveTest) logInUsers() {
	w.Helper()
	listed := w.call(nil, "GET", "/dev_list_users")
	var emails []string
	for _, part := range []string{"direct_admins", "direct_users"} {
		for _, u := range list(listed[part]) {
			emails = append(emails, u.(map[string]any)["email"].(string))
		}
	}
	for _, email := range emails {
		got := w.call(nil, "POST", "/dev_fetch_api_key", "username", email)
		p := &liveUser{email: text(got["email"]), key: text(got["api_key"])}
		me := w.call(p, "GET", "/users/me")
		if bot, _ := me["is_bot"].(bool); bot {
			continue
		}
		p.id, p.role = number(me["user_id"]), number(me["role"])
		name := map[int]string{100: "owner", 200: "admin", 300: "moderator", 400: "member", 600: "guest"}[p.role]
		if name == "member" && w.users["member"] != nil {
			name = "other"
		}
		if w.users[name] == nil {
			w.users[name] = p
			w.saved[name] = fmt.Sprint(p.id)
			w.saved[name+"_email"] = p.email
		}
	}
	for _, need := range []string{"owner", "member", "other", "guest"} {
		if w.users[need] == nil {
			w.Fatalf("the demo organization has no %s among %v", need, emails)
		}
	}
	w.saved["user_id"] = w.saved["member"]
}

// call makes a request as someone, checks the answer against the contract, and returns it decoded.
func (w *liveTest) call(who *liveUser, method, path string, pairs ...any) map[string]any {
	w.Helper()
	status, body := w.send(who, method, path, nil, pairs...)
	return w.checkAnswer(method, path, status, body, pairs)
}

func (w *liveTest) checkAnswer(method, path string, status int, body []byte, pairs []any) map[string]any {
	w.Helper()
	rec := Record{Method: method, Path: "/api/v1" + path, Status: status, Body: body}
	rec.Complete = method == "POST" && path == "/register" && !slices.ContainsFunc(pairs, func(p any) bool {
		return p == "event_types" || p == "fetch_event_types"
	})
	if !json.Valid(body) {
		rec.Body, _ = json.Marshal(string(body[:min(len(body), 200)]))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.contract.Check(rec, &w.report)
	if w.record != nil {
		if line, err := json.Marshal(rec); err == nil {
			w.record.Write(append(line, '\n'))
		}
	}
	v, err := decode(body)
	answer, ok := v.(map[string]any)
	if err != nil || !ok {
		answer = map[string]any{}
	}
	return answer
}

type file struct {
	name    string
	content []byte
}

func (w *liveTest) send(who *liveUser, method, path string, f *file, pairs ...any) (int, []byte) {
	w.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			form.Set(pairs[i].(string), v)
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				w.Fatal(err)
			}
			form.Set(pairs[i].(string), string(raw))
		}
	}
	target, kind := w.base+"/api/v1"+path, ""
	var body io.Reader
	switch {
	case f != nil:
		var buffer bytes.Buffer
		parts := multipart.NewWriter(&buffer)
		part, err := parts.CreateFormFile("file", f.name)
		if err != nil {
			w.Fatal(err)
		}
		part.Write(f.content)
		for name := range form {
			parts.WriteField(name, form.Get(name))
		}
		parts.Close()
		body, kind = &buffer, parts.FormDataContentType()
	case method == "GET":
		if len(form) > 0 {
			target += "?" + form.Encode()
		}
	default:
		body, kind = strings.NewReader(form.Encode()), "application/x-www-form-urlencoded"
	}
	request, err := http.NewRequest(method, target, body)
	if err != nil {
		w.Fatal(err)
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("User-Agent", "conform/1")
	if who != nil {
		request.SetBasicAuth(who.email, who.key)
	}
	answer, err := w.client.Do(request)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/json" {
		w.Errorf("%s %s: %d with Content-Type %q", method, path, answer.StatusCode, kind)
	}
	return answer.StatusCode, raw
}

// path fills {names} from what is known.
func (w *liveTest) path(template string) string {
	for name, value := range w.saved {
		template = strings.ReplaceAll(template, "{"+name+"}", url.PathEscape(value))
	}
	return template
}

// mustCall is call for what has to succeed: a route that is not there is only counted, a refusal is a failure.
func (w *liveTest) mustCall(who, method, path string, pairs ...any) map[string]any {
	w.Helper()
	if path = w.path(path); w.missingID || strings.Contains(path, "{") {
		w.missingID = false
		w.skipped = append(w.skipped, method+" "+path)
		return map[string]any{}
	}
	status, body := w.send(w.users[who], method, path, nil, pairs...)
	answer := w.checkAnswer(method, path, status, body, pairs)
	if status != http.StatusOK && !notRouted(status, body) {
		w.refused = append(w.refused, fmt.Sprintf("%s %s as %s: %d %v %v", method, path, who, status, answer["code"], answer["msg"]))
	}
	return answer
}

// mustUpload is must with a file.
func (w *liveTest) mustUpload(who, path, name string, content []byte, pairs ...any) map[string]any {
	w.Helper()
	status, body := w.send(w.users[who], "POST", path, &file{name, content}, pairs...)
	answer := w.checkAnswer("POST", path, status, body, pairs)
	if status != http.StatusOK && !notRouted(status, body) {
		w.refused = append(w.refused, fmt.Sprintf("POST %s as %s: %d %v %v", path, who, status, answer["code"], answer["msg"]))
	}
	return answer
}

// save remembers a value of an answer under a name, for later paths. It reports whether it was there.
func (w *liveTest) save(name string, v any) bool {
	switch v := v.(type) {
	case json.Number:
		w.saved[name] = v.String()
	case string:
		w.saved[name] = v
	default:
		return false
	}
	return true
}

// saveChannel remembers the ID of a channel someone is subscribed to.
func (w *liveTest) saveChannel(as, who, name string) {
	w.Helper()
	for _, s := range list(w.mustCall(who, "GET", "/users/me/subscriptions")["subscriptions"]) {
		if s := s.(map[string]any); s["name"] == name {
			w.save(as, s["stream_id"])
		}
	}
}

// savedID is a remembered value as a number.
func (w *liveTest) savedID(name string) int {
	if w.saved[name] == "" {
		w.missingID = true
	}
	return number(json.Number(w.saved[name]))
}

// reportFindings reports everything the contract and the calls found.
func (w *liveTest) reportFindings() {
	w.Helper()
	w.Logf("%d answers and %d events checked", w.report.Answers, w.report.Events)
	if missing := slices.Sorted(maps.Keys(w.report.Missing)); len(missing) > 0 {
		w.Logf("%d endpoints are not there:\n  %s", len(missing), strings.Join(missing, "\n  "))
	}
	if slices.Sort(w.skipped); len(w.skipped) > 0 {
		w.Logf("%d calls were left out, for want of what an earlier one should have made:\n  %s", len(w.skipped), strings.Join(slices.Compact(slices.Clone(w.skipped)), "\n  "))
	}
	for _, line := range w.report.Distinct() {
		w.Errorf("contract: %s", line)
	}
	for _, line := range w.refused {
		w.Errorf("refused: %s", line)
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return int(i)
}

// pixel is the smallest PNG there is: one black point.
var pixel = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}()
