//go:build poison

package park

import (
	"bytes"
	"testing"

	"github.com/valyala/fasthttp"
)

// Poison reaches every piece of a request that a handler can keep, parked or not. Otherwise a run of all tests
// with the tag would prove nothing.
func TestPoisonReachesWhatAHandlerKeeps(t *testing.T) {
	type kept struct {
		pieces map[string][]byte
		before map[string]string
	}
	got := make(chan kept, 1)
	o := serve(t, "epoll", Config{}, func(o *pollOwner, ctx *fasthttp.RequestCtx) {
		k := kept{pieces: map[string][]byte{
			"body": ctx.PostBody(), "path": ctx.Path(), "target": ctx.RequestURI(),
			"query": ctx.QueryArgs().Peek("q"), "form": ctx.PostArgs().Peek("f"),
			"header": ctx.Request.Header.Peek("X-Kept"), "host": ctx.Host(), "agent": ctx.UserAgent()},
			before: map[string]string{}}
		for name, b := range k.pieces {
			k.before[name] = string(b)
		}
		got <- k
		if string(ctx.Path()) == "/poll" {
			o.handle(ctx)
		}
	})
	c := o.dial()
	for _, path := range []string{"/plain", "/poll"} {
		c.write("POST %s?q=query HTTP/1.1\r\nHost: some.host\r\nUser-Agent: agent\r\nX-Kept: header\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\nf=form", path)
		if path == "/poll" {
			o.mustAnswer(o.nextPoll(), "late")
		}
		c.readAnswer()
		k := <-got
		for name, b := range k.pieces {
			if len(b) == 0 || bytes.Count(b, []byte{poison}) != len(b) {
				t.Errorf("%s: %s was %q and is %q, not poisoned", path, name, k.before[name], b)
			}
		}
	}
}
