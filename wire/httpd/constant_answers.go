package httpd

import (
	"github.com/valyala/fasthttp"

	"parley/wire"
)

// constantAnswer is a document that changes only with the program. It is compressed once, not for each request:
// anyone can ask for it without a login.
type constantAnswer struct {
	plain, compressed []byte // compressed is nil for content that is compressed already
}

func newConstantAnswer(body []byte) constantAnswer {
	return constantAnswer{body, fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestCompression)}
}

// writeConstant answers with a constant document. The request counts against the rate limit of the client's network.
func (s *Server) writeConstant(ctx *fasthttp.RequestCtx, a constantAnswer) {
	if err := limitRequest(ctx, s.visitors, s.remote(ctx)); err != nil {
		s.writeRefusal(ctx, err)
		return
	}
	setCommonHeaders(ctx)
	ctx.SetContentType("application/json")
	if a.compressed != nil && ctx.Request.Header.HasAcceptEncoding("gzip") {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		ctx.Response.SetBodyRaw(a.compressed)
		return
	}
	ctx.Response.SetBodyRaw(a.plain)
}

// writeRefusal answers a request outside of the endpoints with an error of the protocol.
func (s *Server) writeRefusal(ctx *fasthttp.RequestCtx, err error) {
	status, body := wire.Failure(err)
	setRetryAfter(ctx, err)
	s.writeJSON(ctx, status, body)
}
