package park

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func TestManyPolls(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		for i := range 500 {
			c.get("/poll")
			p := o.nextPoll()
			o.mustAnswer(p, fmt.Sprint("round ", i))
			if p.Answer(200, []byte("twice")) {
				t.Fatal("a second Answer succeeded")
			}
			c.expectBody(fmt.Sprint("round ", i))
			switch i % 3 {
			case 0:
				c.get("/other")
				c.expectBody("hello /other")
			case 1:
				c.get("/now")
				c.expectBody("now")
			}
		}
		waitUntil(t, "everything to be counted as answered", func() bool {
			st := o.Stats()
			return st.Parked == 0 && st.Parks == st.Answers && st.Open == 1
		})
	})
}

func TestStaleAnswer(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		c.get("/poll")
		old := o.nextPoll()
		o.mustAnswer(old, "first")
		c.expectBody("first")
		c.get("/poll")
		p := o.nextPoll()
		if old.Answer(200, []byte("stale")) {
			t.Fatal("an old Parked answered a later request")
		}
		o.mustAnswer(p, "second")
		c.expectBody("second")
	})
}

func TestClientLeaves(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		c.get("/poll")
		p := o.nextPoll()
		c.Close()
		receive(t, o.goneCalls, "gone")
		if p.Answer(200, []byte("x")) {
			t.Fatal("Answer succeeded after gone")
		}
		waitUntil(t, "the connection to be closed", func() bool { return o.Stats().Open == 0 })
		if st := o.Stats(); st.Gone != 1 || st.Parked != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestClientResets(t *testing.T) {
	o := serve(t, "epoll", Config{})
	c := o.dial()
	c.get("/poll")
	o.nextPoll()
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
	receive(t, o.goneCalls, "gone")
}

// TestLeavingAndAnswering races the two: exactly one of them may win.
func TestLeavingAndAnswering(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		won := 0
		const rounds = 200
		for range rounds {
			c := o.dial()
			c.get("/poll")
			p := o.nextPoll()
			go c.Close()
			if p.Answer(200, []byte("x")) {
				won++
			}
		}
		waitUntil(t, "all to be closed", func() bool { return o.Stats().Open == 0 })
		st := o.Stats()
		if st.Answers != int64(won) || st.Parked != 0 || st.Gone+st.Answers > rounds {
			t.Errorf("%d won: %+v", won, st)
		}
		waitUntil(t, "gone calls", func() bool { return int64(len(o.goneCalls)) == st.Gone })
	})
}

func TestHalfClose(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		type closer interface{ CloseWrite() error }
		o := serve(t, kind, Config{})
		c := o.dial()
		c.get("/other") // an ordinary request is still answered
		c.Conn.(closer).CloseWrite()
		c.expectBody("hello /other")
		c.expectClosed()

		c = o.dial()
		c.get("/now") // so is a parked one if its answer is there at once
		c.Conn.(closer).CloseWrite()
		c.expectBody("now")

		c = o.dial()
		c.get("/poll") // otherwise a parked request is dropped
		o.nextPoll()
		c.Conn.(closer).CloseWrite()
		receive(t, o.goneCalls, "gone")
		c.expectClosed()
	})
}

func TestPipelining(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		c.write("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /poll HTTP/1.1\r\nHost: x\r\n\r\n" +
			"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbodyGET /now HTTP/1.1\r\nHost: x\r\n\r\n" +
			"GET /poll HTTP/1.1\r\nHost: x\r\n\r\n")
		c.expectBody("hello /a")
		o.mustAnswer(o.nextPoll(), "one")
		c.expectBody("one")
		c.expectBody("body")
		c.expectBody("now")
		p := o.nextPoll()
		c.write("GET /b HTTP/1.1\r\nHo") // more arrives while parked, but not a complete request
		o.mustAnswer(p, "two")
		c.expectBody("two")
		c.write("st: x\r\n\r\n")
		c.expectBody("hello /b")
	})
}

func TestSplitRequests(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		for _, b := range []byte("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello") {
			c.Write([]byte{b})
		}
		c.expectBody("hello")
		for _, b := range []byte("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n" +
			"abc\r\n00a\r\n0123456789\r\n0\r\n\r\n") {
			c.Write([]byte{b})
		}
		c.expectBody("abc0123456789")
		big := strings.Repeat("x", 900_000)
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%sGET /n HTTP/1.1\r\nHost: x\r\n\r\n",
			len(big), big)
		c.expectBody(big)
		c.expectBody("hello /n")
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\nGET /n "+
			"HTTP/1.1\r\nHost: x\r\n\r\n", len(big), big)
		c.expectBody(big)
		c.expectBody("hello /n")
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
		if line, err := c.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatal(line, err)
		}
		c.r.ReadString('\n')
		c.write("ok")
		c.expectBody("ok")
	})
}

func TestClosingPolls(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		for _, test := range []struct{ head, connection string }{
			{"HTTP/1.1\r\nHost: x\r\nConnection: close", "close"},
			{"HTTP/1.1\r\nHost: x\r\nConnection: x, CLOSE", "close"},
			{"HTTP/1.0\r\nHost: x", "close"},
			{"HTTP/1.0\r\nHost: x\r\nConnection: keep-alive", "keep-alive"},
		} {
			c := o.dial()
			for _, path := range []string{"/poll", "/now"} {
				if path == "/now" && test.connection == "close" {
					c = o.dial()
				}
				c.write("GET %s %s\r\n\r\n", path, test.head)
				if path == "/poll" {
					o.mustAnswer(o.nextPoll(), "now")
				}
				a := c.readAnswer()
				if a.body != "now" || a.Header.Get("Connection") != test.connection &&
					!(a.Close && test.connection == "close") {
					t.Errorf("%q: %q %v", test.head, a.body, a.Header)
				}
				if test.connection == "close" {
					c.expectClosed()
				}
			}
		}
	})
}

func TestParkedAnswerHeaders(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{
			Name:         "Parley",
			AnswerHeader: []byte("Access-Control-Allow-Origin: *\r\n"),
		}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			ctx.Response.Header.Set("X-Ratelimit-Remaining", "17")
			if string(ctx.Path()) == "/poll" {
				o.polls <- o.Park(ctx, nil)
				return
			}
			ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
			ctx.WriteString("{}")
		})
		c := o.dial()
		c.get("/")
		plain := c.readAnswer()
		c.get("/poll")
		o.nextPoll().Answer(200, []byte("{"), nil, []byte("}"))
		parked := c.readAnswer()
		for _, a := range []*answer{plain, parked} {
			if _, err := http.ParseTime(a.Header.Get("Date")); err != nil {
				t.Error(err)
			}
			a.Header.Set("Date", "the same but for a second")
		}
		if fmt.Sprint(plain.Header) != fmt.Sprint(parked.Header) || plain.body != parked.body {
			t.Errorf("ordinary %v %q\nparked   %v %q", plain.Header, plain.body, parked.Header, parked.body)
		}
		c.get("/poll")
		o.nextPoll().Answer(400, []byte("{}"))
		if a := c.readAnswer(); a.Status != "400 Bad Request" {
			t.Error(a.Status)
		}
	})
}

// TestStuckReader checks that answers to a client that reads nothing do not delay their owner, and end with the
// connection.
func TestStuckReader(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		t.Parallel()
		o := serve(t, kind, Config{WriteTimeout: time.Second, MinRate: 1 << 30})
		stuck, other := o.dial(), o.dial()
		big := bytes.Repeat([]byte("x"), 16<<20)
		stuck.get("/poll")
		o.nextPoll().Answer(200, big)
		if st := o.Stats(); st.Pending == 0 {
			t.Errorf("nothing is pending: %+v", st)
		}
		other.get("/poll")
		o.mustAnswer(o.nextPoll(), "at once")
		other.expectBody("at once")
		waitUntil(t, "the stuck connection to be dropped",
			func() bool { st := o.Stats(); return st.WriteTimeouts == 1 && st.Open == 1 })
		if st := o.Stats(); st.Pending != 0 {
			t.Errorf("still pending: %+v", st)
		}
	})
}

// TestSlowReader checks that a big answer arrives complete at a client that reads late, and that the connection
// stays usable.
func TestSlowReader(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		big := strings.Repeat("0123456789abcdef", 1<<20)
		c.get("/poll")
		o.mustAnswer(o.nextPoll(), big)
		c.get("/next") // pipelined behind an answer that is still being written
		c.expectBody(big)
		c.expectBody("hello /next")
		c.write("GET /poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		o.mustAnswer(o.nextPoll(), big)
		c.expectBody(big)
		c.expectClosed()
	})
}

func TestPendingLimit(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxPending: 1 << 20})
		c := o.dial()
		c.get("/poll")
		if o.nextPoll().Answer(200, make([]byte, 32<<20)) {
			t.Error("an answer beyond MaxPending was accepted")
		}
		waitUntil(t, "the connection to be dropped", func() bool { return o.Stats().Open == 0 })
		if st := o.Stats(); st.Pending != 0 || st.Refused["pending"] != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// Clients of one caller that do not read their answers do not use up the room of others: each caller has a share.
func TestPendingLimitOfCaller(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxPending: 1 << 30, MaxPendingPerCaller: 1 << 20})
		poll := func(caller string) bool {
			c := o.dial()
			c.get("/poll?" + caller)
			return o.nextPoll().Answer(200, make([]byte, 32<<20))
		}
		if !poll("ann") {
			t.Error("the only answer of a caller was refused")
		}
		if poll("ann") {
			t.Error("a second answer beyond the share of the caller was accepted")
		}
		if !poll("bo") {
			t.Error("another caller was refused")
		}
		if st := o.Stats(); st.Refused["pending"] != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// Clients of one organization that do not read their answers leave half of the memory to the other organizations.
func TestPendingLimitOfOrganization(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxPending: 1 << 30, MaxPendingPerCaller: 1 << 30,
			MaxPendingPerOrganization: 1 << 20})
		poll := func(caller string) bool {
			c := o.dial()
			c.get("/poll?" + caller)
			return o.nextPoll().Answer(200, make([]byte, 32<<20))
		}
		if !poll("one/ann") {
			t.Error("the only answer of an organization was refused")
		}
		if poll("one/bo") {
			t.Error("a second answer beyond the share of the organization was accepted")
		}
		if !poll("two/ann") {
			t.Error("another organization was refused")
		}
	})
}

func TestHead(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{})
		c := o.dial()
		for range 2 {
			c.write("HEAD /poll HTTP/1.1\r\nHost: x\r\n\r\n")
			o.mustAnswer(o.nextPoll(), "not sent to HEAD")
			resp, err := http.ReadResponse(c.r, &http.Request{Method: "HEAD"})
			if err != nil || resp.ContentLength != 16 {
				t.Fatal(err, resp)
			}
		}
		c.get("/")
		c.expectBody("hello /")
	})
}

func TestPanic(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/parked" {
				o.Park(ctx, func() { t.Error("gone called") })
			}
			panic("a test's")
		})
		for _, path := range []string{"/", "/parked"} {
			c := o.dial()
			c.get(path)
			if a := c.readAnswer(); a.StatusCode != 500 ||
				a.body != `{"result":"error","msg":"Internal server error"}`+"\n" {
				t.Error(a.StatusCode, a.body)
			}
			c.expectClosed()
		}
		if st := o.Stats(); st.Panics != 2 || st.Parked != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestAddresses(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{}, func(_ *pollOwner, ctx *fasthttp.RequestCtx) {
			fmt.Fprint(ctx, ctx.RemoteAddr(), " ", ctx.LocalAddr(), " ", ctx.IsTLS())
		})
		c := o.dial()
		c.get("/")
		c.expectBody(fmt.Sprint(c.LocalAddr(), " ", c.RemoteAddr(), " ", strings.HasPrefix(kind, "tls")))
	})
}
