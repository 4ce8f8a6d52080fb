package files

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // decoders of the picture formats that users upload
	_ "image/jpeg" // "
	"image/png"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // "

	"parley/actors/realm"
)

// Limits of pictures. The number of pixels bounds the cost of decoding: a small file can contain a huge picture. Sizes
// are in pixels.
const (
	maxPixels  = 50_000_000
	avatarSize = 100
	mediumSize = 500
	logoWidth  = 800
	logoHeight = 100
)

// SaveAvatar saves a picture in the two sizes of avatars and returns the name that both files share. They are not
// removed before Release.
func (s *Store) SaveAvatar(r io.Reader, limit int64) (name string, err error) {
	return s.savePictures(r, limit, "", func(img image.Image, o orientation) map[string]image.Image {
		return map[string]image.Image{"": turn(cropToSquare(img, avatarSize), o),
			"-medium": turn(cropToSquare(img, mediumSize), o)}
	})
}

// SaveLogo saves a picture, scaled down to the size of logos with its proportions. It is not removed before Release.
func (s *Store) SaveLogo(r io.Reader, limit int64) (name string, err error) {
	return s.savePictures(r, limit, "-logo", func(img image.Image, o orientation) map[string]image.Image {
		width, height := logoWidth, logoHeight
		if o.swaps() {
			width, height = height, width
		}
		return map[string]image.Image{"": turn(scaleToFit(img, width, height), o)}
	})
}

// savePictures decodes a picture and writes each of its shapes. The name is a hash of the original's content, plus
// ending; a shape's key in the map is added to it. At most maxDecoders decoded pictures are in memory.
func (s *Store) savePictures(
	r io.Reader,
	limit int64,
	ending string,
	shapes func(image.Image, orientation) map[string]image.Image,
) (name string, err error) {
	if err := s.blobs.Ready(); err != nil {
		return "", fmt.Errorf("save picture: %w", err)
	}
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
	img, o, err := decode(f)
	if err != nil {
		return "", err
	}
	name = s.nameOf(h.Sum(nil)[:16]) + ending
	if err := s.pin(name); err != nil {
		return "", err
	}
	for suffix, shape := range shapes(img, o) {
		if err := s.savePicture(name+suffix+".png", shape); err != nil {
			return "", errors.Join(err, s.Release(name, nil))
		}
	}
	return name, nil
}

// scaleToFit scales a picture down, with its proportions, to at most width × height pixels.
func scaleToFit(img image.Image, width, height int) *image.RGBA {
	b := img.Bounds()
	by := min(1, float64(width)/float64(b.Dx()), float64(height)/float64(b.Dy()))
	out := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(b.Dx())*by)), max(1, int(float64(b.Dy())*by))))
	draw.CatmullRom.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}

// decode decodes a picture unless that would take more than maxDecoded bytes. The caller turns it, after it was scaled
// down. The caller has acquired a decoder.
func decode(r io.ReadSeeker) (img image.Image, o orientation, err error) {
	c, kind, err := image.DecodeConfig(bufio.NewReader(r))
	if err != nil {
		return nil, upright, ErrNoImage
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, upright, err
	}
	o = upright
	bytes := bytesPerPixel(c.ColorModel)
	if kind == "jpeg" {
		bytes += jpegExtraBytesPerPixel(bufio.NewReader(r))
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return nil, upright, err
		}
		o = readOrientation(r)
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return nil, upright, err
		}
	}
	if c.Width <= 0 || c.Height <= 0 || int64(c.Width)*int64(c.Height)*bytes > maxDecoded {
		return nil, upright, ErrPixels
	}
	if img, _, err = image.Decode(bufio.NewReader(r)); err != nil {
		return nil, upright, ErrNoImage
	}
	return img, o, nil
}

// cropToSquare returns the middle square of a picture, scaled to size × size pixels.
func cropToSquare(img image.Image, size int) *image.RGBA {
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
	return s.blobs.Put(Key(realm.PictureFile, name), f)
}
