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

// FilePaths that follow from a name are drawn for whoever asks, and no rate limit counts that: clients fetch those of all
// users at once. So they are drawn one at a time and the last ones are kept.
const (
	// MaxIdenticonsPending is how many requests may wait for a picture to be drawn, the one it is drawn for included: a tenth of a
	// second's work.
	MaxIdenticonsPending = 64
	// MaxIdenticonsCached is how many drawn pictures are kept, about 2 kB each. Beyond it they are forgotten and drawn again.
	MaxIdenticonsCached = 2048
)

// identiconKey is what a picture is drawn from.
type identiconKey struct {
	nameSum [sha256.Size]byte // of the name, which may be long
	size    int               // pixels of a side
}

// identiconCache draws pictures and keeps them.
type identiconCache struct {
	mu     sync.RWMutex
	images map[identiconKey][]byte

	drawing sync.Mutex // held by whoever draws
	waiting atomic.Int64
}

func newIdenticonCache() *identiconCache { return &identiconCache{images: map[identiconKey][]byte{}} }

// IdenticonsPending is how many requests have a picture drawn or wait for it.
func (s *Server) IdenticonsPending() int64 { return s.identicons.waiting.Load() }

// IdenticonsCached is how many drawn pictures are kept.
func (s *Server) IdenticonsCached() int64 {
	s.identicons.mu.RLock()
	defer s.identicons.mu.RUnlock()
	return int64(len(s.identicons.images))
}

func (g *identiconCache) find(d identiconKey) ([]byte, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	b, ok := g.images[d]
	return b, ok
}

// image is the picture of a name; false: too many wait for theirs.
func (g *identiconCache) image(d identiconKey) ([]byte, bool) {
	if b, ok := g.find(d); ok {
		return b, true
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > MaxIdenticonsPending {
		return nil, false
	}
	g.drawing.Lock()
	defer g.drawing.Unlock()
	if b, ok := g.find(d); ok { // somebody else wanted it, too
		return b, true
	}
	b := drawIdenticon(d)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.images) >= MaxIdenticonsCached {
		clear(g.images)
	}
	g.images[d] = b
	return b, true
}

// The sides of drawn pictures, in pixels, as clients know them of avatars.
const (
	smallIdenticon  = 100
	mediumIdenticon = 500
)

// sendIdenticon answers with the picture of a name.
func (s *Server) sendIdenticon(ctx *fasthttp.RequestCtx, name string, medium bool) {
	d := identiconKey{sha256.Sum256([]byte(name)), smallIdenticon}
	if medium {
		d.size = mediumIdenticon
	}
	b, ok := s.identicons.image(d)
	if !ok {
		s.writeBusy(ctx)
		return
	}
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.SetContentType("image/png")
	ctx.Response.SetBodyRaw(b)
}

// writeBusy answers that a picture has to wait.
func (s *Server) writeBusy(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Retry-After", "1")
	s.writeError(ctx, fasthttp.StatusServiceUnavailable, "Server is busy")
}

// drawIdenticon draws a picture that follows from a name: five by five fields, mirrored, in one colour.
func drawIdenticon(d identiconKey) []byte {
	sum, size := d.nameSum, d.size
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
