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

func drawingOf(n int) drawing {
	return drawing{sha256.Sum256([]byte(strconv.Itoa(n))), smallDrawing}
}

func TestDrawnPicturesAreKeptUpToABound(t *testing.T) {
	g := newGallery()
	a, _ := g.draw(drawingOf(0))
	b, _ := g.draw(drawingOf(0))
	if &a[0] != &b[0] {
		t.Error("a picture that is kept was drawn again")
	}
	img, err := png.Decode(bytes.NewReader(a))
	if err != nil || img.Bounds().Dx() != smallDrawing {
		t.Fatalf("drawn was %v: %v", img, err)
	}
	for i := range MaxDrawn + 10 {
		if _, ok := g.draw(drawingOf(i)); !ok {
			t.Fatalf("picture %d was not drawn", i)
		}
		if n := len(g.drawn); n > MaxDrawn {
			t.Fatalf("%d pictures are kept", n)
		}
	}
	if again, ok := g.draw(drawingOf(0)); !ok || !bytes.Equal(a, again) {
		t.Error("a picture that was forgotten is another one now")
	}
}

func TestFewWaitForAPictureToBeDrawn(t *testing.T) {
	g := newGallery()
	if _, ok := g.draw(drawingOf(0)); !ok {
		t.Fatal("nothing is drawn")
	}
	g.drawingNow.Lock() // somebody draws
	var all sync.WaitGroup
	for i := range MaxDrawing {
		all.Go(func() {
			if _, ok := g.draw(drawingOf(1 + i)); !ok {
				t.Errorf("picture %d was not drawn, though few waited", i)
			}
		})
	}
	for g.waiting.Load() < MaxDrawing {
		runtime.Gosched()
	}
	if _, ok := g.draw(drawingOf(MaxDrawing + 1)); ok {
		t.Error("one more waited")
	}
	if _, ok := g.draw(drawingOf(0)); !ok {
		t.Error("what is kept had to wait")
	}
	g.drawingNow.Unlock()
	all.Wait()
	if _, ok := g.draw(drawingOf(MaxDrawing + 1)); !ok || g.waiting.Load() != 0 {
		t.Errorf("drawn: %v; %d wait when all have theirs", ok, g.waiting.Load())
	}
}
