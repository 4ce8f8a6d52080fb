package files

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"image"
	_ "image/gif"  // decoders of the picture formats that users upload
	_ "image/jpeg" // "
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // "
)

// Store is a directory of uploaded files. Its methods may be called from any goroutine, except those of a Store from
// OpenReadOnly, which only returns paths.
type Store struct {
	dir string

	room           func(bytes int64) error // see LimitSpace
	decodeRequests atomic.Int64            // see MaxDecodeRequests
	thumbnailBytes atomic.Int64            // see MaxThumbnailBytes
	decoders       chan struct{}           // holds an element for each picture that is being decoded

	mu sync.Mutex // guards the fields below

	// pins counts the calls that are saving content of a hash, or a picture of a name. It is not removed meanwhile.
	pins map[string]int
	// removalCandidates is the files that a running sweep will remove. Saving one of them takes it out.
	removalCandidates map[string]bool
	removalPauses     int // nothing is removed while this is not zero

	partialUploads map[string]*PartialUpload
	expiryTimer    *time.Timer // runs removeExpired when the next upload expires; nil if there is no upload
	nextExpiry     int64       // Unix seconds
}

// Limits of pictures. The number of pixels bounds the cost of decoding: a small file can contain a huge picture. Sizes
// are in pixels.
const (
	maxPixels  = 50_000_000
	avatarSize = 100
	mediumSize = 500
	logoWidth  = 800
	logoHeight = 100
)

// Errors that are caused by the caller or the file.
var (
	ErrTooLarge = errors.New("file too large")
	ErrNoImage  = errors.New("not an image")
	ErrPixels   = errors.New("image has too many pixels")
)

// Open opens the directory and makes it if it does not exist. It removes files whose writing was interrupted.
func Open(dir string) (*Store, error) {
	for _, d := range []string{"content", "pictures", "exports", "incoming", "unfinished", "thumbnails"} {
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
		pins:           map[string]int{},
		partialUploads: map[string]*PartialUpload{},
		decoders:       make(chan struct{}, maxDecoders),
	}
	if err := s.countThumbnails(); err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	if err := s.loadPartialUploads(); err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	return s, nil
}

// LimitSpace makes the Store ask room, before it writes a file and while it writes a long one, whether so many more
// bytes may be stored. It is called before the first file is written. An error of room ends the writing and is
// returned.
func (s *Store) LimitSpace(room func(bytes int64) error) { s.room = room }

// roomFor returns an error if so many bytes must not be stored.
func (s *Store) roomFor(bytes int64) error {
	if s.room == nil {
		return nil
	}
	return s.room(bytes)
}

// roomStep is how many bytes of a file are written between two looks at the space of the disk.
const roomStep = 1 << 20

// limitedWriter writes a file as long as there is room.
type limitedWriter struct {
	s    *Store
	w    io.Writer
	left int64 // bytes until the next look
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left <= 0 {
		if err := w.s.roomFor(int64(len(p))); err != nil {
			return 0, err
		}
		w.left = roomStep
	}
	return w.w.Write(p)
}

// OpenReadOnly returns a Store that only reads. Nothing is made or removed in the directory.
func OpenReadOnly(dir string) *Store { return &Store{dir: dir} }

// Put writes a picture or data export to its path unless it exists. Names follow from the content or are random, so an
// existing file has the same content.
func (s *Store) Put(path string, r io.Reader) error {
	if _, err := os.Stat(path); err == nil {
		_, err = io.Copy(io.Discard, r)
		return err
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "put-*")
	if err != nil {
		return fmt.Errorf("save file: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := io.Copy(&limitedWriter{s: s, w: f}, r); err != nil {
		return fmt.Errorf("save file: %w", err)
	}
	return syncAndRename(f, path)
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
// content in two spaces is two files: one organization can delete what another still has. The content is not removed
// before Release, even if nothing else uses it any more.
func (s *Store) Save(space string, r io.Reader, limit int64) (Saved, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q", space)
	f, head, n, err := s.writeTemporary(r, limit, h)
	if err != nil {
		return Saved{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	saved := Saved{Hash: hex.EncodeToString(h.Sum(nil)), Size: n, Type: contentType(head)}
	saved.setDimensions(f)
	s.pin(saved.Hash)
	if err := syncAndRename(f, s.Path(saved.Hash)); err != nil {
		return Saved{}, errors.Join(err, s.Release(saved.Hash, nil))
	}
	return saved, nil
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

func (s *Store) pin(hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[hash]++
	delete(s.removalCandidates, hash)
}

// Release ends the protection that Save, SaveAvatar or SaveLogo began. By then the caller has stored a row with the
// hash or name, or never will. In the latter case used, if not nil, must report whether any row has the content; if
// none has, it is removed. A picture is removed by the next sweep.
func (s *Store) Release(hash string, used func() (bool, error)) error {
	s.mu.Lock()
	if s.pins[hash]--; s.pins[hash] <= 0 {
		delete(s.pins, hash)
	}
	s.mu.Unlock()
	if used == nil {
		return nil
	}
	return s.Remove(hash, used)
}

// hashingWriter hashes all bytes and stores the first sniffedBytes bytes.
type hashingWriter struct {
	to   io.Writer
	hash hash.Hash
	head []byte
}

func (w *hashingWriter) Write(p []byte) (int, error) {
	if room := sniffedBytes - len(w.head); room > 0 {
		w.head = append(w.head, p[:min(room, len(p))]...)
	}
	w.hash.Write(p)
	return w.to.Write(p)
}

// contentType returns the type detected from the first bytes. HTML and XML, which may contain scripts, count as plain
// text.
func contentType(head []byte) string {
	t := http.DetectContentType(head)
	if strings.HasPrefix(t, "text/html") || strings.HasPrefix(t, "text/xml") {
		return "text/plain; charset=utf-8"
	}
	return t
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

// Path returns the path of the content with a hash. An invalid hash gets a path that does not exist.
func (s *Store) Path(hash string) string {
	if len(hash) < 2 || strings.Trim(hash, "0123456789abcdef") != "" {
		return filepath.Join(s.dir, "content", "none")
	}
	return filepath.Join(s.dir, "content", hash[:2], hash)
}

// Remove deletes content unless used reports that a row has it. The same content cannot be saved and stored in a row in
// between: content that is being saved is not removed, and content that was released is in a row already.
func (s *Store) Remove(hash string, used func() (bool, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[hash] > 0 || s.removalPauses > 0 {
		return nil
	}
	if yes, err := used(); err != nil || yes {
		return err
	}
	return s.remove(hash)
}

// PauseRemoval makes the Store keep all content, pictures and exports until the returned function is called. A backup
// needs them: its rows may name files that no current row names. The next sweep removes what was not removed meanwhile.
func (s *Store) PauseRemoval() (end func()) {
	hold := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removalPauses += n
	}
	hold(1)
	return func() { hold(-1) }
}

// remove deletes content. It deletes the thumbnails first, because no sweep would find them without the content. mu is
// held.
func (s *Store) remove(hash string) error {
	s.removeThumbnail(hash)
	err := os.Remove(s.Path(hash))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// SaveAvatar saves a picture in the two sizes of avatars and returns the name that both files share. They are not
// removed before Release.
func (s *Store) SaveAvatar(r io.Reader, limit int64) (name string, err error) {
	return s.savePictures(r, limit, "", func(img image.Image) map[string]image.Image {
		return map[string]image.Image{"": cropToSquare(img, avatarSize), "-medium": cropToSquare(img, mediumSize)}
	})
}

// SaveLogo saves a picture, scaled down to the size of logos with its proportions. It is not removed before Release.
func (s *Store) SaveLogo(r io.Reader, limit int64) (name string, err error) {
	return s.savePictures(r, limit, "-logo", func(img image.Image) map[string]image.Image {
		return map[string]image.Image{"": scaleToFit(img, logoWidth, logoHeight)}
	})
}

// savePictures decodes a picture and writes each of its shapes. The name is a hash of the original's content, plus
// ending; a shape's key in the map is added to it. At most maxDecoders decoded pictures are in memory.
func (s *Store) savePictures(
	r io.Reader,
	limit int64,
	ending string,
	shapes func(image.Image) map[string]image.Image,
) (name string, err error) {
	h := sha256.New()
	f, _, _, err := s.writeTemporary(r, limit, h)
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("save picture: %w", err)
	}
	if err := s.acquireDecoder(); err != nil {
		return "", err
	}
	defer s.releaseDecoder()
	img, err := decode(f)
	if err != nil {
		return "", err
	}
	name = hex.EncodeToString(h.Sum(nil)[:16]) + ending
	s.pin(name)
	for suffix, shape := range shapes(img) {
		if err := s.savePicture(name+suffix+".png", shape); err != nil {
			return "", errors.Join(err, s.Release(name, nil))
		}
	}
	return name, nil
}

// scaleToFit scales a picture down, with its proportions, to at most width × height pixels.
func scaleToFit(img image.Image, width, height int) image.Image {
	b := img.Bounds()
	by := min(1, float64(width)/float64(b.Dx()), float64(height)/float64(b.Dy()))
	out := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(b.Dx())*by)), max(1, int(float64(b.Dy())*by))))
	draw.CatmullRom.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}

// decode decodes a picture unless that would take more than maxDecoded bytes. The caller has acquired a decoder.
func decode(r io.ReadSeeker) (image.Image, error) {
	c, kind, err := image.DecodeConfig(bufio.NewReader(r))
	if err != nil {
		return nil, ErrNoImage
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	bytes := bytesPerPixel(c.ColorModel)
	if kind == "jpeg" {
		bytes += jpegExtraBytesPerPixel(bufio.NewReader(r))
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	if c.Width <= 0 || c.Height <= 0 || int64(c.Width)*int64(c.Height)*bytes > maxDecoded {
		return nil, ErrPixels
	}
	img, _, err := image.Decode(bufio.NewReader(r))
	if err != nil {
		return nil, ErrNoImage
	}
	return img, nil
}

// cropToSquare returns the middle square of a picture, scaled to size × size pixels.
func cropToSquare(img image.Image, size int) image.Image {
	b := img.Bounds()
	side := min(b.Dx(), b.Dy())
	x, y := b.Min.X+(b.Dx()-side)/2, b.Min.Y+(b.Dy()-side)/2
	out := image.NewRGBA(image.Rect(0, 0, size, size))
	draw.CatmullRom.Scale(out, out.Bounds(), img, image.Rect(x, y, x+side, y+side), draw.Src, nil)
	return out
}

func (s *Store) savePicture(name string, img image.Image) error {
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "picture-*")
	if err != nil {
		return fmt.Errorf("save picture: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := png.Encode(&limitedWriter{s: s, w: f}, img); err != nil {
		return fmt.Errorf("save picture: %w", err)
	}
	return syncAndRename(f, s.Picture(name))
}

// Picture returns the path of a picture file.
func (s *Store) Picture(name string) string {
	return filepath.Join(s.dir, "pictures", filepath.Base(filepath.Clean("/"+name)))
}

// NewExport starts the file of a data export. It gets its name at Commit.
func (s *Store) NewExport(name string) (*Export, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "export-*")
	if err != nil {
		return nil, fmt.Errorf("write export: %w", err)
	}
	return &Export{f, &limitedWriter{s: s, w: f}, s.Export(name)}, nil
}

// Export writes a data export.
type Export struct {
	f    *os.File
	w    io.Writer
	path string
}

func (e *Export) Write(p []byte) (int, error) { return e.w.Write(p) }

// Commit syncs the file and moves it to its name.
func (e *Export) Commit() error { return syncAndRename(e.f, e.path) }

// Close removes the file unless it was committed.
func (e *Export) Close() error {
	os.Remove(e.f.Name())
	return e.f.Close()
}

// Export returns the path of a data export.
func (s *Store) Export(name string) string {
	return filepath.Join(s.dir, "exports", filepath.Base(filepath.Clean("/"+name)))
}

// RemoveExport deletes a data export, if it exists.
func (s *Store) RemoveExport(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removalPauses > 0 {
		return nil
	}
	err := os.Remove(s.Export(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
