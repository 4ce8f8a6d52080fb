package s3_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"parley/actors/realm"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/snapshot/files/s3/s3test"
)

// open opens a folder of a server's bucket.
func open(t *testing.T, url string) *s3.Bucket { return openWithStall(t, url, 20*time.Second) }

// openWithStall opens a folder of a bucket, with a limit for each read and write on the network.
func openWithStall(t *testing.T, url string, stall time.Duration) *s3.Bucket {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	p, err := s3.ParsePlace(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s3.OpenWithStall(p, "", slog.New(slog.DiscardHandler), stall)
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

// A file above 128 MiB is sent in parts of 64 MiB.
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
	if left := server.UnfinishedUploads(); len(left) != 0 {
		t.Errorf("parts are left: %v", left)
	}
}

// newClient returns a client that is not part of the program.
func newClient(t *testing.T, server *s3test.Server) *minio.Core {
	t.Helper()
	c, err := minio.NewCore(server.Address(), &minio.Options{BucketLookup: minio.BucketLookupPath,
		Creds: credentials.NewStaticV4(s3test.AccessKey, s3test.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An upload in parts without an end, which a killed process has left, is aborted after a day. A younger one may be in
// progress, and one outside the folder belongs to another program: both stay.
func TestBucketRemovesLeftovers(t *testing.T) {
	server := s3test.Start(t)
	b := open(t, server.URL("left"))
	client := newClient(t, server)
	begin := func(key string) (id string) {
		t.Helper()
		id, err := client.NewMultipartUpload(t.Context(), s3test.Bucket, key, minio.PutObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.PutObjectPart(t.Context(), s3test.Bucket, key, id, 1, strings.NewReader("part"), 4,
			minio.PutObjectPartOptions{}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	old, other := begin("left/exports/old.jsonl.gz"), begin("elsewhere/exports/other.jsonl.gz")
	for _, path := range server.UnfinishedUploads() {
		then := time.Now().Add(-25 * time.Hour)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	young := begin("left/exports/young.jsonl.gz")
	if err := b.RemoveLeftovers(); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, path := range server.UnfinishedUploads() {
		left = append(left, filepath.Base(path))
	}
	slices.Sort(left)
	want := []string{other, young}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("the uploads %v are left, want %v without %s", left, want, old)
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
