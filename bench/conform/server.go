package conform

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/bench/swarm"
)

const (
	// maxAnswer bounds an answer of the server, in bytes.
	maxAnswer = 32 << 20
	// answerLimit is the time within which the server must answer a request that does not wait for events.
	answerLimit = 20 * time.Second
	// eventLimit is the time within which an event must arrive.
	eventLimit = 20 * time.Second
	// maxText bounds the part of an answer that a deviation quotes, in bytes.
	maxText = 300
	// maxRetries bounds the repetitions of a rate limited request.
	maxRetries = 10
)

// A User is an account for the checks.
type User struct {
	Email, Key string
	ID         int64
}

// A Target is a server to check.
type Target struct {
	URL   string // http://ADDRESS or https://ADDRESS
	Host  string // Host header
	TLS   *tls.Config
	Level int    // feature level
	Users []User // three ordinary users that can send messages to each other
}

// An Outcome is the result of one check.
type Outcome struct {
	Name      string `json:"name"`
	Statement string `json:"statement"` // of the documentation, in our words
	Page      string `json:"page"`      // of the API documentation
	Deviation string `json:"deviation,omitempty"`
	Skipped   string `json:"skipped,omitempty"` // why it was not checked
}

// A check tests one statement of the documentation.
type check struct {
	name, statement, page string
	since                 int // first feature level for which the statement holds
	run                   func(*session) error
}

// errSkip means that a check cannot be made on this server.
var errSkip = errors.New("")

func skip(format string, args ...any) error {
	return fmt.Errorf("%w%s", errSkip, fmt.Sprintf(format, args...))
}

// Run makes all checks, one after the other, and returns their outcomes. It calls done after each. A server that cannot
// be reached fails each check.
func Run(t Target, done func(Outcome)) []Outcome {
	s := &session{target: t, client: &http.Client{Transport: &http.Transport{TLSClientConfig: t.TLS,
		MaxResponseHeaderBytes: 64 << 10}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	defer s.client.CloseIdleConnections()
	var all []Outcome
	for _, c := range checks() {
		o := Outcome{Name: c.name, Statement: c.statement, Page: "https://zulip.com/api/" + c.page}
		if t.Level < c.since {
			o.Skipped = fmt.Sprintf("the server announces feature level %d, and this holds from %d on", t.Level,
				c.since)
		} else if err := c.run(s); errors.Is(err, errSkip) {
			o.Skipped = err.Error()
		} else if err != nil {
			o.Deviation = err.Error()
		}
		done(o)
		all = append(all, o)
	}
	return all
}

// A session holds the connection that the checks share.
type session struct {
	target Target
	client *http.Client
}

// An answer is the answer to one request.
type answer struct {
	status int
	header http.Header
	body   []byte
	fields map[string]json.RawMessage // nil if the body is no JSON object
}

func (a *answer) text(key string) string {
	var s string
	json.Unmarshal(a.fields[key], &s)
	return s
}

func (a *answer) number(key string) int64 {
	var n int64
	json.Unmarshal(a.fields[key], &n)
	return n
}

func (a *answer) String() string {
	return fmt.Sprintf("status %d: %.*s", a.status, maxText, a.body)
}

// form are the values of a request.
type form = swarm.Form

// do sends a request as the user with this index, or without credentials for -1. It waits and repeats the request while
// the server limits its rate.
func (s *session) do(user int, method, path string, f form) (*answer, error) {
	var auth *User
	if user >= 0 {
		auth = &s.target.Users[user]
	}
	for try := 0; ; try++ {
		a, err := s.once(auth, method, path, f)
		if err != nil || a.status != 429 || try == maxRetries {
			return a, err
		}
		wait, err := time.ParseDuration(a.header.Get("Retry-After") + "s")
		if err != nil || wait <= 0 || wait > time.Minute {
			wait = time.Second
		}
		time.Sleep(wait)
	}
}

func (s *session) once(auth *User, method, path string, f form) (*answer, error) {
	limit := answerLimit
	if path == "events" {
		limit = eventLimit
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	u := s.target.URL + "/api/v1/" + path
	var body io.Reader
	if q := f.Encode(); method == "GET" || method == "DELETE" && path == "events" {
		u += "?" + q
	} else {
		body = strings.NewReader(q)
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, err
	}
	req.Host = s.target.Host
	req.Header.Set("User-Agent", "ParleyConform/1")
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if auth != nil {
		req.SetBasicAuth(auth.Email, auth.Key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s /%s: %w", method, path, err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("%s /%s: %w", method, path, err)
	}
	if len(a.body) > maxAnswer {
		return nil, fmt.Errorf("%s /%s: the answer is longer than %d bytes", method, path, maxAnswer)
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	if d.Decode(&a.fields) != nil {
		a.fields = nil
	}
	return a, nil
}

// succeed sends a request and requires the form of a successful answer.
func (s *session) succeed(user int, method, path string, f form) (*answer, error) {
	a, err := s.do(user, method, path, f)
	if err != nil {
		return nil, err
	}
	if a.status != 200 || a.text("result") != "success" || string(a.fields["msg"]) != `""` {
		return nil, fmt.Errorf(`%s /%s: want status 200 with "result":"success","msg":"", got %s`, method, path, a)
	}
	return a, nil
}

// refuse sends a request and requires an error with this status and one of these codes. Without codes, any non-empty
// code is right.
func (s *session) refuse(user int, method, path string, f form, status int, codes ...string) (*answer, error) {
	a, err := s.do(user, method, path, f)
	if err != nil {
		return nil, err
	}
	code := a.text("code")
	right := len(codes) == 0 && code != ""
	for _, c := range codes {
		right = right || c == code
	}
	if a.status != status || a.text("result") != "error" || a.text("msg") == "" || !right {
		want := "a code"
		if len(codes) > 0 {
			want = "code " + strings.Join(codes, " or ")
		}
		return nil, fmt.Errorf(`%s /%s: want status %d with "result":"error", a msg and %s, got %s`, method, path,
			status,
			want, a)
	}
	return a, nil
}

// A queue is an event queue of one user.
type queue struct {
	s    *session
	user int
	id   string
	last int64
}

// register opens an event queue.
func (s *session) register(user int, types ...string) (*queue, error) {
	a, err := s.succeed(user, "POST", "register", form{"event_types": types, "apply_markdown": false,
		"client_gravatar": true})
	if err != nil {
		return nil, err
	}
	q := &queue{s: s, user: user, id: a.text("queue_id"), last: a.number("last_event_id")}
	if q.id == "" || a.fields["last_event_id"] == nil {
		return nil, fmt.Errorf("POST /register: no queue_id or last_event_id in %s", a)
	}
	return q, nil
}

func (q *queue) close() { q.s.do(q.user, "DELETE", "events", form{"queue_id": q.id}) }

type event = map[string]json.RawMessage

// poll returns the events after q.last without acknowledging them.
func (q *queue) poll(block bool) ([]event, error) {
	f := form{"queue_id": q.id, "last_event_id": q.last}
	if !block {
		f["dont_block"] = true
	}
	a, err := q.s.succeed(q.user, "GET", "events", f)
	if err != nil {
		return nil, err
	}
	var events []event
	if err := json.Unmarshal(a.fields["events"], &events); err != nil {
		return nil, fmt.Errorf("GET /events: the events are no list of objects: %s", a)
	}
	before := q.last
	for _, e := range events {
		id := number(e["id"])
		if e["id"] == nil || id <= before || text(e["type"]) == "" {
			return nil, fmt.Errorf("GET /events after %d: an event without type, or whose id does not ascend: %s",
				q.last, a)
		}
		before = id
	}
	return events, nil
}

// await polls until an event matches and returns it. It acknowledges the events before it and the event itself.
func (q *queue) await(what string, match func(event) bool) (event, error) {
	for end := time.Now().Add(eventLimit); time.Now().Before(end); {
		events, err := q.poll(true)
		if err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", what, err)
		}
		for _, e := range events {
			q.last = number(e["id"])
			if match(e) {
				return e, nil
			}
		}
	}
	return nil, fmt.Errorf("no %s within %v", what, eventLimit)
}

func number(b json.RawMessage) int64 {
	var n int64
	json.Unmarshal(b, &n)
	return n
}

func text(b json.RawMessage) string {
	var s string
	json.Unmarshal(b, &s)
	return s
}

// A shape names the required members of an object and their types: string, int, bool, list, object, or null variants
// such as "string?".
type shape map[string]string

// fits returns an error for the first member that is missing or has another type.
func (w shape) fits(what string, o map[string]json.RawMessage) error {
	for name, want := range w {
		b, ok := o[name]
		if !ok {
			return fmt.Errorf("%s has no member %q", what, name)
		}
		kind := kindOf(b)
		if kind != strings.TrimSuffix(want, "?") && (kind != "null" || !strings.HasSuffix(want, "?")) {
			return fmt.Errorf("%s: member %q must be of type %s, but is %.*s", what, name, want, maxText, b)
		}
	}
	return nil
}

func kindOf(b json.RawMessage) string {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return "missing"
	}
	switch b[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "list"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(b, ".eE") {
		return "float"
	}
	return "int"
}

// objects decodes a list of objects.
func objects(b json.RawMessage) (list []map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("want a list of objects, got %.*s", maxText, b)
	}
	return list, nil
}
