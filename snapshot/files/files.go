// Package files keeps uploaded files and pictures under the data directory. A file is named by the hash of its content,
// so the same content is kept once, and what was written is never changed: it appears whole, synced, or not at all.
package files

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"image"
	_ "image/gif"  // the kinds of pictures people upload
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

// Store is a directory of files. It may be used by many goroutines.
type Store struct {
	dir string

	mu                sync.Mutex
	pins              map[string]int  // how many are saving content of a hash, or a picture: it is not to be removed under their hands
	removalCandidates map[string]bool // what a sweep is about to remove: who saves the same takes it out

	decodeRequests, thumbnailBytes atomic.Int64  // requests for thumbnails, and the thumbnails' bytes
	decoders                       chan struct{} // holds one for each picture being decoded

	removalPauses  int // how many want everything to stay where it is
	partialUploads map[string]*PartialUpload
	expiryTimer    *time.Timer // of the one that expires first
	nextExpiry     int64       // Unix seconds
}

// Limits of pictures: pixels bound what decoding may cost (a small file can claim a huge picture), sizes are in pixels.
const (
	maxPixels  = 50_000_000
	avatarSize = 100
	mediumSize = 500
	logoWidth  = 800
	logoHeight = 100
)

// Errors a caller may be told of.
var (
	ErrTooLarge = errors.New("file too large")
	ErrEmpty    = errors.New("file is empty")
	ErrNoImage  = errors.New("not an image")
	ErrPixels   = errors.New("image has too many pixels")
)

// Open makes the directory if it is not there.
func Open(dir string) (*Store, error) {
	for _, d := range []string{"content", "pictures", "exports", "incoming", "unfinished", "thumbnails"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open uploads: %w", err)
		}
	}
	// What lies in incoming was never finished.
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

// OpenReadOnly is the files of a directory, to be read only: nothing is made or tidied there.
func OpenReadOnly(dir string) *Store { return &Store{dir: dir} }

// Put writes a picture or a data export under its name as it is, unless it is there: names go by content, or are chance.
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
	if _, err := io.Copy(f, r); err != nil {
		return fmt.Errorf("save file: %w", err)
	}
	return syncAndRename(f, path)
}

// Saved describes a file that was written.
type Saved struct {
	Hash          string
	Size          int64
	Type          string // sniffedBytes; never what the client claims
	Width, Height int    // of an image, else 0
	Animated      bool   // more than one picture, and few enough to show them
}

// sniffedBytes is how many bytes decide the content type.
const sniffedBytes = 512

// copyBuffer is how many bytes of a file are in memory at once while it is written.
const copyBuffer = 64 << 10

// Save writes a file of at most limit bytes and returns when it is on disk. space keeps what belongs to one owner apart
// from the same content of another: it is part of the hash, so that one may delete what the other keeps. Until Release
// the content is not removed, whoever else may cease to use the same.
func (s *Store) Save(space string, r io.Reader, limit int64) (Saved, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q", space)
	f, head, n, err := s.writeTemporary(r, limit, h)
	if err != nil {
		return Saved{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if n == 0 {
		return Saved{}, ErrEmpty
	}
	saved := Saved{Hash: hex.EncodeToString(h.Sum(nil)), Size: n, Type: contentType(head)}
	saved.setDimensions(f)
	s.pin(saved.Hash)
	if err := syncAndRename(f, s.Path(saved.Hash)); err != nil {
		return Saved{}, errors.Join(err, s.Release(saved.Hash, nil))
	}
	return saved, nil
}

// writeTemporary writes at most limit bytes, as they come, to a file that nobody knows yet, which is the caller's to name or remove.
// They are hashed on the way; head is the first of them.
func (s *Store) writeTemporary(r io.Reader, limit int64, h hash.Hash) (f *os.File, head []byte, n int64, err error) {
	f, err = os.CreateTemp(filepath.Join(s.dir, "incoming"), "upload-*")
	if err != nil {
		return nil, nil, 0, fmt.Errorf("save upload: %w", err)
	}
	w := &hashingWriter{to: f, hash: h}
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

// Release ends what Save, SaveAvatar or SaveLogo began: whoever saved the content or picture has noted it, or not. In the
// latter case used, if not nil, is asked whether anybody else did, and if not the content is removed; a picture waits for
// the sweep.
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

// hashingWriter hashes what passes and remembers the first bytes.
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

// contentType is what the bytes look like; text that may be a page or a drawing with scripts is only text here.
func contentType(head []byte) string {
	t := http.DetectContentType(head)
	if strings.HasPrefix(t, "text/html") || strings.HasPrefix(t, "text/xml") {
		return "text/plain; charset=utf-8"
	}
	return t
}

// syncAndRename syncs a file and gives it its name; the name is synced too.
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

// Path is where content with that hash lies.
func (s *Store) Path(hash string) string {
	if len(hash) < 2 || strings.Trim(hash, "0123456789abcdef") != "" {
		return filepath.Join(s.dir, "content", "none")
	}
	return filepath.Join(s.dir, "content", hash[:2], hash)
}

// Remove deletes content unless used says that somebody has it noted. Nobody can save and note the same in between: what is
// being saved stays, and what was released before is noted by then.
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

// PauseRemoval keeps content, pictures and exports where they are until the function it returns is called: a backup's rows may name
// what no row names any more. What was to go meanwhile waits for the sweep.
func (s *Store) PauseRemoval() (end func()) {
	hold := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removalPauses += n
	}
	hold(1)
	return func() { hold(-1) }
}

// remove deletes content, its thumbnail first: one without the other would be nobody's. mu is held.
func (s *Store) remove(hash string) error {
	s.removeThumbnail(hash)
	err := os.Remove(s.Path(hash))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// SaveAvatar scales a picture to the sizes avatars have and returns the name both files share. Until Release they are not
// removed.
func (s *Store) SaveAvatar(r io.Reader, limit int64) (name string, err error) {
	return s.savePictures(r, limit, "", func(img image.Image) map[string]image.Image {
		return map[string]image.Image{"": cropToSquare(img, avatarSize), "-medium": cropToSquare(img, mediumSize)}
	})
}

// SaveLogo scales a picture down until it fits a logo's place, keeping its shape. Until Release it is not removed.
func (s *Store) SaveLogo(r io.Reader, limit int64) (name string, err error) {
	return s.savePictures(r, limit, "-logo", func(img image.Image) map[string]image.Image {
		return map[string]image.Image{"": scaleToFit(img, logoWidth, logoHeight)}
	})
}

// savePictures writes what shapes makes of a picture, each under the name of the picture's content and its own ending. Of
// decoded pictures there are maxDecoders in memory.
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

// scaleToFit scales a picture down to at most width × height pixels.
func scaleToFit(img image.Image, width, height int) image.Image {
	b := img.Bounds()
	by := min(1, float64(width)/float64(b.Dx()), float64(height)/float64(b.Dy()))
	out := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(b.Dx())*by)), max(1, int(float64(b.Dy())*by))))
	draw.CatmullRom.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}

// decode reads a picture that does not claim more pixels than anybody needs. The caller has taken a decoder.
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

// cropToSquare cuts the middle square out of a picture and brings it to size × size pixels.
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
	if err := png.Encode(f, img); err != nil {
		return fmt.Errorf("save picture: %w", err)
	}
	return syncAndRename(f, s.Picture(name))
}

// Picture is where a picture of that file name lies.
func (s *Store) Picture(name string) string {
	return filepath.Join(s.dir, "pictures", filepath.Base(filepath.Clean("/"+name)))
}

// NewExport begins the file of a data export; it has its name only after a successful Commit.
func (s *Store) NewExport(name string) (*Export, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "export-*")
	if err != nil {
		return nil, fmt.Errorf("write export: %w", err)
	}
	return &Export{f, s.Export(name)}, nil
}

// Export is a data export being written.
type Export struct {
	f    *os.File
	path string
}

func (e *Export) Write(p []byte) (int, error) { return e.f.Write(p) }

// Commit syncs the file and gives it its name.
func (e *Export) Commit() error { return syncAndRename(e.f, e.path) }

// Close ends the writing; what was not committed is gone.
func (e *Export) Close() error {
	os.Remove(e.f.Name())
	return e.f.Close()
}

// Export is where a data export of that name lies.
func (s *Store) Export(name string) string {
	return filepath.Join(s.dir, "exports", filepath.Base(filepath.Clean("/"+name)))
}

// RemoveExport deletes a data export.
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
