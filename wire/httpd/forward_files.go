package httpd

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

// Requests for files, and those with large bodies, are sent to the owner over separate connections, and both bodies are
// streamed. Only reads are sent again if the connection breaks before the answer.
const (
	// MaxForwardedBody is the largest body, in bytes, of a request that is forwarded in one message.
	MaxForwardedBody = 1 << 20
	// MaxOwnerConnections limits the connections for files to the owner. Others wait for up to maxOwnerWait.
	MaxOwnerConnections = 256
	maxOwnerWait        = 10 * time.Second
	// ownerIdle is how long such a connection waits for its next request.
	ownerIdle = 30 * time.Second
	// ownerTimeout limits the time between two blocks of a body.
	ownerTimeout = time.Minute
)

// The headers that nodes add to the requests and answers that they stream.
const (
	nodeHeaderPrefix = "X-Parley-Node-"
	remoteHeader     = nodeHeaderPrefix + "Remote"
	requestHeader    = nodeHeaderPrefix + "Request"
	realmHeader      = nodeHeaderPrefix + "Realm"
	seqHeader        = nodeHeaderPrefix + "Seq"
)

// newOwnerClient returns the client for the connections to the owner.
func newOwnerClient(dial func() (net.Conn, error)) *fasthttp.HostClient {
	return &fasthttp.HostClient{
		Addr:                          "owner",
		Dial:                          func(string) (net.Conn, error) { return dial() },
		MaxConns:                      MaxOwnerConnections,
		MaxConnWaitTimeout:            maxOwnerWait,
		MaxIdleConnDuration:           ownerIdle / 2, // before the owner closes it
		ReadTimeout:                   ownerTimeout,
		WriteTimeout:                  ownerTimeout,
		MaxIdemponentCallAttempts:     1,
		StreamResponseBody:            true,
		NoDefaultUserAgentHeader:      true,
		DisablePathNormalizing:        true,
		DisableHeaderNamesNormalizing: false,
		RetryIfErr: func(r *fasthttp.Request, _ int, _ error) (resetTimeout, retry bool) {
			return false, (r.Header.IsGet() || r.Header.IsHead()) && !r.IsBodyStream()
		},
	}
}

// streamToOwner lets the owner answer a request, and streams both bodies.
func (s *Server) streamToOwner(ctx *fasthttp.RequestCtx, id realm.ID) error {
	limits, skipBody := rateLimitHeaders(ctx), ctx.IsHead()
	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	ctx.Request.Header.CopyTo(&request.Header)
	request.SetRequestURIBytes(ctx.Request.Header.RequestURI())
	request.UseHostHeader = true
	deleteNodeHeaders(&request.Header)
	for _, h := range []string{fasthttp.HeaderExpect, fasthttp.HeaderConnection} {
		request.Header.Del(h)
	}
	request.Header.Set(remoteHeader, s.remote(ctx))
	request.Header.Set(requestHeader, s.options.Cluster.NewRequest())
	request.Header.Set(realmHeader, strconv.Itoa(int(id)))
	if ctx.Request.IsBodyStream() {
		// Without its Close: the body belongs to ctx.
		body := struct{ io.Reader }{ctx.RequestBodyStream()}
		request.SetBodyStream(body, ctx.Request.Header.ContentLength())
	} else {
		request.SetBodyRaw(ctx.PostBody())
	}
	response := &ctx.Response
	response.Reset()
	response.SkipBody = skipBody
	err := s.owner.Do(request, response)
	if err != nil {
		// The idle connections lead to the same node, which may not be the owner any more.
		s.owner.CloseIdleConnections()
		response.Reset()
		response.SkipBody = skipBody
		if ctx.IsGet() || ctx.IsHead() {
			err = s.owner.Do(request, response)
		}
	}
	if err != nil {
		response.Reset()
		response.SkipBody = skipBody
		return err
	}
	seq, _ := strconv.ParseUint(string(response.Header.Peek(seqHeader)), 10, 64)
	response.Header.Del(seqHeader)
	response.Header.Del(fasthttp.HeaderConnection)
	for _, h := range limits {
		response.Header.Set(h[0], h[1])
	}
	if !ctx.IsGet() && !ctx.IsHead() {
		s.waitForReplica(id, realm.Seq(seq))
	}
	return nil
}

// deleteNodeHeaders removes the headers that only nodes may send.
func deleteNodeHeaders(h *fasthttp.RequestHeader) {
	var names []string
	for k := range h.All() {
		if strings.HasPrefix(string(k), nodeHeaderPrefix) {
			names = append(names, string(k))
		}
	}
	for _, n := range names {
		h.Del(n)
	}
}

// serveAtOwner returns a handler that streams requests to the owner of the organization, if that is another node.
func (s *Server) serveAtOwner(serve fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		c := &wire.Call{Params: &form.Values{}}
		if s.options.Cluster != nil {
			c.Realm, c.Site = s.options.Realms.ByHost(strings.ToLower(string(ctx.Host())))
		}
		if !s.hasOtherOwner(c) {
			serve(ctx)
			return
		}
		if err := s.streamToOwner(ctx, c.Realm); err != nil {
			s.options.Log.Warn("streaming a file from the owner failed", "realm", c.Realm,
				"path", string(ctx.Path()), "err", err)
			s.writeRefusal(ctx, errOwnerGone)
		}
	}
}

// ServeNodes answers the requests that other nodes stream to this one, until the listener closes. allowed returns an
// error if the node of a connection may not send any; nodes are trusted to name the network of a client.
func (s *Server) ServeNodes(l net.Listener, allowed func(net.Conn) error) error {
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if err := s.serveNode(ctx, allowed); err != nil {
				ctx.Response.Reset()
				ctx.Error(err.Error(), fasthttp.StatusBadRequest)
				ctx.SetConnectionClose()
			}
		},
		StreamRequestBody:     true,
		Concurrency:           16 * MaxOwnerConnections,
		ReadBufferSize:        16 << 10, // heads are at most this long
		MaxRequestBodySize:    s.options.Park.MaxBody,
		IdleTimeout:           ownerIdle,
		ReadTimeout:           0, // between blocks it is up to the other node, which has limits for its clients
		WriteTimeout:          0,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		CloseOnShutdown:       true,
	}
	return server.Serve(l)
}

func (s *Server) serveNode(ctx *fasthttp.RequestCtx, allowed func(net.Conn) error) error {
	if err := allowed(ctx.Conn()); err != nil {
		return err
	}
	h := &ctx.Request.Header
	id, err := strconv.ParseInt(string(h.Peek(realmHeader)), 10, 32)
	if err != nil {
		return fmt.Errorf("the organization of a request from another node: %w", err)
	}
	f := &forwarded{
		request: ForwardedRequest{ID: string(h.Peek(requestHeader)), Realm: realm.ID(id),
			Remote: string(h.Peek(remoteHeader))},
		answer: make(chan parkedAnswer, 1),
	}
	if len(f.request.ID) == 0 || len(f.request.ID) > realm.MaxRequestID {
		return errBadRequestID
	}
	deleteNodeHeaders(h)
	if ctx.Request.IsBodyStream() && !streamsBody(h.Method(), h.RequestURI()) {
		limit := s.options.Park.MaxBody
		if s.options.Park.BodyLimit != nil {
			limit = s.options.Park.BodyLimit(h.Method(), h.RequestURI())
		}
		body, err := io.ReadAll(io.LimitReader(ctx.RequestBodyStream(), int64(limit)+1))
		if err != nil {
			return err
		}
		if len(body) > limit {
			return fasthttp.ErrBodyTooLarge
		}
		if err = ctx.Request.CloseBodyStream(); err != nil {
			return err
		}
		ctx.Request.SetBodyRaw(body)
		h.SetContentLength(len(body))
	}
	ctx.SetUserValue(forwardedKey, f)
	s.Handle(ctx)
	if f.parked {
		a := <-f.answer
		s.writeJSON(ctx, a.status, a.body)
	}
	if !bytes.Equal(h.Method(), []byte("GET")) {
		ctx.Response.Header.Set(seqHeader, strconv.FormatUint(uint64(s.options.Cluster.DurableSeq(f.request.Realm)),
			10))
	}
	return nil
}
