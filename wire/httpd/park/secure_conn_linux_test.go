package park

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// rawClient is a TLS client whose records the test can cut.
type rawClient struct {
	net.Conn // the socket
	tls      *tls.Conn
	held     *heldConn
	r        *bufio.Reader
}

// heldConn keeps the written bytes while hold is set.
type heldConn struct {
	net.Conn
	hold bool
	out  []byte
}

func (h *heldConn) Write(p []byte) (int, error) {
	if h.hold {
		h.out = append(h.out, p...)
		return len(p), nil
	}
	return h.Conn.Write(p)
}

func (o *pollOwner) dialRaw(cfg *tls.Config) *rawClient {
	o.t.Helper()
	c, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testTimeout))
	h := &heldConn{Conn: c}
	cfg.InsecureSkipVerify = true
	t := tls.Client(h, cfg)
	if err := t.Handshake(); err != nil {
		o.t.Fatal(err)
	}
	return &rawClient{c, t, h, bufio.NewReader(t)}
}

// seal returns the records of a text without sending them.
func (c *rawClient) seal(text string) []byte {
	c.held.hold, c.held.out = true, nil
	c.tls.Write([]byte(text))
	c.held.hold = false
	return c.held.out
}

func (c *rawClient) expect(t *testing.T, body string) {
	t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(res.Body); string(b) != body {
		t.Fatalf("answer %q, want %q", b, body)
	}
}

const pollText = "GET /poll HTTP/1.1\r\nHost: x\r\n\r\n"

// Parked and idle connections with TLS have no goroutine.
func TestSecureConnsHaveNoGoroutine(t *testing.T) {
	o := serve(t, "tls", Config{})
	var clients []*client
	for range 200 {
		c := o.dial()
		c.get("/poll")
		clients = append(clients, c)
	}
	var polls []*Parked
	for range clients {
		polls = append(polls, o.nextPoll())
	}
	waitUntil(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() < 150 })
	for _, p := range polls {
		o.mustAnswer(p, "event")
	}
	for _, c := range clients {
		c.expectBody("event")
	}
}

// A client that sends only the TLS message of the end, without closing the socket, counts as gone.
func TestCloseNotifyEndsParkedPoll(t *testing.T) {
	for _, kind := range []string{"tls", "tls-fast", "tls-goroutine"} {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{})
			c := o.dialRaw(&tls.Config{})
			c.tls.Write([]byte(pollText))
			p := o.nextPoll()
			c.tls.CloseWrite()
			receive(t, o.goneCalls, "gone")
			if p.Answer(200, []byte("late")) {
				t.Error("answered although the client is gone")
			}
		})
	}
}

// The end arrives while the request is still being served: the client counts as gone once the request is parked.
func TestCloseNotifyDuringRequest(t *testing.T) {
	for _, kind := range []string{"tls", "tls-goroutine"} {
		t.Run(kind, func(t *testing.T) {
			began, ended := make(chan bool), make(chan bool)
			o := serve(t, kind, Config{}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
				began <- true
				<-ended
				runtime.Gosched() // lets the loop see the event first, most times
				o.handle(ctx)
			})
			for range 20 {
				c := o.dialRaw(&tls.Config{})
				c.tls.Write([]byte(pollText))
				<-began
				c.tls.CloseWrite()
				ended <- true
				receive(t, o.goneCalls, "gone")
			}
		})
	}
}

// Request and end in one packet: the client counts as gone too.
func TestCloseNotifyBehindPoll(t *testing.T) {
	for _, kind := range []string{"tls", "tls-fast"} {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{})
			c := o.dialRaw(&tls.Config{})
			b := append([]byte(nil), c.seal(pollText)...)
			c.held.hold, c.held.out = true, nil
			c.tls.CloseWrite() // it ends the time for writing
			c.Conn.SetDeadline(time.Now().Add(testTimeout))
			c.Conn.Write(append(b, c.held.out...))
			o.nextPoll()
			receive(t, o.goneCalls, "gone")
		})
	}
}

// The server ends its connections with the TLS message, so that clients know that nothing was cut off.
func TestServerSendsCloseNotify(t *testing.T) {
	o := serve(t, "tls", Config{IdleTimeout: 100 * time.Millisecond})
	c := o.dialRaw(&tls.Config{})
	c.tls.Write([]byte("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	c.expect(t, "hello /a")
	if _, err := c.tls.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the last answer: %v", err)
	}
	c = o.dialRaw(&tls.Config{})
	c.tls.Write([]byte("GET /b HTTP/1.1\r\nHost: x\r\n\r\n"))
	c.expect(t, "hello /b")
	if _, err := c.tls.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the idle timeout: %v", err)
	}
}

// Several requests in one record, one request in many records, and records cut anywhere are served alike.
func TestRecordsAndRequestsAreIndependent(t *testing.T) {
	for _, kind := range []string{"tls", "tls-fast"} {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{})
			c := o.dialRaw(&tls.Config{})
			c.tls.Write([]byte("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n" + pollText + "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"))
			c.expect(t, "hello /1")
			o.mustAnswer(o.nextPoll(), "event")
			c.expect(t, "event")
			c.expect(t, "hello /2")
			for _, b := range c.seal("GET /3 HTTP/1.1\r\nHost: x\r\n\r\n") {
				c.Conn.Write([]byte{b})
				time.Sleep(100 * time.Microsecond)
			}
			c.expect(t, "hello /3")
			for _, b := range []byte(pollText) {
				c.tls.Write([]byte{b})
			}
			o.mustAnswer(o.nextPoll(), "again")
			c.expect(t, "again")
			large := strings.Repeat("x", 300_000)
			c.tls.Write([]byte("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + large))
			c.expect(t, large)
			c.tls.Write([]byte(pollText))
			o.mustAnswer(o.nextPoll(), large)
			c.expect(t, large)
		})
	}
}

// Requests that arrive while a poll is parked wait for its answer.
func TestSecurePipeliningBehindParkedPoll(t *testing.T) {
	for _, kind := range []string{"tls", "tls-fast"} {
		t.Run(kind, func(t *testing.T) {
			o := serve(t, kind, Config{})
			c := o.dialRaw(&tls.Config{})
			c.tls.Write([]byte(pollText))
			p := o.nextPoll()
			for range 3 {
				c.tls.Write([]byte("GET /next HTTP/1.1\r\nHost: x\r\n\r\n"))
				time.Sleep(5 * time.Millisecond)
			}
			o.mustAnswer(p, "event")
			c.expect(t, "event")
			for range 3 {
				c.expect(t, "hello /next")
			}
		})
	}
}

// The time for a handshake, for the first request, and for a record that never ends is limited.
func TestSecureTimeouts(t *testing.T) {
	o := serve(t, "tls", Config{ReadTimeout: time.Second, IdleTimeout: time.Minute})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", o.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()                                // says nothing
	dial().Write([]byte{22, 3, 1, 2, 0})  // begins a hello
	dial().Write([]byte("GET / HTTP/1.")) // speaks no TLS
	o.dialRaw(&tls.Config{})              // sends no request
	c := o.dialRaw(&tls.Config{})
	c.tls.Write([]byte("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"))
	c.expect(t, "hello /a")
	b := c.seal("GET /b HTTP/1.1\r\nHost: x\r\n\r\n")
	c.Conn.Write(b[:len(b)-1]) // a record that never ends
	waitUntil(t, "all connections to be closed", func() bool { return o.Stats().Open == 0 })
	if st := o.Stats(); st.Handshakes != 0 || st.Active != 0 || st.Slow != 0 {
		t.Errorf("%+v", st)
	}
}

// Handshakes have a limit, which parked and idle connections do not use up.
func TestMaxHandshakes(t *testing.T) {
	o := serve(t, "tls", Config{MaxHandshakes: 1})
	for range 3 {
		c := o.dial()
		c.get("/")
		c.expectBody("hello /")
	}
	slow, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	slow.Write([]byte{22, 3, 1, 2, 0})
	waitUntil(t, "the handshake to begin", func() bool { return o.Stats().Handshakes == 1 })
	late, err := tls.Dial("tcp", o.ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		late.Close()
		t.Error("a handshake beyond the limit was completed")
	}
	if n := o.Stats().Refused["handshakes"]; n != 1 {
		t.Errorf("%d refused handshakes", n)
	}
}

// A server ends while a client is in the middle of its handshake: it waits for that client, and for nothing more.
func TestShutdownDuringHandshake(t *testing.T) {
	o := serve(t, "tls", Config{})
	slow, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	slow.Write([]byte{22, 3, 1, 2, 0})
	waitUntil(t, "the handshake to begin", func() bool { return o.Stats().Handshakes == 1 })
	ended := make(chan error, 1)
	go func() { ended <- o.Shutdown(context.Background()) }()
	waitUntil(t, "the server to drain", func() bool {
		_, err := net.Dial("tcp", o.ln.Addr().String())
		return err != nil
	})
	slow.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A client that returns resumes its session, which saves the server a signature.
func TestSessionsAreResumed(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		o := serve(t, "tls", Config{})
		cfg := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(1), MaxVersion: version, ServerName: "x"}
		for i := range 3 {
			c := o.dialRaw(cfg)
			c.tls.Write([]byte("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"))
			c.expect(t, "hello /a")
			if resumed := c.tls.ConnectionState().DidResume; resumed != (i > 0) {
				t.Errorf("version %x, connection %d: resumed is %v", version, i, resumed)
			}
			c.tls.Close()
		}
	}
}

// The buffers of a handshake are found in this version of crypto/tls.
func TestHandshakeBuffersAreReleased(t *testing.T) {
	if len(handshakeBuffers) != 2 {
		t.Error("tls.Conn has other fields now: find its buffers in secure_buffers_linux.go, or remove that file")
	}
}

// The counter of records knows where they end, however the bytes arrive.
func TestRecordCounter(t *testing.T) {
	b := []byte{23, 3, 3, 0, 2, 'a', 'b', 23, 3, 3, 1, 0}
	b = append(b, make([]byte, 256)...)
	b = append(b, 23, 3, 3, 0, 0)
	ends := map[int]bool{7: true, 7 + 5 + 256: true, 7 + 5 + 256 + 5: true}
	for size := 1; size < 20; size++ {
		var r recordCounter
		for at := 0; at < len(b); {
			n := min(size, len(b)-at)
			r.count(b[at : at+n])
			if at += n; r.incomplete() == ends[at] {
				t.Fatalf("pieces of %d: incomplete is %v after %d bytes", size, r.incomplete(), at)
			}
		}
	}
}

// Handlers see that their request came through TLS.
func TestSecureRequestState(t *testing.T) {
	o := serve(t, "tls", Config{}, func(_ *pollOwner, ctx *fasthttp.RequestCtx) {
		if s := ctx.TLSConnectionState(); s == nil || !s.HandshakeComplete || s.Version != tls.VersionTLS13 {
			ctx.Error("no state", 500)
		}
	})
	c := o.dial()
	c.get("/")
	c.expectBody("")
}
