package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxRequest bounds the body of a client's request, in bytes.
	maxRequest = 1 << 20
	// askedWait is the wait that the script asks for in an answer with status 429.
	askedWait = 2 * time.Second
	// earlyShare is the share of askedWait after which a request does not count as early: clocks and scheduling differ.
	earlyShare = 0.9
	// failures is the number of failed polls in a row with which the script tests how a client backs off.
	failures = 4
	// minBackOff is the shortest mean time between two polls of a client that backs off after failures.
	minBackOff = 200 * time.Millisecond
	// pollWait is how long the script withholds a poll that has no events before it sends a heartbeat.
	pollWait = 2 * time.Second
	// scriptEmail and scriptUser describe the only user of the script.
	scriptEmail = "conform@example.invalid"
	scriptUser  = 7
	// firstMessageID is the id of the message that exists before the script begins.
	firstMessageID = 10
	// newestAnchor is the anchor of an answer to a client that has read everything.
	newestAnchor = 1e16
)

// A Step is one behaviour of a client and its outcome.
type Step struct {
	Name      string `json:"name"`
	Statement string `json:"statement"`
	Wrong     string `json:"wrong,omitempty"`
	Seen      bool   `json:"seen"` // the client was in the situation
}

// stepNames and their statements, in the order of the script.
var stepNames = [][2]string{
	{"register", "a client registers a queue before it polls"},
	{"first poll", "the first poll names the queue and the last_event_id of the registration"},
	{"acknowledge", "a poll names the largest event id that the client has received"},
	{"heartbeat", "a heartbeat is acknowledged like any event"},
	{"old event", "an event id that was acknowledged before does not move last_event_id back"},
	{"unknown event", "an event of an unknown type is acknowledged and ignored"},
	{"empty answer", "a poll without events is repeated with the same last_event_id"},
	{"rate limit", "after status 429 no request precedes the time that Retry-After names"},
	{"server error", "a client backs off after answers with status 500"},
	{"lost connection", "a client backs off after connections that end without an answer"},
	{"lost queue", "after BAD_EVENT_QUEUE_ID a client registers again"},
	{"new queue", "after a new registration the client polls the new queue from its last_event_id"},
}

// A Script is a server for one client. It implements http.Handler.
type Script struct {
	mu       sync.Mutex
	steps    map[string]*Step
	queues   int
	queue    string
	state    int    // index into states
	sent     int64  // largest event id that the client has received; the next poll must name it
	want     string // name of the step that the next poll decides
	quiet    time.Time
	failed   int
	firstBad time.Time
	done     chan struct{}
	log      io.Writer
}

// NewScript returns a script. It writes a line for each request to log.
func NewScript(log io.Writer) *Script {
	s := &Script{steps: map[string]*Step{}, done: make(chan struct{}), log: log, sent: -1}
	for _, x := range stepNames {
		s.steps[x[0]] = &Step{Name: x[0], Statement: x[1]}
	}
	return s
}

// Done is closed when the script is over.
func (s *Script) Done() <-chan struct{} { return s.done }

// Steps returns the steps so far, in the order of the script.
func (s *Script) Steps() (list []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range stepNames {
		list = append(list, *s.steps[x[0]])
	}
	return list
}

// see records that the client reached a step, and its fault, if any. The caller holds the lock.
func (s *Script) see(name, wrong string, args ...any) {
	x := s.steps[name]
	x.Seen = true
	if wrong != "" && x.Wrong == "" {
		x.Wrong = fmt.Sprintf(wrong, args...)
	}
}

func reply(w http.ResponseWriter, status int, fields map[string]any) {
	all := map[string]any{"result": "success", "msg": ""}
	if status != 200 {
		all["result"] = "error"
	}
	for k, v := range fields {
		all[k] = v
	}
	b, _ := json.Marshal(all)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

func (s *Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/json/")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		reply(w, 413, map[string]any{"code": "BAD_REQUEST", "msg": "The request is too long."})
		return
	}
	v := r.URL.Query()
	if q, err := url.ParseQuery(string(body)); err == nil {
		for k, x := range q {
			v[k] = x
		}
	}
	fmt.Fprintf(s.log, "%s %s /%.80s queue_id=%.60s last_event_id=%.20s\n", time.Now().UTC().Format("15:04:05.000"),
		r.Method,
		path, v.Get("queue_id"), v.Get("last_event_id"))
	s.mu.Lock()
	if early := time.Until(s.quiet); !s.quiet.IsZero() && early > time.Duration(float64(askedWait)*(1-earlyShare)) {
		s.see("rate limit", "it sent %s /%s %v before the time that Retry-After names", r.Method, path,
			early.Round(time.Millisecond))
	}
	s.mu.Unlock()
	switch r.Method + " " + path {
	case "POST register":
		s.register(w)
	case "GET events":
		s.poll(w, v)
	case "GET server_settings":
		reply(w, 200, map[string]any{"zulip_version": "9.4", "zulip_feature_level": 300, "zulip_merge_base": "9.4",
			"realm_url": "http://" + r.Host, "realm_uri": "http://" + r.Host, "realm_name": "Conform", "realm_icon": "",
			"realm_description": "", "push_notifications_enabled": false, "is_incompatible": false,
			"email_auth_enabled": true, "require_email_format_usernames": true,
			"authentication_methods": map[string]bool{"password": true}, "external_authentication_methods": []any{}})
	case "POST fetch_api_key":
		reply(w, 200, map[string]any{"api_key": "aaaabbbbccccddddeeeeffffgggghhhh", "email": scriptEmail,
			"user_id": scriptUser})
	case "GET users/me":
		reply(w, 200, map[string]any{"user_id": scriptUser, "email": scriptEmail, "full_name": "Conform",
			"is_admin": false,
			"is_bot":   false, "role": 400})
	case "GET messages":
		// The terminal client ends at its start without a message.
		reply(w, 200, map[string]any{"messages": []any{firstMessage()}, "found_newest": true, "found_oldest": true,
			"found_anchor": false, "history_limited": false, "anchor": int64(newestAnchor)})
	case "POST users/me/presence":
		reply(w, 200, map[string]any{"presences": map[string]any{}, "server_timestamp": 1_700_000_000})
	case "GET users":
		reply(w, 200, map[string]any{"members": []any{}})
	case "POST messages":
		reply(w, 200, map[string]any{"id": 1000})
	default:
		reply(w, 200, nil)
	}
}

// register creates a queue. Its first event has id 0, that of a second queue 100, so that the ids show which queue a
// client means.
func (s *Script) register(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.see("register", "")
	if s.want == "lost queue" {
		s.see("lost queue", "")
		s.want = "new queue"
	} else {
		s.want = "first poll"
	}
	s.queues++
	s.queue = fmt.Sprintf("conform-queue-%d", s.queues)
	s.sent = int64(100*(s.queues-1)) - 1
	fields := initialState()
	fields["queue_id"], fields["last_event_id"] = s.queue, s.sent
	reply(w, 200, fields)
}

// initialState returns what the Python, JavaScript and terminal clients read of a registration at feature level 300,
// without the queue.
func initialState() map[string]any {
	settings := map[string]any{"twenty_four_hour_time": false, "pm_content_in_desktop_notifications": true,
		"send_private_typing_notifications": true}
	fields := map[string]any{"zulip_version": "9.4", "zulip_feature_level": 300, "max_message_id": firstMessageID,
		"event_queue_longpoll_timeout_seconds": 90, "user_settings": settings,
		"unread_msgs": map[string]any{"count": 0, "pms": []any{}, "streams": []any{}, "huddles": []any{},
			"mentions": []any{}},
		"realm_name": "Conform", "realm_message_retention_days": -1, "realm_emoji": map[string]any{},
		"user_id": scriptUser, "email": scriptEmail, "full_name": "Conform", "presences": map[string]any{},
		"realm_users": []any{map[string]any{"user_id": scriptUser, "email": scriptEmail, "full_name": "Conform",
			"is_bot": false, "is_active": true, "is_admin": false, "role": 400, "avatar_url": nil}}}
	for _, list := range []string{"realm_bots", "cross_realm_bots", "subscriptions", "unsubscribed", "never_subscribed",
		"streams", "realm_user_groups", "starred_messages", "muted_topics", "custom_profile_fields"} {
		fields[list] = []any{}
	}
	for name, value := range settings { // until feature level 439 also outside user_settings
		fields[name] = value
	}
	return fields
}

// poll plays the next part of the script.
func (s *Script) poll(w http.ResponseWriter, v url.Values) {
	s.mu.Lock()
	now := time.Now()
	last, err := strconv.ParseInt(v.Get("last_event_id"), 10, 64)
	if s.queues == 0 {
		s.see("register", "it polled before it registered")
	}
	switch {
	case s.want == "lost queue":
		s.see("lost queue", "it polled again instead of registering")
	case s.want != "" && (v.Get("queue_id") != s.queue || err != nil || last != s.sent):
		s.see(s.want, "it polled queue %q after event %q, want queue %q after event %d", v.Get("queue_id"),
			v.Get("last_event_id"), s.queue, s.sent)
	case s.want != "":
		s.see(s.want, "")
	}
	if s.want == "new queue" {
		s.want = ""
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	}
	if v.Get("dont_block") == "true" && s.state == 0 {
		s.mu.Unlock()
		reply(w, 200, map[string]any{"events": []any{}, "queue_id": s.queue})
		return
	}
	s.play(w, now)
}

// play answers a poll. The caller holds the lock, which play releases.
func (s *Script) play(w http.ResponseWriter, now time.Time) {
	send := func(want string, events ...map[string]any) {
		for _, e := range events {
			s.sent = max(s.sent, e["id"].(int64))
		}
		if events == nil {
			events = []map[string]any{} // the protocol has no null here
		}
		s.want = want
		queue := s.queue
		s.mu.Unlock()
		reply(w, 200, map[string]any{"events": events, "queue_id": queue})
	}
	s.state++
	switch s.state {
	case 1:
		send("acknowledge", messageEvent(s.sent+1, 11), messageEvent(s.sent+2, 12))
	case 2:
		send("heartbeat", map[string]any{"id": s.sent + 1, "type": "heartbeat"})
	case 3:
		send("old event", messageEvent(s.sent-1, 12))
	case 4:
		send("unknown event", map[string]any{"id": s.sent + 1, "type": "conform_future_event", "value": []int{1}})
	case 5:
		send("empty answer")
	case 6:
		s.quiet, s.want = now.Add(askedWait), "rate limit"
		s.mu.Unlock()
		w.Header().Set("Retry-After", strconv.Itoa(int(askedWait.Seconds())))
		reply(w, 429, map[string]any{"code": "RATE_LIMIT_HIT", "msg": "API usage exceeded rate limit",
			"retry-after": askedWait.Seconds()})
	case 7:
		s.quiet = time.Time{}
		send("acknowledge", messageEvent(s.sent+1, 13))
	case 8, 9, 10, 11:
		s.backOff("server error", now, s.state == 8)
		s.mu.Unlock()
		reply(w, 500, map[string]any{"code": "INTERNAL_SERVER_ERROR", "msg": "Internal server error"})
	case 12:
		s.backOff("server error", now, false)
		send("acknowledge", messageEvent(s.sent+1, 14))
	case 13, 14, 15, 16:
		s.backOff("lost connection", now, s.state == 13)
		s.mu.Unlock()
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
	case 17:
		s.backOff("lost connection", now, false)
		send("acknowledge", messageEvent(s.sent+1, 15))
	case 18:
		s.want = "lost queue"
		queue := s.queue
		s.mu.Unlock()
		reply(w, 400, map[string]any{"code": "BAD_EVENT_QUEUE_ID", "msg": "Bad event queue ID: " + queue,
			"queue_id": queue})
	default:
		s.state = max(s.state, 19)
		s.mu.Unlock()
		time.Sleep(pollWait)
		s.mu.Lock()
		send("", map[string]any{"id": s.sent + 1, "type": "heartbeat"})
	}
}

// backOff counts a poll in a row of failures. After the last one it compares the mean time between them. The caller
// holds the lock.
func (s *Script) backOff(step string, now time.Time, first bool) {
	s.want = ""
	if first {
		s.failed, s.firstBad = 0, now
		return
	}
	if s.failed++; s.failed < failures {
		return
	}
	least := minBackOff
	if step == "lost connection" {
		// HTTP lets a client repeat a request at once, one time, if a connection ends that it had used before.
		least /= 2
	}
	if mean := now.Sub(s.firstBad) / failures; mean < least {
		s.see(step, "it polled again after %v on average", mean.Round(time.Millisecond))
	} else {
		s.see(step, "")
	}
}

// firstMessage returns the message that exists before the script begins, as GET /messages has it.
func firstMessage() map[string]any {
	m := messageEvent(0, firstMessageID)["message"].(map[string]any)
	m["flags"] = []string{"read"}
	return m
}

// messageEvent returns the event of a direct message to the script's user.
func messageEvent(id, message int64) map[string]any {
	person := map[string]any{"id": scriptUser, "email": scriptEmail, "full_name": "Conform", "is_mirror_dummy": false}
	return map[string]any{"id": id, "type": "message", "flags": []string{}, "message": map[string]any{"id": message,
		"type": "private", "content": fmt.Sprintf("message %d", message), "sender_id": scriptUser,
		"sender_email":     scriptEmail,
		"sender_full_name": "Conform", "sender_realm_str": "", "display_recipient": []any{person}, "recipient_id": 1,
		"timestamp": 1_700_000_000 + message, "subject": "", "topic_links": []any{}, "reactions": []any{},
		"submessages": []any{}, "is_me_message": false, "client": "conform", "content_type": "text/html",
		"avatar_url": nil}}
}
