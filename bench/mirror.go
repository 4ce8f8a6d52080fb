package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A mirror is what a real client keeps: the state a register answered, changed by every event since. At the end it must
// equal what a fresh register answers; where it does not, an event was missing, wrong or told too much.
//
// What is compared: own subscriptions, users, unread and starred messages, topic policies, user groups, muted users,
// and of the newest messages their text, topic, flags and reactions. What drifts by the protocol's own rules is not:
// weekly traffic, subscriber counts, presence.
type mirror struct {
	me       int64
	subs     map[int64]obj
	users    map[int64]obj
	gone     map[int64]obj // deactivated
	groups   map[int64]obj
	unread   map[int64]bool
	starred  map[int64]bool
	policies map[string]float64
	muted    map[int64]bool
	messages map[int64]*mirrored
	order    []int64 // of messages, oldest first
}

type obj = map[string]any

type mirrored struct {
	content, topic string
	stream         int64
	flags          map[string]bool
	reactions      map[string]bool
}

// mirrorMessages bounds the messages a mirror compares.
const mirrorMessages = 300

func mirrorRegister() params {
	return params{"apply_markdown": true, "client_gravatar": false, "slim_presence": true, "client_capabilities": capabilities,
		"fetch_event_types": []string{"subscription", "stream", "realm_user", "message", "update_message_flags", "starred_messages", "user_topic", "realm_user_groups", "muted_users"}}
}

func newMirror(me int64) *mirror { return &mirror{me: me} }

// start takes a register answer.
func (m *mirror) start(body []byte) error {
	var v struct {
		Subs     []obj   `json:"subscriptions"`
		Users    []obj   `json:"realm_users"`
		Gone     []obj   `json:"realm_non_active_users"`
		Groups   []obj   `json:"realm_user_groups"`
		Starred  []int64 `json:"starred_messages"`
		Policies []obj   `json:"user_topics"`
		Muted    []struct {
			ID int64 `json:"id"`
		} `json:"muted_users"`
		Unread struct {
			PMs     []unreadIDs `json:"pms"`
			Streams []unreadIDs `json:"streams"`
			Huddles []unreadIDs `json:"huddles"`
		} `json:"unread_msgs"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	m.subs, m.users, m.gone, m.groups = byID(v.Subs, "stream_id"), byID(v.Users, "user_id"), byID(v.Gone, "user_id"), byID(v.Groups, "id")
	m.unread, m.starred, m.muted = map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for _, list := range [][]unreadIDs{v.Unread.PMs, v.Unread.Streams, v.Unread.Huddles} {
		for _, u := range list {
			for _, id := range u.IDs {
				m.unread[id] = true
			}
		}
	}
	for _, id := range v.Starred {
		m.starred[id] = true
	}
	for _, u := range v.Muted {
		m.muted[u.ID] = true
	}
	m.policies = map[string]float64{}
	for _, p := range v.Policies {
		m.policies[topicKey(p)] = num(p["visibility_policy"])
	}
	m.messages = map[int64]*mirrored{}
	return nil
}

type unreadIDs struct {
	IDs []int64 `json:"unread_message_ids"`
}

func byID(list []obj, key string) map[int64]obj {
	out := map[int64]obj{}
	for _, o := range list {
		out[int64(num(o[key]))] = o
	}
	return out
}

func num(v any) float64 { f, _ := v.(float64); return f }
func str(v any) string  { s, _ := v.(string); return s }

func ids(v any) []int64 {
	list, _ := v.([]any)
	var out []int64
	for _, x := range list {
		out = append(out, int64(num(x)))
	}
	return out
}

func topicKey(o obj) string {
	return strconv.FormatInt(int64(num(o["stream_id"])), 10) + " " + strings.ToLower(str(o["topic_name"]))
}

// events takes an answer of GET /events.
func (m *mirror) events(body []byte) error {
	var v struct {
		Events []obj `json:"events"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	for _, e := range v.Events {
		if err := m.apply(e); err != nil {
			b, _ := json.Marshal(e)
			return fmt.Errorf("%w: %.400s", err, b)
		}
	}
	return nil
}

func (m *mirror) apply(e obj) error {
	switch str(e["type"]) {
	case "message":
		return m.message(e)
	case "update_message":
		m.updated(e)
	case "delete_message":
		for _, id := range append(ids(e["message_ids"]), int64(num(e["message_id"]))) {
			delete(m.unread, id)
			delete(m.starred, id)
			delete(m.messages, id)
		}
	case "update_message_flags":
		m.flagged(e)
	case "reaction":
		if x := m.messages[int64(num(e["message_id"]))]; x != nil {
			if k := reactionKey(e); str(e["op"]) == "add" {
				x.reactions[k] = true
			} else {
				delete(x.reactions, k)
			}
		}
	case "subscription":
		return m.subscription(e)
	case "stream":
		m.stream(e)
	case "realm_user":
		return m.realmUser(e)
	case "user_group":
		return m.group(e)
	case "user_topic":
		if p := num(e["visibility_policy"]); p == 0 {
			delete(m.policies, topicKey(e))
		} else {
			m.policies[topicKey(e)] = p
		}
	case "muted_users":
		m.muted = map[int64]bool{}
		list, _ := e["muted_users"].([]any)
		for _, x := range list {
			o, _ := x.(obj)
			m.muted[int64(num(o["id"]))] = true
		}
	}
	return nil
}

func reactionKey(e obj) string {
	who := int64(num(e["user_id"]))
	return fmt.Sprintf("%d %s %s", who, str(e["reaction_type"]), str(e["emoji_code"]))
}

func (m *mirror) message(e obj) error {
	o, ok := e["message"].(obj)
	if !ok {
		return errors.New("message event without a message")
	}
	id := int64(num(o["id"]))
	if m.messages[id] != nil {
		return fmt.Errorf("message %d told twice", id)
	}
	x := &mirrored{flags: map[string]bool{}}
	flags, _ := e["flags"].([]any)
	x.read(o, flags)
	m.messages[id] = x
	m.order = append(m.order, id)
	if len(m.order) > mirrorMessages {
		delete(m.messages, m.order[0])
		m.order = m.order[1:]
	}
	if !x.flags["read"] {
		m.unread[id] = true
	}
	if x.flags["starred"] {
		m.starred[id] = true
	}
	return nil
}

func (x *mirrored) read(o obj, flags []any) {
	x.content, x.topic, x.stream = str(o["content"]), str(o["subject"]), int64(num(o["stream_id"]))
	x.flags, x.reactions = map[string]bool{}, map[string]bool{}
	for _, f := range flags {
		x.flags[str(f)] = true
	}
	list, _ := o["reactions"].([]any)
	for _, v := range list {
		if r, ok := v.(obj); ok {
			x.reactions[reactionKey(r)] = true
		}
	}
}

func (m *mirror) updated(e obj) {
	if x := m.messages[int64(num(e["message_id"]))]; x != nil {
		if c, ok := e["rendered_content"].(string); ok {
			x.content = c
		}
		if flags, ok := e["flags"].([]any); ok && e["rendering_only"] != true {
			x.flags = map[string]bool{}
			for _, f := range flags {
				x.flags[str(f)] = true
			}
		}
	}
	for _, id := range ids(e["message_ids"]) {
		x := m.messages[id]
		if x == nil {
			continue
		}
		if t, ok := e["subject"].(string); ok {
			x.topic = t
		}
		if s, ok := e["new_stream_id"].(float64); ok {
			x.stream = int64(s)
		}
	}
}

func (m *mirror) flagged(e obj) {
	flag, add := str(e["flag"]), str(e["op"]) == "add"
	if e["all"] == true && flag == "read" && add {
		m.unread = map[int64]bool{}
		for _, x := range m.messages {
			x.flags["read"] = true
		}
		return
	}
	for _, id := range ids(e["messages"]) {
		if x := m.messages[id]; x != nil {
			set(x.flags, flag, add)
		}
		switch flag {
		case "read":
			set(m.unread, id, !add)
		case "starred":
			set(m.starred, id, add)
		}
	}
}

func set[K comparable](m map[K]bool, k K, on bool) {
	if on {
		m[k] = true
	} else {
		delete(m, k)
	}
}

func (m *mirror) subscription(e obj) error {
	list, _ := e["subscriptions"].([]any)
	switch str(e["op"]) {
	case "add":
		for _, x := range list {
			o, _ := x.(obj)
			m.subs[int64(num(o["stream_id"]))] = o
		}
	case "remove":
		for _, x := range list {
			o, _ := x.(obj)
			id := int64(num(o["stream_id"]))
			if m.subs[id] == nil {
				return fmt.Errorf("subscription removed that was not there: channel %d", id)
			}
			delete(m.subs, id)
		}
	case "update":
		o := m.subs[int64(num(e["stream_id"]))]
		if o == nil {
			return errors.New("update of a subscription that is not there")
		}
		p := str(e["property"])
		o[p] = e["value"]
		if on, ok := e["value"].(bool); ok {
			switch p {
			case "in_home_view":
				o["is_muted"] = !on
			case "is_muted":
				o["in_home_view"] = !on
			}
		}
	}
	return nil
}

func (m *mirror) stream(e obj) {
	if str(e["op"]) != "update" {
		return
	}
	o := m.subs[int64(num(e["stream_id"]))]
	if o == nil {
		return
	}
	o[str(e["property"])] = e["value"]
	for _, k := range []string{"rendered_description", "history_public_to_subscribers", "is_web_public"} {
		if v, ok := e[k]; ok {
			o[k] = v
		}
	}
}

func (m *mirror) realmUser(e obj) error {
	person, _ := e["person"].(obj)
	id := int64(num(person["user_id"]))
	switch str(e["op"]) {
	case "add":
		m.users[id] = person
	case "remove":
		delete(m.users, id)
	case "update":
		if on, ok := person["is_active"].(bool); ok {
			from, to := m.users, m.gone
			if on {
				from, to = m.gone, m.users
			}
			if o := from[id]; o != nil {
				delete(from, id)
				to[id] = o
			}
			return nil
		}
		o := m.users[id]
		if o == nil {
			if o = m.gone[id]; o == nil {
				return fmt.Errorf("update of user %d, who is not there", id)
			}
		}
		for k, v := range person {
			switch k {
			case "new_email":
				o["email"] = v
			case "role":
				role := num(v)
				o["role"], o["is_admin"], o["is_owner"], o["is_guest"] = v, role <= 200, role == 100, role == 600
			case "full_name", "timezone", "delivery_email", "avatar_url", "avatar_version", "bot_owner_id":
				o[k] = v
			}
		}
	}
	return nil
}

func (m *mirror) group(e obj) error {
	id := int64(num(e["group_id"]))
	if str(e["op"]) == "add" {
		g, _ := e["group"].(obj)
		m.groups[int64(num(g["id"]))] = g
		return nil
	}
	g := m.groups[id]
	if g == nil {
		return fmt.Errorf("event of user group %d, which is not there", id)
	}
	change := func(key, of string, add bool) {
		now := map[int64]bool{}
		for _, x := range ids(g[key]) {
			now[x] = true
		}
		for _, x := range ids(e[of]) {
			set(now, x, add)
		}
		list := []any{}
		for _, x := range keys(now) {
			list = append(list, float64(x))
		}
		g[key] = list
	}
	switch str(e["op"]) {
	case "remove":
		delete(m.groups, id)
	case "add_members":
		change("members", "user_ids", true)
	case "remove_members":
		change("members", "user_ids", false)
	case "add_subgroups":
		change("direct_subgroup_ids", "direct_subgroup_ids", true)
	case "remove_subgroups":
		change("direct_subgroup_ids", "direct_subgroup_ids", false)
	case "update":
		data, _ := e["data"].(obj)
		for k, v := range data {
			g[k] = v
		}
	}
	return nil
}
