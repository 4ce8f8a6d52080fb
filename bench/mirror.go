package bench

import (
	"errors"
	"fmt"
	"time"

	"parley/bench/mirror"
	"parley/bench/swarm"
)

// mirrorKind is what today's mobile app says of itself.
var mirrorKind = mirror.Kind{Caps: capabilities}

func mirrorRegister() params {
	return params{"apply_markdown": true, "client_gravatar": false, "slim_presence": true,
		"client_capabilities": capabilities,
		"fetch_event_types": []string{"subscription", "stream", "realm_user", "message", "update_message_flags",
			"starred_messages", "user_topic", "realm_user_groups", "muted_users", "realm"}}
}

var errNoAnswer = errors.New("no answer")

// mirrorPatience is how long events may lag behind what a register says: some work is done behind the answer, such as
// marking read what somebody leaves unread in a channel.
const mirrorPatience = 40 * time.Second

// compareMirrors asks for the state anew and compares. Events of the last moments may still be on their way, so a
// difference is looked at again before it counts.
func (r *run) compareMirrors() {
	var left []*poller
	for _, p := range r.pollers {
		if p.mirror != nil && !p.dead {
			left = append(left, p)
		}
	}
	n := len(left)
	if n == 0 {
		return
	}
	end := r.loop.Now() + mirrorPatience
	if r.opt.patience > 0 {
		end = r.loop.Now() + r.opt.patience
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
			r.led.breach("state of "+x.Part, "poller %d (user %d): %v", p.heard.no, r.pop.people[p.who].ID, x.Err)
		}
	}
	r.result.Notes = append(r.result.Notes,
		fmt.Sprintf("%d clients built their state from events and compared it with a fresh register", n))
}

func (r *run) compareMirror(p *poller) []mirror.Mismatch {
	who := &r.pop.people[p.who]
	fresh := mirror.New(mirrorKind)
	var queue string
	call := func(c *swarm.Call, use func(body []byte) error) error {
		err := errNoAnswer
		done := false
		c.Done = func(c *swarm.Call, a *swarm.Answer) {
			done = true
			if err = problem(c, a); err == nil {
				err = use(a.Body)
			}
		}
		r.pool.Do(c)
		r.loop.Run(func() bool { return done })
		return err
	}
	err := call(r.call("POST", "register", who, mirrorRegister()), func(body []byte) error {
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
		if err := call(r.call("GET", "messages", who, ask), p.mirror.DiffMessages); err != nil {
			out = append(out, mirror.Mismatch{Part: "messages", Err: err})
		}
	}
	if queue != "" {
		call(r.call("DELETE", "events", who, params{"queue_id": queue}), func([]byte) error { return nil })
	}
	return out
}
