package httpd

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

// streamsBody reports whether the body of a request is streamed to its handler: those of uploads are. Such a request
// takes about 150 kB, however large the body is: buffers of fasthttp (28 kB) and of the multipart reader (4 kB), the
// copy to disk (64 kB) and its stack.
func streamsBody(method, target []byte) bool {
	path := requestPath(string(target))
	for _, prefix := range []string{apiPrefix, webPrefix} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			post := string(method) == "POST"
			return post && rest == "/user_uploads" || post && rest == "/tus" ||
				(post || string(method) == "PATCH") && strings.HasPrefix(rest, "/tus/")
		}
	}
	return false
}

// tusPiece returns the piece of a file in the body of a resumable upload (tus), nil for other requests. An empty body
// is never a stream.
func tusPiece(ctx *fasthttp.RequestCtx) *wire.Piece {
	switch {
	case string(ctx.Request.Header.ContentType()) != wire.PieceType:
		return nil
	case !ctx.Request.IsBodyStream():
		return &wire.Piece{Reader: bytes.NewReader(ctx.PostBody()), Size: int64(len(ctx.PostBody()))}
	}
	return &wire.Piece{Reader: ctx.RequestBodyStream(), Size: max(-1, int64(ctx.Request.Header.ContentLength()))}
}

// writeRaw writes the answer of an endpoint that speaks another protocol (tus).
func (s *Server) writeRaw(ctx *fasthttp.RequestCtx, b wire.RawAnswer) {
	setCommonHeaders(ctx)
	ctx.SetStatusCode(b.Status)
	for _, h := range b.Headers {
		if h[0] == "Location" { // relative to the prefix of the request
			prefix, _, _ := bytes.Cut(ctx.Path(), []byte("/tus"))
			h[1] = string(prefix) + h[1]
		}
		ctx.Response.Header.Set(h[0], h[1])
	}
	if b.JSON != "" {
		ctx.SetContentType("application/json")
		ctx.SetBodyString(b.JSON)
	}
}

// Limits around a file in a streamed body, in bytes: all ordinary parts together, and the header of one part.
const (
	maxStreamedParamBytes = maxFormPartBytes
	maxPartHeaderBytes    = 64 << 10
)

var errMultipart = realm.BadRequest("Malformed multipart body")

// streamedFiles reads a multipart body up to its first file. The bytes of the file are read when it is opened.
func streamedFiles(ctx *fasthttp.RequestCtx, v *form.Values) (func() ([]wire.File, error), error) {
	none := func() ([]wire.File, error) { return nil, nil }
	boundary := ctx.Request.Header.MultipartFormBoundary()
	if len(boundary) == 0 {
		return none, nil
	}
	b := &multipartStream{input: &limitedReader{r: ctx.RequestBodyStream()}, params: v}
	b.parts = multipart.NewReader(b.input, string(boundary))
	file, err := b.next()
	if err != nil || file == nil {
		return none, err
	}
	name := strings.Clone(file.FileName())
	return func() ([]wire.File, error) {
		return []wire.File{{Name: name, Size: -1, Open: func() (io.ReadCloser, error) {
			return &streamedFile{b, file},
				nil
		}}}, nil
	}, nil
}

// multipartStream is a multipart body being received.
type multipartStream struct {
	parts      *multipart.Reader
	input      *limitedReader
	params     *form.Values
	paramBytes int // bytes of ordinary parts so far
}

// next reads ordinary parts up to the next file, which it returns. It returns nil at the end of the body.
func (b *multipartStream) next() (*multipart.Part, error) {
	for {
		b.input.left = maxPartHeaderBytes
		p, err := b.parts.NextPart()
		if err == io.EOF {
			return nil, b.end()
		}
		if err != nil {
			return nil, errMultipart
		}
		if p.FormName() == "" { // skipped, as in buffered bodies
			continue
		}
		b.input.left = -1
		if p.FileName() != "" {
			return p, nil
		}
		value, err := io.ReadAll(io.LimitReader(p, int64(maxStreamedParamBytes-b.paramBytes)+1))
		if err != nil {
			return nil, errMultipart
		}
		if b.paramBytes += len(value); b.paramBytes > maxStreamedParamBytes {
			return nil, realm.Refuse(realm.TooLarge, "BAD_REQUEST", "Parameter too large")
		}
		b.params.Add(form.Body, p.FormName(), string(value))
	}
}

// end reads the rest after the last part, so that the connection can be used again.
func (b *multipartStream) end() error {
	b.input.left = maxPartHeaderBytes
	if _, err := io.Copy(io.Discard, b.input); err != nil {
		return errMultipart
	}
	return nil
}

// streamedFile is a file of a streamed body. Read returns io.EOF only if nothing but ordinary parts follow the
// file.
type streamedFile struct {
	b    *multipartStream
	part *multipart.Part
}

func (f *streamedFile) Read(p []byte) (int, error) {
	n, err := f.part.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	if err != io.EOF {
		return 0, errMultipart
	}
	switch another, err := f.b.next(); {
	case err != nil:
		return 0, err
	case another != nil:
		return 0, realm.BadRequest("You may only upload one file at a time")
	}
	return 0, io.EOF
}

func (f *streamedFile) Close() error { return nil }

// limitedReader reads until left reaches 0. A negative left is no limit.
type limitedReader struct {
	r    io.Reader
	left int
}

var errPartHeaderTooLarge = errors.New("part header too large")

func (b *limitedReader) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errPartHeaderTooLarge
	}
	if b.left > 0 {
		p = p[:min(len(p), b.left)]
	}
	n, err := b.r.Read(p)
	if b.left > 0 {
		b.left -= n
	}
	return n, err
}
