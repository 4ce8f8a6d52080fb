package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

const (
	// Heartbeat is the time between two signs of life on a link.
	Heartbeat = 200 * time.Millisecond
	// DeadAfter is how long a link may be silent. Then it counts as broken. Links between machines lose packets for a
	// moment, and a busy node may be late; a broken link costs its clients nothing if it comes back.
	DeadAfter = 900 * time.Millisecond
	// MaxQueued and MaxQueuedBytes limit the messages that wait to be sent to a node. A node that reads too slowly is
	// cut off. When it connects again it gets the present state.
	MaxQueued      = 10_000
	MaxQueuedBytes = 16 << 20
	// MaxCalls limits the calls of one node that are being answered. gRPC lets others wait at the sender. Polls that a
	// core forwards, httpd.MaxForwardedPolls of them, leave room for other requests.
	MaxCalls = 12_000
)

// Handler answers the messages of other nodes on links. Its methods are called by many goroutines.
type Handler interface {
	// Connect is called when a node opens a link, with its greeting. It returns the answer, or why the node must not
	// connect. The link works when Connect has returned.
	Connect(p *Peer, greeting []byte) (answer []byte, err error)
	// Connected is called after the answer to the greeting has been sent.
	Connected(p *Peer)
	// Receive is called with each message that the node sends, in order.
	Receive(p *Peer, message []byte)
	// Disconnect is called when the link has ended.
	Disconnect(p *Peer, err error)
	// Call answers a call. It calls reply for each part of the answer, which waits if the node reads slowly.
	Call(ctx context.Context, p *Peer, request []byte, reply func([]byte) error) error
	// ShareCalls is called when a node opens the stream that its short calls share. It returns nil if Call answers all
	// of them.
	ShareCalls(p *Peer) SharedCalls
}

// SharedCalls answers calls of a node that need not wait, without a goroutine for each. One goroutine uses it.
type SharedCalls interface {
	// Begin begins a call and returns true, or returns false without side effects: then Handler.Call answers it. done
	// is called once, at the latest soon after Flush, from another goroutine too. It does not wait.
	Begin(request []byte, done func(answer []byte, err error)) bool
	// Flush is called when no further call is available: Begin may have postponed work until now.
	Flush()
}

// Peer is a node that has opened a link to this one.
type Peer struct {
	Node string
	Role Role
	Link any // of the handler; set in Connect

	conn     net.Conn
	ctx      context.Context
	cancel   context.CancelCauseFunc
	outgoing outgoing
	shares   atomic.Bool  // it has the stream of serveShared
	heard    atomic.Int64 // when the last message came, in nanoseconds since started
	traffic  *countingConn
}

// Send queues a message. A node that does not read its messages is cut off.
func (p *Peer) Send(message []byte) {
	if !p.outgoing.add(message) {
		p.Cut(errSlow)
	}
}

// Cut ends the link.
func (p *Peer) Cut(why error) {
	p.cancel(why)
	p.conn.Close()
}

// Context ends with the link.
func (p *Peer) Context() context.Context { return p.ctx }

// Addr returns the address of the node.
func (p *Peer) Addr() net.Addr { return p.conn.RemoteAddr() }

// Traffic returns the bytes of the link: sent to the node and received from it.
func (p *Peer) Traffic() (sent, received int64) {
	return p.traffic.sent.Load(), p.traffic.received.Load()
}

// WaitForRoom returns when at most limit bytes wait to be sent, in at most half of the messages that may. It reports
// false if the link has ended before.
func (p *Peer) WaitForRoom(limit int) bool { return p.outgoing.waitForRoom(p.ctx, limit) }

// Queued returns the messages and bytes that wait to be sent.
func (p *Peer) Queued() (messages, bytes int) { return p.outgoing.size() }

var (
	errSlow   = errors.New("the node reads too slowly")
	errSilent = errors.New("no sign of life from the other node")
	// errReplaced ends the old link of a node that has opened another one.
	errReplaced = errors.New("the node has opened another link")
	errNoLink   = status.Error(codes.FailedPrecondition, "the node has opened no link")
)

// Server answers the links of other nodes.
type Server struct {
	handler Handler
	grpc    *grpc.Server
	mu      sync.Mutex
	peers   map[string]*Peer // by node
}

// started is the origin of the times in Peer.heard.
var started = time.Now()

// NewServer returns a server that serves nothing until Serve.
func NewServer(h Handler) *Server {
	s := newServer(h)
	s.register(sessionMethod, callMethod, sharedMethod)
	return s
}

// newServer returns a server without methods.
func newServer(h Handler) *Server {
	return &Server{handler: h, peers: map[string]*Peer{}, grpc: grpc.NewServer(
		grpc.Creds(handshakeDone{}), grpc.ForceServerCodecV2(frameCodec{}), grpc.MaxRecvMsgSize(MaxFrame),
		grpc.MaxConcurrentStreams(MaxCalls), grpc.ConnectionTimeout(HandshakeTimeout),
	)}
}

// register adds the methods of a release.
func (s *Server) register(methods ...string) {
	serve := map[string]grpc.StreamHandler{sessionMethod: s.serveSession, callMethod: s.serveCall,
		sharedMethod: s.serveShared}
	service := &grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil)}
	for _, m := range methods {
		service.Streams = append(service.Streams,
			grpc.StreamDesc{StreamName: m, ClientStreams: true, ServerStreams: true, Handler: serve[m]})
	}
	s.grpc.RegisterService(service, nil)
}

const (
	serviceName   = "parley.Link"
	sessionMethod = "Session"
	callMethod    = "Call"
)

// Serve answers links until the listener closes.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Close ends all links.
func (s *Server) Close() { s.grpc.Stop() }

// Peers returns the nodes with links.
func (s *Server) Peers() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Peer, 0, len(s.peers))
	for _, p := range s.peers {
		list = append(list, p)
	}
	return list
}

// Find returns the link of a node, or nil.
func (s *Server) Find(node string) *Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[node]
}

// serveSession handles the stream that a link consists of, besides its calls.
func (s *Server) serveSession(_ any, stream grpc.ServerStream) error {
	conn, err := connectionOf(stream.Context())
	if err != nil {
		return err
	}
	p := &Peer{Node: conn.node, Role: conn.role, conn: conn.Conn, traffic: conn}
	p.ctx, p.cancel = context.WithCancelCause(stream.Context())
	defer p.cancel(nil)
	p.outgoing.init()
	greeting, err := receive(stream)
	if errors.Is(err, ErrVersion) {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	if err != nil {
		return err
	}
	answer, err := s.handler.Connect(p, greeting)
	if err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	s.mu.Lock()
	old := s.peers[p.Node]
	s.peers[p.Node] = p
	s.mu.Unlock()
	conn.peer.Store(p)
	if old != nil {
		old.Cut(errReplaced)
	}
	p.heard.Store(int64(time.Since(started)))
	err = send(stream, []byte{kindMessage}, answer)
	if err == nil {
		s.handler.Connected(p)
		err = runSession(p.ctx, p.cancel, stream, &p.outgoing, &p.heard, func(m []byte) { s.handler.Receive(p, m) })
	}
	s.mu.Lock()
	if s.peers[p.Node] == p {
		delete(s.peers, p.Node)
	}
	s.mu.Unlock()
	if cause := context.Cause(p.ctx); cause != nil {
		err = cause
	}
	p.cancel(err)
	s.handler.Disconnect(p, err)
	conn.Conn.Close() // the calls of the node end, too
	return err
}

// Messages of a session begin with a byte that is one of these.
const (
	kindMessage = 0
	kindBeat    = 1
)

// runSession sends and receives the messages of a link until it breaks.
func runSession(ctx context.Context, cancel context.CancelCauseFunc, stream frameStream, out *outgoing,
	heard *atomic.Int64, receiveMessage func([]byte)) error {
	go func() {
		beat := time.NewTicker(Heartbeat)
		defer beat.Stop()
		for {
			var err error
			select {
			case <-ctx.Done():
				return
			case <-out.ready:
				for _, m := range out.take() {
					if err = send(stream, []byte{kindMessage}, m); err != nil {
						break
					}
				}
			case <-beat.C:
				err = send(stream, []byte{kindBeat})
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	go func() { // beside the sender, which waits if the other node does not read
		beat := time.NewTicker(Heartbeat / 2)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				if time.Since(started)-time.Duration(heard.Load()) > DeadAfter {
					cancel(errSilent)
				}
			}
		}
	}()
	received := make(chan error, 1)
	go func() {
		for {
			m, err := receive(stream)
			if err != nil {
				received <- err
				return
			}
			heard.Store(int64(time.Since(started)))
			if len(m) > 0 && m[0] == kindMessage {
				receiveMessage(m[1:])
			}
		}
	}()
	select {
	case err := <-received:
		cancel(err)
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serveCall answers one call.
func (s *Server) serveCall(_ any, stream grpc.ServerStream) error {
	conn, err := connectionOf(stream.Context())
	if err != nil {
		return err
	}
	p := conn.peer.Load()
	if p == nil {
		return errNoLink
	}
	request, err := receive(stream)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	if err = s.handler.Call(ctx, p, request, func(part []byte) error { return send(stream, part) }); err == nil {
		return nil
	}
	return status.Error(codes.Code(codeOf(err)), err.Error())
}

// codeOf returns the code with which the error of a call is sent.
func codeOf(err error) uint32 {
	var coded interface{ LinkCode() uint32 }
	if errors.As(err, &coded) {
		return coded.LinkCode()
	}
	return uint32(codes.Unknown)
}

// handshakeDone tells gRPC that connections are encrypted already.
type handshakeDone struct{}

// linkInfo has the connection of a stream.
type linkInfo struct {
	credentials.CommonAuthInfo
	conn *countingConn
}

func (linkInfo) AuthType() string { return "tls" }

func (handshakeDone) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	node, role, err := NodeOf(c)
	if err != nil {
		return nil, nil, err
	}
	x := &countingConn{Conn: c, node: node, role: role}
	return x, linkInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, x}, nil
}

func (handshakeDone) ClientHandshake(_ context.Context, _ string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c, linkInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

func (handshakeDone) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}
func (handshakeDone) Clone() credentials.TransportCredentials { return handshakeDone{} }
func (handshakeDone) OverrideServerName(string) error         { return nil }

// countingConn counts the bytes of a connection, before encryption, and knows the node at its other end.
type countingConn struct {
	net.Conn
	node           string
	role           Role
	peer           atomic.Pointer[Peer] // once its link is open
	sent, received atomic.Int64
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
