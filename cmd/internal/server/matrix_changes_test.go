package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// matrixChanges walks through a changing organization with everybody's queue open: people join and leave channels, get
// other roles, are deactivated and come back; channels are closed, opened, archived; groups gain members, messages move.
// A model that knows nothing but the protocol's rules says after each step what everybody may hear and read.
func matrixChanges(t *testing.T, l *coverage) {
	for seed := uint64(1); seed <= 3; seed++ {
		w := newRandomWalk(t, l, seed)
		for step := range 45 {
			w.step(step)
		}
		w.summary()
	}
}

// randomWalk is the organization and its model.
type randomWalk struct {
	*matrixStage
	seed    uint64
	random  *rand.Rand
	users   []*walkUser
	places  []*walkChannel
	group   int64 // of the organization's own; its members come by a subgroup
	nested  int64
	granted map[string]bool // members of the nested group
	what    string          // the step, as cells name it
	n       int
}

// walkUser is somebody, as the model knows him.
type walkUser struct {
	*matrixUser
	role   string
	gone   bool
	wide   string // a second queue, for all public channels; "" if he never could have one
	wideAt int64  // the last event he has of it
}

// walkChannel is a channel, as the model knows it.
type walkChannel struct {
	id       int64
	name     string
	kind     string
	archived bool
	open     bool // members of the group may subscribe themselves
	in       map[string]bool
	posts    []*walkMessage
}

// walkMessage is a message of the keeper's.
type walkMessage struct {
	id  int64
	got map[string]bool // who has a record of it
	at  *walkChannel
}

var roleCodes = map[string]int{"owner": 100, "admin": 200, "moderator": 300, "member": 400, "guest": 600}

func newRandomWalk(t *testing.T, l *coverage, seed uint64) *randomWalk {
	w := &randomWalk{matrixStage: newMatrixStage(t, l), seed: seed, random: rand.New(rand.NewPCG(seed, 1)), granted: map[string]bool{}}
	t.Logf("seed %d", seed)
	// Whoever changes roles is known by his name as a walker, and by his role as cells name him.
	for i, role := range []string{"admin", "moderator", "member", "member", "guest", "guest"} {
		p := &walkUser{matrixUser: w.join(ours, ourHost, fmt.Sprintf("walker %d", i), 400, 0, 0), role: "member"}
		w.users = append(w.users, p)
		if role != "member" {
			w.must(w.keeper, "PATCH", fmt.Sprintf("/users/%d", p.id), "role", roleCodes[role])
			p.role = role
		}
	}
	w.nested = w.must(w.keeper, "POST", "/user_groups/create", "name", "nested", "description", "", "members", []int64{}).int("group_id")
	w.group = w.must(w.keeper, "POST", "/user_groups/create", "name", "around", "description", "", "members", []int64{}, "subgroups", []int64{w.nested}).int("group_id")
	for i, kind := range append(slices.Clone(kinds), "private", "protected") {
		x := &walkChannel{name: fmt.Sprintf("place %d", i), kind: kind, in: map[string]bool{}}
		x.id = w.must(w.keeper, "POST", "/channels/create", append(pairs{"name", x.name, "subscribers", []int64{w.keeper.id}, "send_new_subscription_messages", false}, privacy(kind, "invite_only")...)...).int("id")
		w.places = append(w.places, x)
	}
	w.must(w.keeper, "PATCH", "/realm", "send_channel_events_messages", false)
	for _, p := range w.users {
		w.attend(p)
	}
	return w
}

// privacy is the parameters that make a channel of a kind.
func privacy(kind, private string) pairs {
	return pairs{private, kind == "private" || kind == "protected", "history_public_to_subscribers", kind != "protected", "is_web_public", kind == "web-public"}
}

// attend opens somebody's queues.
func (w *randomWalk) attend(p *walkUser) {
	w.register(p.matrixUser)
	p.wide, p.wideAt = "", -1
	if r := w.call(p.matrixUser, "POST", "/register", "all_public_streams", true, "event_types", []string{"message"}); p.role == "guest" {
		w.check(r.msg(), "User not authorized for this query", "%s: asks for all public channels: %s", p.role, w.what)
	} else if w.check(r.msg(), "", "%s: asks for all public channels: %s", p.role, w.what) {
		p.wide, _ = r.body["queue_id"].(string)
	}
}

// The rules.

func (p *walkUser) isAdmin() bool { return p.role == "admin" || p.role == "owner" }

func (w *randomWalk) content(p *walkUser, x *walkChannel) bool {
	switch {
	case x.kind == "web-public", x.in[p.name]:
		return true
	case p.role == "guest":
		return false
	}
	return x.kind == "public" || x.open && w.granted[p.name]
}

func (w *randomWalk) knows(p *walkUser, x *walkChannel) bool { return w.content(p, x) || p.isAdmin() }

func (w *randomWalk) reads(p *walkUser, m *walkMessage) bool {
	return w.content(p, m.at) && (m.at.kind != "protected" || m.got[p.name])
}

// follows: who hears of a message after it was sent.
func (w *randomWalk) follows(p *walkUser, m *walkMessage) bool {
	switch m.at.kind {
	case "protected":
		return m.at.in[p.name] && m.got[p.name]
	case "private":
		return m.at.in[p.name]
	}
	return m.at.in[p.name] || m.got[p.name] && p.role != "guest"
}

// step makes one change, compares what it tells, and then what everybody may do.
func (w *randomWalk) step(n int) {
	x := w.places[w.random.IntN(len(w.places))]
	p := w.users[w.random.IntN(len(w.users))]
	for w.random.IntN(4) > 0 && p.gone { // who is gone stays so for a while
		p = w.users[w.random.IntN(len(w.users))]
	}
	known := w.knownChannels()
	was := p.gone
	mustHear := map[string]map[string]bool{} // by walker: forms he hears in any case
	hears := func(p *walkUser, form string) { mustHear[p.name] = map[string]bool{form: true} }
	do := func(what, method, path string, params ...any) {
		w.what = fmt.Sprintf("seed %d, step %d: %s", w.seed, n, what)
		w.must(w.keeper, method, path, params...)
	}
	stream, user := fmt.Sprintf("/streams/%d", x.id), fmt.Sprintf("/users/%d", p.id)
	switch dice := w.random.IntN(12); {
	case p.gone:
		do(p.name+" is reactivated", "POST", user+"/reactivate")
		p.gone = false
		w.check(w.poll(p.matrixUser, p.queue).msg(), "Bad event queue ID: "+p.queue, "%s: a queue of before his end: %s", p.role, w.what)
		w.attend(p)
	case x.archived:
		do(x.name+" is unarchived", "PATCH", stream, "is_archived", false)
		x.archived = false
	case dice < 4 && !x.in[p.name]:
		do(p.name+" joins "+x.name, "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]string{"name": x.name}}, "principals", []int64{p.id})
		x.in[p.name] = true
		hears(p, "subscription/add")
	case dice < 4:
		do(p.name+" leaves "+x.name, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals", []int64{p.id})
		x.in[p.name] = false
		hears(p, "subscription/remove")
	case dice < 6:
		kind := kinds[w.random.IntN(len(kinds))]
		do(x.name+" becomes "+kind, "PATCH", stream, privacy(kind, "is_private")...)
		x.kind = kind
	case dice < 8:
		roles := []string{"moderator", "member", "guest", "admin"}
		role := roles[w.random.IntN(len(roles))]
		if role == "admin" && p.role == "guest" {
			role = "member"
		}
		do(p.name+", a "+p.role+", becomes "+role, "PATCH", user, "role", roleCodes[role])
		p.role = role
	case dice < 9:
		group := int64(w.groups["role:nobody"])
		if x.open = !x.open; x.open {
			group = w.group
		}
		do(fmt.Sprintf("the group may join %s: %v", x.name, x.open), "PATCH", stream, "can_subscribe_group", map[string]any{"new": group})
	case dice < 10:
		op := "add"
		if w.granted[p.name] {
			op = "delete"
		}
		do(p.name+" and the nested group: "+op, "POST", fmt.Sprintf("/user_groups/%d/members", w.nested), op, []int64{p.id})
		w.granted[p.name] = !w.granted[p.name]
	case dice < 11:
		do(p.name+" is deactivated", "DELETE", user)
		p.gone = true
		w.check(w.poll(p.matrixUser, p.queue).msg(), "Account is deactivated", "%s: his queue after his end: %s", p.role, w.what)
	default:
		do(x.name+" is archived", "DELETE", stream)
		x.archived = true
	}
	w.changed(known, mustHear, p, was)
	w.checkChannel(x)
	if y := w.places[w.random.IntN(len(w.places))]; y != x {
		w.checkChannel(y)
		w.move(x, y)
	}
}

// knownChannels is who knows which channel.
func (w *randomWalk) knownChannels() map[string]bool {
	out := map[string]bool{}
	for _, p := range w.users {
		for _, x := range w.places {
			out[p.name+x.name] = w.knows(p, x)
		}
	}
	return out
}

// changed compares what a step told of channels: they come into sight, and go out of it.
func (w *randomWalk) changed(known map[string]bool, mustHear map[string]map[string]bool, who *walkUser, was bool) {
	for _, p := range w.users {
		if p.gone || p == who && was {
			continue // without a queue, or with a new one
		}
		appeared, vanished, forms := w.eventChanges(p)
		for _, x := range w.places {
			before, now := known[p.name+x.name], w.knows(p, x)
			w.check(fmt.Sprint(appeared[x.id]), fmt.Sprint(!before && now), "%s: is shown a %s channel by an event: %s, %s", p.role, x.kind, x.name, w.what)
			w.check(fmt.Sprint(vanished[x.id]), fmt.Sprint(before && !now), "%s: a %s channel is taken from his sight by an event: %s, %s", p.role, x.kind, x.name, w.what)
		}
		for _, form := range []string{"subscription/add", "subscription/remove"} {
			w.check(fmt.Sprint(forms[form]), fmt.Sprint(mustHear[p.name][form]), "%s: hears %s: %s", p.role, form, w.what)
		}
	}
}

// eventChanges is which channels appeared to somebody and which vanished in the events since he last asked, and their forms.
func (w *randomWalk) eventChanges(p *walkUser) (appeared, vanished map[int64]bool, forms map[string]bool) {
	appeared, vanished, forms = map[int64]bool{}, map[int64]bool{}, map[string]bool{}
	for _, e := range w.newEvents(p.matrixUser) {
		w.book.noteEvent(formOf(e))
		if e["type"] == "update_message_flags" {
			continue // marked read behind who left, some time later
		}
		forms[formOf(e)] = true
		for _, ch := range objects(e["streams"]) {
			switch e["op"] {
			case "create":
				appeared[num(ch["stream_id"])] = true
			case "delete":
				vanished[num(ch["stream_id"])] = true
			}
		}
		for _, x := range w.places {
			if raw := fmt.Sprint(e); !w.knows(p, x) && strings.Contains(raw, x.name) && e["op"] != "remove" {
				w.check("names "+x.name, "", "%s: event %s of what he may not know: %s", p.role, formOf(e), w.what)
			}
		}
	}
	return appeared, vanished, forms
}

// checkEventAudience has something done and compares who hears which form of event of it, and only these.
func (w *randomWalk) checkEventAudience(what, form string, rule func(p *walkUser) bool, do func()) {
	for _, p := range w.users {
		if !p.gone {
			w.eventChanges(p)
		}
	}
	do()
	for _, p := range w.users {
		if p.gone {
			continue
		}
		_, _, forms := w.eventChanges(p)
		want := map[string]bool{}
		if rule(p) {
			want[form] = true
		}
		delete(forms, "stream/update") // of the first message, and of what is active
		if form == "stream/update" && rule(p) {
			delete(want, form)
		}
		w.check(fmt.Sprint(slices.Sorted(maps.Keys(forms))), fmt.Sprint(slices.Sorted(maps.Keys(want))), "%s: hears of %s: after %s", p.role, what, w.what)
	}
}

// checkChannel asks everything about one channel.
func (w *randomWalk) checkChannel(x *walkChannel) {
	if !x.archived {
		w.send(x)
		posts := x.posts[max(0, len(x.posts)-3):]
		if len(x.posts) > 3 {
			posts = append(slices.Clone(posts), x.posts[0])
		}
		for _, m := range posts {
			follows := func(p *walkUser) bool { return w.follows(p, m) }
			what := fmt.Sprintf("message %d in a %s channel", m.id, x.kind)
			w.checkEventAudience("an edit of "+what, "update_message", follows, func() {
				w.n++
				w.must(w.keeper, "PATCH", fmt.Sprintf("/messages/%d", m.id), "content", fmt.Sprint("edited ", w.n))
			})
			w.checkEventAudience("a reaction to "+what, "reaction/add", follows, func() {
				w.must(w.keeper, "POST", fmt.Sprintf("/messages/%d/reactions", m.id), "emoji_name", "wave")
			})
			w.checkEventAudience("a reaction taken from "+what, "reaction/remove", follows, func() {
				w.must(w.keeper, "DELETE", fmt.Sprintf("/messages/%d/reactions", m.id), "emoji_name", "wave")
			})
		}
		w.checkEventAudience("typing in a "+x.kind+" channel", "typing/start", func(p *walkUser) bool { return x.in[p.name] }, func() {
			w.must(w.keeper, "POST", "/typing", "type", "channel", "op", "start", "stream_id", x.id, "topic", "t")
		})
	}
	visitor := &matrixUser{name: "visitor", host: ourHost}
	slices.SortFunc(x.posts, func(a, b *walkMessage) int { return int(a.id - b.id) })
	for _, m := range x.posts[max(0, len(x.posts)-8):] {
		want := noMessage
		if x.kind == "web-public" && !x.archived {
			want = ""
		}
		w.check(w.call(visitor, "GET", fmt.Sprintf("/messages/%d", m.id)).msg(), want, "visitor: reads a message in a %s channel: after %s", x.kind, w.what)
	}
	for _, p := range w.users {
		if p.gone {
			continue
		}
		want := noChannel
		if w.knows(p, x) {
			want = ""
		}
		w.check(w.call(p.matrixUser, "GET", fmt.Sprintf("/streams/%d", x.id)).msg(), want, "%s: knows a %s channel: after %s", p.role, x.kind, w.what)
		var lists []int64
		for i, m := range x.posts {
			want := noMessage
			if w.reads(p, m) {
				want = ""
			}
			if i >= len(x.posts)-8 {
				w.check(w.call(p.matrixUser, "GET", fmt.Sprintf("/messages/%d", m.id)).msg(), want, "%s: reads message %d in a %s channel: after %s", p.role, m.id, x.kind, w.what)
			}
			if w.content(p, x) && (x.kind != "protected" || m.got[p.name]) {
				lists = append(lists, m.id)
			}
		}
		r := w.call(p.matrixUser, "GET", "/messages", "anchor", "newest", "num_before", 500, "num_after", 0, "narrow", []any{term("channel", x.id), term("sender", w.keeper.id)})
		w.check(fmt.Sprint(ids(r.body["messages"], "id")), fmt.Sprint(lists), "%s: lists a %s channel: after %s", p.role, x.kind, w.what)
	}
}

// send has the keeper write, to compare who gets it; a queue for all public channels gets more.
func (w *randomWalk) send(x *walkChannel) {
	m := &walkMessage{at: x, got: map[string]bool{}}
	for _, p := range w.users {
		if p.wide != "" && !p.gone {
			w.publicQueueMessages(p)
		}
	}
	w.checkEventAudience("a message in a "+x.kind+" channel", "message", func(p *walkUser) bool { return x.in[p.name] }, func() {
		m.id = w.must(w.keeper, "POST", "/messages", "type", "channel", "to", x.id, "topic", "t", "content", "hello").int("id")
	})
	for _, p := range w.users {
		m.got[p.name] = x.in[p.name] && !p.gone
		if p.wide != "" && !p.gone {
			public := x.kind == "public" || x.kind == "web-public"
			w.check(shownOrAbsent(slices.Contains(w.publicQueueMessages(p), m.id)), shownOrAbsent(x.in[p.name] || public && p.role != "guest"), "%s: hears of a message in a %s channel in a queue for all public ones: after %s", p.role, x.kind, w.what)
		}
	}
	x.posts = append(x.posts, m)
}

// publicQueueMessages is which messages somebody's queue for all public channels got.
func (w *randomWalk) publicQueueMessages(p *walkUser) (out []int64) {
	r := w.fetch(&matrixUser{id: p.id, host: p.host, last: p.wideAt}, p.wide)
	if r.msg() != "" {
		w.Fatalf("%s polls: %s", p.name, r.raw)
	}
	for _, e := range objects(r.body["events"]) {
		p.wideAt = max(p.wideAt, num(e["id"]))
		m, _ := e["message"].(map[string]any)
		out = append(out, num(m["id"]))
	}
	return out
}

// move takes a message elsewhere. Who sees it there is told where it went; from who does not it is taken.
func (w *randomWalk) move(x, y *walkChannel) {
	if x.archived || y.archived || len(x.posts) < 2 || x.kind == "protected" {
		return
	}
	m := x.posts[1]
	saw := map[string]bool{}
	for _, p := range w.users {
		saw[p.name] = w.reads(p, m)
	}
	what := w.what
	w.what += ", a message moved from " + x.name + ", " + x.kind + ", to " + y.name + ", " + y.kind
	for _, p := range w.users {
		if !p.gone {
			w.eventChanges(p)
		}
	}
	followed := map[string]bool{}
	for _, p := range w.users {
		followed[p.name] = w.follows(p, m)
	}
	w.must(w.keeper, "PATCH", fmt.Sprintf("/messages/%d", m.id), "stream_id", y.id, "send_notification_to_new_thread", false)
	x.posts = slices.DeleteFunc(x.posts, func(o *walkMessage) bool { return o == m })
	m.at = y
	for _, p := range w.users {
		if !w.content(p, y) {
			m.got[p.name] = false
		} else if y.kind == "protected" && y.in[p.name] && !p.gone {
			m.got[p.name] = true
		}
	}
	y.posts = append(y.posts, m)
	for _, p := range w.users {
		if p.gone {
			continue
		}
		_, _, forms := w.eventChanges(p)
		if !w.reads(p, m) {
			w.check(fmt.Sprint(forms["update_message"]), "false", "%s: is told of a move that he cannot follow: after %s", p.role, w.what)
			w.check(shownOrAbsent(forms["delete_message"] || !followed[p.name]), "shown", "%s: is told that a message is gone: after %s", p.role, w.what)
			if !saw[p.name] {
				w.check(fmt.Sprint(forms["delete_message"]), "false", "%s: is told that a message is gone which he never saw: after %s", p.role, w.what)
			}
		} else if followed[p.name] {
			w.check(fmt.Sprint(forms["update_message"]), "true", "%s: is told of a move: after %s", p.role, w.what)
		}
	}
	w.what = what
}
