package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/image/draw"
)

// Thumbnails are a cache: they are made at the first request and can be made again from the original. Still pictures
// are JPEG, with white behind transparent parts. Animated ones are GIF. WebP would be smaller, but the encoders without
// C are lossless only; their photos are six times as large.
const (
	ThumbnailWidth   = 840
	ThumbnailHeight  = 560
	thumbnailQuality = 85 // of 100; losses are not visible at this size
)

// Limits of thumbnails. One picture is decoded at a time, including avatars and logos. That takes up to maxDecoded
// bytes and about a second.
const (
	maxDecoded         = 4 * maxPixels // bytes of a decoded picture
	maxAnimationPixels = 100_000_000   // pixels of all frames of an animation, one byte each
	MaxThumbnailBytes  = 1 << 30       // bytes of all thumbnails
	maxDecoders        = 1             // pictures that are being decoded at the same time
	MaxDecodeRequests  = 32            // requests that have a decoder or wait for one
)

// ErrDecodersBusy is returned if MaxDecodeRequests requests have a decoder or wait for one.
var ErrDecodersBusy = errors.New("too many pictures are being decoded")

// Thumbnail returns the path of an image's thumbnail and makes it if it does not exist. It returns ErrNoImage or
// ErrPixels for a picture that cannot be shown.
func (s *Store) Thumbnail(hash string, animated bool) (path string, err error) {
	if animated {
		return s.thumbnail(hash, ".gif", shrinkAnimation)
	}
	return s.thumbnail(hash, ".jpg", shrinkStill)
}

// FirstFrame returns the path of a PNG of a GIF's first frame in full size, and makes it if it does not exist. It is
// part of the thumbnail cache.
func (s *Store) FirstFrame(hash string) (path string, err error) {
	return s.thumbnail(hash, ".png", extractFirstFrame)
}

// thumbnailExtensions are the extensions of the files that are made from a picture.
var thumbnailExtensions = []string{".jpg", ".gif", ".png"}

// thumbnail returns the path of a file in the cache and makes it with shrink if it does not exist.
func (s *Store) thumbnail(hash, ending string, shrink func(io.ReadSeeker, io.Writer) error) (path string, err error) {
	name := filepath.Base(ContentKey(hash))
	path = filepath.Join(s.dir, "thumbnails", name[:2], name+ending)
	if s.touchThumbnail(path) {
		return path, nil
	}
	if s.decodeRequests.Add(1) > MaxDecodeRequests {
		s.decodeRequests.Add(-1)
		return "", ErrDecodersBusy
	}
	defer s.decodeRequests.Add(-1)
	f, done, err := s.openContent(hash) // before the decoder is acquired: another machine may be slow
	if err != nil {
		return "", fmt.Errorf("make thumbnail: %w", err)
	}
	defer done()
	s.decoders <- struct{}{}
	defer func() { <-s.decoders }()
	if s.touchThumbnail(path) { // another request made it meanwhile
		return path, nil
	}
	return path, s.makeThumbnail(f, path, shrink)
}

// acquireDecoder waits until the caller may decode a picture, until releaseDecoder.
func (s *Store) acquireDecoder() error {
	if s.decodeRequests.Add(1) > MaxDecodeRequests {
		s.decodeRequests.Add(-1)
		return ErrDecodersBusy
	}
	s.decoders <- struct{}{}
	return nil
}

// DecodeRequests returns the number of requests that have a decoder or wait for one.
func (s *Store) DecodeRequests() int64 { return s.decodeRequests.Load() }

// ThumbnailBytes returns the total size of the thumbnails.
func (s *Store) ThumbnailBytes() int64 { return s.thumbnailBytes.Load() }

func (s *Store) releaseDecoder() {
	<-s.decoders
	s.decodeRequests.Add(-1)
}

// touchThumbnail reports whether a thumbnail exists, and updates the day of its last use.
func (s *Store) touchThumbnail(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if now := time.Now(); now.Sub(info.ModTime()) > 24*time.Hour {
		os.Chtimes(path, now, now)
	}
	return true
}

func (s *Store) makeThumbnail(f io.ReadSeeker, path string, shrink func(io.ReadSeeker, io.Writer) error) (err error) {
	defer func() { // a decoder that panics on a malformed file must not end the process
		if x := recover(); x != nil {
			err = fmt.Errorf("%w: %v", ErrNoImage, x)
		}
	}()
	var b bytes.Buffer
	if err := s.checkSpace(0); err != nil {
		return fmt.Errorf("make thumbnail: %w", err)
	}
	if err := shrink(f, &b); err != nil {
		return err
	}
	if err := s.checkSpace(int64(b.Len())); err != nil {
		return fmt.Errorf("make thumbnail: %w", err)
	}
	out, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "thumbnail-*")
	if err != nil {
		return fmt.Errorf("make thumbnail: %w", err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	if _, err := out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("make thumbnail: %w", err)
	}
	return s.addThumbnail(out, path, int64(b.Len()))
}

// addThumbnail moves a file into the cache.
func (s *Store) addThumbnail(f *os.File, path string, size int64) error {
	if err := syncAndRename(f, path); err != nil {
		return err
	}
	if s.thumbnailBytes.Add(size) > MaxThumbnailBytes {
		s.evictThumbnails()
	}
	return nil
}

// shrinkStill makes the thumbnail of a still picture or of the first frame.
func shrinkStill(f io.ReadSeeker, out io.Writer) error {
	img, o, err := decode(f)
	if err != nil {
		return err
	}
	b := img.Bounds()
	by := thumbnailScale(b.Dx(), b.Dy())
	if o.swaps() {
		by = thumbnailScale(b.Dy(), b.Dx())
	}
	small := image.NewRGBA(image.Rect(0, 0, scaledLength(b.Dx(), by), scaledLength(b.Dy(), by)))
	draw.Draw(small, small.Bounds(), image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(small, small.Bounds(), img, b, draw.Over, nil)
	return jpeg.Encode(out, turn(small, o), &jpeg.Options{Quality: thumbnailQuality})
}

// extractFirstFrame writes the first frame of a GIF as PNG in full size.
func extractFirstFrame(f io.ReadSeeker, out io.Writer) error {
	c, err := gif.DecodeConfig(f)
	if err != nil {
		return ErrNoImage
	}
	if c.Width*c.Height > maxPixels {
		return ErrPixels
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	img, err := gif.Decode(bufio.NewReader(f))
	if err != nil {
		return ErrNoImage
	}
	return png.Encode(out, img)
}

// bytesPerPixel returns the size of a decoded pixel.
func bytesPerPixel(m color.Model) int64 {
	switch m {
	case color.RGBA64Model, color.NRGBA64Model, color.Gray16Model, color.Alpha16Model:
		return 8
	}
	return 4
}

// jpegExtraBytesPerPixel returns how many more bytes a pixel of a JPEG takes while it is decoded. In a progressive JPEG
// each sample takes four bytes until the last pass. A file of one kilobyte can claim to be a huge progressive picture,
// so this is read from the header before decoding. A header that is not clearly baseline or extended counts as the
// worst case.
func jpegExtraBytesPerPixel(r *bufio.Reader) int64 {
	const (
		baseline, extended, progressive = 0xc0, 0xc1, 0xc2 // frame types
		worst                           = 4 * 4            // four planes at full resolution
	)
	var head [4]byte                        // a marker and the length of its segment, length included
	if _, err := r.Discard(2); err != nil { // the start-of-image marker
		return worst
	}
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil || head[0] != 0xff {
			return worst
		}
		body := make([]byte, max(2, int(head[2])<<8|int(head[3]))-2)
		if _, err := io.ReadFull(r, body); err != nil {
			return worst
		}
		switch kind := head[1]; {
		case kind == baseline || kind == extended:
			return 0
		case kind == progressive && len(body) >= 6:
			samples, wide, high := 0, 1, 1 // in a block with one sample of the coarsest plane
			for plane := body[6:]; len(plane) >= 3; plane = plane[3:] {
				w, h := int(plane[1]>>4), int(plane[1]&15)
				samples, wide, high = samples+w*h, max(wide, w), max(high, h)
			}
			return int64((4*samples + wide*high - 1) / (wide * high))
		case kind < 0xe0 && kind != 0xc4 && kind != 0xdb && kind != 0xdd: // neither a table nor metadata
			return worst
		}
	}
}

func thumbnailScale(width, height int) float64 {
	return min(1, ThumbnailWidth/float64(width), ThumbnailHeight/float64(height))
}

func scaledLength(n int, by float64) int { return max(1, int(math.Round(float64(n)*by))) }

// shrinkAnimation scales all frames of a GIF. Each pixel gets the color of one original pixel, so the palettes stay
// valid.
func shrinkAnimation(f io.ReadSeeker, out io.Writer) error {
	if n, w, h := countFrames(f); n < 2 || w*h*n > maxAnimationPixels {
		return ErrPixels
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	g, err := gif.DecodeAll(bufio.NewReader(f))
	if err != nil {
		return ErrNoImage
	}
	by := thumbnailScale(g.Config.Width, g.Config.Height)
	whole := image.Rect(0, 0, scaledLength(g.Config.Width, by), scaledLength(g.Config.Height, by))
	g.Config.Width, g.Config.Height = whole.Dx(), whole.Dy()
	for i, old := range g.Image {
		b := old.Bounds()
		r := image.Rect(int(float64(b.Min.X)*by), int(float64(b.Min.Y)*by), int(math.Ceil(float64(b.Max.X)*by)),
			int(math.Ceil(float64(b.Max.Y)*by)))
		r = r.Intersect(whole)
		if r.Empty() {
			r = image.Rect(0, 0, 1, 1)
		}
		small := image.NewPaletted(r, old.Palette)
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				p := image.Pt(min(int((float64(x)+0.5)/by), b.Max.X-1), min(int((float64(y)+0.5)/by), b.Max.Y-1))
				small.SetColorIndex(x, y, old.ColorIndexAt(max(p.X, b.Min.X), max(p.Y, b.Min.Y)))
			}
		}
		g.Image[i] = small
	}
	if err := gif.EncodeAll(out, g); err != nil {
		return ErrNoImage
	}
	return nil
}

// countFrames counts the frames of a GIF without decompressing them, because a small file can decompress to gigabytes.
// It returns 0 for a file that is not a GIF, and the frames before the defect for a damaged one.
func countFrames(f io.Reader) (n, width, height int) {
	r := bufio.NewReader(f)
	head := make([]byte, 13)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:3]) != "GIF" {
		return 0, 0, 0
	}
	width, height = int(head[6])|int(head[7])<<8, int(head[8])|int(head[9])<<8
	table := func(flags byte) error {
		if flags&0x80 == 0 {
			return nil
		}
		_, err := r.Discard(3 << (flags&7 + 1))
		return err
	}
	if table(head[10]) != nil {
		return 0, width, height
	}
	for {
		kind, err := r.ReadByte()
		if err != nil {
			return n, width, height
		}
		switch kind {
		case 0x2c: // a frame: position and size, color table, code size
			if _, err = io.ReadFull(r, head[:9]); err == nil {
				if err = table(head[8]); err == nil {
					_, err = r.Discard(1)
				}
			}
			n++
		case 0x21: // an extension
			_, err = r.Discard(1)
		default:
			return n, width, height
		}
		for size := byte(1); err == nil && size > 0; {
			if size, err = r.ReadByte(); err == nil {
				_, err = r.Discard(int(size))
			}
		}
		if err != nil {
			return n, width, height
		}
	}
}

// countThumbnails sets thumbnailBytes from the files.
func (s *Store) countThumbnails() error {
	total := int64(0)
	err := s.eachThumbnail(func(_ string, info fs.FileInfo) { total += info.Size() })
	s.thumbnailBytes.Store(total)
	return err
}

func (s *Store) eachThumbnail(f func(path string, info fs.FileInfo)) error {
	return filepath.WalkDir(filepath.Join(s.dir, "thumbnails"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			f(path, info)
		}
		return nil
	})
}

// evictThumbnails removes the least recently used thumbnails until the cache is 90 % full.
func (s *Store) evictThumbnails() {
	type thumbnail struct {
		path string
		info fs.FileInfo
	}
	var list []thumbnail
	total := int64(0)
	if s.eachThumbnail(func(path string, info fs.FileInfo) {
		list = append(list, thumbnail{path, info})
		total += info.Size()
	}) != nil {
		return
	}
	slices.SortFunc(list, func(a, b thumbnail) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for _, t := range list {
		if total <= MaxThumbnailBytes/10*9 {
			break
		}
		if os.Remove(t.path) == nil {
			total -= t.info.Size()
		}
	}
	s.thumbnailBytes.Store(total)
}

// removeThumbnail removes the files that were made from a picture.
func (s *Store) removeThumbnail(hash string) {
	name := filepath.Base(ContentKey(hash))
	for _, ending := range thumbnailExtensions {
		s.removeCached(filepath.Join(s.dir, "thumbnails", name[:2], name+ending))
	}
}

// removeCached removes a file of the cache, if it exists.
func (s *Store) removeCached(path string) {
	if info, err := os.Stat(path); err == nil && os.Remove(path) == nil {
		s.thumbnailBytes.Add(-info.Size())
	}
}
