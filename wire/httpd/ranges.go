package httpd

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// byteRange is a part of a file: a number of bytes from an offset.
type byteRange struct{ from, bytes int }

// parseRange parses a Range header for a file of the given size. Only one range of bytes is supported. A header
// with another unit, with several ranges or malformed is ignored, and the whole file is sent. ok is false if the
// file has no such bytes.
func parseRange(header string, size int) (p byteRange, whole, ok bool) {
	all := byteRange{0, size}
	unit, spec, _ := strings.Cut(header, "=")
	first, last, dash := strings.Cut(strings.TrimSpace(spec), "-")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || !dash {
		return all, true, true
	}
	from, err1 := strconv.ParseUint(first, 10, 62)
	to, err2 := strconv.ParseUint(last, 10, 62)
	switch {
	case first == "" && err2 == nil: // the last bytes of the file
		n := min(int(to), size)
		return byteRange{size - n, n}, false, n > 0
	case err1 != nil || err2 != nil && last != "" || last != "" && to < from:
		return all, true, true
	case from >= uint64(size):
		return byteRange{}, false, false
	case last == "" || to >= uint64(size):
		to = uint64(size) - 1
	}
	return byteRange{int(from), int(to-from) + 1}, false, true
}

// String returns the range as in a Content-Range header: first and last byte.
func (p byteRange) String() string {
	return strconv.Itoa(p.from) + "-" + strconv.Itoa(p.from+p.bytes-1)
}

// etagOf returns the entity tag of a file. The name on disk is derived from the content, so it identifies the version.
func etagOf(path string) string { return `"` + filepath.Base(path) + `"` }

// notModified reports whether the client has this version of the file already.
func notModified(ctx *fasthttp.RequestCtx, version string) bool {
	for _, v := range strings.Split(string(ctx.Request.Header.Peek("If-None-Match")), ",") {
		if v = strings.TrimSpace(v); v == "*" || strings.TrimPrefix(v, "W/") == version {
			return true
		}
	}
	return false
}

// requestedRange returns the part of the file that the request asks for. A client that has a range of another
// version gets the whole file: the ranges would not fit together.
func requestedRange(ctx *fasthttp.RequestCtx, version string, size int) (p byteRange, whole, ok bool) {
	h := &ctx.Request.Header
	if only := h.Peek("If-Range"); !ctx.IsGet() || len(only) > 0 && string(only) != version {
		return byteRange{0, size}, true, true
	}
	return parseRange(string(h.Peek("Range")), size)
}
