package httpd

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// A part is a piece of a file of some size: so many bytes from an offset.
type byteRange struct{ from, bytes int }

// parseRange reads a Range header. Only one range of bytes is served; what is of another unit, malformed, or several ranges is as
// if it had not been sent, which gives the whole file. ok is false where the file has no such bytes.
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
	case first == "" && err2 == nil: // so many last ones
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

func (p byteRange) String() string {
	return strconv.Itoa(p.from) + "-" + strconv.Itoa(p.from+p.bytes-1)
}

// etagOf is the entity tag of a file, whose name on the disk goes by its content.
func etagOf(path string) string { return `"` + filepath.Base(path) + `"` }

// notModified reports whether the client has the file already.
func notModified(ctx *fasthttp.RequestCtx, version string) bool {
	for _, v := range strings.Split(string(ctx.Request.Header.Peek("If-None-Match")), ",") {
		if v = strings.TrimSpace(v); v == "*" || strings.TrimPrefix(v, "W/") == version {
			return true
		}
	}
	return false
}

// requestedRange is the part of a file a request is for. A range of another version than the one there is would be spliced with what
// it does not fit to, so the whole file comes then.
func requestedRange(ctx *fasthttp.RequestCtx, version string, size int) (p byteRange, whole, ok bool) {
	h := &ctx.Request.Header
	if only := h.Peek("If-Range"); !ctx.IsGet() || len(only) > 0 && string(only) != version {
		return byteRange{0, size}, true, true
	}
	return parseRange(string(h.Peek("Range")), size)
}
