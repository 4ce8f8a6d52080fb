package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/actors/realm"
)

// Blobs stores complete files by key. A key is the file's path below the directory of a local Store, with slashes:
// content/ab/<hash>, pictures/<name>.png, exports/<name>.jsonl.gz or .zip. A file under a key never changes, except
// that a data export can be written again. Methods may be called from any goroutine.
//
// An implementation that another machine serves returns errors that wrap ErrUnavailable while it cannot be reached.
type Blobs interface {
	// Ready returns an error if it is known that the next call would fail.
	Ready() error
	// Put stores the content of a file and returns when it is durable. It may rename the file.
	Put(key string, f *os.File) error
	// Open opens a file. The error wraps fs.ErrNotExist if there is none.
	Open(key string) (Blob, error)
	// Each calls fn with each file whose key begins with prefix, in no particular order, until fn fails. prefix ends
	// with a slash.
	Each(prefix string, fn func(BlobInfo) error) error
	// Remove removes a file, if it exists. An error that wraps ErrUncertain says that the file may be removed later.
	Remove(key string) error
}

// Blob is an opened file.
type Blob interface {
	Size() int64 // in bytes
	// Section returns a part of the file. The caller closes it, before it closes the Blob.
	Section(from, bytes int64) (io.ReadCloser, error)
	Close() error
}

// BlobInfo describes a stored file.
type BlobInfo struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}

// Errors of Blobs on another machine.
var (
	// ErrUnavailable is wrapped by errors of a store that cannot be reached now. A later attempt can succeed.
	ErrUnavailable = errors.New("the store of files cannot be reached")
	// ErrUncertain is wrapped by the error of a removal that was sent and not answered. It may happen later.
	ErrUncertain = errors.New("the removal was not answered")
)

// Prefixes of keys.
const (
	contentPrefix = "content/"
	picturePrefix = "pictures/"
	exportPrefix  = "exports/"
)

// Prefixes returns the prefixes of all keys.
func Prefixes() []string { return []string{contentPrefix, picturePrefix, exportPrefix} }

// ContentKey returns the key of the content with a hash. An invalid hash gets a key that no file has.
func ContentKey(hash string) string {
	if len(hash) < 2 || len(hash) > maxNameBytes || strings.Trim(hash, "0123456789abcdef") != "" {
		return contentPrefix + "none"
	}
	return contentPrefix + hash[:2] + "/" + hash
}

// Key returns the key of a file of a kind: the hash of content, the file name of a picture or data export. A name that
// is not one gets a key that no file has; a key never leaves the folder of its kind.
func Key(kind, file string) string {
	prefix := picturePrefix
	switch kind {
	case realm.ContentFile:
		return ContentKey(file)
	case realm.ArchiveFile:
		prefix = exportPrefix
	}
	name := filepath.Base(filepath.Clean("/" + file))
	if name == "/" || len(name) > maxNameBytes || strings.ContainsFunc(name, isUnsafe) {
		name = "none"
	}
	return prefix + name
}

// maxNameBytes limits the name of a file; file systems allow 255 bytes.
const maxNameBytes = 200

// isUnsafe reports whether a character never occurs in the names of pictures and exports.
func isUnsafe(r rune) bool { return r < ' ' || r == '\\' || r > '~' }

// localBlobs stores files in a directory.
type localBlobs struct{ dir string }

// NewLocalBlobs returns the files of the directory of a Store.
func NewLocalBlobs(dir string) Blobs { return localBlobs{dir} }

func (b localBlobs) path(key string) string { return filepath.Join(b.dir, filepath.FromSlash(key)) }

func (b localBlobs) Ready() error { return nil }

// Put moves the file, so nothing is copied.
func (b localBlobs) Put(key string, f *os.File) error { return syncAndRename(f, b.path(key)) }

func (b localBlobs) Open(key string) (Blob, error) {
	f, err := os.Open(b.path(key))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	return &localBlob{f, info.Size()}, nil
}

func (b localBlobs) Remove(key string) error {
	err := os.Remove(b.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Each lists a directory in parts, because it can have a million entries. Content is one level deeper.
func (b localBlobs) Each(prefix string, fn func(BlobInfo) error) error {
	err := eachEntry(b.path(prefix), func(e fs.DirEntry) error {
		if e.IsDir() {
			return b.Each(prefix+e.Name()+"/", fn)
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			return nil // it was removed meanwhile
		}
		return fn(BlobInfo{prefix + e.Name(), info.Size(), info.ModTime()})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// localBlob is a file of the directory. Its sections are read with ReadAt and share the open file.
type localBlob struct {
	f    *os.File
	size int64
}

func (b *localBlob) Size() int64 { return b.size }

func (b *localBlob) Section(from, bytes int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(b.f, from, bytes)), nil
}

func (b *localBlob) Close() error { return b.f.Close() }

// eachEntry calls f with each entry of a directory until f fails.
func eachEntry(dir string, f func(fs.DirEntry) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(256) // in parts: a directory may have a million entries
		for _, e := range list {
			if err := f(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Open opens a stored file of a kind. The error wraps fs.ErrNotExist if it does not exist, or ErrUnavailable.
func (s *Store) Open(kind, file string) (Blob, error) {
	key := Key(kind, file)
	if s.remote && kind == realm.PictureFile {
		return s.openCached(key)
	}
	return s.blobs.Open(key)
}

// Ready returns an error that wraps ErrUnavailable if it is known that files cannot be stored or read now.
func (s *Store) Ready() error { return s.blobs.Ready() }

// openCached opens a picture in the cache on this machine and fetches it first if it is not there. Pictures of accounts
// are small and are requested for every list of messages.
func (s *Store) openCached(key string) (Blob, error) {
	path := s.cachePath(key)
	if !s.touchThumbnail(path) {
		f, err := s.fetch(key)
		if err != nil {
			return nil, err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if err := s.addThumbnail(f, path, info.Size()); err != nil {
			return nil, err
		}
	}
	return localBlobs{s.dir}.Open(strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, s.dir)), "/"))
}

// cachePath returns the path of a fetched picture in the cache.
func (s *Store) cachePath(key string) string {
	name := strings.TrimPrefix(key, picturePrefix)
	return filepath.Join(s.dir, "thumbnails", "pictures", name[:min(2, len(name))], name)
}

// fetch copies a file from another machine to a temporary file. The caller removes it.
func (s *Store) fetch(key string) (f *os.File, err error) {
	b, err := s.blobs.Open(key)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := s.checkSpace(b.Size()); err != nil {
		return nil, fmt.Errorf("fetch file: %w", err)
	}
	r, err := b.Section(0, b.Size())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err = os.CreateTemp(filepath.Join(s.dir, "incoming"), "fetch-*")
	if err != nil {
		return nil, fmt.Errorf("fetch file: %w", err)
	}
	n, err := io.CopyBuffer(f, r, make([]byte, copyBuffer))
	if err == nil && n != b.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("fetch file: %w: %w", ErrUnavailable, err)
	}
	return f, nil
}

// openContent opens content for decoding. done removes the fetched copy.
func (s *Store) openContent(hash string) (f *os.File, done func(), err error) {
	if s.remote {
		if f, err = s.fetch(ContentKey(hash)); err != nil {
			return nil, nil, err
		}
		return f, func() { f.Close(); os.Remove(f.Name()) }, nil
	}
	if f, err = os.Open(filepath.Join(s.dir, filepath.FromSlash(ContentKey(hash)))); err != nil {
		return nil, nil, err
	}
	return f, func() { f.Close() }, nil
}
