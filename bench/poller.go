package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"parley/bench/mirror"
	"parley/bench/swarm"
)

const (
	// pollLimit is the time after which all known clients give up a long poll.
	pollLimit = 90 * time.Second
	// A poller that lost its connection reconnects after a random delay around minRetryDelay, which doubles up to
	// maxRetryDelay, as well-behaved clients do.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = time.Second
	// longReturn is the longest acceptable time for a poll while all clients reconnect.
	longReturn = time.Second
)

// A poller is one event queue and its connection. It polls again as soon as it has an answer.
type poller struct {
	r           *run
	conn        swarm.Conn
	person      int32
	queue       string
	requestHead []byte // the request up to the id of the last event
	requestTail []byte // the request after the id
	lastEvent   int64
	listener    *listener
	mirror      *mirror.Mirror
	mirrorEvent int64 // newest event applied to the mirror
	retryDelay  time.Duration
	away        bool // it lost its connection and has had no answer since
	pollSent    time.Duration
	queueGone   bool // the server no longer has its queue
}

// openPollers registers queues for the users in turn and starts to poll.
func (r *run) openPollers() error {
	n := r.scenario.Pollers
	if n == 0 {
		return nil
	}
	r.logf("registering %d queues", n)
	from := sourceAddresses(r.server.addr, r.scenario.Sources)
	r.pollers = make([]*poller, n)
	for i := range r.pollers {
		p := &poller{r: r, person: r.pollerOf(i), lastEvent: -1}
		p.conn = swarm.Conn{Loop: r.loop, Remote: r.server.addr, TLS: r.server.loadTLS(r.options.http2)}
		if len(from) > 0 {
			p.conn.Local = from[i%len(from)]
		}
		p.listener = r.ledger.addListener(p.person)
		r.pollers[i] = p
	}
	begin := r.loop.Now()
	sampleEvery := 0
	if r.scenario.Sample > 0 {
		sampleEvery = max(1, n/r.scenario.Sample)
	}
	err := r.callEach(n, func(i int) *swarm.Call {
		p := r.pollers[i]
		if sampleEvery > 0 && i%sampleEvery == 0 && i/sampleEvery < r.scenario.Sample && i < len(r.population.people) {
			p.mirror = mirror.New(mirrorKind)
			return r.newCall("POST", "register", &r.population.people[p.person], mirrorRegister())
		}
		events := r.scenario.Events
		if len(events) == 0 {
			events = defaultEvents
		}
		if r.options.floorTarget {
			return r.newCall("POST", "register", &r.population.people[p.person],
				params{"floor_channels": r.floorChannels(p.person)})
		}
		return r.newCall("POST", "register", &r.population.people[p.person],
			params{"event_types": events, "fetch_event_types": []string{"message"}, "apply_markdown": true,
				"client_gravatar": true, "client_capabilities": capabilities})
	}, func(i int, body []byte) error { return r.pollers[i].handleRegister(body) })
	if err != nil {
		return err
	}
	r.registerTook = r.loop.Now() - begin
	for i, p := range r.pollers {
		// Open at most a thousand connections at a time: more overflow the listen queue, and the kernel delays them.
		p := p
		r.loop.At(r.loop.Now()+time.Duration(i/1000)*50*time.Millisecond, p.poll)
	}
	return r.loop.RunFor(time.Duration(n/1000)*50*time.Millisecond+500*time.Millisecond, nil)
}

// pollerOf returns the index of the user of a poller: the users of this generator in turn.
func (r *run) pollerOf(i int) int32 {
	if r.agent != nil {
		return int32(r.agent.From + i%(r.agent.To-r.agent.From))
	}
	return int32(i % len(r.population.people))
}

var defaultEvents = []string{"message", "update_message", "delete_message", "reaction", "update_message_flags",
	"typing", "presence", "subscription", "user_topic"}

// capabilities are those of today's mobile app.
var capabilities = map[string]bool{"notification_settings_null": true, "bulk_message_deletion": true,
	"user_avatar_url_field_optional": true, "stream_typing_notifications": true, "user_settings_object": true,
	"include_deactivated_groups": true, "empty_topic_name": true}

// registered returns the queue and its newest event of an answer of POST /register.
func registered(body []byte) (queue string, last int64, err error) {
	var v struct {
		Queue string `json:"queue_id"`
		Last  *int64 `json:"last_event_id"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return "", 0, err
	}
	if v.Queue == "" || v.Last == nil {
		return "", 0, errors.New("register answered without queue_id or last_event_id")
	}
	return v.Queue, *v.Last, nil
}

// pollRequest returns the bytes of a poll before and after the number of the last event.
func pollRequest(queue string, p *person) (head, tail []byte) {
	return []byte("GET /api/v1/events?queue_id=" + queue + "&last_event_id="), []byte(" HTTP/1.1\r\nHost: " + p.Host +
		"\r\nUser-Agent: " + agent + "\r\nAuthorization: " + p.auth + "\r\n\r\n")
}

func (p *poller) handleRegister(body []byte) (err error) {
	if p.queue, p.lastEvent, err = registered(body); err != nil {
		return err
	}
	p.listener.queue = p.queue
	p.requestHead, p.requestTail = pollRequest(p.queue, &p.r.population.people[p.person])
	if p.mirror != nil {
		p.mirrorEvent = p.lastEvent
		return p.mirror.Start(body)
	}
	return nil
}

func (p *poller) poll() {
	if p.queueGone || p.r.finished || p.conn.Waiting() {
		return
	}
	b := append(p.r.scratch[:0], p.requestHead...)
	b = strconv.AppendInt(b, p.lastEvent, 10)
	b = append(b, p.requestTail...)
	p.r.scratch = b
	p.pollSent = p.r.loop.Now()
	p.conn.Send(b, p, pollLimit, false)
}

// Answer processes the events of an answer and polls again at once.
func (p *poller) Answer(_ *swarm.Conn, a *swarm.Answer) {
	r := p.r
	if r.finished {
		return
	}
	if a.Err != nil {
		p.handleLoss(a)
		return
	}
	r.meter.recordAnswer(kindPoll, a.Status, a.Wire, -1)
	if a.Status != 200 {
		p.handleRefusal(a)
		return
	}
	p.retryDelay = 0
	if p.away {
		p.away = false
		r.pollersAway--
		r.lastReturn = a.At
		took := a.At - p.pollSent
		if r.longestReturn = max(r.longestReturn, took); took > longReturn {
			r.longReturns++
		}
		if r.firstReturn == 0 && (r.serverDown || r.recovering) {
			r.firstReturn = a.At
		}
	}
	messages := 0
	n := 0
	r.ledger.now = a.At
	err := swarm.ScanEvents(a.Body, &r.event, func(e *swarm.Event) bool {
		n++
		if e.ID <= p.lastEvent {
			r.ledger.report(p.listener, e.Message, "event id", "%s got event %d (message %d) after it had "+
				"acknowledged %d",
				p.listener, e.ID, e.Message, p.lastEvent)
		}
		p.lastEvent = e.ID
		switch {
		case e.Message != 0 && string(e.Type) == "message":
			messages++
			if intended, ours := r.ledger.recordSeen(p.listener, e.Message, e.Content); ours {
				r.meter.recordSeen(a.At - intended)
			}
		case e.About != 0:
			r.ledger.recordAbout(p.listener, e.Type, e.About)
		case string(e.Type) == "heartbeat":
			r.meter.heartbeats++
		}
		return true
	})
	if err != nil {
		r.ledger.report(p.listener, 0, "bad answer", "%s, after event %d: %v: %.500q", p.listener, p.lastEvent, err,
			a.Body[max(0, len(a.Body)-500):])
	}
	if messages > 0 {
		r.meter.eventBytes += int64(a.Wire)
	}
	if p.mirror != nil {
		if p.mirrorEvent, err = p.mirror.Events(a.Body, p.mirrorEvent); err != nil {
			r.ledger.report(p.listener, 0, "mirror", "%s: %v", p.listener, err)
		}
	}
	if n == 0 {
		// An answer without events: poll again, but not in a busy loop.
		r.emptyAnswers++
		r.loop.At(r.loop.Now()+10*time.Millisecond, p.poll)
		return
	}
	p.poll()
}

// handleLoss handles a poll without an answer. It counts as an error of the server unless the harness killed the
// server.
func (p *poller) handleLoss(a *swarm.Answer) {
	r := p.r
	if a.Err == swarm.ErrTimeout {
		r.ledger.report(p.listener, 0, "silent poll", "%s had no answer for %v, not even a heartbeat", p.listener,
			pollLimit)
	}
	if !p.away {
		p.away = true
		r.pollersAway++
		if !r.serverDown && !r.recovering {
			r.meter.recordAnswer(kindPoll, 0, 0, -1)
		}
	}
	p.retryLater()
}

func (p *poller) retryLater() {
	if p.retryDelay == 0 {
		p.retryDelay = minRetryDelay
	} else if p.retryDelay *= 2; p.retryDelay > maxRetryDelay {
		p.retryDelay = maxRetryDelay
	}
	p.r.loop.At(p.r.loop.Now()+p.retryDelay/2+time.Duration(rand.Int64N(int64(p.retryDelay))), p.poll)
}

func (p *poller) handleRefusal(a *swarm.Answer) {
	var v struct {
		Code string `json:"code"`
		Msg  string `json:"msg"`
	}
	json.Unmarshal(a.Body, &v)
	if p.away {
		p.away = false // it has an answer, although an error
		p.r.pollersAway--
	}
	if len(p.r.complaints) < maxComplaints {
		p.r.complaints = append(p.r.complaints, fmt.Sprintf("GET /api/v1/events: status %d: %.200s", a.Status, a.Body))
	}
	if v.Code == "BAD_EVENT_QUEUE_ID" {
		p.queueGone = true
		p.r.ledger.report(p.listener, p.listener.last, "queue lost", "%s: %.200s; its last event was %d, its last "+
			"message %d", p.listener, v.Msg, p.lastEvent, p.listener.last)
		return
	}
	if a.Status >= 400 && a.Status < 500 && a.Status != 429 {
		p.queueGone = true
		p.r.ledger.report(p.listener, 0, "poll refused", "%s: status %d %.100s %.200s (last_event_id %d)", p.listener,
			a.Status, v.Code, v.Msg, p.lastEvent)
		return
	}
	if a.Status == 429 {
		p.r.loop.At(p.r.loop.Now()+retryAfter(a), p.poll)
		return
	}
	p.retryLater()
}
