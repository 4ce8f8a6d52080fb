package park

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// successionServer is one server in a sequence of successors on one listener.
type successionServer struct {
	*Server
	served chan error

	mu     sync.Mutex
	polls  []*Parked
	ending bool // later polls are answered at once
}

func startSuccession(t *testing.T, ln net.Listener, backlog *Backlog) *successionServer {
	t.Helper()
	r := &successionServer{served: make(chan error, 1)}
	r.Server = New(Config{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/poll" {
				r.poll(r.Park(ctx, nil))
				return
			}
			ctx.WriteString("hello " + string(ctx.Path()) + string(ctx.PostBody()))
		},
		OnDrain:          r.answerPolls,
		AnswersLatePolls: true,
		Log:              slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err := r.ServeBacklog(backlog); err != nil {
		t.Fatal(err)
	}
	go func() { r.served <- r.Serve(ln) }()
	return r
}

func (r *successionServer) poll(p *Parked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		p.Answer(200, []byte("poll"))
		return
	}
	r.polls = append(r.polls, p)
}

// answerPolls answers the parked polls, and later ones when they arrive.
func (r *successionServer) answerPolls() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	for _, p := range r.polls {
		p.Answer(200, []byte("poll"))
	}
	r.polls = nil
}

// handOffTo shuts the server down and returns the successor that takes over its connections.
func (r *successionServer) handOffTo(t *testing.T, next net.Listener) *successionServer {
	t.Helper()
	handoff, end, err := newHandoff()
	if err != nil {
		t.Fatal(err)
	}
	backlog, err := CollectBacklog(0, next)
	if err != nil {
		t.Fatal(err)
	}
	backlog.ReceiveHandoff(&Handoff{fd: end})
	if r.PrepareShutdown(handoff) {
		t.Error("PrepareShutdown reported connections that cannot be handed off")
	}
	if err := r.Shutdown(timeoutContext(t)); err != nil {
		t.Error("shutdown:", err)
	}
	if err := receive(t, r.served, "Serve"); err != nil {
		t.Error("serve:", err)
	}
	if err := r.FinishAnswers(timeoutContext(t)); err != nil {
		t.Error("finish:", err)
	}
	return startSuccession(t, next, backlog)
}

// Clients that never repeat a request use one connection each, while one server after the other takes over. Some
// split their requests, some poll. No client loses an answer or its connection. TAKEOVERS sets the number of
// takeovers.
func TestHandoffLosesNoRequest(t *testing.T) {
	takeovers := 60
	if n, err := strconv.Atoi(os.Getenv("TAKEOVERS")); err == nil {
		takeovers = n
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	defer ln.Close()
	now := startSuccession(t, duplicateListener(t, ln), nil)
	var answers atomic.Int64
	var asking sync.WaitGroup
	stop := make(chan struct{})
	ask := func(seed uint64, once func(c net.Conn, r *bufio.Reader, dice *rand.Rand, n int) error, dials int) {
		defer asking.Done()
		dice := rand.New(rand.NewPCG(1, seed))
		for d := 0; dials == 0 || d < dials; d++ {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Error(err)
				return
			}
			r := bufio.NewReader(c)
			for n := range 1 + 1_000_000_000*min(dials, 1) { // one request per connection if dials is 0
				select {
				case <-stop:
					c.Close()
					return
				default:
				}
				c.SetDeadline(time.Now().Add(3 * testTimeout)) // fail instead of waiting forever
				if err := once(c, r, dice, n); err != nil {
					t.Errorf("client %d, connection %d, request %d: %v", seed, d, n, err)
					c.Close()
					return
				}
				answers.Add(1)
			}
			c.Close()
		}
	}
	answer := func(r *bufio.Reader, want string) error {
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err == nil && (a.StatusCode != 200 || string(body) != want) {
			err = fmt.Errorf("status %d, %q instead of %q", a.StatusCode, body, want)
		}
		return err
	}
	send := func(c net.Conn, r *bufio.Reader, _ *rand.Rand, n int) error {
		fmt.Fprintf(c, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", n)
		return answer(r, fmt.Sprintf("hello /%dabc", n))
	}
	pieces := func(c net.Conn, r *bufio.Reader, dice *rand.Rand, n int) error {
		whole := fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n"+
			"Host: a\r\n\r\n", n)
		for len(whole) > 0 {
			k := 1 + dice.IntN(len(whole))
			io.WriteString(c, whole[:k])
			whole = whole[k:]
		}
		if err := answer(r, fmt.Sprintf("hello /%dabc", n)); err != nil {
			return err
		}
		return answer(r, "hello /b")
	}
	poll := func(c net.Conn, r *bufio.Reader, _ *rand.Rand, n int) error {
		io.WriteString(c, "GET /poll HTTP/1.1\r\nHost: a\r\n\r\n")
		return answer(r, "poll")
	}
	for i := range 8 {
		asking.Add(4)
		go ask(uint64(4*i), send, 1)
		go ask(uint64(4*i+1), pieces, 1)
		go ask(uint64(4*i+2), poll, 1)
		go ask(uint64(4*i+3), send, 0)
	}
	for range takeovers {
		before := answers.Load()
		now = now.handOffTo(t, duplicateListener(t, ln))
		waitUntil(t, "answers of the new server", func() bool { return answers.Load() > before+100 || t.Failed() })
		if t.Failed() {
			break
		}
	}
	close(stop)
	now.answerPolls()
	asking.Wait()
	now.Shutdown(timeoutContext(t))
	t.Logf("%d answers across %d takeovers", answers.Load(), takeovers)
}

// A client that reads its answer slowly, and one that was refused and still sends, do not delay a handoff. Both
// get their answers.
func TestHandoffDoesNotWaitForSlowClients(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 32<<20)
	s := New(Config{Handler: func(ctx *fasthttp.RequestCtx) { ctx.WriteString(big) }, OnDrain: func() {},
		AnswersLatePolls: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	waitUntil(t, "an answer that its client does not read", func() bool { return s.Stats().Slow == 1 })
	refused, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	io.WriteString(refused, "nonsense\n")
	r := bufio.NewReader(refused)
	if a, err := http.ReadResponse(r, nil); err != nil || a.StatusCode != 400 {
		t.Fatal(a, err)
	}
	handoff, end, err := newHandoff()
	if err != nil {
		t.Fatal(err)
	}
	backlog := new(Backlog)
	backlog.ReceiveHandoff(&Handoff{fd: end})
	s.PrepareShutdown(handoff)
	if err := s.Shutdown(timeoutContext(t)); err != nil {
		t.Fatal(err)
	}
	if open := s.Stats().Open; open != 1 {
		t.Errorf("%d connections are left", open)
	}
	if held := backlog.close(); len(held) != 1 || held[0].state != handoffLingering {
		t.Errorf("handed off: %+v", held)
	}
	finished := make(chan error, 1)
	go func() { finished <- s.FinishAnswers(timeoutContext(t)) }()
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(a.Body); err != nil || len(body) != len(big) {
		t.Errorf("%d of %d bytes: %v", len(body), len(big), err)
	}
	c.Close()
	if err := receive(t, finished, "Finish"); err != nil {
		t.Error(err)
	}
}

// A body that arrives slowly does not delay a handoff: the successor continues with the bytes already read.
func TestHandoffOfPartialBody(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	now := startSuccession(t, duplicateListener(t, ln), nil)
	long := strings.Repeat("x", 100<<10)
	var clients []net.Conn
	bodies := [][3]string{ // the pieces sent at once, after a while, and after the handoff
		{"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n", "ab", "cdefGET /next HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r", "\nab\r\n4\r\nc",
			"def\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 102404\r\n\r\nab", long,
			"cdGET /next HTTP/1.1\r\nHost: a\r\n\r\n"},
	}
	for i, b := range bodies {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
		io.WriteString(c, b[0])
		waitUntil(t, "a request without its body", func() bool { return now.Stats().Slow == i+1 })
		read := now.Stats().BytesIn
		io.WriteString(c, b[1])
		waitUntil(t, "more bytes of the body", func() bool { return now.Stats().BytesIn >= read+int64(len(b[1])) })
	}
	now = now.handOffTo(t, duplicateListener(t, ln)) // does not wait for the bodies
	for i, c := range clients {
		io.WriteString(c, bodies[i][2])
		r := bufio.NewReader(c)
		for _, want := range []string{"hello /a" + []string{"abcdef", "abcdef", "ab" + long + "cd"}[i], "hello /next"} {
			a, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("client %d: %v", i, err)
			}
			body, err := io.ReadAll(a.Body)
			if err != nil || a.StatusCode != 200 || string(body) != want {
				t.Errorf("client %d: %v, status %d, %d bytes %.20q instead of %d", i, err, a.StatusCode, len(body),
					body, len(want))
			}
		}
	}
	now.Shutdown(timeoutContext(t))
}

// rememberingFastPath parks polls and remembers them.
type rememberingFastPath struct{ parked chan *Parked }

func (k rememberingFastPath) Handle(q *FastRequest) bool {
	at := bytes.IndexByte(q.Target, '=') + 1
	q.Remember(new(Memo), at, len(q.Target))
	p := new(Parked)
	q.Park(p, &goneFunc{}, nil)
	k.parked <- p
	return true
}

func (k rememberingFastPath) HandleRepeated(q *FastRequest, _ *Memo, _ []byte) bool {
	p := new(Parked)
	q.Park(p, &goneFunc{}, nil)
	k.parked <- p
	return true
}

func (k rememberingFastPath) Flush() {}

// A parked poll is handed off as it is. Its client gets one answer, from the successor, to its last request; the
// predecessor cannot answer any more.
func TestHandoffOfParkedPoll(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	parked := make(chan *Parked, 10)
	s := New(Config{Handler: func(ctx *fasthttp.RequestCtx) { ctx.WriteString("slow") }, OnDrain: func() {},
		AnswersLatePolls: true, Log: slog.New(slog.DiscardHandler),
		NewFastPath: func() FastPath { return rememberingFastPath{parked} }, FastPathTargets: []string{"GET /poll"}})
	served := make(chan error, 1)
	fd, err := duplicate(ln)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	mine, err := net.FileListener(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- s.Serve(mine) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	ask := func(n int) {
		if _, err := fmt.Fprintf(conn, "GET /poll?last=%d HTTP/1.1\r\nHost: x\r\n\r\n", n); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() string {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ask(7)
	(<-parked).Answer(200, []byte("first"))
	if got := hear(); got != "first" {
		t.Fatalf("received %q", got)
	}
	ask(1234)
	waits := <-parked
	waitUntil(t, "the request to be parked", func() bool { return s.Stats().Parked == 1 })

	handoff, end, err := newHandoff()
	if err != nil {
		t.Fatal(err)
	}
	backlog, err := CollectBacklog(0, ln)
	if err != nil {
		t.Fatal(err)
	}
	backlog.ReceiveHandoff(&Handoff{fd: end})
	s.PrepareShutdown(handoff)
	if err := s.Shutdown(timeoutContext(t)); err != nil {
		t.Error(err)
	}
	if err := receive(t, served, "Serve"); err != nil {
		t.Error(err)
	}
	if waits.Answer(200, []byte("from the predecessor")) {
		t.Error("the predecessor answered a request that was handed off")
	}
	asked := make(chan string, 10)
	var next *Server
	next = New(Config{Handler: func(ctx *fasthttp.RequestCtx) {
		asked <- string(ctx.RequestURI())
		next.Park(ctx, nil).Answer(200, []byte("second"))
	}, OnDrain: func() {}, AnswersLatePolls: true, Log: slog.New(slog.DiscardHandler)})
	if err := next.ServeBacklog(backlog); err != nil {
		t.Fatal(err)
	}
	if got := hear(); got != "second" {
		t.Errorf("received %q", got)
	}
	if got := <-asked; got != "/poll?last=1234" {
		t.Errorf("the successor received %q", got)
	}
	ask(1235)
	if got := hear(); got != "second" {
		t.Errorf("received %q", got)
	}
	if n := s.Stats().Parked; n != 0 {
		t.Errorf("%d requests are still parked at the predecessor", n)
	}
	if err := errors.Join(s.FinishAnswers(timeoutContext(t)), next.Shutdown(timeoutContext(t))); err != nil {
		t.Error(err)
	}
}

// duplicateListener returns another listener on the same socket, since each server closes its own.
func duplicateListener(t *testing.T, ln net.Listener) net.Listener {
	t.Helper()
	fd, err := duplicate(ln)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener") // not ln.File, whose copies make the socket blocking for a moment
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
