package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The protocols on the address of a node. TLS chooses one of them for each connection (ALPN).
const (
	LinkProtocol = "parley-link" // see Server and Link
	JoinProtocol = "parley-join" // without a certificate of the client; see Join
	HTTPProtocol = "parley-http" // requests whose bodies are streamed
	RaftProtocol = "parley-raft"
	// FilesProtocol is for files that other cores do not have.
	FilesProtocol = "parley-files"
)

// Listener accepts the connections of other nodes, and gives each to the protocol that it asked for.
type Listener struct {
	listener  net.Listener
	config    *tls.Config
	protocols map[string]*protocolListener
	closed    chan struct{}
	once      sync.Once
	running   sync.WaitGroup
	refused   atomic.Pointer[func(net.Addr, error)]
	isMember  atomic.Pointer[func(node string, role Role) bool]

	unknown, members places // connections whose handshake is not finished
	addresses        memberAddresses
	greeting         sync.Map // net.Conn -> func(), to call when its ClientHello has arrived

	mu    sync.Mutex
	nodes map[*nodeConn]bool // open connections of nodes
}

// OnRefused calls fn with each connection that is refused in its handshake, and why.
func (l *Listener) OnRefused(fn func(from net.Addr, err error)) { l.refused.Store(&fn) }

// OnMember sets the function that reports whether a node is a member. The addresses of members have reserved places;
// see MaxMemberHandshakes. Without the function, every node with a certificate of the cluster is a member.
func (l *Listener) OnMember(fn func(node string, role Role) bool) { l.isMember.Store(&fn) }

// AddMemberAddress reserves places for the connections from an IP address.
func (l *Listener) AddMemberAddress(ip net.IP) { l.addresses.add(&net.TCPAddr{IP: ip}) }

// Handshakes returns the connections whose handshake is not finished, and how many were closed to make room for others.
func (l *Listener) Handshakes() (now int, closed int64) {
	n, closed := l.unknown.size()
	m, closedMembers := l.members.size()
	return n + m, closed + closedMembers
}

// CutOff ends the connections that a node has opened, of every protocol.
func (l *Listener) CutOff(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.nodes {
		if c.node == node {
			c.NetConn().Close() // without waiting until the other node reads the end
		}
	}
}

// Listen opens the address of a node for some protocols. Only nodes of the cluster can connect, except with
// JoinProtocol.
func Listen(address string, id *Identity, protocols ...string) (*Listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{listener: inner, protocols: map[string]*protocolListener{}, closed: make(chan struct{}),
		unknown: places{max: MaxHandshakes, perAddress: MaxHandshakesPerAddress},
		members: places{max: MaxMemberHandshakes, perAddress: MaxMemberHandshakesPerAddress},
		nodes:   map[*nodeConn]bool{}}
	strict := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{id.certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    id.roots,
		NextProtos:   slices.DeleteFunc(slices.Clone(protocols), func(p string) bool { return p == JoinProtocol }),
	}
	open := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: strict.Certificates, NextProtos: []string{JoinProtocol},
	}
	l.config = &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if greet, ok := l.greeting.Load(hello.Conn); ok {
				greet.(func())()
			}
			if slices.Equal(hello.SupportedProtos, []string{JoinProtocol}) && slices.Contains(protocols, JoinProtocol) {
				return open, nil
			}
			return strict, nil
		},
	}
	for _, p := range protocols {
		l.protocols[p] = &protocolListener{of: l, connections: make(chan net.Conn)}
	}
	l.running.Go(l.accept)
	return l, nil
}

// Addr returns the address that the listener has.
func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

// Protocol returns the connections of one protocol. Their handshake is done; NodeOf names the other node.
func (l *Listener) Protocol(name string) net.Listener { return l.protocols[name] }

// Close ends the listening. Connections that were accepted go on.
func (l *Listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.listener.Close()
		l.running.Wait()
	})
	return err
}

var errNoProtocol = errors.New("the connection asks for no protocol of this node")

func (l *Listener) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // too many open files, for example
			continue
		}
		waiting := &l.unknown
		if l.addresses.has(c.RemoteAddr()) {
			waiting = &l.members
		}
		p := waiting.enter(c)
		l.running.Go(func() {
			t, protocol := l.handshake(c, func() { waiting.greet(p) })
			waiting.leave(p)
			if t != nil {
				l.pass(t, protocol)
			}
		})
	}
}

// handshake makes the TLS handshake of a connection. It calls greeted when the ClientHello has arrived. It returns nil,
// and closes the connection, if the handshake fails.
func (l *Listener) handshake(c net.Conn, greeted func()) (net.Conn, *protocolListener) {
	t := tls.Server(c, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), HandshakeTimeout)
	defer cancel()
	silent := time.AfterFunc(HelloTimeout, cancel)
	defer silent.Stop()
	l.greeting.Store(c, func() { silent.Stop(); greeted() })
	defer l.greeting.Delete(c)
	go func() { // Close does not wait for clients that do not answer
		select {
		case <-l.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := t.HandshakeContext(ctx)
	p := l.protocols[t.ConnectionState().NegotiatedProtocol]
	if err == nil && p == nil {
		err = errNoProtocol
	}
	if err == nil && p == l.protocols[JoinProtocol] {
		return t, p
	}
	var n *nodeConn
	if err == nil {
		n, err = l.newNodeConn(t)
	}
	if err != nil {
		closeAfterAlert(c)
		if fn := l.refused.Load(); fn != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) &&
			ctx.Err() == nil {
			(*fn)(c.RemoteAddr(), err)
		}
		return nil, nil
	}
	return n, p
}

// pass gives a connection to its protocol.
func (l *Listener) pass(c net.Conn, p *protocolListener) {
	t := time.NewTimer(HandshakeTimeout)
	defer t.Stop()
	select {
	case p.connections <- c:
	case <-t.C:
		c.Close()
	case <-l.closed:
		c.Close()
	}
}

// nodeConn is an open connection of a node whose certificate was verified.
type nodeConn struct {
	*tls.Conn
	node string
	role Role
	of   *Listener
}

// newNodeConn records a connection, so that CutOff can end it.
func (l *Listener) newNodeConn(t *tls.Conn) (*nodeConn, error) {
	node, role, err := NodeOf(t)
	if err != nil {
		return nil, err
	}
	if fn := l.isMember.Load(); fn == nil || (*fn)(node, role) {
		l.addresses.add(t.RemoteAddr())
	}
	c := &nodeConn{t, node, role, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes[c] = true
	return c, nil
}

func (c *nodeConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.nodes, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

const (
	// alertTimeout and maxAfterAlert limit how long, and how many bytes, a refused connection is read.
	alertTimeout  = 500 * time.Millisecond
	maxAfterAlert = 64 << 10
)

// closeAfterAlert closes a connection whose handshake has failed. If it were closed at once while the other node still
// sends, that node would get a broken connection instead of the reason.
func closeAfterAlert(c net.Conn) {
	defer c.Close()
	t, ok := c.(*net.TCPConn)
	if ok && t.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(alertTimeout)) == nil {
		io.Copy(io.Discard, io.LimitReader(c, maxAfterAlert))
	}
}

// protocolListener is the net.Listener of one protocol.
type protocolListener struct {
	of          *Listener
	connections chan net.Conn
}

func (p *protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.of.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the whole listener: a server that closes its listener ends the node.
func (p *protocolListener) Close() error   { return p.of.Close() }
func (p *protocolListener) Addr() net.Addr { return p.of.Addr() }

// NodeOf returns the node at the other end of a connection.
func NodeOf(c net.Conn) (node string, role Role, err error) {
	if n, ok := c.(*nodeConn); ok {
		return n.node, n.role, nil
	}
	t, ok := c.(*tls.Conn)
	if !ok {
		return "", "", fmt.Errorf("a connection of type %T has no certificate", c)
	}
	state := t.ConnectionState()
	if len(state.VerifiedChains) == 0 {
		return "", "", errors.New("the other node has no verified certificate")
	}
	return nodeOf(state.PeerCertificates[0])
}

// Dial connects to a core for a protocol.
func (id *Identity) Dial(ctx context.Context, address, protocol string) (net.Conn, error) {
	return id.dial(ctx, address, Core.serverName(), protocol)
}

// DialNode connects to the node with an id.
func (id *Identity) DialNode(ctx context.Context, address, node, protocol string) (net.Conn, error) {
	return id.dial(ctx, address, node, protocol)
}

func (id *Identity) dial(ctx context.Context, address, name, protocol string) (net.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{id.certificate},
		RootCAs:      id.roots,
		ServerName:   name,
		NextProtos:   []string{protocol},
	}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, explain(err, address)
	}
	if got := c.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != protocol {
		c.Close()
		return nil, fmt.Errorf("connect to %s: the node does not speak %s", address, protocol)
	}
	return c, nil
}
