package httpd

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
)

// serveCustomEmoji serves the image of an emoji, or with the prefix "still/" the first frame of an animated one.
// It needs no login: every client that knows the address gets the image.
func (s *Server) serveCustomEmoji(ctx *fasthttp.RequestCtx, name string) {
	name, still := strings.CutPrefix(name, "still/")
	if still {
		name = strings.TrimSuffix(name, ".png")
	}
	c, ok := s.fileCall(ctx)
	if !ok {
		return
	}
	e, err := wire.Read(c, func(v realm.View) (realm.CustomEmoji, error) {
		e := v.EmojiFile(name)
		if e == nil || still && !e.Animated {
			return realm.CustomEmoji{}, realm.Missing("File not found")
		}
		return *e, nil
	})
	if err != nil {
		s.writeError(ctx, fasthttp.StatusNotFound, "File not found")
		return
	}
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.Header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	if !still {
		s.sendFile(ctx, realm.ContentFile, e.Hash, e.Kind)
		return
	}
	file, err := s.options.Tools.Files.Still(s.realmOf(ctx), e.Hash)
	switch {
	case errors.Is(err, wire.ErrThumbnailsBusy):
		s.writeBusy(ctx)
	case wire.IsTemporaryFileError(err):
		s.writeRefusal(ctx, err)
	case err != nil:
		s.writeError(ctx, fasthttp.StatusNotFound, "File not found")
	default:
		s.sendCachedFile(ctx, file, "image/png")
	}
}
