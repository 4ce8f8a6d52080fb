package httpd

import (
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"

	"parley/wire"
)

// TestAnonymousWorkIsCounted asks for documents and drawings without a login until the limit refuses. A drawing from
// the cache is not counted. Compressed documents share their bytes: they are not compressed for each request.
func TestAnonymousWorkIsCounted(t *testing.T) {
	s := New(Options{Tools: &wire.Tools{}, Limits: Limits{Visitor: 3}})
	ask := func(path string) *fasthttp.RequestCtx {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.SetRequestURI(path)
		ctx.Request.Header.Set("Accept-Encoding", "gzip")
		s.router.Handler(ctx)
		return ctx
	}
	a, b := ask("/api/openapi.json"), ask("/api/openapi.json")
	if x, y := a.Response.Body(), b.Response.Body(); len(x) == 0 || &x[0] != &y[0] {
		t.Error("the compressed description is not shared")
	}
	if status := ask(wire.EmojiTablePath).Response.StatusCode(); status != 200 {
		t.Errorf("emoji names: %d", status)
	}
	for _, path := range []string{"/api/openapi.json", wire.EmojiTablePath} {
		if ctx := ask(path); ctx.Response.StatusCode() != 429 || len(ctx.Response.Header.Peek("Retry-After")) == 0 {
			t.Errorf("%s beyond the limit: %d", path, ctx.Response.StatusCode())
		}
	}
	s.drawings = newLimiter(2, requestWindow)
	for n, want := range []int{200, 200, 429} {
		if status := ask(fmt.Sprintf("/user_avatars/1/generated/%d.png", n)).Response.StatusCode(); status != want {
			t.Errorf("drawing %d: %d, want %d", n, status, want)
		}
	}
	if status := ask("/user_avatars/1/generated/0.png").Response.StatusCode(); status != 200 {
		t.Errorf("a drawing from the cache: %d", status)
	}
}
