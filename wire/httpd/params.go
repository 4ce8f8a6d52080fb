package httpd

import (
	"bytes"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
	"golang.org/x/text/encoding/charmap"

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
	addArgs(v, form.Query, ctx.QueryArgs())
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
		decode, err := formDecoder(kind)
		if err != nil {
			return err
		}
		var args fasthttp.Args
		args.ParseBytes(ctx.PostBody())
		if decode == nil {
			addArgs(v, form.Body, &args)
			return nil
		}
		for name, value := range args.All() {
			v.Add(form.Body, decode(name), decode(value))
		}
	}
	return nil
}

var errFormCharset = realm.Refuse(realm.Invalid, "BAD_REQUEST",
	"HTTP requests with the 'application/x-www-form-urlencoded' content type must be UTF-8 encoded.")

// formDecoder returns a function that decodes the text of a form by the charset of its content type; nil for UTF-8.
// Some libraries name Latin-1 for every form, also for one in UTF-8. So text that is valid UTF-8 remains as it is.
func formDecoder(contentType []byte) (func([]byte) string, error) {
	_, given, found := bytes.Cut(contentType, []byte(";"))
	if !found || bytes.EqualFold(bytes.TrimSpace(given), []byte("charset=utf-8")) { // nearly all forms
		return nil, nil
	}
	// parameters that cannot be read name no charset
	_, params, _ := mime.ParseMediaType(string(contentType))
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return nil, nil
	case "iso-8859-1", "latin1", "windows-1252", "cp1252":
		return func(b []byte) string {
			if utf8.Valid(b) {
				return string(b)
			}
			text, _ := charmap.Windows1252.NewDecoder().Bytes(b) // it has a character for every byte
			return string(text)
		}, nil
	}
	return nil, errFormCharset
}

// addArgs adds url-encoded parameters to v. The ordinary path and the fast path both use it.
func addArgs(v *form.Values, source form.Source, args *fasthttp.Args) {
	for name, value := range args.All() {
		v.Add(source, internParam(name), string(value))
	}
}

// internParam returns a parameter name. It does not allocate for the names in event polls, messages and presence
// reports, which are nearly all requests.
func internParam(b []byte) string {
	switch string(b) {
	case "queue_id":
		return "queue_id"
	case "last_event_id":
		return "last_event_id"
	case "dont_block":
		return "dont_block"
	case "type":
		return "type"
	case "to":
		return "to"
	case "topic":
		return "topic"
	case "subject":
		return "subject"
	case "content":
		return "content"
	case "local_id":
		return "local_id"
	case "read_by_sender":
		return "read_by_sender"
	case "status":
		return "status"
	case "ping_only":
		return "ping_only"
	case "new_user_input":
		return "new_user_input"
	case "last_update_id":
		return "last_update_id"
	}
	return string(b)
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
