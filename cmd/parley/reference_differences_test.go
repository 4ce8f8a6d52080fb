package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestFollowsReference checks behaviour in which the program once differed from the reference server. The page
// .github/docs/differences.md lists the differences that remain.
func TestFollowsReference(t *testing.T) {
	k := newDemoClient(t)
	for _, x := range []struct {
		name  string
		check func(t *testing.T, k *demoClient)
	}{
		{"stop words of searches", followsStopWords},
		{"hidden addresses in searches", followsHiddenAddresses},
		{"highlights of phrases", followsPhraseHighlights},
		{"repeated requests", followsRepeatedRequests},
		{"leaving and rejoining", followsLeaving},
		{"flags of the newest message", followsNewestAnchor},
		{"visitors", followsVisitors},
		{"messages with links", followsLinks},
	} {
		t.Run(x.name, func(t *testing.T) {
			sub := *k
			sub.T = t
			x.check(t, &sub)
		})
	}
}

// post sends a message to a topic of the channel general and returns its id.
func (k *demoClient) post(who, topic, content string) int64 {
	k.Helper()
	a := k.must(who, "POST messages", "type", "channel", "to", "general", "topic", topic, "content", content)
	return int64(a["id"].(float64))
}

// search returns the messages that a search finds.
func (k *demoClient) search(who, words string) (list []map[string]any) {
	k.Helper()
	a := k.must(who, "GET messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow",
		[]any{[]string{"search", words}})
	for _, m := range a["messages"].([]any) {
		list = append(list, m.(map[string]any))
	}
	return list
}

// finds requires that a search finds exactly these messages.
func (k *demoClient) finds(words string, want ...int64) {
	k.Helper()
	var got []int64
	for _, m := range k.search("ann", words) {
		got = append(got, int64(m["id"].(float64)))
	}
	if !slices.Equal(got, want) {
		k.Errorf("%q finds %v, want %v", words, got, want)
	}
}

// Searches ignore the stop words of a query; a query of nothing else finds no message. Register lists them.
func followsStopWords(_ *testing.T, k *demoClient) {
	first := k.post("ann", "T1", "deploy the narwhal at noon")
	second := k.post("ann", "T1", "it was completed: unreadable narwhals")
	k.finds("how to deploy", first)
	k.finds("is completed", second)
	k.finds("unreadable OR T1", second)
	k.finds("the")
	k.finds("how? to the!")
	k.finds("narwhal the", first, second)
	k.equal("the topic of a hit", k.search("ann", "the narwhal")[0]["match_content"],
		`<p>deploy the <span class="highlight">narwhal</span> at noon</p>`)
	all := k.must("ann", "GET messages", "anchor", "newest", "num_before", 5, "num_after", 0, "narrow",
		[]any{map[string]any{"operator": "search", "operand": "the", "negated": true}, []string{"topic", "T1"}})
	k.equal("messages without a stop word", len(all["messages"].([]any)), 2)
	words := fmt.Sprint(k.must("ann", "POST register", "fetch_event_types", []string{"stop_words"})["stop_words"])
	if n := len(strings.Fields(words)); n != 149 || !strings.HasPrefix(words, "[i me my ") {
		k.Errorf("%d stop words: %s", n, words)
	}

	// Parley finds parts of words with punctuation, which the reference does not.
	cpp := k.post("ann", "T1", "written in C++ and C#, or don't; path/to/ledger.txt")
	k.finds("C++", cpp)
	k.finds("c#", cpp)
	k.finds("don't", cpp)
	k.finds("ledger", cpp)
	k.finds(`"was completed"`, second)
	k.finds(`"the narwhal at"`, first)
}

// A search does not find the address of a link that has another text.
func followsHiddenAddresses(_ *testing.T, k *demoClient) {
	hidden := k.post(
		"ann",
		"links",
		"[label of gnu](http://gnuhidden.example/gnuxyz) and https://gnushown.example/gnuabc",
	)
	code := k.post("ann", "links", "`[label of gnu](http://gnuhidden.example/gnucode)`")
	k.finds("gnushown gnuabc", hidden)
	k.finds(`"gnushown.example"`, hidden)
	k.finds("gnuxyz")
	k.finds("gnuhidden", code)
	k.finds(`"gnuhidden.example/gnuxyz"`)
	k.finds(`"label of gnu](http"`, code)
	k.finds(`"label of gnu"`, hidden, code)
}

// The words of a phrase are highlighted each, in text and topic, and the name of an emoji in its element.
func followsPhraseHighlights(_ *testing.T, k *demoClient) {
	k.post("ann", "okapi topic", "okapis seen by an okapi keeper :wave:")
	m := k.search("ann", `"seen by an okapi"`)[0]
	mark := func(s string) string { return `<span class="highlight">` + s + `</span>` }
	k.equal("the text", m["match_content"], "<p>"+mark("okapis")+" "+mark("seen")+" by an "+mark("okapi")+
		` keeper <span aria-label="wave" class="emoji emoji-1f44b" role="img" title="wave">:wave:</span></p>`)
	k.equal("the topic", m["match_subject"], mark("okapi")+" topic")
	m = k.search("ann", "waving keeper")[0]
	k.equal("the emoji", m["match_content"], "<p>okapis seen by an okapi "+mark("keeper")+
		` <span aria-label="wave" class="emoji emoji-1f44b" role="img" title="wave">:`+mark("wave")+`:</span></p>`)
}

// A client may send a request again without an error.
func followsRepeatedRequests(t *testing.T, k *demoClient) {
	k.must("olive", "POST users/{bo}/reactivate")
	k.refused("ann", "POST users/{bo}/reactivate", "BAD_REQUEST", "Insufficient permission")
	k.must("olive", "DELETE users/{bo}")
	k.refused("olive", "DELETE users/{bo}", "BAD_REQUEST", "User is deactivated")
	k.must("olive", "POST users/{bo}/reactivate")
	k.must("olive", "POST users/{bo}/reactivate")
	k.people["bo"] = demoAccount(t, k.at, "bo@example.org")

	for range 2 {
		k.must("ann", "PATCH users/me/subscriptions/muted_topics", "stream", "general", "topic", "x", "op", "remove")
	}
	k.refused(
		"ann",
		"PATCH users/me/subscriptions/muted_topics",
		"BAD_REQUEST",
		"Topic is not muted",
		"stream_id",
		9999,
		"topic",
		"x",
		"op",
		"remove",
	)

	group := k.must("olive", "POST user_groups/create", "name", "narwhals", "description", "", "members",
		[]int{k.ids["ann"]})["group_id"]
	members := fmt.Sprintf("POST user_groups/%v/members", group)
	k.must("olive", members, "add", []int{k.ids["bo"]}, "delete", []int{k.ids["bo"]})
	k.equal("members", k.must("olive", fmt.Sprintf("GET user_groups/%v/members", group))["members"],
		[]any{float64(k.ids["ann"])})
	k.refused("olive", members, "BAD_REQUEST", "There is no member", "delete", []int{k.ids["bo"]})
	k.must("olive", fmt.Sprintf("POST user_groups/%v/deactivate", group))
	for _, list := range []string{"members", "subgroups", fmt.Sprint("members/", k.ids["ann"])} {
		k.refused("olive", fmt.Sprintf("GET user_groups/%v/%s", group, list), "BAD_REQUEST",
			"User group is deactivated.")
	}

	id := k.post("ann", "repeated", "stays here")
	general := k.must("ann", "GET get_stream_id", "stream", "general")["stream_id"]
	message := fmt.Sprintf("PATCH messages/%v", id)
	k.must("olive", message, "stream_id", general)
	k.must("olive", message, "stream_id", general, "propagate_mode", "change_all")
	k.refused("olive", message, "BAD_REQUEST", "Nothing to change")
	m := k.must("ann", fmt.Sprintf("GET messages/%v", id))["message"].(map[string]any)
	k.equal("edits of the message", m["edit_history"], nil)

	snippet := k.must("ann", "POST saved_snippets", "title", "t", "content", "c")["saved_snippet_id"]
	k.must("ann", fmt.Sprintf("PATCH saved_snippets/%v", snippet))

	k.must("olive", "PATCH realm", "name_changes_disabled", true)
	name := k.must("ann", "GET users/me")["full_name"]
	k.must("ann", "PATCH settings", "full_name", "Ann Else", "starred_message_counts", false)
	k.equal("the name", k.must("ann", "GET users/me")["full_name"], name)
	k.must("olive", "PATCH settings", "full_name", "Olive Oyl")
	k.must("olive", "PATCH realm", "name_changes_disabled", false)

	k.must("olive", "POST users/me/subscriptions", "subscriptions", []any{map[string]string{"name": "closing"}})
	closing := k.must("olive", "GET get_stream_id", "stream", "closing")["stream_id"]
	k.must("olive", fmt.Sprintf("DELETE streams/%v", closing))
	a := k.must("olive", "POST users/me/subscriptions", "subscriptions", []any{map[string]string{"name": "closing"}})
	k.equal("already subscribed", dig(t, a, "already_subscribed", fmt.Sprint(k.ids["olive"])), []any{"closing"})
	k.refused(
		"ann",
		"POST users/me/subscriptions",
		"BAD_REQUEST",
		"Unable to access channel (closing).",
		"subscriptions",
		[]any{map[string]string{"name": "closing"}},
	)
}

// Messages of a channel are read as soon as the user leaves it: a user that rejoins at once has none unread.
func followsLeaving(_ *testing.T, k *demoClient) {
	channel := []any{map[string]string{"name": "short visit"}}
	k.must("ann", "POST users/me/subscriptions", "subscriptions", channel, "principals",
		[]int{k.ids["ann"], k.ids["bo"]})
	queue := k.must("bo", "POST register", "event_types", []string{"update_message_flags", "subscription"})
	sent := []any{k.must("bo", "GET messages", "anchor", "newest", "num_before", 1, "num_after", 0, "narrow",
		[]any{[]string{"channel", "short visit"}})["messages"].([]any)[0].(map[string]any)["id"]} // its first notice
	for range 4 {
		sent = append(sent, k.must("ann", "POST messages", "type", "channel", "to", "short visit", "topic", "t",
			"content", "hi")["id"])
	}
	k.must("bo", "DELETE users/me/subscriptions", "subscriptions", []string{"short visit"})
	k.must("bo", "POST users/me/subscriptions", "subscriptions", channel)
	unread := k.must("bo", "GET messages", "anchor", "newest", "num_before", 10, "num_after", 0, "narrow",
		[]any{[]string{"channel", "short visit"}, []string{"is", "unread"}})
	k.equal("unread messages", len(unread["messages"].([]any)), 0)
	events := k.must("bo", "GET events", "queue_id", queue["queue_id"], "last_event_id", -1)["events"].([]any)
	marked := events[1].(map[string]any)
	k.equal("the event after leaving", []any{marked["type"], marked["op"], marked["flag"], marked["messages"]},
		[]any{"update_message_flags", "add", "read", sent})
}

// The specification calls the anchor "newest", and "first_unread" without unread messages, the most recent message. A
// range of nothing but the anchor contains it.
func followsNewestAnchor(_ *testing.T, k *demoClient) {
	k.post("ann", "anchors", "older")
	newest := float64(k.post("ann", "anchors", "gazelle, newer"))
	k.must("bo", "POST mark_all_as_read")
	for _, anchor := range []string{"newest", "first_unread"} {
		for _, terms := range [][]any{{[]string{"topic", "anchors"}}, {[]string{"search", `"azell"`}}} {
			flag := func(params ...any) map[string]any {
				return k.must(
					"bo",
					"POST messages/flags/narrow",
					append(params, "anchor", anchor, "narrow", terms, "flag",
						"starred", "num_after", 0)...)
			}
			a := flag("num_before", 0, "op", "add")
			k.equal("the newest message", []any{a["processed_count"], a["updated_count"], a["first_processed_id"],
				a["last_processed_id"], a["found_newest"]}, []any{1, 1, newest, newest, true})
			a = flag("num_before", 0, "op", "remove", "include_anchor", false)
			k.equal("without the anchor", []any{a["processed_count"], a["first_processed_id"]}, []any{0, nil})
			a = flag("num_before", 1, "op", "remove")
			k.equal("one before the anchor", []any{a["processed_count"], a["first_processed_id"]}, []any{1, newest})
		}
	}
	a := k.must("bo", "GET messages", "anchor", "newest", "num_before", 0, "num_after", 0, "narrow", []any{})
	k.equal("a listing of the anchor", len(a["messages"].([]any)), 0)
}

// Requests without a login get 401, browsers the login page or a page that says that there is none. The specification
// allows the data of web-public channels below both prefixes.
func followsVisitors(t *testing.T, k *demoClient) {
	k.must("olive", "PATCH realm", "enable_spectator_access", true)
	k.must("olive", "POST users/me/subscriptions", "subscriptions", []any{map[string]string{"name": "shop window"}},
		"is_web_public", true)
	open := k.must("olive", "POST messages", "type", "channel", "to", "shop window", "topic", "t", "content",
		"hi")["id"]
	closed := k.post("ann", "closed", "hi")
	_, a, err := k.people["ann"].upload(map[string]io.Reader{"a.txt": strings.NewReader("secret")})
	if err != nil {
		t.Fatal(err)
	}
	file := a["url"].(string)
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	const browser, app = "text/html,application/xhtml+xml,*/*;q=0.8", "*/*"
	const missing = "Not logged in: API authentication or user session required"
	for _, c := range []struct {
		method, path, accept string
		status               int
		want                 string // in the body, or the address of a redirect
	}{
		{"GET", fmt.Sprint("/api/v1/messages/", open), app, 200, "raw_content"},
		{"GET", fmt.Sprint("/json/messages/", open), app, 200, "raw_content"},
		{"GET", fmt.Sprint("/api/v1/messages/", closed), app, 401, missing},
		{"GET", fmt.Sprint("/json/messages/", closed), app, 401, missing},
		{"GET", "/json/messages/99999", app, 401, missing},
		{"GET", fmt.Sprint("/json/messages/", closed), browser, 302,
			fmt.Sprint("/login/?next=%2Fjson%2Fmessages%2F", closed)},
		{"GET", `/json/messages?anchor=newest&num_before=1&num_after=0`, app, 401, missing},
		{"GET", file, browser, 302, "/login/?next=" + strings.ReplaceAll(file, "/", "%2F")},
		{"GET", file + "x", browser, 302, "/login/?next=" + strings.ReplaceAll(file, "/", "%2F") + "x"},
		{"GET", file, "image/png,image/*;q=0.8,*/*;q=0.5", 403, "not yours to see"},
		{"GET", "/api/v1" + file, app, 401, missing},
		{"GET", "/api/v1" + file + "x", app, 401, missing},
		{"GET", "/no/such/page", browser, 404, "<h1>Page not found</h1>"},
		{"GET", "/api/v1/no_such", browser, 404, `{"result":"error"`},
		{"GET", "/no/such/page", app, 404, `{"result":"error"`},
		{"GET", "/api/v1/no_such", "application/json", 404, `{"result":"error"`},
		{"POST", "/no/such/page", app, 404, `{"result":"error"`},
	} {
		q, _ := http.NewRequest(c.method, k.at+c.path, nil)
		q.Header.Set("Accept", c.accept)
		r, err := stay.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode == 302 {
			body = []byte(r.Header.Get("Location"))
		}
		if r.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf(
				"%s %s for %s: %d %s, want %d %s",
				c.method,
				c.path,
				c.accept,
				r.StatusCode,
				body,
				c.status,
				c.want,
			)
		}
		scheme, _, _ := strings.Cut(r.Header.Get("WWW-Authenticate"), " ")
		want := map[bool]string{true: "Session", false: "Basic"}[strings.HasPrefix(c.path, "/json")]
		if c.status == 401 && scheme != want {
			t.Errorf("%s %s: WWW-Authenticate %q, want %s", c.method, c.path, scheme, want)
		}
	}
}

// A message has a link if its rendered text has any, also to a channel, topic or message.
func followsLinks(_ *testing.T, k *demoClient) {
	var linked []any
	for _, text := range []string{"see #**general**", "see #**general>has links**", "[x](/#narrow/channel/1-general)",
		"> https://example.org", "mail to a@example.org"} {
		linked = append(linked, float64(k.post("ann", "has links", text)))
	}
	var plain []any
	for _, text := range []string{"@**Bo Park** :smile: `https://example.org`",
		"<a href=x> <time:2026-01-01T00:00:00Z>",
		"$$x$$"} {
		plain = append(plain, float64(k.post("ann", "has links", text)))
	}
	for negated, want := range map[bool][]any{false: linked, true: plain} {
		a := k.must("ann", "GET messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow", []any{
			map[string]any{"operator": "has", "operand": "link", "negated": negated}, []string{"topic", "has links"}})
		var got []any
		for _, m := range a["messages"].([]any) {
			got = append(got, m.(map[string]any)["id"])
		}
		k.equal(fmt.Sprint("has:link, negated: ", negated), got, want)
	}
	id := linked[0]
	k.must("ann", fmt.Sprintf("PATCH messages/%v", id), "content", "nothing")
	a := k.must("ann", "GET messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow",
		[]any{[]string{"has", "link"}, []string{"topic", "has links"}})
	k.equal("after an edit", len(a["messages"].([]any)), len(linked)-1)
}
