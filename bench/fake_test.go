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

// A fakeServer is a server in memory with the endpoints that the scenarios need. It meets all guarantees unless fault
// names one to break: a check is tested only if it has failed once.
type fakeServer struct {
	mu       sync.Mutex
	users    map[string]*fakeUser // by email address
	byID     map[int64]*fakeUser
	channels []*fakeChannel
	messages []*fakeMessage
	queues   map[string]*fakeQueue
	fault    string
	policy   string // message_edit_history_visibility_policy; if empty it is not sent, and all edits are shown
	polls    int
	clock    int64  // timestamp of the next edit
	logFile  string // log of requests, for a process that is killed and started again
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
	told      map[int64]bool // users that received it, and so receive its changes
	reactions map[string]bool
	past      []object // earlier versions, newest first, as in edit_history
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

func newFake(fault string) *fakeServer {
	f := &fakeServer{users: map[string]*fakeUser{}, byID: map[int64]*fakeUser{}, queues: map[string]*fakeQueue{},
		fault: fault}
	f.addUser("admin@fake.invalid", "Admin")
	return f
}

func (f *fakeServer) addUser(email, name string) *fakeUser {
	u := &fakeUser{ID: int64(len(f.users) + 10), Email: email, Name: name, unread: map[int64]bool{},
		starred: map[int64]bool{}}
	f.users[email], f.byID[u.ID] = u, u
	return u
}

// serveFake runs a fakeServer as a process, for scenarios that start and kill their server.
func serveFake(args []string) int {
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	data := fs.String("data", "", "")
	listen := fs.String("listen", "", "")
	fs.Bool("demo", false, "")
	fault := fs.String("fault", "", "")
	fs.Parse(args)
	os.MkdirAll(*data, 0o700)
	f := newFake(*fault)
	f.logFile = *data + "/log"
	f.replayLog()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	http.Serve(l, f)
	return 0
}

type object = map[string]any

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func answer(w http.ResponseWriter, status int, out object) {
	if out == nil {
		out = object{}
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

func (f *fakeServer) handle(method, path string, me *fakeUser, v url.Values, raw string) (int, object) {
	switch method + " " + path {
	case "GET server_settings":
		return 200, object{"zulip_version": "fake", "zulip_feature_level": 494}
	case "GET dev_list_users":
		return 200, object{"direct_admins": []object{{"email": "admin@fake.invalid"}}, "direct_users": []object{}}
	case "POST dev_fetch_api_key":
		u := f.users[v.Get("username")]
		if u == nil {
			return 400, object{"code": "BAD_REQUEST"}
		}
		return 200, object{"api_key": "k", "email": u.Email, "user_id": u.ID}
	}
	if method+" "+path == "POST fetch_api_key" {
		if f.users[v.Get("username")] == nil || v.Get("password") != "open sesame" {
			return 400, object{"code": "AUTHENTICATION_FAILED"}
		}
		return 200, object{"api_key": "k"}
	}
	if me == nil {
		return 401, object{"code": "UNAUTHORIZED"}
	}
	f.logRequest(method, path, me, raw)
	switch method + " " + path {
	case "POST users":
		return 200, object{"user_id": f.addUser(v.Get("email"), v.Get("full_name")).ID}
	case "POST users/me/subscriptions":
		return 200, f.subscribe(me, v)
	case "DELETE users/me/subscriptions":
		return 200, f.unsubscribe(me, v)
	case "GET users/me":
		return 200, object{"user_id": me.ID}
	case "GET streams":
		list := []object{}
		for _, c := range f.channels {
			list = append(list, object{"stream_id": c.ID, "name": c.Name})
		}
		return 200, object{"streams": list}
	case "GET users/me/subscriptions":
		return 200, object{"subscriptions": f.subs(me)}
	case "POST register":
		return 200, f.register(me, v)
	case "DELETE events":
		delete(f.queues, v.Get("queue_id"))
		return 200, nil
	case "POST messages":
		return f.send(me, v)
	case "GET messages":
		return 200, object{"messages": f.fetch(me, v)}
	case "POST messages/flags":
		return 200, f.flags(me, v)
	case "POST users/me/presence", "POST typing", "POST users/me/subscriptions/properties", "POST user_topics",
		"PATCH settings":
		return 200, object{"presence_last_update_id": 1}
	}
	if id, rest, ok := strings.Cut(strings.TrimPrefix(path, "messages/"), "/"); strings.HasPrefix(path, "messages/") {
		n, _ := strconv.ParseInt(id, 10, 64)
		return f.handleMessage(method, n, ok && rest == "reactions", me, v)
	}
	return 404, nil
}

func (f *fakeServer) subs(u *fakeUser) []object {
	out := []object{}
	for _, c := range f.channels {
		if c.Subs[u.ID] {
			out = append(out, object{"stream_id": c.ID, "name": c.Name})
		}
	}
	return out
}

func (f *fakeServer) subscribe(me *fakeUser, v url.Values) object {
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
				f.sendEvent(id, object{"type": "subscription", "op": "add",
					"subscriptions": []object{{"stream_id": c.ID, "name": c.Name}}})
			}
		}
	}
	return object{"subscribed": did}
}

func (f *fakeServer) unsubscribe(me *fakeUser, v url.Values) object {
	var names []string
	json.Unmarshal([]byte(v.Get("subscriptions")), &names)
	for _, c := range f.channels {
		if slices.Contains(names, c.Name) && c.Subs[me.ID] {
			delete(c.Subs, me.ID)
			if f.fault != "silent" {
				f.sendEvent(me.ID, object{"type": "subscription", "op": "remove",
					"subscriptions": []object{{"stream_id": c.ID, "name": c.Name}}})
				var left []int64 // messages of channels without subscription count as read
				for _, m := range f.messages {
					if m.Channel == c && me.unread[m.ID] {
						delete(me.unread, m.ID)
						left = append(left, m.ID)
					}
				}
				f.sendEvent(me.ID, object{"type": "update_message_flags", "op": "add", "flag": "read",
					"messages": left})
			}
		}
	}
	return nil
}

func (f *fakeServer) register(me *fakeUser, v url.Values) object {
	q := &fakeQueue{id: fmt.Sprintf("queue-%d", len(f.queues)+1), user: me, acked: -1, wake: make(chan struct{}, 1)}
	json.Unmarshal([]byte(v.Get("event_types")), &q.types)
	f.queues[q.id] = q
	users := []object{}
	for _, u := range f.users {
		users = append(users, object{"user_id": u.ID, "full_name": u.Name, "email": u.Email})
	}
	out := object{"queue_id": q.id, "last_event_id": -1, "subscriptions": f.subs(me), "realm_users": users,
		"starred_messages": sortedKeys(me.starred),
		"unread_msgs":      f.unreadOf(me)}
	if f.policy != "" {
		out["realm_message_edit_history_visibility_policy"] = f.policy
	}
	return out
}

func (f *fakeServer) unreadOf(me *fakeUser) object {
	streams, pms := []object{}, []object{}
	for _, m := range f.messages {
		switch {
		case !me.unread[m.ID]:
		case m.Channel != nil:
			streams = append(streams, object{"stream_id": m.Channel.ID, "topic": m.Topic,
				"unread_message_ids": []int64{m.ID}})
		default:
			pms = append(pms, object{"unread_message_ids": []int64{m.ID}})
		}
	}
	return object{"streams": streams, "pms": pms}
}

// sendEvent adds an event to every queue of a user.
func (f *fakeServer) sendEvent(user int64, e object) {
	for _, q := range f.queues {
		if q.user.ID != user || len(q.types) > 0 && !slices.Contains(q.types, e["type"].(string)) {
			continue
		}
		x := object{"id": q.next}
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

func (f *fakeServer) send(me *fakeUser, v url.Values) (int, object) {
	m := &fakeMessage{ID: int64(len(f.messages) + 100), Sender: me.ID, Topic: v.Get("topic"),
		Content: v.Get("content"), reactions: map[string]bool{}}
	to := map[int64]bool{}
	if v.Get("type") == "channel" {
		i := slices.IndexFunc(f.channels, func(c *fakeChannel) bool {
			return strconv.FormatInt(c.ID,
				10) == v.Get("to")
		})
		if i < 0 {
			return 400, object{"code": "STREAM_DOES_NOT_EXIST"}
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
	f.deliverFaulty(m, to, n)
	return 200, object{"id": m.ID}
}

// deliverFaulty delivers a message and sometimes violates the guarantee that fault names.
func (f *fakeServer) deliverFaulty(m *fakeMessage, to map[int64]bool, n int) {
	if f.fault == "leak" && n >= 5 { // the fault affects one of the messages
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
		f.sendEvent(id, f.event(m))
		if f.fault == "duplicate" && n == 5 {
			f.sendEvent(id, f.event(m))
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

func (f *fakeServer) event(m *fakeMessage) object {
	return object{"type": "message", "flags": []string{}, "message": f.render(m)}
}

func (f *fakeServer) render(m *fakeMessage) object {
	o := object{"id": m.ID, "sender_id": m.Sender, "content": "<p>" + m.Content + "</p>", "subject": m.Topic}
	if m.Channel != nil {
		o["type"], o["stream_id"] = "stream", m.Channel.ID
	}
	rs := []object{}
	for _, k := range list(m.reactions) {
		p := strings.Split(k, " ")
		id, _ := strconv.Atoi(p[0])
		rs = append(rs, object{"user_id": id, "reaction_type": p[1], "emoji_code": p[2]})
	}
	o["reactions"] = rs
	return o
}

// revise sends the event of a changed message and stores its earlier version.
func (f *fakeServer) revise(m *fakeMessage, me *fakeUser, event, entry object) {
	f.clock++
	entry["user_id"], entry["timestamp"] = me.ID, f.clock
	event["type"], event["message_id"], event["message_ids"] = "update_message", m.ID, []int64{m.ID}
	event["user_id"], event["edit_timestamp"] = me.ID, f.clock
	m.past = append([]object{entry}, m.past...)
	for _, id := range sortedKeys(m.told) {
		f.sendEvent(id, event)
	}
}

// history adds the members of GET /messages that describe earlier versions of a message.
func (f *fakeServer) history(m *fakeMessage, o object) {
	for _, x := range slices.Backward(m.past) { // the newest entry overwrites the others
		for k, of := range map[string]string{"last_edit_timestamp": "prev_content",
			"last_moved_timestamp": "prev_topic"} {
			if x[of] != nil {
				o[k] = x["timestamp"]
			}
		}
	}
	past := slices.Clone(m.past)
	if f.policy == "moves" {
		past = slices.DeleteFunc(past, func(x object) bool { return x["prev_topic"] == nil })
	}
	if len(past) > 0 && f.policy != "none" && f.fault != "no past" {
		o["edit_history"] = past
	}
}

func (f *fakeServer) handleMessage(method string, id int64, reaction bool, me *fakeUser, v url.Values) (int, object) {
	i := slices.IndexFunc(f.messages, func(m *fakeMessage) bool { return m.ID == id && !m.gone })
	if i < 0 {
		return 400, object{"code": "BAD_REQUEST"}
	}
	m := f.messages[i]
	if m.Channel == nil && !slices.Contains(m.Others, me.ID) {
		return 400, object{"code": "BAD_REQUEST"}
	}
	tell := func(e object) {
		for _, id := range sortedKeys(m.told) {
			f.sendEvent(id, e)
		}
	}
	switch {
	case reaction:
		k := fmt.Sprintf("%d unicode_emoji %s", me.ID, v.Get("emoji_name"))
		if m.reactions[k] == (method == "POST") {
			return 400, object{"code": "REACTION"}
		}
		setMember(m.reactions, k, method == "POST")
		op := map[string]string{"POST": "add", "DELETE": "remove"}[method]
		tell(object{"type": "reaction", "op": op, "user_id": me.ID, "message_id": m.ID,
			"reaction_type": "unicode_emoji",
			"emoji_code":    v.Get("emoji_name")})
	case method == "DELETE":
		m.gone = true
		for _, u := range f.byID {
			delete(u.unread, m.ID)
			delete(u.starred, m.ID)
		}
		tell(object{"type": "delete_message", "message_ids": []int64{m.ID}})
	case v.Has("content"):
		if m.Sender != me.ID {
			return 400, object{"code": "BAD_REQUEST"}
		}
		was := m.Content
		m.Content = v.Get("content")
		f.revise(m, me, object{"orig_content": was, "orig_rendered_content": "<p>" + was + "</p>", "content": m.Content,
			"rendered_content": "<p>" + m.Content + "</p>"},
			object{"prev_content": was, "prev_rendered_content": "<p>" + was + "</p>"})
	case v.Has("topic") && v.Get("topic") != m.Topic:
		was := m.Topic
		m.Topic = v.Get("topic")
		f.revise(m, me, object{"orig_subject": was, "subject": m.Topic}, object{"prev_topic": was, "topic": m.Topic})
	}
	return 200, nil
}

func (f *fakeServer) flags(me *fakeUser, v url.Values) object {
	var ids []int64
	json.Unmarshal([]byte(v.Get("messages")), &ids)
	add := v.Get("op") == "add"
	for _, id := range ids {
		switch v.Get("flag") {
		case "read":
			setMember(me.unread, id, !add)
		case "starred":
			setMember(me.starred, id, add)
		default:
			return nil
		}
	}
	details := object{}
	for _, m := range f.messages {
		if o := (object{"type": "private"}); slices.Contains(ids, m.ID) {
			m.told[me.ID] = true // flags make a message the user's own, and its changes are events for the user
			if m.Channel != nil {
				o = object{"type": "stream", "stream_id": m.Channel.ID, "topic": m.Topic}
			}
			details[strconv.FormatInt(m.ID, 10)] = o
		}
	}
	f.sendEvent(me.ID, object{"type": "update_message_flags", "op": v.Get("op"), "flag": v.Get("flag"), "messages": ids,
		"message_details": details})
	return nil
}

func (f *fakeServer) fetch(me *fakeUser, v url.Values) []object {
	var ids []int64
	out := []object{}
	json.Unmarshal([]byte(v.Get("message_ids")), &ids)
	anchor, _ := strconv.ParseInt(v.Get("anchor"), 10, 64)
	after, _ := strconv.Atoi(v.Get("num_after"))
	var narrow []struct{ Operand int64 }
	json.Unmarshal([]byte(v.Get("narrow")), &narrow)
	inNarrow := func(m *fakeMessage) bool {
		return len(narrow) == 1 && m.Channel != nil && m.Channel.ID == narrow[0].Operand && m.ID >= anchor &&
			len(out) <= after
	}
	for no, m := range f.messages {
		if m.gone || !slices.Contains(ids, m.ID) && !inNarrow(m) || f.fault == "unstored" && no == 5 {
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

func (f *fakeServer) poll(w http.ResponseWriter, v url.Values) {
	last, _ := strconv.ParseInt(v.Get("last_event_id"), 10, 64)
	for {
		f.mu.Lock()
		f.polls++
		q := f.queues[v.Get("queue_id")]
		if q == nil || f.fault == "forget" && f.polls == 60 {
			f.mu.Unlock()
			answer(w, 400, object{"code": "BAD_EVENT_QUEUE_ID"})
			return
		}
		for len(q.events) > 0 && q.events[0]["id"].(int64) <= last {
			q.events = q.events[1:]
		}
		events := slices.Clone(q.events)
		b, _ := json.Marshal(events)
		f.mu.Unlock()
		if len(events) > 0 {
			answer(w, 200, object{"events": json.RawMessage(b)})
			return
		}
		select {
		case <-q.wake:
		case <-time.After(time.Minute):
		}
	}
}

// logRequest writes a request that changes state before it is answered; replayLog repeats the logged requests after a
// restart. So a crash loses nothing.
func (f *fakeServer) logRequest(method, path string, me *fakeUser, raw string) {
	if f.logFile == "" || method == "GET" {
		return
	}
	l, err := os.OpenFile(f.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer l.Close()
	fmt.Fprintf(l, "%s %s %s %s\n", method, path, me.Email, raw)
}

func (f *fakeServer) replayLog() {
	b, _ := os.ReadFile(f.logFile)
	file := f.logFile
	f.logFile = ""
	defer func() { f.logFile = file }()
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

func setMember[K comparable](m map[K]bool, k K, on bool) {
	if on {
		m[k] = true
	} else {
		delete(m, k)
	}
}
