package s3_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/snapshot/files/s3/s3test"
)

// open opens a folder of a server's bucket.
func open(t *testing.T, url string) *s3.Bucket {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	p, err := s3.ParsePlace(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s3.Open(p, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// newStore returns a store of files in a bucket.
func newStore(t *testing.T, b files.Blobs) *files.Store {
	t.Helper()
	s, err := files.Open(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func temporary(t *testing.T, size int64) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, b files.Blobs, key string, from, n int64) string {
	t.Helper()
	f, err := b.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n < 0 {
		n = f.Size()
	}
	r, err := f.Section(from, n)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func save(t *testing.T, s *files.Store, text string) string {
	t.Helper()
	x, err := s.Save("1", strings.NewReader(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return x.Hash
}

func unused() (bool, error) { return false, nil }

func TestBucketStoresFiles(t *testing.T) {
	server := s3test.Start(t)
	b := open(t, server.URL("one/two"))
	s := newStore(t, b)
	hash := save(t, s, "0123456789")
	key := files.ContentKey(hash)
	if got := server.Objects("one/two"); !slices.Equal(got, []string{key}) {
		t.Fatalf("the bucket has %q", got)
	}
	if got := read(t, b, key, 0, -1); got != "0123456789" {
		t.Errorf("the whole file is %q", got)
	}
	if got := read(t, b, key, 3, 4); got != "3456" {
		t.Errorf("bytes 3 to 6 are %q", got)
	}
	empty := save(t, s, "")
	if got := read(t, b, files.ContentKey(empty), 0, -1); got != "" {
		t.Errorf("the empty file is %q", got)
	}
	if _, err := b.Open("content/no/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	other := open(t, server.URL("one"))
	if _, err := other.Open(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another folder has the file: %v", err)
	}
	s.Release(hash, nil)
	if err := s.Remove(hash, unused); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
	if err := b.Remove(key); err != nil {
		t.Errorf("removing it again: %v", err)
	}
}

// A file above 128 MiB is sent in parts of 64 MiB. An upload in parts that a killed process has left is aborted later.
func TestBucketStoresLargeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("short: writes 130 MB")
	}
	server := s3test.Start(t)
	b := open(t, server.URL("large"))
	f := temporary(t, 130<<20+7)
	if err := b.Put("exports/large.jsonl.gz", f); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(server.Path("large/exports/large.jsonl.gz"))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the bucket has %d other bytes: %v", len(got), err)
	}
	if err := b.RemoveLeftovers(); err != nil {
		t.Fatal(err)
	}
}

// More files than a page of a list has.
func TestBucketSweep(t *testing.T) {
	server := s3test.Start(t)
	b := open(t, server.URL("swept"))
	s := newStore(t, b)
	hashes := make([]string, 1100)
	var work sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range hashes {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			x, err := s.Save("1", strings.NewReader(fmt.Sprint("file ", i)), 100)
			if err != nil {
				t.Error(err)
			}
			hashes[i] = x.Hash
			s.Release(x.Hash, nil)
		})
	}
	work.Wait()
	pinned := save(t, s, "being saved")
	stray := temporary(t, 3)
	if err := b.Put("content/zz/not a hash", stray); err != nil {
		t.Fatal(err)
	}
	named := hashes[:100]
	sweep := func(before time.Time) int {
		n, err := s.Sweep(before, func(string, []string) ([]string, error) { return named, nil },
			func() bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sweep(time.Now().Add(-time.Hour)); n != 0 {
		t.Errorf("%d young files were removed", n)
	}
	if n := sweep(time.Now().Add(time.Hour)); n != 1000 {
		t.Errorf("%d files were removed, want 1000", n)
	}
	want := []string{"content/zz/not a hash", files.ContentKey(pinned)}
	for _, h := range named {
		want = append(want, files.ContentKey(h))
	}
	got := server.Objects("swept")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the bucket has %d files, want %d", len(got), len(want))
	}
	s.SetForeign(errors.New("another server's"))
	if _, err := s.Sweep(time.Now(), nil, nil); err == nil {
		t.Error("files of another server were swept")
	}
	s.Release(pinned, nil)
	if s.Remove(pinned, unused); len(server.Objects("swept")) != len(want) {
		t.Error("a file of another server was removed")
	}
}

// Hostile names never leave their folder and never reach another file.
func TestHostileNames(t *testing.T) {
	server := s3test.Start(t)
	b := open(t, server.URL("names"))
	s := newStore(t, b)
	secret := temporary(t, 5)
	if err := b.Put("owner", secret); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{realm.ContentFile, realm.PictureFile, realm.ArchiveFile} {
		for _, name := range []string{"", ".", "..", "../owner", "/../owner", "%2e%2e/owner", "..\\owner",
			"a/../../owner", "owner\x00", "owner?versionId=1", "owner#x", strings.Repeat("a",
				5000), "\xff\xfe", "ä", "\n"} {
			f, err := s.Open(kind, name)
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %.40q: %v, %.80v", kind, name, f, err)
			}
		}
	}
	if err := b.Ready(); err != nil {
		t.Errorf("a hostile name made the bucket unreachable: %v", err)
	}
}

// While the server is down every call fails at once, and works again by itself afterwards.
func TestBucketUnavailable(t *testing.T) {
	server := s3test.Start(t)
	b := open(t, server.URL("down"))
	s := newStore(t, b)
	hash := save(t, s, "before")
	server.Kill()
	if _, err := s.Open(realm.ContentFile, hash); !errors.Is(err, files.ErrUnavailable) {
		t.Errorf("open: %v", err)
	}
	if _, err := s.Save("1", failing{t}, 100); !errors.Is(err, files.ErrUnavailable) {
		t.Errorf("save: %v", err)
	}
	if b.Ready() == nil || b.Down().IsZero() {
		t.Error("the bucket is ready")
	}
	s.Release(hash, nil)
	if err := s.Remove(hash, unused); err != nil {
		t.Errorf("a removal is left to the sweep: %v", err)
	}
	server.Resume()
	for until := time.Now().Add(20 * time.Second); b.Ready() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the bucket is not reached again")
		}
	}
	if got := read(t, b, files.ContentKey(hash), 0, -1); got != "before" {
		t.Errorf("the file is %q", got)
	}
	save(t, s, "after")
}

// failing is a body that must not be read.
type failing struct{ t *testing.T }

func (f failing) Read([]byte) (int, error) {
	f.t.Error("the body of a refused upload is received")
	return 0, io.EOF
}

// lateProxy passes requests on, but keeps removals until they are let go and never answers them.
type lateProxy struct {
	t       *testing.T
	to      string
	address string
	held    chan func() // carries out a removal
}

func startLateProxy(t *testing.T, to string) *lateProxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lateProxy{t: t, to: to, address: l.Addr().String(), held: make(chan func(), 10)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *lateProxy) serve(c net.Conn) {
	defer c.Close()
	head := make([]byte, 7)
	if _, err := io.ReadFull(c, head); err != nil {
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	if string(head) == "DELETE " {
		rest := make([]byte, 64<<10)
		n, _ := c.Read(rest)
		p.held <- func() {
			defer up.Close()
			up.Write(append(head, rest[:n]...))
			up.Read(rest)
		}
		return
	}
	defer up.Close()
	up.Write(head)
	go func() { io.Copy(up, c); up.Close() }()
	io.Copy(c, up)
}

// A removal whose answer is lost may happen at any later time. The same content cannot be saved meanwhile, also by the
// next process: it would vanish from under its row.
func TestLateRemoval(t *testing.T) {
	server := s3test.Start(t)
	proxy := startLateProxy(t, server.Address())
	url := strings.Replace(server.URL("late"), server.Address(), proxy.address, 1)
	dir := t.TempDir()
	b := open(t, url)
	s, err := files.Open(dir, b)
	if err != nil {
		t.Fatal(err)
	}
	hash := save(t, s, "a plan")
	if err := s.Release(hash, unused); err != nil {
		t.Fatal(err)
	}
	late := <-proxy.held
	for until := time.Now().Add(20 * time.Second); b.Ready() != nil && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := b.Ready(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save("1", strings.NewReader("a plan"), 100); !errors.Is(err, files.ErrUnavailable) {
		t.Errorf("the same content is saved while its removal is on its way: %v", err)
	}
	save(t, s, "another plan")
	next, err := files.Open(dir, b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Save("1", strings.NewReader("a plan"), 100); !errors.Is(err, files.ErrUnavailable) {
		t.Errorf("the next process saves it: %v", err)
	}
	note := filepath.Join(dir, "removing", hash)
	old := time.Now().Add(-6 * time.Minute)
	if err := os.Chtimes(note, old, old); err != nil {
		t.Fatal(err)
	}
	late()
	if next, err = files.Open(dir, b); err != nil {
		t.Fatal(err)
	}
	again := save(t, next, "a plan")
	if again != hash || !slices.Contains(server.Objects("late"), files.ContentKey(hash)) {
		t.Error("the content is not saved after the time in which the removal could happen")
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("the note of the removal is left")
	}
}

// Pictures are served from this machine after the first request, also while the bucket cannot be reached.
func TestPicturesAreCached(t *testing.T) {
	server := s3test.Start(t)
	b := open(t, server.URL("pictures"))
	s := newStore(t, b)
	if _, err := s.Put(realm.PictureFile, "face.png", strings.NewReader("pixels")); err != nil {
		t.Fatal(err)
	}
	look := func() string {
		f, err := s.Open(realm.PictureFile, "face.png")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := f.Section(0, f.Size())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		text, _ := io.ReadAll(r)
		return string(text)
	}
	first := look()
	server.Kill()
	if second := look(); first != "pixels" || second != first {
		t.Errorf("the picture is %q, then %q", first, second)
	}
	if n := s.ThumbnailBytes(); n != 6 {
		t.Errorf("the cache counts %d bytes", n)
	}
}

// Wrong keys and a missing bucket are named in errors for the operator; users get ErrUnavailable.
func TestWrongKeysAndBuckets(t *testing.T) {
	server := s3test.Start(t)
	missing := strings.Replace(server.URL("x"), s3test.Bucket, "no-such-bucket", 1)
	if err := open(t, missing).Probe(); err == nil || !strings.Contains(err.Error(), "no bucket") {
		t.Errorf("a missing bucket: %v", err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	text := "[default]\naws_access_key_id = " + s3test.AccessKey + "\naws_secret_access_key = wrong\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := s3.ParsePlace(server.URL("x"))
	b, err := s3.Open(p, file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if _, err := newStore(t, b).Save("1", strings.NewReader("x"), 10); !errors.Is(err, files.ErrUnavailable) {
		t.Errorf("a wrong key: %v", err)
	}
	if err := b.Probe(); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong key: %v", err)
	}
}
