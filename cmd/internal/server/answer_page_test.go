package server

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/wire"
)

// largeText is a message whose HTML takes 215 kB.
var largeText = strings.Repeat(":o: ", 2490)

const largeMessages = 60 // more than fit into one answer

// sendLarge sends large messages and returns their ids.
func (d *demoServer) sendLarge(n int) (ids []int64) {
	for range n {
		a := d.call("ann@example.org", "POST", "messages",
			url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"large"}, "content": {largeText}})
		ids = append(ids, int64(a["id"].(float64)))
	}
	return ids
}

// get sends a GET request as a user on a connection of its own, and returns the answer with its uncompressed body.
func (d *demoServer) get(email, path, version, headers string) (*http.Response, []byte) {
	d.t.Helper()
	c := d.dial(email, path, version, headers)
	defer c.Close()
	c.SetDeadline(time.Now().Add(eventTimeout))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			d.t.Fatal(err)
		}
	}
	b, err := io.ReadAll(body)
	if err != nil {
		d.t.Fatal(err)
	}
	return r, b
}

// dial sends a GET request and does not read the answer.
func (d *demoServer) dial(email, path, version, headers string) net.Conn {
	d.t.Helper()
	c, err := net.Dial("tcp", d.Addr())
	if err != nil {
		d.t.Fatal(err)
	}

	r, err := http.NewRequest("GET", "http://x/", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.SetBasicAuth(email, d.keys[email])
	fmt.Fprintf(c, "GET /api/v1/%s HTTP/%s\r\nHost: x\r\nAuthorization: %s\r\n%s\r\n", path, version,
		r.Header.Get("Authorization"), headers)
	return c
}

// pageAnswer is an answer of GET /messages.
type pageAnswer struct {
	Messages []struct{ ID int64 }
	Anchor   int64
	Found    bool `json:"found_anchor"`
	Oldest   bool `json:"found_oldest"`
	Newest   bool `json:"found_newest"`
}

// A page whose messages are too large is shortened at the end that is farther from the anchor. It says that there is
// more on that side, and the next pages have it.
func TestShortenedPages(t *testing.T) {
	d := startDemo(t)
	sent := d.sendLarge(largeMessages)
	page := func(anchor string, before, after int) (p pageAnswer) {
		t.Helper()
		r, b := d.get("ann@example.org", "messages?narrow="+url.QueryEscape(`[{"operator":"topic","operand":"large"}]`)+
			fmt.Sprintf("&anchor=%s&num_before=%d&num_after=%d", anchor, before, after), "1.1", "")
		if err := json.Unmarshal(b, &p); err != nil || r.StatusCode != 200 {
			t.Fatal(r.Status, err)
		}
		if len(b) > wire.MaxPageBytes*5/4 {
			t.Errorf("a page has %d bytes", len(b))
		}
		return p
	}
	ids := func(p pageAnswer) (out []int64) {
		for _, m := range p.Messages {
			out = append(out, m.ID)
		}
		return out
	}
	if p := page("newest", 1000, 0); p.Oldest || !p.Newest || len(p.Messages) < 10 ||
		!slices.Equal(ids(p), sent[largeMessages-len(p.Messages):]) {
		t.Errorf("newest: %+v", p)
	}
	if p := page("oldest", 0, 1000); !p.Oldest || p.Newest || !slices.Equal(ids(p), sent[:len(p.Messages)]) {
		t.Errorf("oldest: %+v", p)
	}
	middle := sent[largeMessages/2]
	p := page(fmt.Sprint(middle), 1000, 1000)
	from := slices.Index(sent, p.Messages[0].ID)
	if p.Oldest || p.Newest || !p.Found || p.Anchor != middle ||
		!slices.Equal(ids(p), sent[from:from+len(p.Messages)]) {
		t.Errorf("middle: %+v", p)
	}
	if p := page(fmt.Sprint(sent[1]), 1000, 1000); !p.Oldest || p.Newest || !p.Found || p.Messages[0].ID != sent[0] {
		t.Errorf("near the oldest: %+v", p)
	}
	var all []int64
	for anchor := "oldest"; ; {
		p := page(anchor, 0, 1000)
		list := ids(p)
		if len(all) > 0 {
			list = list[1:] // the anchor
		}
		if all = append(all, list...); p.Newest {
			break
		}
		anchor = fmt.Sprint(all[len(all)-1])
	}
	if !slices.Equal(all, sent) {
		t.Errorf("the pages have %d messages: %v, want %v", len(all), all, sent)
	}
}

// The same page has the same content in every form: encoded while it is sent, compressed, and for HTTP/1.0.
func TestPageForms(t *testing.T) {
	d := startDemo(t)
	d.sendLarge(5)
	const path = "messages?anchor=newest&num_before=5&num_after=0"
	plain, want := d.get("ann@example.org", path, "1.1", "")
	if len(plain.TransferEncoding) == 0 {
		t.Error("a large answer was not encoded while it was sent")
	}
	for _, x := range []struct{ version, headers string }{{"1.1", "Accept-Encoding: gzip\r\n"}, {"1.0", ""},
		{"1.0", "Accept-Encoding: gzip\r\n"}} {
		r, b := d.get("ann@example.org", path, x.version, x.headers)
		var got, plain any
		json.Unmarshal(b, &got)
		json.Unmarshal(want, &plain)
		if x, y := fmt.Sprint(got), fmt.Sprint(plain); r.StatusCode != 200 || x != y {
			t.Errorf("HTTP/%v: %s, %d bytes, want the same %d bytes", x, r.Status, len(b), len(want))
		}
		if r.ContentLength < 0 {
			t.Errorf("HTTP/%v: no Content-Length", x)
		}
	}
}

// Requests for messages by id are refused if not all of them fit: a client would take a missing one for deleted.
func TestTooLargeMessageLists(t *testing.T) {
	d := startDemo(t)
	sent := d.sendLarge(largeMessages)
	list, _ := json.Marshal(sent)
	few, _ := json.Marshal(sent[:3])
	for _, x := range []struct {
		path   string
		status int
	}{
		{"messages?message_ids=" + string(list), 413},
		{"messages?message_ids=" + string(few), 200},
		{"messages/matches_narrow?narrow=[]&msg_ids=" + string(list), 413},
		{"messages/matches_narrow?narrow=[]&msg_ids=" + string(few), 200},
	} {
		r, b := d.get("ann@example.org", x.path, "1.1", "")
		// The answer before this one counts until the server has noticed that all of it was read.
		for n := 0; n < 1000 && r.StatusCode == 503; n++ {
			r, b = d.get("ann@example.org", x.path, "1.1", "")
		}
		if r.StatusCode != x.status || x.status == 413 && !bytes.Contains(b, []byte("too large for one answer")) {
			t.Errorf("%.40s: %s %.200s", x.path, r.Status, b)
		}
	}
}

// An account whose clients do not read their answers gets no further large ones, with a code of its own and the time
// to wait. Other accounts get theirs. When the connections end, the memory is free again.
func TestUnreadAnswersOfOneAccount(t *testing.T) {
	d := startDemo(t)
	d.sendLarge(largeMessages)
	const path = "messages?anchor=newest&num_before=1000&num_after=0"
	var unread []net.Conn
	refused := func() bool {
		r, b := d.get("ann@example.org", path, "1.1", "")
		if r.StatusCode == 200 {
			return false
		}
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" ||
			!bytes.Contains(b, []byte("ANSWER_MEMORY_FULL")) {
			t.Fatalf("%s, Retry-After %q: %s", r.Status, r.Header.Get("Retry-After"), b)
		}
		return true
	}
	// Some of the requests that nobody reads can be refused themselves, and what the kernel takes of the others frees
	// memory again, so there is another one before each attempt.
	waitUntil(t, "further large answers are refused", func() bool {
		unread = append(unread, d.dial("ann@example.org", path, "1.1", ""))
		return refused()
	})
	if r, _ := d.get("bo@example.org", path, "1.1", ""); r.StatusCode != 200 {
		t.Errorf("another account: %s", r.Status)
	}
	if r, _ := d.get("ann@example.org", "users/me", "1.1", ""); r.StatusCode != 200 {
		t.Errorf("a small answer: %s", r.Status)
	}
	used := d.Server.http.Stats().AnswerBytes
	if limit := d.Server.http.Bounds().MaxAnswersPerCaller; used > limit+limit/2 {
		t.Errorf("the answers of one account take %d bytes, the limit is %d", used, limit)
	}
	for _, c := range unread {
		c.Close()
	}
	waitUntil(t, "the memory is free", func() bool { return d.Server.http.Stats().AnswerBytes == 0 })
	if refused() {
		t.Error("refused although nothing is unread")
	}
}

// waitUntil waits until a condition holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(eventTimeout); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}
