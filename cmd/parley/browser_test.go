package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser is a user's browser as far as cookies and forms go. It follows no redirects.
type browser struct {
	*testing.T
	at, host string // the server, and the host of the organization, "" for that of the server
	agent    string
	cookies  map[string]string
	set      map[string]*http.Cookie // as the server set them
}

func newBrowser(t *testing.T, at string) *browser {
	return &browser{T: t, at: at, agent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", cookies: map[string]string{},
		set: map[string]*http.Cookie{}}
}

// copied returns a browser with the same cookies.
func (b *browser) copied() *browser {
	c := newBrowser(b.T, b.at)
	c.host = b.host
	for name, value := range b.cookies {
		c.cookies[name] = value
	}
	return c
}

// webAnswer is an answer to a browser.
type webAnswer struct {
	status int
	header http.Header
	body   string
	json   map[string]any // nil if the body is none
}

// send sends a request; headers are pairs of name and value.
func (b *browser) send(method, path string, form url.Values, headers ...string) webAnswer {
	b.Helper()
	a, err := b.try(method, path, form, headers...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		b.set[c.Name] = c
		if b.cookies[c.Name] = c.Value; c.Value == "" {
			delete(b.cookies, c.Name)
		}
	}
	return a
}

// try is send without cookies of the answer, for any goroutine.
func (b *browser) try(method, path string, form url.Values, headers ...string) (a webAnswer, err error) {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	q, err := http.NewRequest(method, b.at+path, body)
	if err != nil {
		return a, err
	}
	q.Host = b.host
	q.Header.Set("User-Agent", b.agent)
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range b.cookies {
		q.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return a, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	a = webAnswer{status: r.StatusCode, header: r.Header, body: string(text)}
	json.Unmarshal(text, &a.json)
	return a, err
}

var tokenField = regexp.MustCompile(`name="csrfmiddlewaretoken" value="([^"]+)"`)

// token returns the token of the first form of a page.
func (b *browser) token(path string) string {
	b.Helper()
	m := tokenField.FindStringSubmatch(b.send("GET", path, nil).body)
	if m == nil {
		b.Fatalf("GET %s: no form with a token", path)
	}
	return m[1]
}

// submit loads a page and sends its form to a path.
func (b *browser) submit(page, to string, form url.Values) webAnswer {
	b.Helper()
	filled := url.Values{"csrfmiddlewaretoken": {b.token(page)}}
	for name, values := range form {
		filled[name] = values
	}
	return b.send("POST", to, filled)
}

// tryLogIn sends the login form.
func (b *browser) tryLogIn(email, password, next string) webAnswer {
	b.Helper()
	return b.submit("/login/?preview", "/accounts/login/", url.Values{"username": {email}, "password": {password},
		"next": {next}})
}

// logIn is tryLogIn that has to succeed. It returns the browser.
func (b *browser) logIn(email, password string) *browser {
	b.Helper()
	if a := b.tryLogIn(email, password, ""); a.status != 302 || a.header.Get("Location") != "/" {
		b.Fatalf("login as %s: %d %s\n%s", email, a.status, a.header.Get("Location"), a.body)
	}
	return b
}

// call sends a request of the web app, with the session's token.
func (b *browser) call(method, path string, form url.Values) webAnswer {
	b.Helper()
	return b.send(method, "/json/"+path, form, "X-CSRFToken", b.cookies["csrftoken"])
}

// must is a call that has to succeed.
func (b *browser) must(method, path string, form url.Values) map[string]any {
	b.Helper()
	a := b.call(method, path, form)
	if a.status != 200 || a.json["result"] != "success" {
		b.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a.json
}

// loggedIn reports whether the browser has a valid session.
func (b *browser) loggedIn() bool {
	b.Helper()
	a := b.send("GET", "/json/users/me", nil)
	if a.status != 200 && (a.status != 401 || a.header.Get("WWW-Authenticate") != `Session realm="zulip"`) {
		b.Errorf("GET /json/users/me: %d %v %s", a.status, a.header, a.body)
	}
	return a.status == 200
}

// park opens an event queue and polls it, until the poll is the only one that waits at the server with this debug
// address. The returned function waits for the answer and returns when it came.
func (b *browser) park(debug string) func() time.Time {
	b.Helper()
	queue := b.must("POST", "register", url.Values{"event_types": {`["drafts"]`}})["queue_id"].(string)
	answered := make(chan time.Time, 1)
	go func() {
		if _, err := b.try("GET", "/json/events?queue_id="+url.QueryEscape(queue)+"&last_event_id=-1",
			nil); err == nil {
			answered <- time.Now()
		}
	}()
	waitForParkedPolls(b.T, debug, 1)
	return func() time.Time {
		b.Helper()
		select {
		case at := <-answered:
			return at
		case <-time.After(binaryTimeout):
			b.Fatal("a poll goes on after its session ended")
			return time.Time{}
		}
	}
}
