package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"parley/bench/crowd"
	"parley/bench/swarm"
)

// A crowdRunner sends the actions of bench/crowd over HTTP, one after the other: the model must know each outcome
// before it continues, which makes every audience exact.
type crowdRunner struct {
	r                *run
	crowd            *crowd.Crowd
	messages         []crowdMessage // by message number of the crowd
	queues           [][]string     // additional queues by user
	missingEndpoints map[crowd.Kind]bool
}

type crowdMessage struct {
	id int64
	no int // of the send in the ledger
}

func (r *run) startCrowd() {
	if !r.scenario.Crowd {
		return
	}
	members := make([][]int32, len(r.population.channels))
	for i := range members {
		members[i] = r.population.channels[i].Members
	}
	r.crowd = &crowdRunner{r: r, crowd: crowd.New(r.scenario.Seed, len(r.population.people), members),
		queues: make([][]string, len(r.population.people)), missingEndpoints: map[crowd.Kind]bool{}}
}

// startCrowdAction sends the crowd's next action.
func (r *run) startCrowdAction(intended time.Duration, then func()) {
	p := r.crowd
	if p == nil {
		r.startRequest(kindPresence, -1, intended, then)
		return
	}
	if r.crowdPaused || r.serverDown || r.recovering && r.pollersAway == len(r.pollers) {
		r.loop.At(r.loop.Now()+time.Millisecond, func() { r.startCrowdAction(r.loop.Now(), then) })
		return
	}
	a := p.crowd.Next()
	c, kind := p.newCall(&a)
	c.Kind, c.Intended = kind, intended
	ledgerNo := -1
	if a.Kind == crowd.Send || a.Kind == crowd.DM {
		var readers []int32
		for _, u := range p.crowd.Readers(a) {
			readers = append(readers, int32(u))
		}
		name := fmt.Sprintf("%s by %d to %v (crowd action %d)", a.Kind, a.User, readers, a.No)
		var text string
		ledgerNo, text = r.ledger.send(int32(a.User), r.ledger.addAudience(name, readers...), intended, a.Text, nil)
		p.sendBody(c, &a, text)
	}
	m := r.meter
	c.Done = func(c *swarm.Call, ans *swarm.Answer) {
		m.recordAnswer(kind, ans.Status, ans.Wire, ans.At-intended)
		ok := ans.Err == nil && ans.Status == 200
		if ok && a.Kind == crowd.Subscribe {
			ok = subscribed(ans.Body)
		}
		p.handleOutcome(&a, ans, ok, ledgerNo)
		if then != nil {
			// Read the next events first, so that the following action is based on them.
			r.loop.At(r.loop.Now(), then)
		}
	}
	r.pool.Do(c)
}

func subscribed(body []byte) bool {
	var v struct {
		Subscribed map[string][]string `json:"subscribed"`
	}
	return json.Unmarshal(body, &v) == nil && len(v.Subscribed) > 0
}

func (p *crowdRunner) handleOutcome(a *crowd.Action, ans *swarm.Answer, ok bool, ledgerNo int) {
	r := p.r
	if ans.Err != nil {
		r.ledger.addViolation("crowd", "%s had no answer: %v (seed %d)", a, ans.Err, r.scenario.Seed)
	} else if ans.Status >= 500 {
		r.ledger.addViolation("crowd", "%s: status %d: %.200s (seed %d)", a, ans.Status, ans.Body, r.scenario.Seed)
	} else if ans.Status == 404 || ans.Status == 405 {
		// Reported once for each kind: a missing endpoint is missing every time.
		if !p.missingEndpoints[a.Kind] {
			p.missingEndpoints[a.Kind] = true
			r.ledger.addViolation("no such endpoint: "+string(a.Kind), "%s: status %d: %.200s", a, ans.Status, ans.Body)
		}
	} else if why := a.Violation(ok); why != "" {
		r.ledger.addViolation("crowd", "%s: status %d: %.200s (seed %d)", why, ans.Status, ans.Body, r.scenario.Seed)
	}
	var id int64
	queue := ""
	if ok {
		swarm.Fields(ans.Body, func(k, v []byte) {
			switch string(k) {
			case "id":
				id, _ = swarm.Int(v)
			case "queue_id":
				queue = swarm.Text(v)
			}
		})
	}
	if ledgerNo >= 0 {
		r.ledger.recordAnswer(ledgerNo, ans.Status, id, ans.Err != nil || ans.Status >= 500)
		if ok {
			p.messages = append(p.messages, crowdMessage{id, ledgerNo})
		}
	}
	switch {
	case ok && a.Kind == crowd.Register:
		p.queues[a.User] = append(p.queues[a.User], queue)
	case ok && a.Kind == crowd.DropQueue:
		p.queues[a.User] = p.queues[a.User][:len(p.queues[a.User])-1]
	}
	p.crowd.Done(*a, ok)
}

func (p *crowdRunner) sendBody(c *swarm.Call, a *crowd.Action, text string) {
	if a.Kind == crowd.Send {
		c.Body = params{"type": "channel", "to": p.r.population.channels[a.Channel].ID, "topic": a.Topic,
			"content": text}.Encode()
		return
	}
	to := []int64{}
	for _, u := range a.Others {
		to = append(to, p.r.population.people[u].ID)
	}
	c.Body = params{"type": "direct", "to": to, "content": text}.Encode()
}

var subscriptionProperties = []string{"is_muted", "pin_to_top", "desktop_notifications", "color"}

// newCall maps an action to a request and its kind. An edit or deletion of a message that some pollers have not seen
// yet becomes a presence report: a message that changes before its delivery need not be delivered as it was.
func (p *crowdRunner) newCall(a *crowd.Action) (*swarm.Call, int) {
	r := p.r
	user := &r.population.people[a.User]
	var message string
	switch a.Kind {
	case crowd.Edit, crowd.Move, crowd.Delete, crowd.React, crowd.Unreact, crowd.Flag, crowd.Unflag:
		m := p.messages[a.Message]
		if s := &r.ledger.sends[m.no]; s.seen < s.due && (a.Kind == crowd.Delete || a.Kind == crowd.Edit) {
			*a = crowd.Action{No: a.No, Kind: crowd.Presence, User: a.User, Expect: crowd.MustSucceed}
			break
		}
		message = "messages/" + strconv.FormatInt(m.id, 10)
	}
	channel := func() *channel { return &r.population.channels[a.Channel] }
	switch a.Kind {
	case crowd.Send, crowd.DM:
		return r.newCall("POST", "messages", user, nil), kindSend
	case crowd.Edit:
		return r.newCall("PATCH", message, user, params{"content": a.Text}), kindEdit
	case crowd.Move:
		return r.newCall("PATCH", message, user, params{"topic": a.Topic, "send_notification_to_new_thread": false}),
			kindEdit
	case crowd.Delete:
		return r.newCall("DELETE", message, user, nil), kindOther
	case crowd.React:
		return r.newCall("POST", message+"/reactions", user, params{"emoji_name": a.Emoji}), kindReact
	case crowd.Unreact:
		return r.newCall("DELETE", message+"/reactions", user, params{"emoji_name": a.Emoji}), kindReact
	case crowd.Flag, crowd.Unflag:
		op := "add"
		if a.Kind == crowd.Unflag {
			op = "remove"
		}
		return r.newCall("POST", "messages/flags", user,
			params{"messages": []int64{p.messages[a.Message].id}, "op": op, "flag": a.Flag}), kindFlag
	case crowd.Subscribe:
		return r.newCall("POST", "users/me/subscriptions", user,
			params{"subscriptions": []map[string]string{{"name": channel().Name}}}), kindOther
	case crowd.Unsubscribe:
		return r.newCall("DELETE", "users/me/subscriptions", user, params{"subscriptions": []string{channel().Name}}),
			kindOther
	case crowd.Property:
		var v any = a.No%2 == 0
		if subscriptionProperties[a.Number] == "color" {
			v = fmt.Sprintf("#%06x", a.No*7919&0xffffff)
		}
		return r.newCall("POST", "users/me/subscriptions/properties", user,
			params{"subscription_data": []map[string]any{{"stream_id": channel().ID,
				"property": subscriptionProperties[a.Number],
				"value":    v}}}), kindOther
	case crowd.Policy:
		return r.newCall("POST", "user_topics", user, params{"stream_id": channel().ID, "topic": a.Topic,
			"visibility_policy": a.Number}), kindOther
	case crowd.Rename:
		return r.newCall("PATCH", "settings", user, params{"full_name": a.Text}), kindOther
	case crowd.Typing:
		return r.newCall("POST", "typing", user, params{"op": "start", "type": "direct",
			"to": []int64{r.population.people[a.Others[0]].ID}}), kindTyping
	case crowd.Register:
		return r.newCall("POST", "register", user, params{"event_types": []string{"message"},
			"fetch_event_types": []string{"message"}}), kindRegister
	case crowd.DropQueue:
		q := p.queues[a.User]
		return r.newCall("DELETE", "events", user, params{"queue_id": q[len(q)-1]}), kindOther
	case crowd.Read:
		return r.newCall("GET", "messages", user, params{"anchor": "newest", "num_before": 20, "num_after": 0,
			"narrow": []any{map[string]any{"operator": "channel", "operand": channel().ID}}}), kindMessages
	}
	return r.newCall("POST", "users/me/presence", user, params{"status": "active", "ping_only": true,
		"new_user_input": true}), kindPresence
}
