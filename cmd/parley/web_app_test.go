package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/wire/webapp/webapptest"
)

// webAppLevel is a feature level that the server can serve.
const webAppLevel = 500

// webAppDemo is browserDemo with a web app.
func webAppDemo(t *testing.T, flags ...string) (at, data string) {
	t.Helper()
	_, at, data = browserDemo(t, append([]string{"--web-dir", webapptest.New(webAppLevel).Write(t)}, flags...)...)
	return at, data
}

var pageParams = regexp.MustCompile(`<div hidden id="page-params" data-params='([^']*)'></div>`)

// params returns the parameters of a page of the web app.
func (b *browser) params(path string, headers ...string) (params map[string]any, a webAnswer) {
	b.Helper()
	a = b.send("GET", path, nil, headers...)
	m := pageParams.FindStringSubmatch(a.body)
	if a.status != 200 || m == nil {
		b.Fatalf("GET %s: %d %s, no page of the web app\n%.2000s", path, a.status, a.header.Get("Location"), a.body)
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &params); err != nil {
		b.Fatalf("the parameters of %s: %v", path, err)
	}
	return params, a
}

// A directory that cannot be served stops the start, with the reason. A bundle of another level is served if the
// operator insists.
func TestRefusedWebApp(t *testing.T) {
	old := webapptest.New(372).Write(t)
	broken := webapptest.New(webAppLevel)
	delete(broken, "webpack-stats-production.json")
	for dir, why := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file",
		t.TempDir():                        "version.py",
		broken.Write(t):                    "webpack-stats-production.json",
		old:                                "feature level 372; this server can serve the web app of levels 480 to 500",
	} {
		data := filepath.Join(t.TempDir(), "data")
		out, code := runParley("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo", "--web-dir", dir)
		if code != exitError || !strings.Contains(out, why) || !strings.Contains(out, "web-dir "+dir) {
			t.Errorf("%s: code %d, %s", why, code, out)
		}
	}
	_, at, _ := browserDemo(t, "--web-dir", old, "--web-dir-any-level")
	newBrowser(t, at).logIn("ann@example.org", browserPassword).params("/")
}

// requiredParams are the parameters of a page that bundles need, with the type of each (protocol).
var requiredParams = map[string]string{
	"page_type": "string", "development_environment": "bool", "request_language": "string", "test_suite": "bool",
	"insecure_desktop_app": "bool", "warn_no_email": "bool", "two_fa_enabled": "bool", "two_fa_enabled_user": "bool",
	"no_event_queue": "bool", "login_page": "string", "corporate_enabled": "bool", "embedded_bots_enabled": "bool",
	"promote_sponsoring_zulip": "bool", "language_list": "[]interface {}", "furthest_read_time": "<nil>",
	"apps_page_url": "string", "show_webathena": "bool", "is_spectator": "bool",
	"presence_history_limit_days_for_web_app": "float64", "translation_data": "map[string]interface {}",
	"realm_rendered_description": "string", "show_try_zulip_modal": "bool", "non_workplace_pricing_eligible": "bool",
	"is_cloud_realm_with_discounted_plan": "bool", "state_data": "map[string]interface {}",
}

var nonceOfPolicy = regexp.MustCompile(`script-src 'nonce-([A-Za-z0-9]{16,})' 'strict-dynamic';`)

// A user gets the page with their own state, an event queue that works, and a token with which the page can change
// things. Neither caches nor scripts of other origin get anything of it.
func TestWebAppPage(t *testing.T) {
	at, _ := webAppDemo(t)
	b := newBrowser(t, at)
	if a := b.send("GET", "/", nil); a.status != 302 || a.header.Get("Location") != "/login/" {
		t.Errorf("without a session: %d %s", a.status, a.header.Get("Location"))
	}
	b.logIn("ann@example.org", browserPassword)
	hostile := `Ann '"><script>alert(1)</script>&amp;</div>`
	b.must("PATCH", "settings", url.Values{"full_name": {strings.NewReplacer(">", "", `"`, "").Replace(hostile)}})
	b.must("POST", "users/me/status", url.Values{"status_text": {hostile[:min(60, len(hostile))]}})
	p, a := b.params("/")
	for name, kind := range requiredParams {
		if value, ok := p[name]; !ok || fmt.Sprintf("%T", value) != kind {
			t.Errorf("parameter %s: %T, want %s", name, value, kind)
		}
	}
	if strings.Contains(a.body, "<script>alert") || strings.Count(a.body, "'></div>") != 1 {
		t.Errorf("a user's text is part of the page's HTML")
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "same-origin",
		"X-Content-Type-Options":      "nosniff",
		"Access-Control-Allow-Origin": "", "Content-Language": "en",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, want := range []string{"no-cache", "no-store", "must-revalidate"} {
		if !strings.Contains(a.header.Get("Cache-Control"), want) {
			t.Errorf("Cache-Control: %s", a.header.Get("Cache-Control"))
		}
	}
	m := nonceOfPolicy.FindStringSubmatch(a.header.Get("Content-Security-Policy"))
	if m == nil || strings.Count(a.body, "<script") != strings.Count(a.body, ` nonce="`+m[1]+`"`) {
		t.Errorf("policy %s\n%s", a.header.Get("Content-Security-Policy"), a.body)
	}
	if _, again := b.params("/"); m != nil && strings.Contains(again.header.Get("Content-Security-Policy"), m[1]) {
		t.Error("two pages have the same nonce")
	}
	if c := b.set["sessionid"]; c == nil || c.MaxAge != 14*24*3600 || c.Value != b.cookies["sessionid"] {
		t.Errorf("the page does not renew the session: %+v", c)
	}
	state := p["state_data"].(map[string]any)
	if state["delivery_email"] != "ann@example.org" || state["streams"] != nil || state["subscriptions"] == nil ||
		state["user_settings"] == nil || state["zulip_feature_level"] == nil || p["login_page"] != "/login/" {
		t.Errorf("the state of %v, login page %v", state["delivery_email"], p["login_page"])
	}
	other := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	if o, _ := other.params("/"); o["state_data"].(map[string]any)["delivery_email"] != "olive@example.org" ||
		o["state_data"].(map[string]any)["queue_id"] == state["queue_id"] {
		t.Error("two users get the same state")
	}
	form := url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"page"}, "content": {"from the page"}}
	if a := b.send("POST", "/json/messages", form); a.status != 403 {
		t.Errorf("without a token: %d", a.status)
	}
	token := tokenField.FindStringSubmatch(a.body)[1]
	if a := b.send("POST", "/json/messages", form, "X-CSRFToken", token); a.status != 200 {
		t.Errorf("with the token of the page: %d %s", a.status, a.body)
	}
	events := b.must("GET", "events?"+url.Values{"queue_id": {state["queue_id"].(string)},
		"last_event_id": {fmt.Sprint(state["last_event_id"])}, "dont_block": {"true"}}.Encode(), nil)["events"].([]any)
	if !slices.ContainsFunc(events, func(x any) bool { return x.(map[string]any)["type"] == "message" }) {
		t.Errorf("the queue of the page got %v", events)
	}
	if a := b.send("POST", "/accounts/logout/", url.Values{"csrfmiddlewaretoken": {token}}); a.status != 302 ||
		a.header.Get("Location") != "/login/" || b.loggedIn() {
		t.Errorf("the logout form of the page: %d", a.status)
	}
}

// The page has fewer parts if its address says so: no state, or only a channel and a topic.
func TestPartialWebAppPage(t *testing.T) {
	at, _ := webAppDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	p, _ := b.params("/?state_data=deferred&page_params_retry=1")
	if state, ok := p["state_data"]; !ok || state != nil || p["no_event_queue"] != true ||
		p["is_spectator"] != false {
		t.Errorf("deferred: %v %v", p["state_data"], p["no_event_queue"])
	}
	if a := b.send("HEAD", "/", nil); a.status != 200 || a.body != "" {
		t.Errorf("HEAD: %d %s", a.status, a.body)
	}
	send := func(to, topic string) float64 {
		return b.must("POST", "messages", url.Values{"type": {"stream"}, "to": {to}, "topic": {topic},
			"content": {"x"}})["id"].(float64)
	}
	inside := send("general", "lunch")
	outside := send("engineering", "lunch")
	p, _ = b.params("/?stream=GENERAL&topic=lunch")
	state := p["state_data"].(map[string]any)
	if p["narrow_stream"] != "general" || p["narrow_topic"] != "lunch" || fmt.Sprint(p["narrow"]) !=
		"[map[operand:general operator:stream] map[operand:lunch operator:topic]]" ||
		state["max_message_id"] != inside ||
		state["user_settings"].(map[string]any)["enable_desktop_notifications"] != false ||
		state["user_settings"].(map[string]any)["color_scheme"] == nil {
		t.Errorf("narrowed: %v %v %v, newest %v, want %v", p["narrow_stream"], p["narrow_topic"], p["narrow"],
			state["max_message_id"], inside)
	}
	send("engineering", "lunch")
	send("general", "dinner")
	last := send("general", "lunch")
	events := b.must("GET", "events?"+url.Values{"queue_id": {state["queue_id"].(string)}, "last_event_id": {"-1"},
		"dont_block": {"true"}}.Encode(), nil)["events"].([]any)
	var got []any
	for _, e := range events {
		if m, ok := e.(map[string]any)["message"].(map[string]any); ok {
			got = append(got, m["id"])
		}
	}
	if len(got) != 1 || got[0] != last {
		t.Errorf("the narrowed queue got %v, want %v", got, last)
	}
	// A channel that does not exist, or that the user cannot read, does not limit the page and tells nothing.
	owner := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	owner.must("POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"board"}]`},
		"invite_only": {"true"}})
	for _, name := range []string{"board", "none"} {
		p, _ := b.params("/?stream=" + name)
		if p["narrow"] != nil || p["narrow_stream"] != nil ||
			p["state_data"].(map[string]any)["max_message_id"].(float64) < outside {
			t.Errorf("channel %s: %v", name, p["narrow"])
		}
	}
	if p, _ := owner.params("/?stream=board"); p["narrow_stream"] != "board" {
		t.Errorf("its subscriber: %v", p["narrow_stream"])
	}
}

// The page is in the language of the address, else of the user's settings, else of the browser.
func TestWebAppLanguages(t *testing.T) {
	at, _ := webAppDemo(t)
	b := newBrowser(t, at)
	if a := b.send("GET", "/de/", nil); a.status != 302 || a.header.Get("Location") != "/login/?next=%2Fde%2F" {
		t.Errorf("without a session: %d %s", a.status, a.header.Get("Location"))
	}
	b.logIn("ann@example.org", browserPassword)
	check := func(path, language, text string) {
		t.Helper()
		p, a := b.params(path, "Accept-Language", "pt-BR")
		translations := p["translation_data"].(map[string]any)
		if p["request_language"] != language || a.header.Get("Content-Language") != language ||
			!strings.Contains(a.body, `<html lang="`+language+`"`) || !strings.Contains(a.body, text) ||
			(translations["Drafts"] == "Entwürfe <b>'&'</b>") != (language == "de") {
			t.Errorf("%s: language %v, translations %v", path, p["request_language"], translations)
		}
	}
	check("/", "en", "Loading <a")
	check("/de/", "de", "Lade <a")
	check("/pt-br/", "pt-br", "Loading <a")
	b.must("PATCH", "settings", url.Values{"default_language": {"de"}})
	check("/", "de", "Lade <a")
	check("/en/", "en", "Loading <a")
	b.must("PATCH", "settings", url.Values{"default_language": {"fr"}}) // the release has no French
	check("/", "en", "Loading <a")
	b.must("PATCH", "settings", url.Values{"default_language": {"en"}, "color_scheme": {"2"}})
	if _, a := b.params("/"); !strings.Contains(a.body, `class="dark-theme"`) {
		t.Error("the page is not dark")
	}
	p, _ := b.params("/")
	if list := p["language_list"].([]any); len(list) != 3 || fmt.Sprint(list[1]) !=
		"map[code:de locale:de name:Deutsch percent_translated:98]" {
		t.Errorf("languages: %v", p["language_list"])
	}
	if a := b.send("GET", "/xx/", nil); a.status != 404 {
		t.Errorf("a language that does not exist: %d", a.status)
	}
}

// Visitors without an account get the page only where the organization lets them in, and of its state only the public
// part.
func TestWebAppSpectators(t *testing.T) {
	at, _ := webAppDemo(t)
	owner := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	visitor := newBrowser(t, at)
	for _, path := range []string{"/", "/?stream=general", "/?state_data=deferred"} {
		if a := visitor.send("GET", path, nil); a.status != 302 || a.header.Get("Location") != "/login/" {
			t.Errorf("%s while visitors have no access: %d %s", path, a.status, a.header.Get("Location"))
		}
	}
	newBrowser(t, at).logIn("ann@example.org", browserPassword).must("PATCH", "settings",
		url.Values{"email_address_visibility": {"3"}})
	owner.must("PATCH", "realm", url.Values{"enable_spectator_access": {"true"},
		"description": {`A "good" *place*`}})
	p, a := visitor.params("/", "Accept-Language", "fr, de;q=0.8, en;q=0.5")
	if p["is_spectator"] != true || p["no_event_queue"] != true || p["state_data"] != nil ||
		p["language_cookie_name"] != "django_language" || p["request_language"] != "de" ||
		p["realm_rendered_description"] != `<p>A "good" <em>place</em></p>` || p["furthest_read_time"] == nil ||
		!strings.Contains(a.body, `content="A &#34;good&#34; *place*"`) ||
		!strings.Contains(a.body, "<!-- visitors can read -->") || visitor.cookies["sessionid"] != "" {
		t.Errorf("a visitor's page: %v\n%.1500s", p, a.body)
	}
	visitor.cookies["django_language"] = "pt_BR"
	if p, _ := visitor.params("/", "Accept-Language", "de"); p["request_language"] != "pt-br" {
		t.Errorf("the language that the visitor chose: %v", p["request_language"])
	}
	delete(visitor.cookies, "django_language")
	if p, _ := visitor.params("/?stream=general"); p["narrow"] != nil || p["narrow_stream"] != nil {
		t.Errorf("a visitor's narrowed page: %v", p["narrow"])
	}
	// The page registers without credentials, with the token of the page, and reads public channels only.
	state := visitor.send("POST", "/json/register", url.Values{"apply_markdown": {"true"}},
		"X-CSRFToken", tokenField.FindStringSubmatch(a.body)[1])
	if state.status != 200 || state.json["queue_id"] != nil || strings.Contains(state.body, "ann@example.org") {
		t.Errorf("a visitor's state: %d %.500s", state.status, state.body)
	}
	for _, list := range []string{"subscriptions", "unsubscribed", "never_subscribed"} {
		channels, _ := state.json[list].([]any)
		for _, c := range channels {
			if c.(map[string]any)["is_web_public"] != true {
				t.Errorf("a visitor gets the channel %v", c.(map[string]any)["name"])
			}
		}
	}
	// Without a channel for visitors there is nothing to show.
	owner.must("DELETE", fmt.Sprintf("streams/%v", owner.must("GET", "get_stream_id?stream=open+house",
		nil)["stream_id"]), nil)
	if a := visitor.send("GET", "/", nil); a.status != 302 || a.header.Get("Location") != "/login/" {
		t.Errorf("without a public channel: %d", a.status)
	}
}

// Static files are those of the release, for pages of every origin, with caching as their names allow.
func TestWebAppFiles(t *testing.T) {
	at, _ := webAppDemo(t)
	b := newBrowser(t, at)
	bundle := "/static/webpack-bundles/" + webapptest.Script
	for _, x := range []struct{ path, kind, cache, has string }{
		{bundle, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "use strict"},
		{"/static/images/favicon.svg?v=4", "image/svg+xml", "no-cache", "<svg/>"},
		{"/static/images/logo/zulip-org-logo.svg?version=0", "image/svg+xml", "no-cache", "of the release"},
		{"/static/generated/emoji/emoji_api.json", "application/json", "no-cache", "from_the_release"},
		{"/static/generated/emoji/emoji_api.0123456789ab.json", "application/json",
			"public, max-age=31536000, immutable", "from_the_release"},
		{"/static/audio/notification_sounds/zulip.ogg", "audio/ogg", "no-cache", "ding"},
		{"/static/generated/emoji/images-google-64/1f44d.png", "image/png", "no-cache", "a thumb"},
		{"/favicon.ico", "image/png", "no-cache", "an icon"},
		// the server's own drawings, as far as the release has none
		{"/static/images/loading/loader-black.svg", "image/svg+xml", "public, max-age=86400", "<svg"},
	} {
		a := b.send("GET", x.path, nil)
		if a.status != 200 || a.header.Get("Content-Type") != x.kind || a.header.Get("Cache-Control") != x.cache ||
			!strings.Contains(a.body, x.has) ||
			strings.HasPrefix(x.path, "/static/") != (a.header.Get("Access-Control-Allow-Origin") == "*") ||
			len(a.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d %v %.100s", x.path, a.status, a.header, a.body)
		}
		if tag := a.header.Get("ETag"); tag != "" {
			if a := b.send("GET", x.path, nil, "If-None-Match", tag); a.status != 304 || a.body != "" {
				t.Errorf("%s again: %d", x.path, a.status)
			}
		}
	}
	plain := b.send("GET", bundle, nil, "Accept-Encoding", "identity")
	zipped := b.send("GET", bundle, nil, "Accept-Encoding", "gzip", "Range", "bytes=0-3")
	r, err := gzip.NewReader(strings.NewReader(zipped.body))
	if err != nil || zipped.status != 200 || zipped.header.Get("Content-Encoding") != "gzip" ||
		zipped.header.Get("Vary") != "Accept-Encoding" || plain.header.Get("Vary") != "Accept-Encoding" ||
		plain.header.Get("ETag") == zipped.header.Get("ETag") {
		t.Fatalf("compressed: %d %v %v", zipped.status, zipped.header, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != plain.body || plain.body != webapptest.Recorder {
		t.Errorf("compressed: %v", err)
	}
	if a := b.send("GET", bundle, nil, "Accept-Encoding", "identity", "Range", "bytes=1-10"); a.status != 206 ||
		a.body != webapptest.Recorder[1:11] {
		t.Errorf("a range: %d %q", a.status, a.body)
	}
	for _, path := range []string{"/static/", "/static/images", "/static/images/", "/static/../version.py",
		"/static/..%2f..%2fversion.py", "/static/%2e%2e/%2e%2e/version.py", "/static/images/..%5c..%5cversion.py",
		"/static/webpack-bundles/.hidden.0123456789abcdef0123.json", "/static/none.js", "/static/webpack-bundles/",
		"/static/%00", "/version.py"} {
		if a := b.send("GET", path, nil); a.status != 404 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := b.send("POST", bundle, url.Values{}); a.status != 405 {
		t.Errorf("POST: %d", a.status)
	}
	b.logIn("ann@example.org", browserPassword)
	if state := b.must("POST", "register", nil); state["server_emoji_data_url"] !=
		"/static/generated/emoji/emoji_api.0123456789ab.json" {
		t.Errorf("the table of emoji: %v", state["server_emoji_data_url"])
	}
}

// The addresses to which the web app links lead to a page of this server or to the official documentation.
func TestWebAppLinks(t *testing.T) {
	at, _ := webAppDemo(t)
	b := newBrowser(t, at)
	for path, want := range map[string]string{
		"/help": "https://zulip.com/help", "/help/keyboard-shortcuts": "https://zulip.com/help/keyboard-shortcuts",
		"/api/": "https://zulip.com/api/", "/api/rest": "https://zulip.com/api/rest",
		"/integrations/github": "https://zulip.com/integrations/github",
		"/policies/terms":      "https://zulip.com/policies/terms",
		"/thumbnail?url=user_uploads/1/ab/x.png&size=full": "/user_uploads/1/ab/x.png",
		"/thumbnail?url=%2Fuser_uploads%2F1%2Fab%2Fx.png":  "/user_uploads/1/ab/x.png",
		"/communities/": "https://zulip.com/communities/", "/apps/": "https://zulip.com/apps/", "/desktop_home/": "/",
	} {
		a := b.send("GET", path, nil, "Accept", "text/html")
		if a.status != 302 || a.header.Get("Location") != want {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.header.Get("Location"), want)
		}
	}
	for _, path := range []string{"/stats", "/plans/", "/billing/", "/api/v1/none", "/helper", "/json/none"} {
		if a := b.send("GET", path, nil, "Accept", "text/html"); a.status != 404 {
			t.Errorf("%s: %d %s", path, a.status, a.header.Get("Location"))
		}
	}
	for _, target := range []string{"", "https://evil.example/", "//evil.example/user_uploads/", "/login/",
		"/user_uploads/\r\nSet-Cookie: a=b"} {
		if a := b.send("GET", "/thumbnail?url="+url.QueryEscape(target), nil); a.status != 403 {
			t.Errorf("a thumbnail of %q: %d %s", target, a.status, a.header.Get("Location"))
		}
	}
	if a := b.send("GET", "/robots.txt", nil); a.status != 200 || a.body != "User-agent: *\nDisallow: /\n" {
		t.Errorf("robots.txt: %d %s", a.status, a.body)
	}
}

// After an upgrade to another release, and only then, open pages are asked to load again. Other clients are not.
func TestWebAppReload(t *testing.T) {
	link := filepath.Join(t.TempDir(), "current")
	put := func(r webapptest.Release) {
		t.Helper()
		os.Remove(link)
		if err := os.Symlink(r.Write(t), link); err != nil {
			t.Fatal(err)
		}
	}
	put(webapptest.New(webAppLevel))
	p, at, data := browserDemo(t, "--web-dir", link)
	t.Cleanup(func() { endSuccessor(t, data) })
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	page, _ := b.params("/")
	app := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	app.agent = "ZulipElectron/5.12.0 Mozilla/5.0"
	desktop, _ := app.params("/")
	ann := demoAccount(t, at, "ann@example.org")
	program := ann.must(t, "POST", "register", url.Values{})
	queue := func(of map[string]any) url.Values {
		return url.Values{"queue_id": {of["queue_id"].(string)}, "last_event_id": {"-1"}, "dont_block": {"true"}}
	}
	count := func(events any, kind string) (n int) {
		for _, e := range events.([]any) {
			if x := e.(map[string]any); x["type"] == kind {
				n++
				if kind == "web_reload_client" && x["immediate"] != false {
					t.Errorf("the event is %v", x)
				}
			}
		}
		return n
	}
	upgrade := func() {
		t.Helper()
		if err := syscall.Kill(serverPid(t, data), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.succeeded()
	}
	state := func(of map[string]any) map[string]any { return of["state_data"].(map[string]any) }
	check := func(reloads int) {
		t.Helper()
		ofPage, ofApp, ofProgram := -1, -1, -1
		for end := time.Now().Add(binaryTimeout); ; time.Sleep(20 * time.Millisecond) {
			events := b.must("GET", "events?"+queue(state(page)).Encode(), nil)["events"]
			ofPage, ofProgram = count(events, "web_reload_client"),
				count(ann.must(t, "GET", "events", queue(program))["events"], "web_reload_client")
			ofApp = count(
				app.must("GET", "events?"+queue(state(desktop)).Encode(), nil)["events"],
				"web_reload_client",
			)
			done := ofPage == reloads && ofApp == reloads && count(events, "restart") == 1
			if done || time.Now().After(end) {
				break
			}
		}
		if ofPage != reloads || ofApp != reloads || ofProgram != 0 {
			t.Errorf("a page was asked to load again %d times, the app %d times, a program %d times; want %d", ofPage,
				ofApp, ofProgram, reloads)
		}
	}
	upgrade()
	check(0)
	next := webapptest.New(webAppLevel)
	next["webpack-stats-production.json"] += "\n"
	put(next)
	upgrade()
	check(1)
	// A release that cannot be served does not replace one that can.
	broken := webapptest.New(webAppLevel)
	delete(broken, "version.py")
	put(broken)
	syscall.Kill(serverPid(t, data), syscall.SIGHUP)
	for end := time.Now().Add(binaryTimeout); !strings.Contains(p.output(), "this process continues"); {
		if time.Now().After(end) {
			t.Fatal("the server does not notice that its successor failed")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if a := b.send("GET", "/", nil); a.status != http.StatusOK {
		t.Errorf("after a failed upgrade: %d", a.status)
	}
	check(1)
}

// The same holds for the server's own page: after a restart of a program with another client, pages load again once.
func TestClientReload(t *testing.T) {
	p, at, data := browserDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	queue := b.must("POST", "register", url.Values{})["queue_id"].(string)
	file := filepath.Join(data, "web-app")
	own, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reloads := func() (n int) {
		events := b.must("GET", "events?"+url.Values{"queue_id": {queue}, "last_event_id": {"-1"},
			"dont_block": {"true"}}.Encode(), nil)["events"].([]any)
		for _, e := range events {
			if e.(map[string]any)["type"] == "web_reload_client" {
				n++
			}
		}
		return n
	}
	for want, last := range []string{string(own), "client-of-another-program\n", string(own)} {
		p.kill()
		if err := os.WriteFile(file, []byte(last), 0o600); err != nil {
			t.Fatal(err)
		}
		p = demo(t, data)
		b.at = p.serving()
		want = min(want, 1)
		stored := ""
		for end := time.Now().Add(binaryTimeout); stored != string(own) && time.Now().Before(end); {
			text, err := os.ReadFile(file)
			if stored = string(text); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got := reloads(); got != want || stored != string(own) {
			t.Errorf("after %q: asked %d times, want %d; stored %q", last, got, want, stored)
		}
	}
}
