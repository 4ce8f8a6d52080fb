package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withKey returns the account with another key.
func (p *account) withKey(key string) *account { return &account{url: p.url, email: p.email, key: key} }

// addKey adds an API key. expiresIn is in seconds; 0: the key does not expire.
func (p *account) addKey(t *testing.T, label string, expiresIn int) (id int, key *account) {
	t.Helper()
	a := p.must(t, "POST", "users/me/api_keys", url.Values{"label": {label}, "expires_in": {fmt.Sprint(expiresIn)}})
	return int(a["id"].(float64)), p.withKey(a["api_key"].(string))
}

// status returns the status of a GET request without an Authorization header.
func status(t *testing.T, at string) int {
	t.Helper()
	r, _ := getText(t, at)
	return r.StatusCode
}

// TestAdditionalKeysAreAccepted uses an additional key on every path that reads credentials: ordinary endpoints, the
// fast paths of sending and polling, uploads by header and by query. After its revocation and a restart none accepts
// it, and the account's own key goes on working.
func TestAdditionalKeysAreAccepted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	debug := freeAddress(t)
	p := demo(t, dir, "--debug-listen", debug)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	id, script := ann.addKey(t, "script", 3600)
	_, kept := ann.addKey(t, "kept", 0)
	queue := script.must(t, "POST", "register", url.Values{"event_types": {`["message"]`}})["queue_id"].(string)
	if _, err := script.send("under an additional key"); err != nil {
		t.Fatal(err)
	}
	_, uploaded, err := script.upload(map[string]io.Reader{"a.txt": strings.NewReader("text")})
	if err != nil {
		t.Fatal(err)
	}
	file := uploaded["url"].(string)
	files := func(want int) {
		t.Helper()
		for _, path := range []string{file, strings.Replace(file, "/user_uploads/", "/user_uploads/download/", 1)} {
			if got := status(t, script.url+path+"?api_key="+script.key); got != want {
				t.Errorf("%s: status %d, want %d", path, got, want)
			}
		}
	}
	files(200)
	poll := url.Values{"queue_id": {queue}, "last_event_id": {"-1"}}
	events := script.must(t, "GET", "events", poll)["events"].([]any)
	if len(events) != 1 {
		t.Fatalf("events: %v", events)
	}
	list := func() []any { return ann.must(t, "GET", "users/me/api_keys", nil)["api_keys"].([]any) }
	for deadline := time.Now().Add(binaryTimeout); list()[0].(map[string]any)["last_used"] == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the last use is not stored")
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, k := range list() {
		if s := fmt.Sprint(k); strings.Contains(s, script.key) || strings.Contains(s, "api_key") {
			t.Errorf("the list shows a secret: %s", s)
		}
	}
	for _, form := range []string{"users/me/api_key/regenerate", "users/me/api_keys"} {
		if _, err := script.call("POST", form, url.Values{"label": {"x"}}); err == nil ||
			!strings.Contains(err.Error(), "cannot create API keys") {
			t.Errorf("%s under an additional key: %v", form, err)
		}
	}

	parked := make(chan string, 1)
	poll.Set("last_event_id", fmt.Sprint(events[0].(map[string]any)["id"]))
	go func() {
		a, err := script.call("GET", "events", poll)
		parked <- fmt.Sprint(a["events"], err)
	}()
	waitForParkedPolls(t, debug, 1)
	began := time.Now()
	ann.must(t, "DELETE", fmt.Sprint("users/me/api_keys/", id), nil)
	if got := <-parked; got != "[] <nil>" || time.Since(began) > binaryTimeout/2 {
		t.Errorf("the waiting poll ended after %v with %s", time.Since(began), got)
	}
	refused := func() {
		t.Helper()
		files(403)
		for _, request := range [][2]string{{"GET", "events"}, {"POST", "messages"}, {"GET", "users/me"},
			{"POST", "users/me/presence"}} {
			form := url.Values{"queue_id": {queue}, "last_event_id": {"0"}, "type": {"stream"}, "to": {"general"},
				"topic": {"x"}, "content": {"x"}, "status": {"active"}}
			if _, err := script.call(request[0], request[1], form); err == nil ||
				!strings.Contains(err.Error(), "Invalid API key") {
				t.Errorf("%s %s under a revoked key: %v", request[0], request[1], err)
			}
		}
	}
	refused()
	p.kill()
	p = demo(t, dir)
	at := p.serving()
	for _, a := range []*account{ann, script, kept} {
		a.url = at
	}
	refused()
	ann.must(t, "GET", "users/me", nil)
	kept.must(t, "GET", "users/me", nil)
	if n := len(list()); n != 1 {
		t.Errorf("%d keys after a restart", n)
	}
}
