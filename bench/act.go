package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/bench/swarm"
)

var fillerBytes = []byte(filler)

// filler extends a message to an ordinary length, so that its event has about a kilobyte.
const filler = "the quick brown fox jumps over the lazy dog and then sits down to write another line of chat"

// startRequest makes one request of the given kind. then is called when it is answered; it may be nil. to is the
// index of a channel for sends, or -1.
func (r *run) startRequest(kind int, to int, intended time.Duration, then func()) {
	switch kind {
	case kindSend:
		r.startSend(to, intended, then, nil)
	case kindPresence:
		user := r.randomUser()
		p := &r.population.people[user]
		c := r.newCall("POST", "users/me/presence", p, params{"status": "active", "new_user_input": true,
			"ping_only": false, "last_update_id": p.presence})
		r.issueCall(kind, c, intended, then, func(a *swarm.Answer) {
			swarm.Fields(a.Body, func(k, v []byte) {
				if string(k) == "presence_last_update_id" {
					p.presence, _ = swarm.Int(v)
				}
			})
		})
	case kindPing:
		// In turn: each user once before any user twice.
		r.nextPinger++
		p := &r.population.people[r.nextPinger%len(r.population.people)]
		if r.agent != nil {
			p = &r.population.people[r.agent.From+r.nextPinger%(r.agent.To-r.agent.From)]
		}
		r.issueCall(kind, r.newCall("POST", "users/me/presence", p,
			params{"status": "active", "new_user_input": true, "ping_only": true}), intended, then, nil)
	case kindRead, kindFlag:
		s, user := r.recentSend()
		if s == nil {
			r.startRequest(kindMessages, to, intended, then)
			return
		}
		flag := "read"
		if kind == kindFlag {
			flag = "starred"
		}
		r.issueCall(kind, r.newCall("POST", "messages/flags", &r.population.people[user],
			params{"messages": []int64{s.message}, "op": "add", "flag": flag}), intended, then, nil)
	case kindReact:
		s, user := r.recentSend()
		if s == nil {
			r.startRequest(kindMessages, to, intended, then)
			return
		}
		c := r.newCall("POST", fmt.Sprintf("messages/%d/reactions", s.message), &r.population.people[user],
			params{"emoji_name": reactions[r.rng.IntN(len(reactions))]})
		r.issueCall(kind, c, intended, then, nil)
	case kindEdit:
		s, _ := r.recentSend()
		if s == nil {
			r.startRequest(kindMessages, to, intended, then)
			return
		}
		r.issueCall(kind, r.newCall("PATCH", fmt.Sprintf("messages/%d", s.message), &r.population.people[s.sender],
			params{"content": "edited " + filler}), intended, then, nil)
	case kindTyping:
		a := r.randomUser()
		b := r.randomUser()
		for r.population.people[a].realm != r.population.people[b].realm {
			b = r.randomUser()
		}
		r.issueCall(kind, r.newCall("POST", "typing", &r.population.people[a],
			params{"op": "start", "type": "direct", "to": []int64{r.population.people[b].ID}}), intended, then, nil)
	case kindMessages:
		r.startHistoryPage(intended, then)
	case kindRegister:
		user := &r.population.people[r.randomUser()]
		c := r.newCall("POST", "register", user, params{"apply_markdown": true, "client_gravatar": false,
			"slim_presence": true, "idle_queue_timeout": 60, "client_capabilities": capabilities})
		// Real clients ask for compression; decompressing is their own cost, so the body is discarded here.
		c.Gzip, c.Discard = true, true
		r.issueCall(kind, c, intended, then, nil)
	case kindOther:
		r.startCrowdAction(intended, then)
	}
}

var reactions = []string{"+1", "heart", "tada", "smile", "octopus"}

const (
	// freeTries is the number of draws for a user that is not rate limited.
	freeTries = 8
	// holdDelay is the time after which the next request is chosen if this one was held back, so that a closed loop
	// of rate limited users does not spin.
	holdDelay = 50 * time.Millisecond
)

// randomUser returns the index of a random user, if possible one that is not rate limited.
func (r *run) randomUser() int {
	i := r.anyUser()
	for try := 1; try < freeTries && r.population.people[i].quietUntil > r.loop.Now(); try++ {
		i = r.anyUser()
	}
	return i
}

// anyUser returns the index of a random user of this generator.
func (r *run) anyUser() int {
	if r.agent != nil {
		return r.agent.From + r.rng.IntN(r.agent.To-r.agent.From)
	}
	return r.rng.IntN(len(r.population.people))
}

// randomMember returns the index of a random member of a channel, if possible one that is not rate limited.
func (r *run) randomMember(ch *channel) int32 {
	i := ch.senders[r.rng.IntN(len(ch.senders))]
	for try := 1; try < freeTries && r.population.people[i].quietUntil > r.loop.Now(); try++ {
		i = ch.senders[r.rng.IntN(len(ch.senders))]
	}
	return i
}

// randomChannel returns the index of a random channel with a member that sends.
func (r *run) randomChannel() int { return r.sendable[r.rng.IntN(len(r.sendable))] }

// holds reports whether the server does not accept requests of a user at present. It then counts the request as held
// back and calls then later.
func (r *run) holds(user *person, then func()) bool {
	if user == nil || user.quietUntil <= r.loop.Now() {
		return false
	}
	r.meter.held++
	if then != nil {
		r.loop.At(r.loop.Now()+holdDelay, then)
	}
	return true
}

// channelWordLevel is the first feature level at which the protocol accepts "channel" as the type of a message and as
// an operator of a narrow. Older servers accept only "stream".
const channelWordLevel = 250

// channelWord returns the word of the server's feature level for a channel.
func (r *run) channelWord() string {
	if r.server.featureLevel < channelWordLevel {
		return "stream"
	}
	return "channel"
}

// recentSend returns a recently acknowledged send and the index of a user in its audience, or nil.
func (r *run) recentSend() (*send, int32) {
	n := len(r.ledger.sends)
	for try := 0; try < 8 && n > 0; try++ {
		s := &r.ledger.sends[n-1-r.rng.IntN(min(n, 200))]
		if s.state != sendAcked {
			continue
		}
		if c := r.byAudience[s.audience]; c != nil && len(c.senders) > 0 {
			r.ledger.touch(s)
			return s, c.senders[r.rng.IntN(len(c.senders))]
		}
	}
	return nil, 0
}

// startSend sends a message to a channel (by index; -1: a random one). seen is called when the whole audience has
// seen it.
func (r *run) startSend(to int, intended time.Duration, then, seen func()) {
	if to < 0 {
		to = r.randomChannel()
	}
	ch := &r.population.channels[to]
	user := r.randomMember(ch)
	if r.holds(&r.population.people[user], then) {
		if seen != nil {
			r.loop.At(r.population.people[user].quietUntil, func() { r.startSend(to, r.loop.Now(), nil, seen) })
		}
		return
	}
	no, text := r.ledger.send(user, ch.audience, intended, filler, seen)
	c := r.newCall("POST", "messages", &r.population.people[user], nil)
	// The body is built by hand: at 15,000 sends a second the general encoder takes a third of the generator's time.
	c.Body = "type=" + r.channelWord() + "&to=" + strconv.FormatInt(ch.ID, 10) + "&topic=topic+" + strconv.Itoa(no%7) +
		"&content=" +
		strings.ReplaceAll(text, " ", "+")
	c.Kind, c.Intended = kindSend, intended
	m := r.meter
	c.Done = func(c *swarm.Call, a *swarm.Answer) {
		var id int64
		if a.Status == 200 {
			swarm.Fields(a.Body, func(k, v []byte) {
				if string(k) == "id" {
					id, _ = swarm.Int(v)
				}
			})
		}
		r.ledger.now = a.At
		// After a 5xx the outcome is unknown: the message may have been stored.
		r.ledger.recordAnswer(no, a.Status, id, a.Err != nil || a.Status >= 500)
		r.countAnswer(m, kindSend, c, a)
		if then != nil {
			then()
		}
	}
	r.pool.Do(c)
}

func (r *run) startHistoryPage(intended time.Duration, then func()) {
	ch := &r.population.channels[r.randomChannel()]
	user := &r.population.people[r.randomMember(ch)]
	p := params{"num_before": 50, "num_after": 0, "anchor": "newest",
		"narrow": []any{map[string]any{"operator": r.channelWord(), "operand": ch.ID}}}
	if r.newest > r.oldest && r.rng.IntN(4) > 0 {
		p["anchor"] = strconv.FormatInt(r.oldest+r.rng.Int64N(r.newest-r.oldest), 10)
		p["num_after"] = 50
	}
	r.issueCall(kindMessages, r.newCall("GET", "messages", user, p), intended, then, nil)
}

// issueCall sends a call and counts its answer in the phase in which it was sent.
func (r *run) issueCall(kind int, c *swarm.Call, intended time.Duration, then func(), ok func(*swarm.Answer)) {
	if user, _ := c.Owner.(*person); r.holds(user, then) {
		return
	}
	c.Kind, c.Intended = kind, intended
	m := r.meter
	c.Done = func(c *swarm.Call, a *swarm.Answer) {
		r.countAnswer(m, kind, c, a)
		if ok != nil && a.Err == nil && a.Status == 200 {
			ok(a)
		}
		if then != nil {
			then()
		}
	}
	r.pool.Do(c)
}

// maxComplaints bounds the error answers that a result quotes.
const maxComplaints = 5

func (r *run) countAnswer(m *meter, kind int, c *swarm.Call, a *swarm.Answer) {
	if a.Err != nil && (r.serverDown || r.recovering) {
		// The harness killed the server, so this is not an error of the server.
		r.lostWhileDown++
		return
	}
	m.recordAnswer(kind, a.Status, a.Wire, a.At-c.Intended)
	if user, _ := c.Owner.(*person); a.Status == 429 && user != nil {
		user.quietUntil = a.At + retryAfter(a)
	}
	if a.Status != 200 && len(r.complaints) < maxComplaints {
		r.complaints = append(r.complaints, answerError(c, a).Error())
	}
}

// sendHistory sends n messages before the measurement.
func (r *run) sendHistory(n int) error {
	if n == 0 {
		return nil
	}
	r.logf("sending a history of %d messages", n)
	rng := rand.New(rand.NewPCG(r.scenario.Seed, 0x68697374))
	return r.callEach(n, func(i int) *swarm.Call {
		ch := &r.population.channels[rng.IntN(len(r.population.channels))]
		user := &r.population.people[ch.Members[rng.IntN(len(ch.Members))]]
		c := r.newCall("POST", "messages", user, nil)
		c.Body = fmt.Sprintf("type=%s&to=%d&topic=topic+%d&content=%s", r.channelWord(), ch.ID, rng.IntN(50),
			url.QueryEscape(fmt.Sprintf("history %d %s", i, filler[:20+rng.IntN(len(filler)-20)])))
		return c
	}, func(i int, body []byte) error {
		var v struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		if r.oldest == 0 || v.ID < r.oldest {
			r.oldest = v.ID
		}
		r.newest = max(r.newest, v.ID)
		if i%10000 == 0 && i > 0 {
			r.logf("history: %d of %d", i, n)
		}
		return nil
	})
}
