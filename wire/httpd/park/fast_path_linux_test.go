package park

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// recordingFastPath calls take for each request and records the requests that it is offered.
type recordingFastPath struct {
	take    func(*FastRequest) bool
	offered chan string
}

func (k recordingFastPath) Handle(q *FastRequest) bool {
	k.offered <- strings.TrimSpace(string(q.Target) + " of " + string(q.Host) + " by " + string(q.Authorization) +
		" " + string(q.ContentType) + " " + string(q.UserAgent) + " " + string(q.Body))
	return k.take(q)
}

func (k recordingFastPath) HandleRepeated(_ *FastRequest, _ *Memo, number []byte) bool {
	k.offered <- "again " + string(number)
	return false
}

func (k recordingFastPath) Flush() {}

func serveRecording(t *testing.T, take func(*FastRequest) bool) (*pollOwner, chan string) {
	offered := make(chan string, 100)
	o := serve(t, "epoll", Config{NewFastPath: func() FastPath { return recordingFastPath{take, offered} },
		FastPathTargets: []string{"GET /poll", "POST /send "}},
		func(o *pollOwner, ctx *fasthttp.RequestCtx) { ctx.WriteString("handled") })
	return o, offered
}

// Only requests that are complete, alone and ordinary are offered. All others reach the handler unchanged.
func TestFastPathGetsOrdinaryRequestsOnly(t *testing.T) {
	o, offered := serveRecording(t, func(*FastRequest) bool { return false })
	for _, c := range []struct {
		name    string
		packets []string
		answers int
		offered []string
	}{
		{"ordinary", []string{"GET /poll?a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b\r\n\r\n"}, 1,
			[]string{"/poll?a of x by Basic b"}},
		{"another target", []string{"GET /other HTTP/1.1\r\nHost: x\r\n\r\n"}, 1, nil},
		{"another method", []string{"POST /poll HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"}, 1, nil},
		{"in two packets", []string{"GET /poll HTTP/1.1\r\nHos", "t: x\r\n\r\n"}, 1, nil},
		{"two pipelined requests",
			[]string{"GET /poll HTTP/1.1\r\nHost: x\r\n\r\nGET /poll HTTP/1.1\r\nHost: x\r\n\r\n"}, 2, nil},
		{"with a body", []string{"POST /send HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b\r\nContent-Type: " +
			"text/plain\r\nUser-Agent: ua/1\r\nContent-Length: 2\r\n\r\nab"}, 1,
			[]string{"/send of x by Basic b text/plain ua/1 ab"}},
		{"body in another packet", []string{"POST /send HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n", "ab"}, 1,
			nil},
		{"with half a request behind it", []string{"POST /send HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nabPO"},
			1, nil},
		{"chunked", []string{"POST /send HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n" +
			"\r\n"}, 1, nil},
		{"with Expect", []string{"POST /send HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" +
			"\r\nab"}, 1, nil},
		{"two content types",
			[]string{"POST /send HTTP/1.1\r\nHost: x\r\nContent-Type: a\r\nContent-Type: b\r\nContent-Length: " +
				"2\r\n\r\nab"}, 1, nil},
		{"two user agents", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nUser-Agent: a\r\nUser-Agent: b\r\n\r\n"}, 1,
			nil},
		{"with Connection: close", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}, 1, nil},
		{"HTTP/1.0", []string{"GET /poll HTTP/1.0\r\nHost: x\r\n\r\n"}, 1, nil},
		{"two credentials", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"},
			1, nil},
		{"long", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nCookie: " + strings.Repeat("c", 2*fastPathBuffer) +
			"\r\n\r\n"}, 1, nil},
		{"without a host", []string{"GET /poll HTTP/1.1\r\n\r\n"}, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", o.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r := bufio.NewReader(conn)
			for i, p := range c.packets {
				before := o.Stats().BytesIn
				if _, err := conn.Write([]byte(p)); err != nil {
					t.Fatal(err)
				}
				if i < len(c.packets)-1 {
					waitUntil(t, "the first packet to be read",
						func() bool { return o.Stats().BytesIn == before+int64(len(p)) })
				}
			}
			for range c.answers {
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := 200
				switch c.name {
				case "without a host":
					want = 400
				case "with Expect":
					want = 100
				}
				if res.StatusCode != want {
					t.Errorf("status %d, want %d", res.StatusCode, want)
				}
				res.Body.Close()
			}
			var got []string
			for len(offered) > 0 {
				got = append(got, <-offered)
			}
			if strings.Join(got, "\n") != strings.Join(c.offered, "\n") {
				t.Errorf("offered %q, want %q", got, c.offered)
			}
		})
	}
}

// A panic costs one connection.
func TestFastPathPanic(t *testing.T) {
	o, _ := serveRecording(t, func(*FastRequest) bool { panic("no") })
	for range 2 {
		conn, err := net.Dial("tcp", o.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET /poll HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes from a connection whose request panicked", n)
		}
	}
	if st := o.Stats(); st.Panics != 2 {
		t.Errorf("%d panics counted, want 2", st.Panics)
	}
	waitUntil(t, "both connections to be closed", func() bool { return o.Stats().Open == 0 })
}

// A briefly parked request counts as active. It is answered even if its client has shut down its sending side.
func TestBriefParkSurvivesHalfClose(t *testing.T) {
	held := make(chan *Parked, 1)
	o, _ := serveRecording(t, func(q *FastRequest) bool {
		p := new(Parked)
		q.ParkBriefly(p, []byte("X-Extra: 1\r\n"))
		held <- p
		return true
	})
	conn, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST /send HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")); err != nil {
		t.Fatal(err)
	}
	p := <-held
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c := p.conn.(*eventConn)
	waitUntil(t, "the server to notice", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.peerClosed })
	if st := o.Stats(); st.Active != 1 || st.Parked != 0 || st.Gone != 0 {
		t.Errorf("%d active, %d parked, %d gone; want 1, 0, 0", st.Active, st.Parked, st.Gone)
	}
	if !p.Answer(200, []byte("{}")) {
		t.Error("Answer failed")
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 200 || res.Header.Get("X-Extra") != "1" {
		t.Errorf("read %v, %v", res, err)
	}
	waitUntil(t, "the connection to be closed", func() bool { st := o.Stats(); return st.Open == 0 && st.Active == 0 })
}

// A briefly parked request whose connection is reset is no longer active, and its answer is dropped.
func TestBriefParkLosesItsConnection(t *testing.T) {
	held := make(chan *Parked, 1)
	o, _ := serveRecording(t, func(q *FastRequest) bool {
		p := new(Parked)
		q.ParkBriefly(p, nil)
		held <- p
		return true
	})
	conn, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST /send HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")); err != nil {
		t.Fatal(err)
	}
	p := <-held
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
	c := p.conn.(*eventConn)
	waitUntil(t, "the server to notice", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.peerClosed })
	if p.Answer(200, []byte("{}")) {
		t.Error("an answer was written to a connection that was reset")
	}
	waitUntil(t, "the connection to be closed", func() bool { st := o.Stats(); return st.Open == 0 && st.Active == 0 })
}

// A request is offered as a repeated one only if all its bytes except the number are the same. If FastPath does
// not take it, it is handled like any other.
func TestFastPathRemembersRequests(t *testing.T) {
	var memo Memo
	o, offered := serveRecording(t, func(q *FastRequest) bool {
		if string(q.Target) == "/poll?n=5&x" && string(q.Authorization) == "Basic a" {
			q.Remember(&memo, len("/poll?n="), len("/poll?n=5"))
			p := new(Parked)
			q.Park(p, nil, nil)
			go p.Answer(200, []byte("parked"))
			return true
		}
		return false
	})
	conn, err := net.Dial("tcp", o.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, c := range []struct{ request, offered, answer string }{
		// before Remember
		{"GET /poll?n=6&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n", "/poll?n=6&x of x by Basic a",
			"handled"},
		{"GET /poll?n=5&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n", "/poll?n=5&x of x by Basic a",
			"parked"},
		{"GET /poll?n=5&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n",
			"again 5,/poll?n=5&x of x by Basic a", "parked"},
		{"GET /poll?n=1234&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n",
			"again 1234,/poll?n=1234&x of x by Basic a", "handled"},
		{"GET /poll?n=6&y HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n", "/poll?n=6&y of x by Basic a",
			"handled"},
		{"GET /poll?m=6&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n", "/poll?m=6&x of x by Basic a",
			"handled"},
		{"GET /poll?n=6&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b\r\n\r\n", "/poll?n=6&x of x by Basic b",
			"handled"},
		{"GET /poll?n=6&x HTTP/1.1\r\nHost: y\r\nAuthorization: Basic a\r\n\r\n", "/poll?n=6&x of y by Basic a",
			"handled"},
		{"GET /poll?n=&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n", "/poll?n=&x of x by Basic a",
			"handled"},
		{"POST /poll?n=6&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\n", "", "handled"},
		{"GET /poll?n=6&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\nContent-Length: 0\r\n\r\n",
			"/poll?n=6&x of x by Basic a", "handled"},
		// FastPath must check that the number is one: here two requests begin and end like the remembered one.
		{"GET /poll?n=7&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\nGET /poll?n=7&x HTTP/1.1\r\nHost: " +
			"x\r\nAuthorization: Basic a\r\n\r\n",
			"again 7&x HTTP/1.1\r\nHost: x\r\nAuthorization: Basic a\r\n\r\nGET /poll?n=7", "handled handled"},
	} {
		// else the goroutine that answered reads the request
		waitUntil(t, "the connection to rest", func() (rests bool) {
			rests = true
			o.eachEvented(func(c *eventConn) { c.mu.Lock(); rests = rests && !c.running; c.mu.Unlock() })
			return rests
		})
		if _, err := conn.Write([]byte(c.request)); err != nil {
			t.Fatal(err)
		}
		for want := range strings.FieldsSeq(c.answer) {
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%q: %v", c.request, err)
			}
			body, _ := io.ReadAll(res.Body)
			if string(body) != want {
				t.Errorf("%q is answered %q, want %q", c.request, body, want)
			}
		}
		var got []string
		for len(offered) > 0 {
			got = append(got, <-offered)
		}
		if strings.Join(got, ",") != c.offered {
			t.Errorf("%q: offered %q, want %q", c.request, got, c.offered)
		}
	}
}

// repeatingFastPath parks every repeated poll in the memory of the first.
type repeatingFastPath struct {
	o     atomic.Pointer[pollOwner]
	again chan bool
}

type repeatedPoll struct {
	Parked
	Memo
}

func (k *repeatingFastPath) Handle(q *FastRequest) bool {
	p := new(repeatedPoll)
	p.Owner = p
	q.Remember(&p.Memo, len("/poll?"), len(q.Target))
	q.Park(&p.Parked, goneReporter{k.o.Load()}, nil)
	k.again <- false
	k.o.Load().polls <- &p.Parked
	return true
}

func (k *repeatingFastPath) HandleRepeated(q *FastRequest, m *Memo, _ []byte) bool {
	p := m.Owner.(*repeatedPoll)
	q.Park(&p.Parked, goneReporter{k.o.Load()}, nil)
	k.again <- true
	k.o.Load().polls <- &p.Parked
	return true
}

func (*repeatingFastPath) Flush() {}

// A repeated poll waits as long as necessary. Afterwards its connection has the usual idle timeout, and the
// client's leaving is noticed.
func TestRepeatedPollTimeouts(t *testing.T) {
	k := &repeatingFastPath{again: make(chan bool, 100)}
	o := serve(t, "epoll", Config{IdleTimeout: 500 * time.Millisecond, NewFastPath: func() FastPath { return k },
		FastPathTargets: []string{"GET /poll"}},
		func(o *pollOwner, ctx *fasthttp.RequestCtx) { ctx.WriteString("handled") })
	k.o.Store(o)
	c := o.dial()
	for n := range 3 {
		c.get(fmt.Sprintf("/poll?%d", n))
		p := o.nextPoll()
		if again := <-k.again; again != (n > 0) {
			t.Fatalf("poll %d: repeated is %v", n, again)
		}
		other := o.dial() // idle until its timeout, while the poll waits
		other.get("/")
		other.expectBody("handled")
		other.expectClosed()
		o.mustAnswer(p, fmt.Sprint("answer ", n))
		c.expectBody(fmt.Sprint("answer ", n))
	}
	c.expectClosed()
	l := o.dial()
	l.get("/poll?1")
	o.mustAnswer(o.nextPoll(), "answer")
	l.expectBody("answer")
	l.get("/poll?2")
	o.nextPoll()
	if <-k.again || !<-k.again {
		t.Fatal("the second poll was not offered as a repeated one")
	}
	l.Close()
	receive(t, o.goneCalls, "gone")
	waitUntil(t, "both connections to be closed", func() bool {
		st := o.Stats()
		return st.Open == 0 &&
			st.Parked == 0
	})
}

// orderedFastPath parks polls as repeatingFastPath does. It records the order of repeated polls and other requests, and
// a request for /poll/stop holds the loop until resume.
type orderedFastPath struct {
	repeatingFastPath
	resume chan struct{}
	mu     sync.Mutex
	order  []string
}

func (k *orderedFastPath) Handle(q *FastRequest) bool {
	switch target := string(q.Target); target {
	case "/poll/stop":
		k.resume <- struct{}{}
		<-k.resume
		return false
	case "/poll/other":
		k.record(target)
		return false
	}
	return k.repeatingFastPath.Handle(q)
}

func (k *orderedFastPath) HandleRepeated(q *FastRequest, m *Memo, number []byte) bool {
	k.record("poll")
	return k.repeatingFastPath.HandleRepeated(q, m, number)
}

func (k *orderedFastPath) record(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order = append(k.order, what)
}

// After an answer to many clients their polls arrive at once. A request of another connection that arrives after them
// does not wait for all of them, also if that connection polled before.
func TestOtherRequestsDoNotWaitForPolls(t *testing.T) {
	const clients = 3 * pollBatch
	k := &orderedFastPath{repeatingFastPath: repeatingFastPath{again: make(chan bool, 4*clients)},
		resume: make(chan struct{})}
	o := serve(t, "epoll", Config{NewFastPath: func() FastPath { return k }, FastPathTargets: []string{"GET /poll"}},
		func(o *pollOwner, ctx *fasthttp.RequestCtx) { ctx.WriteString("handled") })
	k.o.Store(o)
	poll := func(c *client, n int) {
		c.get(fmt.Sprintf("/poll?%d", n))
		o.mustAnswer(o.nextPoll(), "answer")
		c.expectBody("answer")
	}
	var polling []*client
	for range clients {
		c := o.dial()
		poll(c, 1)
		poll(c, 2)
		polling = append(polling, c)
	}
	former, fresh, blocker := polling[0], o.dial(), o.dial()
	for _, c := range []*client{former, fresh} {
		c.get("/")
		c.expectBody("handled")
	}
	blocker.get("/poll/stop")
	<-k.resume
	k.order = nil
	for _, c := range polling[1:] {
		c.get("/poll?3")
	}
	former.get("/poll/other")
	fresh.get("/poll/other")
	k.resume <- struct{}{}
	for range polling[1:] {
		o.mustAnswer(o.nextPoll(), "answer")
	}
	former.expectBody("handled")
	fresh.expectBody("handled")
	for _, c := range polling[1:] {
		c.expectBody("answer")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before, others := 0, 0
	for _, what := range k.order {
		if what != "poll" {
			others++
		} else if others < 2 {
			before++
		}
	}
	if others != 2 || before > pollBatch || len(k.order) != clients-1+2 {
		t.Errorf("of %d requests %d were others, and %d polls came before them", len(k.order), others, before)
	}
}

// An answer of a busy server says when to repeat the request, and others do not.
func TestBusyAnswerHasRetryAfter(t *testing.T) {
	status := make(chan int, 1)
	o, _ := serveRecording(t, func(q *FastRequest) bool {
		p := new(Parked)
		q.ParkBriefly(p, nil)
		go p.Answer(<-status, []byte("{}"))
		return true
	})
	for want, header := range map[int]string{503: BusyRetryAfter, 200: "", 400: ""} {
		conn, err := net.Dial("tcp", o.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		status <- want
		if _, err := conn.Write([]byte("POST /send HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != want || res.Header.Get("Retry-After") != header {
			t.Errorf("want %d and Retry-After %q: %v, %v", want, header, res, err)
		}
	}
}

// An answer that a pooled buffer is too small for arrives whole, and small buffers stay small.
func TestLargeAnswersUseLargeBuffers(t *testing.T) {
	for _, size := range []int{1, maxReadAhead, maxReadAhead + 1, maxLargeBuffer, maxLargeBuffer + 1} {
		b := takeBufferFor(size)
		if len(b.b) != 0 || cap(b.b) < size || size <= maxReadAhead && cap(b.b) > maxReadAhead {
			t.Errorf("a buffer for %d bytes has %d of %d", size, len(b.b), cap(b.b))
		}
		b.release()
	}
	b := takeBufferFor(1 << 20)
	b.b = append(b.b, make([]byte, 1<<20)...)
	if rest := b.takeRest(1<<20 - 10); len(rest) != 10 || cap(rest) > 1<<10 {
		t.Errorf("the rest of 10 bytes holds %d", cap(rest))
	}
}
