package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A message on the fast path gets the same answer, including headers, as one that the ordinary handler gets. The
// ordinary handler gets requests with two User-Agent headers.
func TestFastSendsEqualOrdinaryOnes(t *testing.T) {
	for _, args := range [][]string{nil, {"--rate-limit", "0"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			debug := freeAddress(t)
			p := startProgram(t,
				parleyCommand(append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo",
					"--debug-listen", debug}, args...)...))
			at := p.serving()
			ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
			queue, err := ann.call("POST", "register", nil)
			if err != nil {
				t.Fatal(err)
			}
			boID := int64(0)
			if me, err := bo.call("GET", "users/me", nil); err != nil {
				t.Fatal(err)
			} else {
				boID = int64(me["user_id"].(float64))
			}
			send := func(who *account, agents, credentials, form string) string {
				if credentials == "" {
					credentials = "Authorization: " + who.auth() + "\r\n"
				}
				return rawPost(t, at, "/api/v1/messages", agents+credentials, form)
			}
			channel := url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"quick"}, "content": {"plain text"}}
			with := func(v url.Values, more ...string) string {
				all := url.Values{}
				for k, list := range v {
					all[k] = list
				}
				for i := 0; i < len(more); i += 2 {
					all.Set(more[i], more[i+1])
				}
				return all.Encode()
			}
			// The first message uses the ordinary handler, which prepares the rendering of texts, and follows the
			// topic.
			send(ann, "", "", with(channel, "content", "beginning"))
			send(ann, "", "", with(channel, "content", "beginning"))
			for _, c := range []struct {
				name, form, credentials string
				quick                   int // requests on the fast path
				want                    string
			}{
				{"to a channel", with(channel), "", 1, `"result":"success"`},
				{"marked up", with(channel, "content",
					"**bold** *it* `code` https://example.org/?a=b&c=d :smile: 100% + ümlaut\n* list"), "", 1,
					`"result":"success"`},
				{"by its number", with(channel, "to", "1"), "", 1, `"`},
				{"as JSON", with(channel, "to", `"general"`), "", 1, `"result":"success"`},
				{"old names", "type=channel&to=general&subject=quick&content=x", "", 1, `"result":"success"`},
				{"to a user",
					with(url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%d]", boID)}, "content": {"psst"}}), "", 1,
					`"result":"success"`},
				{"to an address",
					with(url.Values{"type": {"private"}, "to": {`["bo@example.org"]`}, "content": {"psst"}}), "", 1,
					`"result":"success"`},
				{"with a queue", with(channel, "queue_id", queue["queue_id"].(string), "local_id", "17.01",
					"read_by_sender", "true"), "", 1, `"result":"success"`},
				{"with unknown parameters", with(channel, "whom", "me", "a", "b"), "", 1,
					`"ignored_parameters_unsupported":["a","whom"]`},
				{"in another user's name", with(channel, "sender", "bo@example.org"), "", 0,
					"Invalid mirrored message"},
				{"from a named client", with(channel, "client", "my bot"), "", 1, `"result":"success"`},
				{"a poll", with(channel, "content", "/poll lunch\nyes\nno"), "", 1, `"result":"success"`},
				{"to no channel", with(channel, "to", "nowhere"), "", 1, "STREAM_DOES_NOT_EXIST"},
				{"to a missing user", with(url.Values{"type": {"direct"}, "to": {"[999999]"}, "content": {"psst"}}), "",
					1, "Invalid user ID 999999"},
				{"a bad topic", with(channel, "topic", "a\x01b"), "", 1, "Invalid character in topic"},
				{"a mention", with(channel, "content", "hello @**all**"), "", 1, `"result":"success"`},
				{"a mention of a user", with(channel, "content", "hello @**Bo**"), "", 0, `"result":"success"`},
				{"mathematics", with(channel, "content", "$$x$$"), "", 0, `"result":"success"`},
				{"long", with(channel, "content", strings.Repeat("word ", 600)), "", 0, `"result":"success"`},
				{"empty", with(channel, "content", " \n"), "", 0, "Message must not be empty"},
				{"no topic", "type=stream&to=general&content=x", "", 0, "Missing topic"},
				{"no type", "to=general&content=x", "", 0, "Missing 'type' argument"},
				{"another method", with(channel, "method", "DELETE"), "", 0, "Method Not Allowed"},
				{"wrong key", with(channel), "Authorization: Basic YTpi\r\n", 0, "Malformed API key"},
				{"another user's email", with(channel),
					"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("bo@example.org:"+ann.key)) +
						"\r\n", 0, "Invalid API key"},
			} {
				before := fastRequests(t, debug)
				quick := send(ann, "User-Agent: test/1\r\n", c.credentials, c.form)
				ordinary := send(ann, "User-Agent: test/1\r\nUser-Agent: test/1\r\n", c.credentials, c.form)
				got := fastRequests(t, debug) - before
				// the event loop updates its counter at the end of a round
				for end := time.Now().Add(binaryTimeout); got < c.quick && time.Now().Before(end); {
					got = fastRequests(t, debug) - before
				}
				if got != c.quick {
					t.Errorf("%s: %d on the fast path, want %d", c.name, got, c.quick)
				}
				if quick != ordinary {
					t.Errorf("%s: on the fast path\n%sby the ordinary handler\n%s", c.name, quick, ordinary)
				}
				if !strings.Contains(quick, c.want) {
					t.Errorf("%s: %q is not in\n%s", c.name, c.want, quick)
				}
			}
			checkMessagePairs(t, ann)
			p.stop()
		})
	}
}

// checkMessagePairs compares the messages of the topic: of each pair one was sent on the fast path, the other one by
// the ordinary handler.
func checkMessagePairs(t *testing.T, ann *account) {
	t.Helper()
	res, err := ann.call("GET", "messages",
		url.Values{"anchor": {"newest"}, "num_before": {"200"}, "num_after": {"0"},
			"narrow": {`[["topic","quick"]]`}})
	if err != nil {
		t.Fatal(err)
	}
	list := res["messages"].([]any)
	if len(list) < 20 || len(list)%2 != 0 {
		t.Fatalf("%d messages", len(list))
	}
	for i := 0; i < len(list); i += 2 {
		a, b := list[i].(map[string]any), list[i+1].(map[string]any)
		for _, k := range []string{"content", "subject", "client", "stream_id", "sender_id",
			"display_recipient", "flags", "is_me_message"} {
			if fmt.Sprint(a[k]) != fmt.Sprint(b[k]) {
				t.Errorf("%s: on the fast path %v, by the ordinary handler %v", k, a[k], b[k])
			}
		}
	}
}

// changingID matches ids, which differ between two answers to the same request.
var changingID = regexp.MustCompile(`"id":\d+`)

// rawPost posts a form with these header lines and returns the answer without values that change with time.
func rawPost(t *testing.T, at, path, lines, form string) string {
	t.Helper()
	address := strings.TrimPrefix(at, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn,
		"POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: "+
			"%d\r\n\r\n%s", path, address, lines, len(form), form)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, k := range []string{"Date", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Content-Length"} {
		if res.Header.Get(k) != "" {
			res.Header.Set(k, "some")
		}
	}
	text := new(strings.Builder)
	res.Header.Write(text)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintln(res.StatusCode, text, changingID.ReplaceAllString(string(body), `"id":N`))
}

// fastRequests returns the number of requests answered on the fast path.
func fastRequests(t *testing.T, debug string) (n int) {
	t.Helper()
	_, text := getText(t, "http://"+debug+"/metrics")
	if _, err := fmt.Sscanf(text[strings.Index(text, "\nparley_http_fast_path_requests_total ")+1:],
		"parley_http_fast_path_requests_total %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
