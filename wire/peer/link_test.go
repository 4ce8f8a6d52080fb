package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const testTimeout = time.Minute

// testCluster issues identities of nodes.
type testCluster struct {
	t         testing.TB
	authority *Authority
}

func newTestCluster(t testing.TB) *testCluster {
	t.Helper()
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return &testCluster{t, a}
}

func (c *testCluster) identity(node string, role Role) *Identity {
	c.t.Helper()
	key, request, err := NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	certificate, err := c.authority.Issue(request, node, role)
	if err != nil {
		c.t.Fatal(err)
	}
	id, err := ReadIdentity(certificate, key, c.authority.Certificate())
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// testHandler is a core that answers each call with its request, and notes each event.
type testHandler struct {
	shared    SharedCalls
	connected chan *Peer
	ended     chan error
	refuse    error

	mu       sync.Mutex
	received []string
	call     func(ctx context.Context, request []byte, reply func([]byte) error) error
}

func newTestHandler() *testHandler {
	return &testHandler{connected: make(chan *Peer, 10), ended: make(chan error, 10)}
}

func (h *testHandler) Connect(p *Peer, greeting []byte) ([]byte, error) {
	return append([]byte("welcome, "), greeting...), h.refuse
}
func (h *testHandler) Connected(p *Peer)               { h.connected <- p }
func (h *testHandler) Disconnect(p *Peer, err error)   { h.ended <- err }
func (h *testHandler) Receive(p *Peer, message []byte) { h.note(string(message)) }
func (h *testHandler) ShareCalls(*Peer) SharedCalls    { return h.shared }
func (h *testHandler) note(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, text)
}

func (h *testHandler) Call(ctx context.Context, _ *Peer, request []byte, reply func([]byte) error) error {
	h.mu.Lock()
	call := h.call
	h.mu.Unlock()
	if call != nil {
		return call(ctx, request, reply)
	}
	return reply(request)
}

// serve starts a core. The test serves the further protocols.
func (c *testCluster) serve(h *testHandler, further ...string) (address string, listener *Listener) {
	c.t.Helper()
	l, err := Listen("127.0.0.1:0", c.identity("a", Core), append(further, LinkProtocol)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.run(NewServer(h), l)
	return l.Addr().String(), l
}

// run runs a server until the end of the test.
func (c *testCluster) run(s *Server, l *Listener) {
	done := make(chan struct{})
	go func() { s.Serve(l.Protocol(LinkProtocol)); close(done) }()
	c.t.Cleanup(func() { l.Close(); s.Close(); <-done })
}

// wait returns the next value of a channel.
func wait[T any](t testing.TB, c chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(testTimeout):
		t.Fatal("nothing has happened")
		panic("not reached")
	}
}

// Messages of any size arrive in order on both sides, and calls are answered beside them.
func TestLink(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l, err := c.identity("b", Edge).Open(t.Context(), address, []byte("here is b"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(l.Answer()); got != "welcome, here is b" {
		t.Errorf("answer to the greeting: %s", got)
	}
	got := make(chan []byte, 10)
	go l.Run(func(m []byte) { got <- m })
	p := wait(t, h.connected)
	if p.Node != "b" || p.Role != Edge {
		t.Errorf("the core takes the node for %s, %s", p.Node, p.Role)
	}
	long := bytes.Repeat([]byte("0123456789"), 3*MaxFrame/10)
	p.Send([]byte("first"))
	p.Send(long)
	p.Send(nil)
	for i, want := range []string{"first", string(long), ""} {
		if m := wait(t, got); string(m) != want {
			t.Errorf("message %d has %d bytes instead of %d", i, len(m), len(want))
		}
	}
	answer, err := l.CallOnce(t.Context(), long)
	if err != nil || !bytes.Equal(answer, long) {
		t.Errorf("call: %d bytes, %v", len(answer), err)
	}
	if _, err := l.CallOnce(t.Context(), make([]byte, MaxMessage+1)); !errors.Is(err, errLongMessage) {
		t.Errorf("a request that is too long: %v", err)
	}
	sent, received := l.Traffic()
	if sent < int64(len(long)) || received < 2*int64(len(long)) {
		t.Errorf("%d bytes sent, %d received", sent, received)
	}
	l.Close(errors.New("done"))
	wait(t, h.ended)
	var notSent *NotSent
	if _, err := l.CallOnce(t.Context(), nil); !errors.As(err, &notSent) {
		t.Errorf("a call on a closed link: %v", err)
	}
}

// A node that does not read its messages is cut off, and the memory for it is bounded.
func TestSlowNodeIsCutOff(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l, err := c.identity("b", Edge).Open(t.Context(), address, []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(nil)
	p := wait(t, h.connected) // the link does not run: nothing is read
	most := 0
	for p.Context().Err() == nil {
		p.Send(make([]byte, 1<<20))
		_, n := p.Queued()
		most = max(most, n)
	}
	if err := wait(t, h.ended); !errors.Is(err, errSlow) {
		t.Errorf("the link has ended with: %v", err)
	}
	if most > MaxQueuedBytes {
		t.Errorf("%d bytes waited for a slow node", most)
	}
}

// The answer to a call waits for a node that reads slowly, and then goes on.
func TestSlowCallWaits(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	const parts = 200
	var sent atomic.Int64
	h.call = func(_ context.Context, _ []byte, reply func([]byte) error) error {
		for range parts {
			if err := reply(make([]byte, MaxFrame/2)); err != nil {
				return err
			}
			sent.Add(1)
		}
		return nil
	}
	address, _ := c.serve(h)
	l, err := c.identity("b", Edge).Open(t.Context(), address, []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(nil)
	go l.Run(func([]byte) {})
	received := 0
	err = l.Call(t.Context(), nil, func([]byte) error {
		if received++; received == 1 {
			// Calls on the same link are answered meanwhile, and the slow one has not been sent to its end.
			h.mu.Lock()
			h.call = nil
			h.mu.Unlock()
			for range 20 {
				if _, err := l.CallOnce(t.Context(), []byte("hello")); err != nil {
					t.Error(err)
				}
			}
			if n := sent.Load(); n > parts/2 {
				t.Errorf("%d of %d parts are in memory or on their way", n, parts)
			}
		}
		return nil
	})
	if err != nil || received != parts {
		t.Errorf("%d parts arrived: %v", received, err)
	}
}

// A core and a node with different certificates, roles, versions or reasons refuse each other with a text that says
// what to do.
func TestRefusedLinks(t *testing.T) {
	ours, theirs, h := newTestCluster(t), newTestCluster(t), newTestHandler()
	address, listener := ours.serve(h)
	seen := make(chan error, 10)
	listener.OnRefused(func(_ net.Addr, err error) { seen <- err })
	open := func(id *Identity) error {
		l, err := id.Open(t.Context(), address, []byte("hi"))
		if err == nil {
			l.Close(nil)
			return errors.New("connected")
		}
		return err
	}
	expect := func(what string, err, is error, text string) {
		t.Helper()
		if is != nil && !errors.Is(err, is) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	expect("a node of another cluster", open(theirs.identity("b", Edge)), ErrOtherCluster,
		"join this cluster with a new")
	wait(t, seen)
	stranger := theirs.identity("b", Edge)
	stranger.roots = ours.identity("b", Edge).roots // it trusts the core, which does not trust it
	expect("a certificate of another cluster", open(stranger), ErrOtherCluster, "does not accept the certificate")
	if err := wait(t, seen); !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("the core has refused it because of: %v", err)
	}
	h.refuse = errors.New("node b was removed")
	expect("a removed node", open(ours.identity("b", Edge)), ErrRefused, "node b was removed")
	h.refuse = nil
	_, err := ours.identity("b", Edge).DialNode(t.Context(), address, "c", LinkProtocol)
	expect("another node at the address", err, nil, "is not node c: check the address")
	if err := CheckVersion(Version + 1); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
	l, err := ours.identity("b", Edge).Open(t.Context(), address, []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(nil)
	wait(t, h.connected)
	newer := frame{Version + 1, lastFrame, kindMessage}
	if err := l.stream.SendMsg(&newer); err != nil {
		t.Fatal(err)
	}
	expect("a message of another version", wait(t, h.ended), ErrVersion, "run the same release on both")
}

// A greeting of another version is refused for good, with the reason.
func TestGreetingOfAnotherVersion(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	l, err := c.identity("b", Edge).connect(t.Context(), t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(nil)
	if err = l.openSession(); err != nil {
		t.Fatal(err)
	}
	newer := frame{Version + 1, lastFrame, 'h', 'i'}
	if err := l.stream.SendMsg(&newer); err != nil {
		t.Fatal(err)
	}
	if err := l.receiveAnswer(nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "the same release") {
		t.Errorf("a greeting of another version: %v", err)
	}
}

// A new link replaces the old one of the same node, and a link that says nothing is cut.
func TestLinkIsReplaced(t *testing.T) {
	c, h := newTestCluster(t), newTestHandler()
	address, _ := c.serve(h)
	id := c.identity("b", Edge)
	first, err := id.Open(t.Context(), address, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	wait(t, h.connected)
	second, err := id.Open(t.Context(), address, []byte("2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(t, h.ended); !errors.Is(err, errReplaced) {
		t.Errorf("the first link has ended with: %v", err)
	}
	wait(t, h.connected)
	first.Close(nil)
	// The second link does not run, so it sends no signs of life.
	if err := wait(t, h.ended); !errors.Is(err, errSilent) {
		t.Errorf("the silent link has ended with: %v", err)
	}
	second.Close(nil)
}

// TestWaitForRoomCountsMessages requires that a sender of many small messages waits before the link has too many of
// them, and goes on when they are taken.
func TestWaitForRoomCountsMessages(t *testing.T) {
	var o outgoing
	o.init()
	for range MaxQueued/2 + 1 {
		if !o.add([]byte{1}) {
			t.Fatal("a message is refused")
		}
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if o.waitForRoom(ended, 1<<20) {
		t.Errorf("there is room beside %d messages", MaxQueued/2+1)
	}
	waited := make(chan bool)
	go func() { waited <- o.waitForRoom(context.Background(), 1<<20) }()
	if list := o.take(); len(list) != MaxQueued/2+1 {
		t.Errorf("%d messages are taken", len(list))
	}
	if !<-waited {
		t.Error("there is no room after all messages are taken")
	}
}
