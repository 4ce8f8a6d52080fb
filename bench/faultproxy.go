package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A faultProxy is a reverse proxy in front of a server of the protocol. It passes everything on, except that it damages
// one message event, or one send, in each group of oneIn. It shows whether a load test finds such faults.
type faultProxy struct {
	proxy *httputil.ReverseProxy
	next  http.RoundTripper
	to    *url.URL
	host  string // Host header of the server
	delay time.Duration
	oneIn int
	logTo io.Writer

	mu     sync.Mutex
	rng    *rand.Rand
	kinds  []string
	events int // message events so far
	later  int // events about messages so far
	sends  int
	target int // number of the event, or send, in its group that is damaged
	turn   int // of the kinds
	newest int64
	lost   map[string]bool    // queues that the proxy took from their clients
	seen   map[string][]int64 // the newest message ids that each queue received
	leaks  []leakedEvent      // events that wait for a queue they are not meant for; at most maxFaults
	all    []injectedFault
}

// An injectedFault is one fault of a proxy.
type injectedFault struct {
	Kind    string    `json:"kind"`
	Message int64     `json:"message,omitempty"`
	Queue   string    `json:"queue,omitempty"`
	At      time.Time `json:"at"`
}

type leakedEvent struct {
	kind    string // of the fault
	event   map[string]json.RawMessage
	message int64
	user    string // authorization of the user who received it
	due     time.Time
}

// faultKinds are the faults that a faultProxy can make, with the violations that show each.
var faultKinds = map[string][]string{
	"drop":     {"loss"},
	"double":   {"duplicate", "event id"},
	"reorder":  {"reorder"},
	"delay":    {"late"},
	"truncate": {"truncated"},
	"cut":      {"bad answer"},
	"leak":     {"leak"},
	leakLater:  {"leak"},
	"queue":    {"queue lost"},
	"unstored": {"not stored"},
}

// leakLater leaks an event about a message, such as a reaction, instead of the message.
const leakLater = "leak-later"

// ownGroups are the kinds that damage something else than a message event.
var ownGroups = []string{"unstored", leakLater}

// perDelivery is about the number of message events of a run for each send, reaction and edit.
const perDelivery = 20

const (
	// maxFaultBody bounds a body that the proxy reads as a whole, in bytes: that of a client or of an events answer.
	maxFaultBody = 64 << 20
	// maxFaults bounds the faults that a proxy remembers.
	maxFaults = 10_000
	// seenPerQueue is the number of message ids that the proxy remembers for each queue, so that it leaks an event only
	// to a queue that did not receive it.
	seenPerQueue = 256
	// maxFaultQueues bounds the queues that the proxy remembers.
	maxFaultQueues = 50_000
	// leakAfter is the time in which the audience of an event receives it. After that, a queue that has not received
	// the
	// event is not in the audience.
	leakAfter = 1500 * time.Millisecond
	// leakAnyway is the time after which an event leaks to any queue of another user.
	leakAnyway = 4 * time.Second
	// reorderWait is how long the proxy waits for a second message event to swap the first one with.
	reorderWait = 20 * time.Second
)

// newFaultProxy returns a proxy for a server.
func newFaultProxy(s *server, kinds []string, oneIn int, delay time.Duration, seed uint64,
	logTo io.Writer) *faultProxy {
	t := &http.Transport{TLSClientConfig: s.tls, DisableCompression: true, MaxIdleConnsPerHost: 20_000,
		MaxResponseHeaderBytes: 64 << 10}
	scheme, _, _ := strings.Cut(s.scheme(), ":")
	f := &faultProxy{next: t, to: &url.URL{Scheme: scheme, Host: s.addr.String()}, delay: delay, oneIn: oneIn,
		host: s.host, logTo: logTo, kinds: kinds, rng: rand.New(rand.NewPCG(seed, 0x6661756c)), lost: map[string]bool{},
		seen: map[string][]int64{}}
	f.target = f.rng.IntN(oneIn)
	// A client that ends its poll is not worth a line in a log: other failures of the server are answers with status
	// 502.
	quiet := log.New(io.Discard, "", 0)
	f.proxy = &httputil.ReverseProxy{Transport: t, ErrorLog: quiet, ModifyResponse: f.damageAnswer,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(f.to)
			p.Out.Host = f.hostFor(p.In.Host)
			p.Out.Header.Del("Accept-Encoding")
		}}
	return f
}

// hostFor returns the Host header for the server: that of the client if it names an organization, or that of the server
// if the client only knows the address of the proxy.
func (f *faultProxy) hostFor(client string) string {
	name := client
	if h, _, err := net.SplitHostPort(client); err == nil {
		name = h
	}
	if name == "localhost" || net.ParseIP(name) != nil {
		return f.host
	}
	return client
}

func isEvents(r *http.Request) bool {
	return r.Method == "GET" && (r.URL.Path == "/api/v1/events" || r.URL.Path == "/json/events")
}

func (f *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFaultBody)
	if isEvents(r) && f.losesQueue(r.URL.Query().Get("queue_id")) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"result":"error","msg":"Bad event queue ID: %s","code":"BAD_EVENT_QUEUE_ID","queue_id":%q}`,
			r.URL.Query().Get("queue_id"), r.URL.Query().Get("queue_id"))
		return
	}
	if r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/messages") && f.losesSend() {
		io.Copy(io.Discard, r.Body)
		f.mu.Lock()
		f.newest++
		id := f.newest
		f.record("unstored", id, "")
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"result":"success","msg":"","id":%d}`, id)
		return
	}
	f.proxy.ServeHTTP(w, r)
}

// record remembers a fault. The caller holds the lock.
func (f *faultProxy) record(kind string, message int64, queue string) {
	x := injectedFault{kind, message, queue, time.Now().UTC()}
	if len(f.all) < maxFaults {
		f.all = append(f.all, x)
	}
	if f.logTo != nil {
		b, _ := json.Marshal(x)
		fmt.Fprintf(f.logTo, "%s\n", b)
	}
}

func (f *faultProxy) faults() []injectedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

// losesQueue reports whether the proxy took a queue from its client.
func (f *faultProxy) losesQueue(queue string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost[queue]
}

// losesSend reports whether a send is acknowledged without being passed on. Each group of oneIn sends has one.
func (f *faultProxy) losesSend() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.kinds, "unstored") || f.newest == 0 {
		return false
	}
	f.sends++
	return f.sends%f.oneIn == f.target%f.oneIn
}

// nextKind returns the fault of the next message event, or "" for none. The caller holds the lock.
func (f *faultProxy) nextKind() string {
	n := f.events % f.oneIn
	f.events++
	hit := n == f.target
	if n == f.oneIn-1 {
		f.target = f.rng.IntN(f.oneIn)
	}
	if !hit {
		return ""
	}
	for range f.kinds {
		f.turn++
		if k := f.kinds[f.turn%len(f.kinds)]; !slices.Contains(ownGroups, k) {
			return k
		}
	}
	return ""
}

type rawEvent = map[string]json.RawMessage

func rawInt(b json.RawMessage) int64 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}

// messageOf returns the id of the message of an event, or 0.
func messageOf(e rawEvent) int64 {
	if string(e["type"]) != `"message"` {
		return 0
	}
	var m struct {
		ID int64 `json:"id"`
	}
	json.Unmarshal(e["message"], &m)
	return m.ID
}

// damageAnswer damages an events answer, or learns the newest message id from the answer to a send.
func (f *faultProxy) damageAnswer(resp *http.Response) error {
	r := resp.Request
	send := r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/messages")
	if !isEvents(r) && !send || resp.StatusCode != 200 {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxFaultBody+1))
	resp.Body.Close()
	if err != nil {
		return err
	}
	if len(b) > maxFaultBody {
		return fmt.Errorf("the answer is longer than %d bytes", maxFaultBody)
	}
	if send {
		var v struct {
			ID int64 `json:"id"`
		}
		if json.Unmarshal(b, &v) == nil {
			f.mu.Lock()
			f.newest = max(f.newest, v.ID)
			f.mu.Unlock()
		}
	} else {
		b = f.damageEvents(r, resp, b)
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	resp.ContentLength = int64(len(b))
	resp.TransferEncoding = nil
	resp.Header.Set("Content-Length", strconv.Itoa(len(b)))
	return nil
}

// damageEvents returns the answer that the client receives instead of b.
func (f *faultProxy) damageEvents(r *http.Request, resp *http.Response, b []byte) []byte {
	var answer map[string]json.RawMessage
	var events []rawEvent
	if json.Unmarshal(b, &answer) != nil || json.Unmarshal(answer["events"], &events) != nil || len(events) == 0 {
		return b
	}
	queue := r.URL.Query().Get("queue_id")
	user := r.Header.Get("Authorization") + r.Header.Get("Cookie")
	kind, at := "", 0
	f.mu.Lock()
	f.leakLater(events, user)
	for i, e := range events {
		if id := messageOf(e); id != 0 {
			f.remember(queue, id)
			f.newest = max(f.newest, id)
			if kind == "" {
				kind, at = f.nextKind(), i
			}
		}
	}
	events, leaked := f.leakInto(events, queue, user)
	if leaked {
		kind = ""
	}
	f.mu.Unlock()
	if kind == "" && !leaked {
		return b
	}
	cut := false
	if kind == "reorder" {
		var ok bool
		if events, ok = f.reorder(r, events, at); !ok {
			kind = ""
		}
	}
	if kind == "delay" {
		select {
		case <-time.After(f.delay):
		case <-r.Context().Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := messageOf(events[at])
	switch kind {
	case "drop":
		events[at] = rawEvent{"type": json.RawMessage(`"heartbeat"`), "id": events[at]["id"]}
	case "double":
		events = slices.Insert(events, at, events[at])
	case "truncate":
		events[at] = truncateText(events[at])
	case "cut":
		cut = true
	case "leak":
		f.leaks = append(f.leaks, leakedEvent{kind, events[at], id, user, time.Now().Add(leakAfter)})
	case "queue":
		f.lost[queue] = true
		resp.StatusCode, resp.Status = 400, "400 Bad Request"
		f.record(kind, id, queue)
		return fmt.Appendf(nil, `{"result":"error","msg":"Bad event queue ID: %s","code":"BAD_EVENT_QUEUE_ID"}`, queue)
	}
	if kind != "" && kind != "leak" { // a leak is recorded when another queue receives it
		f.record(kind, id, queue)
	}
	answer["events"], _ = json.Marshal(events)
	out, err := json.Marshal(answer)
	if err != nil {
		return b
	}
	if cut {
		part, _ := json.Marshal(events[:at+1])
		end := bytes.Index(out, part[:len(part)-1])
		out = out[:max(end, 0)+len(part)*3/4]
	}
	return out
}

// leakLater takes some of the events about messages to leak them. The caller holds the lock.
func (f *faultProxy) leakLater(events []rawEvent, user string) {
	if !slices.Contains(f.kinds, leakLater) {
		return
	}
	for _, e := range events {
		if id := rawInt(e["message_id"]); id != 0 && messageOf(e) == 0 {
			if f.later++; f.later%max(1, f.oneIn/perDelivery) == 0 && len(f.leaks) < maxFaults {
				f.leaks = append(f.leaks, leakedEvent{leakLater, e, id, user, time.Now().Add(leakAfter)})
			}
		}
	}
}

// remember stores that a queue received a message. The caller holds the lock.
func (f *faultProxy) remember(queue string, message int64) {
	if len(f.seen) >= maxFaultQueues {
		clear(f.seen)
	}
	ids := append(f.seen[queue], message)
	if len(ids) > seenPerQueue {
		ids = slices.Delete(ids, 0, len(ids)-seenPerQueue)
	}
	f.seen[queue] = ids
}

// leakInto adds a leaked event to an answer if the queue belongs to another user that has not received it. The caller
// holds the lock.
func (f *faultProxy) leakInto(events []rawEvent, queue, user string) ([]rawEvent, bool) {
	now := time.Now()
	for i, x := range f.leaks {
		if x.user == user || now.Before(x.due) ||
			slices.Contains(f.seen[queue], x.message) && now.Before(x.due.Add(leakAnyway)) {
			continue
		}
		f.leaks = slices.Delete(f.leaks, i, i+1)
		last := len(events) - 1
		e := rawEvent{}
		for k, v := range x.event {
			e[k] = v
		}
		e["id"] = events[last]["id"]
		if messageOf(events[last]) == 0 && rawInt(events[last]["message_id"]) == 0 {
			events[last] = e // instead of an event that a load test does not miss
		} else {
			events = append(events, e)
		}
		f.record(x.kind, x.message, queue)
		return events, true
	}
	return events, false
}

// reorder swaps a message event with the next one of its queue. If the answer has no other, the proxy polls for more.
func (f *faultProxy) reorder(r *http.Request, events []rawEvent, at int) ([]rawEvent, bool) {
	next := func() int {
		return slices.IndexFunc(events[at+1:], func(e rawEvent) bool { return messageOf(e) != 0 })
	}
	for end := time.Now().Add(reorderWait); next() < 0; {
		if !time.Now().Before(end) {
			return events, false
		}
		more, err := f.poll(r, rawInt(events[len(events)-1]["id"]))
		if err != nil || len(more) == 0 {
			return events, false
		}
		events = append(events, more...)
	}
	a, b := events[at], events[at+1+next()]
	for _, k := range []string{"message", "flags", "local_message_id"} {
		a[k], b[k] = b[k], a[k]
		for _, e := range []rawEvent{a, b} {
			if e[k] == nil {
				delete(e, k)
			}
		}
	}
	return events, true
}

// poll asks the server for the events after last, as the client of r would.
func (f *faultProxy) poll(r *http.Request, last int64) ([]rawEvent, error) {
	u := *r.URL
	u.Scheme, u.Host = f.to.Scheme, f.to.Host
	q := u.Query()
	q.Set("last_event_id", strconv.FormatInt(last, 10))
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(r.Context(), "GET", u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Host = f.hostFor(r.Host)
	for _, k := range []string{"Authorization", "Cookie", "User-Agent"} {
		if v := r.Header.Get(k); v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := f.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var v struct {
		Events []rawEvent `json:"events"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxFaultBody)).Decode(&v)
	return v.Events, err
}

// truncateText returns a copy of a message event with half of its text.
func truncateText(e rawEvent) rawEvent {
	var m map[string]json.RawMessage
	var text string
	if json.Unmarshal(e["message"], &m) != nil || json.Unmarshal(m["content"], &text) != nil {
		return e
	}
	half := []rune(text)
	m["content"], _ = json.Marshal(string(half[:len(half)/2]))
	out := rawEvent{}
	for k, v := range e {
		out[k] = v
	}
	out["message"], _ = json.Marshal(m)
	return out
}
