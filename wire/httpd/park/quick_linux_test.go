package park

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// picky takes what its function takes, and counts what it is offered.
type picky struct {
	take    func(*QuickRequest) bool
	offered chan string
}

func (k picky) Take(q *QuickRequest) bool {
	k.offered <- string(q.Target) + " of " + string(q.Host) + " by " + string(q.Authorization)
	return k.take(q)
}

func (k picky) Flush() {}

func pickyServer(t *testing.T, take func(*QuickRequest) bool) (*owner, chan string) {
	offered := make(chan string, 100)
	o := serve(t, "epoll", Config{NewQuick: func() Quick { return picky{take, offered} }, QuickTargets: []string{"/poll"}},
		func(o *owner, ctx *fasthttp.RequestCtx) { ctx.WriteString("handled") })
	return o, offered
}

// Only a request that is whole, alone and ordinary is offered; all others reach the handler unharmed.
func TestQuickIsOfferedOrdinaryRequestsOnly(t *testing.T) {
	o, offered := pickyServer(t, func(*QuickRequest) bool { return false })
	for _, c := range []struct {
		name    string
		packets []string
		answers int
		offered []string
	}{
		{"ordinary", []string{"GET /poll?a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic b\r\n\r\n"}, 1, []string{"/poll?a of x by Basic b"}},
		{"another target", []string{"GET /other HTTP/1.1\r\nHost: x\r\n\r\n"}, 1, nil},
		{"another method", []string{"POST /poll HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"}, 1, nil},
		{"in two packets", []string{"GET /poll HTTP/1.1\r\nHos", "t: x\r\n\r\n"}, 1, nil},
		{"two at once", []string{"GET /poll HTTP/1.1\r\nHost: x\r\n\r\nGET /poll HTTP/1.1\r\nHost: x\r\n\r\n"}, 2, nil},
		{"with a body", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"}, 1, nil},
		{"last of its connection", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}, 1, nil},
		{"old", []string{"GET /poll HTTP/1.0\r\nHost: x\r\n\r\n"}, 1, nil},
		{"two credentials", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"}, 1, nil},
		{"long", []string{"GET /poll HTTP/1.1\r\nHost: x\r\nCookie: " + strings.Repeat("c", 2*quickBuffer) + "\r\n\r\n"}, 1, nil},
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
					until(t, "the first packet to be read", func() bool { return o.Stats().BytesIn == before+int64(len(p)) })
				}
			}
			for range c.answers {
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if want := map[bool]int{true: 400, false: 200}[c.name == "without a host"]; res.StatusCode != want {
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
func TestQuickPanics(t *testing.T) {
	o, _ := pickyServer(t, func(*QuickRequest) bool { panic("no") })
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
	until(t, "both connections to be forgotten", func() bool { return o.Stats().Open == 0 })
}
