package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestVisitorPage: a visitor without an account gets the page of the client only while a channel is web-public and the
// organization allows visitors; else the login page. The page contains no token of a session.
func TestVisitorPage(t *testing.T) {
	p := demo(t, filepath.Join(t.TempDir(), "data"))
	site := p.serving()
	olive := demoAccount(t, site, "olive@example.org")
	noRedirect := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	check := func(when string, wantPage bool) {
		t.Helper()
		answer, err := noRedirect.Get(site + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		isPage := answer.StatusCode == 200 && strings.Contains(string(body), `<meta name="visitor" content="">`)
		toLogin := answer.StatusCode == 302 && strings.HasPrefix(answer.Header.Get("Location"), "/login/")
		if isPage != wantPage || toLogin == wantPage {
			t.Errorf("%s: status %d, to %q, page %v", when, answer.StatusCode, answer.Header.Get("Location"), isPage)
		}
		if isPage && !strings.Contains(string(body), `<meta name="session" content="">`) {
			t.Errorf("%s: the page names a session", when)
		}
	}
	check("at first", false)
	olive.must(t, "PATCH", "realm", url.Values{"enable_spectator_access": {"true"}})
	check("with visitors allowed", true)
	all := olive.must(t, "GET", "streams", url.Values{"include_web_public": {"true"}})["streams"].([]any)
	for _, x := range all {
		if c := x.(map[string]any); c["is_web_public"] == true {
			olive.must(t, "DELETE", "streams/"+fmt.Sprint(c["stream_id"]), nil)
		}
	}
	check("without a web-public channel", false)
}
