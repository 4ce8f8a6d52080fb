package httpd

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// encodingKey is the user value of requests whose answer depends on the encodings that the client accepts.
type encodingKey struct{}

// acceptsGzip reports whether the client of a request accepts an answer compressed with gzip. Handle then adds to the
// answer that it depends on Accept-Encoding, also if it is not compressed: otherwise a cache could send the compressed
// form to a client that cannot read it.
func acceptsGzip(ctx *fasthttp.RequestCtx) bool {
	ctx.SetUserValue(encodingKey{}, true)
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)
	all, gzip := false, false
	for _, line := range lines {
		for len(line) > 0 {
			var item []byte
			item, line, _ = bytes.Cut(line, []byte(","))
			name, params, _ := bytes.Cut(item, []byte(";"))
			accepted := !isZeroQuality(params)
			switch name = bytes.TrimSpace(name); {
			case len(name) == 1 && name[0] == '*':
				all = accepted
			case bytes.EqualFold(name, []byte("gzip")), bytes.EqualFold(name, []byte("x-gzip")):
				if !accepted { // a name counts more than the star
					return false
				}
				gzip = true
			}
		}
	}
	return gzip || all
}

// isZeroQuality reports whether the parameters of an encoding say that the client refuses it: "q=0", "q=0.0".
func isZeroQuality(params []byte) bool {
	name, value, _ := strings.Cut(string(params), "=")
	value = strings.TrimSpace(value)
	return strings.EqualFold(strings.TrimSpace(name), "q") && value != "" && strings.Trim(value, "0.") == ""
}

// choosesEncoding reports whether the answer depends on the encodings that the client accepts.
func choosesEncoding(ctx *fasthttp.RequestCtx) bool { return ctx.UserValue(encodingKey{}) != nil }

// addVary adds a request header to those on which the answer depends.
func addVary(ctx *fasthttp.RequestCtx, header string) {
	vary := string(ctx.Response.Header.Peek(fasthttp.HeaderVary))
	for _, name := range strings.Split(vary, ",") {
		if strings.EqualFold(strings.TrimSpace(name), header) {
			return
		}
	}
	if vary != "" {
		header = vary + ", " + header
	}
	ctx.Response.Header.Set(fasthttp.HeaderVary, header)
}
