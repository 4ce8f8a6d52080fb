package httpd

import (
	"bytes"
	"crypto/sha256"
	"image/png"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

func identiconKeyOf(n int) identiconKey {
	return identiconKey{sha256.Sum256([]byte(strconv.Itoa(n))), smallIdenticon}
}

func TestIdenticonCacheIsBounded(t *testing.T) {
	c := newIdenticonCache(nil)
	a, _ := c.image("", identiconKeyOf(0))
	b, _ := c.image("", identiconKeyOf(0))
	if &a[0] != &b[0] {
		t.Error("a cached identicon was drawn again")
	}
	img, err := png.Decode(bytes.NewReader(a))
	if err != nil || img.Bounds().Dx() != smallIdenticon {
		t.Fatalf("the identicon is %v: %v", img, err)
	}
	for i := range MaxIdenticonsCached + 10 {
		if _, ok := c.image("", identiconKeyOf(i)); !ok {
			t.Fatalf("identicon %d was not drawn", i)
		}
		if n := len(c.images); n > MaxIdenticonsCached {
			t.Fatalf("%d identicons are cached", n)
		}
	}
	if again, ok := c.image("", identiconKeyOf(0)); !ok || !bytes.Equal(a, again) {
		t.Error("an evicted identicon was drawn differently")
	}
}

func TestPendingIdenticonsAreBounded(t *testing.T) {
	c := newIdenticonCache(nil)
	if _, ok := c.image("", identiconKeyOf(0)); !ok {
		t.Fatal("the first identicon was refused")
	}
	c.drawing.Lock() // as if another request were drawing
	var all sync.WaitGroup
	for i := range MaxIdenticonsPending {
		all.Go(func() {
			if _, ok := c.image("", identiconKeyOf(1+i)); !ok {
				t.Errorf("identicon %d was refused below the bound", i)
			}
		})
	}
	for c.waiting.Load() < MaxIdenticonsPending {
		runtime.Gosched()
	}
	if _, ok := c.image("", identiconKeyOf(MaxIdenticonsPending+1)); ok {
		t.Error("a request beyond MaxIdenticonsPending was accepted")
	}
	if _, ok := c.image("", identiconKeyOf(0)); !ok {
		t.Error("a cached identicon had to wait")
	}
	c.drawing.Unlock()
	all.Wait()
	if _, ok := c.image("", identiconKeyOf(MaxIdenticonsPending+1)); !ok || c.waiting.Load() != 0 {
		t.Errorf("drawn: %v; %d requests still count as waiting", ok, c.waiting.Load())
	}
}
