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
	g := newIdenticonCache()
	a, _ := g.image(identiconKeyOf(0))
	b, _ := g.image(identiconKeyOf(0))
	if &a[0] != &b[0] {
		t.Error("a picture that is kept was drawn again")
	}
	img, err := png.Decode(bytes.NewReader(a))
	if err != nil || img.Bounds().Dx() != smallIdenticon {
		t.Fatalf("drawn was %v: %v", img, err)
	}
	for i := range MaxIdenticonsCached + 10 {
		if _, ok := g.image(identiconKeyOf(i)); !ok {
			t.Fatalf("picture %d was not drawn", i)
		}
		if n := len(g.images); n > MaxIdenticonsCached {
			t.Fatalf("%d pictures are kept", n)
		}
	}
	if again, ok := g.image(identiconKeyOf(0)); !ok || !bytes.Equal(a, again) {
		t.Error("a picture that was forgotten is another one now")
	}
}

func TestPendingIdenticonsAreBounded(t *testing.T) {
	g := newIdenticonCache()
	if _, ok := g.image(identiconKeyOf(0)); !ok {
		t.Fatal("nothing is drawn")
	}
	g.drawing.Lock() // somebody draws
	var all sync.WaitGroup
	for i := range MaxIdenticonsPending {
		all.Go(func() {
			if _, ok := g.image(identiconKeyOf(1 + i)); !ok {
				t.Errorf("picture %d was not drawn, though few waited", i)
			}
		})
	}
	for g.waiting.Load() < MaxIdenticonsPending {
		runtime.Gosched()
	}
	if _, ok := g.image(identiconKeyOf(MaxIdenticonsPending + 1)); ok {
		t.Error("one more waited")
	}
	if _, ok := g.image(identiconKeyOf(0)); !ok {
		t.Error("what is kept had to wait")
	}
	g.drawing.Unlock()
	all.Wait()
	if _, ok := g.image(identiconKeyOf(MaxIdenticonsPending + 1)); !ok || g.waiting.Load() != 0 {
		t.Errorf("drawn: %v; %d wait when all have theirs", ok, g.waiting.Load())
	}
}
