package httpd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/form"
)

// Resumable uploads: tus 1.0 with the extensions below. The web client sends all files this way. When the last piece has
// come the answer is the JSON a plain upload would have got.
const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,creation-with-upload,termination,expiration"
	tusBody       = "application/offset+octet-stream"
	maxTusNote    = 4 << 10 // bytes of Upload-Metadata: a file name, a type
)

func (s *Server) resumable() {
	for _, prefix := range []string{"/api/v1/tus", "/json/tus"} {
		s.router.ANY(prefix, func(ctx *fasthttp.RequestCtx) { s.tus(ctx, prefix, "") })
		s.router.ANY(prefix+"/{id}", func(ctx *fasthttp.RequestCtx) { s.tus(ctx, prefix, param(ctx, "id")) })
	}
}

// tusRequest is one request of that protocol.
type tusRequest struct {
	*wire.Call
	ctx    *fasthttp.RequestCtx
	prefix string
}

func (s *Server) tus(ctx *fasthttp.RequestCtx, prefix, id string) {
	always(ctx)
	h := &ctx.Response.Header
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Tus-Resumable, Upload-Length, Upload-Metadata, Upload-Offset, X-HTTP-Method-Override, X-Requested-With")
	h.Set("Access-Control-Expose-Headers", "Location, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, Upload-Metadata, Upload-Offset")
	h.Set("Tus-Resumable", tusVersion)
	h.Set("X-Content-Type-Options", "nosniff")
	method := string(ctx.Method())
	if m := ctx.Request.Header.Peek("X-HTTP-Method-Override"); method == "POST" && len(m) > 0 {
		method = string(m)
	}
	if method == "OPTIONS" {
		h.Set("Tus-Version", tusVersion)
		h.Set("Tus-Extension", tusExtensions)
		h.Set("Tus-Max-Size", strconv.Itoa(wire.MaxUpload))
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	c := &wire.Call{House: s.o.House, Tools: s.o.Tools, Params: &form.Values{}, Agent: string(ctx.UserAgent())}
	c.Realm, c.Site = s.o.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	c.Caller.Client = wire.ClientName(c.Agent)
	if err := s.authenticate(ctx, c, &wire.Endpoint{}); err != nil {
		status, body := wire.Failure(err)
		if status == fasthttp.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Basic realm="zulip"`)
		}
		s.write(ctx, status, body)
		return
	}
	r := tusRequest{c, ctx, prefix}
	if method != "GET" && string(ctx.Request.Header.Peek("Tus-Resumable")) != tusVersion {
		h.Set("Tus-Version", tusVersion)
		r.fail(fasthttp.StatusPreconditionFailed, "BAD_REQUEST", "Unsupported tus version")
		return
	}
	switch {
	case id == "" && method == "POST":
		if err := s.count(ctx, c); err != nil {
			status, body := wire.Failure(err)
			s.write(ctx, status, body)
			return
		}
		r.create()
	case id != "" && method == "HEAD":
		r.stand(id)
	case id != "" && method == "PATCH":
		r.patch(id)
	case id != "" && method == "DELETE":
		r.end(id)
	case id != "" && method == "GET":
		r.result(id)
	default:
		r.fail(fasthttp.StatusMethodNotAllowed, "BAD_REQUEST", "Method Not Allowed")
	}
}

// fail answers with what both kinds of clients read: the protocol's own, and those of tus.
func (r tusRequest) fail(status int, code, msg string) {
	body, _ := json.Marshal(struct {
		Result  string `json:"result"`
		Msg     string `json:"msg"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	}{"error", msg, msg, code})
	r.ctx.SetStatusCode(status)
	r.ctx.SetContentType("application/json")
	r.ctx.SetBody(append(body, '\n'))
}

func (r tusRequest) failed(err error) {
	status, code, msg := wire.ResumableStatus(err)
	r.fail(status, code, msg)
}

// number is a header that must be a count of bytes.
func (r tusRequest) number(name string) (int64, bool) {
	text := string(r.ctx.Request.Header.Peek(name))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || text[0] == '+' {
		r.fail(fasthttp.StatusBadRequest, "BAD_REQUEST", "Missing or invalid "+name+" header")
		return 0, false
	}
	return n, true
}

func (r tusRequest) create() {
	if len(r.ctx.Request.Header.Peek("Upload-Defer-Length")) > 0 {
		r.fail(fasthttp.StatusLengthRequired, "BAD_REQUEST", "The length of an upload must be known when it begins")
		return
	}
	size, ok := r.number("Upload-Length")
	if !ok {
		return
	}
	note := string(r.ctx.Request.Header.Peek("Upload-Metadata"))
	name, ok := fileNameIn(note)
	if !ok || len(note) > maxTusNote {
		r.fail(fasthttp.StatusBadRequest, "BAD_REQUEST", "Invalid Upload-Metadata header")
		return
	}
	u, err := wire.BeginUpload(r.Call, name, note, size)
	if err != nil {
		r.failed(err)
		return
	}
	if r.hasBody() && r.isPiece() {
		if u, err = wire.ContinueUpload(r.Call, u, 0, r.body()); err != nil {
			r.failed(err)
			return
		}
	}
	r.ctx.Response.Header.Set("Location", r.prefix+"/"+u.ID)
	r.answer(fasthttp.StatusCreated, fasthttp.StatusCreated, u)
}

// fileNameIn reads what a client says of a file: keys and values in base64, comma-separated.
func fileNameIn(note string) (name string, ok bool) {
	byKey := map[string]string{}
	for _, pair := range strings.Split(note, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key == "" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if err != nil {
			return "", false
		}
		byKey[key] = strings.ToValidUTF8(string(text), "")
	}
	if byKey["filename"] != "" {
		return byKey["filename"], true
	}
	return byKey["name"], true
}

func (r tusRequest) isPiece() bool {
	return bytes.Equal(r.ctx.Request.Header.ContentType(), []byte(tusBody))
}

func (r tusRequest) hasBody() bool {
	return r.ctx.Request.IsBodyStream() || len(r.ctx.PostBody()) > 0
}

// body is the piece that is sent; an empty one has no stream.
func (r tusRequest) body() io.Reader {
	if r.ctx.Request.IsBodyStream() {
		return r.ctx.RequestBodyStream()
	}
	return bytes.NewReader(nil)
}

func (r tusRequest) patch(id string) {
	if !r.isPiece() {
		r.fail(fasthttp.StatusUnsupportedMediaType, "BAD_REQUEST", "Content-Type must be "+tusBody)
		return
	}
	offset, ok := r.number("Upload-Offset")
	if !ok {
		return
	}
	u, err := wire.UnfinishedUpload(r.Call, id)
	if err != nil {
		r.failed(err)
		return
	}
	if n := r.ctx.Request.Header.ContentLength(); int64(n) > u.Size-offset && offset == u.Offset {
		r.failed(wire.ErrFileTooLarge)
		return
	}
	if u, err = wire.ContinueUpload(r.Call, u, offset, r.body()); err != nil {
		r.failed(err)
		return
	}
	r.answer(fasthttp.StatusNoContent, fasthttp.StatusOK, u)
}

// answer says how an upload stands; a finished one has a body.
func (r tusRequest) answer(going, done int, u wire.Unfinished) {
	h := &r.ctx.Response.Header
	h.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	h.Set("Upload-Expires", time.Unix(u.Expires, 0).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	r.ctx.SetStatusCode(going)
	if u.Answer != "" {
		r.ctx.SetStatusCode(done)
		r.ctx.SetContentType("application/json")
		r.ctx.SetBodyString(u.Answer)
	}
}

// stand tells how far an upload has come.
func (r tusRequest) stand(id string) {
	r.ctx.Response.SkipBody = true
	u, err := wire.UnfinishedUpload(r.Call, id)
	if err != nil {
		r.failed(err)
		return
	}
	u.Answer = ""
	r.answer(fasthttp.StatusOK, fasthttp.StatusOK, u)
	r.ctx.Response.Header.Set("Upload-Length", strconv.FormatInt(u.Size, 10))
	if u.Extra != "" {
		r.ctx.Response.Header.Set("Upload-Metadata", u.Extra)
	}
}

// result repeats the answer of a finished upload.
func (r tusRequest) result(id string) {
	u, err := wire.UnfinishedUpload(r.Call, id)
	if err == nil && u.Answer == "" {
		err = wire.ErrNoUpload
	}
	if err != nil {
		r.failed(err)
		return
	}
	r.answer(fasthttp.StatusOK, fasthttp.StatusOK, u)
}

func (r tusRequest) end(id string) {
	_, err := wire.UnfinishedUpload(r.Call, id)
	if err == nil {
		err = r.Tools.Files.Abandon(id)
	}
	if err != nil {
		r.failed(err)
		return
	}
	r.ctx.SetStatusCode(fasthttp.StatusNoContent)
}
