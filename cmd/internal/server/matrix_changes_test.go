package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
)

// matrixChanges makes random changes to an organization while every user has an open queue. Users join and leave
// channels, get other roles, are deactivated and reactivated; channels become private or public, are archived; groups
// get members, messages move. A model that knows only the rules of the protocol computes after each step which events
// every user receives and which messages the user can read.
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
	group   int64 // a group whose members are in a subgroup
	nested  int64
	granted map[string]bool // members of the nested group
	what    string          // the step, as the cells name it
	n       int
}

// walkUser is a user, as the model knows them.
type walkUser struct {
	*matrixUser
	role        string
	gone        bool
	publicQueue string // id of a second queue, for all public channels; "" for users who may not have one
	publicLast  int64  // id of the last event of that queue
}

// walkChannel is a channel, as the model knows it.
type walkChannel struct {
	id       int64
	name     string
	kind     string
	archived bool
	open     bool // members of the group may subscribe
	in       map[string]bool
	posts    []*walkMessage
}

// walkMessage is a message of the keeper.
type walkMessage struct {
	id  int64
	got map[string]bool // users with a record of it
	at  *walkChannel
}

var roleCodes = map[string]int{"owner": 100, "admin": 200, "moderator": 300, "member": 400, "guest": 600}

func newRandomWalk(t *testing.T, l *coverage, seed uint64) *randomWalk {
	w := &randomWalk{matrixStage: newMatrixStage(t, l), seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
		granted: map[string]bool{}}
	t.Logf("seed %d", seed)
	// Roles change: the name of a user is the one from the beginning, cells name the current role.
	for i, role := range []string{"admin", "moderator", "member", "member", "guest", "guest"} {
		p := &walkUser{matrixUser: w.join(ours, ourHost, fmt.Sprintf("walker %d", i), 400, 0, 0), role: "member"}
		w.users = append(w.users, p)
		if role != "member" {
			w.must(w.keeper, "PATCH", fmt.Sprintf("/users/%d", p.id), "role", roleCodes[role])
			p.role = role
		}
	}
	w.nested = w.must(w.keeper, "POST", "/user_groups/create", "name", "nested", "description", "", "members",
		[]int64{}).int("group_id")
	w.group = w.must(w.keeper, "POST", "/user_groups/create", "name", "around", "description", "", "members", []int64{},
		"subgroups", []int64{w.nested}).int("group_id")
	for i, kind := range append(slices.Clone(kinds), "private", "protected") {
		x := &walkChannel{name: fmt.Sprintf("place %d", i), kind: kind, in: map[string]bool{}}
		x.id = w.must(w.keeper, "POST", "/channels/create",
			append(pairs{"name", x.name, "subscribers", []int64{w.keeper.id}, "send_new_subscription_messages", false},
				privacy(kind, "invite_only")...)...).int("id")
		w.places = append(w.places, x)
	}
	w.must(w.keeper, "PATCH", "/realm", "send_channel_events_messages", false)
	for _, p := range w.users {
		w.attend(p)
	}
	return w
}

// privacy returns the parameters that give a channel a kind; private is the name of the parameter for private channels.
func privacy(kind, private string) pairs {
	return pairs{private, kind == "private" || kind == "protected", "history_public_to_subscribers",
		kind != "protected", "is_web_public", kind == "web-public"}
}

// attend opens the queues of a user.
func (w *randomWalk) attend(p *walkUser) {
	w.register(p.matrixUser)
	p.publicQueue, p.publicLast = "", -1
	if r := w.call(p.matrixUser, "POST", "/register", "all_public_streams", true, "event_types",
		[]string{"message"}); p.role == "guest" {
		w.check(r.msg(), "User not authorized for this query", "%s: asks for all public channels: %s", p.role, w.what)
	} else if w.check(r.msg(), "", "%s: asks for all public channels: %s", p.role, w.what) {
		p.publicQueue, _ = r.body["queue_id"].(string)
	}
}

// The rules of the protocol.

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

// follows reports whether a user receives events about a message after it was sent.
func (w *randomWalk) follows(p *walkUser, m *walkMessage) bool {
	switch m.at.kind {
	case "protected":
		return m.at.in[p.name] && m.got[p.name]
	case "private":
		return m.at.in[p.name]
	}
	return m.at.in[p.name] || m.got[p.name] && p.role != "guest"
}

// step makes one change, compares its events, and then checks what every user can do.
func (w *randomWalk) step(n int) {
	x := w.places[w.random.IntN(len(w.places))]
	p := w.users[w.random.IntN(len(w.users))]
	for w.random.IntN(4) > 0 && p.gone { // deactivated users stay so for a while
		p = w.users[w.random.IntN(len(w.users))]
	}
	known := w.knownChannels()
	was := p.gone
	required := map[string]map[string]bool{} // forms that a user must receive, by user
	receives := func(p *walkUser, form string) { required[p.name] = map[string]bool{form: true} }
	do := func(what, method, path string, params ...any) {
		w.what = fmt.Sprintf("seed %d, step %d: %s", w.seed, n, what)
		w.must(w.keeper, method, path, params...)
	}
	stream, user := fmt.Sprintf("/streams/%d", x.id), fmt.Sprintf("/users/%d", p.id)
	switch dice := w.random.IntN(12); {
	case p.gone:
		do(p.name+" is reactivated", "POST", user+"/reactivate")
		p.gone = false
		w.prepareLogin(p.matrixUser, ours, realm.Human) // the deactivation ended all logins but that with the first key
		w.check(w.poll(p.matrixUser, p.queue).msg(), "Bad event queue ID: "+p.queue,
			"%s: a queue from before the deactivation: %s", p.role, w.what)
		w.attend(p)
	case x.archived:
		do(x.name+" is unarchived", "PATCH", stream, "is_archived", false)
		x.archived = false
	case dice < 4 && !x.in[p.name]:
		do(p.name+" joins "+x.name, "POST", "/users/me/subscriptions", "subscriptions",
			[]any{map[string]string{"name": x.name}}, "principals", []int64{p.id})
		x.in[p.name] = true
		receives(p, "subscription/add")
	case dice < 4:
		do(p.name+" leaves "+x.name, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name},
			"principals", []int64{p.id})
		x.in[p.name] = false
		receives(p, "subscription/remove")
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
		do(fmt.Sprintf("the group may join %s: %v", x.name, x.open), "PATCH", stream, "can_subscribe_group",
			map[string]any{"new": group})
	case dice < 10:
		op := "add"
		if w.granted[p.name] {
			op = "delete"
		}
		do(p.name+" and the nested group: "+op, "POST", fmt.Sprintf("/user_groups/%d/members", w.nested), op,
			[]int64{p.id})
		w.granted[p.name] = !w.granted[p.name]
	case dice < 11:
		do(p.name+" is deactivated", "DELETE", user)
		p.gone = true
		w.check(w.poll(p.matrixUser, p.queue).msg(), "Account is deactivated",
			"%s: the queue of a deactivated user: %s", p.role, w.what)
	default:
		do(x.name+" is archived", "DELETE", stream)
		x.archived = true
	}
	w.changed(known, required, p, was)
	w.checkChannel(x)
	if y := w.places[w.random.IntN(len(w.places))]; y != x {
		w.checkChannel(y)
		w.move(x, y)
	}
}

// knownChannels returns the pairs of users and channels whose metadata they can read.
func (w *randomWalk) knownChannels() map[string]bool {
	out := map[string]bool{}
	for _, p := range w.users {
		for _, x := range w.places {
			out[p.name+x.name] = w.knows(p, x)
		}
	}
	return out
}

// changed compares the events of a step about channels: channels that a user can see now, and channels that a user
// cannot see any more.
func (w *randomWalk) changed(known map[string]bool, required map[string]map[string]bool, who *walkUser, was bool) {
	for _, p := range w.users {
		if p.gone || p == who && was {
			continue // without a queue, or with a new one
		}
		appeared, vanished, forms := w.eventChanges(p)
		for _, x := range w.places {
			before, now := known[p.name+x.name], w.knows(p, x)
			w.check(fmt.Sprint(appeared[x.id]), fmt.Sprint(!before && now),
				"%s: is shown a %s channel by an event: %s, %s", p.role, x.kind, x.name, w.what)
			w.check(fmt.Sprint(vanished[x.id]), fmt.Sprint(before && !now),
				"%s: a %s channel is removed by an event: %s, %s", p.role, x.kind, x.name, w.what)
		}
		for _, form := range []string{"subscription/add", "subscription/remove"} {
			w.check(fmt.Sprint(forms[form]), fmt.Sprint(required[p.name][form]), "%s: receives %s: %s", p.role, form,
				w.what)
		}
	}
}

// eventChanges reads the events of a user since the last call. It returns the channels that appeared and that vanished,
// and the forms of the events.
func (w *randomWalk) eventChanges(p *walkUser) (appeared, vanished map[int64]bool, forms map[string]bool) {
	appeared, vanished, forms = map[int64]bool{}, map[int64]bool{}, map[string]bool{}
	for _, e := range w.newEvents(p.matrixUser) {
		w.coverage.noteEvent(formOf(e))
		if e["type"] == "update_message_flags" {
			continue // sent some time after a user has left a channel
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
				w.check("names "+x.name, "", "%s: event %s about a channel the user cannot see: %s", p.role, formOf(e),
					w.what)
			}
		}
	}
	return appeared, vanished, forms
}

// checkEventAudience calls do and checks that exactly the users of the rule receive an event of the form.
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
		delete(forms, "stream/update") // about the first message and activity
		if form == "stream/update" && rule(p) {
			delete(want, form)
		}
		w.check(fmt.Sprint(slices.Sorted(maps.Keys(forms))), fmt.Sprint(slices.Sorted(maps.Keys(want))),
			"%s: receives %s: after %s", p.role, what, w.what)
	}
}

// checkChannel checks everything about one channel.
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
		w.checkEventAudience("typing in a "+x.kind+" channel", "typing/start",
			func(p *walkUser) bool { return x.in[p.name] }, func() {
				w.must(w.keeper, "POST", "/typing", "type", "channel", "op", "start", "stream_id", x.id, "topic", "t")
			})
	}
	visitor := &matrixUser{name: "visitor", host: ourHost}
	slices.SortFunc(x.posts, func(a, b *walkMessage) int { return int(a.id - b.id) })
	for _, m := range x.posts[max(0, len(x.posts)-8):] {
		want := noLogin
		if x.kind == "web-public" && !x.archived {
			want = ""
		}
		w.check(w.call(visitor, "GET", fmt.Sprintf("/messages/%d", m.id)).msg(), want,
			"visitor: reads a message in a %s channel: after %s", x.kind, w.what)
	}
	for _, p := range w.users {
		if p.gone {
			continue
		}
		want := noChannel
		if w.knows(p, x) {
			want = ""
		}
		w.check(w.call(p.matrixUser, "GET", fmt.Sprintf("/streams/%d", x.id)).msg(), want,
			"%s: knows a %s channel: after %s", p.role, x.kind, w.what)
		var lists []int64
		for i, m := range x.posts {
			want := noMessage
			if w.reads(p, m) {
				want = ""
			}
			if i >= len(x.posts)-8 {
				w.check(w.call(p.matrixUser, "GET", fmt.Sprintf("/messages/%d", m.id)).msg(), want,
					"%s: reads message %d in a %s channel: after %s", p.role, m.id, x.kind, w.what)
			}
			if w.content(p, x) && (x.kind != "protected" || m.got[p.name]) {
				lists = append(lists, m.id)
			}
		}
		r := w.call(p.matrixUser, "GET", "/messages", "anchor", "newest", "num_before", 500, "num_after", 0, "narrow",
			[]any{term("channel", x.id), term("sender", w.keeper.id)})
		w.check(fmt.Sprint(ids(r.body["messages"], "id")), fmt.Sprint(lists), "%s: lists a %s channel: after %s",
			p.role, x.kind, w.what)
	}
}

// send sends a message as the keeper and compares who receives it. A queue for all public channels receives more.
func (w *randomWalk) send(x *walkChannel) {
	m := &walkMessage{at: x, got: map[string]bool{}}
	for _, p := range w.users {
		if p.publicQueue != "" && !p.gone {
			w.publicQueueMessages(p)
		}
	}
	w.checkEventAudience("a message in a "+x.kind+" channel", "message", func(p *walkUser) bool { return x.in[p.name] },
		func() {
			m.id = w.must(w.keeper, "POST", "/messages", "type", "channel", "to", x.id, "topic", "t", "content",
				"hello").int("id")
		})
	for _, p := range w.users {
		m.got[p.name] = x.in[p.name] && !p.gone
		if p.publicQueue != "" && !p.gone {
			public := x.kind == "public" || x.kind == "web-public"
			w.check(shownOrAbsent(slices.Contains(w.publicQueueMessages(p), m.id)),
				shownOrAbsent(x.in[p.name] || public && p.role != "guest"),
				"%s: receives a message in a %s channel in the queue for all public channels: after %s", p.role, x.kind,
				w.what)
		}
	}
	x.posts = append(x.posts, m)
}

// publicQueueMessages returns the new messages in a user's queue for all public channels.
func (w *randomWalk) publicQueueMessages(p *walkUser) (out []int64) {
	r := w.fetch(&matrixUser{id: p.id, host: p.host, last: p.publicLast}, p.publicQueue)
	if r.msg() != "" {
		w.Fatalf("%s polls: %s", p.name, r.raw)
	}
	for _, e := range objects(r.body["events"]) {
		p.publicLast = max(p.publicLast, num(e["id"]))
		m, _ := e["message"].(map[string]any)
		out = append(out, num(m["id"]))
	}
	return out
}

// move moves a message to another channel. Users who can read it there receive the move; from the clients of the others
// it is deleted.
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
	w.must(w.keeper, "PATCH", fmt.Sprintf("/messages/%d", m.id), "stream_id", y.id, "send_notification_to_new_thread",
		false)
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
			w.check(fmt.Sprint(forms["update_message"]), "false",
				"%s: receives a move to a channel the user cannot read: after %s", p.role, w.what)
			w.check(shownOrAbsent(forms["delete_message"] || !followed[p.name]), "shown",
				"%s: receives a deletion: after %s", p.role, w.what)
			if !saw[p.name] {
				w.check(fmt.Sprint(forms["delete_message"]), "false",
					"%s: receives the deletion of a message that the user could not read: after %s", p.role, w.what)
			}
		} else if followed[p.name] {
			w.check(fmt.Sprint(forms["update_message"]), "true", "%s: receives a move: after %s", p.role, w.what)
		}
	}
	w.what = what
}
