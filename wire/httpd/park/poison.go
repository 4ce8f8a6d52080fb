//go:build poison

package park

import "github.com/valyala/fasthttp"

// Built with the tag poison, a server overwrites what a request was read from as soon as its handler has returned, and
// what a parked answer was composed in as soon as it is written. Whoever kept a piece of either, which the next request
// would change under his hands now and then, then sees nothing but poison, at once and every time: `make poison`.

// poison is a byte that no text of the protocol has.
const poison = 0xFE

// spoil overwrites b to the end of its capacity: what is beyond its length was somebody's a moment ago.
func poisonBuffer(b []byte) {
	b = b[:cap(b)]
	for i := range b {
		b[i] = poison
	}
}

// poisonRequest overwrites everything a handler can have got from its request but the method, from which fasthttp still
// tells whether the answer has a body.
func poisonRequest(ctx *fasthttp.RequestCtx) {
	method := string(ctx.Method())
	pieces := [][]byte{ctx.Request.Header.RawHeaders(), ctx.RequestURI(), ctx.Host(), ctx.UserAgent(), ctx.Referer(), ctx.Request.Header.ContentType()}
	if !ctx.Request.IsBodyStream() { // to look at a stream would read it
		pieces = append(pieces, ctx.Request.Body())
	}
	u := ctx.URI()
	pieces = append(pieces, u.FullURI(), u.PathOriginal(), u.Path(), u.QueryString(), u.Host(), u.Hash())
	for k, v := range ctx.Request.Header.All() { // the names may be fasthttp's constants, and so may "close"
		if string(k) != fasthttp.HeaderConnection {
			pieces = append(pieces, v)
		}
	}
	for k, v := range ctx.Request.Header.Cookies() {
		pieces = append(pieces, k, v)
	}
	args := []*fasthttp.Args{ctx.QueryArgs()}
	if !ctx.Request.IsBodyStream() && len(ctx.Request.Body()) < 64<<10 { // it parses: large ones would cost what they must not
		args = append(args, ctx.PostArgs())
	}
	for _, a := range args {
		for k, v := range a.All() {
			pieces = append(pieces, k, v)
		}
	}
	for _, p := range pieces {
		for i := range p {
			if len(p) > 1 { // a lone slash may be fasthttp's constant
				p[i] = poison
			}
		}
	}
	ctx.Request.Header.SetMethod(method)
}

// poisonUsed overwrites what was read of a request that is done with.
func (r *request) poisonUsed() { poisonBuffer(r.buf[:r.offset:r.offset]) }
