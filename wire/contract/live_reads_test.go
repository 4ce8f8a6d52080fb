package contract

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readArguments are the parameters of GET endpoints, beside those in the path.
var readArguments = map[string][]any{
	"/get_stream_id":           {"stream", "conform"},
	"/messages":                {"anchor", "newest", "num_before", 100, "num_after", 0},
	"/messages/matches_narrow": {"msg_ids", "[{message_id}]", "narrow", `[{"operator":"has","operand":"link"}]`},
	"/messages/meaning":        {"query", "lunch"},
	"/messages/summary":        {"narrow", `[{"operator":"channel","operand":"conform"}]`},
	"/events":                  {"queue_id", "{queue_id}", "last_event_id", -1, "dont_block", true},
	"/streams":                 {"include_all", true, "include_default", true},
	"/users":                   {"include_custom_profile_fields", true},
	"/users/me/subscriptions":  {"include_subscribers", "true"},
	"/channel_folders":         {"include_archived", true},
}

// mayRefuse lists the users that a GET endpoint may refuse, with the reason. All other users must get an answer.
var mayRefuse = map[string]string{
	"/bots":                                "guest bot: only members have bots",
	"/bot_storage":                         "owner member guest: only bots have storage",
	"/bots/{bot_id}/api_key":               "member guest bot: for the bot's owner and administrators",
	"/calls/bigbluebutton/create":          "owner member guest bot: not configured",
	"/gifs":                                "owner member guest bot: not configured",
	"/messages/meaning":                    "owner member guest bot: not configured",
	"/messages/summary":                    "owner member guest bot: not configured",
	"/messages/{message_id}/translation":   "owner member guest bot: not configured",
	"/assisted_texts/{text_key}":           "owner member guest bot: not configured",
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
	"/users/{user_id_or_email}/presence":             "owner member guest bot: users who were never online have none",
	"/realm/icon":                                    "owner member guest bot: a picture, not JSON",
	"/realm/logo":                                    "owner member guest bot: a picture, not JSON",
}

var inBraces = regexp.MustCompile(`\{[a-z_]+\}`)

// TestLiveRoutes lists which endpoints have a route. OPTIONS tells this without side effects.
func TestLiveRoutes(t *testing.T) {
	lt := newLiveTest(t)
	var missing []string
	for _, e := range lt.contract.Endpoints() {
		path := inBraces.ReplaceAllString(e.Path, "1")
		request, err := http.NewRequest(http.MethodOptions, lt.base+"/api/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := lt.client.Do(request)
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
	t.Logf("%d of %d endpoints are routed; %d are missing:\n  %s", len(lt.contract.Endpoints())-len(missing),
		len(lt.contract.Endpoints()),
		len(missing), strings.Join(missing, "\n  "))
	if len(missing) == len(lt.contract.Endpoints()) {
		t.Error("OPTIONS names no methods at all")
	}
}

// TestLiveReads calls every GET endpoint as every kind of user.
func TestLiveReads(t *testing.T) {
	lt := newLiveTest(t)
	lt.populate()
	asked := 0
	for _, e := range lt.contract.Endpoints() {
		name := e.Method + " " + e.Path
		if e.Method != http.MethodGet || slices.Contains(notJSON, name) {
			continue
		}
		for _, who := range []string{"owner", "member", "guest", "bot"} {
			if lt.users[who] == nil {
				continue
			}
			asked++
			lt.readAs(who, e.Path)
		}
	}
	// Parameters that change the form of an answer.
	for _, who := range []string{"owner", "member", "guest", "bot"} {
		if lt.users[who] == nil {
			continue
		}
		lt.mustCall(who, "GET", "/messages", "anchor", "first_unread", "num_before", 5, "num_after", 5, "narrow",
			"[]", "apply_markdown", false, "client_gravatar", false)
		lt.mustCall(who, "GET", "/messages", "anchor", "oldest", "num_before", 0, "num_after", 50, "narrow",
			`[{"operator":"search","operand":"hello"}]`)
		lt.mustCall(who, "GET", "/messages", "anchor", "date", "anchor_date", "2020-01-01", "num_before", 0,
			"num_after", 5)
		lt.mustCall(who, "GET", "/messages", "message_ids", []int{lt.savedID("message_id")}, "allow_empty_topic_name",
			true)
		lt.mustCall(who, "GET", "/users", "client_gravatar", false)
		lt.mustCall(who, "GET", "/users", "user_ids", []int{lt.savedID("owner")})
		lt.mustCall(who, "GET", "/users/me/subscriptions", "include_subscribers", "partial")
		lt.mustCall(who, "GET", "/streams", "exclude_archived", false)
	}
	if asked < 100 {
		t.Errorf("only %d calls were made", asked)
	}
	lt.reportFindings()
}

func (lt *liveTest) readAs(who, path string) {
	lt.Helper()
	template := path
	switch {
	case path == "/users/{email}":
		path = "/users/" + lt.users["owner"].email
	case path == "/users/{user_id_or_email}/presence":
		path = "/users/{owner}/presence"
	case path == "/realm/subdomain/{subdomain}":
		path = "/realm/subdomain/somewhere"
	case strings.HasSuffix(path, "/{realm_id_str}/{filename}"):
		if lt.saved["path_id"] == "" {
			return // uploads are missing, which populate has counted
		}
		path = strings.Replace(path, "{realm_id_str}/{filename}", lt.saved["path_id"], 1)
		if who != "owner" {
			return // the file belongs to the owner
		}
	}
	if path = lt.path(path); strings.Contains(path, "{") {
		lt.skipped = append(lt.skipped, "GET "+path)
		return
	}
	arguments := slices.Clone(readArguments[template])
	for i, a := range arguments {
		if s, ok := a.(string); ok {
			for name, value := range lt.saved {
				s = strings.ReplaceAll(s, "{"+name+"}", value)
			}
			arguments[i] = s
		}
	}
	if template == "/events" {
		queue := lt.mustCall(who, "POST", "/register", "event_types", []string{"message"})
		arguments[1] = text(queue["queue_id"])
	}
	if whom, _, _ := strings.Cut(mayRefuse[template], ":"); slices.Contains(strings.Fields(whom), who) {
		lt.call(lt.users[who], "GET", path, arguments...)
	} else {
		lt.mustCall(who, "GET", path, arguments...)
	}
}

// populate adds one object of every kind to the organization, so that no list is empty.
func (lt *liveTest) populate() {
	lt.Helper()
	everyone := []int{lt.savedID("owner"), lt.savedID("member"), lt.savedID("other"), lt.savedID("guest")}
	lt.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions",
		[]any{map[string]any{"name": "conform", "description": "about *it*"}}, "principals", everyone)
	lt.saveChannel("stream_id", "owner", "conform")
	bot := lt.mustCall("owner", "POST", "/bots", "full_name", "Crawler", "short_name", "crawler")
	if lt.save("bot_id", bot["user_id"]) {
		mine := lt.mustCall("owner", "GET", "/users/{bot_id}")
		user, _ := mine["user"].(map[string]any)
		lt.users["bot"] = &liveUser{email: text(user["email"]), key: text(bot["api_key"]), id: lt.savedID("bot_id")}
		lt.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions",
			[]any{map[string]any{"name": "conform"}}, "principals", []int{lt.savedID("bot_id")})
	}
	lt.save("message_id", lt.mustCall("owner", "POST", "/messages", "type", "stream", "to", "conform", "topic",
		"reading", "content", "hello **world** https://example.com/")["id"])
	lt.mustCall("member", "POST", "/messages/{message_id}/reactions", "emoji_name", "tada")
	lt.mustCall("member", "POST", "/messages/flags", "messages", []int{lt.savedID("message_id")}, "op", "add", "flag",
		"read")
	lt.mustCall("owner", "PATCH", "/messages/{message_id}", "content", "hello again, @**all** https://example.com/")
	lt.mustCall("owner", "POST", "/messages", "type", "private", "to", []int{lt.savedID("member")}, "content",
		"a *direct* word")
	lt.mustCall("owner", "POST", "/messages", "type", "private", "to", everyone[1:], "content", "to many")
	lt.mustCall("owner", "POST", "/users/me/presence", "status", "active")
	lt.mustCall("owner", "POST", "/users/me/status", "status_text", "crawling", "emoji_name", "car")
	lt.mustCall("member", "POST", "/users/me/alert_words", "alert_words", []string{"crawl"})
	lt.mustCall("member", "POST", "/drafts", "drafts",
		[]any{map[string]any{"type": "stream", "to": []int{lt.savedID("stream_id")}, "topic": "t", "content": "c"}})
	lt.mustCall("member", "POST", "/saved_snippets", "title", "t", "content", "c")
	lt.mustCall("member", "POST", "/scheduled_messages", "type", "channel", "to", lt.savedID("stream_id"), "topic",
		"t", "content", "later", "scheduled_delivery_timestamp", farFuture)
	lt.mustCall("member", "POST", "/scheduled_messages", "type", "direct", "to", []int{lt.savedID("owner")},
		"content", "later", "scheduled_delivery_timestamp", farFuture)
	lt.mustCall("member", "POST", "/reminders", "message_id", lt.savedID("message_id"),
		"scheduled_delivery_timestamp", farFuture, "note", "read this")
	lt.mustCall("member", "POST", "/navigation_views", "fragment", "narrow/is/alerted", "is_pinned", true, "name",
		"Alerts")
	lt.mustCall("owner", "POST", "/channel_folders/create", "name", "Folder", "description", "of *channels*")
	lt.mustCall("owner", "POST", "/user_groups/create", "name", "crawlers", "description", "who crawl", "members",
		[]int{lt.savedID("owner"), lt.savedID("member")})
	for _, g := range list(lt.mustCall("owner", "GET", "/user_groups")["user_groups"]) {
		if group := g.(map[string]any); group["name"] == "crawlers" {
			lt.save("user_group_id", group["id"])
		}
	}
	lt.mustCall("owner", "POST", "/realm/filters", "pattern", "#(?P<id>[0-9]+)", "url_template",
		"https://example.com/{id}")
	lt.mustCall("owner", "POST", "/realm/playgrounds", "name", "Go", "pygments_language", "Go", "url_template",
		"https://example.com/{code}")
	lt.mustCall("owner", "POST", "/realm/domains", "domain", "example.org", "allow_subdomains", true)
	lt.mustCall("owner", "POST", "/realm/profile_fields", "name", "Phone", "hint", "with area code", "field_type", 1)
	lt.mustCall("owner", "POST", "/invites", "invitee_emails", "new@example.net", "stream_ids", []int{})
	lt.mustCall("owner", "POST", "/invites/multiuse", "stream_ids", []int{})
	lt.mustUpload("owner", "/realm/emoji/crawl", "a.png", pixel)
	got := lt.mustUpload("owner", "/user_uploads", "a b.txt", []byte("upload"))
	if path, ok := strings.CutPrefix(text(got["url"]), "/user_uploads/"); ok {
		lt.saved["path_id"] = path
		lt.mustCall("owner", "POST", "/messages", "type", "stream", "to", "conform", "topic", "files", "content",
			fmt.Sprintf("[a b.txt](/user_uploads/%s)", path))
	}
	if lt.users["bot"] != nil {
		lt.mustCall("bot", "PUT", "/bot_storage", "storage", map[string]string{"k": "v"})
	}
}

// farFuture is a time in 2100, in Unix seconds: nothing scheduled for it is sent during a test.
const farFuture = 4102444800
