package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/wire"
)

// rawAnswer is the final answer to a request that was written byte by byte.
type rawAnswer struct {
	status int
	header http.Header
	body   string
	// interim is the number of answers with a status below 200 before it.
	interim int
}

// ask writes a request as ann with the given lines of the head, and reads the answer. The connection stays open, so a
// body that is announced and not sent fails the test.
func (k *demoClient) ask(method, target, body string, lines ...string) rawAnswer {
	k.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(k.at, "http://"))
	if err != nil {
		k.Fatal(err)
	}
	defer c.Close()
	if err = c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		k.Fatal(err)
	}
	ann := k.people["ann"]
	login := &http.Request{Header: http.Header{}}
	login.SetBasicAuth(ann.email, ann.key)
	lines = append(lines, "Host: "+strings.TrimPrefix(k.at, "http://"),
		"Authorization: "+login.Header.Get("Authorization"))
	if body != "" && !strings.Contains(strings.Join(lines, "\n"), "Transfer-Encoding:") {
		lines = append(lines, fmt.Sprint("Content-Length: ", len(body)))
	}
	if !strings.Contains(strings.ToLower(strings.Join(lines, "\n")), "content-type:") {
		lines = append(lines, "Content-Type: application/x-www-form-urlencoded")
	}
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\n%s\r\n\r\n%s", method, target, strings.Join(lines, "\r\n"), body)
	in, asked := bufio.NewReader(c), &http.Request{Method: method}
	for interim := 0; ; interim++ {
		r, err := http.ReadResponse(in, asked)
		if err != nil {
			k.Fatalf("%s %s: %v", method, target, err)
		}
		if r.StatusCode < 200 {
			continue
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			k.Fatalf("%s %s: %v", method, target, err)
		}
		return rawAnswer{r.StatusCode, r.Header, string(text), interim}
	}
}

// TestHTTPRequests sends requests in forms that programs and proxies use beside the most usual one.
func TestHTTPRequests(t *testing.T) {
	k := newDemoClient(t)
	for name, run := range map[string]func(*testing.T, *demoClient){
		"HEAD has the status and headers of GET": headLikeGet, "the method is a form field": methodFields,
		"paths": writtenPaths, "bodies": sentBodies, "parameters": repeatedParameters, "charsets": formCharsets,
		"Vary": varyOfStaticFiles, "compatibility": rootCompatibility,
		"terminal client": terminalClient, "large uploads": uploadPaths,
	} {
		t.Run(name, func(t *testing.T) {
			c := *k
			c.T = t
			run(t, &c)
		})
	}
}

var inPathBraces = regexp.MustCompile(`\{[^}]*\}`)

func headLikeGet(t *testing.T, k *demoClient) {
	paths := []string{"/", "/login", "/register", "/robots.txt", "/health", "/favicon.ico", "/manifest.webmanifest",
		"/service-worker.js", "/offline", "/admin/server", "/admin/server.json", "/api/openapi.json", "/nothing",
		"/compatibility", "/thumbnail", wire.EmojiTablePath, "/user_avatars/1/generated/x.png"}
	for _, e := range wire.Endpoints() {
		if e.Method == "GET" && !e.Dev && !e.Resumable() { // which has an endpoint for HEAD
			for _, prefix := range []string{"/api/v1", "/json"} {
				paths = append(paths, prefix+inPathBraces.ReplaceAllString(e.Path, "1"))
			}
		}
	}
	for _, f := range wire.FileRoutes {
		paths = append(paths, inPathBraces.ReplaceAllString(f.Path, "1"))
	}
	for _, path := range paths {
		get, head := k.ask("GET", path, ""), k.ask("HEAD", path, "")
		if head.status != get.status || head.body != "" || head.status == 405 {
			t.Errorf("%s: GET %d, HEAD %d %q", path, get.status, head.status, head.body)
		}
		for _, name := range []string{"Content-Type", "Content-Encoding", "Vary", "Cache-Control", "Location",
			"Allow"} {
			if g, h := get.header.Get(name), head.header.Get(name); g != h {
				t.Errorf("%s: %s of GET is %q, of HEAD %q", path, name, g, h)
			}
		}
	}
}

func methodFields(t *testing.T, k *demoClient) {
	for _, field := range []string{"GET", "get", "HEAD"} {
		a := k.ask("POST", "/api/v1/users/me", "method="+field)
		if a.status != 200 || !strings.Contains(a.body, `"email":`) {
			t.Errorf("POST with method=%s: %d %q", field, a.status, a.body)
		}
	}
	if a := k.ask("POST", "/api/v1/users/me", "method=PROPFIND"); a.status != 405 || a.header.Get("Allow") == "" {
		t.Errorf("POST with method=PROPFIND: %d %v", a.status, a.header)
	}
}

func writtenPaths(t *testing.T, k *demoClient) {
	for target, want := range map[string]int{
		"/api/v1/users/me":                            200,
		"/api/v1/users/me/?x=1":                       200,
		"//api/v1//users///me//":                      200,
		"/api/v1/%75sers/m%65":                        200,
		"/%61pi/v1/users/me":                          200,
		"http://chat.example.com/api/v1/users/me":     200,
		"HTTP://chat.example.com:80//api/v1/users/me": 200,
		"/api/v1/users/ann%40example.org":             200,
		"/api/v1/users/ann@example.org":               200,
		"/api/v1/users/me%2Fsubscriptions":            400, // an escaped slash is a character of the name
		"/API/v1/users/me":                            404,
		"/api/v1/users/me.json":                       400,
	} {
		if a := k.ask("GET", target, ""); a.status != want {
			t.Errorf("GET %s: %d %s, want %d", target, a.status, a.body, want)
		}
	}
	if a := k.ask("OPTIONS", "*", ""); a.status != 204 || !strings.Contains(a.header.Get("Allow"), "PATCH") {
		t.Errorf("OPTIONS *: %d %v", a.status, a.header)
	}
	if a := k.ask("PROPFIND", "/nothing", ""); a.status != 404 {
		t.Errorf("PROPFIND of no path: %d", a.status)
	}
}

// formOf returns a form that sends a message.
func formOf(content string) string {
	return "type=direct&to=%5B%22bo%40example.org%22%5D&content=" + content
}

// sent returns the content of the message that an answer names; "" and a failed test if it names none.
func (k *demoClient) sent(a rawAnswer) string {
	k.Helper()
	var body struct{ ID int64 }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != 200 || body.ID == 0 {
		k.Errorf("%d %s", a.status, a.body)
		return ""
	}
	m := k.must("ann", fmt.Sprintf("GET messages/%d", body.ID), "apply_markdown", false)
	return fmt.Sprint(m["raw_content"])
}

func sentBodies(t *testing.T, k *demoClient) {
	const path = "/api/v1/messages"
	body := formOf("tea")
	chunked := fmt.Sprintf("%x;name=value\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 7, body[:7], len(body)-7, body[7:])
	for _, lines := range [][]string{
		{}, {"Expect: 100-continue"}, {"Transfer-Encoding: chunked"},
		{"Transfer-Encoding: chunked", "Expect: 100-continue"},
		{"Content-Encoding: identity"}, {"content-type: Application/X-WWW-Form-Urlencoded ; Charset=\"utf-8\""},
	} {
		text := body
		if strings.HasPrefix(strings.Join(lines, ""), "Transfer") {
			text = chunked
		}
		a := k.ask("POST", path, text, lines...)
		if got := k.sent(a); got != "tea" {
			t.Errorf("%q: %q", lines, got)
		}
		if expects := strings.Contains(strings.Join(lines, ""), "Expect"); (a.interim == 1) != expects {
			t.Errorf("%q: %d interim answers", lines, a.interim)
		}
	}
	for line, want := range map[string]int{
		"Content-Encoding: gzip": 415, "Content-Encoding: br": 415, "Transfer-Encoding: gzip, chunked": 501,
		"Expect: nothing": 417,
	} {
		a := k.ask("POST", path, body, line)
		if a.status != want || !strings.Contains(a.body, `"result":"error"`) || !strings.Contains(a.body, `"code":"`) {
			t.Errorf("%s: %d %s", line, a.status, a.body)
		}
	}
	for _, kind := range []string{"application/json", "text/plain", "application/x-www-form-urlencode"} {
		if a := k.ask("POST", path, body, "Content-Type: "+kind); a.status != 400 ||
			!strings.Contains(a.body, "Missing 'type' argument") {
			t.Errorf("%s: %d %s", kind, a.status, a.body)
		}
	}
	if a := k.ask("POST", path, body, "Content-Type: multipart/form-data"); a.status != 400 {
		t.Errorf("multipart without boundary: %d %s", a.status, a.body)
	}
}

func repeatedParameters(t *testing.T, k *demoClient) {
	for target, want := range map[string]string{
		"/api/v1/messages": "last", "/api/v1/messages?content=query": "last",
		"/api/v1/messages?content=a&content=b": "last",
	} {
		if got := k.sent(k.ask("POST", target, formOf("first&content=last"))); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
	rest := strings.TrimSuffix(formOf(""), "&content=")
	if got := k.sent(k.ask("POST", "/api/v1/messages?content=a&content=b", rest)); got != "b" {
		t.Errorf("twice in the query: %q", got)
	}
}

func formCharsets(t *testing.T, k *demoClient) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ kind, content, want string }{
		{form + "; charset=UTF-8", "Gr%C3%BC%C3%9Fe", "Grüße"},
		{form + `;charset="utf-8"`, "Grüße", "Grüße"},
		{form + "; charset=ISO-8859-1", "Gr%FC%DFe", "Grüße"},
		{form + "; charset=iso-8859-1", "Gr\xfc\xdfe", "Grüße"},
		{form + "; charset=ISO-8859-1", "Gr%C3%BC%C3%9Fe", "Grüße"}, // labelled as such by libraries, but in UTF-8
		{form + "; charset=windows-1252", "%80+5", "€ 5"},
		{form + "; charset=utf-16", "tea", ""},
		{form + "; charset=klingon", "tea", ""},
		{form + "; charset", "tea", "tea"},
		{form + ";", "tea", "tea"},
	} {
		a := k.ask("POST", "/api/v1/messages", formOf(c.content), "Content-Type: "+c.kind)
		if c.want == "" {
			if a.status != 400 || !strings.Contains(a.body, "must be UTF-8 encoded") {
				t.Errorf("%s: %d %s", c.kind, a.status, a.body)
			}
		} else if got := k.sent(a); got != c.want {
			t.Errorf("%s: %q, want %q", c.kind, got, c.want)
		}
	}
}

func varyOfStaticFiles(t *testing.T, k *demoClient) {
	page := k.ask("GET", "/login", "", "Accept: text/html").body
	files := regexp.MustCompile(`/static/[^"]+`).FindAllString(page, -1)
	if len(files) == 0 {
		t.Error("the login page has no files")
	}
	for _, path := range append(files, wire.EmojiTablePath, "/static/images/logo/zulip-org-logo.svg",
		"/static/images/unknown-user-avatar.png", "/static/nothing", "/api/openapi.json") {
		var plain []byte
		for _, encoding := range []string{"gzip", "identity", "gzip;q=0", "deflate, gzip;q=0.5"} {
			a := k.ask("GET", path, "", "Accept-Encoding: "+encoding)
			accepts := encoding == "gzip" || strings.Contains(encoding, "0.5")
			if vary := a.header.Get("Vary"); !strings.Contains(vary, "Accept-Encoding") ||
				a.header.Get("Content-Encoding") != "" && !accepts {
				t.Errorf("%s with %s: Vary %q, %s", path, encoding, vary, a.header.Get("Content-Encoding"))
			}
			if encoding == "identity" {
				plain = []byte(a.body)
			} else if !accepts && !bytes.Equal(plain, []byte(a.body)) {
				t.Errorf("%s with %s: another content", path, encoding)
			}
		}
	}
	for _, encoding := range []string{"gzip", "identity"} { // an answer that is large enough to be compressed
		a := k.ask("POST", "/api/v1/register", "", "Accept-Encoding: "+encoding)
		if vary := a.header.Get("Vary"); vary != "Accept-Language, Accept-Encoding" {
			t.Errorf("register with %s: Vary %q", encoding, vary)
		}
	}
}

func rootCompatibility(t *testing.T, k *demoClient) {
	for _, prefix := range []string{"", "/api/v1", "/json"} {
		for agent, want := range map[string]int{"ZulipMobile/27.1 (iOS 16.0)": 200, "ZulipInvalid/1.0": 400} {
			if a := k.ask("GET", prefix+"/compatibility", "", "User-Agent: "+agent); a.status != want {
				t.Errorf("%s/compatibility from %s: %d %s", prefix, agent, a.status, a.body)
			}
		}
	}
}

// terminalClient registers as release 0.7.0 of the terminal client does, which needs two former fields, and as others.
func terminalClient(t *testing.T, k *demoClient) {
	former := url.Values{"fetch_event_types": {`["update_global_notifications","update_display_settings"]`}}.Encode()
	now := url.Values{"fetch_event_types": {`["user_settings"]`}}.Encode()
	for _, c := range []struct {
		agent, form string
		want        bool
	}{
		{"ZulipTerminal/0.7.0 ZulipPython/0.9.1 (Debian; 12)", former, true},
		{"ZulipTerminal/0.7.0+git ZulipPython/0.9.1 (Debian; 12)", now, false},
		{"ZulipTerminal/0.7.0 ZulipPython/0.9.1 (Debian; 12)", "", false},
		{"ZulipMobile/30.0 (Android 14)", former, false},
	} {
		a := k.ask("POST", "/api/v1/register", c.form, "User-Agent: "+c.agent)
		var fields map[string]any
		if err := json.Unmarshal([]byte(a.body), &fields); a.status != 200 || err != nil {
			t.Fatalf("%s with %q: %d %s", c.agent, c.form, a.status, a.body)
		}
		hours, has := fields["twenty_four_hour_time"]
		contents := fields["pm_content_in_desktop_notifications"]
		if has != c.want || has && (hours != false || contents != true) || !has && contents != nil {
			t.Errorf("%s with %q: %v %v", c.agent, c.form, hours, contents)
		}
	}
}

// uploadPaths uploads a file that is larger than an ordinary body, by every way to write the path.
func uploadPaths(t *testing.T, k *demoClient) {
	file := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n" +
		strings.Repeat("x", 3<<20) + "\r\n--b--\r\n"
	for _, target := range []string{"/api/v1/user_uploads", "/api/v1/user_uploads/", "//api/v1/user_uploads",
		"/api/v1//user_uploads//?x=1", "/api/v1/user%5Fuploads", "http://chat.example.com/api/v1/user_uploads"} {
		a := k.ask("POST", target, file, "Content-Type: multipart/form-data; boundary=b")
		if a.status != 200 || !strings.Contains(a.body, `"url":"/user_uploads/`) {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
}
