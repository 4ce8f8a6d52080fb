package httpd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// Limits of requests that another node carries out.
const (
	// MaxForwardWait is how long a request is sent again after its connection to the owner broke. A new owner takes
	// over within 3 seconds; clients repeat a request after 15 seconds or later.
	MaxForwardWait = 10 * time.Second
	// MaxForwardedPoll is how long a poll waits at the owner: longer than the time between two heartbeats.
	MaxForwardedPoll = 2 * time.Minute
	// MaxForwardedPolls limits the polls of a core that wait at the leader, because the core cannot host their queues.
	// Each holds two goroutines here and one there, about 50 kB. Others are answered 503: their clients poll another
	// node.
	MaxForwardedPolls = 8000
	// MaxReplicaWait is how long an answer waits until the replica of this node has the facts of the request.
	MaxReplicaWait = 5 * time.Second
)

// ForwardedRequest is a request of a client. A node that does not own the organization sends it to the owner.
type ForwardedRequest struct {
	ID     string // of the request; it is carried out once
	Realm  realm.ID
	User   realm.UserID // the account that the sender has found; 0: none. The owner checks the credentials again.
	Remote string       // key of the client's network, for the limits of the owner
	// Edge is the key of the connection over which the request arrived; see actors.Edge. The owner's end of the link
	// sets it, and ignores the sender's value.
	Edge  string
	Again bool // an earlier attempt may have been carried out
	// QueueOnly says that a registration only opens its queue, because the sender builds the state.
	QueueOnly bool
	HTTP      []byte // head and body

	poll bool // the answer may take as long as a poll waits
}

// hasID reports whether the id has a valid length.
func (r *ForwardedRequest) hasID() bool { return len(r.ID) > 0 && len(r.ID) <= realm.MaxRequestID }

// ForwardedAnswer is the answer of the owner.
type ForwardedAnswer struct {
	HTTP []byte    // head and body
	Seq  realm.Seq // the answer depends on facts up to this one
}

// Cluster is the HTTP server's access to the other nodes.
type Cluster interface {
	// Prepare waits until this node can answer requests to a host: it may have to load the organization, or to wait
	// for the owner. An error is the refusal of the request.
	Prepare(host string) error
	// IsReady reports whether Prepare need not wait for the owner.
	IsReady() bool
	// DialOwner opens a connection for HTTP to the owner.
	DialOwner() (net.Conn, error)
	// Owns reports whether this node owns an organization.
	Owns(realm.ID) bool
	// HostsQueues reports whether a core hosts event queues of an organization that it does not own; see
	// Options.ForwardAll.
	HostsQueues(realm.ID) bool
	// NewRequest returns a new id for a request of this node.
	NewRequest() string
	// Forward sends a request to the owner. An error that is an ErrNotForwarded says that the owner did not get it;
	// after any other error it may have been carried out. After an error it returns when the request can be sent
	// again: there is a connection to another owner, or a short time has passed.
	Forward(context.Context, ForwardedRequest) (ForwardedAnswer, error)
	// NewestSeq asks the owner for the last fact that it had acknowledged before the call, or later. Calls at the same
	// time share one question. An error says that the owner did not answer before the end of the context.
	NewestSeq(context.Context, realm.ID) (realm.Seq, error)
	// WaitFor waits until this node has the events of a fact.
	WaitFor(context.Context, realm.ID, realm.Seq) error
	// ExpectRequest runs a view right after the facts of a request.
	ExpectRequest(id realm.ID, c realm.Caller, request string, view func(realm.View, *realm.Queue) (any, error)) (
		wait func(context.Context) (any, error), cancel func())

	// DurableSeq returns the last fact of an organization that is on disk.
	DurableSeq(realm.ID) realm.Seq
	// FindRequest returns the last fact of a request, if it has recorded any.
	FindRequest(realm.ID, string) (realm.Seq, bool, error)
	// SentMessage returns the message that a user has sent in a turn, by the last fact of the turn.
	SentMessage(realm.ID, realm.UserID, realm.Seq) (realm.MessageID, bool, error)
}

// ErrNotForwarded says that the owner did not get a request.
var ErrNotForwarded = errors.New("the request was not sent to the owner")

// errOwnerGone is the answer to a request whose owner cannot be reached, or that may have been carried out and has no
// answer that can be given again.
var errOwnerGone = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The organization is being moved; try again in a few seconds.")

var errTooManyPolls = errors.New("too many polls wait at the owner")

// forwarding is the state of the requests that this node carries out for others.
type forwarding struct {
	mu      sync.Mutex
	running map[string]chan struct{} // by request id; closed at the end

	polls, refusedPolls atomic.Int64 // that wait at the owner; beyond MaxForwardedPolls
}

// ForwardedPolls returns how many polls wait at the owner, and how many were refused since there were too many.
func (s *Server) ForwardedPolls() (waiting, refused int64) {
	return s.forwarding.polls.Load(), s.forwarding.refusedPolls.Load()
}

// forwarded is a request of another node that is being carried out here.
type forwarded struct {
	request  ForwardedRequest
	parked   bool
	notOwner bool              // the request was not carried out, because this node is not the owner any more
	answer   chan parkedAnswer // has room for one
}

type parkedAnswer struct {
	status int
	body   []byte
}

// Answer takes the answer to a request that its endpoint has parked.
func (f *forwarded) Answer(status int, parts ...[]byte) bool {
	f.answer <- parkedAnswer{status, bytes.Join(parts, nil)}
	return true
}

// forwardedKey is the user value of a forwarded request's context.
const forwardedKey = "forwarded"

// forwardedOf returns the request of another node that a context belongs to, or nil.
func forwardedOf(ctx *fasthttp.RequestCtx) *forwarded {
	f, _ := ctx.UserValue(forwardedKey).(*forwarded)
	return f
}

var errBadRequestID = errors.New("the id of a forwarded request has a wrong length")

// ServeForwarded carries out a request of another node, which must be trusted: its request names the network of the
// client.
func (s *Server) ServeForwarded(r ForwardedRequest) (ForwardedAnswer, error) {
	if !r.hasID() {
		return ForwardedAnswer{}, errBadRequestID
	}
	defer s.forwarding.begin(r.ID)()
	var request fasthttp.Request
	sent := bufio.NewReader(bytes.NewReader(r.HTTP))
	if err := request.Header.Read(sent); err != nil {
		return ForwardedAnswer{}, err
	}
	body, err := io.ReadAll(sent)
	if err != nil {
		return ForwardedAnswer{}, err
	}
	request.SetBodyRaw(body)
	f := &forwarded{request: r, answer: make(chan parkedAnswer, 1)}
	ctx := contextOf(&request)
	ctx.SetUserValue(forwardedKey, f)
	s.handleForwarded(ctx)
	if f.notOwner {
		return ForwardedAnswer{}, notOwnerError{}
	}
	if f.parked {
		a := <-f.answer
		if kind := string(ctx.Response.Header.ContentType()); kind == eventStreamType && a.status == 200 {
			ctx.Response.SetBodyRaw(a.body)
		} else {
			s.writeJSON(ctx, a.status, a.body)
		}
	}
	ctx.Response.SkipBody = false // the other node leaves out the body of a HEAD request
	http, err := responseBytes(&ctx.Response)
	return ForwardedAnswer{http, s.options.Cluster.DurableSeq(r.Realm)}, err
}

// handleForwarded is Handle for a request of another node. A panic is answered as one of a client's request is.
func (s *Server) handleForwarded(ctx *fasthttp.RequestCtx) {
	defer func() {
		if x := recover(); x != nil {
			s.park.LogPanic(ctx, x)
			ctx.Response.Reset()
			s.writeError(ctx, fasthttp.StatusInternalServerError, "Internal server error")
		}
	}()
	s.Handle(ctx)
}

// responseBytes returns the head and body of a response.
func responseBytes(r *fasthttp.Response) ([]byte, error) {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	err := r.Write(w)
	if err == nil {
		err = w.Flush()
	}
	return out.Bytes(), err
}

// begin waits until no other attempt of a request is being carried out, and returns the function that ends this one.
func (f *forwarding) begin(id string) (end func()) {
	for {
		f.mu.Lock()
		other := f.running[id]
		if other == nil {
			defer f.mu.Unlock()
			return f.beginLocked(id)
		}
		f.mu.Unlock()
		<-other
	}
}

// beginLocked records an attempt. f.mu is held.
func (f *forwarding) beginLocked(id string) (end func()) {
	if f.running == nil {
		f.running = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	f.running[id] = done
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, id)
		close(done)
	}
}

// prepareForwarded gives the call of a request from another node its id. It reports true, and has answered, if the
// request was carried out before.
func (s *Server) prepareForwarded(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) (answered bool) {
	f := forwardedOf(ctx)
	if f == nil {
		return false
	}
	c.Caller.Request, c.Caller.Edge, c.QueueOnly = f.request.ID, f.request.Edge, f.request.QueueOnly
	if !f.request.Again || c.Realm == 0 {
		return false
	}
	seq, found, err := s.options.Cluster.FindRequest(c.Realm, f.request.ID)
	if err == nil && !found {
		return false
	}
	s.answerRepeated(ctx, c, e, seq, err)
	return true
}

// repeatedSend is the answer to a repeated request that has sent a message.
type repeatedSend struct {
	ID realm.MessageID `json:"id"`
}

// answerRepeated answers a request that was carried out before. The id of a message that was sent is found by its fact.
// The answers to other requests are not known any more.
func (s *Server) answerRepeated(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, seq realm.Seq, err error) {
	if err == nil && e.Method == "POST" && e.Path == messagesPath {
		var id realm.MessageID
		var found bool
		if id, found, err = s.options.Cluster.SentMessage(c.Realm, c.Caller.User, seq); err == nil && found {
			s.writeSuccess(ctx, c, e, repeatedSend{id})
			return
		}
	}
	if err != nil {
		s.options.Log.Error("looking up a repeated request failed", "realm", c.Realm, "err", err)
	}
	s.writeFailure(ctx, e, errOwnerGone)
}

// hasOtherOwner reports whether another node owns the organization of a call.
func (s *Server) hasOtherOwner(c *wire.Call) bool {
	return s.options.Cluster != nil && c.Realm != 0 && !s.options.Cluster.Owns(c.Realm)
}

// prepare waits until this node can answer requests to a host. It reports false if it has refused the request.
func (s *Server) prepare(ctx *fasthttp.RequestCtx) bool {
	if s.options.Sleeping != nil {
		if id, _ := s.options.Realms.ByHost(strings.ToLower(string(ctx.Host()))); id != 0 {
			if err := s.options.Sleeping.Wake(id); err != nil {
				s.writeRefusal(ctx, err)
				return false
			}
		}
	}
	if s.options.Cluster == nil || forwardedOf(ctx) != nil {
		return true
	}
	host := strings.ToLower(string(ctx.Host()))
	if err := s.options.Cluster.Prepare(host); err != nil {
		s.writeRefusal(ctx, err)
		return false
	}
	s.waitForWrites(ctx, host)
	return true
}

// mustWaitForOwner reports whether requests have to wait for the owner, so that they cannot be handled on a loop.
func (s *Server) mustWaitForOwner() bool {
	return s.options.Cluster != nil && (!s.options.Cluster.IsReady() || s.pause.isOn())
}

// runsHere reports whether an endpoint can be run at once on a node that does not own the organization: polls, reports
// of presence, which are sent to the owner in batches, and registrations, of which only the opening of the queue is
// forwarded. Edges run reads, too; for cores see waitToRead.
func (s *Server) runsHere(c *wire.Call, e *wire.Endpoint) bool {
	if e.AtOwner {
		return false
	}
	read, report := e.Method == "GET", e.Path == registerPath || e.Path == presencePath
	if s.options.ForwardAll {
		poll := read && e.Path == eventsPath
		return (poll || report) && c.Account != nil && s.options.Cluster.HostsQueues(c.Realm)
	}
	return read || report
}

// isReadAtFollower reports whether a client reads at a core that does not own the organization. Polls are not reads.
func (s *Server) isReadAtFollower(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) bool {
	return s.options.ForwardAll && e.Method == "GET" && e.Path != eventsPath && forwardedOf(ctx) == nil &&
		s.hasOtherOwner(c)
}

// waitToRead waits until a core that does not own the organization has the facts that the owner had when the request
// arrived, so that a read at any core has everything that was acknowledged before it. It reports false if the request
// must be forwarded.
func (s *Server) waitToRead(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) bool {
	return s.isReadAtFollower(ctx, c, e) && !e.AtOwner && s.options.Cluster.HostsQueues(c.Realm) &&
		s.catchUp(c.Realm, math.MaxUint64) == nil
}

// mayReadAtOwner reports whether the owner may answer a read that this core has refused: this core has just lost its
// link, or has no search index. If this core has no memory for the answer, the owner must not need it either.
func (s *Server) mayReadAtOwner(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, err error) bool {
	var r *realm.Refusal
	return s.isReadAtFollower(ctx, c, e) && errors.As(err, &r) && r.Kind == realm.Busy && r.Code != answerMemoryCode
}

// callAgain returns the call of a read with the newest facts: they may have changed what the caller may do. It returns
// nil if it has refused the request.
func (s *Server) callAgain(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, r *route) *wire.Call {
	c = s.call(ctx, c.Params)
	if !e.Open {
		if err := s.authenticate(ctx, c, e, r); err != nil {
			s.writeUnauthenticated(ctx, e, err)
			return nil
		}
	}
	return c
}

const registerPath = "/register"

// forwardsPolls reports whether the polls of an organization are forwarded to the owner.
func (s *Server) forwardsPolls(id realm.ID) bool {
	return s.options.ForwardAll && !s.options.Cluster.Owns(id) && !s.options.Cluster.HostsQueues(id)
}

// forward lets the owner answer a request. The answer is sent when this node has its facts, so that the client reads
// its own writes here.
func (s *Server) forward(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) {
	if f := forwardedOf(ctx); f != nil { // the owner has changed meanwhile
		f.notOwner = true
		s.writeFailure(ctx, e, errOwnerGone)
		return
	}
	err := s.answerFromOwner(ctx, c, true)
	switch {
	case err != nil && isPoll(ctx) && s.draining.Err() != nil:
		s.answerDrainedPoll(ctx, c)
	case err != nil:
		s.writeFailure(ctx, e, errOwnerGone)
	}
}

// forwardPage lets the owner answer a request for a page. A form that may have been carried out is not sent again.
func (s *Server) forwardPage(ctx *fasthttp.RequestCtx, p *pageRequest) {
	if err := s.answerFromOwner(ctx, p.call, !p.posted()); err != nil {
		s.writePage(p, errOwnerGone, web.View{})
	}
}

// answerFromOwner writes the answer of the owner, or returns an error. repeat allows to send the request again if it
// may have been carried out; the owner then looks its id up.
func (s *Server) answerFromOwner(ctx *fasthttp.RequestCtx, c *wire.Call, repeat bool) error {
	if ctx.Request.IsBodyStream() || len(ctx.PostBody()) > MaxForwardedBody {
		err := s.streamToOwner(ctx, c.Realm)
		if err != nil {
			s.options.Log.Warn("streaming a request to the owner failed", "realm", c.Realm,
				"path", string(ctx.Path()), "err", err)
		}
		return err
	}
	limits, skipBody := rateLimitHeaders(ctx), ctx.IsHead()
	a, err := s.sendToOwner(s.forwardedRequest(ctx, c), repeat)
	if err == nil {
		ctx.Response.SkipBody = false
		err = ctx.Response.Read(bufio.NewReader(bytes.NewReader(a.HTTP)))
	}
	if err != nil {
		s.options.Log.Warn("forwarding a request to the owner failed", "realm", c.Realm,
			"path", string(ctx.Path()), "err", err)
		ctx.Response.Reset()
	}
	ctx.Response.SkipBody = skipBody
	for _, h := range limits {
		ctx.Response.Header.Set(h[0], h[1])
	}
	if err == nil {
		s.waitForReplica(c.Realm, a.Seq)
	}
	return err
}

// rateLimitHeaders returns the headers that this node has set: it counts the requests of its clients.
func rateLimitHeaders(ctx *fasthttp.RequestCtx) (list [][2]string) {
	for k, v := range ctx.Response.Header.All() {
		if bytes.HasPrefix(k, []byte("X-Ratelimit")) {
			list = append(list, [2]string{string(k), string(v)})
		}
	}
	return list
}

// forwardedRequest returns the request of a context, with a new id.
func (s *Server) forwardedRequest(ctx *fasthttp.RequestCtx, c *wire.Call) ForwardedRequest {
	var head fasthttp.RequestHeader
	ctx.Request.Header.CopyTo(&head)
	head.Del(fasthttp.HeaderExpect) // this node has answered it
	body := ctx.PostBody()
	if !head.IsGet() && !head.IsHead() {
		head.SetContentLength(len(body))
	}
	return ForwardedRequest{ID: s.options.Cluster.NewRequest(), Realm: c.Realm, User: c.Caller.User,
		Remote: s.remote(ctx), HTTP: append(bytes.Clone(head.Header()), body...),
		poll: isPoll(ctx)}
}

// sendToOwner sends a request until the owner has answered. Without repeat it stops when the request may have been
// carried out.
func (s *Server) sendToOwner(r ForwardedRequest, repeat bool) (ForwardedAnswer, error) {
	limit, until := MaxForwardWait, context.Background()
	if r.poll {
		limit, until = MaxForwardedPoll, s.draining
		defer s.forwarding.polls.Add(-1)
		if s.forwarding.polls.Add(1) > MaxForwardedPolls {
			s.forwarding.refusedPolls.Add(1)
			return ForwardedAnswer{}, errTooManyPolls
		}
		defer s.park.BeginWait()()
	}
	ctx, cancel := context.WithTimeout(until, limit)
	defer cancel()
	unsent := time.Now() // since then no attempt has reached the owner
	for {
		a, err := s.options.Cluster.Forward(ctx, r)
		if err == nil {
			return a, nil
		}
		if r.Again = r.Again || !errors.Is(err, ErrNotForwarded); r.Again && !repeat {
			return a, err
		}
		if !errors.Is(err, ErrNotForwarded) {
			unsent = time.Now()
		} else if time.Since(unsent) >= MaxForwardWait { // of a poll
			return a, err
		}
		if ctx.Err() != nil {
			return a, err
		}
	}
}

// waitForReplica waits until this node has a fact. A replica that is late does not change the answer.
func (s *Server) waitForReplica(id realm.ID, seq realm.Seq) {
	ctx, cancel := context.WithTimeout(context.Background(), MaxReplicaWait)
	defer cancel()
	if err := s.options.Cluster.WaitFor(ctx, id, seq); err != nil {
		s.options.Log.Warn("answer sent before the replica has its facts", "realm", id, "seq", uint64(seq), "err", err)
	}
}

// openQueue opens a queue that this node hosts: the owner records it, and the state is built here, right after the
// fact.
func (s *Server) openQueue(ctx *fasthttp.RequestCtx, c *wire.Call) func(realm.Register) (realm.Registered, error) {
	return func(cmd realm.Register) (realm.Registered, error) {
		if c.Account == nil { // a visitor has no queue
			state, err := wire.Read(c, func(v realm.View) (any, error) { return cmd.State(v, nil) })
			return realm.Registered{State: state}, err
		}
		r := s.forwardedRequest(ctx, c)
		r.QueueOnly = true
		var opened *realm.Queue
		wait, cancel := s.options.Cluster.ExpectRequest(c.Realm, c.Caller, r.ID,
			func(v realm.View, q *realm.Queue) (any, error) {
				opened = q
				return cmd.State(v, q)
			})
		a, err := s.sendToOwner(r, true)
		if err == nil {
			err = refusalIn(a.HTTP)
		}
		if err != nil {
			cancel()
			return realm.Registered{}, err
		}
		waiting, stop := context.WithTimeout(context.Background(), MaxReplicaWait)
		defer stop()
		state, err := wait(waiting)
		if err != nil {
			return realm.Registered{}, errOwnerGone
		}
		if opened == nil {
			return realm.Registered{}, errOwnerGone
		}
		s.waitForReplica(c.Realm, opened.At)
		return realm.Registered{Queue: opened, State: state}, nil
	}
}

// refusalIn returns the refusal in an answer of the owner, nil if the answer is a success.
func refusalIn(http []byte) error {
	var response fasthttp.Response
	if err := response.Read(bufio.NewReader(bytes.NewReader(http))); err != nil {
		return err
	}
	if response.StatusCode() == fasthttp.StatusOK {
		return nil
	}
	return &ownerRefusal{response.StatusCode(), string(response.Header.Peek("Retry-After")),
		bytes.Clone(response.Body())}
}

// ownerRefusal is a refusal by the owner, which the client gets unchanged.
type ownerRefusal struct {
	status     int
	retryAfter string
	body       []byte
}

func (r *ownerRefusal) Error() string { return string(r.body) }

// parkFor parks a request: that of a client until its answer, that of another node for ServeForwarded.
func (s *Server) parkFor(ctx *fasthttp.RequestCtx, c *wire.Call, gone func()) wire.Reply {
	if f := forwardedOf(ctx); f != nil {
		f.parked = true
		return f
	}
	return s.park.ParkFor(ctx, s.callerOf(ctx, c), gone)
}

// answerOwnershipError answers if an endpoint failed because another node owns the organization, or because the request
// was carried out before. It reports false if err has another cause.
func (s *Server) answerOwnershipError(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, err error) bool {
	var refused *ownerRefusal
	var repeated *realm.RepeatedRequest
	switch {
	case err == nil || s.options.Cluster == nil:
		return false
	case errors.As(err, &refused):
		if refused.retryAfter != "" {
			ctx.Response.Header.Set("Retry-After", refused.retryAfter)
		}
		s.writeJSON(ctx, refused.status, refused.body)
	case errors.As(err, &repeated):
		s.answerRepeated(ctx, c, e, repeated.Seq, nil)
	case errors.Is(err, realm.ErrNotOwner) && s.hasOtherOwner(c), s.mayReadAtOwner(ctx, c, e, err):
		s.forward(ctx, c, e)
	default:
		return false
	}
	return true
}
