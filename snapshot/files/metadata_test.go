package files

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// run runs a program, and skips the test without it.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed: apt-get install libimage-exiftool-perl imagemagick webp", name)
	}
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Uploads of pictures that the usual tools have written lose the place, the time and the author. The
// pixels, the size of the file, the orientation and the colour profile remain.
func TestUploadsLoseMetadata(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"jpg", "png", "webp"} {
		for _, o := range []int{1, 6} {
			t.Run(fmt.Sprint(kind, o), func(t *testing.T) {
				name := filepath.Join(dir, fmt.Sprint(o, ".", kind))
				run(t, "convert", "-size", "60x40", "gradient:red-blue", "-set", "comment", "secret comment", name)
				tags := []string{"-overwrite_original", "-n", "-Orientation=" + fmt.Sprint(o),
					"-EXIF:Artist=secret artist", "-EXIF:GPSLatitude=48.1", "-EXIF:GPSLatitudeRef=N",
					"-XMP:Creator=secret creator"}
				switch kind {
				case "jpg":
					tags = append(tags, "-IPTC:By-line=secret byline")
				case "png":
					tags = append(tags, "-PNG:Author=secret author")
				}
				run(t, "exiftool", append(tags, name)...)
				if kind == "jpg" { // a further picture, as phones append it
					other, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					f.Write(other)
					f.Close()
				}
				before, err := os.ReadFile(name)
				if err != nil || !bytes.Contains(before, []byte("secret")) {
					t.Fatalf("the picture has no metadata: %v", err)
				}
				x, err := s.Save("1", bytes.NewReader(before), 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				blob, err := s.Open(realm.ContentFile, x.Hash)
				if err != nil {
					t.Fatal(err)
				}
				defer blob.Close()
				r, err := blob.Section(0, blob.Size())
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				after, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				h := sha256.New()
				fmt.Fprintf(h, "%q", "1")
				h.Write(after)
				if len(after) != len(before) || x.Hash[:64] != fmt.Sprintf("%x", h.Sum(nil)) {
					t.Errorf("%d bytes instead of %d, hash %s", len(after), len(before), x.Hash)
				}
				clean := filepath.Join(dir, fmt.Sprint("clean", o, ".", kind))
				if err := os.WriteFile(clean, after, 0o600); err != nil {
					t.Fatal(err)
				}
				shown := run(t, "exiftool", "-n", "-a", "-G1", "-s", clean)
				for _, gone := range []string{"secret", "GPS", "XMP", "IPTC", "Artist", "Author"} {
					if strings.Contains(shown, gone) || bytes.Contains(after, []byte("secret")) {
						t.Errorf("%s remains:\n%s", gone, shown)
					}
				}
				if has := strings.Contains(shown, "Orientation"); has != (o == 6) ||
					o == 6 && !strings.Contains(run(t, "exiftool", "-n", "-s3", "-Orientation", clean), "6") {
					t.Errorf("the orientation is wrong:\n%s", shown)
				}
				pixels := run(t, "convert", name+"[0]", "rgba:-")
				if pixels != run(t, "convert", clean, "rgba:-") {
					t.Error("the pixels have changed")
				}
				resumed := resumeUpload(t, s, name, before)
				if resumed != x {
					t.Errorf("a resumable upload is stored as %+v, another one as %+v", resumed, x)
				}
				if again, err := s.Save("1", bytes.NewReader(after), 1<<20); err != nil || again.Hash != x.Hash {
					t.Errorf("a clean picture changes: %v, %v", again, err)
				}
			})
		}
	}
}

// resumeUpload sends a file in two parts.
func resumeUpload(t *testing.T, s *Store, id string, data []byte) (saved Saved) {
	t.Helper()
	id = strings.ReplaceAll(filepath.Base(id), ".", "")
	if _, err := s.BeginUpload(PartialUpload{ID: id, Space: "1", Owner: "7", Size: int64(len(data)),
		Expires: time.Now().Add(time.Hour).Unix()}); err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		if _, err := s.AppendUpload(id, at, bytes.NewReader(part)); err != nil {
			t.Fatal(err)
		}
		at += int64(len(part))
	}
	if _, err := s.FinishUpload(id, func(_ PartialUpload, x Saved) (string, error) {
		saved = x
		return "done", nil
	}); err != nil {
		t.Fatal(err)
	}
	return saved
}

// memoryFile is a file in memory.
type memoryFile struct {
	*bytes.Reader
	data []byte
}

func (m memoryFile) WriteAt(p []byte, at int64) (int, error) { return copy(m.data[at:], p), nil }

// Damaged pictures neither panic nor change their size, and clean ones remain.
func TestMetadataOfDamagedPictures(t *testing.T) {
	exif := "Exif\x00\x00MM\x00*\x00\x00\x00\x08" +
		"\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	tiff := exif[6:]
	for name, whole := range map[string]string{
		"jpeg": "\xff\xd8\xff\xe1\x00" + string(rune(len(exif)+2)) + exif + "\xff\xfe\x00\x05abc" +
			"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00" + "\xff\xda\x00\x02x\xff\x00y\xff\xd9rest",
		"png": "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDRwidthhighbitcrc!!" +
			"\x00\x00\x00" + string(rune(len(tiff))) + "eXIf" + tiff + "crc!" +
			"\x00\x00\x00\x03tEXtabccrc!\x00\x00\x00\x00IDATcrc!\x00\x00\x00\x00IENDcrc!rest",
		"webp": "RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x0c123456789" +
			"EXIF" + string(rune(len(exif))) + "\x00\x00\x00" +
			exif + "XMP \x03\x00\x00\x00abc\x00",
	} {
		for n := range len(whole) + 1 {
			for _, flip := range []int{0, n / 2} {
				data := []byte(whole[:n])
				if flip > 0 {
					data[flip] ^= 0xff
				}
				if _, err := clearMetadata(memoryFile{bytes.NewReader(data), data}); err != nil {
					t.Fatalf("%s, %d bytes, byte %d: %v", name, n, flip, err)
				}
				clean := bytes.Clone(data)
				changed, err := clearMetadata(memoryFile{bytes.NewReader(data), data})
				if flip == 0 && n == len(whole) && (err != nil || changed || !bytes.Equal(clean, data)) {
					t.Errorf("%s changes again: %v, %v", name, changed, err)
				}
			}
		}
		data := []byte(whole)
		changed, err := clearMetadata(memoryFile{bytes.NewReader(data), data})
		if err != nil || !changed || len(data) != len(whole) || bytes.Contains(data, []byte("abc")) ||
			bytes.Contains(data, []byte("rest")) || !bytes.Contains(data, []byte("II*\x00")) {
			t.Errorf("%s: %v, %q", name, err, data)
		}
	}
}
