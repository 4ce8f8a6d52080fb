package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"parley/bench/mirror"
	"parley/bench/swarm"
)

const (
	// pollLimit is when every known client gives a long poll up.
	pollLimit = 90 * time.Second
	// A poller that lost its connection comes back after a random part of firstBack, doubling up to lastBack: well
	// behaved clients do the same, some slower.
	firstBack = 100 * time.Millisecond
	lastBack  = time.Second
	// longBack is how long a request may take that a client makes while everybody comes back.
	longBack = time.Second
)

// A poller is one event queue and the connection that polls it, without a pause between answer and next poll.
type poller struct {
	r      *run
	conn   swarm.Conn
	who    int32
	queue  string
	head   []byte // the request up to the number of the last event
	tail   []byte // and after it
	last   int64
	heard  *listener
	mirror *mirror.Mirror
	told   int64 // newest event it knows
	back   time.Duration
	away   bool // it lost the server and has had no answer since
	asked  time.Duration
	dead   bool // its queue is gone
}

// openPollers registers queues, people in turn, and starts to poll.
func (r *run) openPollers() error {
	n := r.sc.Pollers
	if n == 0 {
		return nil
	}
	r.say("registering %d queues", n)
	from := sources(r.srv.addr, r.sc.Sources)
	r.pollers = make([]*poller, n)
	for i := range r.pollers {
		p := &poller{r: r, who: int32(i % len(r.pop.people)), last: -1}
		p.conn = swarm.Conn{Loop: r.loop, Remote: r.srv.addr}
		if len(from) > 0 {
			p.conn.Local = from[i%len(from)]
		}
		p.heard = r.led.listen(p.who)
		r.pollers[i] = p
	}
	begin := r.loop.Now()
	sampleEvery := 0
	if r.sc.Sample > 0 {
		sampleEvery = max(1, n/r.sc.Sample)
	}
	err := r.each(n, func(i int) *swarm.Call {
		p := r.pollers[i]
		if sampleEvery > 0 && i%sampleEvery == 0 && i/sampleEvery < r.sc.Sample && i < len(r.pop.people) {
			p.mirror = mirror.New(mirrorKind)
			return r.call("POST", "register", &r.pop.people[p.who], mirrorRegister())
		}
		events := r.sc.Events
		if len(events) == 0 {
			events = defaultEvents
		}
		if r.opt.nobody {
			return r.call("POST", "register", &r.pop.people[p.who], params{"floor_channels": r.floorBits(p.who)})
		}
		return r.call("POST", "register", &r.pop.people[p.who],
			params{"event_types": events, "fetch_event_types": []string{"message"}, "apply_markdown": true,
				"client_gravatar": true, "client_capabilities": capabilities})
	}, func(i int, body []byte) error { return r.pollers[i].registered(body) })
	if err != nil {
		return err
	}
	r.registerTook = r.loop.Now() - begin
	for i, p := range r.pollers {
		// Connections are opened a thousand at a time, or the listen queue overflows and the kernel makes them wait.
		p := p
		r.loop.At(r.loop.Now()+time.Duration(i/1000)*50*time.Millisecond, p.poll)
	}
	return r.loop.RunFor(time.Duration(n/1000)*50*time.Millisecond+500*time.Millisecond, nil)
}

var defaultEvents = []string{"message", "update_message", "delete_message", "reaction", "update_message_flags",
	"typing", "presence", "subscription", "user_topic"}

// capabilities are those of today's mobile app.
var capabilities = map[string]bool{"notification_settings_null": true, "bulk_message_deletion": true,
	"user_avatar_url_field_optional": true, "stream_typing_notifications": true, "user_settings_object": true,
	"include_deactivated_groups": true, "empty_topic_name": true}

func (p *poller) registered(body []byte) error {
	var v struct {
		Queue string `json:"queue_id"`
		Last  *int64 `json:"last_event_id"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	if v.Queue == "" || v.Last == nil {
		return fmt.Errorf("register gave no queue_id or last_event_id")
	}
	p.queue, p.last = v.Queue, *v.Last
	who := &p.r.pop.people[p.who]
	p.head = []byte("GET /api/v1/events?queue_id=" + v.Queue + "&last_event_id=")
	p.tail = []byte(" HTTP/1.1\r\nHost: " + who.Host + "\r\nUser-Agent: " + agent + "\r\nAuthorization: " + who.auth +
		"\r\n\r\n")
	if p.mirror != nil {
		p.told = *v.Last
		return p.mirror.Start(body)
	}
	return nil
}

func (p *poller) poll() {
	if p.dead || p.r.over || p.conn.Waiting() {
		return
	}
	b := append(p.r.scratch[:0], p.head...)
	b = strconv.AppendInt(b, p.last, 10)
	b = append(b, p.tail...)
	p.r.scratch = b
	p.asked = p.r.loop.Now()
	p.conn.Send(b, p, pollLimit, false)
}

// Answer reads events and polls again at once.
func (p *poller) Answer(_ *swarm.Conn, a *swarm.Answer) {
	r := p.r
	if r.over {
		return
	}
	if a.Err != nil {
		p.lost(a)
		return
	}
	r.meter.answered(kindPoll, a.Status, a.Wire, -1)
	if a.Status != 200 {
		p.refused(a)
		return
	}
	p.back = 0
	if p.away {
		p.away = false
		r.away--
		r.lastBack = a.At
		took := a.At - p.asked
		if r.longestBack = max(r.longestBack, took); took > longBack {
			r.longBacks++
		}
		if r.firstBack == 0 && (r.down || r.recovering) {
			r.firstBack = a.At
		}
	}
	messages := 0
	n := 0
	err := swarm.ScanEvents(a.Body, &r.event, func(e *swarm.Event) bool {
		n++
		if e.ID <= p.last {
			r.led.breach("event id", "poller %d got event %d after it had acknowledged %d", p.heard.no, e.ID, p.last)
		}
		p.last = e.ID
		switch {
		case e.Message != 0 && string(e.Type) == "message":
			messages++
			if intended, ours := r.led.saw(p.heard, e.Message, e.Content); ours {
				r.meter.saw(a.At - intended)
			}
		case string(e.Type) == "heartbeat":
			r.meter.heartbeats++
		}
		return true
	})
	if err != nil {
		r.led.breach("bad answer", "poller %d: %v: %.200s", p.heard.no, err, a.Body)
	}
	if messages > 0 {
		r.meter.eventBytes += int64(a.Wire)
	}
	if p.mirror != nil {
		if p.told, err = p.mirror.Events(a.Body, p.told); err != nil {
			r.led.breach("mirror", "poller %d: %v", p.heard.no, err)
		}
	}
	if n == 0 {
		// Nothing to tell and yet answered: ask again, but not as fast as the machine can.
		r.empty++
		r.loop.At(r.loop.Now()+10*time.Millisecond, p.poll)
		return
	}
	p.poll()
}

// lost: no answer came. Where nobody killed the server that counts against it.
func (p *poller) lost(a *swarm.Answer) {
	r := p.r
	if a.Err == swarm.ErrTimeout {
		r.led.breach("silent poll", "poller %d had no answer for %v, no heartbeat either", p.heard.no, pollLimit)
	}
	if !p.away {
		p.away = true
		r.away++
		if !r.down && !r.recovering {
			r.meter.answered(kindPoll, 0, 0, -1)
		}
	}
	p.later()
}

func (p *poller) later() {
	if p.back == 0 {
		p.back = firstBack
	} else if p.back *= 2; p.back > lastBack {
		p.back = lastBack
	}
	p.r.loop.At(p.r.loop.Now()+p.back/2+time.Duration(rand.Int64N(int64(p.back))), p.poll)
}

func (p *poller) refused(a *swarm.Answer) {
	var v struct {
		Code string `json:"code"`
		Msg  string `json:"msg"`
	}
	json.Unmarshal(a.Body, &v)
	if p.away {
		p.away = false // it was answered, though not well
		p.r.away--
	}
	if len(p.r.complaints) < maxComplaints {
		p.r.complaints = append(p.r.complaints, fmt.Sprintf("GET /api/v1/events: status %d: %.200s", a.Status, a.Body))
	}
	if v.Code == "BAD_EVENT_QUEUE_ID" {
		p.dead = true
		p.r.led.breach("queue lost", "poller %d (person %d): %s; its last event was %d", p.heard.no, p.who, v.Msg,
			p.last)
		return
	}
	if a.Status >= 400 && a.Status < 500 && a.Status != 429 {
		p.dead = true
		p.r.led.breach("poll refused", "poller %d: status %d %s %s (last_event_id %d)", p.heard.no, a.Status, v.Code,
			v.Msg, p.last)
		return
	}
	p.later()
}
