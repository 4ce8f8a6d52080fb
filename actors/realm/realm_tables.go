package realm

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"reflect"
	"slices"
)

// table is rows that a snapshot keeps. It remembers which rows changed since the last cut. find may return nothing;
// change and must may not; change marks the row.
type table[K cmp.Ordered, V any] struct {
	number   uint16
	sparse   map[K]*V // the rows, but for those in dense
	dirty    keySet[K]
	snapshot keySet[K] // rows of the running cut that are not written yet
	emit     func(table uint16, key, row any)

	onChange func(K) // hears of every row about to change; may be nil

	// What happens to a row that is about to change while a running cut has yet to write it. Ordinarily it is written at
	// once; where one command may change very many rows that would take too long, and one of these is set.
	copyRow     func(*V) *V    // makes a copy, which further changes leave alone, to be written later
	originalRow func(K, *V) *V // brings the row back as it stood, which whoever changes it has kept
	copies      []rowCopy[K, V]

	// Keys that are small numbers, one after the other, have their rows by number: very many are asked for at once.
	numbering    *numbering[K]
	dense        []*V
	pages        map[int]*page[V]
	numberedRows int // how many rows dense or pages have

	shareRow   func(row, before *V) *V // a row that was loaded, or the one before, if they may be one; may be nil
	lastLoaded *V                      // the last row that was loaded, if together is set

	tracksOrder bool // noticeRank is asked for
	orderedKeys []K  // the keys in order, and some that are gone
}

// numbering is how keys become numbers, and back.
type numbering[K cmp.Ordered] struct {
	number func(K) int
	key    func(int) K
	paged  bool // there are too many numbers to keep a place for each that has no row
}

func numberingOf[K ~int64 | ~uint32]() *numbering[K] {
	return &numbering[K]{number: func(k K) int { return int(k) }, key: func(n int) K { return K(n) }}
}

// page is the rows of 64 numbers in order, without those that are not there.
type page[V any] struct {
	present uint64
	rows    []*V
}

// pageOf is on which page a number is, and which bit there.
func pageOf(n int) (page int, mask uint64) { return n >> 6, 1 << (uint(n) & 63) }

// position is where on the page a row is or would be.
func (p *page[V]) position(mask uint64) int { return bits.OnesCount64(p.present & (mask - 1)) }

func (p *page[V]) set(mask uint64, v *V) {
	i := p.position(mask)
	switch there := p.present&mask != 0; {
	case v == nil && there:
		p.rows = slices.Delete(p.rows, i, i+1)
		p.present &^= mask
	case v == nil:
	case there:
		p.rows[i] = v
	default:
		p.rows = slices.Insert(p.rows, i, v)
		p.present |= mask
	}
}

// mergeNotice puts rows of some of the numbers in the place of those that are there.
func (p *page[V]) merge(mask uint64, rows *[64]*V) {
	if mask&^p.present != 0 {
		all := make([]*V, bits.OnesCount64(p.present|mask))
		was := *p
		p.present, p.rows = p.present|mask, all
		for left := was.present &^ mask; left != 0; left &= left - 1 {
			all[p.position(left&-left)] = was.rows[was.position(left&-left)]
		}
	}
	for left := mask; left != 0; left &= left - 1 {
		p.rows[p.position(left&-left)] = rows[bits.TrailingZeros64(left)]
	}
}

// maxDense is up to which number rows stand by their numbers: eight bytes each.
const maxDense = 1 << 20

// rowCopy is a row as it stood when the running cut began.
type rowCopy[K cmp.Ordered, V any] struct {
	key K
	row *V
}

// keySet is a set of keys; one that has a number takes a bit.
type keySet[K cmp.Ordered] struct {
	numbers   *numbering[K]
	n         int
	bits      []uint64
	firstWord int            // no bit is set before this word
	pages     map[int]uint64 // bits of numbers that are paged
	others    map[K]struct{} // keys without a number
}

// bit is the place of a key's bit; false if it has none.
func (m *keySet[K]) bit(k K) (word int, mask uint64, numbered bool) {
	if m.numbers == nil {
		return 0, 0, false
	}
	n := m.numbers.number(k)
	word, mask = pageOf(n)
	return word, mask, m.numbers.paged || n >= 0 && n < maxDense
}

func (m *keySet[K]) has(k K) bool {
	if word, mask, numbered := m.bit(k); numbered {
		if m.numbers.paged {
			return m.pages[word]&mask != 0
		}
		return word < len(m.bits) && m.bits[word]&mask != 0
	}
	_, has := m.others[k]
	return has
}

func (m *keySet[K]) add(k K) {
	word, mask, numbered := m.bit(k)
	switch {
	case !numbered:
		if m.others == nil {
			m.others = map[K]struct{}{}
		}
		before := len(m.others)
		m.others[k] = struct{}{}
		m.n += len(m.others) - before
		return
	case m.numbers.paged:
		m.addPage(word, mask)
		return
	case word >= len(m.bits):
		m.bits = append(m.bits, make([]uint64, word+1-len(m.bits))...)
	}
	if m.bits[word]&mask == 0 {
		m.bits[word] |= mask
		m.n++
		m.firstWord = min(m.firstWord, word)
	}
}

// addPage adds numbers of one page.
func (m *keySet[K]) addPage(number int, mask uint64) {
	if m.pages == nil {
		m.pages = map[int]uint64{}
	}
	if old := m.pages[number]; mask&^old != 0 {
		m.pages[number] = old | mask
		m.n += bits.OnesCount64(mask &^ old)
	}
}

func (m *keySet[K]) remove(k K) {
	if !m.has(k) {
		return
	}
	m.n--
	switch word, mask, numbered := m.bit(k); {
	case !numbered:
		delete(m.others, k)
	case !m.numbers.paged:
		m.bits[word] &^= mask
	case m.pages[word] == mask:
		delete(m.pages, word)
	default:
		m.pages[word] &^= mask
	}
}

// pick is one of the keys, if there is one.
func (m *keySet[K]) pick() (k K, some bool) {
	for k := range m.others {
		return k, true
	}
	for word, w := range m.pages {
		return m.numbers.key(word<<6 | bits.TrailingZeros64(w)), true
	}
	for ; m.firstWord < len(m.bits); m.firstWord++ {
		if w := m.bits[m.firstWord]; w != 0 {
			return m.numbers.key(m.firstWord*64 + bits.TrailingZeros64(w)), true
		}
	}
	return k, false
}

// anyTable is what snapshots and digests need of a table.
type anyTable interface {
	Number() uint16
	beginSnapshot(emit func(table uint16, key, row any))
	writeRows(enough func() bool) bool
	each(fn func(key, row any))
	load(key, row func(into any) error) error
	size() int
	rowType() reflect.Type
}

func (t *table[K, V]) init(r *Realm, number uint16) {
	t.number, t.sparse = number, map[K]*V{}
	for _, o := range r.allTables {
		if o.Number() == number {
			panic(fmt.Sprintf("BUG: two tables numbered %d", number))
		}
	}
	r.allTables = append(r.allTables, t)
}

// useNumbering has rows stand by their keys' numbers: by each, as far as those are small, or by pages of them.
func (t *table[K, V]) useNumbering(n *numbering[K]) {
	if t.numbering, t.dirty.numbers, t.snapshot.numbers = n, n, n; n.paged {
		t.pages = map[int]*page[V]{}
	}
}

func (t *table[K, V]) find(k K) *V {
	if t.numbering != nil {
		n := t.numbering.number(k)
		if uint(n) < uint(len(t.dense)) {
			return t.dense[n]
		}
		if t.numbering.paged {
			number, mask := pageOf(n)
			if p := t.pages[number]; p != nil && p.present&mask != 0 {
				return p.rows[p.position(mask)]
			}
			return nil
		}
	}
	return t.sparse[k]
}

// set is how every row comes and, as nil, goes.
func (t *table[K, V]) set(k K, v *V) {
	if t.tracksOrder && v != nil {
		if at, there := slices.BinarySearch(t.orderedKeys, k); !there {
			t.orderedKeys = slices.Insert(t.orderedKeys, at, k) // mostly at the end, as jobs are numbered
		}
	}
	n := -1
	if t.numbering != nil {
		n = t.numbering.number(k)
	}
	switch {
	case t.pages != nil:
		number, mask := pageOf(n)
		p := t.pages[number]
		if p == nil {
			p = &page[V]{}
			t.pages[number] = p
		}
		t.numberedRows -= len(p.rows)
		p.set(mask, v)
		if t.numberedRows += len(p.rows); len(p.rows) == 0 {
			delete(t.pages, number)
		}
	case n >= 0 && n < maxDense:
		if n >= len(t.dense) {
			t.dense = append(t.dense, make([]*V, n+1-len(t.dense))...)
		}
		if t.dense[n] != nil {
			t.numberedRows--
		}
		if t.dense[n] = v; v != nil {
			t.numberedRows++
		}
	case v == nil:
		delete(t.sparse, k)
	default:
		t.sparse[k] = v
	}
}

// firstKey is the least key, if there is one, of a table whose keys are queued.
func (t *table[K, V]) firstKey() (k K, some bool) {
	for ; len(t.orderedKeys) > 0; t.orderedKeys = t.orderedKeys[1:] {
		if t.find(t.orderedKeys[0]) != nil {
			return t.orderedKeys[0], true
		}
	}
	return k, false
}

// all is every row; only those with numbers that are not paged come in order.
func (t *table[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for n, v := range t.dense {
			if v != nil && !yield(t.numbering.key(n), v) {
				return
			}
		}
		for number, p := range t.pages {
			for there := p.present; there != 0; there &= there - 1 {
				n := number<<6 | bits.TrailingZeros64(there)
				if !yield(t.numbering.key(n), p.rows[p.position(there&-there)]) {
					return
				}
			}
		}
		for k, v := range t.sparse {
			if !yield(k, v) {
				return
			}
		}
	}
}

func (t *table[K, V]) must(k K) *V {
	v := t.find(k)
	if v == nil {
		panic(fmt.Sprintf("BUG: table %d has no row %v", t.number, k))
	}
	return v
}

// inSnapshot reports whether a running cut still has to write a row.
func (t *table[K, V]) inSnapshot(k K) bool {
	return t.snapshot.n > 0 && t.snapshot.has(k)
}

// markChanged marks a row as about to change. A row that a running cut still has to write is kept as it was.
func (t *table[K, V]) markChanged(k K) {
	if t.inSnapshot(k) && t.originalRow == nil {
		if v := t.find(k); v != nil && t.copyRow != nil {
			t.copies = append(t.copies, rowCopy[K, V]{k, t.copyRow(v)})
			t.snapshot.remove(k)
		} else {
			t.write(k)
		}
	}
	t.dirty.add(k)
	if t.onChange != nil {
		t.onChange(k)
	}
}

func (t *table[K, V]) change(k K) *V {
	v := t.must(k)
	t.markChanged(k)
	return v
}

// ensure is change for a row that may not exist yet: it starts as its zero value.
func (t *table[K, V]) ensure(k K) *V {
	t.markChanged(k)
	v := t.find(k)
	if v == nil {
		v = new(V)
		t.set(k, v)
	}
	return v
}

func (t *table[K, V]) put(k K, v *V) {
	t.markChanged(k)
	t.set(k, v)
}

// putPage puts rows of one page. Whoever calls it has touched them if a cut is running.
func (t *table[K, V]) putPage(number int, mask uint64, rows *[64]*V) {
	t.dirty.addPage(number, mask)
	p := t.pages[number]
	if p == nil {
		p = &page[V]{}
		t.pages[number] = p
	}
	t.numberedRows -= len(p.rows)
	p.merge(mask, rows)
	t.numberedRows += len(p.rows)
}

func (t *table[K, V]) remove(k K) {
	t.markChanged(k)
	t.set(k, nil)
}

// keys returns the keys in order: what leaves the realm must not depend on a map's order.
func (t *table[K, V]) keys() []K {
	ks := make([]K, 0, t.size())
	for k := range t.all() {
		ks = append(ks, k)
	}
	if len(t.sparse)+len(t.pages) > 0 {
		slices.Sort(ks)
	}
	return ks
}

// list copies every row, in the order of the keys.
func (t *table[K, V]) list() []V {
	rows := make([]V, 0, t.size())
	for _, k := range t.keys() {
		rows = append(rows, *t.find(k))
	}
	return rows
}

func (t *table[K, V]) Number() uint16 { return t.number }
func (t *table[K, V]) size() int      { return t.numberedRows + len(t.sparse) }

func (t *table[K, V]) rowType() reflect.Type { return reflect.TypeFor[V]() }

func (t *table[K, V]) beginSnapshot(emit func(uint16, any, any)) {
	if t.snapshot.n+len(t.copies) > 0 {
		panic(fmt.Sprintf("BUG: table %d: a cut begins inside another", t.number))
	}
	t.snapshot, t.dirty, t.emit = t.dirty, keySet[K]{numbers: t.numbering}, emit
}

func (t *table[K, V]) write(k K) {
	t.snapshot.remove(k)
	if v := t.find(k); v != nil {
		if t.originalRow != nil {
			v = t.originalRow(k, v)
		}
		t.emit(t.number, k, v)
	} else {
		t.emit(t.number, k, nil)
	}
}

// writeRows writes rows of the running cut until it is enough for once, and reports whether that was all.
func (t *table[K, V]) writeRows(enough func() bool) bool {
	for ; len(t.copies) > 0; t.copies = t.copies[1:] {
		if enough() {
			return false
		}
		t.emit(t.number, t.copies[0].key, t.copies[0].row)
	}
	t.copies = nil
	for {
		k, some := t.snapshot.pick()
		if !some {
			return true
		}
		if enough() {
			return false
		}
		t.write(k)
	}
}

func (t *table[K, V]) each(fn func(key, row any)) {
	for _, k := range t.keys() {
		fn(k, t.find(k))
	}
}

func (t *table[K, V]) load(key, row func(any) error) error {
	var k K
	v := new(V)
	if err := key(&k); err != nil {
		return err
	}
	if err := row(v); err != nil {
		return err
	}
	if t.shareRow != nil {
		v = t.shareRow(v, t.lastLoaded)
		t.lastLoaded = v
	}
	t.set(k, v)
	return nil
}

// SnapshotIterator is a snapshot being written: the rows as they stood at one number, handed out in slices between turns.
type SnapshotIterator struct {
	Seq Seq
	r   *Realm
}

// BeginSnapshot starts a snapshot at the current number. emit gets every row changed since the last cut, nil for a removed
// one, encoded before it returns: the row goes on changing afterwards.
func (r *Realm) BeginSnapshot(emit func(table uint16, key, row any)) *SnapshotIterator {
	for _, t := range r.allTables {
		t.beginSnapshot(emit)
	}
	return &SnapshotIterator{Seq: r.seq, r: r}
}

// NextRows writes rows until it is enough for once, and reports whether all are written. Rows that were about to change have
// been written meanwhile.
func (c *SnapshotIterator) NextRows(enough func() bool) bool {
	for _, t := range c.r.allTables {
		if !t.writeRows(enough) {
			return false
		}
	}
	return true
}

// LoadRow puts one row read from disk into its table; key and row decode into the pointer they are given.
func (r *Realm) LoadRow(number uint16, key, row func(into any) error) error {
	for _, t := range r.allTables {
		if t.Number() == number {
			return t.load(key, row)
		}
	}
	return fmt.Errorf("row of unknown table %d", number)
}

// EachRow hands out every row in a fixed order: for digests and comparisons.
func (r *Realm) EachRow(fn func(table uint16, key, row any)) {
	for _, t := range r.allTables {
		n := t.Number()
		t.each(func(k, v any) { fn(n, k, v) })
	}
}

// RowTypes is the type of every table's rows, for tests that look at what is kept.
func (r *Realm) RowTypes() (out []reflect.Type) {
	for _, t := range r.allTables {
		out = append(out, t.rowType())
	}
	return out
}
