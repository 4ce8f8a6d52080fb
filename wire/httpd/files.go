package httpd

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/markdown"
)

// StoredFiles opens stored files for a client of an organization. They are named by their kind (realm.ContentFile,
// PictureFile or ArchiveFile): uploads by their hash, pictures and data exports by their name.
// wire.IsTemporaryFileError reports whether the file may be readable later; any other error means that there is no such
// file.
type StoredFiles interface {
	Open(id realm.ID, kind, name string) (StoredFile, error)
}

// StoredFile is an opened file.
type StoredFile interface {
	Size() int64 // in bytes
	// Section returns a part of the file. It is closed before the file.
	Section(from, bytes int64) (io.ReadCloser, error)
	Close() error
}

// addFileRoutes adds the routes for files, which are outside the protocol's prefix.
func (s *Server) addFileRoutes() {
	serve := map[string]fasthttp.RequestHandler{
		"/user_uploads/temporary/{token}/{name}":   s.serveTemporaryFile,
		"/user_uploads/thumbnail/{realm}/{path:*}": s.serveThumbnail,
		"/user_uploads/download/{realm}/{path:*}":  func(ctx *fasthttp.RequestCtx) { s.serveUpload(ctx, true) },
		"/user_uploads/{realm}/{path:*}":           func(ctx *fasthttp.RequestCtx) { s.serveUpload(ctx, false) },
		"/user_avatars/{realm}/{path:*}":           s.servePicture,
		"/avatar/{who}":                            func(ctx *fasthttp.RequestCtx) { s.redirectToAvatar(ctx, "") },
		"/avatar/{who}/medium": func(ctx *fasthttp.RequestCtx) {
			s.redirectToAvatar(ctx, "-medium")
		},
		wire.OwnExportPath + "{export_id}":          s.serveOwnExport,
		"/external_content/{digest}/{received_url}": s.serveExternalPicture,
		"/static/images/{path:*}":                   s.serveStaticImage,
	}
	for _, f := range wire.FileRoutes {
		s.router.ANY(f.Path, s.readOnly(s.serveAtOwner(serve[f.Path])))
		delete(serve, f.Path)
	}
	for path := range serve {
		panic("BUG: " + path + " is not in wire.FileRoutes")
	}
}

// uploadEndpoint is the endpoint that a scoped key must include to fetch files.
const uploadEndpoint = "GET /user_uploads/{realm_id_str}/{filename:*}"

// fileMethods are the methods of the file routes.
var fileMethods = []string{"GET", "HEAD", "OPTIONS"}

// readOnly passes GET and HEAD to read, answers OPTIONS, and rejects every other method.
func (s *Server) readOnly(read fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		switch {
		case ctx.IsGet() || ctx.IsHead():
			read(ctx)
		case ctx.IsOptions():
			ctx.Response.Header.Set("Allow", strings.Join(fileMethods, ", "))
			setCommonHeaders(ctx)
			ctx.SetStatusCode(204)
		default:
			s.writeMethodNotAllowed(ctx, fileMethods)
		}
	}
}

func pathParam(ctx *fasthttp.RequestCtx, name string) string {
	v, _ := ctx.UserValue(name).(string)
	return unescape(v)
}

// fileCall returns the call of a request for a file. The caller is identified by HTTP Basic, by api_key in the
// query, or by a browser session; otherwise the call has no account.
//
// Files are exempt from rate limits (protocol), but attempts with wrong credentials are counted. If there were
// too many, fileCall answers the request itself and reports false.
func (s *Server) fileCall(ctx *fasthttp.RequestCtx) (*wire.Call, bool) {
	c := &wire.Call{Server: s.options.Server, Tools: s.options.Tools, Params: &form.Values{}}
	c.Realm, c.Site = s.options.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	var err error
	if key := ctx.QueryArgs().Peek("api_key"); len(key) > 0 {
		c.Params.Add(form.Query, "api_key", string(key))
		err = s.queryKey(c)
	} else if len(ctx.Request.Header.Peek("Authorization")) > 0 {
		err = s.checkCredentials(c, ctx.Request.Header.Peek("Authorization"), false, s.findAccount)
	} else {
		b := headersOfBrowser(ctx, c.Site)
		s.findSession(c, &b)
	}
	if err != nil {
		if over := limitRequest(ctx, s.visitors, s.remote(ctx)); over != nil {
			s.writeFailure(ctx, &wire.Endpoint{}, over)
			return c, false
		}
	}
	scope := c.KeyScope()
	outside := !scope.Has(realm.RightRead) || !scope.HasEndpoint(uploadEndpoint) || !scope.HasAddress(s.remote(ctx))
	if err != nil || outside || c.Account != nil && c.Account.Bot == realm.IncomingWebhook {
		c.Account, c.Caller.User = nil, 0
	}
	return c, true
}

// realmOf returns the organization of the Host header of a request; 0: there is none.
func (s *Server) realmOf(ctx *fasthttp.RequestCtx) realm.ID {
	id, _ := s.options.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	return id
}

// serveUpload serves an upload if the caller may see it.
func (s *Server) serveUpload(ctx *fasthttp.RequestCtx, download bool) {
	if u, ok := s.visibleUpload(ctx, pathParam(ctx, "realm")+"/"+pathParam(ctx, "path")); ok {
		s.sendUpload(ctx, u, download)
	}
}

// visibleUpload returns an upload that the caller may see. Otherwise it answers the request and reports false.
func (s *Server) visibleUpload(ctx *fasthttp.RequestCtx, path string) (realm.Upload, bool) {
	c, ok := s.fileCall(ctx)
	if !ok {
		return realm.Upload{}, false
	}
	u, err := wire.Read(c, func(v realm.View) (realm.Upload, error) {
		u, ok := v.VisibleUpload(path)
		if !ok || c.Site.Deactivated {
			return u, realm.Refuse(realm.NotFound, "BAD_REQUEST", "File not found")
		}
		return u, nil
	})
	if err != nil {
		if c.Account == nil && fromBrowser(ctx) {
			redirectToLogin(ctx)
			return u, false
		}
		status := 404
		if c.Account == nil {
			status = 403 // without a login, the answer must not tell whether the file exists
		}
		s.writeError(ctx, status, "File not found or not yours to see")
	}
	return u, err == nil
}

// serveThumbnail serves an image in one of the formats that the server generates, if the caller may see the
// image.
func (s *Server) serveThumbnail(ctx *fasthttp.RequestCtx) {
	path, format, _ := cutLast(pathParam(ctx, "path"), "/")
	u, ok := s.visibleUpload(ctx, pathParam(ctx, "realm")+"/"+path)
	if !ok {
		return
	}
	kind := map[string]string{markdown.StillThumbnail: "image/jpeg", markdown.AnimatedThumbnail: "image/gif"}[format]
	animated := format == markdown.AnimatedThumbnail
	if u.Type == "image/heic" || u.Type == "image/avif" {
		s.writeError(ctx, fasthttp.StatusNotFound, "The server makes no thumbnails of HEIC and AVIF pictures")
		return
	}
	if kind == "" || u.Width == 0 || animated && !u.Animated || u.Thumbnail == realm.ThumbnailImpossible {
		s.writeError(ctx, fasthttp.StatusNotFound, "No such thumbnail")
		return
	}
	file, err := s.options.Tools.Files.Thumbnail(s.realmOf(ctx), u.Hash, animated)
	if errors.Is(err, wire.ErrThumbnailsBusy) {
		s.writeBusy(ctx)
		return
	}
	if wire.IsTemporaryFileError(err) {
		s.writeRefusal(ctx, err)
		return
	}
	if err != nil {
		s.writeError(ctx, fasthttp.StatusNotFound, "No such thumbnail")
		return
	}
	setUploadHeaders(ctx)
	s.sendCachedFile(ctx, file, kind)
}

// cutLast cuts s around the last sep. Without sep, after is s.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// setUploadHeaders keeps an upload from running scripts in a browser and from shared caches.
func setUploadHeaders(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy",
		"default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox")
	h.Set("Cache-Control", "private, immutable")
}

func (s *Server) serveTemporaryFile(ctx *fasthttp.RequestCtx) {
	id, path, ok := wire.VerifyUploadToken(s.options.Tools, pathParam(ctx, "token"), time.Now())
	if !ok {
		s.writeError(ctx, 403, "Invalid or expired link")
		return
	}
	x, err := s.options.Server.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) {
		u, ok := v.VisibleUpload(path)
		if !ok {
			return u, realm.Refuse(realm.NotFound, "BAD_REQUEST", "File not found")
		}
		return u, nil
	})
	if err != nil {
		s.writeError(ctx, 404, "File not found")
		return
	}
	s.sendUpload(ctx, x.(realm.Upload), false)
}

// inlineTypes are the content types that a browser may display in place. Every other upload is sent as an
// attachment, so that nothing uploaded runs on this origin.
var inlineTypes = map[string]bool{
	"text/plain; charset=utf-8": true,
	"image/png":                 true,
	"image/jpeg":                true,
	"image/gif":                 true,
	"image/webp":                true,
	"image/bmp":                 true,
	"application/pdf":           true,
	"video/mp4":                 true,
	"video/webm":                true,
	"audio/mpeg":                true,
	"audio/wave":                true,
	"audio/aiff":                true,
	"application/ogg":           true,
	"audio/basic":               true,
}

func (s *Server) sendUpload(ctx *fasthttp.RequestCtx, u realm.Upload, download bool) {
	h := &ctx.Response.Header
	disposition := "attachment"
	if inlineTypes[u.Type] && !download {
		disposition = "inline"
	}
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": u.Name}))
	setUploadHeaders(ctx)
	s.sendFile(ctx, realm.ContentFile, u.Hash, u.Type)
}

// sendFile streams a stored file, or the part named by a Range header. It answers 304 if the client has the file
// already.
func (s *Server) sendFile(ctx *fasthttp.RequestCtx, kind, name, contentType string) {
	f, err := s.options.Files.Open(s.realmOf(ctx), kind, name)
	if wire.IsTemporaryFileError(err) {
		s.writeUnavailable(ctx, err)
		return
	}
	if err != nil {
		s.writeError(ctx, 404, "File not found")
		return
	}
	ctx.SetContentType(contentType)
	ctx.Response.Header.Set("Accept-Ranges", "bytes")
	s.sendOpenFile(ctx, f, etagOf(name))
}

// writeUnavailable answers that a file cannot be read now. The answer is not cached, even if the file would be.
func (s *Server) writeUnavailable(ctx *fasthttp.RequestCtx, err error) {
	for _, h := range []string{"Content-Disposition", "Content-Range", "Accept-Ranges", "ETag"} {
		ctx.Response.Header.Del(h)
	}
	ctx.Response.Header.Set("Cache-Control", "no-store")
	s.writeRefusal(ctx, err)
}

// sendCachedFile is sendFile for a thumbnail, which is always on this machine.
func (s *Server) sendCachedFile(ctx *fasthttp.RequestCtx, path, contentType string) {
	f, err := os.Open(path)
	if err != nil {
		s.writeError(ctx, 404, "File not found")
		return
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() { // a name such as ".." is a directory
		f.Close()
		s.writeError(ctx, 404, "File not found")
		return
	}
	ctx.SetContentType(contentType)
	ctx.Response.Header.Set("Accept-Ranges", "bytes")
	s.sendOpenFile(ctx, localFile{f, info.Size()}, etagOf(path))
}

// sendOpenFile is sendFile for an open file. version is the entity tag. It closes the file.
func (s *Server) sendOpenFile(ctx *fasthttp.RequestCtx, f StoredFile, version string) {
	size := int(f.Size())
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.Response.Header.Set("ETag", version)
	if notModified(ctx, version) {
		f.Close()
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		ctx.Response.SkipBody = true
		return
	}
	p, whole, ok := requestedRange(ctx, version, size)
	if !ok {
		f.Close()
		ctx.Response.Header.Del("ETag")
		ctx.Response.Header.Set("Content-Range", "bytes */"+strconv.Itoa(size))
		s.writeError(ctx, 416, "Invalid range")
		return
	}
	if ctx.IsHead() {
		f.Close()
		if !whole {
			ctx.Response.Header.Set("Content-Range", "bytes "+p.String()+"/"+strconv.Itoa(size))
			ctx.SetStatusCode(206)
		}
		ctx.Response.SkipBody = true
		ctx.Response.Header.SetContentLength(size)
		return
	}
	part, err := f.Section(int64(p.from), int64(p.bytes))
	if err != nil {
		f.Close()
		s.writeUnavailable(ctx, err)
		return
	}
	if !whole {
		ctx.Response.Header.Set("Content-Range", "bytes "+p.String()+"/"+strconv.Itoa(size))
		ctx.SetStatusCode(206)
	}
	ctx.SetBodyStream(&fileSection{f, part}, p.bytes)
}

// localFile is an open file on this machine.
type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

func (f localFile) Section(from, bytes int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(f.File, from, bytes)), nil
}

// fileSection is a part of a file. Close closes the file.
type fileSection struct {
	f    StoredFile
	part io.ReadCloser
}

func (p *fileSection) Read(b []byte) (int, error) { return p.part.Read(b) }

func (p *fileSection) Close() error { return errors.Join(p.part.Close(), p.f.Close()) }

// WriteTo copies in blocks of writeBufferBytes.
func (p *fileSection) WriteTo(w io.Writer) (int64, error) {
	b := writeBuffers.Get().(*[writeBufferBytes]byte)
	defer writeBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{w}, p.part, b[:])
}

// servePicture serves avatars and the organization's pictures: uploaded ones from disk, identicons from the
// cache.
func (s *Server) servePicture(ctx *fasthttp.RequestCtx) {
	path := pathParam(ctx, "path")
	if pathParam(ctx, "realm") == "exports" && strings.HasPrefix(path, realm.OwnExportPrefix) {
		s.writeError(ctx, fasthttp.StatusNotFound, "File not found") // see serveOwnExport
		return
	}
	if pathParam(ctx, "realm") == "exports" { // the name of an export is a secret that only administrators get
		ctx.Response.Header.Set("Cache-Control", "private, no-store")
		ctx.Response.Header.Set("Content-Disposition", `attachment; filename="export.jsonl.gz"`)
		s.sendFile(ctx, realm.ArchiveFile, path, "application/gzip")
		return
	}
	ctx.Response.Header.Set("Cache-Control", "public, max-age=31536000, immutable") // a new picture has a new address
	if rest, ok := strings.CutPrefix(path, "generated/"); ok {
		name := strings.TrimSuffix(strings.TrimSuffix(rest, ".png"), "-medium")
		s.sendIdenticon(ctx, pathParam(ctx, "realm")+"/"+name, strings.HasSuffix(rest, "-medium.png"))
		return
	}
	if name, ok := strings.CutPrefix(path, wire.EmojiPath); ok {
		s.serveCustomEmoji(ctx, name)
		return
	}
	if path == "icon.png" {
		s.sendIdenticon(ctx, "icon of "+pathParam(ctx, "realm"), true)
		return
	}
	s.sendFile(ctx, realm.PictureFile, path, "image/png")
}

// serveOwnExport serves a file with the data of the caller.
func (s *Server) serveOwnExport(ctx *fasthttp.RequestCtx) {
	c, ok := s.fileCall(ctx)
	if !ok {
		return
	}
	ctx.Response.Header.Set("Cache-Control", "private, no-store")
	if c.Account == nil && fromBrowser(ctx) {
		redirectToLogin(ctx)
		return
	}
	file, err := "", error(realm.Refuse(realm.NotFound, "BAD_REQUEST", "File not found"))
	if c.Account != nil {
		file, err = wire.FetchOwnExport(c, pathParam(ctx, "export_id"))
	}
	if err != nil {
		s.writeRefusal(ctx, err)
		return
	}
	setUploadHeaders(ctx)
	ctx.Response.Header.Set("Cache-Control", "private, no-store")
	ctx.Response.Header.Set("Content-Disposition", `attachment; filename="my-data.zip"`)
	s.sendFile(ctx, realm.ArchiveFile, file, "application/zip")
}

// redirectToAvatar redirects to the picture of the user in the path. suffix is "" or "-medium".
func (s *Server) redirectToAvatar(ctx *fasthttp.RequestCtx, suffix string) {
	c, ok := s.fileCall(ctx)
	if !ok {
		return
	}
	url, err := wire.Read(c, func(v realm.View) (string, error) {
		return wire.FindAvatarURL(v, pathParam(ctx, "who"), c.Site), nil
	})
	if err != nil || url == "" {
		s.writeError(ctx, 404, "No such user")
		return
	}
	if suffix != "" {
		url = strings.Replace(url, ".png", suffix+".png", 1)
	}
	ctx.Response.Header.Set("Location", url)
	ctx.SetStatusCode(302)
}

// serveStaticImage serves the images that the server's own pages and emails refer to.
func (s *Server) serveStaticImage(ctx *fasthttp.RequestCtx) {
	if s.serveWebAppFile(ctx, "images/"+pathParam(ctx, "path")) {
		return
	}
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
	switch path := pathParam(ctx, "path"); {
	case strings.HasPrefix(path, "logo/"):
		const ink = "#777" // for light and dark themes
		ctx.SetContentType("image/svg+xml")
		ctx.SetBodyString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 40"><text x="4" y="29" ` +
			`font-family="sans-serif" font-size="28" fill="` + ink + `">Parley</text></svg>`)
	case strings.HasPrefix(path, "loading/loader-"): // the suffix is "black" or "white"
		ink, _, _ := strings.Cut(strings.TrimPrefix(path, "loading/loader-"), ".")
		if ink != "white" {
			ink = "black"
		}
		ctx.SetContentType("image/svg+xml")
		ctx.SetBodyString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><circle cx="20" cy="20" ` +
			`r="15" fill="none" stroke="` + ink +
			`" stroke-width="3" stroke-dasharray="70 25"><animateTransform attributeName="transform" ` +
			`type="rotate" from="0 20 20" to="360 20 20" dur="1s" repeatCount="indefinite"/></circle></svg>`)
	case path == "unknown-user-avatar.png", path == "unknown-user-avatar-medium.png":
		s.sendIdenticon(ctx, "unknown user", strings.HasSuffix(path, "-medium.png"))
	default:
		s.writeError(ctx, 404, "Not found")
	}
}

// multipartFiles returns the files of a multipart body, under any field names.
func multipartFiles(ctx *fasthttp.RequestCtx) ([]wire.File, error) {
	if !bytes.HasPrefix(ctx.Request.Header.ContentType(), []byte("multipart/form-data")) {
		return nil, nil
	}
	f, err := ctx.MultipartForm()
	if err != nil {
		return nil, realm.BadRequest("Malformed multipart body")
	}
	var out []wire.File
	for _, list := range f.File {
		for _, h := range list {
			out = append(out, wire.File{Name: h.Filename, Claimed: h.Header.Get("Content-Type"), Size: h.Size,
				Open: func() (io.ReadCloser, error) { return h.Open() }})
		}
	}
	return out, nil
}
