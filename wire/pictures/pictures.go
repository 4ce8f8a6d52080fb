package pictures

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"parley/actors/admission"
)

const (
	// MaxFetching limits the pictures that are fetched at a time. Each takes up to preview.MaxPicture bytes.
	MaxFetching = 16
	// MaxCacheBytes limits the memory of fetched pictures: those of the messages that many users read now. Browsers
	// store pictures, too.
	MaxCacheBytes = 32 << 20
	// cacheTime is for how long a fetched picture is shown before it is fetched again.
	cacheTime = time.Hour
	// failureTime is for how long a picture that could not be fetched is not fetched again.
	failureTime = time.Minute
	// entryBytes is the memory of an entry of the cache without its picture.
	entryBytes = 500
)

// ErrBusy means that too many pictures are being fetched.
var ErrBusy = errors.New("too many pictures are being fetched")

// Picture is a fetched picture.
type Picture struct {
	Type string // content type
	Data []byte // not to be changed
}

// Fetch fetches a picture; see preview.Fetcher.FetchPicture.
type Fetch func(ctx context.Context, address string) (contentType string, data []byte, err error)

// Proxy fetches pictures and remembers them for a while. It is safe for concurrent use.
type Proxy struct {
	fetch  Fetch
	now    func() time.Time
	shares *admission.Shares

	mu    sync.Mutex
	cache map[string]*entry // by address
	bytes int64             // of cache
	busy  int64             // fetches
}

// entry is a picture, or one that is being fetched.
type entry struct {
	done    chan struct{} // closed when the fetch has ended
	picture Picture
	err     error
	expires time.Time // zero while it is being fetched
	size    int64
}

// IsOff reports whether the server fetches no pictures. p may be nil.
func (p *Proxy) IsOff() bool { return p == nil || p.fetch == nil }

// New returns a Proxy, which is off if fetch is nil. several reports whether the server has several organizations,
// which share the fetches.
func New(fetch Fetch, several func() bool) *Proxy {
	return &Proxy{fetch: fetch, now: time.Now, shares: admission.NewShares(MaxFetching, several),
		cache: map[string]*entry{}}
}

// Get returns a picture for a reader of an organization, or ErrBusy. Requests for a picture that is being fetched wait
// for it.
func (p *Proxy) Get(ctx context.Context, organization, address string) (Picture, error) {
	p.mu.Lock()
	e := p.cache[address]
	if e != nil && !e.expires.IsZero() && p.now().After(e.expires) {
		p.drop(address)
		e = nil
	}
	if e != nil {
		p.mu.Unlock()
		<-e.done
		return e.picture, e.err
	}
	if p.busy >= MaxFetching || !p.shares.Take(organization, 1) {
		p.mu.Unlock()
		return Picture{}, ErrBusy
	}
	e = &entry{done: make(chan struct{})}
	p.cache[address] = e
	p.busy++
	p.mu.Unlock()

	kind, data, err := p.fetch(ctx, address)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	p.shares.Give(organization, 1)
	e.picture, e.err, e.expires = Picture{kind, data}, err, p.now().Add(cacheTime)
	if err != nil {
		e.expires = p.now().Add(failureTime)
	}
	e.size = int64(len(data)+len(address)) + entryBytes
	p.bytes += e.size
	close(e.done)
	p.shrink(e)
	return e.picture, err
}

// drop removes an entry that is not being fetched.
func (p *Proxy) drop(address string) {
	p.bytes -= p.cache[address].size
	delete(p.cache, address)
}

// shrink removes expired entries, and then any others but one, until the cache has at most MaxCacheBytes.
func (p *Proxy) shrink(but *entry) {
	for _, expired := range []bool{true, false} {
		for address, e := range p.cache {
			if p.bytes <= MaxCacheBytes {
				return
			}
			if e != but && !e.expires.IsZero() && (!expired || p.now().After(e.expires)) {
				p.drop(address)
			}
		}
	}
}

// Fetching returns the number of fetches, and Cached the memory of the cache in bytes. p may be nil.
func (p *Proxy) Fetching() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

func (p *Proxy) Cached() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// Shares returns the shares of the organizations.
func (p *Proxy) Shares() *admission.Shares { return p.shares }

// Path begins the paths of pictures of other sites (protocol). The signature and the address in hexadecimal follow.
const Path = "/external_content/"

// signatureDigits is the length of a signature (protocol).
const signatureDigits = 40

// Address returns the path at which the server shows a picture, or the address itself if it is no picture: browsers
// play videos in parts, which a proxy with a limit cannot.
func Address(sign func(text string) string, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return address
	}
	switch strings.ToLower(path.Ext(u.Path)) {
	case ".mp4", ".webm":
		return address
	}
	return Path + signature(sign, address) + "/" + hex.EncodeToString([]byte(address))
}

func signature(sign func(text string) string, address string) string {
	return sign("picture at " + address)[:signatureDigits]
}

// Original returns the address of a path that Address has made, without Path; false if the signature is wrong.
func Original(sign func(text string) string, rest string) (string, bool) {
	digest, encoded, _ := strings.Cut(rest, "/")
	b, err := hex.DecodeString(encoded)
	if err != nil || len(digest) != signatureDigits || !equal(signature(sign, string(b)), digest) {
		return "", false
	}
	return string(b), true
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
