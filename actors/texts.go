package actors

import (
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
	size       int
	was        int // the size of the old ones
	young, old map[textKey]realm.Body
}

func newTextCache(bytes int) *textCache {
	return &textCache{half: bytes / 2, young: map[textKey]realm.Body{}}
}

// textOverhead is about what a map entry costs besides its strings, in bytes.
const textOverhead = 120

func (c *textCache) get(id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.young[k]
	if !ok {
		if b, ok = c.old[k]; ok {
			delete(c.old, k)
			c.add(k, b)
		}
	}
	return b, ok
}

func (c *textCache) put(id realm.ID, ref realm.BodyRef, b realm.Body) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(textKey{id, ref}, b)
}

func (c *textCache) add(k textKey, b realm.Body) {
	if _, ok := c.young[k]; ok {
		return // a version of a text never changes
	}
	c.size += len(b.Text) + len(b.HTML) + textOverhead
	c.young[k] = b
	if c.size > c.half {
		c.old, c.young, c.size, c.was = c.young, map[textKey]realm.Body{}, 0, c.size
	}
}

func (c *textCache) drop(id realm.ID, ref realm.BodyRef) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.young, k)
	delete(c.old, k)
}

// CachedTexts is how many bytes the texts kept in memory take, about.
func (h *House) CachedTexts() int64 {
	h.texts.mu.Lock()
	defer h.texts.mu.Unlock()
	return int64(h.texts.size + h.texts.was)
}
