package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pairs returns form fields from names and values in turns.
func pairs(list ...string) url.Values {
	f := url.Values{}
	for i := 0; i+1 < len(list); i += 2 {
		f.Set(list[i], list[i+1])
	}
	return f
}

// TestWebPush holds that a subscribed browser gets a notification that its push service refused before a kill -9, that
// a subscription which the service does not know is removed, and that a subscription ends with its session.
func TestWebPush(t *testing.T) {
	var refuse atomic.Bool
	requests := make(chan string, 100)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/gone":
			w.WriteHeader(http.StatusGone)
		case refuse.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusCreated)
		}
		requests <- r.URL.Path
	}))
	defer service.Close()
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	start := func() *program {
		c := parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo", "--webhooks-allow",
			"127.0.0.0/8")
		c.Env = append(c.Environ(), "SSL_CERT_FILE="+authority)
		return startProgram(t, c)
	}
	next := func() string {
		select {
		case path := <-requests:
			return path
		case <-time.After(binaryTimeout):
			t.Fatal("no notification came")
			return ""
		}
	}
	p := start()
	at := p.serving()
	setDemoPasswords(t, data, "ann@example.org")
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	page := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	subscription := func(path string) url.Values {
		return pairs("endpoint", service.URL+path, "p256dh",
			"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth",
			"BTBZMqHH6r4Tts7J_aSIgg")
	}
	subscribe := func(path string) { page.must("POST", "users/me/web_push", subscription(path)) }
	_, err := ann.call("POST", "users/me/web_push", subscription("/key"))
	if err == nil || !strings.Contains(err.Error(), "need a browser session") {
		t.Errorf("by an API key: %v", err)
	}
	me, err := ann.call("GET", "users/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(text string) {
		if _, err := bo.call("POST", "messages", pairs("type", "direct", "to", fmt.Sprintf("[%v]", me["user_id"]),
			"content",
			text)); err != nil {
			t.Fatal(err)
		}
	}
	subscribe("/ann")
	send("one")
	if got := next(); got != "/ann" {
		t.Errorf("notified: %s", got)
	}
	refuse.Store(true)
	send("two")
	next() // refused for now
	p.kill()
	refuse.Store(false)
	p = start()
	at = p.serving()
	ann.url, bo.url, page.at = at, at, at
	if got := next(); got != "/ann" {
		t.Errorf("after kill -9: %s", got)
	}
	subscribe("/gone")
	send("three")
	if got := next() + next(); strings.Count(got, "/ann") != 1 || strings.Count(got, "/gone") != 1 {
		t.Errorf("notified: %s", got)
	}
	for _, text := range []string{"four", "five"} { // the service's answer about three has been used before
		send(text)
		if got := next(); got != "/ann" {
			t.Errorf("after an endpoint is gone: %s", got)
		}
	}
	_, err = ann.call("DELETE", "users/me/web_push", pairs("endpoint", service.URL+"/gone"))
	if err == nil || !strings.Contains(err.Error(), "Token does not exist") {
		t.Errorf("the endpoint that is gone: %v", err)
	}
	for _, bad := range [][2]string{{"endpoint", "http://push.example.com/1"}, {"p256dh", "AAAA"}, {"auth", "AAAA"}} {
		f := pairs("endpoint", "https://push.example.com/1", "p256dh",
			"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth",
			"BTBZMqHH6r4Tts7J_aSIgg")
		f.Set(bad[0], bad[1])
		if _, err := ann.call("POST", "users/me/web_push", f); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
