package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A fake speaks as much of the protocol as the scenarios need, in memory, with every promise kept, unless fault says
// which one to break: a check that has never failed has not been tested.
type fake struct {
	mu       sync.Mutex
	users    map[string]*fakeUser // by e-mail
	byID     map[int64]*fakeUser
	channels []*fakeChannel
	messages []*fakeMessage
	queues   map[string]*fakeQueue
	fault    string
	policy   string // message_edit_history_visibility_policy; without one it is not told, and everything is shown
	polls    int
	edits    int64  // the time, for what is changed
	file     string // where sends are kept, for a fake that is killed and started again
}

type fakeUser struct {
	ID              int64
	Email           string
	Name            string
	unread, starred map[int64]bool
}

type fakeChannel struct {
	ID   int64
	Name string
	Subs map[int64]bool
}

type fakeMessage struct {
	ID        int64
	Sender    int64
	Channel   *fakeChannel
	Others    []int64
	Topic     string
	Content   string
	gone      bool
	told      map[int64]bool // who was sent it, and so hears what becomes of it
	reactions map[string]bool
	past      []obj1 // what it was, newest first, as edit_history has it
}

type fakeQueue struct {
	id     string
	user   *fakeUser
	types  []string
	events []map[string]any
	next   int64
	acked  int64
	wake   chan struct{}
}

func newFake(fault string) *fake {
	f := &fake{users: map[string]*fakeUser{}, byID: map[int64]*fakeUser{}, queues: map[string]*fakeQueue{},
		fault: fault}
	f.addUser("admin@fake.invalid", "Admin")
	return f
}

func (f *fake) addUser(email, name string) *fakeUser {
	u := &fakeUser{ID: int64(len(f.users) + 10), Email: email, Name: name, unread: map[int64]bool{},
		starred: map[int64]bool{}}
	f.users[email], f.byID[u.ID] = u, u
	return u
}

// serveFake is the fake as a process, for scenarios that start and kill their server.
func serveFake(args []string) int {
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	data := fs.String("data", "", "")
	listen := fs.String("listen", "", "")
	fs.Bool("demo", false, "")
	fault := fs.String("fault", "", "")
	fs.Parse(args)
	os.MkdirAll(*data, 0o700)
	f := newFake(*fault)
	f.file = *data + "/log"
	f.recover()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	http.Serve(l, f)
	return 0
}

type obj1 = map[string]any

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v, _ := url.ParseQuery(string(body))
	for k, x := range r.URL.Query() {
		v[k] = x
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	if path == "events" && r.Method == "GET" {
		f.poll(w, v)
		return
	}
	f.mu.Lock()
	email, _, _ := r.BasicAuth()
	status, out := f.handle(r.Method, path, f.users[email], v, string(body))
	f.mu.Unlock()
	answer(w, status, out)
}

func answer(w http.ResponseWriter, status int, out obj1) {
	if out == nil {
		out = obj1{}
	}
	out["result"], out["msg"] = "success", ""
	if status != 200 {
		out["result"] = "error"
	}
	b, _ := json.Marshal(out)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

func (f *fake) handle(method, path string, me *fakeUser, v url.Values, raw string) (int, obj1) {
	switch method + " " + path {
	case "GET server_settings":
		return 200, obj1{"zulip_version": "fake", "zulip_feature_level": 494}
	case "GET dev_list_users":
		return 200, obj1{"direct_admins": []obj1{{"email": "admin@fake.invalid"}}, "direct_users": []obj1{}}
	case "POST dev_fetch_api_key":
		u := f.users[v.Get("username")]
		if u == nil {
			return 400, obj1{"code": "BAD_REQUEST"}
		}
		return 200, obj1{"api_key": "k", "email": u.Email, "user_id": u.ID}
	}
	if me == nil {
		return 401, obj1{"code": "UNAUTHORIZED"}
	}
	f.keep(method, path, me, raw)
	switch method + " " + path {
	case "POST users":
		return 200, obj1{"user_id": f.addUser(v.Get("email"), v.Get("full_name")).ID}
	case "POST users/me/subscriptions":
		return 200, f.subscribe(me, v)
	case "DELETE users/me/subscriptions":
		return 200, f.unsubscribe(me, v)
	case "GET streams":
		list := []obj1{}
		for _, c := range f.channels {
			list = append(list, obj1{"stream_id": c.ID, "name": c.Name})
		}
		return 200, obj1{"streams": list}
	case "GET users/me/subscriptions":
		return 200, obj1{"subscriptions": f.subs(me)}
	case "POST register":
		return 200, f.register(me, v)
	case "DELETE events":
		delete(f.queues, v.Get("queue_id"))
		return 200, nil
	case "POST messages":
		return f.send(me, v)
	case "GET messages":
		return 200, obj1{"messages": f.fetch(me, v)}
	case "POST messages/flags":
		return 200, f.flags(me, v)
	case "POST users/me/presence", "POST typing", "POST users/me/subscriptions/properties", "POST user_topics",
		"PATCH settings":
		return 200, obj1{"presence_last_update_id": 1}
	}
	if id, rest, ok := strings.Cut(strings.TrimPrefix(path, "messages/"), "/"); strings.HasPrefix(path, "messages/") {
		n, _ := strconv.ParseInt(id, 10, 64)
		return f.onMessage(method, n, ok && rest == "reactions", me, v)
	}
	return 404, nil
}

func (f *fake) subs(u *fakeUser) []obj1 {
	out := []obj1{}
	for _, c := range f.channels {
		if c.Subs[u.ID] {
			out = append(out, obj1{"stream_id": c.ID, "name": c.Name})
		}
	}
	return out
}

func (f *fake) subscribe(me *fakeUser, v url.Values) obj1 {
	var list []struct{ Name string }
	var who []int64
	json.Unmarshal([]byte(v.Get("subscriptions")), &list)
	json.Unmarshal([]byte(v.Get("principals")), &who)
	if len(who) == 0 {
		who = []int64{me.ID}
	}
	did := map[string][]string{}
	for _, x := range list {
		i := slices.IndexFunc(f.channels, func(c *fakeChannel) bool { return c.Name == x.Name })
		if i < 0 {
			i = len(f.channels)
			f.channels = append(f.channels, &fakeChannel{ID: int64(i + 1), Name: x.Name, Subs: map[int64]bool{}})
		}
		c := f.channels[i]
		for _, id := range who {
			if !c.Subs[id] {
				c.Subs[id] = true
				did[strconv.FormatInt(id, 10)] = []string{c.Name}
				f.tell(id, obj1{"type": "subscription", "op": "add",
					"subscriptions": []obj1{{"stream_id": c.ID, "name": c.Name}}})
			}
		}
	}
	return obj1{"subscribed": did}
}

func (f *fake) unsubscribe(me *fakeUser, v url.Values) obj1 {
	var names []string
	json.Unmarshal([]byte(v.Get("subscriptions")), &names)
	for _, c := range f.channels {
		if slices.Contains(names, c.Name) && c.Subs[me.ID] {
			delete(c.Subs, me.ID)
			if f.fault != "silent" {
				f.tell(me.ID, obj1{"type": "subscription", "op": "remove",
					"subscriptions": []obj1{{"stream_id": c.ID, "name": c.Name}}})
				var left []int64 // what lies in channels one is not in is read
				for _, m := range f.messages {
					if m.Channel == c && me.unread[m.ID] {
						delete(me.unread, m.ID)
						left = append(left, m.ID)
					}
				}
				f.tell(me.ID, obj1{"type": "update_message_flags", "op": "add", "flag": "read", "messages": left})
			}
		}
	}
	return nil
}

func (f *fake) register(me *fakeUser, v url.Values) obj1 {
	q := &fakeQueue{id: fmt.Sprintf("queue-%d", len(f.queues)+1), user: me, acked: -1, wake: make(chan struct{}, 1)}
	json.Unmarshal([]byte(v.Get("event_types")), &q.types)
	f.queues[q.id] = q
	users := []obj1{}
	for _, u := range f.users {
		users = append(users, obj1{"user_id": u.ID, "full_name": u.Name, "email": u.Email})
	}
	out := obj1{"queue_id": q.id, "last_event_id": -1, "subscriptions": f.subs(me), "realm_users": users,
		"starred_messages": sortedKeys(me.starred),
		"unread_msgs":      f.unreadOf(me)}
	if f.policy != "" {
		out["realm_message_edit_history_visibility_policy"] = f.policy
	}
	return out
}

func (f *fake) unreadOf(me *fakeUser) obj1 {
	streams, pms := []obj1{}, []obj1{}
	for _, m := range f.messages {
		switch {
		case !me.unread[m.ID]:
		case m.Channel != nil:
			streams = append(streams, obj1{"stream_id": m.Channel.ID, "topic": m.Topic,
				"unread_message_ids": []int64{m.ID}})
		default:
			pms = append(pms, obj1{"unread_message_ids": []int64{m.ID}})
		}
	}
	return obj1{"streams": streams, "pms": pms}
}

// tell puts an event into every queue of a user.
func (f *fake) tell(user int64, e obj1) {
	for _, q := range f.queues {
		if q.user.ID != user || len(q.types) > 0 && !slices.Contains(q.types, e["type"].(string)) {
			continue
		}
		x := obj1{"id": q.next}
		for k, v := range e {
			x[k] = v
		}
		q.next++
		q.events = append(q.events, x)
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

func (f *fake) send(me *fakeUser, v url.Values) (int, obj1) {
	m := &fakeMessage{ID: int64(len(f.messages) + 100), Sender: me.ID, Topic: v.Get("topic"),
		Content: v.Get("content"), reactions: map[string]bool{}}
	to := map[int64]bool{}
	if v.Get("type") == "channel" {
		i := slices.IndexFunc(f.channels, func(c *fakeChannel) bool {
			return strconv.FormatInt(c.ID,
				10) == v.Get("to")
		})
		if i < 0 {
			return 400, obj1{"code": "STREAM_DOES_NOT_EXIST"}
		}
		m.Channel = f.channels[i]
		for id := range m.Channel.Subs {
			to[id] = true
		}
	} else {
		json.Unmarshal([]byte(v.Get("to")), &m.Others)
		m.Others = append(m.Others, me.ID)
		for _, id := range m.Others {
			to[id] = true
		}
	}
	f.messages = append(f.messages, m)
	n := len(f.messages)
	m.told = to
	f.spoil(m, to, n)
	return 200, obj1{"id": m.ID}
}

// spoil delivers a message, breaking one promise now and then.
func (f *fake) spoil(m *fakeMessage, to map[int64]bool, n int) {
	if f.fault == "leak" && n >= 5 { // one of them is not for everybody
		for id := range f.byID {
			to[id] = true
		}
	}
	lost := f.fault == "loss" && n == 5
	for _, id := range sortedKeys(to) {
		u := f.byID[id]
		u.unread[m.ID] = true
		if lost {
			lost = false
			continue
		}
		f.tell(id, f.event(m))
		if f.fault == "duplicate" && n == 5 {
			f.tell(id, f.event(m))
		}
	}
	if f.fault == "reorder" && n%5 == 0 {
		for _, q := range f.queues {
			if e := q.events; len(e) > 1 {
				a, b := e[len(e)-2], e[len(e)-1]
				a["message"], b["message"] = b["message"], a["message"]
			}
		}
	}
}

func (f *fake) event(m *fakeMessage) obj1 {
	return obj1{"type": "message", "flags": []string{}, "message": f.render(m)}
}

func (f *fake) render(m *fakeMessage) obj1 {
	o := obj1{"id": m.ID, "sender_id": m.Sender, "content": "<p>" + m.Content + "</p>", "subject": m.Topic}
	if m.Channel != nil {
		o["type"], o["stream_id"] = "stream", m.Channel.ID
	}
	rs := []obj1{}
	for _, k := range list(m.reactions) {
		p := strings.Split(k, " ")
		id, _ := strconv.Atoi(p[0])
		rs = append(rs, obj1{"user_id": id, "reaction_type": p[1], "emoji_code": p[2]})
	}
	o["reactions"] = rs
	return o
}

// revise tells that a message is another, and keeps what it was.
func (f *fake) revise(m *fakeMessage, me *fakeUser, event, entry obj1) {
	f.edits++
	entry["user_id"], entry["timestamp"] = me.ID, f.edits
	event["type"], event["message_id"], event["message_ids"] = "update_message", m.ID, []int64{m.ID}
	event["user_id"], event["edit_timestamp"] = me.ID, f.edits
	m.past = append([]obj1{entry}, m.past...)
	for _, id := range sortedKeys(m.told) {
		f.tell(id, event)
	}
}

// history is what GET /messages says of a message's past.
func (f *fake) history(m *fakeMessage, o obj1) {
	for _, x := range slices.Backward(m.past) { // the newest has the last word
		for k, of := range map[string]string{"last_edit_timestamp": "prev_content",
			"last_moved_timestamp": "prev_topic"} {
			if x[of] != nil {
				o[k] = x["timestamp"]
			}
		}
	}
	past := slices.Clone(m.past)
	if f.policy == "moves" {
		past = slices.DeleteFunc(past, func(x obj1) bool { return x["prev_topic"] == nil })
	}
	if len(past) > 0 && f.policy != "none" && f.fault != "no past" {
		o["edit_history"] = past
	}
}

func (f *fake) onMessage(method string, id int64, reaction bool, me *fakeUser, v url.Values) (int, obj1) {
	i := slices.IndexFunc(f.messages, func(m *fakeMessage) bool { return m.ID == id && !m.gone })
	if i < 0 {
		return 400, obj1{"code": "BAD_REQUEST"}
	}
	m := f.messages[i]
	if m.Channel == nil && !slices.Contains(m.Others, me.ID) {
		return 400, obj1{"code": "BAD_REQUEST"}
	}
	tell := func(e obj1) {
		for _, id := range sortedKeys(m.told) {
			f.tell(id, e)
		}
	}
	switch {
	case reaction:
		k := fmt.Sprintf("%d unicode_emoji %s", me.ID, v.Get("emoji_name"))
		if m.reactions[k] == (method == "POST") {
			return 400, obj1{"code": "REACTION"}
		}
		set(m.reactions, k, method == "POST")
		op := map[string]string{"POST": "add", "DELETE": "remove"}[method]
		tell(obj1{"type": "reaction", "op": op, "user_id": me.ID, "message_id": m.ID, "reaction_type": "unicode_emoji",
			"emoji_code": v.Get("emoji_name")})
	case method == "DELETE":
		m.gone = true
		for _, u := range f.byID {
			delete(u.unread, m.ID)
			delete(u.starred, m.ID)
		}
		tell(obj1{"type": "delete_message", "message_ids": []int64{m.ID}})
	case v.Has("content"):
		if m.Sender != me.ID {
			return 400, obj1{"code": "BAD_REQUEST"}
		}
		was := m.Content
		m.Content = v.Get("content")
		f.revise(m, me, obj1{"orig_content": was, "orig_rendered_content": "<p>" + was + "</p>", "content": m.Content,
			"rendered_content": "<p>" + m.Content + "</p>"},
			obj1{"prev_content": was, "prev_rendered_content": "<p>" + was + "</p>"})
	case v.Has("topic") && v.Get("topic") != m.Topic:
		was := m.Topic
		m.Topic = v.Get("topic")
		f.revise(m, me, obj1{"orig_subject": was, "subject": m.Topic}, obj1{"prev_topic": was, "topic": m.Topic})
	}
	return 200, nil
}

func (f *fake) flags(me *fakeUser, v url.Values) obj1 {
	var ids []int64
	json.Unmarshal([]byte(v.Get("messages")), &ids)
	add := v.Get("op") == "add"
	for _, id := range ids {
		switch v.Get("flag") {
		case "read":
			set(me.unread, id, !add)
		case "starred":
			set(me.starred, id, add)
		default:
			return nil
		}
	}
	details := obj1{}
	for _, m := range f.messages {
		if o := (obj1{"type": "private"}); slices.Contains(ids, m.ID) {
			if m.Channel != nil {
				o = obj1{"type": "stream", "stream_id": m.Channel.ID, "topic": m.Topic}
			}
			details[strconv.FormatInt(m.ID, 10)] = o
		}
	}
	f.tell(me.ID, obj1{"type": "update_message_flags", "op": v.Get("op"), "flag": v.Get("flag"), "messages": ids,
		"message_details": details})
	return nil
}

func (f *fake) fetch(me *fakeUser, v url.Values) []obj1 {
	var ids []int64
	json.Unmarshal([]byte(v.Get("message_ids")), &ids)
	out := []obj1{}
	for _, m := range f.messages {
		if m.gone || !slices.Contains(ids, m.ID) {
			continue
		}
		o := f.render(m)
		f.history(m, o)
		flags := []string{}
		if !me.unread[m.ID] {
			flags = append(flags, "read")
		}
		if me.starred[m.ID] {
			flags = append(flags, "starred")
		}
		o["flags"] = flags
		out = append(out, o)
	}
	return out
}

func (f *fake) poll(w http.ResponseWriter, v url.Values) {
	last, _ := strconv.ParseInt(v.Get("last_event_id"), 10, 64)
	for {
		f.mu.Lock()
		f.polls++
		q := f.queues[v.Get("queue_id")]
		if q == nil || f.fault == "forget" && f.polls == 60 {
			f.mu.Unlock()
			answer(w, 400, obj1{"code": "BAD_EVENT_QUEUE_ID"})
			return
		}
		for len(q.events) > 0 && q.events[0]["id"].(int64) <= last {
			q.events = q.events[1:]
		}
		events := slices.Clone(q.events)
		b, _ := json.Marshal(events)
		f.mu.Unlock()
		if len(events) > 0 {
			answer(w, 200, obj1{"events": json.RawMessage(b)})
			return
		}
		select {
		case <-q.wake:
		case <-time.After(time.Minute):
		}
	}
}

// keep writes what changes state before it is answered, recover does it again: a crash loses nothing.
func (f *fake) keep(method, path string, me *fakeUser, raw string) {
	if f.file == "" || method == "GET" {
		return
	}
	l, err := os.OpenFile(f.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer l.Close()
	fmt.Fprintf(l, "%s %s %s %s\n", method, path, me.Email, raw)
}

func (f *fake) recover() {
	b, _ := os.ReadFile(f.file)
	file := f.file
	f.file = ""
	defer func() { f.file = file }()
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if f.fault == "forgetful" && len(lines) > 3 {
		// A server that loses its last acknowledged sends in a crash.
		lines = lines[:len(lines)-3]
	}
	for _, line := range lines {
		p := strings.SplitN(line, " ", 4)
		if len(p) == 4 {
			v, _ := url.ParseQuery(p[3])
			f.handle(p[0], p[1], f.users[p[2]], v, p[3])
		}
	}
}

func sortedKeys[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }

func list(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

func set[K comparable](m map[K]bool, k K, on bool) {
	if on {
		m[k] = true
	} else {
		delete(m, k)
	}
}
