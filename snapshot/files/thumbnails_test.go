package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func encodeAnimation(t *testing.T, frames, w, h int) []byte {
	t.Helper()
	g := &gif.GIF{}
	for i := range frames {
		p := image.NewPaletted(image.Rect(0, 0, w, h), palette.WebSafe)
		for n := range p.Pix {
			p.Pix[n] = uint8(i + n%7)
		}
		g.Image, g.Delay = append(g.Image, p), append(g.Delay, 5+i)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCountFrames(t *testing.T) {
	for n := 1; n <= 3; n++ {
		b := encodeAnimation(t, n, 40, 30)
		if got, w, h := countFrames(bytes.NewReader(b)); got != n || w != 40 || h != 30 {
			t.Errorf("%d pictures: %d of %dx%d", n, got, w, h)
		}
		for cut := range len(b) { // a truncated file must not panic, and one frame must not count as two
			if got, _, _ := countFrames(bytes.NewReader(b[:cut])); got > n {
				t.Errorf("the first %d bytes of %d frames have %d frames", cut, n, got)
			}
		}
	}
}

// The first frame of a GIF is decoded once, and is removed with the original.
func TestFirstFrame(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Save("1", bytes.NewReader(encodeAnimation(t, 3, 64, 48)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.FirstFrame(x.Hash)
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(was)); err != nil || img.Bounds() != image.Rect(0, 0, 64, 48) {
		t.Errorf("the first frame: %v %v", img, err)
	}
	if err := os.WriteFile(path, []byte("mark"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := s.FirstFrame(x.Hash); err != nil || again != path {
		t.Errorf("the second time: %q %v", again, err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != "mark" {
		t.Errorf("the frame was decoded twice: %v", err)
	}
	if err := s.Release(x.Hash, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(x.Hash, func() (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the frame exists without the original: %v", err)
	}
	for range MaxDecodeRequests {
		s.decodeRequests.Add(1)
	}
	if _, err := s.FirstFrame(x.Hash); !errors.Is(err, ErrDecodersBusy) {
		t.Errorf("with too many requests: %v", err)
	}
	for range MaxDecodeRequests {
		s.decodeRequests.Add(-1)
	}
	bad, err := s.Save("1", strings.NewReader("text"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FirstFrame(bad.Hash); !errors.Is(err, ErrNoImage) {
		t.Errorf("no picture: %v", err)
	}
}

func TestThumbnails(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	save := func(b []byte) Saved {
		t.Helper()
		x, err := s.Save("1", bytes.NewReader(b), 10<<20)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	clear := image.NewNRGBA(image.Rect(0, 0, 2000, 1000)) // transparent except a red half
	for y := range 1000 {
		for x := range 1000 {
			clear.SetNRGBA(x, y, color.NRGBA{R: 255, A: 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, clear); err != nil {
		t.Fatal(err)
	}
	x := save(b.Bytes())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.Thumbnail(x.Hash, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	path, err := s.Thumbnail(x.Hash, false)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := jpeg.Decode(f)
	if err != nil || img.Bounds().Dx() != 840 || img.Bounds().Dy() != 420 {
		t.Fatalf("%v %v", img.Bounds(), err)
	}
	distance := func(a uint32, b uint8) int { return max(int(a>>8)-int(b), int(b)-int(a>>8)) }
	for p, want := range map[image.Point]color.RGBA{{100, 100}: {255, 0, 0, 255}, {700, 100}: {255, 255, 255, 255}} {
		r, g, b, _ := img.At(p.X, p.Y).RGBA()
		if distance(r, want.R)+distance(g, want.G)+distance(b, want.B) > 12 {
			t.Errorf("at %v: %d %d %d", p, r>>8, g>>8, b>>8)
		}
	}
	m := save(encodeAnimation(t, 3, 1680, 560))
	if path, err = s.Thumbnail(m.Hash, true); err != nil || !m.Animated {
		t.Fatal(m, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := gif.DecodeAll(bytes.NewReader(data)); err != nil || len(g.Image) != 3 || g.Config.Width != 840 ||
		g.Config.Height != 280 ||
		g.Delay[2] != 7 {
		t.Fatalf("%+v %v", g, err)
	}
	for what, bad := range map[string][]byte{"no picture": []byte("text"), "half a picture": b.Bytes()[:2000]} {
		if _, err := s.Thumbnail(save(bad).Hash, false); !errors.Is(err, ErrNoImage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	bomb := encodePicture(t, 1, 1)
	copy(bomb[16:24], []byte{0, 1, 0, 0, 0, 1, 0, 0})
	if _, err := s.Thumbnail(save(bomb).Hash, false); err == nil {
		t.Error("a bomb was decoded")
	}
	if _, err := s.Thumbnail("../../x", false); err == nil {
		t.Error("a thumbnail of nothing")
	}
	// The cache evicts the least recently used thumbnail, and makes it again when it is requested.
	kept, _ := s.Thumbnail(x.Hash, false)
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Truncate(path, MaxThumbnailBytes/10*9); err != nil { // a sparse file that takes nearly all the room
		t.Fatal(err)
	}
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	s.evictThumbnails()
	if _, err := os.Stat(path); err == nil {
		t.Error("too many thumbnails are left")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("a recently used thumbnail was evicted")
	}
	if _, err := s.Thumbnail(m.Hash, true); err != nil {
		t.Error(err)
	}
	if err := s.Release(m.Hash, func() (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil || strings.HasSuffix(path, "jpg") {
		t.Error("a thumbnail outlived its picture")
	}
}

func TestJPEGMemoryLimit(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewYCbCr(image.Rect(0, 0, 16, 16), image.YCbCrSubsampleRatio444), nil); err != nil {
		t.Fatal(err)
	}
	plain := b.Bytes()
	frame := bytes.Index(plain, []byte{0xff, 0xc0})
	claim := func(kind byte, side int, before ...byte) []byte {
		x := bytes.Clone(plain)
		x[frame+1] = kind
		binary.BigEndian.PutUint16(x[frame+5:], uint16(side))
		binary.BigEndian.PutUint16(x[frame+7:], uint16(side))
		return slices.Insert(x, frame, before...)
	}
	for name, x := range map[string]struct {
		file []byte
		want error
	}{
		"as it should be":          {plain, nil},
		"progressive":              {claim(0xc2, 5000), ErrPixels}, // 25 million pixels of ten bytes
		"progressive, small":       {claim(0xc2, 160), ErrNoImage}, // its data is invalid
		"after an unknown segment": {claim(0xc2, 5000, 0), ErrPixels},
		"after padding":            {claim(0xc2, 5000, 0xff), ErrPixels},
	} {
		if _, err := s.SaveAvatar(bytes.NewReader(x.file), 5<<20); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecoderLimit(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Save("1", bytes.NewReader(encodePicture(t, 30, 20)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for range MaxDecodeRequests {
		s.decodeRequests.Add(1) // as many as may wait
	}
	if _, err := s.SaveAvatar(bytes.NewReader(encodePicture(t, 30, 20)), 1<<20); !errors.Is(err, ErrDecodersBusy) {
		t.Errorf("an avatar: %v", err)
	}
	if _, err := s.Thumbnail(x.Hash, false); !errors.Is(err, ErrDecodersBusy) {
		t.Errorf("a thumbnail: %v", err)
	}
	s.decodeRequests.Store(0)
	if _, err := s.Thumbnail(x.Hash, false); err != nil || s.decodeRequests.Load() != 0 {
		t.Errorf("afterwards: %v", err)
	}
	// 40 million pixels of eight bytes
	deep := append([]byte("IHDR"), 0, 0, 8000>>8, 8000&255, 0, 0, 5000>>8, 5000&255, 16, 6, 0, 0, 0)
	b := append(
		[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"),
		binary.BigEndian.AppendUint32(deep, crc32.ChecksumIEEE(deep))...)
	if _, err := s.SaveAvatar(bytes.NewReader(b), 5<<20); !errors.Is(err, ErrPixels) {
		t.Errorf("a picture with 16 bits per color: %v", err)
	}
}
