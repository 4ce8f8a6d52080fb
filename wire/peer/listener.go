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
)

const (
	// HandshakeTimeout limits the TLS handshake.
	HandshakeTimeout = 5 * time.Second
	// MaxHandshakes limits the connections of which the handshake is not finished. Others wait in the kernel.
	MaxHandshakes = 64
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
}

// OnRefused calls fn with each connection that is refused in its handshake, and why.
func (l *Listener) OnRefused(fn func(from net.Addr, err error)) { l.refused.Store(&fn) }

// Listen opens the address of a node for some protocols. Only nodes of the cluster can connect, except with
// JoinProtocol.
func Listen(address string, id *Identity, protocols ...string) (*Listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Listener{listener: inner, protocols: map[string]*protocolListener{}, closed: make(chan struct{})}
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
	places := make(chan struct{}, MaxHandshakes)
	for {
		places <- struct{}{}
		c, err := l.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			<-places
			time.Sleep(10 * time.Millisecond) // too many open files, for example
			continue
		}
		l.running.Go(func() {
			defer func() { <-places }()
			l.handshake(c)
		})
	}
}

// handshake passes a connection to its protocol.
func (l *Listener) handshake(c net.Conn) {
	t := tls.Server(c, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), HandshakeTimeout)
	defer cancel()
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
	if err != nil {
		closeAfterAlert(c)
		if fn := l.refused.Load(); fn != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			(*fn)(c.RemoteAddr(), err)
		}
		return
	}
	select {
	case p.connections <- t:
	case <-ctx.Done():
		c.Close()
	}
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
	if t, ok := c.(*net.TCPConn); ok && t.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(alertTimeout)) == nil {
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
