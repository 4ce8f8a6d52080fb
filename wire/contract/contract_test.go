package contract

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/wire/shape"
)

func load(t *testing.T) *Contract {
	t.Helper()
	c, err := Load()
	if errors.Is(err, ErrNoDescription) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// notJSON are listed endpoints whose success answer is a redirect, or an empty body of another protocol.
var notJSON = []string{"GET /realm/icon", "GET /realm/logo", "POST /tus"}

func TestEveryListedEndpointHasAnAnswer(t *testing.T) {
	c := load(t)
	if len(c.Endpoints()) != 158+30 {
		t.Errorf("%d endpoints in the list, want 188", len(c.Endpoints()))
	}
	listed := map[string]bool{}
	for _, e := range c.Endpoints() {
		name := e.Method + " " + e.Path
		listed[name] = true
		if got := c.Route(e.Method, e.Path); got == "" && !slices.Contains(notJSON, name) {
			t.Errorf("%s: listed, but its answer is not described: add it to amendments.go", name)
		}
	}
	for _, r := range c.routes {
		if !listed[r.name] {
			t.Errorf("%s: described, but not listed", r.name)
		}
	}
}

func TestEveryListedEventHasASchema(t *testing.T) {
	c := load(t)
	dir, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "api", "endpoints.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{
		"realm_emoji/add": true, "realm_emoji/edit": true, "realm_emoji/update_one": true, "realm_emoji/update": true,
		"realm_filters":    true, // legacy: described, never sent
		"realm_bot/remove": true, // removed long ago, still described
	}
	for _, row := range rows(string(raw)) {
		if len(row) != 7 || isMethod(row[1]) || !strings.HasPrefix(row[1], "`") {
			continue
		}
		key, op := bare(row[1]), row[2]
		op, _, _ = strings.Cut(op, " ")
		if op != "-" {
			key += "/" + op
		}
		listed[key] = true
		if len(c.events[key]) == 0 && row[6] != "legacy" {
			t.Errorf("%s: listed, but has no schema", key)
		}
	}
	for key := range c.events {
		if !listed[key] {
			t.Errorf("%s: has a schema, but is not listed", key)
		}
	}
}

func TestRegisterFieldsAreKnownBothWays(t *testing.T) {
	c := load(t)
	var register *shape.Shape
	for _, r := range c.routes {
		if r.name == "POST /register" {
			register = r.answer
		}
	}
	both := func(what string, s *shape.Shape, fields []registerField, also ...string) {
		t.Helper()
		names := also
		for _, f := range fields {
			names = append(names, f.name)
			if _, ok := s.Fields[f.name]; !ok {
				t.Errorf("%s: %s is listed, but has no schema", what, f.name)
			}
		}
		for name := range s.Fields {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s has a schema, but is not listed", what, name)
			}
		}
	}
	both("register", register, c.fields, "can_subscribe_other_users", "receives_typing_notifications",
		"klipy_api_key") // web clients of 12.x require it
	settings, err := register.Find("user_settings")
	if err != nil {
		t.Fatal(err)
	}
	both("user_settings", settings, c.settings)
}

// The description's own examples fit the description. So a finding is about a server, not about the parsing.
func TestDescriptionFitsItsExamples(t *testing.T) {
	load(t) // skips without the description
	dir, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "api", "openapi.yaml")
	d, err := readDescription(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range slices.Sorted(maps.Keys(d.paths)) {
		methods, _ := d.paths[path].(map[string]any)
		for method, operation := range methods {
			s, ok := d.success(operation)
			if !ok || path == "/events" {
				continue
			}
			for _, example := range examples(d, operation) {
				raw, err := json.Marshal(example)
				if err != nil {
					t.Fatal(err)
				}
				v, err := decode(raw)
				if err != nil {
					t.Fatal(err)
				}
				checked++
				for _, f := range s.Check(strings.ToUpper(method)+" "+path, "", v) {
					if f.What != "missing" { // examples are shortened
						t.Error(f)
					}
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d examples were found", checked)
	}
}

// examples returns the examples of an operation's 200 answer.
func examples(d *description, operation any) []any {
	m, _ := operation.(map[string]any)
	answers, _ := m["responses"].(map[string]any)
	ok200, _ := answers["200"].(map[string]any)
	content, _ := ok200["content"].(map[string]any)
	body, _ := content["application/json"].(map[string]any)
	var out []any
	var dig func(raw any)
	dig = func(raw any) {
		schema, _ := raw.(map[string]any)
		if e, ok := schema["example"]; ok {
			out = append(out, e)
			return
		}
		for _, branch := range append(list(schema["allOf"]), list(schema["oneOf"])...) {
			dig(branch)
		}
	}
	if body != nil {
		dig(body["schema"])
	}
	return out
}

func TestAnswerFindings(t *testing.T) {
	c := load(t)
	for _, test := range []struct {
		name         string
		method, path string
		status       int
		body         string
		want         []string // a part of each finding, in order; none: the answer fits
	}{
		{"fits", "POST", "/api/v1/messages", 200, `{"result":"success","msg":"","id":17}`, nil},
		{"session prefix", "POST", "/json/messages", 200, `{"result":"success","msg":"","id":17}`, nil},
		{"ignored parameters", "POST", "/api/v1/messages", 200,
			`{"result":"success","msg":"","id":17,"ignored_parameters_unsupported":["x"]}`, nil},
		{"unknown field", "POST", "/api/v1/messages", 200, `{"result":"success","msg":"","id":17,"extra":1}`,
			[]string{"extra: unknown field"}},
		{"missing field", "POST", "/api/v1/messages", 200, `{"result":"success","msg":""}`, []string{"id: missing"}},
		{"wrong type", "POST", "/api/v1/messages", 200, `{"result":"success","msg":"","id":"17"}`,
			[]string{`id: "17", want integer`}},
		{"fraction for an integer", "POST", "/api/v1/messages", 200, `{"result":"success","msg":"","id":17.0}`,
			[]string{"want integer"}},
		{"null", "GET", "/api/v1/users/me/alert_words", 200, `{"result":"success","msg":"","alert_words":null}`,
			[]string{"alert_words: null"}},
		{"deep", "GET", "/api/v1/users/me/7/topics", 200,
			`{"result":"success","msg":"","topics":[{"max_id":1,"name":"a"},{"max_id":"2","name":"b"}]}`,
			[]string{"topics[1].max_id"}},
		{"success with result error", "POST", "/api/v1/messages", 200, `{"result":"error","msg":"","id":17}`,
			[]string{"result"}},
		{"unknown endpoint", "GET", "/api/v1/nowhere", 200, `{"result":"success","msg":""}`,
			[]string{"no such endpoint"}},
		{"not JSON", "GET", "/api/v1/users/me", 200, `<html>`, []string{"not JSON"}},
		{"error", "POST", "/api/v1/messages", 400, `{"result":"error","msg":"no","code":"BAD_REQUEST"}`, nil},
		{"error without code", "POST", "/api/v1/messages", 400, `{"result":"error","msg":"no"}`,
			[]string{"code: missing"}},
		{"error with its field", "GET", "/api/v1/events", 400,
			`{"result":"error","msg":"no","code":"BAD_EVENT_QUEUE_ID","queue_id":"x"}`, nil},
		{"error without its field", "GET", "/api/v1/events", 400,
			`{"result":"error","msg":"no","code":"BAD_EVENT_QUEUE_ID"}`, []string{"queue_id: missing"}},
		{"error with the field of another code", "GET", "/api/v1/events", 400,
			`{"result":"error","msg":"no","code":"BAD_NARROW","desc":"x","queue_id":"x"}`,
			[]string{"queue_id: unknown"}},
		{"405", "PUT", "/api/v1/messages", 405,
			`{"result":"error","msg":"Method Not Allowed","code":"BAD_REQUEST","allowed_methods":["GET"]}`, nil},
		{"retired field", "POST", "/api/v1/users/me/presence", 200,
			`{"result":"success","msg":"","presence_last_update_id":-1,"zephyr_mirror_active":false}`,
			[]string{"zephyr_mirror_active: unknown"}},
		{"success with a message", "POST", "/api/v1/messages", 200, `{"result":"success","msg":"done","id":17}`,
			[]string{`msg: "done"`}},
		{"command with a message", "POST", "/api/v1/zcommand", 200, `{"result":"success","msg":"done"}`, nil},
		{"fork field", "GET", "/api/v1/get_stream_id", 200,
			`{"result":"success","msg":"","stream_id":1,"can_create_topics_group":1}`,
			[]string{"can_create_topics_group: unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			compare(t, c.Answer(test.method, test.path, test.status, []byte(test.body)), test.want)
		})
	}
}

func TestEventFindings(t *testing.T) {
	c := load(t)
	for _, test := range []struct {
		name string
		raw  string
		want []string
	}{
		{"fits", `{"id":0,"type":"heartbeat"}`, nil},
		{"unknown type", `{"id":0,"type":"push_device"}`, []string{"no such event"}},
		{"retired", `{"id":0,"type":"update_display_settings","user":"a","setting_name":"b","setting":true}`,
			[]string{"no such event"}},
		{"unknown op", `{"id":0,"type":"reaction","op":"swap"}`, []string{"no such event"}},
		{"missing op", `{"id":0,"type":"reaction"}`, []string{"no such event"}},
		{"reaction", `{"id":3,"type":"reaction","op":"add","message_id":1,"emoji_name":"a","emoji_code":"1f600",` +
			`"reaction_type":"unicode_emoji","user_id":8}`, nil},
		{"reaction with user, for the terminal client",
			`{"id":3,"type":"reaction","op":"add","message_id":1,"emoji_name":"a","emoji_code":"1f600",` +
				`"reaction_type":"unicode_emoji","user_id":8,` +
				`"user":{"email":"a@b","full_name":"","id":8,"user_id":8}}`, nil},
		{"reaction with an incomplete user",
			`{"id":3,"type":"reaction","op":"add","message_id":1,"emoji_name":"a","emoji_code":"1f600",` +
				`"reaction_type":"unicode_emoji","user_id":8,"user":{}}`,
			[]string{"user.email: missing", "user.full_name: missing", "user.id: missing", "user.user_id: missing"}},
		{"legacy presence", `{"id":3,"type":"presence","user_id":8,"email":"a@b","server_timestamp":1.5,` +
			`"presence":{"website":{"client":"website","status":"active","timestamp":1,"pushable":false}}}`, nil},
		{"modern presence", `{"id":3,"type":"presence","presences":{"8":{"active_timestamp":1,"idle_timestamp":2}}}`,
			nil},
		{"modern presence, wrong", `{"id":3,"type":"presence","presences":{"8":{"active_timestamp":1}}}`,
			[]string{"idle_timestamp: missing"}},
		{"imported user signs up",
			`{"id":3,"type":"realm_user","op":"update","person":{"user_id":8,"is_imported_stub":false}}`, nil},
		{"two changes in one person",
			`{"id":3,"type":"realm_user","op":"update","person":{"user_id":8,"is_imported_stub":false,` +
				`"full_name":"x"}}`, []string{"unknown"}},
		{"leaving a folder", `{"id":3,"type":"stream","op":"update","stream_id":1,"name":"a",` +
			`"property":"folder_id","value":null}`, nil},
		{"group setting", `{"id":3,"type":"stream","op":"update","stream_id":1,"name":"a",` +
			`"property":"can_send_message_group","value":{"direct_members":[1],"direct_subgroups":[]}}`, nil},
		{"one realm setting",
			`{"id":3,"type":"realm","op":"update_dict","property":"default",` +
				`"data":{"topics_policy":"disable_empty_topic","mandatory_topics":true}}`, nil},
		{"renamed realm setting",
			`{"id":3,"type":"realm","op":"update_dict","property":"default","data":{"giphy_rating":1}}`,
			[]string{"giphy_rating: unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) { compare(t, c.Event([]byte(test.raw)), test.want) })
	}
}

func TestRegisterNamesWhatIsMissing(t *testing.T) {
	c := load(t)
	err := c.Register([]byte(`{"result":"success","msg":"","queue_id":"a","last_event_id":-1,"zulip_feature_level":494,
		"zulip_version":"12.0","zulip_merge_base":"12.0","idle_queue_timeout_secs":600,"realm_name":null}`))
	if err == nil || !strings.Contains(err.Error(), "realm_name: null") {
		t.Errorf("realm_name is null: %v", err)
	}
	err = c.Register([]byte(`{"result":"success","msg":"","queue_id":"a","last_event_id":-1,"zulip_feature_level":494,
		"zulip_version":"12.0","zulip_merge_base":"12.0","idle_queue_timeout_secs":600}`))
	var fs Findings
	if !errors.As(err, &fs) {
		t.Fatalf("an empty registration: %v", err)
	}
	// 215 fields are listed. 8 are present above or belong to the envelope, 2 are optional.
	if len(fs) != 215-8-2 {
		t.Errorf("%d fields missing of an empty registration, want %d", len(fs), 215-8-2)
	}
}

func TestDeviationsAreAllowedAndCounted(t *testing.T) {
	c := load(t)
	body := []byte(`{"result":"success","msg":"","topics":[{"max_id":1,"name":"a","extra":1}]}`)
	if err := c.Answer("GET", "/api/v1/users/me/7/topics", 200, body); err == nil {
		t.Fatal("an unknown field passed")
	}
	old := deviations
	defer func() { deviations = old }()
	deviations = []Deviation{
		{Where: "GET /users/me/{stream_id}/topics", Path: "topics[].extra", What: "unknown", Reason: "for this test"},
		{Where: "GET /users/me", Path: "nothing", What: "missing", Reason: "never needed"},
	}
	if err := c.Answer("GET", "/api/v1/users/me/7/topics", 200, body); err != nil {
		t.Errorf("the deviation was not allowed: %v", err)
	}
	if unused := c.Unused(); len(unused) != 1 || unused[0].Reason != "never needed" {
		t.Errorf("unused: %v", unused)
	}
}

func TestRecordingsAreChecked(t *testing.T) {
	c := load(t)
	var report Report
	err := c.CheckRecording(strings.NewReader(strings.Join([]string{
		`{"method":"POST","path":"/api/v1/messages","status":200,"body":{"result":"success","msg":"","id":1}}`,
		`{"method":"GET","path":"/api/v1/events?queue_id=a","status":200,"body":{"result":"success","msg":"",` +
			`"queue_id":"a","events":[{"id":1,"type":"heartbeat"},{"id":2,"type":"heartbeat","x":1}]}}`,
		`{"method":"GET","path":"/api/v1/drafts","status":404,` +
			`"body":{"result":"error","msg":"Not found","code":"BAD_REQUEST"}}`,
		`{"method":"DELETE","path":"/api/v1/drafts/7","status":404,` +
			`"body":{"result":"error","msg":"Draft does not exist","code":"BAD_REQUEST"}}`,
	}, "\n")), &report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Answers != 4 || report.Events != 2 || len(report.Missing) != 1 || report.Missing["GET /drafts"] != 1 {
		t.Errorf("%+v", report)
	}
	got := report.Distinct()
	for _, want := range []string{"event heartbeat: x: unknown field",
		"own description: GET /events: events[1].x: unknown field", "own event heartbeat/: x: unknown field"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("differences: %q, want %q", got, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("differences: %q", got)
	}
}

func TestAmendmentsNameTheirLevelAndTakeHold(t *testing.T) {
	load(t)
	for _, a := range amendments {
		if a.Level != 0 && (a.Level <= 372 || a.Level > 497) {
			t.Errorf("%s: not a level between the description's and ours", a)
		}
	}
	// An amendment with a wrong field name must fail.
	dir, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	d, err := readDescription(filepath.Join(dir, "api", "openapi.yaml"),
		[]amendment{{400, drop, "UserBase", "no_such_field", ""}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.named("UserBase"); err == nil {
		t.Error("dropping a missing field succeeded")
	}
}

func TestNotation(t *testing.T) {
	s, err := parse("{a: int, b?: [str?], c: 'x' | 'y', *: num | bool}", nil)
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]int{
		`{"a":1,"c":"x"}`: 0,
		`{"a":1,"c":"y","b":["s",null],"z":1.5,"w":true}`: 0,
		`{"c":"x"}`:                1,
		`{"a":1,"c":"z"}`:          1,
		`{"a":1,"c":"x","b":[1]}`:  1,
		`{"a":1,"c":"x","b":null}`: 1,
		`{"a":1,"c":"x","z":"s"}`:  1,
		`{"a":null,"c":"x"}`:       1,
	} {
		v, err := decode([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if fs := s.Check("", "", v); len(fs) != want {
			t.Errorf("%s: %v, want %d findings", raw, fs, want)
		}
	}
	for _, bad := range []string{"", "{a int}", "[int", "int int", "{a: }"} {
		if _, err := parse(bad, nil); err == nil {
			t.Errorf("%q parsed", bad)
		}
	}
}

// compare checks that each finding contains a part of the wanted text.
func compare(t *testing.T, err error, want []string) {
	t.Helper()
	var fs Findings
	if err != nil && !errors.As(err, &fs) {
		t.Fatal(err)
	}
	if len(fs) != len(want) {
		t.Fatalf("found %v, want %d", err, len(want))
	}
	for i, piece := range want {
		if !strings.Contains(fs[i].String(), piece) {
			t.Errorf("found %q, want %q", fs[i], piece)
		}
	}
}
