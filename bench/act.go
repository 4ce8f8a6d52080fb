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

// filler brings a message to the length of an ordinary one, so that its event weighs about a kilobyte.
const filler = "the quick brown fox jumps over the lazy dog and then sits down to write another line of chat"

// act makes one request of the given kind. then is called when it is answered; it may be nil.
func (r *run) act(kind int, to int, intended time.Duration, then func()) {
	switch kind {
	case kindSend:
		r.actSend(to, intended, then, nil)
	case kindPresence:
		who := r.somebody()
		p := &r.pop.people[who]
		c := r.call("POST", "users/me/presence", p, params{"status": "active", "new_user_input": true,
			"ping_only": false, "last_update_id": p.presence})
		r.issue(kind, c, intended, then, func(a *swarm.Answer) {
			swarm.Fields(a.Body, func(k, v []byte) {
				if string(k) == "presence_last_update_id" {
					p.presence, _ = swarm.Int(v)
				}
			})
		})
	case kindPing:
		// In turn: everybody once, before anybody twice.
		r.pings++
		p := &r.pop.people[r.pings%len(r.pop.people)]
		r.issue(kind, r.call("POST", "users/me/presence", p,
			params{"status": "active", "new_user_input": true, "ping_only": true}), intended, then, nil)
	case kindRead, kindFlag:
		s, who := r.recent()
		if s == nil {
			r.act(kindMessages, to, intended, then)
			return
		}
		flag := "read"
		if kind == kindFlag {
			flag = "starred"
		}
		r.issue(kind, r.call("POST", "messages/flags", &r.pop.people[who],
			params{"messages": []int64{s.message}, "op": "add", "flag": flag}), intended, then, nil)
	case kindReact:
		s, who := r.recent()
		if s == nil {
			r.act(kindMessages, to, intended, then)
			return
		}
		c := r.call("POST", fmt.Sprintf("messages/%d/reactions", s.message), &r.pop.people[who],
			params{"emoji_name": reactions[r.rng.IntN(len(reactions))]})
		r.issue(kind, c, intended, then, nil)
	case kindEdit:
		s, _ := r.recent()
		if s == nil {
			r.act(kindMessages, to, intended, then)
			return
		}
		r.issue(kind, r.call("PATCH", fmt.Sprintf("messages/%d", s.message), &r.pop.people[s.sender],
			params{"content": "edited " + filler}), intended, then, nil)
	case kindTyping:
		a := r.somebody()
		b := r.somebody()
		for r.pop.people[a].realm != r.pop.people[b].realm {
			b = r.somebody()
		}
		r.issue(kind, r.call("POST", "typing", &r.pop.people[a],
			params{"op": "start", "type": "direct", "to": []int64{r.pop.people[b].ID}}), intended, then, nil)
	case kindMessages:
		r.actMessages(intended, then)
	case kindRegister:
		who := &r.pop.people[r.somebody()]
		c := r.call("POST", "register", who, params{"apply_markdown": true, "client_gravatar": false,
			"slim_presence": true, "idle_queue_timeout": 60, "client_capabilities": capabilities})
		// As real clients do; undoing the compression is the client's own cost and not paid here.
		c.Gzip, c.Discard = true, true
		r.issue(kind, c, intended, then, nil)
	case kindOther:
		r.actCrowd(intended, then)
	}
}

var reactions = []string{"+1", "heart", "tada", "smile", "octopus"}

// somebody is any person, seeded.
func (r *run) somebody() int { return r.rng.IntN(len(r.pop.people)) }

// recent is an acknowledged send of late and somebody who may see it.
func (r *run) recent() (*send, int32) {
	n := len(r.led.sends)
	for try := 0; try < 8 && n > 0; try++ {
		s := &r.led.sends[n-1-r.rng.IntN(min(n, 200))]
		if s.state != sendAcked {
			continue
		}
		if c := r.byAudience[s.audience]; c != nil && len(c.Members) > 0 {
			return s, c.Members[r.rng.IntN(len(c.Members))]
		}
	}
	return nil, 0
}

// actSend sends a message to a channel (by index; -1: any). seen is called when all who should have seen it.
func (r *run) actSend(to int, intended time.Duration, then, seen func()) {
	if to < 0 {
		to = r.rng.IntN(len(r.pop.channels))
	}
	ch := &r.pop.channels[to]
	who := ch.Members[r.rng.IntN(len(ch.Members))]
	no, text := r.led.send(who, ch.audience, intended, filler, seen)
	c := r.call("POST", "messages", &r.pop.people[who], nil)
	// Written by hand: at 15,000 sends a second the general encoder is a third of the generator's work.
	c.Body = "type=channel&to=" + strconv.FormatInt(ch.ID, 10) + "&topic=topic+" + strconv.Itoa(no%7) + "&content=" +
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
		// Of a 5xx nothing is known: it may have been stored.
		r.led.answered(no, a.Status, id, a.Err != nil || a.Status >= 500)
		r.count(m, kindSend, c, a)
		if then != nil {
			then()
		}
	}
	r.pool.Do(c)
}

func (r *run) actMessages(intended time.Duration, then func()) {
	ch := &r.pop.channels[r.rng.IntN(len(r.pop.channels))]
	who := &r.pop.people[ch.Members[r.rng.IntN(len(ch.Members))]]
	p := params{"num_before": 50, "num_after": 0, "anchor": "newest",
		"narrow": []any{map[string]any{"operator": "channel", "operand": ch.ID}}}
	if r.newest > r.oldest && r.rng.IntN(4) > 0 {
		p["anchor"] = strconv.FormatInt(r.oldest+r.rng.Int64N(r.newest-r.oldest), 10)
		p["num_after"] = 50
	}
	r.issue(kindMessages, r.call("GET", "messages", who, p), intended, then, nil)
}

// issue sends a call and counts its answer in the phase it was issued in.
func (r *run) issue(kind int, c *swarm.Call, intended time.Duration, then func(), ok func(*swarm.Answer)) {
	c.Kind, c.Intended = kind, intended
	m := r.meter
	c.Done = func(c *swarm.Call, a *swarm.Answer) {
		r.count(m, kind, c, a)
		if ok != nil && a.Err == nil && a.Status == 200 {
			ok(a)
		}
		if then != nil {
			then()
		}
	}
	r.pool.Do(c)
}

// maxComplaints bounds the refusals that are kept word for word.
const maxComplaints = 5

func (r *run) count(m *meter, kind int, c *swarm.Call, a *swarm.Answer) {
	if a.Err != nil && (r.down || r.recovering) {
		// Nobody answers while the server lies dead on purpose; that is not its error rate.
		r.lostDown++
		return
	}
	m.answered(kind, a.Status, a.Wire, a.At-c.Intended)
	if a.Status != 200 && len(r.complaints) < maxComplaints {
		r.complaints = append(r.complaints, problem(c, a).Error())
	}
}

// history fills channels before anything is measured.
func (r *run) history(n int) error {
	if n == 0 {
		return nil
	}
	r.say("sending a history of %d messages", n)
	rng := rand.New(rand.NewPCG(r.sc.Seed, 0x68697374))
	return r.each(n, func(i int) *swarm.Call {
		ch := &r.pop.channels[rng.IntN(len(r.pop.channels))]
		who := &r.pop.people[ch.Members[rng.IntN(len(ch.Members))]]
		c := r.call("POST", "messages", who, nil)
		c.Body = fmt.Sprintf("type=channel&to=%d&topic=topic+%d&content=%s", ch.ID, rng.IntN(50),
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
			r.say("history: %d of %d", i, n)
		}
		return nil
	})
}
