package httpd

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/markdown/emoji"
	"parley/wire/webapp"
)

// emojiNames returns the table as JSON, with the canonical name of each code first, and its entity tag.
var emojiNames = sync.OnceValues(func() (answer constantAnswer, version string) {
	body, err := json.Marshal(map[string]any{"code_to_names": emoji.NamesByCode()})
	if err != nil {
		panic(fmt.Sprintf("BUG: emoji names: %v", err))
	}
	hash := fnv.New64a()
	hash.Write(body)
	return newConstantAnswer(append(body, '\n')), fmt.Sprintf(`"%x"`, hash.Sum64())
})

// serveEmojiNames serves the table of emoji names. It needs no login. The table changes only with the program, so
// a client may cache it for a day and then revalidate it by its entity tag.
func (s *Server) serveEmojiNames(ctx *fasthttp.RequestCtx) {
	if s.serveWebAppFile(ctx, strings.TrimPrefix(wire.EmojiTablePath, webapp.StaticPath)) {
		return
	}
	answer, version := emojiNames()
	ctx.Response.SkipBody = ctx.IsHead()
	if string(ctx.Request.Header.Peek("If-None-Match")) == version {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		ctx.Response.SkipBody = true
	} else {
		s.writeConstant(ctx, answer)
	}
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
	ctx.Response.Header.Set("Vary", "Accept-Encoding")
	ctx.Response.Header.Set("ETag", version)
}
