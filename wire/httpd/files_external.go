package httpd

import (
	"context"
	"errors"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire/pictures"
)

// serveExternalPicture serves a picture of another site that a message shows. Its address is signed, so that visitors
// cannot make the server fetch others. If the server fetches no pictures any more, the browser is redirected to the
// site. An organization that has closed external pictures shows none.
func (s *Server) serveExternalPicture(ctx *fasthttp.RequestCtx) {
	sign := s.options.Tools.Sign
	if sign == nil {
		s.writeError(ctx, fasthttp.StatusNotFound, "No such picture")
		return
	}
	address, ok := pictures.Original(sign, pathParam(ctx, "digest")+"/"+pathParam(ctx, "received_url"))
	if !ok {
		s.writeError(ctx, fasthttp.StatusForbidden, "Not a valid URL.")
		return
	}
	h := &ctx.Response.Header
	if err := s.options.Tools.Places.Ask(s.realmOf(ctx), realm.PlaceExternalPictures); err != nil {
		h.Set("Cache-Control", "no-store")
		s.writeError(ctx, fasthttp.StatusNotFound, "No such picture")
		return
	}
	if s.options.Pictures.IsOff() {
		h.Set("Location", address)
		ctx.SetStatusCode(fasthttp.StatusFound)
		return
	}
	// Not the context of the request: others may wait for the same picture. The fetch has a limit of its own.
	x, err := s.options.Pictures.Get(context.Background(), organizationName(s.realmOf(ctx)), address)
	switch {
	case errors.Is(err, pictures.ErrBusy):
		s.writeBusy(ctx)
		return
	case err != nil:
		h.Set("Cache-Control", "no-store")
		s.writeError(ctx, fasthttp.StatusNotFound, "No such picture")
		return
	}
	setUploadHeaders(ctx)
	h.Set("Cache-Control", "private, max-age=86400")
	ctx.SetContentType(x.Type)
	ctx.Response.SetBodyRaw(x.Data)
}
