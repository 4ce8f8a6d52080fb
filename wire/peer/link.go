package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// connectionOf returns the connection of a stream.
func connectionOf(ctx context.Context) (*countingConn, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(linkInfo); ok && info.conn != nil {
			return info.conn, nil
		}
	}
	return nil, status.Error(codes.Unauthenticated, "the connection has no certificate")
}

// outgoing is the queue of messages to another node.
type outgoing struct {
	ready chan struct{} // has room for one
	mu    sync.Mutex
	list  [][]byte
	bytes int
	taken chan struct{} // closed when the messages are taken; nil: no one waits for that
}

func (o *outgoing) init() { o.ready = make(chan struct{}, 1) }

// add adds a message. It reports false if the queue is full.
func (o *outgoing) add(m []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) >= MaxQueued || o.bytes+len(m) > MaxQueuedBytes {
		return false
	}
	o.list, o.bytes = append(o.list, m), o.bytes+len(m)
	select {
	case o.ready <- struct{}{}:
	default:
	}
	return true
}

// take removes all messages. They do not count any more: the sender has at most one queue in its hands.
func (o *outgoing) take() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list, o.bytes = nil, 0
	if o.taken != nil {
		close(o.taken)
		o.taken = nil
	}
	return list
}

// waitForRoom returns when at most limit bytes wait, in at most half of the messages that may. It reports false if ctx
// has ended before.
func (o *outgoing) waitForRoom(ctx context.Context, limit int) bool {
	for ctx.Err() == nil {
		o.mu.Lock()
		if o.bytes <= limit && len(o.list) <= MaxQueued/2 {
			o.mu.Unlock()
			return true
		}
		if o.taken == nil {
			o.taken = make(chan struct{})
		}
		taken := o.taken
		o.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
		}
	}
	return false
}

func (o *outgoing) size() (messages, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list), o.bytes
}

// Link is the link that this node has opened to another one.
type Link struct {
	conn     *grpc.ClientConn
	raw      *countingConn
	node     string
	ctx      context.Context
	cancel   context.CancelCauseFunc
	outgoing outgoing
	shared   sharedCalls
	heard    atomic.Int64
	answer   []byte
	stream   grpc.ClientStream
	once     sync.Once
}

// DialTimeout limits the opening of a link.
const DialTimeout = 2 * time.Second

// Open opens a link to a core and sends a greeting. The answer is in Link.Answer. An ErrRefused or an ErrOtherCluster
// says that another try would not succeed.
func (id *Identity) Open(ctx context.Context, address string, greeting []byte) (*Link, error) {
	opening, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	l, err := id.connect(ctx, opening, address)
	if err != nil {
		return nil, err
	}
	if err = l.greet(opening, greeting); err != nil {
		l.Close(err)
		return nil, err
	}
	return l, nil
}

// connect opens a connection for a link. opening limits that, the link ends with ctx.
func (id *Identity) connect(ctx, opening context.Context, address string) (*Link, error) {
	raw, err := id.Dial(opening, address, LinkProtocol)
	if err != nil {
		return nil, err
	}
	node, _, err := NodeOf(raw)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	l := &Link{raw: &countingConn{Conn: raw}, node: node}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.outgoing.init()
	l.shared.link = l
	var used atomic.Bool
	l.conn, err = grpc.NewClient("passthrough:///core", grpc.WithTransportCredentials(handshakeDone{}),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frameCodec{}), grpc.MaxCallRecvMsgSize(MaxFrame)),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) { // the caller opens another link
				return nil, errors.New("the link is broken")
			}
			return l.raw, nil
		}))
	if err != nil {
		raw.Close()
		return nil, err
	}
	return l, nil
}

// greet opens the session and sends the greeting.
func (l *Link) greet(opening context.Context, greeting []byte) error {
	defer context.AfterFunc(opening, func() {
		if errors.Is(opening.Err(), context.DeadlineExceeded) {
			l.cancel(opening.Err())
		}
	})()
	err := l.openSession()
	if err == nil {
		err = send(l.stream, greeting)
	}
	return l.receiveAnswer(err)
}

func (l *Link) openSession() (err error) {
	l.stream, err = l.newStream(l.ctx, sessionMethod)
	return err
}

func (l *Link) newStream(ctx context.Context, method string) (grpc.ClientStream, error) {
	return l.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/"+serviceName+"/"+method)
}

// receiveAnswer receives the answer to the greeting. err is that of sending it; io.EOF says that the reason is in the
// answer.
func (l *Link) receiveAnswer(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		l.answer, err = receive(l.stream)
	}
	switch {
	case err == nil && len(l.answer) == 0:
		return errFrame
	case status.Code(err) == codes.PermissionDenied:
		return fmt.Errorf("%w: %s", ErrRefused, status.Convert(err).Message())
	case errors.Is(err, ErrVersion):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil && strings.Contains(err.Error(), "remote error: tls"): // with TLS 1.3 it comes after the handshake
		return explain(err, l.raw.RemoteAddr().String())
	}
	return err
}

// Node returns the node at the other end, by its certificate.
func (l *Link) Node() string { return l.node }

// Answer returns the answer to the greeting.
func (l *Link) Answer() []byte { return l.answer[1:] }

// Run passes on the messages of the other node, in order, until the link breaks.
func (l *Link) Run(receiveMessage func([]byte)) error {
	l.heard.Store(int64(time.Since(started)))
	err := runSession(l.ctx, l.cancel, l.stream, &l.outgoing, &l.heard, receiveMessage)
	l.Close(err)
	return err
}

// Silence returns how long ago the last sign of life came.
func (l *Link) Silence() time.Duration { return time.Since(started) - time.Duration(l.heard.Load()) }

// Traffic returns the bytes of the link: sent and received.
func (l *Link) Traffic() (sent, received int64) { return l.raw.sent.Load(), l.raw.received.Load() }

// Close ends the link, and its calls.
func (l *Link) Close(why error) {
	l.once.Do(func() {
		l.cancel(why)
		l.conn.Close()
		l.raw.Close()
	})
}

// Context ends with the link.
func (l *Link) Context() context.Context { return l.ctx }

// Send queues a message. The link breaks if too many wait.
func (l *Link) Send(message []byte) {
	if !l.outgoing.add(message) {
		l.Close(errSlow)
	}
}

// WaitForRoom returns when at most limit bytes wait to be sent, in at most half of the messages that may. It reports
// false if the link has ended before.
func (l *Link) WaitForRoom(limit int) bool { return l.outgoing.waitForRoom(l.ctx, limit) }

// CallError is an error that the other node has answered to a call.
type CallError struct {
	Code    uint32
	Message string
}

func (e *CallError) Error() string    { return e.Message }
func (e *CallError) LinkCode() uint32 { return e.Code }

// NotSent is the error of a call that the other node did not get.
type NotSent struct{ Err error }

func (e *NotSent) Error() string { return e.Err.Error() }
func (e *NotSent) Unwrap() error { return e.Err }

// Call sends a request and calls part with each part of the answer, until the other node ends the call. part must not
// wait long. An error of the other node is a CallError; a NotSent says that it did not get the request.
func (l *Link) Call(ctx context.Context, request []byte, part func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	stream, err := l.newStream(ctx, callMethod)
	if err != nil {
		return &NotSent{err}
	}
	if err = send(stream, request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for {
		m, err := receive(stream)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if s, ok := status.FromError(err); ok && err != nil {
			if s.Code() == codes.Unavailable || s.Code() == codes.Canceled || s.Code() == codes.Internal {
				return fmt.Errorf("the link broke: %s", s.Message())
			}
			return &CallError{uint32(s.Code()), s.Message()}
		}
		if err != nil {
			return err
		}
		if err = part(m); err != nil {
			return err
		}
	}
}

// CallOnce is Call for an answer of one part.
func (l *Link) CallOnce(ctx context.Context, request []byte) (answer []byte, err error) {
	err = l.Call(ctx, request, func(part []byte) error { answer = part; return nil })
	return answer, err
}
