package park

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// expectRefusal expects an error answer of the connection layer and the end of the connection.
func (c *client) expectRefusal(status int, code string) {
	c.t.Helper()
	a := c.readAnswer()
	var e struct{ Result, Msg, Code string }
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.StatusCode != status || e.Result != "error" ||
		e.Msg == "" || e.Code != code {
		c.t.Fatalf("answer %d %q, want %d %s", a.StatusCode, a.body, status, code)
	}
	if a.Header.Get("Content-Type") != "application/json" || !a.Close || a.Header.Get("Via") != "test" {
		c.t.Errorf("headers %v", a.Header)
	}
	c.expectClosed()
}

var viaTest = []byte("Via: test\r\n")

func TestBodyLimit(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		handled := make(chan string, 10)
		o := serve(t, kind, Config{
			MaxBody:      1000,
			AnswerHeader: viaTest,
			BodyLimit: func(method, target []byte) int {
				if string(method) == "POST" && string(target) == "/upload?x" {
					return 1 << 20
				}
				return 1000
			},
		}, func(_ *pollOwner, ctx *fasthttp.RequestCtx) { handled <- fmt.Sprint(len(ctx.PostBody())) })
		for _, head := range []string{
			"Content-Length: 1001\r\n\r\n", // not a byte of the body is sent
			"Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n3e9\r\n",
			"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n3e8\r\n",
			// sent without being asked; the client still gets the answer
			"Content-Length: 5000000\r\n\r\n" + strings.Repeat("x", 100_000),
		} {
			c := o.dial()
			c.write("POST / HTTP/1.1\r\nHost: x\r\n%s", head)
			c.expectRefusal(413, "BAD_REQUEST")
		}
		c := o.dial()
		c.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n%s", strings.Repeat("x", 1000))
		c.readAnswer()
		c.write("POST /upload?x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n%s",
			strings.Repeat("x", 1_000_000))
		c.readAnswer()
		if a, b := <-handled, <-handled; a != "1000" || b != "1000000" || len(handled) > 0 {
			t.Error("handled", a, b)
		}
		if n := o.Stats().Refused["body_size"]; n != 5 {
			t.Error("counted", n)
		}
	})
}

func TestHeaderLimit(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxHeader: 4000, AnswerHeader: viaTest})
		c := o.dial()
		const frame = len("GET / HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n")
		c.write("GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", strings.Repeat("a", 4000-frame))
		c.expectBody("hello /")
		c.write("GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", strings.Repeat("a", 4001-frame))
		c.expectRefusal(431, "BAD_REQUEST")
		c = o.dial()
		c.write("GET /%s", strings.Repeat("a", 8000)) // the head never ends
		c.expectRefusal(431, "BAD_REQUEST")
	})
}

func TestIdleTimeout(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{IdleTimeout: 50 * time.Millisecond})
		parked := o.dial()
		parked.get("/poll")
		p := o.nextPoll()
		c := o.dial()
		c.get("/")
		c.expectBody("hello /")
		c.expectClosed()
		waitUntil(t, "the connection to be counted as closed", func() bool { return o.Stats().Open == 1 })
		o.mustAnswer(p, "parked connections are not idle") // expectClosed has waited longer than the timeout
		parked.expectBody("parked connections are not idle")
		parked.expectClosed()
	})
}

func TestSlowSenders(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{ReadTimeout: 300 * time.Millisecond, MinRate: 1 << 20, AnswerHeader: viaTest})
		c := o.dial() // never sends anything
		if !strings.HasPrefix(kind, "tls") {
			c.expectClosed()
		}
		c = o.dial()
		c.get("/")
		c.expectBody("hello /")
		const each = 20 * time.Millisecond
		const drips = int(testTimeout / each)
		drip := time.NewTicker(each)
		defer drip.Stop()
		head := "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", drips)
		for n := 0; ; n++ { // a byte from time to time does not extend the time
			if _, err := io.WriteString(c, head[n:n+1]); err != nil || o.Stats().Refused["slow"] == 1 {
				break
			}
			if n == len(head)-1 {
				t.Fatal("a head sent byte by byte was not refused")
			}
			<-drip.C
		}
		c.expectRefusal(408, "BAD_REQUEST")

		c = o.dial()
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 2*drips)
		for n := 0; ; n++ {
			if _, err := io.WriteString(c, "x"); err != nil || o.Stats().Refused["slow"] == 2 {
				break
			}
			if n == drips {
				t.Fatal("a body sent byte by byte was not refused")
			}
			<-drip.C
		}
		c.expectRefusal(408, "BAD_REQUEST")
		waitUntil(t, "no slow clients", func() bool { st := o.Stats(); return st.Slow == 0 && st.Active == 0 })
	})
}

// TestSlowButSteadyBody checks that a body at the minimum rate may take longer than the base time.
func TestSlowButSteadyBody(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{ReadTimeout: 250 * time.Millisecond, MinRate: 10_000})
		c := o.dial()
		// The first 5 kB allow half a second more, so that a pause of a busy machine does no harm.
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 35000\r\n\r\n%s", strings.Repeat("x", 5000))
		tick := time.NewTicker(20 * time.Millisecond) // 50 kB/s
		defer tick.Stop()
		for range 30 {
			c.write("%s", strings.Repeat("x", 1000))
			<-tick.C
		}
		c.expectBody(strings.Repeat("x", 35_000))
	})
}

// TestStalledBody checks that a fast beginning does not allow a long pause, for buffered and for streamed bodies.
func TestStalledBody(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		t.Parallel()
		var stalled []*client
		for _, path := range []string{"/echo", "/stream"} {
			o := streaming(t, kind, Config{ReadTimeout: 500 * time.Millisecond, MinRate: 100,
				Sweep: 20 * time.Millisecond}, func(ctx *fasthttp.RequestCtx, body io.Reader) {
				io.Copy(io.Discard, body)
			})
			c := o.dial()
			// the rate alone would allow 200 s
			c.write("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", path, strings.Repeat("x", 20_000))
			stalled = append(stalled, c)
		}
		for _, c := range stalled {
			c.expectRefusal(408, "BAD_REQUEST")
		}
	})
}

// TestStuckDownload checks that an ordinary answer ends, too, if its client reads nothing.
func TestStuckDownload(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{WriteTimeout: 100 * time.Millisecond, MinRate: 1 << 30},
			func(_ *pollOwner, ctx *fasthttp.RequestCtx) {
				ctx.SetBody(make([]byte, 32<<20))
			})
		c := o.dial()
		c.get("/")
		waitUntil(t, "the connection to be dropped", func() bool {
			st := o.Stats()
			return st.Open == 0 &&
				st.WriteTimeouts == 1 && st.Active == 0
		})
	})
}

func TestMaxConns(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{MaxConns: 3, AnswerHeader: viaTest})
			var in []*client
			for range 3 {
				c := o.dial()
				c.get("/")
				c.expectBody("hello /")
				in = append(in, c)
			}
			c := o.dial()
			c.get("/")
			c.expectRefusal(503, "")
			c.Close()
			in[0].Close()
			waitUntil(t, "a free place", func() bool { return o.Stats().Open == 2 })
			c = o.dial()
			c.get("/")
			c.expectBody("hello /")
			in[1].get("/")
			in[1].expectBody("hello /")
		})
	}
}

func TestMaxConnsPerIP(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{MaxConnsPerIP: 1, AnswerHeader: viaTest})
			first := o.dial()
			first.get("/")
			first.expectBody("hello /")
			c := o.dial()
			c.expectRefusal(429, "RATE_LIMIT_HIT")
			c.Close()
			waitUntil(t, "the refused connection to be closed", func() bool { return o.Stats().Open == 1 })
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			other, err := d.Dial("tcp", o.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			fmt.Fprintf(other, "GET / HTTP/1.0\r\n\r\n")
			if b, err := io.ReadAll(other); err != nil || !strings.HasSuffix(string(b), "hello /") {
				t.Errorf("%q %v", b, err)
			}
			first.Close()
			waitUntil(t, "a free place", func() bool { return o.Stats().Open == 0 })
			c = o.dial()
			c.get("/")
			c.expectBody("hello /")
		})
	}
}

// Addresses that are not limited, such as proxies, open as many connections as they like.
func TestUnlimitedAddresses(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{MaxConnsPerIP: 1, Unlimited: netip.Addr.IsLoopback, AnswerHeader: viaTest})
			for range 3 {
				c := o.dial()
				defer c.Close()
				c.get("/")
				c.expectBody("hello /")
			}
		})
	}
}

func TestClientNetwork(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3": "10.1.2.3", "::ffff:10.1.2.3": "10.1.2.3",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::"} {
		if got := ClientNetwork(mustAddr(in)).String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestMaxActive(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool, 9), make(chan bool)
		o := serve(t, kind, Config{MaxActive: 2, AnswerHeader: viaTest}, func(_ *pollOwner, ctx *fasthttp.RequestCtx) {
			entered <- true
			<-let
			ctx.WriteString("ok")
		})
		a, b, c := o.dial(), o.dial(), o.dial()
		a.get("/")
		b.get("/")
		receive(t, entered, "a handler")
		receive(t, entered, "a handler")
		c.get("/")
		c.expectRefusal(503, "")
		close(let)
		a.expectBody("ok")
		b.expectBody("ok")
	})
}

func TestMaxSlow(t *testing.T) {
	if !canEvent {
		t.Skip("without epoll slow clients count as active")
	}
	o := serve(t, "epoll", Config{MaxSlow: 1, AnswerHeader: viaTest})
	a, b := o.dial(), o.dial()
	a.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
	waitUntil(t, "a slow sender", func() bool { return o.Stats().Slow == 1 })
	b.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nb")
	b.expectRefusal(503, "")
	a.write("a")
	a.expectBody("aa")
}

func TestShutdown(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool), make(chan bool)
		drained := make(chan bool, 1)
		o := serve(t, kind, Config{OnDrain: func() { drained <- true }}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/busy" {
				entered <- true
				<-let
			}
			o.handle(ctx)
		})
		idle, parked, busy := o.dial(), o.dial(), o.dial()
		idle.get("/")
		idle.expectBody("hello /")
		parked.get("/poll")
		p := o.nextPoll()
		busy.get("/busy")
		receive(t, entered, "the handler")

		done := make(chan error)
		go func() { done <- o.Shutdown(timeoutContext(t)) }()
		receive(t, drained, "OnDrain")
		if err := receive(t, o.served, "Serve to return"); err != nil {
			t.Error("Serve:", err)
		}
		idle.expectClosed()
		if _, err := net.Dial("tcp", o.ln.Addr().String()); err == nil {
			t.Error("still listening")
		}
		o.mustAnswer(p, "bye")
		if a := parked.readAnswer(); a.body != "bye" || !a.Close {
			t.Errorf("%q, close %v", a.body, a.Close)
		}
		parked.expectClosed()
		close(let)
		if a := busy.readAnswer(); a.body != "hello /busy" {
			t.Errorf("%q", a.body)
		}
		busy.expectClosed()
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
		if len(o.goneCalls) > 0 {
			t.Error("gone was called for an answered poll")
		}
	})
}

// TestShutdownDrops checks that parked requests are dropped if their owner does not answer in a shutdown, also
// those that are parked during it.
func TestShutdownDrops(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool), make(chan bool)
		o := serve(t, kind, Config{}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			if string(ctx.QueryArgs().Peek("late")) != "" {
				entered <- true
				<-let
			}
			o.handle(ctx)
		})
		early, late := o.dial(), o.dial()
		early.get("/poll")
		p := o.nextPoll()
		late.get("/poll?late=1")
		receive(t, entered, "the handler")
		done := make(chan error)
		go func() { done <- o.Shutdown(timeoutContext(t)) }()
		receive(t, o.goneCalls, "gone")
		if p.Answer(200, []byte("x")) {
			t.Error("answered after gone")
		}
		early.expectClosed()
		close(let)
		receive(t, o.goneCalls, "gone of the late request")
		late.expectClosed()
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownTimeout(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool), make(chan bool)
		o := serve(t, kind, Config{OnDrain: func() {}}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/busy" {
				entered <- true
				<-let
			}
			o.handle(ctx)
		})
		parked, half, busy := o.dial(), o.dial(), o.dial()
		parked.get("/poll")
		o.nextPoll()
		half.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
		busy.get("/busy")
		receive(t, entered, "the handler")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		go func() {
			<-ctx.Done()
			busy.expectClosed()
			close(let)
		}()
		if err := o.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		receive(t, o.goneCalls, "gone")
		parked.expectClosed()
		waitUntil(t, "all to be closed", func() bool { return o.Stats().Open == 0 })
	})
}

func TestMaxBodies(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxBody: 1000, MaxBodies: 2500, AnswerHeader: viaTest})
		a, b := o.dial(), o.dial()
		a.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
		b.write("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n")
		waitUntil(t, "two bodies to be counted", func() bool { return o.Stats().Bodies == 2000 })
		c := o.dial()
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		c.expectRefusal(503, "")
		c = o.dial()
		c.get("/") // requests without a body are still served
		c.expectBody("hello /")
		b.write("b\r\n0\r\n\r\n")
		b.expectBody("b")
		waitUntil(t, "a free place", func() bool { return o.Stats().Bodies == 1000 })
		c.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n%s", strings.Repeat("x", 1000))
		c.expectBody(strings.Repeat("x", 1000))
		// it counts until its answer is sent
		waitUntil(t, "a free place again", func() bool { return o.Stats().Bodies == 1000 })
		// A multipart body counts twice, because its parts are copies.
		b.write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: Multipart/form-data; boundary=b\r\n" +
			"Content-Length: 700\r\n\r\nx")
		waitUntil(t, "a multipart body to be counted", func() bool { return o.Stats().Bodies == 1000+2*700 })
	})
}

// TestParkedAfterDrain checks that requests parked after OnDrain are dropped.
func TestParkedAfterDrain(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let, drained := make(chan bool), make(chan bool), make(chan bool)
		o := serve(t, kind, Config{OnDrain: func() { close(drained) }}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
			entered <- true
			<-let
			o.handle(ctx)
		})
		c := o.dial()
		c.get("/poll")
		receive(t, entered, "the handler")
		done := make(chan error)
		go func() { done <- o.Shutdown(timeoutContext(t)) }()
		receive(t, drained, "OnDrain")
		close(let)
		receive(t, o.goneCalls, "gone")
		c.expectClosed()
		if err := receive(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}
