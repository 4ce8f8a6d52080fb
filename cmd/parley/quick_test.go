package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A request for events that is taken on the event loop gets the answer, header lines included, that it gets written in
// another way, which only the ordinary handler reads.
func TestQuickPollsAnswerLikeOrdinaryOnes(t *testing.T) {
	for _, args := range [][]string{nil, {"--rate-limit", "0"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			p := start(t, parley(append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"}, args...)...))
			at := p.serving()
			alice := demoPerson(t, at, "ann@example.org")
			queue := func() string {
				res, err := alice.call("POST", "register", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := alice.send("something to hear of"); err != nil {
					t.Fatal(err)
				}
				return res["queue_id"].(string)
			}
			address := strings.TrimPrefix(at, "http://")
			basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(alice.email+":"+alice.key)) + "\r\n"
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
				{"events", "queue_id=" + q + "&last_event_id=-1", "queue_id=" + q + "&last_event_id=%2D1", basic, "something to hear of"},
				{"no queue", "queue_id=nobodys:1&last_event_id=-1", "queue_id=nobodys:1&last_event_id=%2D1", basic, "BAD_EVENT_QUEUE_ID"},
				{"an event of another queue", "queue_id=" + q + "&last_event_id=777777", "queue_id=" + q + "&last_event_id=%3777777", basic, "was not in this queue"},
				{"no credentials", "queue_id=" + q + "&last_event_id=-1", "queue_id=" + q + "&last_event_id=%2D1", "", "UNAUTHORIZED"},
				{"wrong key", "queue_id=" + q + "&last_event_id=-1", "queue_id=" + q + "&last_event_id=%2D1", "Authorization: Basic YTpi\r\n", "Malformed API key"},
				{"not blocking", "queue_id=" + q + "&last_event_id=-1&dont_block=false", "queue_id=" + q + "&last_event_id=-1&dont_block=%66alse", basic, "something to hear of"},
			} {
				for _, prefix := range []string{"/api/v1/events?", "/json/events?"} {
					quick, other := ask(prefix+c.quick, c.credentials), ask(prefix+c.other, c.credentials)
					if quick != other {
						t.Errorf("%s, %s: taken on the loop\n%swritten in another way\n%s", c.name, prefix, quick, other)
					}
					if !strings.Contains(quick, c.want) {
						t.Errorf("%s, %s: %q is not in\n%s", c.name, prefix, c.want, quick)
					}
				}
			}
			// Whose credentials they are decides, also here.
			bob := demoPerson(t, at, "bo@example.org")
			theirs := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(bob.email+":"+bob.key)) + "\r\n"
			if got := ask("/api/v1/events?queue_id="+q+"&last_event_id=-1", theirs); !strings.Contains(got, "BAD_EVENT_QUEUE_ID") {
				t.Errorf("somebody else's queue: %s", got)
			}
			p.stop()
		})
	}
}
