package realm

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// table is rows that a snapshot keeps. It remembers which rows changed since the last cut. find may return nothing;
// change and must may not; change marks the row.
type table[K cmp.Ordered, V any] struct {
	number uint16
	rows   map[K]*V
	dirty  map[K]struct{}
	cut    map[K]struct{} // rows of the running cut that are not written yet
	emit   func(table uint16, key, row any)

	touched func(K) // hears of every row about to change; may be nil

	// How a row that a running cut still has to write stays as it was, when it is about to change and one command may
	// change very many: at most one of these is set. Without them it is written at once.
	copied func(*V) *V    // a copy that further changes leave alone is written later
	stood  func(K, *V) *V // whoever changes it keeps what was there, and this brings it back
	copies []copyOf[K, V]
}

// copyOf is a row as it stood when the running cut began.
type copyOf[K cmp.Ordered, V any] struct {
	key K
	row *V
}

// anyTable is what snapshots and digests need of a table.
type anyTable interface {
	Number() uint16
	begin(emit func(table uint16, key, row any))
	step(enough func() bool) bool
	each(fn func(key, row any))
	load(key, row func(into any) error) error
	drop(key func(into any) error) error
	size() int
	rowType() reflect.Type
}

func (t *table[K, V]) init(r *Realm, number uint16) {
	t.number, t.rows, t.dirty = number, map[K]*V{}, map[K]struct{}{}
	for _, o := range r.tables {
		if o.Number() == number {
			panic(fmt.Sprintf("BUG: two tables numbered %d", number))
		}
	}
	r.tables = append(r.tables, t)
}

func (t *table[K, V]) find(k K) *V { return t.rows[k] }

func (t *table[K, V]) must(k K) *V {
	v := t.rows[k]
	if v == nil {
		panic(fmt.Sprintf("BUG: table %d has no row %v", t.number, k))
	}
	return v
}

// waits reports whether a running cut still has to write a row.
func (t *table[K, V]) waits(k K) bool {
	if len(t.cut) == 0 {
		return false
	}
	_, waiting := t.cut[k]
	return waiting
}

// touch marks a row as about to change. A row that a running cut still has to write is kept as it was.
func (t *table[K, V]) touch(k K) {
	if t.waits(k) && t.stood == nil {
		if v := t.rows[k]; v != nil && t.copied != nil {
			t.copies = append(t.copies, copyOf[K, V]{k, t.copied(v)})
			delete(t.cut, k)
		} else {
			t.write(k)
		}
	}
	t.dirty[k] = struct{}{}
	if t.touched != nil {
		t.touched(k)
	}
}

func (t *table[K, V]) change(k K) *V {
	v := t.must(k)
	t.touch(k)
	return v
}

// open is change for a row that may not exist yet: it starts as its zero value.
func (t *table[K, V]) open(k K) *V {
	t.touch(k)
	v := t.rows[k]
	if v == nil {
		v = new(V)
		t.rows[k] = v
	}
	return v
}

func (t *table[K, V]) put(k K, v *V) {
	t.touch(k)
	t.rows[k] = v
}

func (t *table[K, V]) remove(k K) {
	t.touch(k)
	delete(t.rows, k)
}

// keys returns the keys in order: what leaves the realm must not depend on a map's order.
func (t *table[K, V]) keys() []K {
	ks := make([]K, 0, len(t.rows))
	for k := range t.rows {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

func (t *table[K, V]) Number() uint16 { return t.number }
func (t *table[K, V]) size() int      { return len(t.rows) }

func (t *table[K, V]) rowType() reflect.Type { return reflect.TypeFor[V]() }

func (t *table[K, V]) begin(emit func(uint16, any, any)) {
	if len(t.cut)+len(t.copies) > 0 {
		panic(fmt.Sprintf("BUG: table %d: a cut begins inside another", t.number))
	}
	t.cut, t.dirty, t.emit = t.dirty, map[K]struct{}{}, emit
}

func (t *table[K, V]) write(k K) {
	delete(t.cut, k)
	if v := t.rows[k]; v != nil {
		if t.stood != nil {
			v = t.stood(k, v)
		}
		t.emit(t.number, k, v)
	} else {
		t.emit(t.number, k, nil)
	}
}

// step writes rows of the running cut until it is enough for once, and reports whether that was all.
func (t *table[K, V]) step(enough func() bool) bool {
	for ; len(t.copies) > 0; t.copies = t.copies[1:] {
		if enough() {
			return false
		}
		t.emit(t.number, t.copies[0].key, t.copies[0].row)
	}
	t.copies = nil
	for k := range t.cut {
		if enough() {
			return false
		}
		t.write(k)
	}
	return true
}

func (t *table[K, V]) each(fn func(key, row any)) {
	for _, k := range t.keys() {
		fn(k, t.rows[k])
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
	t.rows[k] = v
	return nil
}

func (t *table[K, V]) drop(key func(any) error) error {
	var k K
	if err := key(&k); err != nil {
		return err
	}
	delete(t.rows, k)
	return nil
}

// Cut is a snapshot being written: the rows as they stood at one number, handed out in slices between turns.
type Cut struct {
	At Seq
	r  *Realm
}

// BeginCut starts a snapshot at the current number. emit gets every row changed since the last cut, nil for a removed
// one, encoded before it returns: the row goes on changing afterwards.
func (r *Realm) BeginCut(emit func(table uint16, key, row any)) *Cut {
	for _, t := range r.tables {
		t.begin(emit)
	}
	return &Cut{At: r.seq, r: r}
}

// Step writes rows until it is enough for once, and reports whether all are written. Rows that were about to change have
// been written meanwhile.
func (c *Cut) Step(enough func() bool) bool {
	for _, t := range c.r.tables {
		if !t.step(enough) {
			return false
		}
	}
	return true
}

// Load puts one row read from disk into its table; key and row decode into the pointer they are given.
func (r *Realm) Load(number uint16, key, row func(into any) error) error {
	for _, t := range r.tables {
		if t.Number() == number {
			return t.load(key, row)
		}
	}
	return fmt.Errorf("row of unknown table %d", number)
}

// Each hands out every row in a fixed order: for digests and comparisons.
func (r *Realm) Each(fn func(table uint16, key, row any)) {
	for _, t := range r.tables {
		n := t.Number()
		t.each(func(k, v any) { fn(n, k, v) })
	}
}

// RowTypes is the type of every table's rows, for tests that look at what is kept.
func (r *Realm) RowTypes() (out []reflect.Type) {
	for _, t := range r.tables {
		out = append(out, t.rowType())
	}
	return out
}
