package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// strangers open connections without a certificate and hold them.
type strangers struct {
	t       *testing.T
	address string
}

// connect opens n connections, from one address or from a different one each, and calls begin with each of them.
func (s strangers) connect(n int, addresses bool, begin func(net.Conn) net.Conn) (list []net.Conn) {
	s.t.Helper()
	for i := range n {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
		if addresses {
			d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}
		}
		c, err := d.DialContext(s.t.Context(), "tcp", s.address)
		if err != nil {
			s.t.Fatal(err)
		}
		c = begin(c)
		s.t.Cleanup(func() { c.Close() })
		list = append(list, c)
	}
	return list
}

// silent sends nothing.
func silent(c net.Conn) net.Conn { return c }

// greets sends a ClientHello, and never the rest of the handshake.
func greets(protocol string) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn {
		ctx, cancel := context.WithCancel(context.Background())
		hello := &firstWrite{Conn: c, done: cancel}
		tls.Client(hello, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}).HandshakeContext(ctx)
		return c
	}
}

// firstWrite is a connection of which only the first write succeeds. It stays open.
type firstWrite struct {
	net.Conn
	done func()
}

func (f *firstWrite) Write(b []byte) (int, error) {
	defer f.done()
	return f.Conn.Write(b)
}
func (f *firstWrite) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (f *firstWrite) Close() error             { return nil }

// joins makes the handshake of a node that joins, which needs no certificate, and sends no request.
func joins(c net.Conn) net.Conn {
	t := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{JoinProtocol}})
	t.SetDeadline(time.Now().Add(HandshakeTimeout))
	t.Handshake() // fails if the connection had to make room for a later one
	return t
}

// Connections that show no certificate keep no node out: not a node that connects again from the same address, nor one
// that connects for the first time, nor one that joins. Their number is bounded, and they are closed soon.
func TestStrangersKeepNoNodeOut(t *testing.T) {
	const many = 400
	for name, begin := range map[string]func(net.Conn) net.Conn{
		"silent": silent, "after a ClientHello": greets(LinkProtocol),
		"after a ClientHello to join": greets(JoinProtocol),
		"without a request to join":   joins,
	} {
		for _, addresses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, many addresses %v", name, addresses), func(t *testing.T) {
				t.Parallel()
				c, h := newTestCluster(t), newTestHandler()
				address, l := c.serve(h, JoinProtocol)
				go ServeJoins(l.Protocol(JoinProtocol), func(r JoinRequest) JoinAnswer {
					return JoinAnswer{Error: "hello " + r.Node}
				})
				open := func(node string) {
					t.Helper()
					x, err := c.identity(node, Core).Open(t.Context(), address, []byte("hi"))
					if err != nil {
						t.Fatalf("node %s: %v", node, err)
					}
					x.Close(nil)
					wait(t, h.connected)
					wait(t, h.ended)
				}
				open("b")
				list := strangers{t, address}.connect(many, addresses, begin)
				open("b")
				open("c")
				token := Token{[]string{address}, c.authority.Fingerprint(), "x"}
				if _, err := Join(t.Context(), token, JoinRequest{Node: "d"}); err == nil || err.Error() != "hello d" {
					t.Errorf("a node that joins: %v", err)
				}
				if now, _ := l.Handshakes(); now > MaxHandshakes+MaxMemberHandshakesPerAddress {
					t.Errorf("%d handshakes are not finished", now)
				}
				for _, x := range list { // all end, the silent ones within HelloTimeout
					x.SetReadDeadline(time.Now().Add(testTimeout))
					if _, err := io.Copy(io.Discard, x); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
						t.Fatalf("a connection without a certificate stays open: %v", err)
					}
				}
			})
		}
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// A connection that is too much ends one that has sent nothing, of the address with most: those of other addresses
// stay.
func TestPlacesOfAddresses(t *testing.T) {
	s := places{max: 4, perAddress: 3}
	var closed []string
	enter := func(host, name string, greeted bool) *place {
		p := s.enter(&namedConn{from: &net.TCPAddr{IP: net.ParseIP(host)}, closed: func() {
			closed = append(closed, name)
		}})
		if greeted {
			s.greet(p)
		}
		return p
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if fmt.Sprint(closed) != fmt.Sprint(want) {
			t.Errorf("%s: closed are %v, want %v", what, closed, want)
		}
		closed = nil
	}
	enter("192.0.2.1", "a1", true)
	enter("192.0.2.1", "a2", false)
	first := enter("192.0.2.1", "a3", false)
	expect("as many as an address has")
	enter("192.0.2.1", "a4", false)
	expect("one more of the address", "a2")
	enter("2001:db8::1", "b1", false)
	expect("as many as there may be")
	enter("192.0.2.9", "c1", false)
	expect("one more of another address", "a3")
	enter("2001:db8::2", "b2", true)
	expect("one more of the same network", "a4")
	s.leave(first) // it was closed before
	enter("192.0.2.1", "a5", true)
	expect("the network with most has one that has sent nothing", "b1")
	if now, n := s.size(); now != 4 || n != 4 {
		t.Errorf("%d connections, %d closed", now, n)
	}
	m := memberAddresses{}
	for i := range maxMemberAddresses + 10 {
		m.add(&net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i))})
	}
	if len(m.used) != maxMemberAddresses || m.has(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 0)}) ||
		!m.has(&net.TCPAddr{IP: net.IPv4(10, 0, 4, 9)}) {
		t.Errorf("%d addresses of nodes are remembered", len(m.used))
	}
}

// namedConn is a connection from an address.
type namedConn struct {
	net.Conn
	from   net.Addr
	closed func()
}

func (c *namedConn) RemoteAddr() net.Addr { return c.from }
func (c *namedConn) Close() error         { c.closed(); return nil }

// The connections of a removed node end, of every protocol, and those of others stay.
func TestCutOff(t *testing.T) {
	c := newTestCluster(t)
	l, err := Listen("127.0.0.1:0", c.identity("a", Core), LinkProtocol, HTTPProtocol, RaftProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	open := map[string]net.Conn{}
	for _, node := range []string{"b", "c"} {
		for _, protocol := range []string{LinkProtocol, HTTPProtocol, RaftProtocol} {
			x, err := c.identity(node, Core).Dial(t.Context(), l.Addr().String(), protocol)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			served, err := l.Protocol(protocol).Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer served.Close()
			open[node+" "+protocol] = served
		}
	}
	l.CutOff("b")
	for name, served := range open {
		_, err := served.Write([]byte("x"))
		if cut := err != nil; cut != (name[0] == 'b') {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(l.nodes) != 6 {
		t.Errorf("%d connections are recorded", len(l.nodes))
	}
	for _, served := range open {
		served.Close()
	}
	if len(l.nodes) != 0 {
		t.Errorf("%d connections are recorded after their end", len(l.nodes))
	}
}
