//go:build poison

package park

import "github.com/valyala/fasthttp"

// A server built with the tag poison overwrites memory that is no longer in use. The memory of a request is overwritten
// when its handler returns, that of a parked answer when it is written. Code that retained a piece of either would
// sometimes see it changed by the next request. With this tag it sees poison every time. Run `make poison`.

// poison is a byte that no text of the protocol contains.
const poison = 0xFE

// poisonBuffer overwrites b up to its capacity: the bytes beyond its length belonged to an earlier request.
func poisonBuffer(b []byte) {
	b = b[:cap(b)]
	for i := range b {
		b[i] = poison
	}
}

// poisonRequest overwrites everything that a handler can have taken from its request. The method is not overwritten:
// fasthttp still needs it to tell whether the answer has a body.
func poisonRequest(ctx *fasthttp.RequestCtx) {
	method := string(ctx.Method())
	pieces := [][]byte{ctx.Request.Header.RawHeaders(), ctx.RequestURI(), ctx.Host(), ctx.UserAgent(), ctx.Referer(),
		ctx.Request.Header.ContentType()}
	if !ctx.Request.IsBodyStream() { // looking at a stream would read it
		pieces = append(pieces, ctx.Request.Body())
	}
	u := ctx.URI()
	pieces = append(pieces, u.FullURI(), u.PathOriginal(), u.Path(), u.QueryString(), u.Host(), u.Hash())
	for k, v := range ctx.Request.Header.All() { // names, and the value "close", may be constants of fasthttp
		if string(k) != fasthttp.HeaderConnection {
			pieces = append(pieces, v)
		}
	}
	for k, v := range ctx.Request.Header.Cookies() {
		pieces = append(pieces, k, v)
	}
	args := []*fasthttp.Args{ctx.QueryArgs()}
	// PostArgs parses the body: too expensive for large ones
	if !ctx.Request.IsBodyStream() && len(ctx.Request.Body()) < 64<<10 {
		args = append(args, ctx.PostArgs())
	}
	for _, a := range args {
		for k, v := range a.All() {
			pieces = append(pieces, k, v)
		}
	}
	for _, p := range pieces {
		for i := range p {
			if len(p) > 1 { // a single slash may be a constant of fasthttp
				p[i] = poison
			}
		}
	}
	ctx.Request.Header.SetMethod(method)
}

// poisonUsed overwrites the bytes of a finished request.
func (r *request) poisonUsed() { poisonBuffer(r.buf[:r.offset:r.offset]) }
