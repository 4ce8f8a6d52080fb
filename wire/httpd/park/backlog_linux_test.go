package park

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// All connections made before the server exists are accepted at once, and all are served.
func TestBacklog(t *testing.T) {
	for _, kind := range []string{"epoll", "tls"} {
		t.Run(kind, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			raw, err := ln.(*net.TCPListener).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			raw.Control(func(fd uintptr) { unix.Listen(int(fd), 4) }) // a kernel backlog that is full at once
			backlog, err := CollectBacklog(0, ln)
			if err != nil {
				t.Fatal(err)
			}
			o := &pollOwner{t: t, ln: ln}
			const n = 500
			early := make([]*client, n)
			for i := range early {
				early[i] = o.dial()
				if kind != "tls" {
					early[i].get("/early")
				}
			}
			waitUntil(t, "all connections to be accepted", func() bool { return backlog.Len() == n })
			early[0].Close() // one client does not wait
			// a minute, because the handshakes run one after the other
			o = serveOn(t, kind, Config{ReadTimeout: time.Minute}, ln)
			if err := o.ServeBacklog(backlog); err != nil {
				t.Fatal(err)
			}
			for _, c := range early[1:] {
				if kind == "tls" {
					c.Conn = tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
					c.r.Reset(c.Conn)
					c.get("/early")
				}
				c.expectBody("hello /early")
			}
			late := o.dial()
			late.get("/late")
			late.expectBody("hello /late")
			if kind == "epoll" {
				early[1].get("/again")
				early[1].expectBody("hello /again")
			}
			waitUntil(t, "the closed connection to be noticed", func() bool { return o.Stats().Open == n })
		})
	}
}

// Requests that wait for another process do not delay the others of a backlog, however many they are.
func TestBacklogOfWaitingRequests(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const n = maxBacklogActive + 50
	backlog, err := CollectBacklog(0, ln)
	if err != nil {
		t.Fatal(err)
	}
	o := &pollOwner{t: t, ln: ln}
	waiting := make([]*client, n)
	for i := range waiting {
		waiting[i] = o.dial()
		waiting[i].get("/wait")
	}
	last := o.dial()
	last.get("/last")
	waitUntil(t, "all connections to be accepted", func() bool { return backlog.Len() == n+1 })
	release := make(chan struct{})
	o = serveOn(t, "epoll", Config{}, ln, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/wait" {
			end := o.BeginWait()
			<-release
			end()
		}
		ctx.SetBodyString("hello " + string(ctx.Path()))
	})
	if err := o.ServeBacklog(backlog); err != nil {
		t.Fatal(err)
	}
	last.expectBody("hello /last")
	close(release)
	for _, c := range waiting {
		c.expectBody("hello /wait")
	}
	waitUntil(t, "no active request", func() bool { return o.Stats().Active == 0 })
}

// A backlog holds no more than its maximum. The other connections are served once there is a server.
func TestBacklogIsBounded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	backlog, err := CollectBacklog(3, ln)
	if err != nil {
		t.Fatal(err)
	}
	o := &pollOwner{t: t, ln: ln}
	var early []*client
	for range 5 {
		c := o.dial()
		c.get("/")
		early = append(early, c)
	}
	waitUntil(t, "a full backlog", func() bool { return backlog.Len() == 3 })
	o = serveOn(t, "epoll", Config{}, ln)
	if err := o.ServeBacklog(backlog); err != nil {
		t.Fatal(err)
	}
	for _, c := range early {
		c.expectBody("hello /")
	}
}
