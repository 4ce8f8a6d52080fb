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

// Thumbnails are made when they are first wanted and may be thrown away at any time: the original is there. Still ones are
// JPEG, on white where the picture is transparent; moving ones GIF. (WebP is smaller, but who wants no C has a lossless
// encoder only, whose photos are six times as large.)
const (
	ThumbnailWidth   = 840
	ThumbnailHeight  = 560
	thumbnailQuality = 85 // of 100: JPEG's losses do not show at this size
)

// Limits of thumbnails. One picture is decoded at a time, avatars and logos included: that may take maxDecoded bytes,
// and a second.
const (
	maxDecoded         = 4 * maxPixels // bytes of a decoded picture
	maxAnimationPixels = 100_000_000   // pixels of all pictures of one that moves, a byte each
	MaxThumbnailBytes  = 1 << 30       // bytes of all that are kept
	maxDecoders        = 1             // pictures being decoded at once
	MaxDecodeRequests  = 32            // requests that wait for it, or hold it
)

// ErrDecodersBusy says that too many wait for a picture to be decoded.
var ErrDecodersBusy = errors.New("too many pictures are being decoded")

// Thumbnail is where the thumbnail of an image is; it is made if it is not there. A picture that cannot be shown is
// ErrNoImage or ErrPixels.
func (s *Store) Thumbnail(hash string, moving bool) (path string, err error) {
	if moving {
		return s.thumbnail(hash, ".gif", shrinkAnimation)
	}
	return s.thumbnail(hash, ".jpg", shrinkStill)
}

// FirstFrame is where the first picture of a GIF is, in its own size, as PNG. It is kept as thumbnails are.
func (s *Store) FirstFrame(hash string) (path string, err error) {
	return s.thumbnail(hash, ".png", extractFirstFrame)
}

// thumbnailExtensions are the endings of what is made of a picture.
var thumbnailExtensions = []string{".jpg", ".gif", ".png"}

// thumbnail is where what is made of a picture is; it is made if it is not there.
func (s *Store) thumbnail(hash, ending string, shrink func(io.ReadSeeker, io.Writer) error) (path string, err error) {
	name := filepath.Base(s.Path(hash))
	path = filepath.Join(s.dir, "thumbnails", name[:2], name+ending)
	if s.touchThumbnail(path) {
		return path, nil
	}
	if err := s.acquireDecoder(); err != nil {
		return "", err
	}
	defer s.releaseDecoder()
	if s.touchThumbnail(path) { // somebody else made it meanwhile
		return path, nil
	}
	return path, s.makeThumbnail(hash, path, shrink)
}

// acquireDecoder waits until the caller may decode a picture; giveDecoder ends that.
func (s *Store) acquireDecoder() error {
	if s.decodeRequests.Add(1) > MaxDecodeRequests {
		s.decodeRequests.Add(-1)
		return ErrDecodersBusy
	}
	s.decoders <- struct{}{}
	return nil
}

// DecodeRequests is how many pictures are being decoded or wait for it.
func (s *Store) DecodeRequests() int64 { return s.decodeRequests.Load() }

// ThumbnailBytes is how many bytes the thumbnails take.
func (s *Store) ThumbnailBytes() int64 { return s.thumbnailBytes.Load() }

func (s *Store) releaseDecoder() {
	<-s.decoders
	s.decodeRequests.Add(-1)
}

// touchThumbnail reports whether a thumbnail is there, and remembers, to the day, that it was wanted.
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

func (s *Store) makeThumbnail(hash, path string, shrink func(io.ReadSeeker, io.Writer) error) (err error) {
	defer func() { // a decoder that stumbles over a strange file must not cost the process
		if x := recover(); x != nil {
			err = fmt.Errorf("%w: %v", ErrNoImage, x)
		}
	}()
	f, err := os.Open(s.Path(hash))
	if err != nil {
		return fmt.Errorf("make thumbnail: %w", err)
	}
	defer f.Close()
	var b bytes.Buffer
	if err := shrink(f, &b); err != nil {
		return err
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
	if err := syncAndRename(out, path); err != nil {
		return err
	}
	if s.thumbnailBytes.Add(int64(b.Len())) > MaxThumbnailBytes {
		s.evictThumbnails()
	}
	return nil
}

// shrinkStill shrinks the first picture of a file.
func shrinkStill(f io.ReadSeeker, out io.Writer) error {
	img, err := decode(f)
	if err != nil {
		return err
	}
	b := img.Bounds()
	by := thumbnailScale(b.Dx(), b.Dy())
	small := image.NewRGBA(image.Rect(0, 0, scaledLength(b.Dx(), by), scaledLength(b.Dy(), by)))
	draw.Draw(small, small.Bounds(), image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(small, small.Bounds(), img, b, draw.Over, nil)
	return jpeg.Encode(out, small, &jpeg.Options{Quality: thumbnailQuality})
}

// extractFirstFrame is the extractFirstFrame picture of a GIF, in its own size.
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

// bytesPerPixel is how many bytes a decoded pixel takes.
func bytesPerPixel(m color.Model) int64 {
	switch m {
	case color.RGBA64Model, color.NRGBA64Model, color.Gray16Model, color.Alpha16Model:
		return 8
	}
	return 4
}

// jpegExtraBytesPerPixel is how many bytes more a pixel of a JPEG takes while it is decoded: in a progressive one each sample is a
// number of four bytes until the last pass over the picture. A kilobyte may claim such a picture, so this is known before
// anything is decoded. What is not plainly a JPEG of the other kind counts as the worst there is.
func jpegExtraBytesPerPixel(r *bufio.Reader) int64 {
	const (
		baseline, extended, progressive = 0xc0, 0xc1, 0xc2 // kinds of frames
		worst                           = 4 * 4            // four planes, none of them coarser than the picture
	)
	var head [4]byte                        // a marker and the length of what follows, itself included
	if _, err := r.Discard(2); err != nil { // the start of the image
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
			samples, wide, high := 0, 1, 1 // in a block that holds one sample of the coarsest plane
			for plane := body[6:]; len(plane) >= 3; plane = plane[3:] {
				w, h := int(plane[1]>>4), int(plane[1]&15)
				samples, wide, high = samples+w*h, max(wide, w), max(high, h)
			}
			return int64((4*samples + wide*high - 1) / (wide * high))
		case kind < 0xe0 && kind != 0xc4 && kind != 0xdb && kind != 0xdd: // neither a table nor something said about the picture
			return worst
		}
	}
}

func thumbnailScale(width, height int) float64 {
	return min(1, ThumbnailWidth/float64(width), ThumbnailHeight/float64(height))
}

func scaledLength(n int, by float64) int { return max(1, int(math.Round(float64(n)*by))) }

// shrinkAnimation shrinks all pictures of a GIF. Each pixel keeps the colour of one of its own, so the palettes stay.
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
		r := image.Rect(
			int(float64(b.Min.X)*by),
			int(float64(b.Min.Y)*by),
			int(math.Ceil(float64(b.Max.X)*by)),
			int(math.Ceil(float64(b.Max.Y)*by)),
		)
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

// countFrames counts the pictures of a GIF without unpacking them, as a small file may unpack to gigabytes. What is no GIF, or a
// broken one, has none or those before the break.
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
		case 0x2c: // a picture: place and size, table, size of codes
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

// countThumbnails finds out how much space they take.
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

// evictThumbnails throws away those that were not wanted for the longest time, until there is room for a while.
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

// removeThumbnail goes with its original.
func (s *Store) removeThumbnail(hash string) {
	name := filepath.Base(s.Path(hash))
	for _, ending := range thumbnailExtensions {
		path := filepath.Join(s.dir, "thumbnails", name[:2], name+ending)
		if info, err := os.Stat(path); err == nil && os.Remove(path) == nil {
			s.thumbnailBytes.Add(-info.Size())
		}
	}
}
