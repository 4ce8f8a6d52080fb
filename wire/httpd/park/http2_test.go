package park

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// http2Kinds are the kinds of servers whose clients may choose HTTP/2.
var http2Kinds = []string{"tls", "tls-goroutine"}

// browser returns a client that chooses HTTP/2 if it can.
func (o *pollOwner) browser() *http.Client {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	o.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: testTimeout}
}

func (o *pollOwner) url(path string) string { return "https://" + o.ln.Addr().String() + path }

// do returns the protocol, the status and the body of an answer.
func (o *pollOwner) do(c *http.Client, method, path string, body io.Reader) (*http.Response, string) {
	o.t.Helper()
	q, err := http.NewRequest(method, o.url(path), body)
	if err != nil {
		o.t.Fatal(err)
	}
	res, err := c.Do(q)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return res, string(b)
}

func onHTTP2(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range http2Kinds {
		t.Run(kind, func(t *testing.T) { f(t, kind) })
	}
}

// Requests of all forms have the same answers as with HTTP/1.1.
func TestHTTP2AnswersLikeHTTP1(t *testing.T) {
	onHTTP2(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxHTTP2: 10, MaxBody: 5000, AnswerHeader: viaTest},
			func(o *pollOwner, ctx *fasthttp.RequestCtx) {
				switch string(ctx.Path()) {
				case "/pieces":
					ctx.SetBodyStream(io.MultiReader(strings.NewReader("one "), bytes.NewReader(make([]byte, 70_000)),
						strings.NewReader(" two")), -1)
				case "/unchanged":
					ctx.SetStatusCode(fasthttp.StatusNotModified)
				case "/tls":
					fmt.Fprint(ctx, ctx.IsTLS(), " ", string(ctx.Host()), " ", ctx.RemoteIP(), " ",
						string(ctx.Request.Header.Peek("X-Twice")))
				default:
					o.handle(ctx)
				}
			})
		old := &http.Client{Timeout: testTimeout, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		for _, x := range []struct {
			method, path string
			body         func() io.Reader
		}{
			{"GET", "/hello?a=b%20c", nil},
			{"HEAD", "/hello", nil},
			{"POST", "/echo", func() io.Reader { return strings.NewReader("a=b") }},
			{"POST", "/echo", func() io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", 4000))) }},
			{"POST", "/echo", func() io.Reader { return strings.NewReader(strings.Repeat("x", 5001)) }},
			{"DELETE", "/echo", nil},
			{"GET", "/pieces", nil},
			{"GET", "/unchanged", nil},
			{"GET", "/now", nil},
			{"GET", "/tls", nil},
		} {
			body := func() io.Reader {
				if x.body == nil {
					return nil
				}
				return x.body()
			}
			want, wantBody := o.do(old, x.method, x.path, body())
			got, gotBody := o.do(o.browser(), x.method, x.path, body())
			if got.Proto != "HTTP/2.0" || want.Proto != "HTTP/1.1" {
				t.Fatalf("protocols %s and %s", got.Proto, want.Proto)
			}
			for _, h := range []http.Header{want.Header, got.Header} {
				h.Del("Date")
				h.Del("Connection")
			}
			if got.StatusCode != want.StatusCode || gotBody != wantBody ||
				fmt.Sprint(got.Header) != fmt.Sprint(want.Header) {
				t.Errorf("%s %s: %d %v %.60q, with HTTP/1.1 %d %v %.60q", x.method, x.path, got.StatusCode,
					got.Header, gotBody, want.StatusCode, want.Header, wantBody)
			}
		}
	})
}

// Ten tabs of a browser poll and send over one connection, and each poll gets its own answer.
func TestHTTP2Polls(t *testing.T) {
	onHTTP2(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxHTTP2: 10})
		c := o.browser()
		o.do(c, "GET", "/first", nil)
		answers := make(chan string)
		for range 10 {
			go func() {
				res, err := c.Get(o.url("/poll"))
				if err != nil {
					answers <- err.Error()
					return
				}
				defer res.Body.Close()
				b, _ := io.ReadAll(res.Body)
				answers <- string(b)
			}()
		}
		var polls []*Parked
		for range 10 {
			polls = append(polls, o.nextPoll())
		}
		if _, body := o.do(c, "GET", "/other", nil); body != "hello /other" {
			t.Errorf("answer beside the polls: %q", body)
		}
		if open := o.Stats().Open; open != 1 {
			t.Errorf("%d connections", open)
		}
		want := map[string]bool{}
		for i, p := range polls {
			body := fmt.Sprint("event ", i)
			want[body] = true
			o.mustAnswer(p, body)
			if p.Answer(200, []byte("twice")) {
				t.Error("a second Answer succeeded")
			}
		}
		for range polls {
			if a := receive(t, answers, "answer"); !want[a] {
				t.Errorf("answer %q", a)
			} else {
				delete(want, a)
			}
		}
	})
}

// A client that ends its poll, or all of its connection, counts as gone.
func TestHTTP2ClientLeaves(t *testing.T) {
	onHTTP2(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxHTTP2: 10})
		f := o.dialFrames()
		go f.read()
		f.request(1, "/poll")
		p := o.nextPoll()
		f.WriteRSTStream(1, http2.ErrCodeCancel)
		receive(t, o.goneCalls, "gone")
		if p.Answer(200, []byte("late")) {
			t.Error("answered although the client is gone")
		}
		f.request(3, "/poll")
		o.nextPoll()
		f.conn.Close()
		receive(t, o.goneCalls, "gone")
		waitUntil(t, "the connection to be closed", func() bool { return o.Stats().Open == 0 && o.Stats().Parked == 0 })
	})
}

// A shutdown answers the polls of clients, which then use other connections.
func TestHTTP2Shutdown(t *testing.T) {
	onHTTP2(t, func(t *testing.T, kind string) {
		var o *pollOwner
		parked := make(chan *Parked, 1)
		o = serve(t, kind, Config{MaxHTTP2: 10, OnDrain: func() {
			if p := <-parked; !p.Answer(200, []byte("bye")) {
				t.Error("the answer of the shutdown failed")
			}
		}})
		c, answer := o.browser(), make(chan string, 1)
		go func() {
			res, err := c.Get(o.url("/poll"))
			if err != nil {
				answer <- err.Error()
				return
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			answer <- string(b)
		}()
		parked <- o.nextPoll()
		if err := o.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if a := receive(t, answer, "answer"); a != "bye" {
			t.Errorf("answer %q", a)
		}
	})
}

// Clients beyond the limit of connections with HTTP/2 get HTTP/1.1, and so do those that know nothing else.
func TestHTTP2Limit(t *testing.T) {
	onHTTP2(t, func(t *testing.T, kind string) {
		o := serve(t, kind, Config{MaxHTTP2: 1})
		first, second := o.browser(), o.browser()
		for i, c := range []*http.Client{first, second, first} {
			want := []string{"HTTP/2.0", "HTTP/1.1", "HTTP/2.0"}[i]
			if res, _ := o.do(c, "GET", "/", nil); res.Proto != want {
				t.Errorf("client %d uses %s, want %s", i, res.Proto, want)
			}
		}
		first.CloseIdleConnections()
		waitUntil(t, "the connection to end", func() bool { return o.http2.open.Load() == 0 })
		if res, _ := o.do(o.browser(), "GET", "/", nil); res.Proto != "HTTP/2.0" {
			t.Errorf("after the first has left: %s", res.Proto)
		}
	})
}

// frameClient sends any frames.
type frameClient struct {
	*http2.Framer
	conn  *tls.Conn
	heads bytes.Buffer
	hpack *hpack.Encoder
	ended chan error // the server has closed the connection
}

func (o *pollOwner) dialFrames() *frameClient {
	o.t.Helper()
	conn, err := tls.Dial("tcp", o.ln.Addr().String(), &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{protocolHTTP2},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testTimeout))
	io.WriteString(conn, http2.ClientPreface)
	f := &frameClient{Framer: http2.NewFramer(conn, conn), conn: conn, ended: make(chan error, 1)}
	f.hpack = hpack.NewEncoder(&f.heads)
	f.AllowIllegalWrites = true
	f.WriteSettings()
	return f
}

// read reads frames until the server closes the connection.
func (f *frameClient) read() {
	for {
		if _, err := f.ReadFrame(); err != nil {
			f.ended <- err
			return
		}
	}
}

// head returns the compressed head of a request, with more headers.
func (f *frameClient) head(path string, more ...hpack.HeaderField) []byte {
	f.heads.Reset()
	for _, x := range append([]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x"},
		{Name: ":path", Value: path},
	}, more...) {
		f.hpack.WriteField(x)
	}
	return f.heads.Bytes()
}

func (f *frameClient) request(id uint32, path string) {
	f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: f.head(path), EndStream: true, EndHeaders: true,
	})
}

// Attacks on servers of HTTP/2 run no more requests than allowed, and end their own connection if they send more than
// the server can answer. Other clients are served.
func TestHTTP2Attacks(t *testing.T) {
	never := make(chan struct{})            // ends the handlers
	survives := "more streams than allowed" // each of them is refused
	attacks := map[string]func(f *frameClient) error{
		"streams that are reset": func(f *frameClient) error {
			for id := uint32(1); id < 200_000; id += 2 {
				f.request(id, "/slow")
				if err := f.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
					return err
				}
			}
			return nil
		},
		"a head without end": func(f *frameClient) error {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head("/"), EndStream: true})
			for i := range 100_000 {
				f.heads.Reset()
				f.hpack.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: strings.Repeat("y", 1000)})
				if err := f.WriteContinuation(1, false, f.heads.Bytes()); err != nil {
					return err
				}
			}
			return nil
		},
		"pings whose answers are not read": func(f *frameClient) error {
			ping := bytes.Repeat([]byte("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"), 1000)
			for range 2000 {
				if _, err := f.conn.Write(ping); err != nil {
					return err
				}
			}
			return nil
		},
		"settings without end": func(f *frameClient) error {
			settings := bytes.Repeat([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"), 1000)
			for range 200 {
				if _, err := f.conn.Write(settings); err != nil {
					return err
				}
			}
			return f.conn.CloseWrite()
		},
		survives: func(f *frameClient) error {
			go f.read()
			for id := uint32(1); id < 20_000; id += 2 {
				f.request(id, "/slow")
			}
			return nil
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			o := serve(t, "tls", Config{MaxHTTP2: 10}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
				if string(ctx.Path()) == "/slow" {
					if n := o.Stats().Active; n > maxStreams+10 {
						t.Errorf("%d requests are active", n)
					}
					<-never
				}
				ctx.WriteString("ok")
			})
			f := o.dialFrames()
			attack(f) // its error is that the connection has ended
			if name != survives {
				go f.read()
				receive(t, f.ended, "end of the connection")
			}
			if _, body := o.do(o.browser(), "GET", "/", nil); body != "ok" {
				t.Errorf("another client got %q", body)
			}
		})
	}
	close(never)
}

// A head whose headers are small when compressed, and large otherwise, is refused.
func TestHTTP2HeaderBomb(t *testing.T) {
	o := serve(t, "tls", Config{MaxHTTP2: 10, MaxHeader: 8 << 10})
	f := o.dialFrames()
	go f.read()
	bomb := hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3000)} // in the table after its first use
	more := []hpack.HeaderField{}
	for range 1000 {
		more = append(more, bomb)
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head("/poll", more...), EndStream: true,
		EndHeaders: true})
	f.request(3, "/poll")
	select {
	case <-f.ended: // the connection may end
	case p := <-o.polls: // only the second one
		o.mustAnswer(p, "event")
	case <-time.After(testTimeout):
		t.Error("no answer")
	}
	if n := o.Stats().Parks; n > 1 {
		t.Errorf("%d requests reached the handler", n)
	}
}

// Heads that HTTP/1.1 could read differently do not reach a handler.
func TestHTTP2StrictHeads(t *testing.T) {
	o := serve(t, "tls", Config{MaxHTTP2: 10})
	for _, x := range []hpack.HeaderField{
		{Name: "transfer-encoding", Value: "chunked"}, {Name: "connection", Value: "close"},
		{Name: "x-a", Value: "b\r\nHost: y"}, {Name: "x-a", Value: "b\nc"}, {Name: "x a", Value: "b"},
		{Name: ":path", Value: "/poll"}, {Name: "content-length", Value: "5"}, {Name: "host", Value: "y"},
	} {
		f := o.dialFrames()
		go f.read()
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.head("/poll HTTP/1.1", x),
			EndStream: true, EndHeaders: true})
		f.WritePing(false, [8]byte{1})
		f.request(3, "/now")
		f.conn.CloseWrite()
		<-f.ended
	}
	if n := o.Stats().Parks; n > 8 { // those of /now
		t.Errorf("%d requests were parked", n)
	}
	select {
	case <-o.polls:
		t.Error("a wrong head reached the handler")
	default:
	}
}
