package park

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketOptions checks that every connection has the options, also those that were waiting before Serve.
func TestSocketOptions(t *testing.T) {
	for _, multipath := range []bool{false, true} {
		testSocketOptions(t, multipath)
	}
}

func testSocketOptions(t *testing.T, multipath bool) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(multipath)
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := serve(t, "epoll", Config{KeepAlive: 1234e9})
	o.ln = ln
	c := o.dial()
	c.get("/")
	go o.Serve(ln)
	c.expectBody("hello /")
	seen := 0
	o.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		seen++
		for _, opt := range []struct{ level, name, want int }{
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1234},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 308},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4},
		} {
			if got, err := unix.GetsockoptInt(int(c.fd), opt.level, opt.name); got != opt.want {
				t.Errorf("multipath %v: option %d of level %d: %d %v, want %d", multipath, opt.name, opt.level, got,
					err, opt.want)
			}
		}
		if flags, err := unix.FcntlInt(uintptr(c.fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Error("socket blocks", err)
		}
	})
	if seen != 1 {
		t.Error("connections:", seen)
	}
}

func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	o := serve(t, "epoll", Config{MaxConnsPerIP: 1})
	o.ln = ln
	go o.Serve(ln)
	c := o.dial()
	c.get("/")
	c.expectBody("hello /")
	if a := o.dial().readAnswer(); a.StatusCode != 429 {
		t.Error(a.StatusCode)
	}
	seen := 0
	o.eachEvented(func(ec *eventConn) {
		ec.mu.Lock()
		defer ec.mu.Unlock()
		if ec.admitted {
			seen++
			if ec.remoteAddr().String() != c.LocalAddr().String() ||
				ec.localAddr().String() != c.RemoteAddr().String() {
				t.Error(ec.remoteAddr(), ec.localAddr())
			}
		}
	})
	if seen != 1 {
		t.Error("connections:", seen)
	}
}
