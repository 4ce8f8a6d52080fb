package httpd

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/valyala/fasthttp"

	"parley/wire"
)

// constantAnswer is a document that changes only with the program. It is compressed once, not for each request:
// anyone can ask for it without a login.
type constantAnswer struct {
	plain, compressed []byte // compressed is nil for content that is compressed already
	version           string // a hash of the content
}

func newConstantAnswer(body []byte) constantAnswer {
	a := incompressibleAnswer(body)
	a.compressed = fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestCompression)
	return a
}

// incompressibleAnswer is newConstantAnswer for content that is compressed already.
func incompressibleAnswer(body []byte) constantAnswer {
	hash := fnv.New64a()
	hash.Write(body)
	return constantAnswer{plain: body, version: fmt.Sprintf("%x", hash.Sum64())}
}

// whenAsked returns a function that builds an answer when it is first called. The files of the client take megabytes,
// and processor time to compress them, which a server without browsers does not need.
func whenAsked(read func() []byte, build func([]byte) constantAnswer) func() constantAnswer {
	return sync.OnceValue(func() constantAnswer { return build(read()) })
}

// writeConstant answers with a constant document, or with 304 to a client that has it. The request counts against the
// rate limit of the client's network: writeConstant reports false if it has refused the request.
func (s *Server) writeConstant(ctx *fasthttp.RequestCtx, a constantAnswer) bool {
	if err := limitRequest(ctx, s.visitors, s.remote(ctx)); err != nil {
		s.writeRefusal(ctx, err)
		return false
	}
	setCommonHeaders(ctx)
	ctx.SetContentType("application/json")
	body, tag := a.plain, `"`+a.version+`"`
	gzip := a.compressed != nil && acceptsGzip(ctx)
	if gzip {
		body, tag = a.compressed, `"`+a.version+`-gzip"`
	}
	ctx.Response.Header.Set("ETag", tag)
	if notModified(ctx, tag) {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		ctx.Response.SkipBody = true
		return true
	}
	if gzip {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
	}
	ctx.Response.SetBodyRaw(body)
	return true
}

// writeRefusal answers a request outside of the endpoints with an error of the protocol.
func (s *Server) writeRefusal(ctx *fasthttp.RequestCtx, err error) {
	status, body := wire.Failure(err)
	setRetryAfter(ctx, err)
	s.writeJSON(ctx, status, body)
}
