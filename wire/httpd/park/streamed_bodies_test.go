package park

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// streaming starts a server whose handler reads the bodies of requests to /stream itself.
func streaming(t *testing.T, kind string, cfg Config, read func(ctx *fasthttp.RequestCtx, body io.Reader)) *pollOwner {
	cfg.StreamsBody = func(_, target []byte) bool { return strings.HasPrefix(string(target), "/stream") }
	cfg.AnswerHeader = viaTest
	return serve(t, kind, cfg, func(_ *pollOwner, ctx *fasthttp.RequestCtx) {
		if body := ctx.RequestBodyStream(); body != nil {
			read(ctx, body)
			return
		}
		ctx.SetBodyString("hello " + string(ctx.Path()))
	})
}

func TestStreamedBody(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		first, seen := make(chan string), 0
		o := streaming(t, kind, Config{MaxBody: 1 << 20, MaxBodies: 1}, func(ctx *fasthttp.RequestCtx, body io.Reader) {
			b := make([]byte, 8<<10) // fasthttp reads this much before it calls the handler
			io.ReadFull(body, b)
			if string(ctx.Path()) == "/stream/slow" {
				first <- string(b[:5])
			}
			n, err := io.Copy(io.Discard, body)
			seen = int(n) + len(b)
			ctx.SetBodyString(fmt.Sprint(seen, " ", err))
		})
		c := o.dial()
		c.write("POST /stream/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nfirst%s",
			strings.Repeat("x", 20_000))
		if got := <-first; got != "first" { // before most of the body was sent
			t.Fatal(got)
		}
		c.write("%s", strings.Repeat("x", 100_000-20_005))
		c.expectBody("100000 <nil>")
		c.write("POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n%s\r\n0\r\n\r\nGET "+
			"/next HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", 20_000))
		c.expectBody("20000 <nil>")
		c.expectBody("hello /next")
		if st := o.Stats(); st.Streams != 0 || st.Bodies != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// The unread rest of a body is not taken for a request.
func TestStreamLeftUnread(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		o := streaming(t, kind, Config{MaxBody: 1 << 20}, func(ctx *fasthttp.RequestCtx, body io.Reader) {
			io.ReadFull(body, make([]byte, 10))
			ctx.SetBodyString("enough")
		})
		const inner = "GET /inner HTTP/1.1\r\nHost: x\r\n\r\n"
		small := strings.Repeat("x", 10) + inner
		c := o.dial()
		c.write("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%sGET /next HTTP/1.1\r\nHost: x\r\n"+
			"\r\n", len(small), small)
		c.expectBody("enough")
		c.expectBody("hello /next") // bytes that had arrived are discarded, and the connection stays open
		large := strings.Repeat("x", 10) + strings.Repeat(inner, 20_000)
		c = o.dial()
		c.write("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(large), large[:100_000])
		if a := c.readAnswer(); a.body != "enough" || !a.Close {
			t.Errorf("%v, close %v", a.body, a.Close)
		}
		c.expectClosed()
	})
}

func TestStreamFaults(t *testing.T) {
	onEachKind(t, func(t *testing.T, kind string) {
		ends := make(chan error, 10)
		start := func(readTimeout time.Duration) *pollOwner {
			return streaming(t, kind, Config{MaxBody: 50_000, MaxStreams: 1, ReadTimeout: readTimeout,
				MinRate: 1 << 20, Sweep: 20 * time.Millisecond}, func(ctx *fasthttp.RequestCtx, body io.Reader) {
				_, err := io.Copy(io.Discard, body)
				ends <- err
				ctx.SetBodyString("read")
			})
		}
		o, impatient := start(testTimeout), start(500*time.Millisecond)
		c := o.dial()
		c.write("POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n%s\r\n",
			strings.Repeat("x", 20_000))
		waitUntil(t, "the stream to be counted", func() bool { return o.Stats().Streams == 1 })
		other := o.dial()
		other.write("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n")
		other.expectRefusal(503, "")
		c.write("4e20\r\n%s\r\n4e20\r\n", strings.Repeat("x", 20_000))
		c.expectRefusal(413, "BAD_REQUEST")
		if err := <-ends; err == nil {
			t.Error("a body above the limit ended without error")
		}
		c = impatient.dial()
		c.write("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", strings.Repeat("x", 20_000))
		c.expectRefusal(408, "BAD_REQUEST") // the rest never arrives
		if err := <-ends; err == nil {
			t.Error("a body that never arrived ended without error")
		}
		c = o.dial()
		c.write("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n%s", strings.Repeat("x", 20_000))
		waitUntil(t, "the stream to be counted", func() bool { return o.Stats().Streams == 1 })
		c.Close()
		if err := <-ends; err == nil {
			t.Error("a body whose client left ended without error")
		}
		waitUntil(t, "the stream to end", func() bool { return o.Stats().Streams == 0 })
	})
}
