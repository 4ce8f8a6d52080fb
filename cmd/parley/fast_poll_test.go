package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A poll on the fast path gets the same answer, including headers, as one that is written differently, which only the
// ordinary handler reads.
func TestFastPollsEqualOrdinaryOnes(t *testing.T) {
	for _, args := range [][]string{nil, {"--rate-limit", "0"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			p := startProgram(t,
				parleyCommand(append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"},
					args...)...))
			at := p.serving()
			alice := demoAccount(t, at, "ann@example.org")
			queue := func() string {
				res, err := alice.call("POST", "register", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := alice.send("a message"); err != nil {
					t.Fatal(err)
				}
				return res["queue_id"].(string)
			}
			address := strings.TrimPrefix(at, "http://")
			basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(alice.email+":"+alice.key)) +
				"\r\n"
			ask := func(target, credentials string) string {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, address, credentials)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text := new(strings.Builder)
				for _, k := range []string{"Date", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} { // change with time
					if res.Header.Get(k) != "" {
						res.Header.Set(k, "some")
					}
				}
				res.Header.Write(text)
				body := new(strings.Builder)
				if _, err := bufio.NewReader(res.Body).WriteTo(body); err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintln(res.StatusCode, text, body)
			}
			q := queue()
			for _, c := range []struct{ name, quick, other, credentials, want string }{
				{"events", "queue_id=" + q + "&last_event_id=-1", "queue_id=" + q + "&last_event_id=%2D1", basic,
					"a message"},
				{"no queue", "queue_id=nobodys:1&last_event_id=-1", "queue_id=nobodys:1&last_event_id=%2D1", basic,
					"BAD_EVENT_QUEUE_ID"},
				{"an event of another queue", "queue_id=" + q + "&last_event_id=777777",
					"queue_id=" + q + "&last_event_id=%3777777", basic, "was not in this queue"},
				{"no credentials", "queue_id=" + q + "&last_event_id=-1", "queue_id=" + q + "&last_event_id=%2D1", "",
					"UNAUTHORIZED"},
				{"wrong key", "queue_id=" + q + "&last_event_id=-1", "queue_id=" + q + "&last_event_id=%2D1",
					"Authorization: Basic YTpi\r\n", "Malformed API key"},
				{"not blocking", "queue_id=" + q + "&last_event_id=-1&dont_block=false",
					"queue_id=" + q + "&last_event_id=-1&dont_block=%66alse", basic, "a message"},
			} {
				for _, prefix := range []string{"/api/v1/events?", "/json/events?"} {
					quick, other := ask(prefix+c.quick, c.credentials), ask(prefix+c.other, c.credentials)
					if quick != other {
						t.Errorf("%s, %s: on the fast path\n%swritten differently\n%s", c.name, prefix, quick, other)
					}
					if !strings.Contains(quick, c.want) {
						t.Errorf("%s, %s: %q is not in\n%s", c.name, prefix, c.want, quick)
					}
				}
			}
			// A queue belongs to the user of the credentials, also on the fast path.
			bob := demoAccount(t, at, "bo@example.org")
			theirs := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(bob.email+":"+bob.key)) +
				"\r\n"
			if got := ask("/api/v1/events?queue_id="+q+"&last_event_id=-1", theirs); !strings.Contains(got,
				"BAD_EVENT_QUEUE_ID") {
				t.Errorf("a queue of another user: %s", got)
			}
			p.stop()
		})
	}
}

// startLimited starts a server with a rate limit on the data of a demo.
func startLimited(t *testing.T, limit string, emails ...string) (p *program, at string, people []*account) {
	dir := t.TempDir()
	p = startProgram(t, parleyCommand("serve", "--data", dir, "--listen", "127.0.0.1:0", "--demo"))
	at = p.serving()
	for _, e := range emails {
		people = append(people, demoAccount(t, at, e))
	}
	p.stop()
	p = startProgram(t, parleyCommand("serve", "--data", dir, "--listen", "127.0.0.1:0", "--rate-limit", limit))
	at = p.serving()
	for _, x := range people {
		x.url = at
	}
	return p, at, people
}

// rawConnection is a connection on which requests are written as bytes.
type rawConnection struct {
	t    *testing.T
	at   string
	conn net.Conn
	r    *bufio.Reader
}

func dialRaw(t *testing.T, at string) *rawConnection {
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawConnection{t, strings.TrimPrefix(at, "http://"), conn, bufio.NewReader(conn)}
}

func (l *rawConnection) sendPoll(p *account, query string) {
	basic := base64.StdEncoding.EncodeToString([]byte(p.email + ":" + p.key))
	if _, err := fmt.Fprintf(l.conn, "GET /api/v1/events?%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\n\r\n",
		query, l.at, basic); err != nil {
		l.t.Fatal(err)
	}
}

// readAnswer returns the answer: status and headers without values that change with time, and body.
func (l *rawConnection) readAnswer() (all string, header http.Header, body []byte) {
	l.conn.SetReadDeadline(time.Now().Add(binaryTimeout))
	res, err := http.ReadResponse(l.r, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		l.t.Fatal(err)
	}
	header = res.Header.Clone()
	for _, k := range []string{"Date", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if res.Header.Get(k) != "" {
			res.Header.Set(k, "some")
		}
	}
	text := new(strings.Builder)
	res.Header.Write(text)
	return fmt.Sprintln(res.StatusCode, text, string(body)), header, body
}

// lastEventID returns the id of an answer's last event.
func (l *rawConnection) lastEventID(body []byte) int64 {
	var a struct{ Events []struct{ ID int64 } }
	if err := json.Unmarshal(body, &a); err != nil || len(a.Events) == 0 {
		l.t.Fatalf("no events in %s", body)
	}
	return a.Events[len(a.Events)-1].ID
}

// A connection remembers the last poll, but every poll is checked again: after changes of the user, the queue or the
// organization it gets the same answer as a poll on a new connection.
func TestRepeatedPollsAreCheckedAgain(t *testing.T) {
	for _, limit := range []string{"0", "1000"} {
		t.Run("rate limit "+limit, func(t *testing.T) {
			p, at, people := startLimited(t, limit, "ann@example.org", "bo@example.org", "olive@example.org")
			ann, bo, olive := people[0], people[1], people[2]
			must := func(who *account, method, path string, form url.Values) map[string]any {
				t.Helper()
				a, err := who.call(method, path, form)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			send := func(text string) {
				t.Helper()
				if _, err := ann.send(text); err != nil {
					t.Fatal(err)
				}
			}
			me := int64(must(bo, "GET", "users/me", nil)["user_id"].(float64))
			var queue string
			l, last := dialRaw(t, at), int64(-1)
			poll := func() { l.sendPoll(bo, fmt.Sprintf("queue_id=%s&last_event_id=%d", queue, last)) }
			expect := func(want string) {
				t.Helper()
				all, _, body := l.readAnswer()
				if !strings.Contains(all, want) {
					t.Fatalf("%q is not in %s", want, all)
				}
				if strings.HasPrefix(all, "200") {
					last = l.lastEventID(body)
				}
			}
			begin := func() { // registers a queue and polls until the connection remembers it
				t.Helper()
				queue, last = must(bo, "POST", "register",
					url.Values{"event_types": {`["message"]`}})["queue_id"].(string), -1
				for i := range 3 {
					send(fmt.Sprint("word ", i))
					poll()
					expect(fmt.Sprint("word ", i))
				}
				poll() // waits for an event
				send("last word")
				expect("last word")
			}
			// refused expects the answer that a poll on a new connection, written differently, gets too.
			refused := func(want string) {
				t.Helper()
				poll()
				all, _, _ := l.readAnswer()
				other := dialRaw(t, at)
				other.sendPoll(bo, fmt.Sprintf("queue_id=%s&last_event_id=%%3%d", queue, last))
				if fresh, _, _ := other.readAnswer(); all != fresh || !strings.Contains(all, want) {
					t.Fatalf("repeated\n%s\nfresh\n%s\nwant %q", all, fresh, want)
				}
			}

			begin()
			seen := last
			for _, id := range []int64{seen + 1<<20, 0} { // an id that was never used; an id acknowledged long ago
				last = id
				if id == 0 {
					refused("pruned")
				} else {
					l.sendPoll(bo, fmt.Sprintf("queue_id=%s&last_event_id=%d", queue, last))
					expect("was not in this queue")
				}
			}
			last = seen
			l.sendPoll(bo, fmt.Sprintf("queue_id=%s&last_event_id=%d&dont_block=true", queue, last))
			if all, _, _ := l.readAnswer(); !strings.Contains(all, `"events":[]`) {
				t.Errorf("a poll that does not wait: %s", all)
			}
			l.sendPoll(ann, fmt.Sprintf("queue_id=%s&last_event_id=%d", queue, last))
			if all, _, _ := l.readAnswer(); !strings.Contains(all, "BAD_EVENT_QUEUE_ID") {
				t.Errorf("a queue of another user on the connection of its owner: %s", all)
			}
			send("to the owner")
			poll()
			expect("to the owner")

			begin()
			must(bo, "DELETE", "events", url.Values{"queue_id": {queue}})
			refused("BAD_EVENT_QUEUE_ID")

			begin()
			old := *bo
			bo.key = must(bo, "POST", "users/me/api_key/regenerate", nil)["api_key"].(string)
			fresh := bo.key
			bo.key = old.key
			refused("401")
			bo.key = fresh
			send("under the new key")
			poll()
			expect("under the new key")
			poll()
			send("and once more")
			expect("and once more")

			begin()
			must(olive, "DELETE", fmt.Sprintf("users/%d", me), nil)
			refused("Account is deactivated")
			must(olive, "POST", fmt.Sprintf("users/%d/reactivate", me), nil)
			refused("BAD_EVENT_QUEUE_ID")

			must(bo, "POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"general"}]`}})
			begin()
			must(olive, "POST", "realm/deactivate", nil)
			refused("deactivated")
			p.stop()
		})
	}
}

// Each repeated poll counts for the rate limit, and polls over the limit are refused.
func TestRepeatedPollsCountForTheRateLimit(t *testing.T) {
	p, at, people := startLimited(t, "20", "ann@example.org", "bo@example.org")
	ann, bo := people[0], people[1]
	a, err := bo.call("POST", "register", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.send("a word"); err != nil {
		t.Fatal(err)
	}
	l, began, answered := dialRaw(t, at), time.Now(), 0
	for left := 20; ; answered++ { // no event is acknowledged, so each poll is answered at once
		l.sendPoll(bo, fmt.Sprintf("queue_id=%s&last_event_id=-1", a["queue_id"]))
		all, header, _ := l.readAnswer()
		if strings.HasPrefix(all, "429") {
			if header.Get("Retry-After") == "" || !strings.Contains(all, "RATE_LIMIT_HIT") {
				t.Errorf("refused with %s", all)
			}
			break
		}
		now, err := strconv.Atoi(header.Get("X-Ratelimit-Remaining"))
		if refilled := int(time.Since(began)/(3*time.Second)) + 1; err != nil || now >= left+refilled || now < left-2 {
			t.Fatalf("%q requests are left, %d before", header.Get("X-Ratelimit-Remaining"), left)
		}
		left = now
	}
	// One request of the twenty was the registration; the limit allows one more every three seconds.
	if most := 20 + int(time.Since(began)/(3*time.Second)); answered < 18 || answered > most {
		t.Errorf("%d polls were answered, with a limit of 20 (%d by now)", answered, most)
	}
	p.stop()
}
