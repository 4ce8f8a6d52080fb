package server

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// The rows of testdata/matrix_scopes.txt say, for each endpoint, which right a scoped key needs, and whether a key that
// is limited to channels is allowed to use it. They are written by hand, so that a changed table of the server is seen.

type scopeRow struct {
	right  string // "none": no scoped key
	places bool
}

func readScopeTable(t *testing.T) map[string]scopeRow {
	t.Helper()
	text, err := os.ReadFile("testdata/matrix_scopes.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]scopeRow{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && f[0] != "#" {
			table[f[0]+" "+f[1]] = scopeRow{f[2], f[3] == "yes"}
		}
	}
	return table
}

// scopedUser returns a user with another key.
func (s *matrixStage) scopedUser(p *matrixUser, scope *realm.KeyScope) *matrixUser {
	s.Helper()
	k, err := realm.Execute(s.orgs, ours, realm.System, realm.AddKey{User: realm.UserID(p.id), Label: "agent",
		Scope: scope})
	if err != nil {
		s.Fatal(err)
	}
	out := *p
	out.name, out.key, out.last, out.queue = p.name+" with "+scope.String(), k.Secret, -1, ""
	return &out
}

// pathOf returns a path of an endpoint for objects that do not exist.
func pathOf(e *wire.Endpoint) string {
	parts := strings.Split(e.Path, "/")
	for i, p := range parts {
		switch {
		case strings.HasSuffix(p, "_id}"):
			parts[i] = fmt.Sprint(missingID)
		case strings.HasPrefix(p, "{"):
			parts[i] = "none"
		}
	}
	return strings.Join(parts, "/")
}

// TestScopedKeysAtEveryEndpoint sends a request to every endpoint with keys of an owner that have one right each, and
// with keys that are limited to channels, endpoints and networks. Requests that a key is allowed to send are only sent
// if they change nothing.
func TestScopedKeysAtEveryEndpoint(t *testing.T) {
	s := newMatrixStage(t, newCoverage(byKey))
	owner, table := s.by["owner"], readScopeTable(t)
	var narrow []string
	for _, r := range realm.KeyRights {
		if r != realm.RightMark && r != realm.RightManage {
			narrow = append(narrow, r)
		}
	}
	placed := s.scopedUser(owner, &realm.KeyScope{Rights: narrow, Places: []realm.KeyPlace{}})
	elsewhere := s.scopedUser(owner, &realm.KeyScope{Rights: realm.KeyRights, Networks: []string{"198.51.100.0/24"}})
	single := s.scopedUser(owner, &realm.KeyScope{Rights: realm.KeyRights, Endpoints: []string{"GET /users/me"}})
	byRight := map[string]*matrixUser{}
	for _, r := range realm.KeyRights {
		byRight[r] = s.scopedUser(owner, &realm.KeyScope{Rights: []string{r}})
	}
	asked := 0
	refused := func(p *matrixUser, e *wire.Endpoint) bool {
		asked++
		var params []any
		if e.APIKeyInQuery {
			params = append(params, "api_key", p.key)
		}
		r := s.send(p, e.Method, pathOf(e), params...)
		return r.status == 403 && (r.body["code"] == "API_KEY_SCOPE" || e.Method == "HEAD" || e.Method == "OPTIONS")
	}
	for _, e := range wire.Endpoints() {
		if e.Open || e.Dev {
			continue
		}
		row, ok := table[e.Name()]
		if !ok {
			t.Errorf("%s: add a row to testdata/matrix_scopes.txt with the right that scoped keys need", e.Name())
			continue
		}
		delete(table, e.Name())
		changes := row.right == realm.RightManage || row.right == realm.RightMark || row.right == realm.RightUpload
		for _, r := range realm.KeyRights {
			if want := r != row.right; (want || !changes) && refused(byRight[r], &e) != want {
				t.Errorf("%s by a key with only the right %s: refused %t", e.Name(), r, !want)
			}
		}
		if want := row.right == "none" || !row.places; (want || !changes) && refused(placed, &e) != want {
			t.Errorf("%s by a key that is limited to channels: refused %t", e.Name(), !want)
		}
		if !refused(elsewhere, &e) {
			t.Errorf("%s from another network is not refused", e.Name())
		}
		if want := e.Name() != "GET /users/me"; refused(single, &e) != want {
			t.Errorf("%s by a key for one endpoint: refused %t", e.Name(), !want)
		}
	}
	for name := range table {
		t.Errorf("there is no endpoint %s: remove its row", name)
	}
	t.Logf("%d requests", asked)
}

// secretWord is in everything that is outside the scope: names, topics, texts and files.
const secretWord = "zanzibar"

// scopePlaces makes two topics in a channel, a channel and a direct conversation, and returns the messages.
func (s *matrixStage) scopePlaces(p *matrixUser) (channel, hidden int64, inside int64, outside []int64) {
	s.Helper()
	create := func(name string) int64 {
		return s.must(p, "POST", "/channels/create", "name", name, "description", name, "subscribers",
			[]int64{p.id, s.keeper.id}).int("id")
	}
	channel, hidden = create("release"), create(secretWord+" channel")
	post := func(from *matrixUser, to int64, topic, text string) int64 {
		return s.must(from, "POST", "/messages", "type", "channel", "to", to, "topic", topic, "content", text).int("id")
	}
	inside = post(s.keeper, channel, "deploy", "visible words")
	outside = append(outside, post(s.keeper, channel, secretWord, secretWord+" one"),
		post(s.keeper, hidden, "deploy", secretWord+" two"),
		s.must(s.keeper, "POST", "/messages", "type", "direct", "to", []int64{p.id}, "content",
			secretWord+" three").int("id"))
	moved := post(s.keeper, channel, secretWord+" before", "moved words")
	s.must(s.keeper, "PATCH", fmt.Sprintf("/messages/%d", moved), "topic", "deploy", "propagate_mode", "change_all",
		"send_notification_to_old_thread", false, "send_notification_to_new_thread", false)
	file, _ := s.must(p, "POST", "/user_uploads", "file", secretWord).body["url"].(string)
	outside = append(outside, post(p, channel, secretWord, "[x]("+file+")"))
	return channel, hidden, inside, outside
}

// TestScopedKeySeesNothingElse asks every endpoint that a key with a topic is allowed to use for objects inside and
// outside of the topic. No answer and no event contains anything of the outside.
func TestScopedKeySeesNothingElse(t *testing.T) {
	s := newMatrixStage(t, newCoverage(byKey))
	owner, topic := s.by["owner"], "deploy"
	channel, hidden, inside, outside := s.scopePlaces(owner)
	key := s.scopedUser(owner, &realm.KeyScope{Rights: []string{"read", "send", "react", "edit", "upload", "remind"},
		Places: []realm.KeyPlace{{Channel: realm.ChannelID(channel), Topic: &topic}}})
	clean := func(what string, r reply) reply {
		t.Helper()
		if strings.Contains(r.raw, secretWord) {
			t.Errorf("%s shows what is outside of the key: %s", what, r.raw)
		}
		return r
	}
	reg := clean("register", s.must(key, "POST", "/register"))
	queue, _ := reg.body["queue_id"].(string)
	whole, _ := s.must(owner, "POST", "/register").body["queue_id"].(string)
	if r := s.send(key, "DELETE", "/events", "queue_id", whole); r.body["code"] != "BAD_EVENT_QUEUE_ID" {
		t.Errorf("the key closes the queue of another client: %s", r.raw)
	}
	narrows := []any{[]any{}, []any{map[string]any{"operator": "channels", "operand": "public"}},
		[]any{map[string]any{"operator": "is", "operand": "dm"}},
		[]any{map[string]any{"operator": "channel", "operand": hidden}},
		[]any{map[string]any{"operator": "with", "operand": outside[0]}},
		[]any{map[string]any{"operator": "search", "operand": secretWord}},
		[]any{map[string]any{"operator": "has", "operand": "attachment"}},
		[]any{map[string]any{"operator": "topic", "operand": "deploy", "negated": true}}}
	for _, narrow := range narrows {
		r := clean(fmt.Sprint("narrow ", narrow), s.send(key, "GET", "/messages", "anchor", "newest", "num_before", 100,
			"num_after", 0, "narrow", narrow))
		for _, id := range ids(r.body["messages"], "id") {
			if slices.Contains(outside, id) {
				t.Errorf("narrow %v has message %d", narrow, id)
			}
		}
	}
	all := append(slices.Clone(outside), inside)
	byID := clean("messages by id", s.must(key, "GET", "/messages", "message_ids", all))
	if got := ids(byID.body["messages"], "id"); !slices.Equal(got, []int64{inside}) {
		t.Errorf("messages by id: %v", got)
	}
	for _, path := range []string{"/streams?include_all=true", "/streams", fmt.Sprintf("/streams/%d", channel),
		fmt.Sprintf("/streams/%d/members", channel), fmt.Sprintf("/users/me/%d/topics", channel), "/users", "/users/me",
		"/realm/emoji", "/realm/linkifiers", fmt.Sprintf("/messages/%d", inside)} {
		clean(path, s.must(key, "GET", path))
	}
	for _, id := range outside {
		for _, x := range []struct {
			method, path string
			params       pairs
		}{
			{"GET", "/messages/%d", nil}, {"GET", "/messages/%d/read_receipts", nil}, {"DELETE", "/messages/%d", nil},
			{"PATCH", "/messages/%d", pairs{"content", "x"}},
			{"POST", "/messages/%d/reactions", pairs{"emoji_name", "wave"}},
			{"DELETE", "/messages/%d/reactions", pairs{"emoji_name", "wave"}},
		} {
			if r := clean(x.path, s.send(key, x.method, fmt.Sprintf(x.path, id), x.params...)); r.status < 400 {
				t.Errorf("%s %s: %s", x.method, x.path, r.raw)
			}
		}
		for path, params := range map[string]pairs{
			"/reminders":  {"message_id", id, "scheduled_delivery_timestamp", s.now.Load() + 100},
			"/submessage": {"message_id", id, "msg_type", "widget", "content", vote}} {
			if r := clean(path, s.send(key, "POST", path, params...)); r.status < 400 {
				t.Errorf("%s: %s", path, r.raw)
			}
		}
	}
	for _, to := range []pairs{{"type", "channel", "to", channel, "topic", secretWord},
		{"type", "channel", "to", hidden, "topic", "deploy"}, {"type", "direct", "to", []int64{s.keeper.id}}} {
		if r := s.send(key, "POST", "/messages", append(to, "content", "x")...); r.status < 400 {
			t.Errorf("send %v: %s", to, r.raw)
		}
	}
	for _, path := range []string{fmt.Sprintf("/streams/%d", hidden), fmt.Sprintf("/users/me/%d/topics", hidden),
		"/get_stream_id?stream=" + secretWord + "%20channel"} {
		if r := s.send(key, "GET", path); r.status < 400 {
			t.Errorf("%s: %s", path, r.raw)
		}
	}
	s.eventsInScope(key, queue, channel, hidden, inside, outside)
}

// eventsInScope changes things inside and outside of the scope and reads the events of the key's queue.
func (s *matrixStage) eventsInScope(key *matrixUser, queue string, channel, hidden, inside int64, outside []int64) {
	s.Helper()
	post := func(to int64, topic, text string) int64 {
		return s.must(s.keeper, "POST", "/messages", "type", "channel", "to", to, "topic", topic, "content",
			text).int("id")
	}
	post(channel, "deploy", "heard words")
	post(channel, secretWord, secretWord)
	post(hidden, "deploy", secretWord)
	leaving := post(channel, "deploy", "leaving words")
	for _, id := range append(slices.Clone(outside[:2]), inside) {
		path := fmt.Sprintf("/messages/%d", id)
		text := "edited words"
		if id != inside {
			text = secretWord + " edited"
		}
		s.must(s.keeper, "PATCH", path, "content", text)
		s.must(s.keeper, "POST", path+"/reactions", "emoji_name", "wave")
	}
	s.must(s.keeper, "PATCH", fmt.Sprintf("/messages/%d", leaving), "topic", secretWord, "propagate_mode", "change_one",
		"send_notification_to_old_thread", false, "send_notification_to_new_thread", false)
	s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", hidden), "description", secretWord+" described")
	s.must(s.keeper, "POST", "/channels/create", "name", secretWord+" later", "subscribers", []int64{key.id})
	s.must(s.by["owner"], "POST", "/bots", "full_name", secretWord, "short_name", "made")
	s.must(s.keeper, "DELETE", fmt.Sprintf("/messages/%d", outside[0]))
	r := s.fetch(key, queue)
	seen := map[string]int{}
	for _, e := range objects(r.body["events"]) {
		seen[fmt.Sprint(e["type"])]++
	}
	if strings.Contains(strings.ReplaceAll(r.raw, `"full_name":"`+secretWord+`"`, ""), secretWord) ||
		strings.Contains(r.raw, "api_key") {
		s.Errorf("an event is outside of the key: %s", r.raw)
	}
	for what, want := range map[string]int{"message": 2, "update_message": 1, "delete_message": 1, "reaction": 0,
		"stream": 0, "subscription": 0, "realm_bot": 0} {
		if seen[what] != want {
			s.Errorf("%d events %s instead of %d: %s", seen[what], what, want, r.raw)
		}
	}
}

// TestScopedKeyWithoutChannelsGetsNoKeys checks that the state and the events of a reading key have no API keys.
func TestScopedKeyWithoutChannelsGetsNoKeys(t *testing.T) {
	s := newMatrixStage(t, newCoverage(byKey))
	key := s.scopedUser(s.by["owner"], &realm.KeyScope{Rights: []string{"read"}})
	s.must(s.by["owner"], "POST", "/bots", "full_name", "Robo", "short_name", "robo")
	r := s.must(key, "POST", "/register")
	queue, _ := r.body["queue_id"].(string)
	if strings.Contains(r.raw, `"api_key"`) || r.body["realm_bots"] != nil {
		t.Error("the registration has API keys")
	}
	if r.body["streams"] == nil || r.body["realm_users"] == nil {
		t.Error("the registration lacks channels or users")
	}
	s.must(s.by["owner"], "POST", "/bots", "full_name", "Robo 2", "short_name", "robo2")
	if r := s.fetch(key, queue); strings.Contains(r.raw, "api_key") || !strings.Contains(r.raw, "realm_user") {
		t.Errorf("events: %s", r.raw)
	}
}

// TestScopedKeysOfTwoTopics opens queues with two keys of a user whose scopes differ only in their topic. Each queue
// gets the events of its own topic, also if the other queue was opened before.
func TestScopedKeysOfTwoTopics(t *testing.T) {
	s := newMatrixStage(t, newCoverage(byKey))
	owner := s.by["owner"]
	channel, _, _, _ := s.scopePlaces(owner)
	queues, keys := map[string]string{}, map[string]*matrixUser{}
	topics := []string{"deploy", "salaries"}
	for _, topic := range topics {
		keys[topic] = s.scopedUser(owner, &realm.KeyScope{Rights: []string{"read"},
			Places: []realm.KeyPlace{{Channel: realm.ChannelID(channel), Topic: &topic}}})
		queues[topic], _ = s.must(keys[topic], "POST", "/register").body["queue_id"].(string)
	}
	for _, topic := range topics {
		s.must(s.keeper, "POST", "/messages", "type", "channel", "to", channel, "topic", topic, "content",
			"about "+topic)
	}
	for i, topic := range topics {
		r := s.fetch(keys[topic], queues[topic])
		if other := topics[1-i]; strings.Contains(r.raw, other) || !strings.Contains(r.raw, "about "+topic) {
			t.Errorf("the events of the key for %s: %s", topic, r.raw)
		}
	}
}
