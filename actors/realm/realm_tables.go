package realm

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"reflect"
	"slices"
)

// table is a map of rows that snapshots save. It remembers which rows changed since the last snapshot began. find
// returns nil if there is no row; change and must panic then. change marks the row as changed.
type table[K cmp.Ordered, V any] struct {
	number   uint16
	sparse   map[K]*V // the rows that have no place in dense or pages
	dirty    keySet[K]
	snapshot keySet[K] // keys whose rows the running snapshot has not written yet
	emit     func(table uint16, key, row any)

	onChange func(K) // called before a row changes; may be nil

	// A row that changes before the running snapshot has written it is normally written at once. Where one command may
	// change very many rows, that would take too long. Such a table sets one of these functions instead.
	copyRow     func(*V) *V    // returns a copy of the row, to be written later
	originalRow func(K, *V) *V // returns the row as it was when the snapshot began
	copies      []rowCopy[K, V]

	// Rows whose keys are small numbers are found by number instead of by hashing, because some requests read very
	// many.
	numbering    *numbering[K]
	dense        []*V
	pages        map[int]*page[V]
	numberedRows int // how many rows dense or pages contain

	shareRow   func(row, before *V) *V // may replace a loaded row by an equal row loaded before it; may be nil
	lastLoaded *V                      // the last loaded row, if shareRow is set

	tracksOrder bool // firstKey is used
	orderedKeys []K  // the keys in order; some may be removed already
}

// numbering converts keys to numbers and back.
type numbering[K cmp.Ordered] struct {
	number func(K) int
	key    func(int) K
	paged  bool // keep rows in pages, because most numbers have no row
}

// numberingOf returns the numbering of a key type that is a number.
func numberingOf[K ~int64 | ~uint32]() *numbering[K] {
	return &numbering[K]{number: func(k K) int { return int(k) }, key: func(n int) K { return K(n) }}
}

// page is the rows of 64 consecutive numbers. rows contains only those whose bit in present is set, in order.
type page[V any] struct {
	present uint64
	rows    []*V
}

// pageOf returns the page of a number and its bit there.
func pageOf(n int) (page int, mask uint64) { return n >> 6, 1 << (uint(n) & 63) }

// position returns the index in rows of the row with this bit, present or not.
func (p *page[V]) position(mask uint64) int { return bits.OnesCount64(p.present & (mask - 1)) }

// set stores a row of the page, or removes it if v is nil.
func (p *page[V]) set(mask uint64, v *V) {
	i := p.position(mask)
	switch present := p.present&mask != 0; {
	case v == nil && present:
		p.rows = slices.Delete(p.rows, i, i+1)
		p.present &^= mask
	case v == nil:
	case present:
		p.rows[i] = v
	default:
		p.rows = slices.Insert(p.rows, i, v)
		p.present |= mask
	}
}

// merge stores the rows whose bits are set in mask.
func (p *page[V]) merge(mask uint64, rows *[64]*V) {
	if mask&^p.present != 0 {
		all := make([]*V, bits.OnesCount64(p.present|mask))
		old := *p
		p.present, p.rows = p.present|mask, all
		for rest := old.present &^ mask; rest != 0; rest &= rest - 1 {
			all[p.position(rest&-rest)] = old.rows[old.position(rest&-rest)]
		}
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		p.rows[p.position(rest&-rest)] = rows[bits.TrailingZeros64(rest)]
	}
}

// maxDense bounds the numbers whose rows are stored in dense: 8 bytes each.
const maxDense = 1 << 20

// rowCopy is a row as it was when the running snapshot began.
type rowCopy[K cmp.Ordered, V any] struct {
	key K
	row *V
}

// keySet is a set of keys. A key with a number takes one bit.
type keySet[K cmp.Ordered] struct {
	numbers   *numbering[K]
	n         int
	bits      []uint64
	firstWord int            // no bit is set before this word
	pages     map[int]uint64 // bits of paged numbers
	others    map[K]struct{} // keys without a number
}

// bit returns the position of a key's bit, or false if it has none.
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

// addPage adds the numbers of one page whose bits are set in mask.
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

// pick returns any one key, or false if the set is empty.
func (m *keySet[K]) pick() (k K, ok bool) {
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

// anyTable is the part of a table that snapshots and digests need.
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

// useNumbering stores rows by their keys' numbers: in a slice for small numbers, or in pages.
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

// set stores a row, or removes it if v is nil. Every change of the set of rows goes through it or putPage.
func (t *table[K, V]) set(k K, v *V) {
	if t.tracksOrder && v != nil {
		if at, found := slices.BinarySearch(t.orderedKeys, k); !found {
			// Almost always at the end, because jobs have ascending numbers.
			t.orderedKeys = slices.Insert(t.orderedKeys, at, k)
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

// firstKey returns the lowest key of a table that tracks the order, or false if it is empty.
func (t *table[K, V]) firstKey() (k K, ok bool) {
	for ; len(t.orderedKeys) > 0; t.orderedKeys = t.orderedKeys[1:] {
		if t.find(t.orderedKeys[0]) != nil {
			return t.orderedKeys[0], true
		}
	}
	return k, false
}

// keyAfter returns the lowest key above k of a table that tracks the order, or false if there is none.
func (t *table[K, V]) keyAfter(k K) (next K, ok bool) {
	if len(t.orderedKeys) > 2*t.size()+64 {
		t.orderedKeys = slices.DeleteFunc(t.orderedKeys, func(k K) bool { return t.find(k) == nil })
	}
	at, found := slices.BinarySearch(t.orderedKeys, k)
	if found {
		at++
	}
	for ; at < len(t.orderedKeys); at++ {
		if t.find(t.orderedKeys[at]) != nil {
			return t.orderedKeys[at], true
		}
	}
	return next, false
}

// all iterates over all rows. Only rows in dense come in order.
func (t *table[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for n, v := range t.dense {
			if v != nil && !yield(t.numbering.key(n), v) {
				return
			}
		}
		for number, p := range t.pages {
			for rest := p.present; rest != 0; rest &= rest - 1 {
				n := number<<6 | bits.TrailingZeros64(rest)
				if !yield(t.numbering.key(n), p.rows[p.position(rest&-rest)]) {
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

// inSnapshot reports whether the running snapshot still has to write the row.
func (t *table[K, V]) inSnapshot(k K) bool {
	return t.snapshot.n > 0 && t.snapshot.has(k)
}

// markChanged is called before a row changes. If the running snapshot still has to write the row, markChanged writes or
// copies it first.
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

// ensure is change for a row that may not exist yet: it creates a zero row.
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

// putPage stores rows of one page. If a snapshot is running, the caller has called markChanged for them.
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

// keys returns the keys in order: results must not depend on the order of a map.
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

// list copies all rows, ordered by key.
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

// beginSnapshot moves the changed keys to the snapshot. It panics if the previous snapshot is not finished.
func (t *table[K, V]) beginSnapshot(emit func(uint16, any, any)) {
	if t.snapshot.n+len(t.copies) > 0 {
		panic(fmt.Sprintf("BUG: table %d: a snapshot begins while another is running", t.number))
	}
	t.snapshot, t.dirty, t.emit = t.dirty, keySet[K]{numbers: t.numbering}, emit
}

// write writes a row for the running snapshot: as it is, or as it was if the table keeps originals.
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

// writeRows writes rows of the running snapshot until enough returns true. It reports whether all are written.
func (t *table[K, V]) writeRows(enough func() bool) bool {
	for ; len(t.copies) > 0; t.copies = t.copies[1:] {
		if enough() {
			return false
		}
		t.emit(t.number, t.copies[0].key, t.copies[0].row)
	}
	t.copies = nil
	for {
		k, ok := t.snapshot.pick()
		if !ok {
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

// SnapshotIterator is a running snapshot. It writes the rows as they were at one sequence number, some between every
// two turns.
type SnapshotIterator struct {
	Seq Seq
	r   *Realm
}

// BeginSnapshot starts a snapshot at the current sequence number. emit gets every row that changed since the last
// snapshot began, nil for a removed row. It must encode the row before it returns, because the row may change
// afterwards.
func (r *Realm) BeginSnapshot(emit func(table uint16, key, row any)) *SnapshotIterator {
	for _, t := range r.allTables {
		t.beginSnapshot(emit)
	}
	return &SnapshotIterator{Seq: r.seq, r: r}
}

// NextRows writes rows until enough returns true. It reports whether all rows are written. Rows that changed in the
// meantime were written or copied before the change.
func (c *SnapshotIterator) NextRows(enough func() bool) bool {
	for _, t := range c.r.allTables {
		if !t.writeRows(enough) {
			return false
		}
	}
	return true
}

// LoadRow stores one row read from disk. key and row decode into the pointer they are given.
func (r *Realm) LoadRow(number uint16, key, row func(into any) error) error {
	for _, t := range r.allTables {
		if t.Number() == number {
			return t.load(key, row)
		}
	}
	return fmt.Errorf("row of unknown table %d", number)
}

// EachRow calls fn with every row in a fixed order, for digests and comparisons.
func (r *Realm) EachRow(fn func(table uint16, key, row any)) {
	for _, t := range r.allTables {
		n := t.Number()
		t.each(func(k, v any) { fn(n, k, v) })
	}
}

// EachRowOf calls fn with each row of one type.
func EachRowOf[V any](r *Realm, fn func(key any, row *V)) {
	for _, t := range r.allTables {
		if t.rowType() == reflect.TypeFor[V]() {
			t.each(func(k, v any) { fn(k, v.(*V)) })
		}
	}
}

// RowTypes returns the type of each table's rows, for tests.
func (r *Realm) RowTypes() (out []reflect.Type) {
	for _, t := range r.allTables {
		out = append(out, t.rowType())
	}
	return out
}
