package park

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// testTimeout is how long a test waits for something that must happen. It does not measure speed.
const testTimeout = time.Minute

// pollOwner parks GET /poll and keeps the parked requests, as the owner of an event queue would.
type pollOwner struct {
	*Server
	t         testing.TB
	ln        net.Listener
	kind      string
	polls     chan *Parked
	goneCalls chan struct{}
	served    chan error
}

// kinds are the ways in which a connection can be served. Most tests run with each.
var kinds = []string{"epoll", "goroutine", "tls", "fast", "tls-fast", "tls-goroutine"}

// fastPollOwner parks two of three GET /poll on the loop and leaves the third to the handler.
type fastPollOwner struct {
	o       *pollOwner
	offered int
	parked  []*Parked
}

// goneReporter tells the owner that a client has left.
type goneReporter struct{ o *pollOwner }

func (g goneReporter) Gone() { g.o.goneCalls <- struct{}{} }

func (k *fastPollOwner) Handle(q *FastRequest) bool {
	if k.offered++; string(q.Target) != "/poll" || k.offered%3 == 0 {
		return false
	}
	q.Remember(new(Memo), len("/pol"), len("/poll"))
	k.park(q)
	return true
}

// HandleRepeated takes only the same letter: the remembered range may hold another one.
func (k *fastPollOwner) HandleRepeated(q *FastRequest, _ *Memo, letter []byte) bool {
	if k.offered++; string(letter) != "l" || k.offered%3 == 0 {
		return false
	}
	k.park(q)
	return true
}

func (k *fastPollOwner) park(q *FastRequest) {
	p := new(Parked)
	q.Park(p, goneReporter{k.o}, nil)
	k.parked = append(k.parked, p)
}

func (k *fastPollOwner) Flush() {
	for _, p := range k.parked {
		k.o.polls <- p
	}
	k.parked = nil
}

func onEachKind(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, kind) })
	}
}

// plainListener hides that a listener is TCP, so that goroutines serve its connections.
type plainListener struct{ net.Listener }

// serve starts a server with the owner's own handler, or the given one.
func serve(t testing.TB, kind string, cfg Config, handler ...func(*pollOwner, *fasthttp.RequestCtx)) *pollOwner {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, kind, cfg, ln, handler...)
}

func serveOn(t testing.TB, kind string, cfg Config, ln net.Listener,
	handler ...func(*pollOwner, *fasthttp.RequestCtx)) *pollOwner {
	t.Helper()
	o := &pollOwner{t: t, kind: kind, polls: make(chan *Parked, 10_000), goneCalls: make(chan struct{}, 10_000),
		served: make(chan error, 1)}
	cfg.Handler = o.handle
	if len(handler) > 0 {
		cfg.Handler = func(ctx *fasthttp.RequestCtx) { handler[0](o, ctx) }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if strings.HasPrefix(kind, "tls") {
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	}
	if strings.HasSuffix(kind, "fast") && len(handler) == 0 {
		cfg.NewFastPath, cfg.FastPathTargets = func() FastPath { return &fastPollOwner{o: o} }, []string{"GET /poll"}
	}
	if cfg.Sweep == 0 {
		cfg.Sweep = 5 * time.Millisecond
	}
	o.ln = ln
	o.Server = New(cfg)
	if strings.HasSuffix(kind, "goroutine") {
		ln = plainListener{ln}
	}
	go func() { o.served <- o.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := o.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	return o
}

func (o *pollOwner) handle(ctx *fasthttp.RequestCtx) {
	switch string(ctx.Path()) {
	case "/poll":
		o.polls <- o.ParkFor(ctx, callerOfQuery(ctx), func() { o.goneCalls <- struct{}{} })
	case "/now": // answered before the handler returns
		if !o.Park(ctx, nil).Answer(200, []byte("now")) {
			o.t.Error("Answer in the handler failed")
		}
	case "/echo":
		ctx.Write(ctx.PostBody())
	default:
		ctx.WriteString("hello " + string(ctx.Path()))
	}
}

func (o *pollOwner) nextPoll() *Parked {
	o.t.Helper()
	return receive(o.t, o.polls, "a parked poll")
}

func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("timed out waiting for %s", what)
		panic("unreachable")
	}
}

// timeoutContext makes a test fail, and not hang, if something does not end.
func timeoutContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// waitUntil waits for a state that is reached in the background.
func waitUntil(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !f(); {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (o *pollOwner) dial() *client {
	o.t.Helper()
	c, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { c.Close() })
	if strings.HasPrefix(o.kind, "tls") {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	c.SetDeadline(time.Now().Add(testTimeout))
	return &client{c, o.t, bufio.NewReader(c)}
}

func (c *client) write(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) get(path string) { c.t.Helper(); c.write("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path) }

func (c *client) readAnswer() *answer {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal("no answer: ", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return &answer{resp, string(body)}
}

type answer struct {
	*http.Response
	body string
}

func (c *client) expectBody(body string) {
	c.t.Helper()
	if a := c.readAnswer(); a.StatusCode != 200 || a.body != body {
		c.t.Fatalf("answer %d %q, want 200 %q", a.StatusCode, a.body, body)
	}
}

// expectClosed expects that the server closes the connection without sending anything.
func (c *client) expectClosed() {
	c.t.Helper()
	if b, err := c.r.Peek(1); err != io.EOF && !errors.Is(err, net.ErrClosed) && !reset(err) {
		c.t.Fatalf("connection not closed: %q, %v", b, err)
	}
}

func reset(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "reset") || strings.Contains(err.Error(), "broken pipe"))
}

func (o *pollOwner) mustAnswer(p *Parked, text string) {
	o.t.Helper()
	if !p.Answer(200, []byte(text)) {
		o.t.Fatal("Answer failed")
	}
}

var certificateOnce = sync.OnceValues(func() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
})

func certificate(t testing.TB) tls.Certificate {
	cert, err := certificateOnce()
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func newQuietLog() *log.Logger { return log.New(io.Discard, "", 0) }

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// callerOfQuery returns the caller that a request names in its query: organization/account, or account.
func callerOfQuery(ctx *fasthttp.RequestCtx) Caller {
	organization, account, ok := strings.Cut(string(ctx.URI().QueryString()), "/")
	if !ok {
		return Caller{Account: organization}
	}
	return Caller{organization, account}
}
