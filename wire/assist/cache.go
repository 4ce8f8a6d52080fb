package assist

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"parley/actors/realm"
)

// maxCached limits the texts of the cache: 16 MB at most.
const maxCached = 500

// cacheKey names the texts from which a text was made. The hash is that of the texts that the service got, so that a
// change of the topic is another key.
type cacheKey struct {
	realm realm.ID
	what  string
	sum   [sha256.Size]byte
}

// cache has the newest texts that services have made.
type cache struct {
	mu    sync.Mutex
	byKey map[cacheKey]*list.Element
	order list.List // of cached, the last used first
}

type cached struct {
	key  cacheKey
	text string
}

func (c *cache) get(key cacheKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return "", false
	}
	c.order.MoveToFront(e)
	return e.Value.(cached).text, true
}

func (c *cache) add(key cacheKey, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[cacheKey]*list.Element{}
	}
	if c.byKey[key] != nil { // another call was as fast
		return
	}
	c.byKey[key] = c.order.PushFront(cached{key, text})
	if c.order.Len() > maxCached {
		delete(c.byKey, c.order.Remove(c.order.Back()).(cached).key)
	}
}

func (c *cache) len() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.byKey))
}
