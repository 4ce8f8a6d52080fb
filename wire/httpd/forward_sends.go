package httpd

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd/park"
)

// ForwardedSends carries out the messages that another node sends, like the fast path of a loop: without a goroutine
// and a context of fasthttp for each. Those that arrive together are passed to their organizations together. It takes
// only ordinary requests; ServeForwarded answers all others. One goroutine uses it.
type ForwardedSends struct {
	path    fastPath
	targets map[string]*sendTarget // by the target of a request
}

// sendTarget is an address to which clients send messages.
type sendTarget struct {
	path string
	head []byte // of a successful answer, up to the length of its body
}

// forwardedSend is a message of another node that is being sent.
type forwardedSend struct {
	wire.FastSend
	server  *Server
	request ForwardedRequest
	target  *sendTarget
	end     func()
	done    func(ForwardedAnswer, error)
}

// NewForwardedSends returns the ForwardedSends for the requests of one node.
func (s *Server) NewForwardedSends() *ForwardedSends {
	x := &ForwardedSends{path: fastPath{server: s}, targets: map[string]*sendTarget{}}
	for _, prefix := range []string{apiPrefix, webPrefix} {
		path := prefix + messagesPath
		ctx := contextOf(&fasthttp.Request{})
		s.writeJSON(ctx, fasthttp.StatusOK, nil)
		s.finishHeaders(ctx, path)
		x.targets[path] = &sendTarget{path, headWithoutLength(&ctx.Response)}
	}
	return x
}

// contextOf returns a context for a request that has no connection.
func contextOf(r *fasthttp.Request) *fasthttp.RequestCtx {
	var ctx fasthttp.RequestCtx
	ctx.Init(r, &net.TCPAddr{IP: net.IPv4zero}, nil)
	return &ctx
}

// headWithoutLength returns the head of a response up to the value of Content-Length, which is its last header. Its
// date is left out: the other node sets that of its answer.
func headWithoutLength(r *fasthttp.Response) []byte {
	const name = fasthttp.HeaderContentLength + ": "
	var kept []string
	for line := range strings.SplitSeq(strings.TrimRight(string(r.Header.Header()), "\r\n"), "\r\n") {
		if !strings.HasPrefix(line, name) && !strings.HasPrefix(line, fasthttp.HeaderDate) {
			kept = append(kept, line)
		}
	}
	return []byte(strings.Join(append(kept, name), "\r\n"))
}

// Begin begins to carry out a request and returns true, or returns false without side effects: then ServeForwarded
// answers it. done is called once, at the latest soon after Flush, from another goroutine too. It must not wait.
func (x *ForwardedSends) Begin(r ForwardedRequest, done func(ForwardedAnswer, error)) (taken bool) {
	s := x.path.server
	if r.Again || r.QueueOnly || !r.hasID() || !bytes.HasPrefix(r.HTTP, []byte("POST ")) ||
		s.mustWaitForOwner() {
		return false
	}
	q, ok := park.ParseFastRequest(r.HTTP)
	if !ok || len(q.Authorization) == 0 { // the answer to a browser has a cookie; see setWritesCookie
		return false
	}
	target := x.targets[string(q.Target)]
	if target == nil || !x.path.enter() {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			s.options.Log.Error("BUG: a forwarded message panicked", "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			taken = false // the ordinary path answers it
		}
		if !taken {
			x.path.leave(1)
		}
	}()
	return x.begin(&q, &forwardedSend{server: s, request: r, target: target, done: done})
}

// begin is Begin for a request to send a message, which may be refused or unusual.
func (x *ForwardedSends) begin(q *park.FastRequest, m *forwardedSend) bool {
	f := &x.path
	c, ok := f.commandCall(q)
	if !ok || c.Realm != m.request.Realm {
		return false
	}
	c.Caller.Client = f.clientName(q.UserAgent, false)
	c.Caller.Request, c.Caller.Edge = m.request.ID, m.request.Edge
	if !m.Prepare(&c) {
		return false
	}
	if m.end, ok = f.server.forwarding.tryBegin(m.request.ID); !ok {
		return false
	}
	f.commands = append(f.commands, wire.AsyncCommand{Realm: c.Realm, Caller: c.Caller, CommandWithCallback: m})
	return true
}

// Flush passes the messages to their organizations. A message of a link has few hundred of them.
func (x *ForwardedSends) Flush() { x.path.Flush() }

// Done answers the other node.
func (m *forwardedSend) Done(v any, err error) {
	m.end()
	s := m.server
	if repeated := (*realm.RepeatedRequest)(nil); errors.Is(err, realm.ErrNotOwner) || errors.As(err, &repeated) {
		go func() { m.done(s.ServeForwarded(m.request)) }() // which knows what to answer
		return
	}
	status, body := m.Response(v, err)
	a := ForwardedAnswer{Seq: s.options.Cluster.DurableSeq(m.request.Realm)}
	if status == fasthttp.StatusOK {
		a.HTTP = make([]byte, 0, len(m.target.head)+len(body)+16)
		a.HTTP = append(a.HTTP, m.target.head...)
		a.HTTP = append(strconv.AppendInt(a.HTTP, int64(len(body)), 10), "\r\n\r\n"...)
		a.HTTP = append(a.HTTP, body...)
		m.done(a, nil)
		return
	}
	if status == fasthttp.StatusInternalServerError {
		s.options.Log.Error("request failed", "method", "POST", "path", messagesPath, "err", err)
	}
	ctx := contextOf(&fasthttp.Request{})
	setRetryAfter(ctx, err)
	s.writeJSON(ctx, status, body)
	s.finishHeaders(ctx, m.target.path)
	a.HTTP, err = responseBytes(&ctx.Response)
	m.done(a, err)
}

// tryBegin is begin for a request that must not wait. It reports false if another attempt is being carried out.
func (f *forwarding) tryBegin(id string) (end func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[id] != nil {
		return nil, false
	}
	return f.beginLocked(id), true
}
