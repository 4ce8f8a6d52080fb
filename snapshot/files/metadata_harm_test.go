package files

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cleared returns what clearMetadata makes of a file.
func cleared(t testing.TB, data []byte) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	changed, err := clearMetadata(f)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if changed == bytes.Equal(got, data) {
		t.Errorf("clearMetadata reported %v of a file that it left with equal bytes: %v", changed, !changed)
	}
	return got
}

// segment returns a segment of a JPEG.
func segment(marker byte, body string) string {
	return string(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2))) + body
}

// Files that only begin like a picture keep every byte: people upload what they like, and get it back.
func TestFilesThatAreNoPicturesStay(t *testing.T) {
	archive := "PK\x03\x04" + strings.Repeat("all that matters", 10_000)
	chunk := func(name, body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + name + body + "\x00\x00\x00\x00"
	}
	const start = "\xff\xd8"
	for name, data := range map[string]string{
		"end of a JPEG at once": start + "\xff\xd9" + archive,
		"end without a scan":    start + segment(0xc0, "\x08\x00\x01\x00\x01\x01\x01\x11\x00") + "\xff\xd9" + archive,
		"segments of a JPEG":    start + segment(0xe1, "PK\x03\x04 a file") + segment(0xfe, "%PDF-1.7") + archive,
		"wrong size of a JPEG":  start + segment(0xfe, "%PDF-1.7") + segment(0xc0, "\x08\x00\x01\x00\x01\x09") + archive,
		"scan without a size": start + segment(0xfe, "%PDF-1.7") + segment(0xda, "\x01\x01\x00\x00\x3f\x00") +
			"\xff\xd9" + archive,
		"PNG without a size":       "\x89PNG\r\n\x1a\n" + chunk("tEXt", "all that matters") + archive,
		"end of a PNG at once":     "\x89PNG\r\n\x1a\n" + chunk("IEND", "") + archive,
		"WebP without a picture":   "RIFF\x00\x01\x00\x00WEBPEXIF\x10\x00\x00\x00all that matters" + archive,
		"only the head of a JPEG":  start + "\xff",
		"only the head of a PNG":   "\x89PNG\r\n\x1a\n",
		"only the head of a WebP":  "RIFF\x00\x01\x00\x00WEBP",
		"filling of a JPEG":        start + strings.Repeat("\xff", 3<<20),
		"picture format of others": "RIFF\x00\x01\x00\x00WAVEEXIF\x10\x00\x00\x00all that matters",
	} {
		if got := cleared(t, []byte(data)); string(got) != data {
			t.Errorf("%s: the file has changed", name)
		}
	}
}

// A JPEG of a few megabytes with as many scans as it can have costs no more than another one: every scan had 64 kB
// read anew.
func TestManyScansOfAJPEG(t *testing.T) {
	data := "\xff\xd8" + segment(0xc2, "\x08\x00\x01\x00\x01\x01\x01\x11\x00") +
		strings.Repeat(segment(0xda, "\x01\x01\x00\x00\x3f\x00"), 400_000) + segment(0xfe, "a secret") + "\xff\xd9more"
	began := time.Now()
	got := cleared(t, []byte(data))
	if took := time.Since(began); took > 2*time.Second { // 0.1 s; 6 s before
		t.Errorf("a JPEG with many scans took %v", took)
	}
	if bytes.Contains(got, []byte("secret")) || bytes.HasSuffix(got, []byte("more")) {
		t.Error("the metadata after many scans is left")
	}
}

// FuzzClearMetadata checks that files keep their size, that nothing changes the second time, and that pictures keep
// their pixels.
func FuzzClearMetadata(f *testing.F) {
	img := image.NewGray(image.Rect(0, 0, 3, 3))
	img.Pix[4] = 200
	var asJPEG, asPNG bytes.Buffer
	if err := jpeg.Encode(&asJPEG, img, nil); err != nil {
		f.Fatal(err)
	}
	if err := png.Encode(&asPNG, img); err != nil {
		f.Fatal(err)
	}
	exif := "Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00"
	f.Add(asJPEG.Bytes())
	f.Add([]byte("\xff\xd8" + segment(0xe1, exif) + segment(0xfe, "secret") + asJPEG.String()[2:] + "more"))
	f.Add(asPNG.Bytes())
	f.Add([]byte(asPNG.String()[:33] + "\x00\x00\x00\x03tEXta\x00b\x06\x9e\x8d\x1c" + asPNG.String()[33:] + "more"))
	f.Add([]byte("RIFF\x40\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"EXIF\x20\x00\x00\x00" + exif))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := cleared(t, data)
		if len(got) != len(data) {
			t.Fatalf("a file of %d bytes has %d", len(data), len(got))
		}
		if !bytes.Equal(cleared(t, got), got) {
			t.Error("a file without metadata has changed")
		}
		config, _, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil || config.Width*config.Height > 1<<16 {
			return
		}
		before, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		after, _, err := image.Decode(bytes.NewReader(got))
		if err != nil {
			t.Fatalf("a picture is damaged: %v", err)
		}
		if before.Bounds() != after.Bounds() {
			t.Fatal("a picture has another size")
		}
		for y := before.Bounds().Min.Y; y < before.Bounds().Max.Y; y++ {
			for x := before.Bounds().Min.X; x < before.Bounds().Max.X; x++ {
				if before.At(x, y) != after.At(x, y) {
					t.Fatalf("pixel %d,%d has changed", x, y)
				}
			}
		}
	})
}
