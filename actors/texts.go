package actors

import (
	"strings"
	"sync"

	"parley/actors/realm"
)

type textKey struct {
	realm realm.ID
	ref   realm.BodyRef
}

// textCache keeps message texts in memory up to a number of bytes, in two generations: when the young one is full it
// becomes the old one, and the old one is forgotten. A text that is read from the old one is young again.
type textCache struct {
	mu         sync.Mutex
	half       int
	young, old texts
}

// texts is one generation. The texts stand behind each other in large pieces, and where says at which place: the collector
// has a few hundred pieces to look at. A hundred thousand strings were most of what it did while others sent.
type texts struct {
	where  map[textKey]place
	pieces []*strings.Builder // each with room for all it is to hold: what is in it does not move
	size   int
}

type place struct{ piece, from, middle, to uint32 } // the text, then its HTML

// pieceBytes is how large a piece is, in bytes; a longer text has one of its own.
const pieceBytes = 256 << 10

func newTextCache(bytes int) *textCache {
	return &textCache{half: bytes / 2, young: texts{where: map[textKey]place{}}}
}

// textOverhead is about what a map entry costs, in bytes.
const textOverhead = 80

// get returns copies: one string of a piece would keep all of it.
func (c *textCache) get(id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.young.read(k); ok {
		return b, true
	}
	b, ok := c.old.read(k)
	if ok {
		delete(c.old.where, k)
		c.add(k, b)
	}
	return b, ok
}

// peek is get for who reads a text once: it grows no younger by it.
func (c *textCache) peek(id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.young.read(k)
	if !ok {
		b, ok = c.old.read(k)
	}
	return b, ok
}

func (c *textCache) put(id realm.ID, ref realm.BodyRef, b realm.Body) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(textKey{id, ref}, b)
}

func (c *textCache) add(k textKey, b realm.Body) {
	if _, ok := c.young.where[k]; ok {
		return // a version of a text never changes
	}
	c.young.write(k, b)
	if c.young.size > c.half {
		c.old, c.young = c.young, texts{where: map[textKey]place{}}
	}
}

func (c *textCache) drop(id realm.ID, ref realm.BodyRef) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.young.where, k)
	delete(c.old.where, k)
}

func (x *texts) read(k textKey) (realm.Body, bool) {
	p, ok := x.where[k]
	if !ok {
		return realm.Body{}, false
	}
	s := x.pieces[p.piece].String()
	return realm.Body{Text: strings.Clone(s[p.from:p.middle]), HTML: strings.Clone(s[p.middle:p.to])}, true
}

func (x *texts) write(k textKey, b realm.Body) {
	n := len(b.Text) + len(b.HTML)
	if i := len(x.pieces) - 1; i < 0 || x.pieces[i].Cap()-x.pieces[i].Len() < n {
		p := &strings.Builder{}
		p.Grow(max(n, pieceBytes))
		x.pieces = append(x.pieces, p)
		x.size += p.Cap()
	}
	i := len(x.pieces) - 1
	p := x.pieces[i]
	from := p.Len()
	p.WriteString(b.Text)
	p.WriteString(b.HTML)
	x.where[k] = place{uint32(i), uint32(from), uint32(from + len(b.Text)), uint32(p.Len())}
	x.size += textOverhead
}

// CachedTexts is how many bytes the texts kept in memory take, about.
func (h *House) CachedTexts() int64 {
	h.texts.mu.Lock()
	defer h.texts.mu.Unlock()
	return int64(h.texts.young.size + h.texts.old.size)
}
