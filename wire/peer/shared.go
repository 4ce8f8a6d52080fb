package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Calls with a short request and a short answer share one stream: many of them are in one message, and the leader wakes
// up once for it. A call with a stream of its own costs the leader about as much again as a send.
const (
	// MaxSharedRequest is the size of a request up to which a call shares the stream. A longer one would delay others.
	MaxSharedRequest = 16 << 10
	// MaxSharedCalls limits the calls of one node on the stream that are not answered. Further ones get their own.
	MaxSharedCalls = 4096
	// maxSharedBatch is the size of a message from which calls or answers wait for the next one, in bytes.
	maxSharedBatch = 64 << 10
	// maxQueuedAnswers is the size of the answers that wait to be sent, in bytes, from which further ones wait at their
	// goroutines.
	maxQueuedAnswers = 1 << 20
	// maxAnswerNow is the size in bytes up to which an answer of SharedCalls is queued without waiting for room: actors
	// give such answers, and must not wait. The answer to a send has about 500.
	maxAnswerNow = 2 << 10
	// maxSharedAnswer limits an answer, in bytes, so that it fits into a message after those that wait.
	maxSharedAnswer = MaxMessage - 2*maxQueuedAnswers - MaxSharedCalls*maxAnswerNow

	// maxIdleAnswerers is how many goroutines wait for the next call of a node, with stacks of about 30 kB.
	maxIdleAnswerers = 64

	sharedMethod = "Calls"
)

// sharedCalls are the calls of this node that share a stream of a link.
type sharedCalls struct {
	link *Link

	mu      sync.Mutex
	begun   bool
	refused bool // the other node runs a release without this stream
	ended   error
	last    uint64
	waiting map[uint64]*sharedCall
	queue   []*sharedCall // that are not sent yet
	ready   chan struct{} // has room for one
}

// sharedCall is one call.
type sharedCall struct {
	id      uint64
	request []byte
	sent    bool
	done    chan struct{} // closed when there is an answer
	answer  []byte
	err     error
}

// CallShared is CallOnce for a short request with a short answer.
func (l *Link) CallShared(ctx context.Context, request []byte) (answer []byte, err error) {
	c := l.shared.add(request)
	if c == nil {
		return l.CallOnce(ctx, request)
	}
	select {
	case <-c.done:
		if errors.Is(c.err, errNoSharedCalls) {
			return l.CallOnce(ctx, request)
		}
		return c.answer, c.err
	case <-ctx.Done():
		return nil, l.shared.forget(c, ctx.Err())
	}
}

// add queues a call. It returns nil if the call needs a stream of its own.
func (s *sharedCalls) add(request []byte) *sharedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused || len(request) > MaxSharedRequest || len(s.waiting) >= MaxSharedCalls {
		return nil
	}
	if !s.begun {
		s.begun, s.waiting, s.ready = true, map[uint64]*sharedCall{}, make(chan struct{}, 1)
		go s.run()
	}
	s.last++
	c := &sharedCall{id: s.last, request: request, done: make(chan struct{})}
	if s.ended != nil {
		c.err = &NotSent{s.ended}
		close(c.done)
		return c
	}
	s.waiting[c.id], s.queue = c, append(s.queue, c)
	select {
	case s.ready <- struct{}{}:
	default:
	}
	return c
}

// forget ends the waiting for an answer, and returns the error for the caller.
func (s *sharedCalls) forget(c *sharedCall, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, c.id)
	if !c.sent {
		c.request = nil // it is not sent any more
		return &NotSent{err}
	}
	return err
}

// run sends calls and receives answers until the link breaks.
func (s *sharedCalls) run() {
	stream, err := s.link.newStream(s.link.ctx, sharedMethod)
	if err == nil {
		go s.send(stream)
		err = s.receive(stream)
	}
	if status.Code(err) == codes.Unimplemented {
		s.end(errNoSharedCalls)
		return
	}
	s.end(err)
	s.link.Close(err) // a link without this stream could forward nothing; the node opens another one
}

var (
	errNoSharedCalls = errors.New("the other node runs a release whose calls do not share a stream")
	errSharedCall    = errors.New("the other node sent calls or answers that are none")
	errSecondShared  = status.Error(codes.ResourceExhausted, "the node has such a stream already")
)

// end gives all calls an error. A node of an older release has carried out none of them.
func (s *sharedCalls) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.ended = errors.Is(err, errNoSharedCalls), err
	for _, c := range s.waiting {
		switch {
		case s.refused:
			c.err = err
		case c.sent:
			c.err = fmt.Errorf("the link broke: %w", err)
		default:
			c.err = &NotSent{err}
		}
		close(c.done)
	}
	s.waiting, s.queue = map[uint64]*sharedCall{}, nil
}

// take returns the next message, nil if no call waits.
func (s *sharedCalls) take() (message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.queue {
		if len(message) >= maxSharedBatch {
			break
		}
		if n++; c.request != nil {
			message = appendEntry(message, c.id, c.request)
			c.sent, c.request = true, nil
		}
	}
	if s.queue = s.queue[n:]; len(s.queue) > 0 {
		select {
		case s.ready <- struct{}{}:
		default:
		}
	} else {
		s.queue = nil
	}
	return message
}

func (s *sharedCalls) send(stream grpc.ClientStream) {
	for {
		select {
		case <-s.ready:
		case <-stream.Context().Done():
			return
		}
		if m := s.take(); m != nil {
			if err := send(stream, m); err != nil {
				return // receive has the reason
			}
		}
	}
}

func (s *sharedCalls) receive(stream grpc.ClientStream) error {
	for {
		m, err := receive(stream)
		if err != nil {
			return err
		}
		for len(m) > 0 {
			var id, code uint64
			var answer []byte
			if id, m = uvarint(m); m != nil {
				code, m = uvarint(m)
			}
			if answer, m, err = takeBytes(m); err != nil {
				return err
			}
			s.mu.Lock()
			if c := s.waiting[id]; c != nil {
				delete(s.waiting, id)
				if code == 0 {
					c.answer = answer
				} else {
					c.err = &CallError{uint32(code), string(answer)}
				}
				close(c.done)
			}
			s.mu.Unlock()
		}
	}
}

// appendEntry appends numbers and bytes with their length.
func appendEntry(m []byte, id uint64, data []byte) []byte {
	m = binary.AppendUvarint(m, id)
	return append(binary.AppendUvarint(m, uint64(len(data))), data...)
}

// uvarint takes a number from the beginning of m. rest is nil if there is none.
func uvarint(m []byte) (x uint64, rest []byte) {
	x, n := binary.Uvarint(m)
	if n <= 0 {
		return 0, nil
	}
	return x, m[n:]
}

// takeBytes takes bytes and their length from the beginning of m.
func takeBytes(m []byte) (data, rest []byte, err error) {
	n, rest := uvarint(m)
	if rest == nil || n > uint64(len(rest)) {
		return nil, nil, errSharedCall
	}
	return rest[:n:n], rest[n:], nil
}

// sharedAnswers are the answers to the calls of one node that share a stream.
type sharedAnswers struct {
	mu    sync.Mutex
	room  *sync.Cond // signalled when the answers are taken
	bytes []byte
	ended bool
	ready chan struct{} // has room for one
}

// add queues an answer. It waits while many bytes wait.
func (a *sharedAnswers) add(id uint64, code uint32, answer []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.bytes) > maxQueuedAnswers && !a.ended {
		a.room.Wait()
	}
	a.enqueue(id, code, answer)
}

// enqueue queues an answer, unless the stream has ended. a.mu is held.
func (a *sharedAnswers) enqueue(id uint64, code uint32, answer []byte) {
	if a.ended {
		return
	}
	a.bytes = binary.AppendUvarint(binary.AppendUvarint(a.bytes, id), uint64(code))
	a.bytes = append(binary.AppendUvarint(a.bytes, uint64(len(answer))), answer...)
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// take returns all answers that wait.
func (a *sharedAnswers) take() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.bytes
	a.bytes = nil
	a.room.Broadcast()
	return m
}

func (a *sharedAnswers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.room.Broadcast()
}

// serveShared answers the calls of a node that share a stream.
func (s *Server) serveShared(_ any, stream grpc.ServerStream) error {
	conn, err := connectionOf(stream.Context())
	if err != nil {
		return err
	}
	p := conn.peer.Load()
	if p == nil {
		return errNoLink
	}
	if !p.shares.CompareAndSwap(false, true) { // MaxSharedCalls limits the calls of the node
		return errSecondShared
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	answers := &sharedAnswers{ready: make(chan struct{}, 1)}
	answers.room = sync.NewCond(&answers.mu)
	defer answers.end()
	go func() {
		defer cancel()
		for {
			select {
			case <-answers.ready:
			case <-ctx.Done():
				return
			}
			if m := answers.take(); len(m) > 0 {
				if err := send(stream, m); err != nil {
					return
				}
			}
		}
	}()
	received := make(chan error, 1)
	go func() { received <- s.receiveShared(ctx, p, stream, answers) }()
	select {
	case err := <-received:
		return err
	case <-ctx.Done():
		return status.Error(codes.Unavailable, "the link has ended")
	}
}

// receiveShared receives calls and begins to answer them. While MaxSharedCalls are not answered it receives no more.
func (s *Server) receiveShared(ctx context.Context, p *Peer, stream grpc.ServerStream, answers *sharedAnswers) error {
	slots := make(chan struct{}, MaxSharedCalls)
	calls, idle := make(chan func()), make(chan struct{}, maxIdleAnswerers)
	defer close(calls)
	direct := s.handler.ShareCalls(p)
	for {
		m, err := receive(stream)
		if err != nil {
			return err
		}
		for len(m) > 0 {
			var id uint64
			var request []byte
			id, m = uvarint(m)
			if request, m, err = takeBytes(m); err != nil {
				p.Cut(err)
				return err
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			if direct != nil && direct.Begin(request, func(answer []byte, err error) {
				answers.answerNow(id, answer, err, slots)
			}) {
				continue
			}
			call := func() {
				s.answerShared(ctx, p, id, request, answers)
				<-slots
			}
			select {
			case calls <- call: // to a goroutine whose stack has grown already
			default:
				go func() {
					call()
					for {
						select {
						case idle <- struct{}{}:
						default:
							return
						}
						next, more := <-calls
						if <-idle; !more {
							return
						}
						next()
					}
				}()
			}
		}
		if direct != nil {
			direct.Flush()
		}
	}
}

// answerShared answers one call.
func (s *Server) answerShared(ctx context.Context, p *Peer, id uint64, request []byte, answers *sharedAnswers) {
	var answer []byte
	err := s.handler.Call(ctx, p, request, func(part []byte) error {
		if answer != nil {
			return errSharedCall
		}
		answer = part
		return nil
	})
	answers.answer(id, answer, err)
}

// answer queues the answer to a call or its error. It waits while many bytes wait.
func (a *sharedAnswers) answer(id uint64, answer []byte, err error) {
	if len(answer) > maxSharedAnswer {
		err = errLongMessage
	}
	if err != nil {
		a.add(id, codeOf(err), []byte(err.Error()))
		return
	}
	a.add(id, 0, answer)
}

// answerNow is answer without waiting, and releases the slot of the call.
func (a *sharedAnswers) answerNow(id uint64, answer []byte, err error, slots chan struct{}) {
	if err == nil && len(answer) <= maxAnswerNow {
		a.mu.Lock()
		a.enqueue(id, 0, answer)
		a.mu.Unlock()
		<-slots
		return
	}
	go func() {
		a.answer(id, answer, err)
		<-slots
	}()
}
