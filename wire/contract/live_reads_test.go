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
	w := newWorld(t)
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
	w := newWorld(t)
	w.furnish()
	asked := 0
	for _, e := range w.contract.Endpoints() {
		name := e.Method + " " + e.Path
		if e.Method != http.MethodGet || slices.Contains(notJSON, name) {
			continue
		}
		for _, who := range []string{"owner", "member", "guest", "bot"} {
			if w.people[who] == nil {
				continue
			}
			asked++
			w.read(who, e.Path)
		}
	}
	// Parameters that change an answer's form.
	for _, who := range []string{"owner", "member", "guest", "bot"} {
		if w.people[who] == nil {
			continue
		}
		w.must(who, "GET", "/messages", "anchor", "first_unread", "num_before", 5, "num_after", 5, "narrow", "[]", "apply_markdown", false, "client_gravatar", false)
		w.must(who, "GET", "/messages", "anchor", "oldest", "num_before", 0, "num_after", 50, "narrow", `[{"operator":"search","operand":"hello"}]`)
		w.must(who, "GET", "/messages", "anchor", "date", "anchor_date", "2020-01-01", "num_before", 0, "num_after", 5)
		w.must(who, "GET", "/messages", "message_ids", []int{w.num("message_id")}, "allow_empty_topic_name", true)
		w.must(who, "GET", "/users", "client_gravatar", false)
		w.must(who, "GET", "/users", "user_ids", []int{w.num("owner")})
		w.must(who, "GET", "/users/me/subscriptions", "include_subscribers", "partial")
		w.must(who, "GET", "/streams", "exclude_archived", false)
	}
	if asked < 100 {
		t.Errorf("only %d questions were asked", asked)
	}
	w.settle()
}

func (w *world) read(who, path string) {
	w.Helper()
	template := path
	switch {
	case path == "/users/{email}":
		path = "/users/" + w.people["owner"].email
	case path == "/users/{user_id_or_email}/presence":
		path = "/users/{owner}/presence"
	case path == "/realm/subdomain/{subdomain}":
		path = "/realm/subdomain/somewhere"
	case strings.HasSuffix(path, "/{realm_id_str}/{filename}"):
		if w.vars["path_id"] == "" {
			return // uploading is not there, which furnish has counted
		}
		path = strings.Replace(path, "{realm_id_str}/{filename}", w.vars["path_id"], 1)
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
			for name, value := range w.vars {
				s = strings.ReplaceAll(s, "{"+name+"}", value)
			}
			arguments[i] = s
		}
	}
	if template == "/events" {
		queue := w.must(who, "POST", "/register", "event_types", []string{"message"})
		arguments[1] = text(queue["queue_id"])
	}
	if whom, _, _ := strings.Cut(mayRefuse[template], ":"); slices.Contains(strings.Fields(whom), who) {
		w.call(w.people[who], "GET", path, arguments...)
	} else {
		w.must(who, "GET", path, arguments...)
	}
}

// furnish puts one of everything into the organization, so that no list is empty.
func (w *world) furnish() {
	w.Helper()
	everyone := []int{w.num("owner"), w.num("member"), w.num("other"), w.num("guest")}
	w.must("owner", "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "conform", "description": "about *it*"}}, "principals", everyone)
	w.keepChannel("stream_id", "owner", "conform")
	bot := w.must("owner", "POST", "/bots", "full_name", "Crawler", "short_name", "crawler")
	if w.keep("bot_id", bot["user_id"]) {
		mine := w.must("owner", "GET", "/users/{bot_id}")
		user, _ := mine["user"].(map[string]any)
		w.people["bot"] = &person{email: text(user["email"]), key: text(bot["api_key"]), id: w.num("bot_id")}
		w.must("owner", "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "conform"}}, "principals", []int{w.num("bot_id")})
	}
	w.keep("message_id", w.must("owner", "POST", "/messages", "type", "stream", "to", "conform", "topic", "reading", "content", "hello **world** https://example.com/")["id"])
	w.must("member", "POST", "/messages/{message_id}/reactions", "emoji_name", "tada")
	w.must("member", "POST", "/messages/flags", "messages", []int{w.num("message_id")}, "op", "add", "flag", "read")
	w.must("owner", "PATCH", "/messages/{message_id}", "content", "hello again, @**all** https://example.com/")
	w.must("owner", "POST", "/messages", "type", "private", "to", []int{w.num("member")}, "content", "a *direct* word")
	w.must("owner", "POST", "/messages", "type", "private", "to", everyone[1:], "content", "to many")
	w.must("owner", "POST", "/users/me/presence", "status", "active")
	w.must("owner", "POST", "/users/me/status", "status_text", "crawling", "emoji_name", "car")
	w.must("member", "POST", "/users/me/alert_words", "alert_words", []string{"crawl"})
	w.must("member", "POST", "/drafts", "drafts", []any{map[string]any{"type": "stream", "to": []int{w.num("stream_id")}, "topic": "t", "content": "c"}})
	w.must("member", "POST", "/saved_snippets", "title", "t", "content", "c")
	w.must("member", "POST", "/scheduled_messages", "type", "channel", "to", w.num("stream_id"), "topic", "t", "content", "later", "scheduled_delivery_timestamp", farFuture)
	w.must("member", "POST", "/scheduled_messages", "type", "direct", "to", []int{w.num("owner")}, "content", "later", "scheduled_delivery_timestamp", farFuture)
	w.must("member", "POST", "/reminders", "message_id", w.num("message_id"), "scheduled_delivery_timestamp", farFuture, "note", "read this")
	w.must("member", "POST", "/navigation_views", "fragment", "narrow/is/alerted", "is_pinned", true, "name", "Alerts")
	w.must("owner", "POST", "/channel_folders/create", "name", "Folder", "description", "of *channels*")
	w.must("owner", "POST", "/user_groups/create", "name", "crawlers", "description", "who crawl", "members", []int{w.num("owner"), w.num("member")})
	for _, g := range list(w.must("owner", "GET", "/user_groups")["user_groups"]) {
		if group := g.(map[string]any); group["name"] == "crawlers" {
			w.keep("user_group_id", group["id"])
		}
	}
	w.must("owner", "POST", "/realm/filters", "pattern", "#(?P<id>[0-9]+)", "url_template", "https://example.com/{id}")
	w.must("owner", "POST", "/realm/playgrounds", "name", "Go", "pygments_language", "Go", "url_template", "https://example.com/{code}")
	w.must("owner", "POST", "/realm/domains", "domain", "example.org", "allow_subdomains", true)
	w.must("owner", "POST", "/realm/profile_fields", "name", "Phone", "hint", "with area code", "field_type", 1)
	w.must("owner", "POST", "/invites", "invitee_emails", "new@example.net", "stream_ids", []int{})
	w.must("owner", "POST", "/invites/multiuse", "stream_ids", []int{})
	w.attach("owner", "/realm/emoji/crawl", "a.png", pixel)
	got := w.attach("owner", "/user_uploads", "a b.txt", []byte("upload"))
	if path, ok := strings.CutPrefix(text(got["url"]), "/user_uploads/"); ok {
		w.vars["path_id"] = path
		w.must("owner", "POST", "/messages", "type", "stream", "to", "conform", "topic", "files", "content", fmt.Sprintf("[a b.txt](/user_uploads/%s)", path))
	}
	if w.people["bot"] != nil {
		w.must("bot", "PUT", "/bot_storage", "storage", map[string]string{"k": "v"})
	}
}

// farFuture is a second in 2100: nothing scheduled for it goes off during a test.
const farFuture = 4102444800
