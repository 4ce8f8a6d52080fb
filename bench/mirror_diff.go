package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"parley/bench/swarm"
)

func keys[V any](m map[int64]V) []int64 {
	out := make([]int64, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// drifting are fields no event follows, or that events follow only roughly.
var drifting = map[string]bool{"stream_weekly_traffic": true, "subscriber_count": true, "subscribers": true, "partial_subscribers": true, "is_recently_active": true, "profile_data": true, "date_joined": true}

// A mismatch is the first thing in which two states differ in one part: the smallest witness there is.
type mismatch struct {
	part string
	err  error
}

// diff compares two states part by part.
func (m *mirror) diff(fresh *mirror) (out []mismatch) {
	add := func(part string, err error) {
		if err != nil {
			out = append(out, mismatch{part, err})
		}
	}
	add("subscriptions", diffObjects("subscription", m.subs, fresh.subs))
	add("users", diffObjects("user", m.users, fresh.users))
	add("user groups", diffObjects("user group", m.groups, fresh.groups))
	for _, part := range []struct {
		name string
		a, b map[int64]bool
	}{{"unread message", m.unread, fresh.unread}, {"starred message", m.starred, fresh.starred}, {"muted user", m.muted, fresh.muted}} {
		id, err := diffSets(part.name, part.a, part.b)
		if x := m.messages[id]; err != nil && x != nil && part.name != "muted user" {
			err = fmt.Errorf("%w; events told channel %d, topic %q, flags %v, text %.80s", err, x.stream, x.topic, list(x.flags), x.content)
		}
		add(part.name+"s", err)
	}
	add("topic policies", diffPolicies(m.policies, fresh.policies))
	return out
}

func diffPolicies(events, register map[string]float64) error {
	for _, both := range []map[string]float64{events, register} {
		for k := range both {
			if events[k] != register[k] {
				return fmt.Errorf("topic policy of %q: %v by events, %v by register", k, events[k], register[k])
			}
		}
	}
	return nil
}

// diffSets answers the first id that only one side has.
func diffSets(name string, a, b map[int64]bool) (int64, error) {
	for _, id := range keys(a) {
		if !b[id] {
			return id, fmt.Errorf("%s %d is there by events, not by register (%d and %d in all)", name, id, len(a), len(b))
		}
	}
	for _, id := range keys(b) {
		if !a[id] {
			return id, fmt.Errorf("%s %d is there by register, not by events (%d and %d in all)", name, id, len(b), len(a))
		}
	}
	return 0, nil
}

func diffObjects(name string, a, b map[int64]obj) error {
	there, fresh := map[int64]bool{}, map[int64]bool{}
	for id := range a {
		there[id] = true
	}
	for id := range b {
		fresh[id] = true
	}
	if _, err := diffSets(name, there, fresh); err != nil {
		return err
	}
	for _, id := range keys(a) {
		fields := make([]string, 0, len(a[id]))
		for k := range a[id] {
			fields = append(fields, k)
		}
		sort.Strings(fields)
		for _, k := range fields {
			v, both := b[id][k]
			if !both || drifting[k] {
				continue
			}
			x, y := canonical(a[id][k]), canonical(v)
			if x != y {
				return fmt.Errorf("%s %d, %s: %s by events, %s by register", name, id, k, x, y)
			}
		}
	}
	return nil
}

// canonical is JSON in which lists of numbers are sorted: member lists are sets.
func canonical(v any) string {
	if list, ok := v.([]any); ok {
		ns := ids(v)
		sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] })
		numbers := true
		for _, x := range list {
			if _, ok := x.(float64); !ok {
				numbers = false
			}
		}
		if numbers {
			v = ns
		}
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// diffMessages compares the messages events told with what GET /messages says of them now.
func (m *mirror) diffMessages(body []byte) error {
	var v struct {
		Messages []obj `json:"messages"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	got := map[int64]bool{}
	for _, o := range v.Messages {
		id := int64(num(o["id"]))
		got[id] = true
		x := m.messages[id]
		if x == nil {
			continue
		}
		var y mirrored
		flags, _ := o["flags"].([]any)
		y.read(o, flags)
		for _, f := range []struct {
			name string
			a, b any
		}{{"content", x.content, y.content}, {"topic", x.topic, y.topic}, {"channel", x.stream, y.stream}, {"flags", list(x.flags), list(y.flags)}, {"reactions", list(x.reactions), list(y.reactions)}} {
			if fmt.Sprint(f.a) != fmt.Sprint(f.b) {
				return fmt.Errorf("message %d, %s: %v by events, %v by GET /messages", id, f.name, f.a, f.b)
			}
		}
	}
	for _, id := range keys(m.messages) {
		if !got[id] {
			return fmt.Errorf("message %d was told by an event and not deleted, but GET /messages does not have it", id)
		}
	}
	return nil
}

func list(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		if k != "wildcard_mentioned" { // a legacy name servers add to others as they like
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return out
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
	wrong := map[*poller][]mismatch{}
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
			r.led.breach("state of "+x.part, "poller %d (user %d): %v", p.heard.no, p.mirror.me, x.err)
		}
	}
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("%d clients built their state from events and compared it with a fresh register", n))
}

func (r *run) compareMirror(p *poller) []mismatch {
	who := &r.pop.people[p.who]
	fresh := newMirror(p.mirror.me)
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
		return fresh.start(body)
	})
	if err != nil {
		return []mismatch{{"register", err}}
	}
	out := p.mirror.diff(fresh)
	if len(p.mirror.messages) > 0 {
		ask := params{"message_ids": keys(p.mirror.messages), "apply_markdown": true, "client_gravatar": false, "allow_empty_topic_name": true}
		if err := call(r.call("GET", "messages", who, ask), p.mirror.diffMessages); err != nil {
			out = append(out, mismatch{"messages", err})
		}
	}
	if queue != "" {
		call(r.call("DELETE", "events", who, params{"queue_id": queue}), func([]byte) error { return nil })
	}
	return out
}
