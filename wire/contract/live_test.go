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
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests named TestLive… start the binary in PARLEY_LIVE and call it over HTTP. `make conform` runs them.

const (
	// startWait bounds the start of a demo organization, which takes well under a second on an idle machine.
	startWait = time.Minute
	// eventWait bounds the time until an event reaches its queue, which is milliseconds on an idle machine.
	eventWait = time.Minute
)

// serving matches the line of the log with the address, which the server writes when it accepts requests.
var serving = regexp.MustCompile(`msg=serving .*listen=(\S+)`)

// A liveTest is a running server, some of its users, and IDs from earlier answers.
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
	skipped   []string // calls that needed an ID which no earlier call returned
	missingID bool     // since the last call, savedID was asked for an unknown ID
	// saved holds values of earlier answers, for the {names} in paths.
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
	lt := &liveTest{T: t, contract: load(t), client: &http.Client{Timeout: 30 * time.Second},
		users: map[string]*liveUser{}, saved: map[string]string{}}
	lt.start(binary)
	lt.openRecording()
	lt.logInUsers()
	return lt
}

func (lt *liveTest) start(binary string) {
	lt.Helper()
	dir := lt.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		lt.Fatal(err)
	}
	server := exec.Command(binary, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0",
		"--demo", "--demo-content=false")
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		lt.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- server.Wait() }()
	lt.Cleanup(func() {
		server.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(startWait):
			lt.Errorf("the server did not stop in %v", startWait)
			server.Process.Kill()
			<-gone
		}
		log.Close()
		if lt.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				lt.Logf("server log, last lines:\n%s", text[max(0, len(text)-3000):])
			}
		}
	})
	for deadline := time.Now().Add(startWait); time.Now().Before(deadline); {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			lt.Fatal(err)
		}
		if m := serving.FindSubmatch(text); m != nil {
			lt.base = "http://" + string(m[1])
			return
		}
		select {
		case err := <-gone:
			gone <- err
			text, _ := os.ReadFile(log.Name())
			lt.Fatalf("the server exited: %v\n%s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	lt.Fatalf("the server did not answer in %v", startWait)
}

func (lt *liveTest) openRecording() {
	dir := os.Getenv("PARLEY_RECORDING")
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, "crawler.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		lt.Fatal(err)
	}
	lt.Cleanup(func() { f.Close() })
	lt.record = f
}

// logInUsers logs in an owner, a member, a guest and another member of the demo organization.
func (lt *liveTest) logInUsers() {
	lt.Helper()
	listed := lt.call(nil, "GET", "/dev_list_users")
	var emails []string
	for _, part := range []string{"direct_admins", "direct_users"} {
		for _, u := range list(listed[part]) {
			emails = append(emails, u.(map[string]any)["email"].(string))
		}
	}
	for _, email := range emails {
		got := lt.call(nil, "POST", "/dev_fetch_api_key", "username", email)
		p := &liveUser{email: text(got["email"]), key: text(got["api_key"])}
		me := lt.call(p, "GET", "/users/me")
		if bot, _ := me["is_bot"].(bool); bot {
			continue
		}
		p.id, p.role = number(me["user_id"]), number(me["role"])
		name := map[int]string{100: "owner", 200: "admin", 300: "moderator", 400: "member", 600: "guest"}[p.role]
		if name == "member" && lt.users["member"] != nil {
			name = "other"
		}
		if lt.users[name] == nil {
			lt.users[name] = p
			lt.saved[name] = fmt.Sprint(p.id)
			lt.saved[name+"_email"] = p.email
		}
	}
	for _, need := range []string{"owner", "member", "other", "guest"} {
		if lt.users[need] == nil {
			lt.Fatalf("the demo organization has no %s among %v", need, emails)
		}
	}
	lt.saved["user_id"] = lt.saved["member"]
}

// call makes a request, checks the answer against the contract, and returns it decoded. A nil who means no login.
func (lt *liveTest) call(who *liveUser, method, path string, pairs ...any) map[string]any {
	lt.Helper()
	status, body := lt.send(who, method, path, nil, pairs...)
	return lt.checkAnswer(method, path, status, body, pairs)
}

func (lt *liveTest) checkAnswer(method, path string, status int, body []byte, pairs []any) map[string]any {
	lt.Helper()
	rec := Record{Method: method, Path: "/api/v1" + path, Status: status, Body: body}
	rec.Complete = method == "POST" && path == "/register" && !slices.ContainsFunc(pairs, func(p any) bool {
		return p == "event_types" || p == "fetch_event_types"
	})
	if !json.Valid(body) {
		rec.Body, _ = json.Marshal(string(body[:min(len(body), 200)]))
	}
	lt.mu.Lock()
	defer lt.mu.Unlock()
	lt.contract.Check(rec, &lt.report)
	if lt.record != nil {
		if line, err := json.Marshal(rec); err == nil {
			lt.record.Write(append(line, '\n'))
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

func (lt *liveTest) send(who *liveUser, method, path string, f *file, pairs ...any) (int, []byte) {
	lt.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			form.Set(pairs[i].(string), v)
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				lt.Fatal(err)
			}
			form.Set(pairs[i].(string), string(raw))
		}
	}
	target, kind := lt.base+"/api/v1"+path, ""
	var body io.Reader
	switch {
	case f != nil:
		var buffer bytes.Buffer
		parts := multipart.NewWriter(&buffer)
		part, err := parts.CreateFormFile("file", f.name)
		if err != nil {
			lt.Fatal(err)
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
		lt.Fatal(err)
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("User-Agent", "conform/1")
	if who != nil {
		request.SetBasicAuth(who.email, who.key)
	}
	answer, err := lt.client.Do(request)
	if err != nil {
		lt.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		lt.Fatalf("%s %s: %v", method, path, err)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/json" {
		lt.Errorf("%s %s: %d with Content-Type %q", method, path, answer.StatusCode, kind)
	}
	return answer.StatusCode, raw
}

// path replaces the {names} in a path by saved values.
func (lt *liveTest) path(template string) string {
	for name, value := range lt.saved {
		template = strings.ReplaceAll(template, "{"+name+"}", url.PathEscape(value))
	}
	return template
}

// mustCall is call for a request that must succeed. A missing route is only counted; a refusal fails the test.
func (lt *liveTest) mustCall(who, method, path string, pairs ...any) map[string]any {
	lt.Helper()
	if path = lt.path(path); lt.missingID || strings.Contains(path, "{") {
		lt.missingID = false
		lt.skipped = append(lt.skipped, method+" "+path)
		return map[string]any{}
	}
	status, body := lt.send(lt.users[who], method, path, nil, pairs...)
	answer := lt.checkAnswer(method, path, status, body, pairs)
	if status != http.StatusOK && !notRouted(status, body) {
		lt.refused = append(lt.refused, fmt.Sprintf("%s %s as %s: %d %v %v", method, path, who, status,
			answer["code"], answer["msg"]))
	}
	return answer
}

// mustUpload is mustCall with a file.
func (lt *liveTest) mustUpload(who, path, name string, content []byte, pairs ...any) map[string]any {
	lt.Helper()
	status, body := lt.send(lt.users[who], "POST", path, &file{name, content}, pairs...)
	answer := lt.checkAnswer("POST", path, status, body, pairs)
	if status != http.StatusOK && !notRouted(status, body) {
		lt.refused = append(lt.refused, fmt.Sprintf("POST %s as %s: %d %v %v", path, who, status, answer["code"],
			answer["msg"]))
	}
	return answer
}

// save stores a value of an answer under a name, for later paths. It reports whether there was a value.
func (lt *liveTest) save(name string, v any) bool {
	switch v := v.(type) {
	case json.Number:
		lt.saved[name] = v.String()
	case string:
		lt.saved[name] = v
	default:
		return false
	}
	return true
}

// saveChannel stores the ID of a channel to which a user is subscribed.
func (lt *liveTest) saveChannel(as, who, name string) {
	lt.Helper()
	for _, s := range list(lt.mustCall(who, "GET", "/users/me/subscriptions")["subscriptions"]) {
		if s := s.(map[string]any); s["name"] == name {
			lt.save(as, s["stream_id"])
		}
	}
}

// savedID returns a saved value as a number.
func (lt *liveTest) savedID(name string) int {
	if lt.saved[name] == "" {
		lt.missingID = true
	}
	return number(json.Number(lt.saved[name]))
}

// reportFindings reports the findings of all checks, and failed calls.
func (lt *liveTest) reportFindings() {
	lt.Helper()
	lt.Logf("%d answers and %d events checked", lt.report.Answers, lt.report.Events)
	if missing := slices.Sorted(maps.Keys(lt.report.Missing)); len(missing) > 0 {
		lt.Logf("%d endpoints are missing:\n  %s", len(missing), strings.Join(missing, "\n  "))
	}
	if slices.Sort(lt.skipped); len(lt.skipped) > 0 {
		lt.Logf("%d calls were skipped because an earlier call failed to create an object:\n  %s", len(lt.skipped),
			strings.Join(slices.Compact(slices.Clone(lt.skipped)), "\n  "))
	}
	for _, line := range lt.report.Distinct() {
		lt.Errorf("contract: %s", line)
	}
	for _, line := range lt.refused {
		lt.Errorf("refused: %s", line)
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

// pixel is the smallest PNG: one black pixel.
var pixel = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}()
