package swarm

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func openLoop(t *testing.T) *Loop {
	t.Helper()
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestAnswerEncodings(t *testing.T) {
	for _, protocol := range []string{"", "http/1.1", "h2"} {
		t.Run(cmp.Or(protocol, "without TLS"), func(t *testing.T) { testAnswerEncodings(t, protocol) })
	}
}

// testAnswerEncodings asks with a protocol above TLS, or with HTTP/1.1 without TLS.
func testAnswerEncodings(t *testing.T, protocol string) {
	big := strings.Repeat("0123456789abcdef", 40000)
	mux := http.NewServeMux()
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, "plain")
	})
	mux.HandleFunc("/chunks", func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 5; i++ {
			fmt.Fprintf(w, "part%d ", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(big)))
		io.WriteString(w, big)
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		u, p, _ := r.BasicAuth()
		w.WriteHeader(418)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.Form.Get("a"), u, p, r.Host)
	})
	mux.HandleFunc("/length", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || (r.ProtoMajor == 2) != (protocol == "h2") {
			w.WriteHeader(500)
		}
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("/bye", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "bye")
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.EnableHTTP2 = true
	if protocol == "" {
		srv.Start()
	} else {
		srv.StartTLS()
	}
	defer srv.Close()
	l := openLoop(t)
	p := NewPool(l, netip.MustParseAddrPort(srv.Listener.Addr().String()), nil, 3, "test/1")
	if protocol != "" {
		p.UseTLS(&tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
			ServerName: "example.com", NextProtos: []string{protocol}})
	}
	got := map[string]string{}
	left := 0
	ask := func(c *Call) {
		left++
		c.Done = func(c *Call, a *Answer) {
			left--
			if a.Err != nil {
				t.Errorf("%s: %v", c.Path, a.Err)
			}
			got[c.Path] = fmt.Sprintf("%d %s", a.Status, a.Body)
		}
		p.Do(c)
	}
	for i := 0; i < 3; i++ {
		for _, path := range []string{"/plain", "/chunks", "/big", "/bye"} {
			ask(&Call{Method: "GET", Path: path, Host: "h"})
		}
		ask(&Call{Method: "PATCH", Path: "/echo", Host: "chat.example", Auth: "Basic dTpw", Body: "a=b"})
		ask(&Call{Method: "POST", Path: "/length", Host: "h", Body: big}) // larger than a window of HTTP/2
		if err := l.RunFor(time.Minute, func() bool { return left == 0 }); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"/plain": "200 plain",
			"/chunks": "200 part0 part1 part2 part3 part4 ", "/big": "200 " + big, "/bye": "200 bye",
			"/echo": "418 PATCH b u p chat.example", "/length": "200 640000"} {
			if got[path] != want {
				t.Errorf("%s: %.60q, want %.60q", path, got[path], want)
			}
		}
		clear(got)
	}
	if p.Pending() != 0 || l.Open > 3 {
		t.Errorf("%d calls under way, %d connections open", p.Pending(), l.Open)
	}
}

// A server that sends nothing, closes the connection or speaks another protocol yields an error.
func TestBadServers(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		want string
	}{"silent": {"-", "no answer in time"}, "closes": {"", "closed"},
		"stranger": {"220 mail.example ESMTP\r\n", "not an HTTP"},
		"half":     {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "closed"}} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				conn.Read(make([]byte, 1000))
				if c.say == "-" {
					return // keep it open
				}
				io.WriteString(conn, c.say)
				conn.Close()
			}()
			l := openLoop(t)
			p := NewPool(l, netip.MustParseAddrPort(ln.Addr().String()), nil, 1, "t")
			var said error
			done := false
			timeout := time.Minute
			if c.say == "-" {
				timeout = 100 * time.Millisecond
			}
			p.Do(&Call{Method: "GET", Path: "/", Host: "h", Timeout: timeout,
				Done: func(_ *Call, a *Answer) { said, done = a.Err, true }})
			if err := l.RunFor(time.Minute, func() bool { return done }); err != nil {
				t.Fatal(err)
			}
			if said == nil || !strings.Contains(said.Error(), c.want) {
				t.Errorf("%v, want something with %q", said, c.want)
			}
		})
	}
}

func TestGiveUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l := openLoop(t)
	p := NewPool(l, netip.MustParseAddrPort(ln.Addr().String()), nil, 2, "t")
	cut := 0
	for i := 0; i < 5; i++ {
		p.Do(&Call{Method: "GET", Path: "/", Host: "h", Done: func(_ *Call, a *Answer) {
			if a.Err == ErrCanceled {
				cut++
			}
		}})
	}
	l.RunFor(20*time.Millisecond, nil)
	p.CancelAll()
	if cut != 5 || p.Pending() != 0 || l.Open != 0 {
		t.Errorf("%d given up, %d under way, %d connections", cut, p.Pending(), l.Open)
	}
}

// A call is not lost if the server closed the idle connection and the client has not noticed yet.
func TestReconnect(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		io.WriteString(w, "here")
	}))
	defer srv.Close()
	l := openLoop(t)
	p := NewPool(l, netip.MustParseAddrPort(srv.Listener.Addr().String()), nil, 1, "t")
	for i := range 2 {
		var said string
		var err error
		p.Do(&Call{Method: "GET", Path: "/", Host: "h",
			Done: func(_ *Call, a *Answer) { said, err = string(a.Body), a.Err }})
		if l.RunFor(time.Minute, func() bool { return said != "" || err != nil }); said != "here" {
			t.Fatalf("call %d: %q, %v", i, said, err)
		}
		srv.CloseClientConnections()
		p.Reconnect()
	}
}

func TestNoListener(t *testing.T) {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	addr := netip.MustParseAddrPort(ln.Addr().String())
	ln.Close()
	l := openLoop(t)
	p := NewPool(l, addr, []netip.Addr{netip.MustParseAddr("127.0.0.9")}, 1, "t")
	var said error
	p.Do(&Call{Method: "GET", Path: "/", Host: "h", Done: func(_ *Call, a *Answer) { said = a.Err }})
	l.RunFor(time.Minute, func() bool { return said != nil })
	if said == nil || !strings.Contains(said.Error(), "refused") {
		t.Errorf("a port without listener: %v", said)
	}
}

// An answer that arrives in any pieces is parsed the same.
func TestAnswerInPieces(t *testing.T) {
	const answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 11\r\nX: y\r\n\r\nhello world"
	l := openLoop(t)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := 0; i < 500; i++ {
		c := &Conn{Loop: l}
		var got string
		c.handler = handlerFunc(func(a *Answer) { got = fmt.Sprintf("%d %s %v", a.Status, a.Body, a.Err) })
		for rest := []byte(answer); len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			c.receive(bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		if got != "200 hello world <nil>" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

type handlerFunc func(*Answer)

func (h handlerFunc) Answer(_ *Conn, a *Answer) { h(a) }

func TestTimerOrder(t *testing.T) {
	l := openLoop(t)
	var got []int
	at := l.Now() + 5*time.Millisecond
	for _, i := range []int{0, 1, 2} {
		l.At(at, func() { got = append(got, i) })
	}
	l.At(at-2*time.Millisecond, func() { got = append(got, -1) })
	n := 0
	l.Every(time.Millisecond, func() bool { n++; return n < 4 })
	l.RunFor(time.Second, func() bool { return len(got) == 4 && n == 4 })
	if fmt.Sprint(got) != "[-1 0 1 2]" || n != 4 {
		t.Errorf("%v, %d", got, n)
	}
}

func TestScanEvents(t *testing.T) {
	body := `{"result":"success","msg":"","events":[
	 {"type":"message","flags":["read"],"message":{"id":77,"content":"<p>say \"hi\" \\</p>",
		"sender_id":5,"stream_id": 9,"reactions":[{"id":1}],"display_recipient":"a}]"},"local_message_id":"l1","id":4},
	 {"id" : 5 , "type":"heartbeat"}, {"id":6,"type":"message","message":{"id":78,"stream_id":null,"content":""}},
	 {"type":"submessage","message":"text","message_id":3,"op":"add","id":7}],"queue_id":"q"}`
	var got []string
	var e Event
	err := ScanEvents([]byte(body), &e, func(e *Event) bool {
		got = append(got, fmt.Sprintf("%d %s m%d s%d c%d %s %s %s", e.ID, e.Type, e.Message, e.Sender, e.Stream,
			e.Content, e.LocalID, e.Op))
		return true
	})
	want := []string{`4 message m77 s5 c9 <p>say \"hi\" \\</p> l1 `, `5 heartbeat m0 s0 c0   `,
		`6 message m78 s0 c0   `, `7 submessage m0 s0 c0   add`}
	if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%v\n%q\n%q", err, got, want)
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"events":[{]}`, `{"events":[{"id":1`, `{"events":{}}`, `<html>`,
		`{"events":[{"id":"x"}]}`} {
		if err := ScanEvents([]byte(bad), &e, func(*Event) bool { return true }); err == nil {
			t.Errorf("%q was accepted as events", bad)
		}
	}
}

func FuzzScanEvents(f *testing.F) {
	f.Add([]byte(`{"events":[{"id":1,"type":"message","message":{"id":2,"content":"x"}}]}`))
	f.Add([]byte(`{"events":[{"id":1,"a":[{"b":"\\\""}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Event
		ScanEvents(b, &e, func(e *Event) bool { return len(e.Raw) <= len(b) })
		Fields(b, func(k, v []byte) {})
	})
}

func BenchmarkScanEvents(b *testing.B) {
	body := []byte(`{"result":"success","msg":"","events":[{"type":"message","flags":[],"message":{"id":77,` +
		`"content":"<p>` +
		strings.Repeat("word ", 30) + `</p>","sender_id":5,"stream_id":9,"avatar_url":"` + strings.Repeat("x", 400) +
		`"},"id":4}],"queue_id":"q"}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var e Event
	for b.Loop() {
		ScanEvents(body, &e, func(*Event) bool { return true })
	}
}

// TestBoundedAnswers requires that answers without an end, or with an absurd length, fail instead of filling the
// memory,
// and that an answer may end with its connection.
func TestBoundedAnswers(t *testing.T) {
	flood := func(w io.Writer) {
		block := append([]byte("10000\r\n"), append(bytes.Repeat([]byte("x"), 1<<16), "\r\n"...)...)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		answer func(io.Writer)
		want   error
		body   string
	}{
		"endless chunks": {func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			flood(w)
		}, ErrTooLong, ""},
		"endless body": {func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
			flood(w)
		}, ErrTooLong, ""},
		"endless head": {func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nX: ")
			flood(w)
		}, ErrAnswer, ""},
		"huge length": {func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n")
		}, ErrTooLong, ""},
		"no status":  {func(w io.Writer) { io.WriteString(w, "HTTP/1.1 abc OK\r\n\r\n") }, ErrAnswer, ""},
		"to the end": {func(w io.Writer) { io.WriteString(w, "HTTP/1.0 200 OK\r\n\r\nhello") }, nil, "hello"},
		"in chunks": {func(w io.Writer) {
			io.WriteString(w,
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
		}, nil, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				conn.Read(make([]byte, 1000))
				c.answer(conn)
				conn.Close()
			}()
			l := openLoop(t)
			p := NewPool(l, netip.MustParseAddrPort(listener.Addr().String()), nil, 1, "test/1")
			done := false
			p.Do(&Call{Method: "GET", Path: "/", Host: "h", Done: func(_ *Call, a *Answer) {
				done = true
				if a.Err != c.want || string(a.Body) != c.body {
					t.Errorf("error %v and body %.20q, want %v and %q", a.Err, a.Body, c.want, c.body)
				}
			}})
			if err := l.RunFor(30*time.Second, func() bool { return done }); err != nil || !done {
				t.Errorf("no outcome: %v", err)
			}
			if l.buffered != 0 {
				t.Errorf("%d bytes are still counted as buffered", l.buffered)
			}
		})
	}
}

func TestNumbersTooLargeForIDs(t *testing.T) {
	if _, ok := Int([]byte("99999999999999999999")); ok {
		t.Error("a number of 20 digits was read as an id")
	}
	if n, ok := Int([]byte("-999999999999999999")); !ok || n != -999999999999999999 {
		t.Errorf("a number of 18 digits was read as %d", n)
	}
}
