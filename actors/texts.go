package actors

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"parley/actors/delivery"
	"parley/actors/realm"
)

type textKey struct {
	realm realm.ID
	ref   realm.BodyRef
}

// textCache keeps message texts in memory, up to a number of bytes, in two generations. When the young generation is
// full it becomes the old one, and the old one is dropped. A text that is read from the old generation moves to the
// young one.
type textCache struct {
	mu              sync.Mutex
	generationBytes int // limit of one generation
	young, old      textGeneration
}

// textGeneration stores texts one after the other in large chunks; an index says where each one is. So the garbage
// collector visits a few hundred chunks. With a hundred thousand strings, visiting them was most of its work.
type textGeneration struct {
	index  map[textKey]textSpan
	chunks []*strings.Builder // each has room for everything it will hold, so its content never moves
	open   int                // number of the chunk that small texts are written to; -1: none
	size   int                // bytes of the chunks and the index, about
}

func newTextGeneration() textGeneration {
	return textGeneration{index: map[textKey]textSpan{}, open: -1}
}

// textSpan is where a text is in a chunk: the text between from and middle, its HTML between middle and to.
type textSpan struct{ chunk, from, middle, to uint32 } // the text, then its HTML

// chunkBytes is the size of a chunk, in bytes. A text of ownChunkBytes or more has a chunk of its own.
const chunkBytes, ownChunkBytes = 256 << 10, 16 << 10

// ownChunk reports whether the text is the only one in its chunk.
func (s textSpan) ownChunk() bool { return s.to-s.from >= ownChunkBytes }

func newTextCache(bytes int) *textCache {
	return &textCache{generationBytes: bytes / 2, young: newTextGeneration(), old: newTextGeneration()}
}

// textOverhead is about the size of an index entry, in bytes.
const textOverhead = 80

// get returns copies of small texts: a substring of a chunk would keep the whole chunk in memory. A large text is not
// copied. So answers and events that contain the same large text hold it once, together with the cache.
func (c *textCache) get(id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.young.read(k); ok {
		return b, true
	}
	b, ok := c.old.read(k)
	if ok {
		c.add(k, b, c.old.remove(k))
	}
	return b, ok
}

// peek reads an entry without marking it as recently used.
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
	c.add(textKey{id, ref}, b, nil)
}

// add adds a text to the young generation. chunk is its own chunk if it has one already.
func (c *textCache) add(k textKey, b realm.Body, chunk *strings.Builder) {
	if _, ok := c.young.index[k]; ok {
		return // a version of a text never changes
	}
	c.young.write(k, b, chunk)
	if c.young.size > c.generationBytes {
		c.old, c.young = c.young, newTextGeneration()
	}
}

func (c *textCache) drop(id realm.ID, ref realm.BodyRef) {
	k := textKey{id, ref}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young.remove(k)
	c.old.remove(k)
}

// dropRealm removes every text of a realm.
func (c *textCache) dropRealm(id realm.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := func(k textKey, _ textSpan) bool { return k.realm == id }
	maps.DeleteFunc(c.young.index, of)
	maps.DeleteFunc(c.old.index, of)
}

func (g *textGeneration) read(k textKey) (realm.Body, bool) {
	p, ok := g.index[k]
	if !ok {
		return realm.Body{}, false
	}
	s := g.chunks[p.chunk].String()
	b := realm.Body{Text: s[p.from:p.middle], HTML: s[p.middle:p.to]}
	if !p.ownChunk() {
		b.Text, b.HTML = strings.Clone(b.Text), strings.Clone(b.HTML)
	}
	return b, true
}

// remove removes a text, if it is there, and returns its chunk if it was the only text in it.
func (g *textGeneration) remove(k textKey) *strings.Builder {
	p, ok := g.index[k]
	delete(g.index, k)
	if !ok || !p.ownChunk() {
		return nil
	}
	chunk := g.chunks[p.chunk]
	g.chunks[p.chunk] = nil
	g.size -= chunk.Cap()
	return chunk
}

// write adds a text. chunk is its own chunk if it has one already.
func (g *textGeneration) write(k textKey, b realm.Body, chunk *strings.Builder) {
	n := len(b.Text) + len(b.HTML)
	i := g.open
	switch {
	case chunk != nil:
		i = g.addChunk(chunk)
	case n >= ownChunkBytes:
		i = g.addChunk(newChunk(n))
	case i < 0 || g.chunks[i].Cap()-g.chunks[i].Len() < n:
		i = g.addChunk(newChunk(chunkBytes))
		g.open = i
	}
	p := g.chunks[i]
	from := 0
	if chunk == nil {
		from = p.Len()
		p.WriteString(b.Text)
		p.WriteString(b.HTML)
	}
	g.index[k] = textSpan{uint32(i), uint32(from), uint32(from + len(b.Text)), uint32(p.Len())}
	g.size += textOverhead
}

func newChunk(size int) *strings.Builder {
	p := &strings.Builder{}
	p.Grow(size)
	return p
}

// addChunk adds a chunk and returns its number.
func (g *textGeneration) addChunk(p *strings.Builder) int {
	g.chunks = append(g.chunks, p)
	g.size += p.Cap()
	return len(g.chunks) - 1
}

// TextCacheSize returns how many bytes the cached texts take, about.
func (srv *Server) TextCacheSize() int64 {
	srv.texts.mu.Lock()
	defer srv.texts.mu.Unlock()
	return int64(srv.texts.young.size + srv.texts.old.size)
}

// Text returns one version of a message's text, from memory or disk. It reports false if the text was erased. A text
// that exists and cannot be read is an error, a refusal of the kind realm.Damaged: callers must not treat it like an
// erased one, because the message would be missing in their answers.
func (srv *Server) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	if b, ok := srv.texts.get(id, ref); ok {
		return b, true, nil
	}
	b, ok, err := srv.readText(id, ref)
	if ok {
		srv.texts.put(id, ref, b)
	}
	return b, ok, err
}

// TextsSource is a ReplicaSource at another node, which can be asked for many texts at once.
type TextsSource interface {
	// Texts reads texts, and calls fn with each that could be read.
	Texts(id realm.ID, refs []realm.BodyRef, fn func(realm.BodyRef, realm.Body)) error
}

// FetchTexts reads texts that another node has in one step, so that Text finds them in memory. It does nothing where
// texts are on the disk of this node. If it fails, Text reads them one by one, with the right error.
func (srv *Server) FetchTexts(id realm.ID, refs []realm.BodyRef) {
	r := srv.find(id)
	if r == nil || r.source == nil {
		return
	}
	from, ok := r.source.(TextsSource)
	if !ok {
		return
	}
	missing := make([]realm.BodyRef, 0, len(refs))
	for _, ref := range refs {
		if _, ok := srv.texts.peek(id, ref); !ok {
			missing = append(missing, ref)
		}
	}
	if len(missing) < 2 {
		return
	}
	err := from.Texts(id, missing, func(ref realm.BodyRef, b realm.Body) { srv.texts.put(id, ref, b) })
	if err != nil {
		srv.log.Warn("texts not fetched", "realm", id, "texts", len(missing), "err", err)
	}
}

// readText reads a text from the disk and records whether it is damaged.
func (srv *Server) readText(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	var b realm.Body
	var ok bool
	var err error
	if r := srv.find(id); r != nil && r.source != nil {
		if b, ok, err = r.source.Text(id, ref); err != nil && !isDamaged(err) {
			return realm.Body{}, false, delivery.ErrCannotFollow
		}
	} else {
		b, ok, err = srv.disk.Text(id, ref)
	}
	if err != nil {
		srv.damaged.add(textKey{id, ref})
		srv.log.Error(
			"message text is damaged",
			"realm",
			id,
			"message",
			ref.Message,
			"version",
			ref.Version,
			"err",
			err,
		)
		return realm.Body{}, false, realm.ErrDamagedText(ref.Message)
	}
	srv.damaged.remove(textKey{id, ref})
	return b, ok, nil
}

func isDamaged(err error) bool {
	var r *realm.Refusal
	return errors.As(err, &r) && r.Kind == realm.Damaged
}

// searchTextReader returns a function that reads a realm's texts for the search index. Each text is read only once, so
// a text that comes from the disk is not put into the cache: it would displace texts that users read.
func (srv *Server) searchTextReader(id realm.ID) realm.TextReader {
	return func(ref realm.BodyRef) (realm.Body, bool, error) {
		if b, ok := srv.texts.peek(id, ref); ok {
			return b, true, nil
		}
		return srv.readText(id, ref)
	}
}

// MaxDamagedTexts limits the damaged texts that the server remembers, so that a lost file does not fill the memory.
const MaxDamagedTexts = 10_000

// damagedTexts is the set of the texts that could not be read since the process started. A text leaves it when it is
// read again or erased.
type damagedTexts struct {
	count atomic.Int64 // of keys; without a lock, because every reading of a text asks it
	mu    sync.Mutex
	keys  map[textKey]struct{}
}

func (d *damagedTexts) add(k textKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys == nil {
		d.keys = map[textKey]struct{}{}
	}
	if len(d.keys) < MaxDamagedTexts {
		d.keys[k] = struct{}{}
	}
	d.count.Store(int64(len(d.keys)))
}

func (d *damagedTexts) remove(k textKey) {
	if d.count.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, k)
	d.count.Store(int64(len(d.keys)))
}

// DamagedTexts returns how many message texts could not be read since the process started. Texts that were erased or
// read again since then do not count.
func (srv *Server) DamagedTexts() int64 { return srv.damaged.count.Load() }
