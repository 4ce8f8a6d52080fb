package main

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tlsRequest sends a request as it is over TLS and returns the answer, up to the end of the connection.
func tlsRequest(t *testing.T, at, request string) string {
	t.Helper()
	c, err := tls.Dial("tcp", at, insecureTLS)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(binaryTimeout))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c)
	return string(answer)
}

// TestEveryAnswerHasHSTS asks a server that speaks TLS for every kind of route. Each answer tells browsers to use TLS,
// also the refusals that no handler writes.
func TestEveryAnswerHasHSTS(t *testing.T) {
	cert, key := selfSigned(t, t.TempDir(), "chat.example.org")
	p := demo(t, filepath.Join(t.TempDir(), "data"), "--tls-cert", cert, "--tls-key", key)
	at := strings.TrimPrefix(p.serving(), "http://")
	ann := demoAccount(t, "https://"+at, "ann@example.org")
	login := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(ann.email+":"+ann.key)) + "\r\n"
	browser := "Accept: text/html\r\n"
	queue := ann.must(t, "POST", "register", nil)["queue_id"].(string)
	webQueue := ann.must(t, "POST", "register", nil)["queue_id"].(string)
	file := ann.uploadText(t, "file.txt", "a file")
	temporary, _ := ann.must(t, "GET", "user_uploads/"+strings.TrimPrefix(file, "/user_uploads/"), nil)["url"].(string)
	post := func(path, headers, form string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", path, headers, len(form),
			form)
	}
	get := func(path, headers string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n"
	}
	message := url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"}, "content": {"x"}}.Encode()
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"health", get("/health", ""), 200},
		{"an endpoint", get("/api/v1/users/me", login), 200},
		{"an endpoint below /json", get("/json/users/me", login), 200},
		{"an endpoint without login", get("/api/v1/users/me", ""), 401},
		{"an endpoint with a wrong key", get("/api/v1/users/me", "Authorization: Basic eDp4\r\n"), 401},
		{"an endpoint by a browser without a session", get("/json/users/me", browser), 302},
		{"a refused request", post("/api/v1/messages", login, "type=stream"), 400},
		{"a wrong method", post("/api/v1/server_settings", login, ""), 405},
		{"options", "OPTIONS" + strings.TrimPrefix(get("/api/v1/messages", ""), "GET"), 204},
		{"a large answer", get("/api/v1/register", login+"X: y\r\n"), 405},
		{"a sent message", post("/api/v1/messages", login, message), 200},
		{"a sent message again", post("/api/v1/messages", login, message), 200},
		{"presence", post("/api/v1/users/me/presence", login, "status=active"), 200},
		{"an event poll", get("/api/v1/events?queue_id="+queue+"&last_event_id=-1", login), 200},
		{"an event poll of an unknown queue", get("/api/v1/events?queue_id=none&last_event_id=-1", login), 400},
		{"an event poll below /json", get("/json/events?queue_id="+webQueue+"&last_event_id=-1", login), 200},
		{"an unknown endpoint", get("/api/v1/nothing", login), 404},
		{"an unknown page", get("/nothing", browser), 404},
		{"the first page", get("/", browser), 0},
		{"the login page", get("/login/", browser), 200},
		{"a form without a token", post("/accounts/login/", browser, "username=a&password=b"), 403},
		{"a stylesheet", get("/static/nothing.css", ""), 404},
		{"a page of an unknown link", get("/join/unknown", browser), 0},
		{"an upload", get(file, login), 200},
		{"an upload without login", get(file, ""), 403},
		{"an upload by its temporary address", get(temporary, ""), 200},
		{"an unknown upload", get("/user_uploads/1/none/file.txt", login), 0},
		{"an avatar", get("/avatar/ann@example.org", login), 0},
		{"a resumable upload", post("/api/v1/tus", login+"Tus-Resumable: 1.0.0\r\nUpload-Length: 1\r\n", ""), 201},
		{"the OpenAPI description", get("/api/openapi.json", ""), 200},
		{"no HTTP", "nonsense\r\n\r\n", 400},
		{"an old HTTP version", "GET /health HTTP/0.9\r\n\r\n", 505},
		{"a large header", get("/health", "X: "+strings.Repeat("x", 64<<10)+"\r\n"), 431},
		{"a large body", "POST /api/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n" +
			login + "\r\n", 413},
		{"an encoded body", post("/api/v1/messages", login+"Content-Encoding: gzip\r\n", "x"), 415},
		{"an expectation", post("/api/v1/messages", login+"Expect: wonder\r\n", ""), 417},
	} {
		answer := tlsRequest(t, at, c.request)
		head, _, _ := strings.Cut(answer, "\r\n\r\n")
		if !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", c.status)) && c.status != 0 {
			t.Errorf("%s: %.60q, want the status %d", c.name, head, c.status)
		}
		if n := len(regexp.MustCompile(`(?i)\r\nStrict-Transport-Security: max-age=15768000`).FindAllString(head,
			-1)); n != 1 {
			t.Errorf("%s: %d headers with HSTS in %.300q", c.name, n, head)
		}
	}
	parkedPollHasHSTS(t, ann, at)
}

// parkedPollHasHSTS checks the answer to a poll that waits for an event.
func parkedPollHasHSTS(t *testing.T, ann *account, at string) {
	t.Helper()
	queue := ann.must(t, "POST", "register", url.Values{"event_types": {`["user_status"]`}})["queue_id"].(string)
	client := &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{TLSClientConfig: insecureTLS}}
	for _, prefix := range []string{"api/v1", "json"} {
		r, err := http.NewRequest("GET", "https://"+at+"/"+prefix+"/events?queue_id="+queue+"&last_event_id=-1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(ann.email, ann.key)
		text := "text for " + prefix
		time.AfterFunc(300*time.Millisecond, func() {
			ann.call("POST", "users/me/status", url.Values{"status_text": {text}})
		})
		began := time.Now()
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if got := a.Header.Get("Strict-Transport-Security"); got != "max-age=15768000" {
			t.Errorf("%s: a poll that waited %v has HSTS %q: %s", prefix, time.Since(began), got, body)
		}
	}
}
