package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestProtocolDetails checks details that the protocol's documentation mentions, with requests to the real program.
func TestProtocolDetails(t *testing.T) {
	k := newDemoClient(t)
	for _, x := range []struct {
		name  string
		check func(t *testing.T, k *demoClient)
	}{
		{"anchor dates", detailAnchorDates},
		{"quoted channel colours", detailQuotedColours},
		{"names and passwords of accounts", detailAccountNames},
		{"order of refusals", detailOrderOfRefusals},
		{"impossible ids", detailImpossibleIDs},
		{"services of bots", detailBotServices},
		{"subjects of matches", detailMatchSubjects},
		{"negated searches", detailNegatedSearches},
		{"special settings of an organization", detailSpecialOrgSettings},
		{"types of profile values", detailProfileValueTypes},
		{"mentions by id", detailMentionsByID},
		{"placeholder addresses of another host", detailPlaceholderAddresses},
		{"empty topics of old clients", detailEmptyTopics},
		{"channels of a bot's owner", detailOwnerChannels},
		{"types and times of drafts", detailDrafts},
		{"queue without a registration", detailQueueWithoutRegistration},
		{"narrowed queues", detailNarrowedQueues},
		{"authentication headers", detailAuthenticationHeaders},
		{"login page of browsers", detailLoginPage},
		{"CORS headers", detailCORSHeaders},
		{"missing organizations", detailMissingOrganizations},
	} {
		t.Run(x.name, func(t *testing.T) {
			sub := *k
			sub.T = t
			x.check(t, &sub)
		})
	}
}

// dig returns the value at a path of nested objects.
func dig(t *testing.T, a map[string]any, path ...string) any {
	t.Helper()
	var v any = a
	for _, p := range path {
		o, ok := v.(map[string]any)
		if !ok {
			t.Errorf("no %v in %v", path, a)
			return nil
		}
		v = o[p]
	}
	return v
}

func detailAnchorDates(t *testing.T, k *demoClient) {
	for _, path := range []string{"GET messages", "POST messages/flags/narrow"} {
		more := []any{"num_before", 1, "num_after", 0, "narrow", []any{}, "op", "add", "flag", "read", "anchor_date",
			"some day"}
		k.must("ann", path, append(more, "anchor", "newest")...)
		k.refused("ann", path, "BAD_REQUEST", "anchor_date is not a date", append(more, "anchor", "date")...)
	}
}

func detailQuotedColours(t *testing.T, k *demoClient) {
	for _, value := range []string{"#123456", `"#123456"`} {
		k.must("ann", "PATCH users/me/subscriptions/1", "property", "color", "value", "#ffffff")
		k.must("ann", "PATCH users/me/subscriptions/1", "property", "color", "value", value)
		if a := k.must("ann", "GET users/me/subscriptions"); !strings.Contains(fmt.Sprint(a), "color:#123456") {
			t.Errorf("%s made no colour: %v", value, a)
		}
	}
	k.must("ann", "PATCH users/me/subscriptions/1", "property", "is_muted", "value", "false")
	k.refused("ann", "PATCH users/me/subscriptions/1", "BAD_REQUEST", "is_muted is not a boolean", "property",
		"is_muted", "value", "no")
	k.refused("ann", "PATCH users/me/subscriptions/1", "BAD_REQUEST", "color is not a valid hex color code", "property",
		"color", "value", "red")
	k.refused("ann", "POST users/me/subscriptions", "BAD_REQUEST",
		`subscriptions[0]["description"] is too long (limit: 1024 characters)`, "subscriptions",
		[]any{map[string]any{"name": "new", "description": strings.Repeat("é", 1025)}})
}

func detailAccountNames(t *testing.T, k *demoClient) {
	k.refused("ann", "PATCH settings", "BAD_REQUEST", "Name too short!", "full_name", "  ")
	k.must("olive", fmt.Sprintf("PATCH users/%v", k.ids["ann"]), "full_name", "  ")
	k.refused("ann", "PATCH settings", "BAD_REQUEST", "Invalid default_language", "default_language", "xx",
		"old_password", "x", "new_password", "y")
}

func detailOrderOfRefusals(t *testing.T, k *demoClient) {
	for _, x := range [][2]string{{"boring", "Invalid report_type: Value error, Not in the list of possible values"},
		{"other", "An explanation is required."}, {"spam", "Moderation request channel must be specified"}} {
		k.refused("ann", "POST messages/99999/report", "BAD_REQUEST", x[1], "report_type", x[0])
	}
	later := k.must("ann", "POST scheduled_messages", "type", "channel", "to", 1, "topic", "t", "content", "x",
		"scheduled_delivery_timestamp", 4102444800)
	for _, id := range []any{later["scheduled_message_id"], 99999} {
		k.refused("ann", fmt.Sprintf("PATCH scheduled_messages/%v", id), "BAD_REQUEST",
			"Recipient required when updating type of scheduled message.", "type", "direct")
		k.refused("ann", fmt.Sprintf("PATCH scheduled_messages/%v", id), "BAD_REQUEST",
			"Topic required when updating scheduled message type to channel.", "type", "channel", "to", 1)
	}
	k.refused("ann", "POST messages", "BAD_REQUEST", "Invalid mirrored message", "type", "channel", "to", "general",
		"topic", "t", "content", "x", "sender", "bo@example.org")
	k.refused("ann", "POST messages", "BAD_REQUEST", "User not authorized for this query", "type", "channel", "to",
		"general", "topic", "t", "content", "x", "forged", "yes")
	k.refused("ada", fmt.Sprintf("PATCH users/%v", k.ids["bo"]), "UNAUTHORIZED_PRINCIPAL",
		"Must be an organization owner", "role", 100, "full_name", "x", "new_email", "none")
	k.refused("olive", fmt.Sprintf("PATCH users/%v", k.ids["bo"]), "BAD_REQUEST", "Name too short!", "role", 300,
		"full_name", "x")
	if a := k.must("olive", fmt.Sprintf("GET users/%v", k.ids["bo"])); dig(t, a, "user", "role") != 400.0 {
		t.Errorf("a refused change of role and name changed the role: %v", a)
	}
}

func detailImpossibleIDs(t *testing.T, k *demoClient) {
	for _, id := range []string{"99999999999999999999", "-99999999999999999999", "0", "-1"} {
		for _, to := range []string{id, "[" + id + "]"} {
			for _, path := range []string{"POST messages", "POST scheduled_messages"} {
				a := k.refused("ann", path, "STREAM_DOES_NOT_EXIST", "Channel with ID '"+id+"' does not exist", "type",
					"channel", "to", to, "topic", "t", "content", "x", "scheduled_delivery_timestamp", 4102444800)
				if n, _ := strconv.ParseFloat(id, 64); a["stream_id"] != n {
					t.Errorf("%s to %s: stream_id is %v", path, to, a["stream_id"])
				}
			}
		}
		for _, path := range []string{"POST messages", "POST scheduled_messages"} {
			k.refused("ann", path, "BAD_REQUEST", "Invalid user ID "+id, "type", "direct", "to", "["+id+"]", "content",
				"x", "scheduled_delivery_timestamp", 4102444800)
		}
		for operator, desc := range map[string]string{"channel": "unknown channel " + id,
			"sender": "unknown user " + id} {
			k.refused("ann", "GET messages", "BAD_NARROW", "Invalid narrow operator: "+desc, "anchor", "newest",
				"narrow", `[{"operator": "`+operator+`", "operand": `+id+`}]`)
		}
		k.refused("ann", "GET messages", "BAD_NARROW", "Invalid narrow operator: unknown user in [3, "+id+"]", "anchor",
			"newest", "narrow", `[{"operator": "dm", "operand": [3,`+id+`]}]`)
	}
}

func detailBotServices(t *testing.T, k *demoClient) {
	bot := k.must("ann", "POST bots", "full_name", "Out", "short_name", "out", "bot_type", 3, "payload_url",
		`"https://service.example/"`)
	a := k.must("ann", fmt.Sprintf("PATCH bots/%v", bot["user_id"]), "config_data", map[string]string{"a": "b"})
	k.equal("its answer", []any{a["service_payload_url"], a["config_data"]},
		[]any{"https://service.example/", map[string]any{"a": "b"}})
	for _, x := range k.must("ann", "GET bots")["bots"].([]any) {
		k.equal("its list", dig(t, x.(map[string]any)["services"].([]any)[0].(map[string]any), "base_url"),
			"https://service.example/")
	}
}

func detailMatchSubjects(t *testing.T, k *demoClient) {
	direct := fmt.Sprint(k.must("ann", "POST messages", "type", "direct", "to", []any{k.ids["bo"]}, "content",
		"walrus")["id"])
	posted := fmt.Sprint(k.must("ann", "POST messages", "type", "channel", "to", "general", "topic", "", "content",
		"walrus")["id"])
	for _, narrow := range []any{[]any{[]any{"search", "walrus"}}, []any{}} {
		a := k.must("ann", "GET messages/matches_narrow", "msg_ids", "["+direct+","+posted+"]", "narrow", narrow)
		if s := dig(t, a, "messages", direct, "match_subject"); s != "" {
			t.Errorf("a direct message has the topic %q", s)
		}
		if s := dig(t, a, "messages", posted, "match_subject"); s != "general chat" {
			t.Errorf("the empty topic is called %q", s)
		}
	}
}

func detailNegatedSearches(t *testing.T, k *demoClient) {
	topic := []any{"topic", "not there"}
	send := func(content string) any {
		return k.must("ann", "POST messages", "type", "channel", "to", "general", "topic", topic[1], "content",
			content)["id"]
	}
	ids := []any{send("a quokka sleeps"), send("a quokka eats"), send("a numbat eats")}
	without := func(operand string) any {
		return map[string]any{"operator": "search", "operand": operand, "negated": true}
	}
	for _, c := range []struct {
		terms []any
		want  []any
	}{
		{[]any{without("quokkas")}, ids[2:]},
		{[]any{without("quokka eats")}, []any{ids[0], ids[2]}},
		{[]any{without("quokka"), without("eat")}, nil},
		{[]any{without(`"a q"`)}, ids[2:]},
		{[]any{without(`"t e" "a "`)}, ids[:2]},
		{[]any{without(`quokka "eat"`)}, []any{ids[0], ids[2]}},
		{[]any{without(`"ot ther"`)}, nil}, // matches the topic
		{[]any{without("sleep"), []any{"search", "quokka"}}, ids[1:2]},
		{[]any{without("nothing of it")}, ids},
	} {
		narrow := append(c.terms, topic)
		found := func(a map[string]any) (got []any) {
			for _, m := range a["messages"].([]any) {
				got = append(got, dig(t, m.(map[string]any), "id"))
			}
			return got
		}
		if got := found(k.must("ann", "GET messages", "anchor", "newest", "num_before", 10, "num_after", 0, "narrow",
			narrow)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v finds %v, want %v", narrow, got, c.want)
		}
		if got := found(k.must("ann", "GET messages", "message_ids", ids, "narrow", narrow)); !reflect.DeepEqual(got,
			c.want) {
			t.Errorf("%v lets %v through, want %v", narrow, got, c.want)
		}
		matches := dig(t, k.must("ann", "GET messages/matches_narrow", "msg_ids", ids, "narrow", narrow),
			"messages").(map[string]any)
		for _, id := range c.want {
			if dig(t, matches, fmt.Sprint(id)) == nil {
				t.Errorf("%v does not match %v", id, narrow)
			}
		}
		if len(matches) != len(c.want) {
			t.Errorf("%v matches %v", narrow, matches)
		}
		a := k.must("ann", "POST messages/flags/narrow", "anchor", "newest", "num_before", 10, "num_after", 0, "narrow",
			narrow, "op", "add", "flag", "starred")
		if got := dig(t, a, "processed_count"); got != float64(len(c.want)) {
			t.Errorf("%v messages are flagged with %v", got, narrow)
		}
	}
	a := k.must("ann", "GET messages/matches_narrow", "msg_ids", ids, "narrow", []any{without("quokka")})
	if got := dig(t, a, "messages", fmt.Sprint(ids[2]), "match_content"); got != "<p>a numbat eats</p>" {
		t.Errorf("marked: %v", got)
	}
}

func detailSpecialOrgSettings(t *testing.T, k *demoClient) {
	k.refused("olive", "PATCH realm", "BAD_REQUEST",
		"Invalid org_type: Value error, Not in the list of possible values", "org_type", 15)
	k.must("olive", "PATCH realm", "org_type", 20)
	for _, bad := range []string{"meet", `"meet"`, "javascript:alert(1)", `5`,
		`"https://meet.example/` + strings.Repeat("x", 200) + `"`} {
		k.refused("olive", "PATCH realm", "BAD_REQUEST", "jitsi_server_url is not an allowed_type", "jitsi_server_url",
			bad)
	}
	now := func() any {
		return k.must("olive", "POST register", "event_types", []string{"realm"})["realm_jitsi_server_url"]
	}
	for _, c := range []struct {
		sent string
		want any
	}{{`"https://meet.example"`, "https://meet.example"}, {`"default"`, nil},
		{"https://meet.example/a", "https://meet.example/a"}, {"default", nil},
		{`"https://meet.example"`, "https://meet.example"}, {"null", nil}} {
		k.must("olive", "PATCH realm", "jitsi_server_url", c.sent)
		if got := now(); got != c.want {
			t.Errorf("%s makes it %v", c.sent, got)
		}
	}
}

func detailProfileValueTypes(t *testing.T, k *demoClient) {
	wrong := []any{map[string]any{"id": 1, "value": "x"}, map[string]any{"id": 1, "value": 5}}
	k.refused("ann", "PATCH users/me/profile_data", "BAD_REQUEST", `data[1]["value"] is not a list`, "data", wrong)
	k.refused("olive", "PATCH users/{bo}", "BAD_REQUEST", `profile_data[1]["value"] is not a list`, "profile_data",
		wrong)
	wrong = []any{map[string]any{"id": 1, "value": []any{1, "x"}}}
	k.refused("ann", "PATCH users/me/profile_data", "BAD_REQUEST", `data[0]["value"][1] is not an integer`, "data",
		wrong)
}

func detailMentionsByID(t *testing.T, k *demoClient) {
	id := k.must("ann", "POST messages", "type", "channel", "to", "general", "topic", "tea", "content",
		"@**Bo Park** tea?")["id"]
	a := k.must("ann", "GET messages", "anchor", "newest", "num_before", 5, "num_after", 0, "narrow",
		[]any{map[string]any{"operator": "mentions", "operand": k.ids["bo"]}})
	if m := a["messages"].([]any); len(m) != 1 || m[0].(map[string]any)["id"] != id {
		t.Errorf("bo is mentioned in %v", m)
	}
}

func detailPlaceholderAddresses(t *testing.T, k *demoClient) {
	id := fmt.Sprint(k.ids["bo"])
	a := k.must("ann", "GET users/{bo}")
	host := "127.0.0.1" // of the demo organization
	k.must("bo", "PATCH settings", "email_address_visibility", 4)
	if u := dig(t, k.must("ann", "GET users/user"+id+"@"+host), "user", "user_id"); u != dig(t, a, "user", "user_id") {
		t.Errorf("the placeholder address belongs to %v", u)
	}
	k.refused("ann", "GET users/user"+id+"@elsewhere.example.com", "BAD_REQUEST", "No such user")
	k.refused("ann", "GET users/user"+id+"@elsewhere.example.com/presence", "BAD_REQUEST", "No such user")
	k.must("bo", "PATCH settings", "email_address_visibility", 1)
}

func detailEmptyTopics(t *testing.T, k *demoClient) {
	draft := map[string]any{"type": "stream", "to": []int{1}, "topic": "", "content": "tea"}
	for _, c := range []struct {
		caps  map[string]any
		topic string
	}{{map[string]any{"empty_topic_name": true}, ""}, {map[string]any{"empty_topic_name": false}, "general chat"}} {
		queue := k.must("ann", "POST register", "client_capabilities", c.caps, "event_types",
			[]string{"drafts", "scheduled_messages"})["queue_id"]
		k.must("ann", "POST drafts", "drafts", []any{draft})
		k.must("ann", "POST scheduled_messages", "type", "channel", "to", 1, "topic", "", "content", "tea",
			"scheduled_delivery_timestamp", time.Now().Unix()+1000)
		var events []any
		for len(events) < 2 { // unacknowledged events are sent again
			events = k.must("ann", "GET events", "queue_id", queue, "last_event_id", -1)["events"].([]any)
		}
		a := k.must("ann", "POST register", "client_capabilities", c.caps, "fetch_event_types",
			[]string{"drafts", "scheduled_messages"})
		for what, list := range map[string]any{"drafts of events": events[0].(map[string]any)["drafts"],
			"scheduled messages of events":           events[1].(map[string]any)["scheduled_messages"],
			"drafts of the registration":             a["drafts"],
			"scheduled messages of the registration": a["scheduled_messages"],
		} {
			if topic := list.([]any)[0].(map[string]any)["topic"]; topic != c.topic {
				t.Errorf("%s: the empty topic is called %q, want %q", what, topic, c.topic)
			}
		}
	}
}

func detailOwnerChannels(t *testing.T, k *demoClient) {
	list := func(who string, asked bool) string {
		var names []any
		a := k.must(who, "GET streams", "include_public", false, "include_subscribed", false,
			"include_owner_subscribed", asked)
		for _, c := range a["streams"].([]any) {
			names = append(names, dig(t, c.(map[string]any), "name"))
		}
		return fmt.Sprint(names)
	}
	if got := list("demo-bot", true); got != "[engineering general leads open house]" {
		t.Errorf("the bot may send to %s", got)
	}
	for who, asked := range map[string]bool{"demo-bot": false, "ann": true} {
		if got := list(who, asked); got != "[]" {
			t.Errorf("%s is shown %s", who, got)
		}
	}
}

func detailDrafts(t *testing.T, k *demoClient) {
	draft := func(kind string, at int) map[string]any {
		return map[string]any{"type": kind, "to": []int{1}, "topic": "t", "content": "tea", "timestamp": at}
	}
	for _, kind := range []string{"channel", "direct", "nonsense"} {
		k.refused("bo", "POST drafts", "BAD_REQUEST", `Invalid drafts[1]["type"]`, "drafts",
			[]any{draft("stream", 5), draft(kind, 5)})
		k.refused("bo", "PATCH drafts/999", "BAD_REQUEST", `Invalid draft["type"]`, "draft", draft(kind, 5))
	}
	k.must("bo", "POST drafts", "drafts", []any{draft("stream", 0), draft("", 7)})
	var times []any
	for _, d := range k.must("bo", "GET drafts")["drafts"].([]any) {
		times = append(times, dig(t, d.(map[string]any), "timestamp"))
	}
	if !reflect.DeepEqual(times, []any{0.0, 7.0}) {
		t.Errorf("edited at %v", times)
	}
}

func detailQueueWithoutRegistration(t *testing.T, k *demoClient) {
	a := k.must("ann", "GET events", "dont_block", true, "event_types", []string{"drafts", "message"}, "apply_markdown",
		true, "client_gravatar", false, "nonsense", 1)
	if events, _ := a["events"].([]any); a["queue_id"] == nil || events == nil || len(events) > 0 ||
		fmt.Sprint(a["ignored_parameters_unsupported"]) != "[nonsense]" {
		t.Fatalf("the answer is %v", a)
	}
	k.must("ann", "POST saved_snippets", "title", "not", "content", "asked for")
	k.must("ann", "POST drafts", "drafts",
		[]any{map[string]any{"type": "stream", "to": []int{1}, "topic": "t", "content": "tea"}})
	k.must("bo", "POST messages", "type", "direct", "to", []any{k.ids["ann"]}, "content", "**tea**")
	var received []any
	for len(received) < 2 { // unacknowledged events are sent again
		received = k.must("ann", "GET events", "queue_id", a["queue_id"], "last_event_id", -1)["events"].([]any)
	}
	m := received[1].(map[string]any)
	if received[0].(map[string]any)["type"] != "drafts" ||
		dig(t, m, "message", "content") != "<p><strong>tea</strong></p>" || dig(t, m, "message", "avatar_url") == nil {
		t.Errorf("received %v", received)
	}
	for _, more := range [][]any{{"dont_block", true}, nil} {
		b := k.must("ann", "GET events", append(more, "queue_id", a["queue_id"], "last_event_id", -1, "slim_presence",
			true, "nonsense", 1, "also", 2)...)
		if events, _ := b["events"].([]any); len(events) != 2 || b["queue_id"] != a["queue_id"] ||
			fmt.Sprint(b["ignored_parameters_unsupported"]) != "[also nonsense]" {
			t.Errorf("the answer is %v", b)
		}
	}
	k.refused("ann", "GET events", "BAD_REQUEST", "Missing 'queue_id' argument", "dont_block", false)
	k.refused("ann", "GET events", "BAD_REQUEST", "event_types is not a list", "dont_block", true, "event_types", "1")
	k.refused("ann", "GET events", "BAD_REQUEST", "Operator near not supported.", "dont_block", true, "narrow",
		[]any{[]any{"near", "1"}})
	k.refused("ann", "GET events", "BAD_REQUEST", "Missing 'last_event_id' argument", "dont_block", true, "queue_id",
		a["queue_id"])
}

func detailNarrowedQueues(t *testing.T, k *demoClient) {
	k.must("ann", "POST channels/create", "name", "tea room", "subscribers", []any{k.ids["ann"]})
	k.must("ann", "POST users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "general"}},
		"principals", []any{k.ids["demo-bot"]})
	listen := func(who string, params ...any) any {
		return k.must(who, "POST register", append(params, "event_types", []string{"message"})...)["queue_id"]
	}
	narrowed := func(operator, operand string) any { return listen("bo", "narrow", []any{[]any{operator, operand}}) }
	ann, room, mentions := narrowed("sender", "ann@example.org"), narrowed("channel", "tea room"),
		narrowed("mentions", "bo@example.org")
	k.refused("bo", "POST register", "BAD_NARROW", "Invalid narrow operator: unknown user visitor", "narrow",
		[]any{[]any{"mentions", "visitor"}})
	all := listen("bo", "all_public_streams", true)
	k.must("olive", "PATCH bots/{demo-bot}", "default_all_public_streams", true)
	bot, other := listen("demo-bot"), listen("demo-bot", "all_public_streams", false)
	k.must("olive", "PATCH bots/{demo-bot}", "default_all_public_streams", false, "default_events_register_stream",
		"general")
	general := listen("demo-bot")
	sent := map[any]string{}
	for _, m := range []struct {
		name, kind, to, text string
	}{{"foreign", "channel", "tea room", "Is @**Bo Park** here?"}, {"own", "channel", "general", "tea?"},
		{"direct", "direct", fmt.Sprintf("[%d,%d]", k.ids["bo"], k.ids["demo-bot"]), "@**Bo Park** tea?"}} {
		sent[k.must("ann", "POST messages", "type", m.kind, "to", m.to, "topic", "narrows", "content",
			m.text)["id"]] = m.name
	}
	k.must("ann", "POST users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "tea room"}},
		"principals", []any{k.ids["bo"]})
	last := k.must("ann", "POST messages", "type", "channel", "to", "tea room", "topic", "narrows", "content",
		"@**Bo Park** and @**Demo Bot** are")["id"]
	sent[last] = "last"
	k.must("ann", "POST messages", "type", "channel", "to", "general", "topic", "narrows", "content",
		"@**Bo Park** bye")
	for _, q := range []struct {
		name, who string
		queue     any
		want      string
	}{{"sender", "bo", ann, "own direct last"}, {"channel", "bo", room, "last"},
		{"mentions", "bo", mentions, "direct last"}, {"all public", "bo", all, "foreign own direct last"},
		{"a bot's setting", "demo-bot", bot, "foreign own direct last"},
		{"not a bot's setting", "demo-bot", other, "own direct last"},
		{"a bot's channel", "demo-bot", general, "own"}} {
		var received []string
		for _, e := range k.must(q.who, "GET events", "queue_id", q.queue, "last_event_id", -1)["events"].([]any) {
			if name := sent[dig(t, e.(map[string]any), "message", "id")]; name != "" {
				received = append(received, name)
			}
		}
		if got := strings.Join(received, " "); got != q.want {
			t.Errorf("%s: received %q, want %q", q.name, got, q.want)
		}
	}
}

func detailAuthenticationHeaders(t *testing.T, k *demoClient) {
	for path, want := range map[string]string{"/api/v1/users/me": "Basic", "/json/users/me": "Session"} {
		r, err := http.Get(k.at + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if got := r.Header.Get("WWW-Authenticate"); r.StatusCode != 401 || got != want+` realm="zulip"` {
			t.Errorf("%s: %d, %s", path, r.StatusCode, got)
		}
	}
}

func detailLoginPage(t *testing.T, k *demoClient) {
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path, host, accept string, login func(*http.Request)) (*http.Response, string) {
		t.Helper()
		q, _ := http.NewRequest(method, k.at+path, nil)
		q.Header.Set("Accept", accept)
		if q.Host = host; login != nil {
			login(q)
		}
		r, err := stay.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r, string(body)
	}
	ann := k.people["ann"]
	mine := func(q *http.Request) { q.SetBasicAuth(ann.email, ann.key) }
	wrong := func(q *http.Request) { q.SetBasicAuth(ann.email, "x") }
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, c := range []struct {
		method, path, accept string
		login                func(*http.Request)
		status               int
		location             string
	}{
		{"GET", "/api/v1/users/me", browser, nil, 302, "/login/?next=%2Fapi%2Fv1%2Fusers%2Fme"},
		{"GET", "/json/events?queue_id=1:1&last_event_id=-1", browser, nil, 302, "/login/?next=%2Fjson%2Fevents"},
		{"GET", "/json/users/%26%0d%0aX-Evil:%201/presence", browser, nil, 302,
			"/login/?next=%2Fjson%2Fusers%2F%2526%250d%250aX-Evil%3A%25201%2Fpresence"},
		{"POST", "/json/messages", browser, nil, 302, "/login/?next=%2Fjson%2Fmessages"},
		{"GET", "/api/v1/users/me", "application/json", nil, 401, ""},
		{"GET", "/api/v1/users/me", "*/*", nil, 401, ""},
		{"GET", "/api/v1/users/me", browser, wrong, 401, ""},
		{"GET", "/api/v1/users/me", browser, mine, 200, ""},
		{"GET", "/api/v1/server_settings", browser, nil, 200, ""},
	} {
		if r, _ := ask(c.method, c.path, "", c.accept, c.login); r.StatusCode != c.status ||
			r.Header.Get("Location") != c.location {
			t.Errorf("%s %s: %d, %q", c.method, c.path, r.StatusCode, r.Header.Get("Location"))
		}
	}
	k.must("olive", "PATCH realm", "name", "Tea & <b>cake</b>")
	r, page := ask("GET", "/login/?next=%2Fjson%2Fusers<script>", "", browser, nil)
	if r.StatusCode != 200 || !strings.Contains(page, "<h1>Tea &amp; &lt;b&gt;cake&lt;/b&gt;</h1>") ||
		!strings.Contains(page, k.at) || strings.Contains(page, "<script") ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v\n%s", r.StatusCode, r.Header, page)
	}
	if r, page := ask("GET", "/login/", "visitor.127.0.0.1", browser, nil); r.StatusCode != 404 ||
		!strings.Contains(page, "no organization") {
		t.Errorf("of no organization: %d\n%s", r.StatusCode, page)
	}
	if r, page := ask("HEAD", "/login/", "", browser, nil); r.StatusCode != 200 || page != "" {
		t.Errorf("HEAD: %d %q", r.StatusCode, page)
	}
}

func detailCORSHeaders(t *testing.T, k *demoClient) {
	ann := k.people["ann"]
	usual, events := "GET, POST, DELETE, PUT, PATCH, HEAD", "OPTIONS, GET, DELETE"
	queue := fmt.Sprint(k.must("ann", "POST register", "event_types", []string{"drafts"})["queue_id"])
	k.must("ann", "POST drafts", "drafts",
		[]any{map[string]any{"type": "stream", "to": []int{1}, "topic": "t", "content": "tea"}})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "events?queue_id=" + queue + "&last_event_id=-1", "", 200, events},
		{"GET", "events?queue_id=" + queue + "&last_event_id=%2D1", "", 200, events}, // not on the fast path
		{"GET", "events?queue_id=nobodys:1&last_event_id=-1", "", 400, events},
		{"GET", "events?queue_id=" + queue + "&last_event_id=-1", "", 401, events},
		{"GET", "events", "", 400, events},
		{"PATCH", "events", "", 405, events},
		{"OPTIONS", "events", "", 204, events},
		{"DELETE", "events?queue_id=" + queue, "", 200, events},
		{"POST", "messages", "type=direct&to=[]&content=x", 400, usual},
		{"POST", "messages", url.Values{"type": {"direct"}, "to": {`["bo@example.org"]`}, "content": {"tea"}}.Encode(),
			200, usual},
		{"GET", "users/me", "", 200, usual},
		{"OPTIONS", "users/me", "", 204, usual},
		{"GET", "nothing", "", 404, usual},
	} {
		q, _ := http.NewRequest(c.method, k.at+"/api/v1/"+c.path, strings.NewReader(c.body))
		if c.status != 401 {
			q.SetBasicAuth(ann.email, ann.key)
		}
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if got := r.Header.Values("Access-Control-Allow-Methods"); r.StatusCode != c.status || len(got) != 1 ||
			got[0] != c.want {
			t.Errorf("%s %s: %d, %q, want %d, %q", c.method, c.path, r.StatusCode, got, c.status, c.want)
		}
	}
}

func detailMissingOrganizations(t *testing.T, k *demoClient) {
	for _, c := range []struct {
		host, path string
		want       int
		says       string
	}{
		{"127.0.0.1", "server_settings", 200, ""},
		{"www.127.0.0.1", "server_settings", 200, ""},
		{"elsewhere.example.com", "server_settings", 200, ""},
		{"visitor.127.0.0.1", "server_settings", 400, "BAD_REQUEST"},
		{"visitor.127.0.0.1", "messages", 404, "NONEXISTENT_SUBDOMAIN"},
		{"visitor.127.0.0.1", "users", 404, "NONEXISTENT_SUBDOMAIN"},
		{"visitor.127.0.0.1", "users/me", 401, "UNAUTHORIZED"},
		{"127.0.0.1", "messages", 401, "UNAUTHORIZED"},
	} {
		q, _ := http.NewRequest("GET", k.at+"/api/v1/"+c.path, nil)
		q.Host = c.host
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != c.want || !strings.Contains(string(body), c.says) {
			t.Errorf("%s of %s: %d %s, want %d %s", c.path, c.host, r.StatusCode, body, c.want, c.says)
		}
	}
}
