package contract

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readArguments are what GET endpoints need beside their path.
var readArguments = map[string][]any{
	"/get_stream_id":           {"stream", "conform"},
	"/messages":                {"anchor", "newest", "num_before", 100, "num_after", 0},
	"/messages/matches_narrow": {"msg_ids", "[{message_id}]", "narrow", `[{"operator":"has","operand":"link"}]`},
	"/messages/summary":        {"narrow", `[{"operator":"channel","operand":"conform"}]`},
	"/events":                  {"queue_id", "{queue_id}", "last_event_id", -1, "dont_block", true},
	"/streams":                 {"include_all", true, "include_default", true},
	"/users":                   {"include_custom_profile_fields", true},
	"/users/me/subscriptions":  {"include_subscribers", "true"},
	"/channel_folders":         {"include_archived", true},
}

// mayRefuse says whom a GET endpoint may refuse, and why: everyone else must get an answer.
var mayRefuse = map[string]string{
	"/bots":                                "guest bot: only members have bots",
	"/bot_storage":                         "owner member guest: only bots have storage",
	"/bots/{bot_id}/api_key":               "member guest bot: for the bot's owner and administrators",
	"/calls/bigbluebutton/create":          "owner member guest bot: not configured",
	"/messages/summary":                    "owner member guest bot: not configured",
	"/export/realm":                        "member guest bot: administrators only",
	"/export/realm/consents":               "member guest bot: administrators only",
	"/invites":                             "guest bot: members only",
	"/realm/domains":                       "guest: not for guests",
	"/streams":                             "member guest bot: include_all is for administrators",
	"/user_groups":                         "guest bot: members only",
	"/user_groups/{group}/members":         "guest bot: members only",
	"/streams/{stream_id}/members":         "guest: not subscribed there",
	"/user_groups/{user_group_id}/members": "guest bot: members only",
	"/user_groups/{user_group_id}/members/{user_id}": "guest bot: members only",
	"/user_groups/{user_group_id}/subgroups":         "guest bot: members only",
	"/users/{user_id_or_email}/presence":             "owner member guest bot: whoever never was here has none",
	"/realm/icon":                                    "owner member guest bot: a picture, not JSON",
	"/realm/logo":                                    "owner member guest bot: a picture, not JSON",
}

var inBraces = regexp.MustCompile(`\{[a-z_]+\}`)

// Which of the listed endpoints are routed: OPTIONS says so without doing anything.
func TestLiveRoutes(t *testing.T) {
	w := newLiveTest(t)
	var missing []string
	for _, e := range w.contract.Endpoints() {
		path := inBraces.ReplaceAllString(e.Path, "1")
		request, err := http.NewRequest(http.MethodOptions, w.base+"/api/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := w.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		allow := strings.FieldsFunc(answer.Header.Get("Allow"), func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.Contains(allow, e.Method) {
			note := ""
			if e.Spec == "YES" {
				note = " (defined by the specification)"
			}
			missing = append(missing, e.Method+" "+e.Path+note)
		}
	}
	t.Logf("%d of %d endpoints are routed; %d are missing:\n  %s", len(w.contract.Endpoints())-len(missing), len(w.contract.Endpoints()),
		len(missing), strings.Join(missing, "\n  "))
	if len(missing) == len(w.contract.Endpoints()) {
		t.Error("OPTIONS names no methods at all")
	}
}

// Every GET endpoint, asked by everyone there is.
func TestLiveReads(t *testing.T) {
	w := newLiveTest(t)
	w.populate()
	asked := 0
	for _, e := range w.contract.Endpoints() {
		name := e.Method + " " + e.Path
		if e.Method != http.MethodGet || slices.Contains(notJSON, name) {
			continue
		}
		for _, who := range []string{"owner", "member", "guest", "bot"} {
			if w.users[who] == nil {
				continue
			}
			asked++
			w.readAs(who, e.Path)
		}
	}
	// Parameters that change an answer's form.
	for _, who := range []string{"owner", "member", "guest", "bot"} {
		if w.users[who] == nil {
			continue
		}
		w.mustCall(who, "GET", "/messages", "anchor", "first_unread", "num_before", 5, "num_after", 5, "narrow", "[]", "apply_markdown", false, "client_gravatar", false)
		w.mustCall(who, "GET", "/messages", "anchor", "oldest", "num_before", 0, "num_after", 50, "narrow", `[{"operator":"search","operand":"hello"}]`)
		w.mustCall(who, "GET", "/messages", "anchor", "date", "anchor_date", "2020-01-01", "num_before", 0, "num_after", 5)
		w.mustCall(who, "GET", "/messages", "message_ids", []int{w.savedID("message_id")}, "allow_empty_topic_name", true)
		w.mustCall(who, "GET", "/users", "client_gravatar", false)
		w.mustCall(who, "GET", "/users", "user_ids", []int{w.savedID("owner")})
		w.mustCall(who, "GET", "/users/me/subscriptions", "include_subscribers", "partial")
		w.mustCall(who, "GET", "/streams", "exclude_archived", false)
	}
	if asked < 100 {
		t.Errorf("only %d questions were asked", asked)
	}
	w.reportFindings()
}

func (w *liveTest) readAs(who, path string) {
	w.Helper()
	template := path
	switch {
	case path == "/users/{email}":
		path = "/users/" + w.users["owner"].email
	case path == "/users/{user_id_or_email}/presence":
		path = "/users/{owner}/presence"
	case path == "/realm/subdomain/{subdomain}":
		path = "/realm/subdomain/somewhere"
	case strings.HasSuffix(path, "/{realm_id_str}/{filename}"):
		if w.saved["path_id"] == "" {
			return // uploading is not there, which furnish has counted
		}
		path = strings.Replace(path, "{realm_id_str}/{filename}", w.saved["path_id"], 1)
		if who != "owner" {
			return // the file is the owner's
		}
	}
	if path = w.path(path); strings.Contains(path, "{") {
		w.skipped = append(w.skipped, "GET "+path)
		return
	}
	arguments := slices.Clone(readArguments[template])
	for i, a := range arguments {
		if s, ok := a.(string); ok {
			for name, value := range w.saved {
				s = strings.ReplaceAll(s, "{"+name+"}", value)
			}
			arguments[i] = s
		}
	}
	if template == "/events" {
		queue := w.mustCall(who, "POST", "/register", "event_types", []string{"message"})
		arguments[1] = text(queue["queue_id"])
	}
	if whom, _, _ := strings.Cut(mayRefuse[template], ":"); slices.Contains(strings.Fields(whom), who) {
		w.call(w.users[who], "GET", path, arguments...)
	} else {
		w.mustCall(who, "GET", path, arguments...)
	}
}

// populate puts one of everything into the organization, so that no list is empty.
func (w *liveTest) populate() {
	w.Helper()
	everyone := []int{w.savedID("owner"), w.savedID("member"), w.savedID("other"), w.savedID("guest")}
	w.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "conform", "description": "about *it*"}}, "principals", everyone)
	w.saveChannel("stream_id", "owner", "conform")
	bot := w.mustCall("owner", "POST", "/bots", "full_name", "Crawler", "short_name", "crawler")
	if w.save("bot_id", bot["user_id"]) {
		mine := w.mustCall("owner", "GET", "/users/{bot_id}")
		user, _ := mine["user"].(map[string]any)
		w.users["bot"] = &liveUser{email: text(user["email"]), key: text(bot["api_key"]), id: w.savedID("bot_id")}
		w.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "conform"}}, "principals", []int{w.savedID("bot_id")})
	}
	w.save("message_id", w.mustCall("owner", "POST", "/messages", "type", "stream", "to", "conform", "topic", "reading", "content", "hello **world** https://example.com/")["id"])
	w.mustCall("member", "POST", "/messages/{message_id}/reactions", "emoji_name", "tada")
	w.mustCall("member", "POST", "/messages/flags", "messages", []int{w.savedID("message_id")}, "op", "add", "flag", "read")
	w.mustCall("owner", "PATCH", "/messages/{message_id}", "content", "hello again, @**all** https://example.com/")
	w.mustCall("owner", "POST", "/messages", "type", "private", "to", []int{w.savedID("member")}, "content", "a *direct* word")
	w.mustCall("owner", "POST", "/messages", "type", "private", "to", everyone[1:], "content", "to many")
	w.mustCall("owner", "POST", "/users/me/presence", "status", "active")
	w.mustCall("owner", "POST", "/users/me/status", "status_text", "crawling", "emoji_name", "car")
	w.mustCall("member", "POST", "/users/me/alert_words", "alert_words", []string{"crawl"})
	w.mustCall("member", "POST", "/drafts", "drafts", []any{map[string]any{"type": "stream", "to": []int{w.savedID("stream_id")}, "topic": "t", "content": "c"}})
	w.mustCall("member", "POST", "/saved_snippets", "title", "t", "content", "c")
	w.mustCall("member", "POST", "/scheduled_messages", "type", "channel", "to", w.savedID("stream_id"), "topic", "t", "content", "later", "scheduled_delivery_timestamp", farFuture)
	w.mustCall("member", "POST", "/scheduled_messages", "type", "direct", "to", []int{w.savedID("owner")}, "content", "later", "scheduled_delivery_timestamp", farFuture)
	w.mustCall("member", "POST", "/reminders", "message_id", w.savedID("message_id"), "scheduled_delivery_timestamp", farFuture, "note", "read this")
	w.mustCall("member", "POST", "/navigation_views", "fragment", "narrow/is/alerted", "is_pinned", true, "name", "Alerts")
	w.mustCall("owner", "POST", "/channel_folders/create", "name", "Folder", "description", "of *channels*")
	w.mustCall("owner", "POST", "/user_groups/create", "name", "crawlers", "description", "who crawl", "members", []int{w.savedID("owner"), w.savedID("member")})
	for _, g := range list(w.mustCall("owner", "GET", "/user_groups")["user_groups"]) {
		if group := g.(map[string]any); group["name"] == "crawlers" {
			w.save("user_group_id", group["id"])
		}
	}
	w.mustCall("owner", "POST", "/realm/filters", "pattern", "#(?P<id>[0-9]+)", "url_template", "https://example.com/{id}")
	w.mustCall("owner", "POST", "/realm/playgrounds", "name", "Go", "pygments_language", "Go", "url_template", "https://example.com/{code}")
	w.mustCall("owner", "POST", "/realm/domains", "domain", "example.org", "allow_subdomains", true)
	w.mustCall("owner", "POST", "/realm/profile_fields", "name", "Phone", "hint", "with area code", "field_type", 1)
	w.mustCall("owner", "POST", "/invites", "invitee_emails", "new@example.net", "stream_ids", []int{})
	w.mustCall("owner", "POST", "/invites/multiuse", "stream_ids", []int{})
	w.mustUpload("owner", "/realm/emoji/crawl", "a.png", pixel)
	got := w.mustUpload("owner", "/user_uploads", "a b.txt", []byte("upload"))
	if path, ok := strings.CutPrefix(text(got["url"]), "/user_uploads/"); ok {
		w.saved["path_id"] = path
		w.mustCall("owner", "POST", "/messages", "type", "stream", "to", "conform", "topic", "files", "content", fmt.Sprintf("[a b.txt](/user_uploads/%s)", path))
	}
	if w.users["bot"] != nil {
		w.mustCall("bot", "PUT", "/bot_storage", "storage", map[string]string{"k": "v"})
	}
}

// farFuture is a second in 2100: nothing scheduled for it goes off during a test.
const farFuture = 4102444800
