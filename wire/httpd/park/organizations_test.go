package park

import (
	"io"
	"testing"

	"github.com/valyala/fasthttp"
)

// Each of several organizations has half of the requests, the bytes of bodies and the uploads. A request beyond that is
// refused, and one of another organization is served. Requests that have ended count no more.
func TestOrganizationHasHalf(t *testing.T) {
	const (
		plain  = "GET / HTTP/1.1\r\nHost: %s\r\n\r\n"
		body   = "POST /echo HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\nx"
		upload = "POST /stream HTTP/1.1\r\nHost: %s\r\nContent-Length: 20000\r\n\r\nx"
	)
	byHost := func(host []byte) string { return string(host) }
	for _, several := range []bool{true, false} {
		for name, x := range map[string]struct {
			request string
			config  Config
		}{
			"requests": {plain, Config{MaxActive: 2}},
			"bodies":   {body, Config{MaxBody: 1000, MaxBodies: 2000}},
			"uploads":  {upload, Config{MaxBody: 50_000, MaxStreams: 2}},
		} {
			entered, let := make(chan bool, 9), make(chan bool)
			cfg := x.config
			cfg.AnswerHeader, cfg.Organization, cfg.Several = viaTest, byHost, func() bool { return several }
			wait := func(ctx *fasthttp.RequestCtx) {
				entered <- true
				<-let
				ctx.WriteString("ok")
			}
			var o *pollOwner
			if name == "uploads" {
				o = streaming(t, "goroutine", cfg, func(ctx *fasthttp.RequestCtx, _ io.Reader) { wait(ctx) })
			} else {
				o = serve(t, "goroutine", cfg, func(_ *pollOwner, ctx *fasthttp.RequestCtx) { wait(ctx) })
			}
			count := func() int64 {
				s := o.Shares()
				return s.Requests.Used("a") + s.Requests.Used("b")
			}
			first, second, other := o.dial(), o.dial(), o.dial()
			first.write(x.request, "a")
			waitUntil(t, "the first request to be counted", func() bool { return count() == 1 })
			second.write(x.request, "a")
			if several {
				second.expectRefusal(503, "")
				other.write(x.request, "b")
				waitUntil(t, "the request of another organization to be counted", func() bool { return count() == 2 })
			} else {
				waitUntil(t, "the only organization to use all", func() bool { return count() == 2 })
				other.write(x.request, "b")
				other.expectRefusal(503, "")
			}
			close(let)
			first.Close()
			second.Close()
			other.Close()
			waitUntil(t, "the requests to end", func() bool {
				s := o.Shares()
				return count() == 0 && s.Bodies.Used("a")+s.Uploads.Used("a") == 0
			})
		}
	}
}

// Likewise the slow requests, which wait for their senders.
func TestOrganizationHasHalfOfSlowRequests(t *testing.T) {
	if !canEvent {
		t.Skip("without epoll slow clients count as active")
	}
	o := serve(t, "epoll", Config{MaxSlow: 2, AnswerHeader: viaTest, Several: func() bool { return true },
		Organization: func(host []byte) string { return string(host) }})
	first, second, other := o.dial(), o.dial(), o.dial()
	const slow = "POST /echo HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\na"
	first.write(slow, "a")
	waitUntil(t, "a slow sender", func() bool { return o.Stats().Slow == 1 })
	second.write(slow, "a")
	second.expectRefusal(503, "")
	other.write(slow, "b")
	waitUntil(t, "the slow sender of another organization", func() bool { return o.Stats().Slow == 2 })
	for _, c := range []*client{first, other} {
		c.write("a")
		c.expectBody("aa")
	}
	if s := o.Shares().Slow; s.Used("a") != 0 || s.Used("b") != 0 {
		t.Error("a request that has ended counts as slow")
	}
}
