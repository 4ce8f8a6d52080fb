package files

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"testing"
)

// turnedJPEG returns a picture of 60 x 40 pixels whose quarters are, as they are stored, red, green, blue and white,
// with an orientation in its metadata.
func turnedJPEG(t *testing.T, o uint16, order binary.ByteOrder) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 60, 40))
	colors := [][]color.RGBA{{{255, 0, 0, 255}, {0, 255, 0, 255}}, {{0, 0, 255, 255}, {255, 255, 255, 255}}}
	for y := range 40 {
		for x := range 60 {
			img.Set(x, y, colors[y/20][x/30])
		}
	}
	var plain bytes.Buffer
	if err := jpeg.Encode(&plain, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	mark := "II*\x00"
	if order == binary.BigEndian {
		mark = "MM\x00*"
	}
	exif := append([]byte("Exif\x00\x00"), mark...)
	for _, v := range []any{uint32(8), uint16(2), // two entries behind the head
		uint16(0x0100), uint16(3), uint32(1), uint32(0), // another one
		uint16(0x0112), uint16(3), uint32(1), o, uint16(0), uint32(0)} {
		exif, _ = binary.Append(exif, order, v)
	}
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(exif)+2))
	return append(append(head, exif...), plain.Bytes()[2:]...)
}

// corner returns the letter of the color in a corner of a picture.
func corner(img image.Image, right, down bool) string {
	b := img.Bounds()
	x, y := b.Min.X+b.Dx()/4, b.Min.Y+b.Dy()/4
	if right {
		x = b.Max.X - b.Dx()/4
	}
	if down {
		y = b.Max.Y - b.Dy()/4
	}
	r, g, bl, _ := img.At(x, y).RGBA()
	high := func(v uint32) bool { return v > 0x8000 }
	switch {
	case high(r) && high(g) && high(bl):
		return "w"
	case high(r):
		return "r"
	case high(g):
		return "g"
	}
	return "b"
}

// Thumbnails and avatars of photos are shown as browsers show the photo, and the sizes of uploads are those of the
// shown picture.
func TestPhotosAreTurned(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for o, want := range map[uint16]string{ // the quarters as they are shown: the upper ones, then the lower ones
		0: "rgbw", 1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb", 9: "rgbw",
	} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			photo := turnedJPEG(t, o, order)
			saved, err := s.Save("1", bytes.NewReader(photo), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			wide, high := 60, 40
			if o >= 5 && o <= 8 {
				wide, high = 40, 60
			}
			if saved.Width != wide || saved.Height != high {
				t.Errorf("orientation %d: the upload has %d x %d pixels", o, saved.Width, saved.Height)
			}
			path, err := s.Thumbnail(saved.Hash, false)
			if err != nil {
				t.Fatal(err)
			}
			name, err := s.SaveAvatar(bytes.NewReader(photo), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{path, s.Picture(name + ".png")} {
				checkTurned(t, o, file, want)
			}
			if b := decodeFile(t, path).Bounds(); b.Dx() != wide || b.Dy() != high {
				t.Errorf("orientation %d: the thumbnail has %d x %d pixels", o, b.Dx(), b.Dy())
			}
		}
	}
}

func decodeFile(t *testing.T, path string) image.Image {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	img, _, err := image.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// checkTurned compares the quarters of a picture.
func checkTurned(t *testing.T, o uint16, path, want string) {
	t.Helper()
	img := decodeFile(t, path)
	got := corner(img, false, false) + corner(img, true, false) + corner(img, false, true) + corner(img, true, true)
	if got != want {
		t.Errorf("orientation %d: %s shows %s, want %s", o, path, got, want)
	}
}

// Broken metadata is ignored: no length of it reads behind the end.
func TestBrokenOrientation(t *testing.T) {
	photo := turnedJPEG(t, 6, binary.LittleEndian)
	for n := range 80 {
		readOrientation(bytes.NewReader(photo[:n]))
		changed := bytes.Clone(photo)
		changed[n] = 0xff
		readOrientation(bytes.NewReader(changed))
	}
	if o := readOrientation(bytes.NewReader(photo)); o != 6 {
		t.Errorf("the orientation is %d", o)
	}
	if o := readOrientation(bytes.NewReader([]byte("\x89PNG\r\n\x1a\n"))); o != upright {
		t.Errorf("the orientation of a PNG is %d", o)
	}
}
