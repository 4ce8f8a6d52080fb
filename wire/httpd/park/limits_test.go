package park

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// refused expects one of the server's own error answers and the end of the connection.
func (c *client) refused(status int, code string) {
	c.t.Helper()
	a := c.hear()
	var e struct{ Result, Msg, Code string }
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.StatusCode != status || e.Result != "error" || e.Msg == "" || e.Code != code {
		c.t.Fatalf("answer %d %q, want %d %s", a.StatusCode, a.body, status, code)
	}
	if a.Header.Get("Content-Type") != "application/json" || !a.Close || a.Header.Get("Via") != "test" {
		c.t.Errorf("headers %v", a.Header)
	}
	c.ended()
}

var viaTest = []byte("Via: test\r\n")

func TestBodyLimit(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		handled := make(chan string, 10)
		o := serve(t, kind, Config{
			MaxBody:      1000,
			ParkedHeader: viaTest,
			BodyLimit: func(method, target []byte) int {
				if string(method) == "POST" && string(target) == "/upload?x" {
					return 1 << 20
				}
				return 1000
			},
		}, func(_ *owner, ctx *fasthttp.RequestCtx) { handled <- fmt.Sprint(len(ctx.PostBody())) })
		for _, head := range []string{
			"Content-Length: 1001\r\n\r\n", // and not a byte of it is sent
			"Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n3e9\r\n",
			"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n3e8\r\n",
			"Content-Length: 5000000\r\n\r\n" + strings.Repeat("x", 100_000), // sent unasked; the answer survives it
		} {
			c := o.dial()
			c.say("POST / HTTP/1.1\r\nHost: x\r\n%s", head)
			c.refused(413, "BAD_REQUEST")
		}
		c := o.dial()
		c.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n%s", strings.Repeat("x", 1000))
		c.hear()
		c.say("POST /upload?x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("x", 1_000_000))
		c.hear()
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
		o := serve(t, kind, Config{MaxHeader: 4000, ParkedHeader: viaTest})
		c := o.dial()
		const frame = len("GET / HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n")
		c.say("GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", strings.Repeat("a", 4000-frame))
		c.expect("hello /")
		c.say("GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", strings.Repeat("a", 4001-frame))
		c.refused(431, "BAD_REQUEST")
		c = o.dial()
		c.say("GET /%s", strings.Repeat("a", 8000)) // no end in sight
		c.refused(431, "BAD_REQUEST")
	})
}

func TestIdleTimeout(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{IdleTimeout: 50 * time.Millisecond})
		parked := o.dial()
		parked.get("/poll")
		p := o.poll()
		c := o.dial()
		c.get("/")
		c.expect("hello /")
		c.ended()
		until(t, "it to be counted out", func() bool { return o.Stats().Open == 1 })
		o.answer(p, "parked connections are not idle") // ended() has waited longer than the timeout
		parked.expect("parked connections are not idle")
		parked.ended()
	})
}

func TestSlowSenders(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{ReadTimeout: 300 * time.Millisecond, MinRate: 1 << 20, ParkedHeader: viaTest})
		c := o.dial() // says nothing, ever
		if kind != "tls" {
			c.ended()
		}
		c = o.dial()
		c.get("/")
		c.expect("hello /")
		drip := time.NewTicker(20 * time.Millisecond)
		defer drip.Stop()
		for n := 0; ; n++ { // a byte now and then does not buy time
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[n:n+1]); err != nil || o.Stats().Refused["slow"] == 1 {
				break
			}
			if n == 60 {
				t.Fatal("a dripping head was suffered")
			}
			<-drip.C
		}
		c.refused(408, "BAD_REQUEST")

		c = o.dial()
		c.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		for n := 0; ; n++ {
			if _, err := io.WriteString(c, "x"); err != nil || o.Stats().Refused["slow"] == 2 {
				break
			}
			if n == 60 {
				t.Fatal("a dripping body was suffered")
			}
			<-drip.C
		}
		c.refused(408, "BAD_REQUEST")
		until(t, "no slow clients", func() bool { st := o.Stats(); return st.Slow == 0 && st.Active == 0 })
	})
}

// TestSlowButSteady: a body that keeps up the least rate may take longer than the base time.
func TestSlowButSteady(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{ReadTimeout: 250 * time.Millisecond, MinRate: 10_000})
		c := o.dial()
		c.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n")
		tick := time.NewTicker(20 * time.Millisecond) // 50 kB/s
		defer tick.Stop()
		for range 30 {
			c.say("%s", strings.Repeat("x", 1000))
			<-tick.C
		}
		c.expect(strings.Repeat("x", 30_000))
	})
}

// TestStalledBody: what came fast buys no long silence, neither for a body that is kept nor for one its handler reads.
func TestStalledBody(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		for _, path := range []string{"/echo", "/stream"} {
			o := streaming(t, kind, Config{ReadTimeout: 50 * time.Millisecond, MinRate: 100, Sweep: 20 * time.Millisecond}, func(ctx *fasthttp.RequestCtx, body io.Reader) {
				io.Copy(io.Discard, body)
			})
			c := o.dial()
			c.say("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", path, strings.Repeat("x", 20_000)) // by the rate alone, 200 s
			c.refused(408, "BAD_REQUEST")
		}
	})
}

// TestStuckDownload: an ordinary answer nobody reads ends too.
func TestStuckDownload(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{WriteTimeout: 100 * time.Millisecond, MinRate: 1 << 30}, func(_ *owner, ctx *fasthttp.RequestCtx) {
			ctx.SetBody(make([]byte, 32<<20))
		})
		c := o.dial()
		c.get("/")
		until(t, "the connection to be dropped", func() bool { st := o.Stats(); return st.Open == 0 && st.Stuck == 1 && st.Active == 0 })
	})
}

func TestMaxConns(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{MaxConns: 3, ParkedHeader: viaTest})
			var in []*client
			for range 3 {
				c := o.dial()
				c.get("/")
				c.expect("hello /")
				in = append(in, c)
			}
			c := o.dial()
			c.get("/")
			c.refused(503, "")
			c.Close()
			in[0].Close()
			until(t, "room", func() bool { return o.Stats().Open == 2 })
			c = o.dial()
			c.get("/")
			c.expect("hello /")
			in[1].get("/")
			in[1].expect("hello /")
		})
	}
}

func TestMaxConnsPerIP(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{MaxConnsPerIP: 1, ParkedHeader: viaTest})
			first := o.dial()
			first.get("/")
			first.expect("hello /")
			c := o.dial()
			c.refused(429, "RATE_LIMIT_HIT")
			c.Close()
			until(t, "the refused to be gone", func() bool { return o.Stats().Open == 1 })
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
			until(t, "room", func() bool { return o.Stats().Open == 0 })
			c = o.dial()
			c.get("/")
			c.expect("hello /")
		})
	}
}

func TestHousehold(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3": "10.1.2.3", "::ffff:10.1.2.3": "10.1.2.3", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::"} {
		if got := Household(mustAddr(in)).String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestMaxActive(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool, 9), make(chan bool)
		o := serve(t, kind, Config{MaxActive: 2, ParkedHeader: viaTest}, func(_ *owner, ctx *fasthttp.RequestCtx) {
			entered <- true
			<-let
			ctx.WriteString("ok")
		})
		a, b, c := o.dial(), o.dial(), o.dial()
		a.get("/")
		b.get("/")
		wait(t, entered, "a handler")
		wait(t, entered, "a handler")
		c.get("/")
		c.refused(503, "")
		close(let)
		a.expect("ok")
		b.expect("ok")
	})
}

func TestMaxSlow(t *testing.T) {
	if !canEvent {
		t.Skip("without epoll slow clients count as active")
	}
	o := serve(t, "epoll", Config{MaxSlow: 1, ParkedHeader: viaTest})
	a, b := o.dial(), o.dial()
	a.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
	until(t, "a slow sender", func() bool { return o.Stats().Slow == 1 })
	b.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nb")
	b.refused(503, "")
	a.say("a")
	a.expect("aa")
}

func TestShutdown(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool), make(chan bool)
		drained := make(chan bool, 1)
		o := serve(t, kind, Config{OnDrain: func() { drained <- true }}, func(o *owner, ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/busy" {
				entered <- true
				<-let
			}
			o.handle(ctx)
		})
		idle, parked, busy := o.dial(), o.dial(), o.dial()
		idle.get("/")
		idle.expect("hello /")
		parked.get("/poll")
		p := o.poll()
		busy.get("/busy")
		wait(t, entered, "the handler")

		done := make(chan error)
		go func() { done <- o.Shutdown(patiently(t)) }()
		wait(t, drained, "OnDrain")
		if err := wait(t, o.served, "Serve to return"); err != nil {
			t.Error("Serve:", err)
		}
		idle.ended()
		if _, err := net.Dial("tcp", o.ln.Addr().String()); err == nil {
			t.Error("still listening")
		}
		o.answer(p, "bye")
		if a := parked.hear(); a.body != "bye" || !a.Close {
			t.Errorf("%q, close %v", a.body, a.Close)
		}
		parked.ended()
		close(let)
		if a := busy.hear(); a.body != "hello /busy" {
			t.Errorf("%q", a.body)
		}
		busy.ended()
		if err := wait(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
		if len(o.gone) > 0 {
			t.Error("gone was called for an answered poll")
		}
	})
}

// TestShutdownDrops: without an owner that answers, parked requests are given up; what parks late, too.
func TestShutdownDrops(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool), make(chan bool)
		o := serve(t, kind, Config{}, func(o *owner, ctx *fasthttp.RequestCtx) {
			if string(ctx.QueryArgs().Peek("late")) != "" {
				entered <- true
				<-let
			}
			o.handle(ctx)
		})
		early, late := o.dial(), o.dial()
		early.get("/poll")
		p := o.poll()
		late.get("/poll?late=1")
		wait(t, entered, "the handler")
		done := make(chan error)
		go func() { done <- o.Shutdown(patiently(t)) }()
		wait(t, o.gone, "gone")
		if p.Answer(200, []byte("x")) {
			t.Error("answered after gone")
		}
		early.ended()
		close(let)
		wait(t, o.gone, "gone of the late one")
		late.ended()
		if err := wait(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownGivesUp(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let := make(chan bool), make(chan bool)
		o := serve(t, kind, Config{OnDrain: func() {}}, func(o *owner, ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/busy" {
				entered <- true
				<-let
			}
			o.handle(ctx)
		})
		parked, half, busy := o.dial(), o.dial(), o.dial()
		parked.get("/poll")
		o.poll()
		half.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
		busy.get("/busy")
		wait(t, entered, "the handler")
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		go func() {
			<-ctx.Done()
			busy.ended()
			close(let)
		}()
		if err := o.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wait(t, o.gone, "gone")
		parked.ended()
		until(t, "all to be closed", func() bool { return o.Stats().Open == 0 })
	})
}

func TestMaxBodies(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxBody: 1000, MaxBodies: 2500, ParkedHeader: viaTest})
		a, b := o.dial(), o.dial()
		a.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
		b.say("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n")
		until(t, "two bodies under way", func() bool { return o.Stats().Bodies == 2000 })
		c := o.dial()
		c.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		c.refused(503, "")
		c = o.dial()
		c.get("/") // what has no body is served still
		c.expect("hello /")
		b.say("b\r\n0\r\n\r\n")
		b.expect("b")
		until(t, "room", func() bool { return o.Stats().Bodies == 1000 })
		c.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n%s", strings.Repeat("x", 1000))
		c.expect(strings.Repeat("x", 1000))
		until(t, "room again", func() bool { return o.Stats().Bodies == 1000 }) // it is counted until its answer is out
		// A multipart body is there twice when it is taken apart.
		b.say("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: Multipart/form-data; boundary=b\r\nContent-Length: 700\r\n\r\nx")
		until(t, "a body in parts under way", func() bool { return o.Stats().Bodies == 1000+2*700 })
	})
}

// TestParkedTooLate: what parks after the owner was told to answer everything is given up.
func TestParkedTooLate(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		entered, let, drained := make(chan bool), make(chan bool), make(chan bool)
		o := serve(t, kind, Config{OnDrain: func() { close(drained) }}, func(o *owner, ctx *fasthttp.RequestCtx) {
			entered <- true
			<-let
			o.handle(ctx)
		})
		c := o.dial()
		c.get("/poll")
		wait(t, entered, "the handler")
		done := make(chan error)
		go func() { done <- o.Shutdown(patiently(t)) }()
		wait(t, drained, "OnDrain")
		close(let)
		wait(t, o.gone, "gone")
		c.ended()
		if err := wait(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}
