package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// browserAnswer is the status, body and new cookies of an answer.
type browserAnswer struct {
	status  int
	body    map[string]any
	cookies map[string]*http.Cookie
}

// browse sends a request with cookies, and with the CSRF token unless it is "".
func (d *demoServer) browse(
	method, path string, form url.Values, csrf string, cookies map[string]*http.Cookie,
) browserAnswer {
	d.t.Helper()
	r, err := http.NewRequest(method, d.BaseURL()+path, strings.NewReader(form.Encode()))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	if csrf != "" {
		r.Header.Set("X-CSRFToken", csrf)
	}
	resp, err := (&http.Client{Timeout: eventTimeout}).Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := browserAnswer{status: resp.StatusCode, cookies: map[string]*http.Cookie{}}
	if err := json.NewDecoder(resp.Body).Decode(&a.body); err != nil {
		d.t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if a.cookies[c.Name] = c; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge <= 0 {
			d.t.Errorf("%s: the cookie %s", path, c)
		}
	}
	return a
}

// dev_fetch_api_key logs a human in: beside the key, the browser gets a session that works. The session that it had
// before ends. Bots and refused requests get none, and the answer stays as it was.
func TestDevelopmentKeyOpensSession(t *testing.T) {
	d := startDemo(t)
	ann := url.Values{"username": {"ann@example.org"}}
	var before map[string]*http.Cookie
	for _, path := range []string{"/api/v1/dev_fetch_api_key", "/json/dev_fetch_api_key"} {
		a := d.browse("POST", path, ann, "", before)
		keys := slices.Sorted(maps.Keys(a.body))
		if a.status != 200 || !slices.Equal(keys, []string{"api_key", "email", "msg", "result", "user_id"}) {
			t.Fatalf("%s: %d %v", path, a.status, a.body)
		}
		if a.cookies["sessionid"] == nil || a.cookies["csrftoken"] == nil {
			t.Fatalf("%s: cookies %v", path, a.cookies)
		}
		me := d.browse("GET", "/json/users/me", nil, "", a.cookies)
		if me.status != 200 || me.body["user_id"] != a.body["user_id"] {
			t.Errorf("%s: the session's user is %v", path, me.body)
		}
		status := url.Values{"status_text": {"here"}}
		if got := d.browse("POST", "/json/users/me/status", status, "", a.cookies); got.body["code"] != "CSRF_FAILED" {
			t.Errorf("%s: without the token: %v", path, got.body)
		}
		token := a.cookies["csrftoken"].Value
		if got := d.browse("POST", "/json/users/me/status", status, token, a.cookies); got.status != 200 {
			t.Errorf("%s: with the token: %v", path, got.body)
		}
		if before != nil {
			if got := d.browse("GET", "/json/users/me", nil, "", before); got.status != 401 {
				t.Errorf("%s: the session before goes on: %v", path, got.body)
			}
		}
		before = a.cookies
	}
	bot := d.call("ann@example.org", "POST", "bots", url.Values{"full_name": {"Helper"}, "short_name": {"helper"}})
	id := int(bot["user_id"].(float64))
	email := d.call("ann@example.org", "GET", "users", nil)
	for _, x := range email["members"].([]any) {
		u := x.(map[string]any)
		if int(u["user_id"].(float64)) != id {
			continue
		}
		got := d.browse("POST", "/api/v1/dev_fetch_api_key", url.Values{"username": {u["email"].(string)}}, "", nil)
		if got.status != 200 || len(got.cookies) != 0 {
			t.Errorf("a bot: %d %v", got.status, got.cookies)
		}
	}
	for _, name := range []string{"nobody@example.org", "ann", ""} {
		got := d.browse("POST", "/api/v1/dev_fetch_api_key", url.Values{"username": {name}}, "", nil)
		if got.status == 200 || len(got.cookies) != 0 {
			t.Errorf("%q: %d %v", name, got.status, got.cookies)
		}
	}
	if got := d.browse("GET", "/api/v1/dev_list_users", nil, "", nil); got.status != 200 || len(got.cookies) != 0 {
		t.Errorf("dev_list_users: %d %v", got.status, got.cookies)
	}
}
