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

	"parley/actors/admission"
	"parley/wire/httpd/park"
)

// Identicons are drawn on request. Clients fetch the pictures of all users at once, so a rate limit of its own counts
// those that are not in the cache. To bound the work, the server draws one at a time and caches the result.
const (
	// MaxDrawingsPerMinute is how many identicons one network can have drawn: the users of a large organization, and
	// at 1.5 ms each at most a fifteenth of a processor.
	MaxDrawingsPerMinute = 2500
	// MaxIdenticonsPending is the number of requests that may wait for an identicon, including the one being
	// drawn: a tenth of a second of work.
	MaxIdenticonsPending = 64
	// MaxIdenticonsCached is the number of identicons in the cache, about 2 kB each. When the cache is full it is
	// emptied.
	MaxIdenticonsCached = 2048
)

// identiconKey is the input of an identicon.
type identiconKey struct {
	nameSum [sha256.Size]byte // SHA-256 of the name, which may be long
	size    int               // width and height in pixels
}

// identiconCache draws identicons and caches them. It is safe for concurrent use.
type identiconCache struct {
	mu     sync.RWMutex
	images map[identiconKey][]byte

	drawing sync.Mutex // held while an identicon is drawn
	waiting atomic.Int64
	shares  *admission.Shares // of MaxIdenticonsPending
}

func newIdenticonCache(several func() bool) *identiconCache {
	return &identiconCache{images: map[identiconKey][]byte{},
		shares: admission.NewShares(MaxIdenticonsPending, several)}
}

// IdenticonsPending returns the number of requests that wait for an identicon, including the one being drawn.
func (s *Server) IdenticonsPending() int64 { return s.identicons.waiting.Load() }

// IdenticonsCached returns the number of identicons in the cache.
func (s *Server) IdenticonsCached() int64 {
	s.identicons.mu.RLock()
	defer s.identicons.mu.RUnlock()
	return int64(len(s.identicons.images))
}

func (c *identiconCache) find(d identiconKey) ([]byte, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	b, ok := c.images[d]
	return b, ok
}

// image returns the PNG of d from the cache, or draws it. It reports false if MaxIdenticonsPending requests wait
// already, or the organization has its share of them.
func (c *identiconCache) image(organization string, d identiconKey) ([]byte, bool) {
	if b, ok := c.find(d); ok {
		return b, true
	}
	if !c.shares.Take(organization, 1) {
		return nil, false
	}
	defer c.shares.Give(organization, 1)
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > MaxIdenticonsPending {
		return nil, false
	}
	c.drawing.Lock()
	defer c.drawing.Unlock()
	if b, ok := c.find(d); ok { // drawn by another request in the meantime
		return b, true
	}
	b := drawIdenticon(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.images) >= MaxIdenticonsCached {
		clear(c.images)
	}
	c.images[d] = b
	return b, true
}

// Width and height of identicons in pixels, as clients know them of avatars.
const (
	smallIdenticon  = 100
	mediumIdenticon = 500
)

// sendIdenticon answers with the identicon of a name, or with 503 if too many requests wait.
func (s *Server) sendIdenticon(ctx *fasthttp.RequestCtx, name string, medium bool) {
	d := identiconKey{sha256.Sum256([]byte(name)), smallIdenticon}
	if medium {
		d.size = mediumIdenticon
	}
	b, ok := s.identicons.find(d)
	if !ok {
		if err := limitRequest(ctx, s.drawings, s.remote(ctx)); err != nil {
			ctx.Response.Header.Del("Cache-Control")
			s.writeRefusal(ctx, err)
			return
		}
		b, ok = s.identicons.image(s.organizationOfHost(ctx.Host()), d)
	}
	if !ok {
		s.writeBusy(ctx)
		return
	}
	ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	ctx.SetContentType("image/png")
	ctx.Response.SetBodyRaw(b)
}

// writeBusy answers 503 and asks the client to repeat the request in a second.
func (s *Server) writeBusy(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Retry-After", park.BusyRetryAfter)
	s.writeError(ctx, fasthttp.StatusServiceUnavailable, "Server is busy")
}

// drawIdenticon returns a PNG that is determined by d: five by five fields, mirrored, in one color.
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
		panic("BUG: encode identicon: " + err.Error())
	}
	return b.Bytes()
}
