package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Store stores uploaded files. Its methods may be called from any goroutine, except those of a Store from OpenReadOnly,
// which only opens files.
type Store struct {
	dir    string
	blobs  Blobs
	remote bool // blobs is on another machine

	spaceLimit     func(bytes int64) error // see LimitSpace
	scanner        Scanner                 // see UseScanner; nil: there is none
	term           func() uint64           // see UseTerms
	several        func() bool             // see ShareBetween; nil: there is one space
	decodeRequests atomic.Int64            // see MaxDecodeRequests
	thumbnailBytes atomic.Int64            // see MaxThumbnailBytes
	decoders       chan struct{}           // holds an element for each picture that is being decoded

	mu sync.Mutex // guards the fields below

	// pins counts the calls that are saving content of a hash, or a picture of a name. It is not removed meanwhile.
	pins map[string]int
	// removalCandidates is the files that a running sweep will remove. Saving one of them takes it out.
	removalCandidates map[string]bool
	removalPauses     int                      // nothing is removed while this is not zero
	removing          map[string]chan struct{} // see removal.go
	uncertain         map[string]time.Time     // until when a name is not saved; see removal.go
	foreign           error                    // why nothing may be removed; see SetForeign

	partialUploads map[string]*PartialUpload
	expiryTimer    *time.Timer // runs removeExpired when the next upload expires; nil if there is no upload
	nextExpiry     int64       // Unix seconds
}

// Errors that are caused by the caller or the file.
var (
	ErrTooLarge = errors.New("file too large")
	ErrNoImage  = errors.New("not an image")
	ErrPixels   = errors.New("image has too many pixels")
)

// Open opens the directory and makes it if it does not exist. It removes files whose writing was interrupted. Complete
// files are stored in blobs; nil stores them in the directory, too. Uploads in pieces, thumbnails and files that are
// being written are always in the directory.
func Open(dir string, blobs Blobs) (*Store, error) {
	folders := []string{"content", "pictures", "exports", "incoming", "unfinished", "thumbnails"}
	if blobs != nil {
		folders = []string{"incoming", "unfinished", "thumbnails", "removing"}
	}
	for _, d := range folders {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open uploads: %w", err)
		}
	}
	// Files in incoming were never completed.
	left, err := os.ReadDir(filepath.Join(dir, "incoming"))
	if err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	for _, f := range left {
		os.Remove(filepath.Join(dir, "incoming", f.Name()))
	}
	s := &Store{
		dir:            dir,
		blobs:          blobs,
		remote:         blobs != nil,
		pins:           map[string]int{},
		removing:       map[string]chan struct{}{},
		uncertain:      map[string]time.Time{},
		partialUploads: map[string]*PartialUpload{},
		decoders:       make(chan struct{}, maxDecoders),
	}
	if !s.remote {
		s.blobs = NewLocalBlobs(dir)
	}
	if err := s.loadUncertain(); err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	if err := s.countThumbnails(); err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	if err := s.loadPartialUploads(); err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	return s, nil
}

// UseTerms makes names of new content and pictures end with the term of the cluster's leader: several processes, one
// after the other, store and remove files in the same bucket. A removal that a leader has begun can arrive at any later
// time, also when the process was stopped in between. It must not remove what the next leader has stored, so a name
// that was used in one term is not used again in another one. It is called before the first file is written.
func (s *Store) UseTerms(term func() uint64) { s.term = term }

// termDigits is the length of a term in a name.
const termDigits = 16

// nameOf returns the name of a file with a hash.
func (s *Store) nameOf(hash []byte) string {
	if s.term == nil {
		return hex.EncodeToString(hash)
	}
	return fmt.Sprintf("%x%0*x", hash, termDigits, s.term())
}

// ShareBetween sets the function that reports whether several spaces share the store: then each has half of
// MaxPartialUploads. Call it before the first upload.
func (s *Store) ShareBetween(several func() bool) { s.several = several }

// sharedBlobs are Blobs whose limits spaces share.
type sharedBlobs interface {
	PutFor(space, key string, f *os.File) error
}

// put stores a file of a space.
func (s *Store) put(space, key string, f *os.File) error {
	if b, ok := s.blobs.(sharedBlobs); ok {
		return b.PutFor(space, key, f)
	}
	return s.blobs.Put(key, f)
}

// IsRemote reports whether complete files are on another machine.
func (s *Store) IsRemote() bool { return s.remote }

// LimitSpace sets the function that decides whether so many more bytes may be stored. The Store calls it before it
// writes a file and while it writes a long one. Its error ends the writing and is returned. Call LimitSpace before the
// first file is written.
func (s *Store) LimitSpace(limit func(bytes int64) error) { s.spaceLimit = limit }

// checkSpace returns an error if so many bytes must not be stored.
func (s *Store) checkSpace(bytes int64) error {
	if s.spaceLimit == nil {
		return nil
	}
	return s.spaceLimit(bytes)
}

// spaceCheckStep is how many bytes of a file are written between two checks of the space on the disk.
const spaceCheckStep = 1 << 20

// limitedWriter writes a file as long as there is space.
type limitedWriter struct {
	s    *Store
	w    io.Writer
	left int64 // bytes until the next check
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left <= 0 {
		if err := w.s.checkSpace(int64(len(p))); err != nil {
			return 0, err
		}
		w.left = spaceCheckStep
	}
	return w.w.Write(p)
}

// OpenReadOnly returns a Store that only opens files. Nothing is made or removed in the directory.
func OpenReadOnly(dir string, blobs Blobs) *Store {
	if blobs == nil {
		blobs = NewLocalBlobs(dir)
	}
	return &Store{dir: dir, blobs: blobs}
}

// Put stores a picture or data export unless it exists, and reports whether it is new. Names follow from the content or
// are random, so an existing file has the same content.
func (s *Store) Put(kind, file string, r io.Reader) (stored bool, err error) {
	key := Key(kind, file)
	if old, err := s.blobs.Open(key); err == nil {
		_, err = io.Copy(io.Discard, r)
		return false, errors.Join(err, old.Close())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "put-*")
	if err != nil {
		return false, fmt.Errorf("save file: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := io.Copy(&limitedWriter{s: s, w: f}, r); err != nil {
		return false, fmt.Errorf("save file: %w", err)
	}
	return true, s.blobs.Put(key, f)
}

// Saved describes saved content.
type Saved struct {
	Hash          string
	Size          int64
	Type          string // detected from the content, not the client's claim
	Width, Height int    // pixels of an image, else 0
	Animated      bool   // a GIF with several frames, within maxAnimationPixels
}

// sniffedBytes is the number of bytes from which the content type is detected.
const sniffedBytes = 512

// copyBuffer is the number of bytes of a file that are in memory at once while it is written.
const copyBuffer = 64 << 10

// Save writes a file of at most limit bytes and returns when it is on disk. The hash includes space, so the same
// content in two spaces is two files: one organization can delete what another still has. See also UseTerms. The
// content is not removed before Release, even if nothing else uses it any more.
func (s *Store) Save(space string, r io.Reader, limit int64) (Saved, error) {
	if err := s.blobs.Ready(); err != nil { // before the client sends everything
		return Saved{}, fmt.Errorf("save upload: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q", space)
	f, head, n, err := s.writeTemporary(r, limit, h)
	if err != nil {
		return Saved{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := s.scan(f); err != nil {
		return Saved{}, err
	}
	if changed, err := clearMetadata(f); err != nil {
		return Saved{}, fmt.Errorf("save upload: %w", err)
	} else if changed {
		if h, err = hashAgain(space, f); err != nil {
			return Saved{}, fmt.Errorf("save upload: %w", err)
		}
	}
	saved := Saved{Hash: s.nameOf(h.Sum(nil)), Size: n, Type: contentType(head)}
	saved.setDimensions(f)
	if err := s.pin(saved.Hash); err != nil {
		return Saved{}, err
	}
	if err := s.put(space, ContentKey(saved.Hash), f); err != nil {
		return Saved{}, errors.Join(err, s.Release(saved.Hash, nil))
	}
	return saved, nil
}

// hashAgain returns the hash of a file in a space, and sets the file back to its beginning.
func hashAgain(space string, f io.ReadSeeker) (hash.Hash, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q", space)
	_, err := io.CopyBuffer(h, f, make([]byte, copyBuffer))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return h, err
}

// writeTemporary writes at most limit bytes to a new temporary file and hashes them. The caller renames or removes the
// file. head is the first sniffedBytes bytes.
func (s *Store) writeTemporary(r io.Reader, limit int64, h hash.Hash) (f *os.File, head []byte, n int64, err error) {
	f, err = os.CreateTemp(filepath.Join(s.dir, "incoming"), "upload-*")
	if err != nil {
		return nil, nil, 0, fmt.Errorf("save upload: %w", err)
	}
	w := &hashingWriter{to: &limitedWriter{s: s, w: f}, hash: h}
	n, err = io.CopyBuffer(w, io.LimitReader(r, limit+1), make([]byte, copyBuffer))
	switch {
	case err != nil:
		err = fmt.Errorf("save upload: %w", err)
	case n > limit:
		err = ErrTooLarge
	default:
		return f, w.head, n, nil
	}
	f.Close()
	os.Remove(f.Name())
	return nil, nil, 0, err
}

// hashingWriter hashes all bytes and stores the first sniffedBytes bytes.
type hashingWriter struct {
	to   io.Writer
	hash hash.Hash
	head []byte
}

func (w *hashingWriter) Write(p []byte) (int, error) {
	if missing := sniffedBytes - len(w.head); missing > 0 {
		w.head = append(w.head, p[:min(missing, len(p))]...)
	}
	w.hash.Write(p)
	return w.to.Write(p)
}

// contentType returns the type detected from the first bytes. HTML and XML, which may contain scripts, count as plain
// text.
func contentType(head []byte) string {
	if t := phonePicture(head); t != "" {
		return t
	}
	t := http.DetectContentType(head)
	if strings.HasPrefix(t, "text/html") || strings.HasPrefix(t, "text/xml") {
		return "text/plain; charset=utf-8"
	}
	return t
}

// phonePicture returns the type of a picture in an ISO base media file by its main brand, "" for other files. Phones
// make such pictures. They are stored and named, but not decoded: they get no thumbnail.
func phonePicture(head []byte) string {
	if len(head) < 12 || string(head[4:8]) != "ftyp" {
		return ""
	}
	switch string(head[8:12]) {
	case "heic", "heix", "heim", "heis", "mif1":
		return "image/heic"
	case "avif", "avis":
		return "image/avif"
	}
	return ""
}

// syncAndRename syncs a file, moves it to its path, and syncs the directory.
func syncAndRename(f *os.File, path string) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	return nil
}
