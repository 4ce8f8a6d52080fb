package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"parley/bench/swarm"
)

// sentMessage is one send of an overload run. The goroutine that sends and those that poll share it.
type sentMessage struct {
	intended atomic.Int64 // nanoseconds since the run began
	state    atomic.Int32 // a sendState
	seen     atomic.Int32 // pollers that received it
	seenAt   atomic.Int64 // when the last one of them did
}

// maxSent is the number of sends that one overload run can count: ten minutes at the highest rate seen.
const maxSent = 1 << 20

// sendTable holds all sends of one organization.
type sendTable struct {
	began time.Time
	count atomic.Int64
	all   []sentMessage
}

func newSendTable() *sendTable {
	return &sendTable{began: time.Now(), all: make([]sentMessage, maxSent)}
}

// add counts a send that was intended to be sent now.
func (t *sendTable) add() (int, error) {
	no := int(t.count.Add(1)) - 1
	if no >= maxSent {
		return 0, fmt.Errorf("more than %d sends in one run", maxSent)
	}
	t.all[no].intended.Store(int64(time.Since(t.began)))
	return no, nil
}

// latencies collects durations from several goroutines.
type latencies struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.h == nil {
		l.h = newHist()
	}
	recordLatency(l.h, d)
}

// take returns everything since the last take.
func (l *latencies) take() *hdrhistogram.Histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.h
	l.h = nil
	if h == nil {
		h = newHist()
	}
	return h
}

// sendMark precedes the number of a send in its text.
const sendMark = "ovl"

// watch polls the event queues of one organization in a goroutine of its own, and checks each message.
type watch struct {
	loop     *swarm.Loop
	measures bool // the clients belong to the other organization; see setLoopPriority
	watchers []*watcher
	sends    *sendTable
	delay    latencies // from the intended time of a send to an event
	stopping atomic.Bool
	done     chan error

	event   swarm.Event
	scratch []byte

	mu     sync.Mutex
	broken []string
}

// watcher is one event queue.
type watcher struct {
	w          *watch
	conn       swarm.Conn
	head, tail []byte // of the request, before and after the event id
	last       int64
	message    int64 // newest message id
	got        []uint64
}

// openWatch registers a queue for each of the people and begins to poll.
func openWatch(r *run, people []person, sends *sendTable, measures bool) (*watch, error) {
	w := &watch{sends: sends, measures: measures, done: make(chan error, 1)}
	from := sourceAddresses(r.server.addr, r.scenario.Sources)
	err := r.callEach(len(people), func(i int) *swarm.Call {
		return r.newCall("POST", "register", &people[i], params{"event_types": []string{"message"},
			"fetch_event_types": []string{"message"}, "apply_markdown": true, "client_gravatar": true,
			"client_capabilities": capabilities})
	}, func(i int, body []byte) error {
		var v struct {
			Queue string `json:"queue_id"`
			Last  int64  `json:"last_event_id"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		p := &people[i]
		x := &watcher{w: w, last: v.Last, conn: swarm.Conn{Remote: r.server.addr, Local: from[i%len(from)]},
			head: []byte("GET /api/v1/events?queue_id=" + v.Queue + "&last_event_id="),
			tail: []byte(" HTTP/1.1\r\nHost: " + p.Host + "\r\nUser-Agent: " + agent + "\r\nAuthorization: " + p.auth +
				"\r\n\r\n")}
		w.watchers = append(w.watchers, x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

func (w *watch) run() {
	loop, err := swarm.Open()
	if err != nil {
		w.done <- err
		return
	}
	defer loop.Close()
	defer setLoopPriority(w.measures)()
	w.loop = loop
	for i, x := range w.watchers {
		x.conn.Loop = loop
		loop.At(time.Duration(i/1000)*50*time.Millisecond, x.poll)
	}
	w.done <- loop.Run(w.stopping.Load)
}

func (w *watch) stop() error {
	w.stopping.Store(true)
	return <-w.done
}

func (w *watch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (x *watcher) poll() {
	b := append(x.w.scratch[:0], x.head...)
	b = strconv.AppendInt(b, x.last, 10)
	x.w.scratch = append(b, x.tail...)
	x.conn.Send(x.w.scratch, x, pollLimit, false)
}

// Answer counts the messages of an answer and polls again at once.
func (x *watcher) Answer(_ *swarm.Conn, a *swarm.Answer) {
	w := x.w
	if w.stopping.Load() {
		return
	}
	if wait := rateLimitWait(a); wait > 0 {
		w.loop.At(w.loop.Now()+wait, x.poll)
		return
	}
	if a.Err != nil || a.Status != 200 {
		w.fault("a poll got status %d: %v %.200s", a.Status, a.Err, a.Body)
		w.loop.At(w.loop.Now()+maxRetryDelay, x.poll)
		return
	}
	now := time.Since(w.sends.began)
	err := swarm.ScanEvents(a.Body, &w.event, func(e *swarm.Event) bool {
		x.last = e.ID
		if e.Message != 0 {
			x.receive(e, now)
		}
		return true
	})
	if err != nil {
		w.fault("an answer to a poll: %v", err)
	}
	x.poll()
}

// receive counts one message.
func (x *watcher) receive(e *swarm.Event, now time.Duration) {
	no, ok := markedNumber(e.Content)
	if !ok || no >= int(x.w.sends.count.Load()) {
		return
	}
	s := &x.w.sends.all[no]
	for len(x.got) <= no>>6 {
		x.got = append(x.got, make([]uint64, 64)...)
	}
	if bit := uint64(1) << (no & 63); x.got[no>>6]&bit != 0 || e.Message <= x.message {
		x.w.fault("send %d, message %d, came twice or after message %d", no, e.Message, x.message)
	} else {
		x.got[no>>6] |= bit
	}
	x.message = e.Message
	x.w.delay.add(now - time.Duration(s.intended.Load()))
	if int(s.seen.Add(1)) == len(x.w.watchers) {
		s.seenAt.Store(int64(now))
	}
}

// markedPart is the part of a message, in bytes, that has the mark. Searching all of a large message would take the
// time of the clients that are measured.
const markedPart = 64

// markedNumber returns the number of a send in the text of its message.
func markedNumber(content []byte) (int, bool) {
	_, rest, ok := bytes.Cut(content[:min(len(content), markedPart)], []byte(sendMark))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte("x"))
	n, err := strconv.Atoi(string(digits))
	return n, ok && err == nil
}

// load sends messages of one organization to one channel, in a goroutine of its own. A user has one send under way at a
// time, as clients have: one that is due while the user's last one waits for its answer is left out.
type load struct {
	loop     *swarm.Loop
	pool     *swarm.Pool
	people   []person
	busy     []bool
	channel  int64
	sends    *sendTable
	measures bool      // as in watch
	answer   latencies // of acknowledged sends

	offered, leftOut, acked, refused, failed atomic.Int64
	wrong                                    atomic.Pointer[string] // an answer that should not be
	next                                     int
	repeats                                  int // sends that will be repeated
}

// openLoad prepares a load with connections of its own.
func openLoad(r *run, people []person, channel int64, sends *sendTable) *load {
	return &load{people: people, busy: make([]bool, len(people)), channel: channel, sends: sends}
}

// openLoop sends rate messages a second, at even distances.
func (l *load) openLoop(r *run, rate float64, length time.Duration) error {
	return l.run(r, func(end time.Duration) {
		at := l.loop.Now()
		gap := time.Duration(float64(time.Second) / rate)
		l.loop.Every(time.Millisecond, func() bool {
			for now := l.loop.Now(); at <= now && now < end; at += gap {
				l.sendNext(nil)
			}
			return l.loop.Now() < end
		})
	}, length)
}

// closedLoop keeps so many sends under way.
func (l *load) closedLoop(r *run, senders int, length time.Duration) error {
	return l.run(r, func(end time.Duration) {
		var again func()
		again = func() {
			if l.loop.Now() < end {
				l.sendNext(again)
			}
		}
		for range senders {
			again()
		}
	}, length)
}

// run starts a load and waits until each of its sends is answered.
func (l *load) run(r *run, start func(end time.Duration), length time.Duration) (err error) {
	if l.loop, err = swarm.Open(); err != nil {
		return err
	}
	defer l.loop.Close()
	defer setLoopPriority(l.measures)()
	l.pool = swarm.NewPool(l.loop, r.server.addr, sourceAddresses(r.server.addr, r.scenario.Sources), len(l.people),
		agent)
	end := l.loop.Now() + length
	start(end)
	return l.loop.Run(func() bool { return l.loop.Now() >= end && l.pool.Pending() == 0 && l.repeats == 0 })
}

// sendNext sends a message of the next user that has none under way. then may be nil.
func (l *load) sendNext(then func()) {
	l.offered.Add(1)
	user := -1
	for range l.people {
		l.next = (l.next + 1) % len(l.people)
		if !l.busy[l.next] {
			user = l.next
			break
		}
	}
	if user < 0 {
		l.leftOut.Add(1)
		return
	}
	no, err := l.sends.add()
	if err != nil {
		l.recordFailure(err.Error())
		return
	}
	l.busy[user] = true
	p := &l.people[user]
	c := &swarm.Call{Method: "POST", Path: "/api/v1/messages", Host: p.Host, Auth: p.auth}
	text := sendMark + strconv.Itoa(no) + "x " + filler
	c.Body = "type=channel&to=" + strconv.FormatInt(l.channel, 10) + "&topic=topic+" + strconv.Itoa(rand.IntN(7)) +
		"&content=" + strings.ReplaceAll(text, " ", "+")
	c.Done = func(c *swarm.Call, a *swarm.Answer) {
		if wait := rateLimitWait(a); wait > 0 {
			l.repeats++
			l.loop.At(l.loop.Now()+wait, func() { l.repeats--; l.pool.Do(c) })
			return
		}
		l.busy[user] = false
		l.count(&l.sends.all[no], c, a)
		if then != nil {
			then()
		}
	}
	l.pool.Do(c)
}

// count records the answer to a send.
func (l *load) count(s *sentMessage, c *swarm.Call, a *swarm.Answer) {
	switch {
	case a.Err == nil && a.Status == 200:
		s.state.Store(int32(sendAcked))
		l.acked.Add(1)
		l.answer.add(a.At - c.Intended)
	case a.Err == nil && a.Status == 503:
		s.state.Store(int32(sendRefused))
		l.refused.Add(1)
		if !bytes.Contains(a.Head, []byte("Retry-After: ")) || !bytes.Contains(a.Body, []byte(overloadCode)) {
			l.recordFailure(fmt.Sprintf("a refusal without Retry-After and code %s: %s", overloadCode, a.Body))
		}
	default:
		s.state.Store(int32(sendUnknown))
		l.failed.Add(1)
		l.recordFailure(answerError(c, a).Error())
	}
}

// rateLimitWait returns how long a client must wait before it repeats a request, or 0 if the answer is not that of a
// rate limit. Clients repeat such requests, so the wait counts as part of their latency.
func rateLimitWait(a *swarm.Answer) time.Duration {
	if a.Err != nil || a.Status != 429 {
		return 0
	}
	var v struct {
		Wait float64 `json:"retry-after"`
	}
	if json.Unmarshal(a.Body, &v) != nil || v.Wait <= 0 {
		return maxRetryDelay
	}
	return seconds(v.Wait)
}

func (l *load) recordFailure(s string) { l.wrong.CompareAndSwap(nil, &s) }

// overloadCode is the code of a refusal because of overload.
const overloadCode = `"code":"SERVER_OVERLOADED"`

// everythingSeen reports whether all pollers have all acknowledged sends.
func (w *watch) everythingSeen() bool {
	for no := range int(w.sends.count.Load()) {
		s := &w.sends.all[no]
		if sendState(s.state.Load()) == sendAcked && int(s.seen.Load()) < len(w.watchers) {
			return false
		}
	}
	return true
}

// check returns the violated guarantees: an acknowledged send that a poller did not get, a refused one that one got.
func (w *watch) check() []string {
	w.mu.Lock()
	out := w.broken
	w.mu.Unlock()
	for no := range int(w.sends.count.Load()) {
		s := &w.sends.all[no]
		seen := int(s.seen.Load())
		switch state := sendState(s.state.Load()); {
		case state == sendAcked && seen != len(w.watchers):
			out = append(out, fmt.Sprintf("send %d was acknowledged, and %d of %d pollers got it", no, seen,
				len(w.watchers)))
		case state == sendRefused && seen != 0:
			out = append(out, fmt.Sprintf("send %d was refused, and %d pollers got it", no, seen))
		}
	}
	return out
}
