package httpd

import (
	"bytes"
	"context"
	"sync"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
)

// pause lets requests wait while another node becomes the owner of the organizations, so that none is refused.
type pause struct {
	mu      sync.Mutex
	running int           // requests that have entered and not ended
	closed  chan struct{} // closed at the end of the pause; nil: there is none
	idle    chan struct{} // closed when no request is running; nil: no one waits for that
}

// isOn reports whether requests have to wait.
func (p *pause) isOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed != nil
}

// tryEnter lets a request in that must not wait, and reports false during a pause. The caller calls leave when the
// request has been passed to its organization.
func (p *pause) tryEnter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return false
	}
	p.running++
	return true
}

// enter waits for the end of a pause. The caller calls leave at the end of its request.
func (p *pause) enter() {
	p.mu.Lock()
	for p.closed != nil {
		closed := p.closed
		p.mu.Unlock()
		<-closed
		p.mu.Lock()
	}
	p.running++
	p.mu.Unlock()
}

// leave ends n requests.
func (p *pause) leave(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running -= n; p.running == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// begin begins a pause. idle is closed when the requests that were let in before have ended.
func (p *pause) begin() (idle <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan struct{})
	p.closed, p.idle = make(chan struct{}), c
	if p.running == 0 {
		close(c)
		p.idle = nil
	}
	return c
}

// end ends a pause.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.closed)
	p.closed, p.idle = nil, nil
}

// Pause lets new requests wait, and returns when the running ones have ended or ctx ends: they have been answered, or
// their commands are in the mailboxes of their organizations. The caller must call resume soon. Polls are not waited
// for. Only one pause is on at a time; a second call waits for the first.
func (s *Server) Pause(ctx context.Context) (resume func()) {
	s.pausing.Lock()
	select {
	case <-s.pause.begin():
	case <-ctx.Done():
	}
	return sync.OnceFunc(func() {
		s.pause.end()
		s.pausing.Unlock()
	})
}

// isPoll reports whether a request is a poll of an event queue.
func isPoll(ctx *fasthttp.RequestCtx) bool {
	return ctx.IsGet() && (bytes.HasSuffix(bytes.TrimRight(ctx.Path(), "/"), []byte(eventsPath)) ||
		string(ctx.Path()) == mcpPath)
}

// eventsPath ends the path of polls.
const eventsPath = "/events"

// answerDrainedPoll answers a poll that waits at the owner with no events, because this node stops: the client polls
// again, and reaches another node.
func (s *Server) answerDrainedPoll(ctx *fasthttp.RequestCtx, c *wire.Call) {
	queue, _ := c.Params.Get("queue_id")
	f := &forwarded{answer: make(chan parkedAnswer, 1)}
	wire.AnswerPoll(f, realm.QueueID(queue), nil)
	a := <-f.answer
	s.writeJSON(ctx, a.status, a.body)
}

// notOwnerError is the answer to a forwarded request that was not carried out, because this node does not own the
// organization any more.
type notOwnerError struct{}

func (notOwnerError) Error() string { return "the organization has another owner" }

// CodeNotOwner is the code of the answer on a link to a request that was not carried out, because the node does not own
// the organization any more.
const CodeNotOwner = 12

func (notOwnerError) LinkCode() uint32 { return CodeNotOwner }
