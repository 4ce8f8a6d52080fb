package httpd

import (
	"bytes"
	"crypto/sha256"
	"image"
	"image/color"
	"image/png"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// Pictures that follow from a name are drawn for whoever asks, and no rate limit counts that: clients fetch those of all
// users at once. So they are drawn one at a time and the last ones are kept.
const (
	// MaxDrawing is how many requests may wait for a picture to be drawn, the one it is drawn for included: a tenth of a
	// second's work.
	MaxDrawing = 64
	// MaxDrawn is how many drawn pictures are kept, about 2 kB each. Beyond it they are forgotten and drawn again.
	MaxDrawn = 2048
)

// drawing is what a picture is drawn from.
type drawing struct {
	sum  [sha256.Size]byte // of the name, which may be long
	size int               // pixels of a side
}

// gallery draws pictures and keeps them.
type gallery struct {
	mu    sync.RWMutex
	drawn map[drawing][]byte

	drawingNow sync.Mutex // held by whoever draws
	waiting    atomic.Int64
}

func newGallery() *gallery { return &gallery{drawn: map[drawing][]byte{}} }

// Drawing is how many requests have a picture drawn or wait for it.
func (s *Server) Drawing() int64 { return s.gallery.waiting.Load() }

// Drawn is how many drawn pictures are kept.
func (s *Server) Drawn() int64 {
	s.gallery.mu.RLock()
	defer s.gallery.mu.RUnlock()
	return int64(len(s.gallery.drawn))
}

func (g *gallery) find(d drawing) ([]byte, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	b, ok := g.drawn[d]
	return b, ok
}

// draw is the picture of a name; false: too many wait for theirs.
func (g *gallery) draw(d drawing) ([]byte, bool) {
	if b, ok := g.find(d); ok {
		return b, true
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > MaxDrawing {
		return nil, false
	}
	g.drawingNow.Lock()
	defer g.drawingNow.Unlock()
	if b, ok := g.find(d); ok { // somebody else wanted it, too
		return b, true
	}
	b := identicon(d)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.drawn) >= MaxDrawn {
		clear(g.drawn)
	}
	g.drawn[d] = b
	return b, true
}

// The sides of drawn pictures, in pixels, as clients know them of avatars.
const (
	smallDrawing  = 100
	mediumDrawing = 500
)

// sendDrawn answers with the picture of a name.
func (s *Server) sendDrawn(ctx *fasthttp.RequestCtx, name string, medium bool) {
	d := drawing{sha256.Sum256([]byte(name)), smallDrawing}
	if medium {
		d.size = mediumDrawing
	}
	b, ok := s.gallery.draw(d)
	if !ok {
		s.busy(ctx)
		return
	}
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.SetContentType("image/png")
	ctx.Response.SetBodyRaw(b)
}

// busy answers that a picture has to wait.
func (s *Server) busy(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Retry-After", "1")
	s.fail(ctx, fasthttp.StatusServiceUnavailable, "Server is busy")
}

// identicon draws a picture that follows from a name: five by five fields, mirrored, in one colour.
func identicon(d drawing) []byte {
	sum, size := d.sum, d.size
	ink := color.RGBA{R: 60 + sum[0]%140, G: 60 + sum[1]%140, B: 60 + sum[2]%140, A: 255}
	img := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{color.RGBA{240, 240, 240, 255}, ink})
	cell, margin := size/6, (size-size/6*5)/2
	for y := range 5 {
		for x := range 3 {
			if sum[3+y*3+x]%2 == 0 {
				continue
			}
			for _, col := range []int{x, 4 - x} {
				for py := range cell {
					for px := range cell {
						img.SetColorIndex(margin+col*cell+px, margin+y*cell+py, 1)
					}
				}
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic("BUG: draw a picture: " + err.Error())
	}
	return b.Bytes()
}
