package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// demoClient sends requests to one server as the users of its demo organization.
type demoClient struct {
	*testing.T
	at     string
	people map[string]*account
	ids    map[string]int
}

func newDemoClient(t *testing.T) *demoClient {
	t.Helper()
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	k := &demoClient{T: t, at: p.serving(), people: map[string]*account{"": {}}, ids: map[string]int{}}
	k.people[""].url = k.at
	for _, name := range []string{"olive", "ada", "mo", "ann", "bo", "gus", "demo-bot"} {
		who := demoAccount(t, k.at, name+"@example.org")
		me, err := who.call("GET", "users/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		k.people[name], k.ids[name] = who, int(me["user_id"].(float64))
	}
	return k
}

// call sends a request. {name} in the path is replaced by the id of a user; params are pairs of name and value.
func (k *demoClient) call(who, call string, params ...any) map[string]any {
	k.Helper()
	method, path, _ := strings.Cut(call, " ")
	for name, id := range k.ids {
		path = strings.ReplaceAll(path, "{"+name+"}", fmt.Sprint(id))
	}
	form := url.Values{}
	for i := 0; i < len(params); i += 2 {
		v, ok := params[i+1].(string)
		if !ok {
			data, err := json.Marshal(params[i+1])
			if err != nil {
				k.Fatal(err)
			}
			v = string(data)
		}
		form.Set(params[i].(string), v)
	}
	a, err := k.people[who].call(method, path, form)
	if a == nil {
		k.Fatalf("%s by %q: %v", call, who, err)
	}
	return a
}

// must is a call that has to succeed.
func (k *demoClient) must(who, call string, params ...any) map[string]any {
	k.Helper()
	a := k.call(who, call, params...)
	if a["result"] != "success" || a["msg"] != "" {
		k.Fatalf("%s by %q: %v", call, who, a)
	}
	return a
}

// refused is a call that has to fail with a code and with a message that contains msg.
func (k *demoClient) refused(who, call, code, msg string, params ...any) map[string]any {
	k.Helper()
	a := k.call(who, call, params...)
	if a["result"] != "error" || a["code"] != code || !strings.Contains(a["msg"].(string), msg) {
		k.Errorf("%s by %q: %v, want %s %q", call, who, a, code, msg)
	}
	return a
}

func (k *demoClient) equal(what string, got, want any) {
	k.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		k.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestSpecifiedErrors causes every error that the protocol names.
func TestSpecifiedErrors(t *testing.T) {
	k := newDemoClient(t)
	k.refused("ann", "GET messages/999999", "BAD_REQUEST", "Invalid message(s)")
	k.refused("ann", "PATCH drafts/999", "BAD_REQUEST", "Draft does not exist", "draft",
		map[string]any{"type": "", "to": []int{}, "topic": "", "content": "x"})
	k.refused("ann", "GET streams/999/email_address", "BAD_REQUEST", "Invalid channel ID")
	k.refused("ann", "PUT bot_storage", "PERMISSION_DENIED", "Must be a bot user", "storage",
		map[string]string{"a": "b"})
	k.must("demo-bot", "PUT bot_storage", "storage", map[string]string{"a": "b"})
	k.refused("ann", "POST mobile_push/test_notification", "INVALID_PUSH_DEVICE_TOKEN", "Device not recognized",
		"token", "unknown")
	a := k.refused("ann", "GET events", "BAD_EVENT_QUEUE_ID", "Bad event queue ID: gone", "queue_id", "gone",
		"last_event_id", -1)
	k.equal("the queue of the error", a["queue_id"], "gone")
	k.refused("olive", "PATCH users/{gus}", "BAD_REQUEST", "Guests cannot be organization administrators", "role", 200)
	k.refused("ada", "PATCH users/{bo}", "UNAUTHORIZED_PRINCIPAL", "Must be an organization owner", "role", 100)
	k.refused("olive", "PATCH users/{olive}", "BAD_REQUEST", "only organization owner", "role", 200)
	k.refused("ann", "PATCH users/{bo}", "BAD_REQUEST", "Insufficient permission", "full_name", "Other")
	k.refused("ada", "PATCH users/{bo}", "BAD_REQUEST", "value", "profile_data", []any{map[string]any{"id": 1}})
	k.refused("ann", "POST messages/flags/narrow", "REQUEST_VARIABLE_MISSING", "Missing 'anchor' argument",
		"num_before", 1, "num_after", 0, "narrow", []any{}, "op", "add", "flag", "read")
	k.refused("ada", "PATCH users/{bo}", "BAD_REQUEST", "User not authorized to change user emails", "new_email",
		"bo2@example.org")
	k.refused("ada", "POST realm/domains", "UNAUTHORIZED_PRINCIPAL", "Must be an organization owner", "domain",
		"example.net", "allow_subdomains", false)

	k.refused("ann", "POST invites", "BAD_REQUEST", "at least one email address", "invitee_emails", "", "stream_ids",
		[]int{})
	k.refused("ann", "POST invites", "BAD_REQUEST", "Invalid channel ID 999. No invites were sent.", "invitee_emails",
		"new@example.org", "stream_ids", []int{999})
	k.refused("gus", "POST invites", "BAD_REQUEST", "Insufficient permission", "invitee_emails", "new@example.org",
		"stream_ids", []int{})
	k.refused("gus", "POST invites/multiuse", "BAD_REQUEST", "Insufficient permission")
	k.refused("mo", "POST invites", "BAD_REQUEST", "Must be an organization administrator", "invitee_emails",
		"new@example.org", "stream_ids", []int{}, "invite_as", 200)
	a = k.refused("ann", "POST invites", "INVITATION_FAILED", "", "invitee_emails", "bo@example.org, new@example.org",
		"stream_ids", []int{})
	k.equal("sent_invitations", a["sent_invitations"], true)
	k.equal("daily_limit_reached", a["daily_limit_reached"], false)
	k.equal("license_limit_reached", a["license_limit_reached"], false)
	if e, ok := a["errors"].([]any); !ok || len(e) != 1 || len(e[0].([]any)) != 3 ||
		e[0].([]any)[0] != "bo@example.org" || e[0].([]any)[2] != false {
		t.Errorf("errors: %v", a["errors"])
	}
	noUser := map[string]any{"new": 1}
	k.must("olive", "PATCH realm", "can_add_subscribers_group", noUser)
	k.refused("ann", "POST invites", "BAD_REQUEST", "permission to subscribe other users to channels", "invitee_emails",
		"newer@example.org", "stream_ids", []int{2})
	k.must("olive", "PATCH realm", "can_invite_users_group", noUser)
	k.refused("ann", "POST invites", "BAD_REQUEST", "Insufficient permission", "invitee_emails", "newer@example.org",
		"stream_ids", []int{})
	long := strings.Repeat("é", 8001)
	k.refused("olive", "POST invites/multiuse", "BAD_REQUEST",
		"welcome_message_custom_text is too long (limit: 8000 characters)", "welcome_message_custom_text", long)

	a = k.must("ann", "GET users/me", "flavour", "x")
	k.equal("ignored", a["ignored_parameters_unsupported"], []any{"flavour"})
}

// TestSpecifiedPresence follows a client from its first presence report.
func TestSpecifiedPresence(t *testing.T) {
	k := newDemoClient(t)
	report := func(who string, params ...any) map[string]any {
		t.Helper()
		return k.must(who, "POST users/me/presence", append([]any{"status", "active"}, params...)...)
	}
	ann, bo := fmt.Sprint(k.ids["ann"]), fmt.Sprint(k.ids["bo"])
	a := report("ann")
	legacy := a["presences"].(map[string]any)["ann@example.org"].(map[string]any)
	if len(legacy) != 2 || legacy["aggregated"].(map[string]any)["client"] != "website" ||
		legacy["website"].(map[string]any)["pushable"] != false ||
		legacy["website"].(map[string]any)["status"] != "active" {
		t.Errorf("the old format: %v", legacy)
	}
	a = report("bo", "last_update_id", -1)
	if len(a["presences"].(map[string]any)) != 2 ||
		a["presences"].(map[string]any)[ann].(map[string]any)["active_timestamp"] == nil {
		t.Errorf("everything in the modern format: %v", a["presences"])
	}
	last := a["presence_last_update_id"].(float64)
	if _, ok := a["server_timestamp"].(float64); !ok {
		t.Errorf("server_timestamp %v", a["server_timestamp"])
	}
	a = report("bo", "last_update_id", last)
	k.equal("nothing new", a["presences"], map[string]any{})
	k.equal("the same id", a["presence_last_update_id"], last)
	k.must("mo", "POST users/me/presence", "status", "idle")
	a = report("bo", "last_update_id", last)
	if got := a["presences"].(map[string]any); len(got) != 1 || a["presence_last_update_id"].(float64) <= last {
		t.Errorf("what is new: %v", a)
	}
	a = report("ann", "slim_presence", true)
	if a["presences"].(map[string]any)[bo] == nil {
		t.Errorf("slim_presence: %v", a["presences"])
	}
	a = report("ann", "history_limit_days", 0)
	k.equal("of no days", a["presences"], map[string]any{})
	k.equal("no data, none passed", a["presence_last_update_id"], -1)
	a = report("ann", "ping_only", true)
	if a["presences"] != nil || a["server_timestamp"] != nil {
		t.Errorf("a ping is answered with %v", a)
	}
	k.equal("a ping that passed no number", a["presence_last_update_id"], -1)
	k.equal("a ping that passed one", report("ann", "ping_only", true, "last_update_id", 7)["presence_last_update_id"],
		7)
	k.refused("ann", "POST users/me/presence", "BAD_REQUEST", "Invalid status: away", "status", "away")
	k.refused("ann", "POST users/me/presence", "REQUEST_VARIABLE_MISSING", "Missing 'status' argument")
	k.refused("demo-bot", "POST users/me/presence", "BAD_REQUEST", "does not accept bot requests", "status", "active")
	a = k.must("ann", "GET realm/presence")
	if a["presence_last_update_id"] != nil || a["presences"].(map[string]any)["bo@example.org"] == nil {
		t.Errorf("realm/presence: %v", a)
	}
	k.refused("ada", "PATCH realm", "BAD_REQUEST", "presence_disabled is not a boolean", "presence_disabled", 1)
	queue := k.must("bo", "POST register", "event_types", []string{"realm", "presence"})["queue_id"]
	k.must("ada", "PATCH realm", "presence_disabled", true)
	a = report("ada")
	k.equal("with presence disabled", a["presences"], map[string]any{})
	k.equal("with presence disabled, none passed", a["presence_last_update_id"], -1)
	k.equal("with presence disabled, one passed", report("ann", "last_update_id", 1)["presence_last_update_id"], 1)
	k.equal("of the organization", k.must("ann", "GET realm/presence")["presences"], map[string]any{})
	k.refused("ann", "GET users/"+bo+"/presence", "BAD_REQUEST", "No presence data for "+bo)
	a = k.must("ann", "POST register", "fetch_event_types", []string{"realm", "presence"})
	if len(a["presences"].(map[string]any)) > 0 || a["presence_last_update_id"] != -1.0 ||
		a["realm_presence_disabled"] != true {
		t.Errorf("registered: %v %v %v", a["presences"], a["presence_last_update_id"], a["realm_presence_disabled"])
	}
	k.must("ada", "PATCH realm", "presence_disabled", false)
	if a = k.must("ann", "GET realm/presence"); a["presences"].(map[string]any)["ada@example.org"] != nil {
		t.Error("what was reported with presence disabled is kept")
	}
	var received []any
	for _, e := range k.must("bo", "GET events", "queue_id", queue, "last_event_id", -1)["events"].([]any) {
		received = append(received, e.(map[string]any)["property"], e.(map[string]any)["value"])
	}
	k.equal("events", received, []any{"presence_disabled", true, "presence_disabled", false})
}

// TestSpecifiedVisitors sends requests without an account, before the organization allows it and after.
func TestSpecifiedVisitors(t *testing.T) {
	k := newDemoClient(t)
	k.refused("", "POST register", "UNAUTHORIZED", "Not logged in")
	k.refused("", "GET users", "UNAUTHORIZED", "Not logged in")
	k.must("olive", "PATCH realm", "enable_spectator_access", true)
	a := k.must("", "POST register")
	if id, ok := a["queue_id"]; !ok || id != nil {
		t.Errorf("queue_id %v", id)
	}
	k.equal("last_event_id", a["last_event_id"], -1)
	k.equal("presences", a["presences"], map[string]any{})
	k.visitorAccounts("realm_users", a["realm_users"])
	k.visitorAccounts("members", k.must("", "GET users")["members"])
	k.must("olive", "PATCH streams/1", "is_web_public", true)
	k.post("ann", "open", "hello")
	public := []any{"narrow", [][]string{{"channels", "web-public"}}, "anchor", "newest", "num_before", 1,
		"num_after", 0}
	for _, m := range k.must("", "GET messages", public...)["messages"].([]any) {
		if at := m.(map[string]any)["sender_email"].(string); !strings.HasPrefix(at, "user") {
			t.Errorf("a visitor sees the sender's address %s", at)
		}
	}
	k.refused("", "POST register", "BAD_REQUEST", "parameter for anonymous request", "client_extavatar", true)
	k.refused("", "POST register", "BAD_REQUEST", "Invalid 'include_subscribers' parameter for anonymous request",
		"include_subscribers", "true")
	if a = k.must("", "GET users"); len(a["members"].([]any)) < 10 {
		t.Errorf("%d members", len(a["members"].([]any)))
	}
	k.refused("", "GET users/me", "UNAUTHORIZED", "Not logged in")
}

// visitorAccounts checks what visitors learn of people: no address, no time zone, and the day on which they joined.
func (k *demoClient) visitorAccounts(list string, accounts any) {
	k.T.Helper()
	for _, x := range accounts.([]any) {
		u := x.(map[string]any)
		if u["is_bot"] == true {
			continue
		}
		_, zone := u["timezone"]
		if u["delivery_email"] != nil || zone || !strings.HasPrefix(u["email"].(string), "user") ||
			len(u["date_joined"].(string)) != len("2006-01-02") {
			k.T.Errorf("a visitor gets in %s %v", list, u)
		}
	}
}

// TestSpecifiedRegistration checks the fields of a registration, and that they are there only if they were requested.
func TestSpecifiedRegistration(t *testing.T) {
	k := newDemoClient(t)
	a := k.must("ann", "POST register", "idle_queue_timeout", 700)
	for _, name := range strings.Fields(`
		queue_id last_event_id idle_queue_timeout_secs max_topic_length max_message_length
		realm_empty_topic_display_name zulip_feature_level realm_users realm_user_groups realm_linkifiers presences
		user_settings subscriptions recent_private_conversations navigation_views saved_snippets channel_folders`) {
		if _, ok := a[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	a = k.must("ann", "POST register", "fetch_event_types", []string{"saved_snippets", "no such thing"}, "event_types",
		[]string{"message"})
	if a["saved_snippets"] == nil || a["subscriptions"] != nil || a["realm_users"] != nil {
		t.Errorf("asked for one section, got %d", len(a))
	}
	k.equal("last_event_id", a["last_event_id"], -1)
	k.must("ann", "DELETE events", "queue_id", a["queue_id"])
	k.refused("ann", "GET events", "BAD_EVENT_QUEUE_ID", "", "queue_id", a["queue_id"], "last_event_id", -1)
}

// TestSpecifiedLimits sends values at the limits that the protocol names, and beyond.
func TestSpecifiedLimits(t *testing.T) {
	k := newDemoClient(t)
	a := k.must("ann", "POST register", "fetch_event_types", []string{"realm", "recent_private_conversations"})
	k.equal("max_topic_length", a["max_topic_length"], 60)
	k.equal("max_message_length", a["max_message_length"], 10000)
	k.equal("recent conversations", a["recent_private_conversations"], []any{})
	topic := func(n int) []any {
		return []any{"stream_id", 1, "topic", strings.Repeat("ß", n), "visibility_policy", 3}
	}
	k.must("ann", "POST user_topics", topic(60)...)
	k.refused("ann", "POST user_topics", "BAD_REQUEST", "(limit: 60 characters)", topic(61)...)
	k.refused("ann", "POST user_topics", "BAD_REQUEST", "Invalid visibility_policy", "stream_id", 1, "topic", "t",
		"visibility_policy", 4)
	k.must("ann", "POST messages/render", "content", strings.Repeat("ß", 10000))
	k.refused("ann", "POST messages/render", "BAD_REQUEST", "", "content", strings.Repeat("ß", 10001))

	if link := k.must("olive", "POST invites/multiuse")["invite_link"]; !strings.HasPrefix(fmt.Sprint(link), "http") {
		t.Errorf("invite_link %v", link)
	}
	k.must("olive", "POST invites", "invitee_emails", "new@example.org", "stream_ids", []int{})
	k.must("olive", "POST invites", "invitee_emails", "newer@example.org", "stream_ids", []int{},
		"invite_expires_in_minutes", nil)
	for _, x := range k.must("olive", "GET invites")["invites"].([]any) {
		i := x.(map[string]any)
		if i["email"] == "newer@example.org" {
			k.equal("the end of an unlimited invitation", i["expiry_date"], nil)
		} else if lasts := i["expiry_date"].(float64) - i["invited"].(float64); lasts != 14400*60 {
			t.Errorf("an invitation lasts %v seconds", lasts)
		}
	}

	for i := range 5 {
		k.must("bo", "POST messages", "type", "channel", "to", "general", "topic", "many", "content", fmt.Sprint(i))
	}
	a = k.must("ann", "POST messages/flags/narrow", "anchor", "newest", "num_before", 2, "num_after", 0, "narrow",
		[][]string{{"topic", "many"}}, "op", "add", "flag", "starred")
	k.equal("processed", a["processed_count"], 2)
	k.equal("updated", a["updated_count"], 2)
	k.equal("found_oldest", a["found_oldest"], false)
	k.equal("found_newest", a["found_newest"], true)
	for _, anchor := range []string{"oldest", "newest", "first_unread"} {
		a = k.must("ann", "POST messages/flags/narrow", "anchor", anchor, "num_before", 0, "num_after", 0, "op", "add",
			"flag", "starred")
		k.equal("processed at "+anchor+" without a narrow", a["processed_count"], 1)
	}
	middle := a["first_processed_id"]
	k.refused("ann", "GET messages", "BAD_REQUEST", "The anchor can only be excluded at an end of the range", "anchor",
		middle, "num_before", 1, "num_after", 1, "include_anchor", false)
	a = k.must("ann", "GET messages", "anchor", middle, "num_before", 0, "num_after", 1, "include_anchor", false)
	if list := a["messages"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] == middle {
		t.Errorf("after the excluded anchor %v are %v", middle, list)
	}
	for range 3 {
		k.must("ann", "POST messages", "type", "direct", "to", []int{k.ids["bo"]}, "content", "hello")
	}
	k.must("ann", "POST messages", "type", "direct", "to", []int{k.ids["bo"], k.ids["mo"]}, "content", "both")
	a = k.must("ann", "POST register", "fetch_event_types", []string{"recent_private_conversations"})
	if n := len(a["recent_private_conversations"].([]any)); n != 2 {
		t.Errorf("%d conversations", n)
	}
}

// TestDescriptionIsServed reads the API description without an account.
func TestDescriptionIsServed(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"))
	at := p.serving()
	_, served := getText(t, at+"/api/openapi.json")
	printed, code := runParley("openapi")
	if code != 0 || served != printed {
		t.Errorf("served %d bytes, parley openapi printed %d with code %d", len(served), len(printed), code)
	}
}
