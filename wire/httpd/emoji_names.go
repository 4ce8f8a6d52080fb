package httpd

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/markdown/emoji"
	"parley/wire/webapp"
)

// emojiNames returns the table as JSON, with the canonical name of each code first.
var emojiNames = sync.OnceValue(func() constantAnswer {
	body, err := json.Marshal(map[string]any{"code_to_names": emoji.NamesByCode()})
	if err != nil {
		panic(fmt.Sprintf("BUG: emoji names: %v", err))
	}
	return newConstantAnswer(append(body, '\n'))
})

// serveEmojiNames serves the table of emoji names. It needs no login. The table changes only with the program, so
// a client may cache it for a day and then revalidate it by its entity tag.
func (s *Server) serveEmojiNames(ctx *fasthttp.RequestCtx) {
	if s.serveWebAppFile(ctx, strings.TrimPrefix(wire.EmojiTablePath, webapp.StaticPath)) {
		return
	}
	if !s.writeConstant(ctx, emojiNames()) {
		return
	}
	ctx.Response.SkipBody = ctx.Response.SkipBody || ctx.IsHead()
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
	ctx.Response.Header.Del("Vary") // the names are English
}
