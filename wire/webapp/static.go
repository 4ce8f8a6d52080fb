package webapp

import (
	"io/fs"
	"mime"
	"os"
	"path"
	"regexp"
	"strings"
)

// StaticPath is the beginning of the paths of static files.
const StaticPath = "/static/"

// File is an open static file. The caller closes it.
type File struct {
	*os.File
	Info fs.FileInfo
	Type string // the content type
	// Compressed says that the content is compressed with gzip, and Alternatives that the answer depends on whether the
	// client accepts that.
	Compressed, Alternatives bool
	// Lasting files never change: their names contain a hash of the content.
	Lasting bool
}

// lastingName is the pattern of names with a hash, by the two tools that put one there.
var lastingName = regexp.MustCompile(`\.[0-9a-f]{12}\.|[./][0-9a-f]{20}\.`)

// Open opens a static file by its path below StaticPath. compressed asks for the compressed form, if there is one. It
// fails for folders, for hidden files, and for paths that lead out of the folder of static files.
func (r *Release) Open(name string, compressed bool) (*File, error) {
	notFound := &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	if !fs.ValidPath(name) || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") ||
		strings.ContainsAny(name, "\\\x00") {
		return nil, notFound
	}
	f := &File{Type: contentType(name), Lasting: lastingName.MatchString("/" + name)}
	if zipped, err := r.openRegular(name + ".gz"); err == nil {
		f.Alternatives = true
		if compressed {
			f.Compressed, f.File = true, zipped
		} else {
			zipped.Close()
		}
	}
	if f.File == nil {
		plain, err := r.openRegular(name)
		if err != nil {
			return nil, notFound
		}
		f.File = plain
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	f.Info = info
	return f, nil
}

// openRegular opens a file that is neither a folder nor a device.
func (r *Release) openRegular(name string) (*os.File, error) {
	// Without the check first, opening a named pipe would wait.
	if info, err := r.static.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	return r.static.Open(name)
}

// contentTypes are the types of the files of releases. A table of the operating system can differ.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".gif":   "image/gif",
	".html":  "text/html; charset=utf-8",
	".ico":   "image/x-icon",
	".jpg":   "image/jpeg",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".map":   "application/json",
	".mp3":   "audio/mpeg",
	".mp4":   "video/mp4",
	".ogg":   "audio/ogg",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".ttf":   "font/ttf",
	".txt":   "text/plain; charset=utf-8",
	".wasm":  "application/wasm",
	".webm":  "video/webm",
	".webp":  "image/webp",
	".woff":  "font/woff",
	".woff2": "font/woff2",
}

func contentType(name string) string {
	extension := strings.ToLower(path.Ext(name))
	if t := contentTypes[extension]; t != "" {
		return t
	}
	if t := mime.TypeByExtension(extension); t != "" {
		return t
	}
	return "application/octet-stream"
}
