package files

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"parley/actors/realm"
)

func encodePicture(t *testing.T, w, h int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	img.Set(1, 1, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSaveNamesFilesByContent(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Save("1", strings.NewReader("<html><script>alert(1)</script>"), 100)
	if err != nil || a.Type != "text/plain; charset=utf-8" {
		t.Fatalf("an HTML page has the type %q: %v", a.Type, err)
	}
	b, err := s.Save("1", bytes.NewReader(encodePicture(t, 30, 20)), 1<<20)
	if err != nil || b.Type != "image/png" || b.Width != 30 || b.Height != 20 {
		t.Fatalf("%+v: %v", b, err)
	}
	other, err := s.Save("2", strings.NewReader("<html><script>alert(1)</script>"), 100)
	if err != nil || other.Hash == a.Hash {
		t.Fatalf("two spaces share a file: %v", err)
	}
	data, err := os.ReadFile(s.Path(a.Hash))
	if err != nil || !strings.HasPrefix(string(data), "<html>") {
		t.Fatalf("%q: %v", data, err)
	}
	if _, err := s.Save("1", strings.NewReader("eleven byte"), 10); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("a file above the limit: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(s.dir, "incoming", "*"))
	if len(left) != 0 {
		t.Fatalf("incomplete files are left: %v", left)
	}
}

func TestPathsStayInside(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../etc/passwd", "..", "/etc/passwd", "a/../../b"} {
		for _, p := range []string{s.Path(name), s.Picture(name)} {
			if !strings.HasPrefix(p, s.dir+string(filepath.Separator)) {
				t.Errorf("%q has the path %q", name, p)
			}
		}
	}
}

func TestSaveAvatar(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	name, err := s.SaveAvatar(bytes.NewReader(encodePicture(t, 600, 300)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.Picture(name + "-medium.png"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != 500 || c.Height != 500 {
		t.Fatalf("%+v: %v", c, err)
	}
	if _, err := s.SaveAvatar(strings.NewReader("no picture"), 100); !errors.Is(err, ErrNoImage) {
		t.Fatalf("text as an avatar: %v", err)
	}
	bomb := encodePicture(t, 1, 1)
	copy(bomb[16:24], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // claims 65536 × 65536 pixels; the checksum is wrong, too
	if _, err := s.SaveAvatar(bytes.NewReader(bomb), 1<<20); err == nil {
		t.Fatal("a picture with too many pixels was decoded")
	}
}

func TestRemoveUnusedContent(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	save := func() string {
		x, err := s.Save("1", strings.NewReader("same"), 100)
		if err != nil {
			t.Fatal(err)
		}
		return x.Hash
	}
	there := func(hash string) bool { _, err := os.Stat(s.Path(hash)); return err == nil }
	noted := false
	used := func() (bool, error) { return noted, nil }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hash := save()
	must(s.Release(hash, used))
	if there(hash) {
		t.Error("content that was refused stays")
	}
	save()
	save()
	must(s.Release(hash, used))
	if !there(hash) {
		t.Error("content went while another was saving the same")
	}
	noted = true
	must(s.Release(hash, nil))
	must(s.Remove(hash, used))
	if !there(hash) {
		t.Error("content went though it is noted")
	}
	noted = false
	must(s.Remove(hash, used))
	if there(hash) {
		t.Error("unused content was not removed")
	}
	if x, err := s.Save("1", strings.NewReader(""), 100); err != nil || x.Size != 0 {
		t.Errorf("an empty file: %v %v", x, err)
	}
}

func TestPartialUploadSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		s, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := s.BeginUpload(PartialUpload{ID: "one", Space: "1", Owner: "7", Name: "a.txt", Size: 10}); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("1234"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if u, err := s.AppendUpload("one", 0, broken); !errors.Is(err, io.ErrUnexpectedEOF) || u.Offset != 4 {
		t.Fatalf("an interrupted piece: %+v %v", u, err)
	}
	s = open()
	if u, ok := s.PartialUpload("one"); !ok || u.Offset != 4 || u.Name != "a.txt" || s.PartialUploadBytes("1") != 10 {
		t.Fatalf("%+v", u)
	}
	if _, err := s.AppendUpload("one", 3, strings.NewReader("4")); !errors.Is(err, ErrWrongOffset) {
		t.Fatalf("a piece at a wrong offset: %v", err)
	}
	if _, err := s.FinishUpload("one", nil); !errors.Is(err, ErrWrongOffset) {
		t.Fatalf("an incomplete upload was finished: %v", err)
	}
	if u, err := s.AppendUpload("one", 4, strings.NewReader("567890!")); !errors.Is(err, ErrTooLarge) ||
		u.Offset != 10 {
		t.Fatalf("more bytes than the size: %+v %v", u, err)
	}
	refused := errors.New("refused")
	used := func() (bool, error) { return false, nil }
	if _, err := s.FinishUpload("one", func(_ PartialUpload, x Saved) (string, error) {
		return "", errors.Join(refused, s.Release(x.Hash, used))
	}); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	s = open()
	var hash string
	note := func(u PartialUpload, x Saved) (string, error) {
		hash = x.Hash
		return "noted " + u.Name, s.Release(x.Hash, nil)
	}
	if u, err := s.FinishUpload("one", note); err != nil || u.Answer != "noted a.txt" {
		t.Fatalf("%+v %v", u, err)
	}
	if text, err := os.ReadFile(s.Path(hash)); err != nil || string(text) != "1234567890" {
		t.Fatalf("%q %v", text, err)
	}
	whole, err := s.Save("1", strings.NewReader("1234567890"), 100)
	if err != nil || whole.Hash != hash {
		t.Fatalf("the same content has two names: %v", err)
	}
	s = open()
	if u, err := s.FinishUpload("one", nil); err != nil || u.Answer != "noted a.txt" || u.Offset != 10 {
		t.Fatalf("a repeated request gets %+v %v", u, err)
	}
	if err := s.AbandonUpload("one"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Path(hash)); err != nil {
		t.Fatal("content was removed with its upload")
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "unfinished")); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}

func TestFinishedUploadIsEvicted(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range MaxPartialUploads - 2 {
		id := "x" + strconv.Itoa(i)
		s.partialUploads[id] = &PartialUpload{ID: id, Owner: id, Expires: time.Now().Add(time.Hour).Unix()}
	}
	finish := func(id string) {
		t.Helper()
		if _, err := s.BeginUpload(PartialUpload{ID: id, Space: "1", Owner: "7", Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendUpload(id, 0, strings.NewReader("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishUpload(id, func(PartialUpload, Saved) (string, error) { return "done", nil }); err != nil {
			t.Fatal(err)
		}
	}
	finish("a")
	s.partialUploads["a"].Expires-- // expired
	finish("b")
	if _, err := s.BeginUpload(PartialUpload{ID: "c", Space: "1", Owner: "7", Size: 1}); err != nil {
		t.Fatal(err)
	}
	_, a := s.PartialUpload("a")
	_, b := s.PartialUpload("b")
	if a || !b || s.PartialUploads() != MaxPartialUploads {
		t.Errorf("of %d uploads: the older finished one exists: %v, the newer: %v", s.PartialUploads(), a, b)
	}
	if _, err := s.BeginUpload(PartialUpload{ID: "d", Space: "1", Owner: "7", Size: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = s.BeginUpload(PartialUpload{ID: "e", Space: "1", Owner: "7", Size: 1})
	if !errors.Is(err, ErrTooManyUploads) {
		t.Errorf("more unfinished uploads than allowed: %v", err)
	}
}

func TestPartialUploadsExpire(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*") // a directory name with special characters of patterns
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxPartialUploadsPerUser {
		_, err := s.BeginUpload(PartialUpload{ID: "x" + strconv.Itoa(i), Space: "1", Owner: "7", Size: 1})
		if err != nil {
			t.Fatal(i, err)
		}
	}
	_, err = s.BeginUpload(PartialUpload{ID: "y", Space: "1", Owner: "7", Size: 1})
	if !errors.Is(err, ErrTooManyUploads) {
		t.Fatalf("more uploads of one user than allowed: %v", err)
	}
	if _, err := s.BeginUpload(PartialUpload{ID: "y", Space: "1", Owner: "8", Size: 1}); err != nil {
		t.Fatalf("another owner: %v", err)
	}
	if _, err := s.BeginUpload(PartialUpload{ID: "../z", Space: "1", Owner: "8", Size: 1}); err == nil {
		t.Fatal("an id with a slash was accepted")
	}
	// One day later.
	u, _ := s.PartialUpload("y")
	u.Expires = time.Now().Unix() - 1
	if err := s.writeMetadata(&u); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.partPath("stray"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.PartialUpload("y"); ok {
		t.Error("it did not expire")
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "unfinished")); len(left) != 2*maxPartialUploadsPerUser {
		t.Errorf("%d files are left", len(left))
	}
}

// No file is written without room for it, and a refused one leaves nothing behind. Every way to write a file asks.
func TestLimitSpace(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	picture := encodePicture(t, 20, 20)
	saved, err := s.Save("1", bytes.NewReader(picture), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := s.BeginUpload(PartialUpload{ID: "begun", Space: "1", Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	errNoRoom := errors.New("no room")
	left := int64(0) // bytes
	s.LimitSpace(func(n int64) error {
		if n > left || left == 0 {
			return errNoRoom
		}
		return nil
	})
	ways := map[string]func() error{
		"Save":       func() error { _, err := s.Save("1", strings.NewReader("text"), 100); return err },
		"SaveAvatar": func() error { _, err := s.SaveAvatar(bytes.NewReader(picture), 1<<20); return err },
		"SaveLogo":   func() error { _, err := s.SaveLogo(bytes.NewReader(picture), 1<<20); return err },
		"Thumbnail":  func() error { _, err := s.Thumbnail(saved.Hash, false); return err },
		"Put": func() error {
			_, err := s.Put(realm.PictureFile, "x.png", bytes.NewReader(picture))
			return err
		},
		"BeginUpload": func() error {
			_, err := s.BeginUpload(PartialUpload{ID: "next", Space: "1", Size: 100})
			return err
		},
		"AppendUpload": func() error { _, err := s.AppendUpload(begun.ID, 0, strings.NewReader("text")); return err },
		"NewExport": func() error {
			e, err := s.NewExport("export.jsonl.gz")
			if err != nil {
				return err
			}
			defer e.Close()
			_, err = e.Write([]byte("text"))
			return err
		},
	}
	for name, write := range ways {
		if err := write(); !errors.Is(err, errNoRoom) {
			t.Errorf("%s without room: %v", name, err)
		}
	}
	left = 10 << 20
	if _, err := s.Save("1", io.LimitReader(endless{&left}, 8<<20), 8<<20); !errors.Is(err, errNoRoom) {
		t.Errorf("a file that takes the last room: %v", err)
	}
	if incoming, _ := os.ReadDir(filepath.Join(dir, "incoming")); len(incoming) > 0 {
		t.Errorf("refused files were left behind: %v", incoming)
	}
	left = 1 << 40
	for name, write := range ways {
		if err := write(); err != nil {
			t.Errorf("%s with room: %v", name, err)
		}
	}
}

// endless is zeros, during which the room ends.
type endless struct{ left *int64 }

func (r endless) Read(p []byte) (int, error) {
	*r.left = max(0, *r.left-1<<20)
	clear(p)
	return len(p), nil
}
