package pictures

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Requests for the same picture cause one fetch. It is remembered for an hour, a failure for a minute.
func TestPicturesAreFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		p := New(func(context.Context, string) (string, []byte, error) {
			fetches++
			time.Sleep(time.Second)
			if fetches == 2 {
				return "", nil, errors.New("down")
			}
			return "image/png", []byte("picture"), nil
		}, func() bool { return false })
		get := func() error {
			x, err := p.Get(context.Background(), "1", "https://example.org/a.png")
			if err == nil && string(x.Data) != "picture" {
				t.Errorf("the picture is %q", x.Data)
			}
			return err
		}
		for range 20 {
			go get()
		}
		synctest.Wait()
		if p.Fetching() != 1 {
			t.Errorf("%d fetches at a time", p.Fetching())
		}
		if err := get(); err != nil || fetches != 1 {
			t.Errorf("%d fetches, %v", fetches, err)
		}
		time.Sleep(cacheTime + time.Second)
		first, second := get(), get()
		if first == nil || second == nil || fetches != 2 {
			t.Errorf("a failure: %d fetches, %v, %v", fetches, first, second)
		}
		time.Sleep(failureTime + time.Second)
		if err := get(); err != nil || fetches != 3 {
			t.Errorf("after a failure: %d fetches, %v", fetches, err)
		}
	})
}

// The fetches at a time and the memory of the pictures are bounded.
func TestPicturesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, large := make(chan struct{}), bytes.Repeat([]byte("x"), MaxCacheBytes/8)
		p := New(func(context.Context, string) (string, []byte, error) {
			<-release
			return "image/png", large, nil
		}, func() bool { return false })
		get := func(i int) error {
			_, err := p.Get(context.Background(), "1", fmt.Sprintf("https://example.org/%d.png", i))
			return err
		}
		for i := range MaxFetching {
			go get(i)
		}
		synctest.Wait()
		if err := get(MaxFetching); !errors.Is(err, ErrBusy) {
			t.Errorf("one more fetch: %v", err)
		}
		close(release)
		synctest.Wait()
		if err := get(MaxFetching); err != nil {
			t.Error(err)
		}
		if n := p.Cached(); n > MaxCacheBytes || n < MaxCacheBytes/2 {
			t.Errorf("the cache has %d bytes", n)
		}
	})
}

// An address can be read only from a path that this server has made.
func TestAddress(t *testing.T) {
	sign := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	const address = "https://example.org/a b.png?x=1"
	made := Address(sign, address)
	want := Path + sign("picture at " + address)[:40] + "/68747470733a2f2f6578616d706c652e6f7267"
	if !strings.HasPrefix(made, want) {
		t.Errorf("the path is %s", made)
	}
	rest := strings.TrimPrefix(made, Path)
	if got, ok := Original(sign, rest); !ok || got != address {
		t.Errorf("the address is %q, %v", got, ok)
	}
	for _, wrong := range []string{"", "/", rest[1:], "0" + rest, rest + "00", rest + "x", rest[:41],
		strings.Repeat("0", 40) + rest[40:]} {
		if got, ok := Original(sign, wrong); ok {
			t.Errorf("%s is accepted as %q", wrong, got)
		}
	}
	for _, other := range []string{"https://example.org/film.mp4", "https://example.org/film.WEBM?x",
		"data:image/png,x", "/user_uploads/1/a.png", "http://a b/"} {
		if got := Address(sign, other); got != other {
			t.Errorf("%s becomes %s", other, got)
		}
	}
}
