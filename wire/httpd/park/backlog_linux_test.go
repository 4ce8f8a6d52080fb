package park

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who comes before the server is there is taken in at once, however many, and served in his turn.
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
			raw.Control(func(fd uintptr) { unix.Listen(int(fd), 4) }) // a backlog that is full at once
			room, err := CollectBacklog(0, ln)
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
			waitUntil(t, "everybody to be taken in", func() bool { return room.Len() == n })
			early[0].Close()                                           // one has not waited
			o = serveOn(t, kind, Config{ReadTimeout: time.Minute}, ln) // for the handshakes, one after the other
			if err := o.ServeBacklog(room); err != nil {
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
			waitUntil(t, "the one who left to be noticed", func() bool { return o.Stats().Open == n })
		})
	}
}

// A room holds no more than it may; the rest is served when there is a server.
func TestBacklogIsBounded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	room, err := CollectBacklog(3, ln)
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
	waitUntil(t, "a full room", func() bool { return room.Len() == 3 })
	o = serveOn(t, "epoll", Config{}, ln)
	if err := o.ServeBacklog(room); err != nil {
		t.Fatal(err)
	}
	for _, c := range early {
		c.expectBody("hello /")
	}
}
