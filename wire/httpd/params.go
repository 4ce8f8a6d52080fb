package httpd

import (
	"bytes"
	"net/url"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

// maxFormPartBytes is the largest size of one ordinary part of a multipart body. Files have limits of their own.
const maxFormPartBytes = 1 << 20

var errTooManyParams = form.TooManyParams()

// tooManyParams reports whether url-encoded text has more than form.MaxParams parameters. It runs before the
// parameters take memory: a megabyte of them would take thirty.
func tooManyParams(b []byte) bool {
	for range form.MaxParams {
		n := bytes.IndexByte(b, '&')
		if n < 0 {
			return false
		}
		b = b[n+1:]
	}
	return len(b) > 0
}

// readParams adds the parameters of query and body to v. Strings are copied, because fasthttp reuses its buffers.
// The parameters of a streamed body are not read yet: see streamedFiles.
func readParams(ctx *fasthttp.RequestCtx, v *form.Values) error {
	if tooManyParams(ctx.URI().QueryString()) {
		return errTooManyParams
	}
	readQuery(ctx, v)
	kind := ctx.Request.Header.ContentType()
	// media types are case-insensitive
	if i := bytes.IndexAny(kind, ";ABCDEFGHIJKLMNOPQRSTUVWXYZ"); i >= 0 && kind[i] != ';' {
		name, _, _ := bytes.Cut(kind, []byte(";"))
		kind = append(bytes.ToLower(name), kind[len(name):]...)
		ctx.Request.Header.SetContentTypeBytes(kind)
	}
	if ctx.Request.IsBodyStream() { // read after authentication
		return nil
	}
	if len(ctx.PostBody()) == 0 {
		return nil
	}
	switch {
	case bytes.HasPrefix(kind, []byte("multipart/form-data")):
		f, err := ctx.MultipartForm()
		if err != nil {
			return realm.BadRequest("Malformed multipart body")
		}
		for k, list := range f.Value {
			for _, val := range list {
				if len(val) > maxFormPartBytes {
					return realm.Refuse(realm.TooLarge, "BAD_REQUEST", "Parameter too large")
				}
				v.Add(form.Body, k, val)
			}
		}
	case len(kind) == 0 || bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")):
		if tooManyParams(ctx.PostBody()) {
			return errTooManyParams
		}
		var args fasthttp.Args
		args.ParseBytes(ctx.PostBody())
		for k, val := range args.All() {
			v.Add(form.Body, string(k), string(val))
		}
	}
	return nil
}

func readQuery(ctx *fasthttp.RequestCtx, v *form.Values) {
	for k, val := range ctx.QueryArgs().All() {
		v.Add(form.Query, string(k), string(val))
	}
}

func unescape(s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return u
}

func clientName(v *form.Values, agent string) string {
	if c, ok := v.Get("client"); ok && c != "" {
		if r := []rune(c); len(r) > 30 {
			c = string(r[:30])
		}
		return c
	}
	return wire.ClientName(agent)
}
