package bench

import (
	"errors"
	"fmt"
	"time"

	"parley/bench/mirror"
	"parley/bench/swarm"
)

// mirrorKind has the capabilities of today's mobile app.
var mirrorKind = mirror.Client{Caps: capabilities}

func mirrorRegister() params {
	return params{"apply_markdown": true, "client_gravatar": false, "slim_presence": true,
		"client_capabilities": capabilities,
		"fetch_event_types": []string{"subscription", "stream", "realm_user", "message", "update_message_flags",
			"starred_messages", "user_topic", "realm_user_groups", "muted_users", "realm"}}
}

var errNoAnswer = errors.New("no answer")

// mirrorTimeout is the longest time that events may lag behind a register: the server does some work after the
// answer, for example marking messages as read when a user leaves a channel.
const mirrorTimeout = 40 * time.Second

// compareMirrors fetches the state again and compares it with each mirror. The last events may still be under way, so
// a difference counts only if it persists until mirrorTimeout is over.
func (r *run) compareMirrors() {
	var left []*poller
	for _, p := range r.pollers {
		if p.mirror != nil && !p.queueGone {
			left = append(left, p)
		}
	}
	n := len(left)
	if n == 0 {
		return
	}
	end := r.loop.Now() + mirrorTimeout
	if r.options.drainLimit > 0 {
		end = r.loop.Now() + r.options.drainLimit
	}
	wrong := map[*poller][]mirror.Mismatch{}
	for try := 0; len(left) > 0 && (try == 0 || r.loop.Now() < end); try++ {
		r.loop.RunFor(seconds(min(0.3*float64(1+2*try), 5)), nil)
		var again []*poller
		for _, p := range left {
			if wrong[p] = r.compareMirror(p); len(wrong[p]) > 0 {
				again = append(again, p)
			}
		}
		left = again
	}
	for _, p := range left {
		for _, x := range wrong[p] {
			r.ledger.addViolation("state of "+x.Part, "poller %d (user %d): %v", p.listener.number,
				r.population.people[p.person].ID, x.Err)
		}
	}
	r.result.Notes = append(r.result.Notes,
		fmt.Sprintf("%d clients built their state from events, and it was compared with a fresh register", n))
}

func (r *run) compareMirror(p *poller) []mirror.Mismatch {
	user := &r.population.people[p.person]
	fresh := mirror.New(mirrorKind)
	var queue string
	call := func(c *swarm.Call, use func(body []byte) error) error {
		err := errNoAnswer
		done := false
		c.Done = func(c *swarm.Call, a *swarm.Answer) {
			done = true
			if err = answerError(c, a); err == nil {
				err = use(a.Body)
			}
		}
		r.pool.Do(c)
		r.loop.Run(func() bool { return done })
		return err
	}
	err := call(r.newCall("POST", "register", user, mirrorRegister()), func(body []byte) error {
		swarm.Fields(body, func(k, v []byte) {
			if string(k) == "queue_id" {
				queue = swarm.Text(v)
			}
		})
		return fresh.Start(body)
	})
	if err != nil {
		return []mirror.Mismatch{{Part: "register", Err: err}}
	}
	out := p.mirror.Diff(fresh)
	if ids := p.mirror.Messages(); len(ids) > 0 {
		ask := params{"message_ids": ids, "apply_markdown": true, "client_gravatar": false,
			"allow_empty_topic_name": true}
		if err := call(r.newCall("GET", "messages", user, ask), p.mirror.DiffMessages); err != nil {
			out = append(out, mirror.Mismatch{Part: "messages", Err: err})
		}
	}
	if queue != "" {
		call(r.newCall("DELETE", "events", user, params{"queue_id": queue}), func([]byte) error { return nil })
	}
	return out
}
