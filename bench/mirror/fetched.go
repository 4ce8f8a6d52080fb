package mirror

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Attachments stores an answer of GET /attachments, which no register contains; events update it from then on.
func (m *Mirror) Attachments(body []byte) error {
	var v struct {
		Attachments []Object `json:"attachments"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	t := map[string]Object{}
	for _, o := range v.Attachments {
		t[idText(o["id"])] = o
	}
	// upload_space_used is not compared: it counts the files of all users, without events for those of other users.
	m.tables["attachments"] = t
	return nil
}

func (m *Mirror) attachment(e Object) error {
	o := object(e["attachment"])
	if str(e["op"]) == "remove" {
		return m.drop("attachments", idText(o["id"]))
	}
	if there := m.tables["attachments"][idText(o["id"])] != nil; m.tables["attachments"] != nil &&
		there != (str(e["op"]) == "update") {
		return fmt.Errorf("attachment %s exists already: %v", idText(o["id"]), there)
	}
	m.put("attachments", idText(o["id"]), o)
	return nil
}

// A Fetch is an endpoint that returns a part of a register.
type Fetch struct {
	Name   string
	Params Object
	key    string // member of the answer
	part   string
}

// Fetches are the endpoints that are compared.
var Fetches = []Fetch{
	{"GET /drafts", nil, "drafts", "drafts"},
	{"GET /saved_snippets", nil, "saved_snippets", "saved_snippets"},
	{"GET /scheduled_messages", nil, "scheduled_messages", "scheduled_messages"},
	{"GET /reminders", nil, "reminders", "reminders"},
	{"GET /navigation_views", nil, "navigation_views", "navigation_views"},
	{"GET /channel_folders", Object{"include_archived": true}, "channel_folders", "channel_folders"},
	{"GET /realm/domains", nil, "domains", "realm_domains"},
	{"GET /realm/emoji", nil, "emoji", "realm_emoji"},
	{"GET /user_groups", Object{"include_deactivated_groups": true}, "user_groups", "realm_user_groups"},
	{"GET /users/me/subscriptions", nil, "subscriptions", "subscriptions"},
	{"GET /users/me/alert_words", nil, "alert_words", "alert_words"},
	{"GET /realm/linkifiers", nil, "linkifiers", "realm_linkifiers"},
	{"GET /realm/profile_fields", nil, "custom_fields", "custom_profile_fields"},
}

// DiffFetched compares the state with an answer of such an endpoint.
func (m *Mirror) DiffFetched(f Fetch, body []byte) error {
	var v Object
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	if f.part == "realm_linkifiers" && !m.client.Caps["linkifier_url_template"] {
		return nil // this client gets no linkifiers by events
	}
	t := m.tables[f.part]
	if t == nil {
		x, ok := m.flat[f.part]
		if a, b := canonical(x), canonical(v[f.key]); ok && a != b {
			return fmt.Errorf("%s by events, %s by %s", a, b, f.Name)
		}
		return nil
	}
	if f.part == "subscriptions" { // only a register contains subscriptions to archived channels
		t = maps.Clone(t)
		maps.DeleteFunc(t, func(_ string, o Object) bool { return o["is_archived"] == true })
	}
	fresh := map[string]Object{}
	if all, ok := v[f.key].(Object); ok {
		for k, o := range all {
			fresh[k] = object(o)
		}
	}
	list, _ := v[f.key].([]any)
	for _, o := range list {
		o := object(o)
		if f.part == "realm_user_groups" && o["deactivated"] == true && !m.client.Caps["include_deactivated_groups"] {
			continue
		}
		if o["topic"] == "" && !m.client.Caps["empty_topic_name"] { // these endpoints return the stored name
			o["topic"] = m.flat["realm_empty_topic_display_name"]
		}
		fresh[keyOf(f.part, listTables[f.part], o)] = o
	}
	if err := m.diffTables(t, fresh); err != nil {
		return fmt.Errorf("%s (by register means by %s)", err, f.Name)
	}
	return nil
}

// An editHistory is the first version of a message and its edits, as far as events contained them.
type editHistory struct {
	topic   string
	content any // rendered or source text, as the client gets it
	edits   []Object
}

// recordEdit adds an event to the history of a message.
func (m *Mirror) recordEdit(id int64, e Object) {
	p, _ := m.messages[id][historyKey].(*editHistory)
	if p == nil || e["rendering_only"] == true {
		return
	}
	x := Object{}
	for _, k := range []string{"user_id", "edit_timestamp", "new_stream_id", "stream_id", "orig_subject", "subject"} {
		x[k] = e[k]
	}
	if x["new_stream_id"] == nil {
		delete(x, "stream_id")
	} else if x["orig_subject"] == x["subject"] {
		delete(x, "subject") // the message only took over the spelling of another
	}
	if id == Int(e["message_id"]) && e["orig_content"] != nil {
		for _, k := range []string{"content", "rendered_content", "orig_content", "orig_rendered_content"} {
			x[k] = e[k]
		}
	}
	p.edits = append(p.edits, x)
}

// historyKey is the member of a message that holds its editHistory.
const historyKey = "(past)"

// visibleEdits returns the edits that the organization's policy shows to users.
func (m *Mirror) visibleEdits(p *editHistory) (out []Object) {
	for _, x := range p.edits {
		if m.policy() == "all" || x["new_stream_id"] != nil || x["subject"] != nil {
			out = append(out, x)
		}
	}
	return out
}

func (m *Mirror) policy() string { return str(m.flat["realm_message_edit_history_visibility_policy"]) }

// MessagesWithHistory returns the messages that were edited and whose whole history is known.
func (m *Mirror) MessagesWithHistory() (out []int64) {
	for _, id := range m.Messages() {
		if p, _ := m.messages[id][historyKey].(*editHistory); p != nil && len(p.edits) > 0 {
			out = append(out, id)
		}
	}
	return out
}

// DiffHistory compares the history of a message with an answer of GET /messages/{message_id}/history.
func (m *Mirror) DiffHistory(id int64, status int, body []byte) error {
	if none := m.policy() == "none"; none || status != 200 {
		if none != (status == 400) {
			return fmt.Errorf("policy %q: %d %s", m.policy(), status, body)
		}
		return nil
	}
	var v struct {
		History []Object `json:"message_history"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	o := m.messages[id]
	p := o[historyKey].(*editHistory)
	edits := m.visibleEdits(p)
	if len(v.History) != len(edits)+1 {
		return fmt.Errorf("%d edits by events, %d entries by history: %s, %s", len(edits), len(v.History),
			canonical(edits), canonical(v.History))
	}
	html := str(o["content_type"]) == "text/html"
	content := func(x Object) any {
		if html {
			return x["rendered_content"]
		}
		return x["content"]
	}
	at := Object{"topic": p.topic, "content": p.content, "timestamp": o["timestamp"], "user_id": o["sender_id"]}
	if m.policy() == "moves" {
		at["content"] = o["content"]
	}
	want := []Object{at}
	for _, x := range edits {
		next := Object{"topic": at["topic"], "content": at["content"]}
		maps.Copy(next, m.revision(x))
		if next["prev_content"] != nil {
			next["content"] = content(x)
		}
		at = next
		want = append(want, at)
	}
	for i, got := range v.History {
		g := Object{"content": content(got)}
		for _, k := range []string{"timestamp", "user_id", "topic", "prev_topic", "prev_stream", "stream",
			"prev_content", "prev_rendered_content"} {
			if x, ok := got[k]; ok {
				g[k] = x
			}
		}
		// A move includes every spelling of a topic, but the event contains one.
		for _, k := range []string{"topic", "prev_topic"} {
			if a, b := str(want[i][k]), str(g[k]); strings.EqualFold(a, b) && want[i][k] != nil {
				g[k] = want[i][k]
			}
		}
		if a, b := canonical(want[i]), canonical(g); a != b {
			return fmt.Errorf("entry %d: %s by events, %s by history", i, a, b)
		}
	}
	return nil
}

// revision returns the members that both the history endpoint and edit_history contain for an edit.
func (m *Mirror) revision(x Object) Object {
	o := Object{"timestamp": x["edit_timestamp"], "user_id": x["user_id"]}
	if x["subject"] != nil {
		o["prev_topic"], o["topic"] = x["orig_subject"], x["subject"]
	}
	if x["new_stream_id"] != nil {
		o["prev_stream"], o["stream"] = x["stream_id"], x["new_stream_id"]
	}
	if x["orig_content"] != nil && m.policy() == "all" {
		o["prev_content"], o["prev_rendered_content"] = x["orig_content"], x["orig_rendered_content"]
	}
	return o
}

// diffRevisions compares the history of a message with its edit_history in GET /messages, newest first.
func (m *Mirror) diffRevisions(p *editHistory, fetched Object) error {
	if m.policy() == "" {
		return nil // some servers do not have the policy
	}
	var edits []Object
	if m.policy() != "none" {
		edits = m.visibleEdits(p)
	}
	got := objects(fetched["edit_history"])
	if len(got) != len(edits) {
		return fmt.Errorf("%d edits by events, edit_history has %d: %s, %s", len(edits), len(got), canonical(edits),
			canonical(fetched["edit_history"]))
	}
	for i, x := range edits {
		want, g := m.revision(x), maps.Clone(got[len(got)-1-i])
		// Servers differ in whether listings contain the HTML of earlier versions.
		delete(want, "prev_rendered_content")
		delete(g, "prev_rendered_content")
		if a, b := canonical(want), canonical(g); !strings.EqualFold(a, b) {
			return fmt.Errorf("edit %d: %s by events, %s by edit_history", i, a, b)
		}
	}
	return nil
}

// Read reports whether read receipts show asker that the user of this client has read a message. known is false if
// the client does not have the message.
func (m *Mirror) Read(id, asker int64) (read, known bool) {
	o := m.messages[id]
	if o == nil || hasFlag(o, "historical") {
		return false, false
	}
	shows := object(m.flat["user_settings"])["send_read_receipts"] == true
	return shows && hasFlag(o, "read") && Int(o["sender_id"]) != m.me && !m.Muted(asker), true
}

// Muted reports whether the user of this client has muted user.
func (m *Mirror) Muted(user int64) bool { return m.tables["muted_users"][idText(float64(user))] != nil }
