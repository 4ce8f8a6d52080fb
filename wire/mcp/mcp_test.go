package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/actors/realm"
	"parley/wire"
)

// testServer is a server whose endpoints refuse everything, and counts the requests.
type testServer struct {
	*Server
	now   time.Time
	asked []string
}

func newTestServer(several bool) *testServer {
	s := &testServer{now: time.Unix(1_800_000_000, 0)}
	n := 0
	s.Server = New(Options{
		Token:   func(int) string { n++; return fmt.Sprintf("session-%d", n) },
		Now:     func() time.Time { return s.now },
		Several: func() bool { return several },
		Run: func(_ *wire.Call, e *wire.Endpoint) (any, error) {
			s.asked = append(s.asked, e.Name())
			return nil, realm.BadRequest("refused")
		},
	})
	return s
}

// callOf returns a call of a user with a key of a scope; nil: a key with all rights.
func callOf(u realm.UserID, scope *realm.KeyScope) *wire.Call {
	hash := [32]byte{byte(u), 1}
	c := &wire.Call{Realm: 1, Tools: &wire.Tools{}, Account: &realm.Account{Realm: 1, User: u, Charged: u}}
	c.Caller.User, c.Caller.Key = u, hash
	if scope != nil {
		c.Account.KeyInfo = []realm.KeyInfo{{ID: 1, Hash: hash, Scope: scope}}
	}
	return c
}

// TestWriteToolsAreOff checks each tool with each right: a tool exists only for keys whose scope has its right, and
// reading tools also for whole keys. A tool that is off asks no endpoint.
func TestWriteToolsAreOff(t *testing.T) {
	s := newTestServer(false)
	for _, x := range tools {
		arguments := map[string]any{}
		for name, p := range schemaOf(x.args)["properties"].(map[string]any) {
			kind, _ := p.(map[string]any)["type"].(string)
			arguments[name] = map[string]any{"string": "x", "integer": 7, "array": []int{7}}[kind]
		}
		if x.name == "send_message" || x.name == "read_messages" {
			delete(arguments, "user_ids")
		}
		delete(arguments, "base64")
		body := encode(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": x.name, "arguments": arguments}})
		for _, right := range append([]string{""}, realm.KeyRights...) {
			c := callOf(5, nil)
			if right != "" {
				c = callOf(5, &realm.KeyScope{Rights: []string{right}})
			}
			s.asked = nil
			a := s.Post(c, body, "")
			want := right == x.right || right == "" && x.right == realm.RightRead
			if off := bytes.Contains(a.Body, []byte("This tool is off")); off == want || (len(s.asked) == 1) != want {
				t.Errorf("%s with the right %q: %s, asked %v", x.name, right, a.Body, s.asked)
			}
			listed := reflect.ValueOf(allowedTools(c))
			found := false
			for i := range listed.Len() {
				found = found || listed.Index(i).FieldByName("Name").String() == x.name
			}
			if found != want {
				t.Errorf("%s with the right %q is listed: %t", x.name, right, found)
			}
		}
	}
}

// TestToolsNeedTheRightOfTheirEndpoint compares the rights of tools with those of the endpoints that they ask.
func TestToolsNeedTheRightOfTheirEndpoint(t *testing.T) {
	for tool, endpoint := range map[string]string{"list_channels": "GET /streams", "send_message": "POST /messages",
		"edit_message": "PATCH /messages/{message_id}", "add_reaction": "POST /messages/{message_id}/reactions",
		"upload_file": "POST /user_uploads", "add_reminder": "POST /reminders", "read_messages": "GET /messages"} {
		s := newTestServer(false)
		for _, x := range tools {
			if x.name == tool && s.endpoints[endpoint].Right() != x.right {
				t.Errorf("%s needs the right %s, its endpoint %s", tool, x.right, s.endpoints[endpoint].Right())
			}
		}
	}
}

func TestSessions(t *testing.T) {
	s := newTestServer(true)
	hello := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	ping := []byte(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	ann, bo := callOf(5, nil), callOf(6, nil)
	first := s.Post(ann, hello, "")
	if first.Status != 200 || first.Session == "" || !bytes.Contains(first.Body, []byte("2025-06-18")) {
		t.Fatalf("initialize: %+v", first)
	}
	if a := s.Post(ann, ping, first.Session); a.Status != 200 {
		t.Errorf("a ping of the session: %d", a.Status)
	}
	if a := s.Post(bo, ping, first.Session); a.Status != 404 {
		t.Errorf("a ping of another user with the session: %d", a.Status)
	}
	other := callOf(5, nil)
	other.Caller.Key = [32]byte{9}
	if a := s.Post(other, ping, first.Session); a.Status != 404 {
		t.Errorf("a ping with another key: %d", a.Status)
	}
	s.now = s.now.Add(time.Minute)
	for range MaxSessionsOfAccount {
		s.Post(ann, hello, "")
	}
	if n, _ := s.Sessions(); n != MaxSessionsOfAccount {
		t.Errorf("%d sessions of one account", n)
	}
	if a := s.Post(ann, ping, first.Session); a.Status != 404 {
		t.Error("the oldest session did not end")
	}
	for u := realm.UserID(10); u < 10+MaxSessions/MaxSessionsOfAccount; u++ {
		for range MaxSessionsOfAccount {
			s.Post(callOf(u, nil), hello, "")
		}
	}
	if n, refused := s.Sessions(); n != MaxSessions/2 || refused == 0 {
		t.Errorf("one of several organizations has %d sessions, %d were refused", n, refused)
	}
	elsewhere := callOf(5, nil)
	elsewhere.Realm = 2
	if a := s.Post(elsewhere, hello, ""); a.Session == "" {
		t.Errorf("another organization gets no session: %s", a.Body)
	}
	s.now = s.now.Add(sessionIdle + time.Second)
	s.Post(bo, hello, "")
	if n, _ := s.Sessions(); n != 1 {
		t.Errorf("%d sessions after a day", n)
	}
}

// TestResultsAreBounded checks that long results are cut between characters, and that texts are marked.
func TestResultsAreBounded(t *testing.T) {
	long := bounded(map[string]string{"text": strings.Repeat("ä<script>", MaxResultBytes)})
	if len(long) > MaxResultBytes+200 || !strings.HasSuffix(long, "Ask for less.]") || !utf8.ValidString(long) {
		t.Errorf("%d bytes", len(long))
	}
	if text, wasCut := cut(strings.Repeat("ü", MaxContent+1)); len([]rune(text)) != MaxContent || !wasCut {
		t.Error("a text is not cut")
	}
	if text, wasCut := cut(strings.Repeat("ü", MaxContent)); len([]rune(text)) != MaxContent || wasCut {
		t.Error("a text that fits is cut")
	}
}

func TestQueries(t *testing.T) {
	search := func(words string) term { return term{Operator: "search", Operand: words} }
	for query, terms := range map[string][]term{
		`deploy failed`: {search("deploy failed")},
		`channel:"two words" x -is:unread`: {{Operator: "channel", Operand: "two words"},
			{Operator: "is", Operand: "unread", Negated: true}, search("x")},
		`http://x.example "a b"`: {search(`http://x.example "a b"`)},
		``:                       {},
	} {
		want := string(encode(terms))
		if got := string(encode(parseQuery(query))); got != want {
			t.Errorf("%q: %s", query, got)
		}
	}
}

func TestURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"parley://channel/7":                                `{"Channel":7,"Topic":null,"Users":null}`,
		"parley://channel/7/topic/a%2Fb":                    `{"Channel":7,"Topic":"a/b","Users":null}`,
		"parley://channel/7/topic/":                         `{"Channel":7,"Topic":"","Users":null}`,
		"parley://direct/3,9":                               `{"Channel":0,"Topic":null,"Users":[3,9]}`,
		"parley://channel/0":                                "",
		"parley://channel/-1":                               "",
		"parley://channel/99999999999":                      "",
		"parley://channel/7/topics/x":                       "",
		"parley://channel/7/topic/%zz":                      "",
		"parley://direct/":                                  "",
		"parley://direct/" + strings.Repeat("1,", 60) + "1": "",
		"file:///etc/passwd":                                "",
	} {
		p, ok := parseURI(uri)
		if got := string(encode(p)); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s %t", uri, got, ok)
		}
	}
}

// parts returns an answer of an event queue with one event, as wire.AnswerPoll makes it.
func parts(event string) [][]byte {
	return [][]byte{[]byte(`{"events":[`), []byte(event), []byte(`,"id":1}`), []byte(`]}`)}
}

// TestStreamNamesChangedResources checks which events are updates of a resource, also when messages move.
func TestStreamNamesChangedResources(t *testing.T) {
	topic := "Deploy"
	subs := []subscription{{`"channel"`, place{Channel: 7}},
		{`"direct"`, place{Users: []int64{3, 5}}},
		{`"topic"`, place{Channel: 7, Topic: &topic}}}
	message := func(fields string) string { return `"type":"message","message":{` + fields + `}` }
	update, inX := `"type":"update_message",`, `"display_recipient":"x"`
	for event, want := range map[string]string{
		message(`"stream_id":7,"subject":"deploy",` + inX):                               "channel topic",
		message(`"stream_id":7,"subject":"x",` + inX):                                    "channel",
		message(`"stream_id":8,"subject":"deploy",` + inX):                               "",
		message(`"subject":"","display_recipient":[{"id":5},{"id":3}]`):                  "direct",
		message(`"subject":"","display_recipient":[{"id":5},{"id":3},{"id":4}]`):         "",
		update + `"stream_id":7`:                                                         "channel topic",
		update + `"stream_id":7,"orig_subject":"a","subject":"deploy"`:                   "channel topic",
		update + `"stream_id":8,"new_stream_id":7,"orig_subject":"deploy"`:               "channel topic",
		update + `"stream_id":7,"new_stream_id":8,"orig_subject":"deploy","subject":"b"`: "channel topic",
		`"type":"delete_message","stream_id":7,"topic":"a"`:                              "channel",
		`"type":"heartbeat"`: "",
	} {
		w := &StreamReply{server: &Server{}, session: &session{subs: subs}}
		out := string(w.stream(parts(`{` + event)))
		if again := string(w.stream(parts(`{` + event))); again != out {
			t.Errorf("%s: the same event becomes %q", event, again)
		}
		var got []string
		for _, uri := range []string{"channel", "direct", "topic"} {
			if strings.Contains(out, `"uri":"`+uri+`"`) {
				got = append(got, uri)
			}
		}
		if strings.Join(got, " ") != want || w.session.last != 1 || !strings.HasSuffix(out, "\n\n") {
			t.Errorf("%s: %v, last %d: %s", event, got, w.session.last, out)
		}
	}
}

// FuzzPost sends any body to the protocol, and any bytes as an answer of the event queue.
func FuzzPost(f *testing.F) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call",`
	for _, seed := range []string{`{}`, `[]`, `null`, `"x"`, `{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		call + `"params":{"name":"read_messages","arguments":{"channel_id":-1}}}`,
		call + `"params":{"name":"send_message","arguments":null}}`,
		call + `"params":{"name":"upload_file","arguments":{"name":"x","base64":"!"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"parley://channel/7/topic/%00"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"99999999999999999999"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"parley://direct/1,1,1"}}`,
		`{"type":"message","message":{"display_recipient":7}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newTestServer(false)
		a := s.Post(callOf(5, &realm.KeyScope{Rights: realm.KeyRights}), body, "")
		if a.Body == nil != (a.Status == 202) {
			t.Fatalf("status %d: %q", a.Status, a.Body)
		}
		if a.Body != nil {
			var r map[string]any
			if err := json.Unmarshal(a.Body, &r); err != nil || r["jsonrpc"] != "2.0" ||
				(r["result"] == nil) == (r["error"] == nil) {
				t.Fatalf("answer: %s", a.Body)
			}
			if len(a.Body) > 4*MaxResultBytes+len(body) {
				t.Fatalf("%d bytes", len(a.Body))
			}
		}
		w := &StreamReply{server: &Server{}, session: &session{last: -1,
			subs: []subscription{{`"x"`, place{Channel: 7}}}}}
		if out := w.stream(parts(string(body))); !bytes.HasSuffix(out, []byte("\n\n")) && !bytes.HasSuffix(out, []byte("\n")) {
			t.Fatalf("stream: %q", out)
		}
	})
}
