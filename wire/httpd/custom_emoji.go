package httpd

import (
	"bytes"
	"image/gif"
	"image/png"
	"os"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
)

// customEmoji serves an emoji's image, or the first picture of one that moves. Emoji are no secret of anybody: whoever
// knows the address sees them.
func (s *Server) customEmoji(ctx *fasthttp.RequestCtx, name string) {
	name, still := strings.CutPrefix(name, "still/")
	if still {
		name = strings.TrimSuffix(name, ".png")
	}
	c := s.fileCall(ctx)
	e, err := wire.Look(c, func(v realm.View) (realm.CustomEmoji, error) {
		e := v.EmojiFile(name)
		if e == nil || still && !e.Animated {
			return realm.CustomEmoji{}, realm.Missing("File not found")
		}
		return *e, nil
	})
	if err != nil {
		ctx.Response.Header.Del("Cache-Control")
		s.fail(ctx, fasthttp.StatusNotFound, "File not found")
		return
	}
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.Header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	if !still {
		s.sendFile(ctx, s.o.Pictures.Path(e.Hash), e.Kind)
		return
	}
	text, err := os.ReadFile(s.o.Pictures.Path(e.Hash))
	var b bytes.Buffer
	if err == nil {
		first, bad := gif.Decode(bytes.NewReader(text)) // only the first picture; its size was checked when it came
		if err = bad; err == nil {
			err = png.Encode(&b, first)
		}
	}
	if err != nil {
		ctx.Response.Header.Del("Cache-Control")
		s.fail(ctx, fasthttp.StatusNotFound, "File not found")
		return
	}
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.SetContentType("image/png")
	ctx.SetBody(b.Bytes())
}
