package s3_test

import (
	"errors"
	"io"
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
	waitUntilReady(t, b)
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
	waitUntilReady(t, b)
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

// A server that accepts connections and does not answer is given up after the limit for a read; further calls are
// refused at once. Everything works again when the server goes on.
func TestBucketHangs(t *testing.T) {
	server := s3test.Start(t)
	b := openWithStall(t, server.URL("hangs"), time.Second)
	s := newStore(t, b)
	hash := save(t, s, "before")
	server.Freeze()
	defer server.Thaw()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := s.Save("1", strings.NewReader("meanwhile"), 100); !errors.Is(err, files.ErrUnavailable) {
			t.Errorf("save: %v", err)
		}
	})
	waiting.Go(func() {
		if _, err := s.Open(realm.ContentFile, hash); !errors.Is(err, files.ErrUnavailable) {
			t.Errorf("open: %v", err)
		}
	})
	waiting.Wait()
	if _, err := s.Save("1", failing{t}, 100); !errors.Is(err, files.ErrUnavailable) {
		t.Errorf("a save after that: %v", err)
	}
	server.Thaw()
	waitUntilReady(t, b)
	if got := read(t, b, files.ContentKey(hash), 0, -1); got != "before" {
		t.Errorf("the file is %q", got)
	}
	save(t, s, "meanwhile")
}

func waitUntilReady(t *testing.T, b *s3.Bucket) {
	t.Helper()
	for until := time.Now().Add(time.Minute); b.Ready() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the bucket is not reached again")
		}
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
