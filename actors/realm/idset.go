package realm

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
)

// Set is a compressed set of ids. The zero value is empty and usable. Few ids are a list; more are a Roaring bitmap (this
// is the chosen home of that library), in which a user's million read messages are a few runs. It encodes as the
// portable Roaring format either way. A copy of a Set shares its ids: Clone before changing one of the two.
type Set struct {
	few []uint32 // ascending; nil if none
	b   *roaring.Bitmap
}

// fewIDs is up to how many ids a set is a list: a kilobyte at most, where a bitmap of ids that are scattered over a
// million messages takes sixteen containers of sixty bytes and more.
const fewIDs = 256

// SetOf is the set of these ids, in whatever order they come.
func SetOf[T ~int64](ids ...T) Set {
	if len(ids) > fewIDs {
		list := make([]uint32, len(ids))
		for i, id := range ids {
			list[i] = uint32(id)
		}
		return unordered(list)
	}
	var s Set
	for _, id := range ids {
		s.Add(int64(id))
	}
	return s
}

// SetFrom is a bitmap that some device made, as a set. It belongs to the set from now on.
func SetFrom(b *roaring.Bitmap) Set { return settle(b) }

// settle is a bitmap as a set: as a list if it has few ids.
func settle(b *roaring.Bitmap) Set {
	n := b.GetCardinality()
	switch {
	case n == 0:
		return Set{}
	case n <= fewIDs:
		return Set{few: b.ToArray()}
	}
	return Set{b: b}
}

// settled is ascending ids as a set, whose own they become.
func settled(ids []uint32) Set {
	switch {
	case len(ids) == 0:
		return Set{}
	case len(ids) <= fewIDs:
		return Set{few: ids}
	}
	return Set{b: roaring.BitmapOf(ids...)}
}

// bitmap is the set as a bitmap, its own from now on.
func (s *Set) bitmap() *roaring.Bitmap {
	if s.b == nil {
		s.b = roaring.BitmapOf(s.few...)
		s.few = nil
	}
	return s.b
}

// asBitmap is the set as a bitmap that must not be changed.
func (s Set) asBitmap() *roaring.Bitmap { return s.bitmap() }

func (s *Set) Add(id int64) bool {
	if s.b != nil {
		return s.b.CheckedAdd(uint32(id))
	}
	x, n := uint32(id), len(s.few)
	at := n
	if n > 0 && s.few[n-1] >= x {
		var there bool
		if at, there = slices.BinarySearch(s.few, x); there {
			return false
		}
	}
	if n == fewIDs {
		return s.bitmap().CheckedAdd(x)
	}
	if n == cap(s.few) { // grows by a quarter only: there are very many sets
		s.few = append(make([]uint32, 0, n+n/4+1), s.few...)
	}
	s.few = slices.Insert(s.few, at, x)
	return true
}

// push adds an id, which none that was pushed exceeds, to a set that is being built: a list as long as it may get, until
// settle makes it what it is to be. For very many ids that is several times as fast as Add.
func (s *Set) push(id int64) {
	if n := len(s.few); n == 0 || s.few[n-1] != uint32(id) {
		s.few = append(s.few, uint32(id))
	}
}

// settle ends the pushing.
func (s *Set) settle() {
	if len(s.few) > fewIDs {
		*s = settled(s.few)
	} else if len(s.few) < cap(s.few) {
		s.few = append(make([]uint32, 0, len(s.few)), s.few...)
	}
}

func (s *Set) Remove(id int64) bool {
	if s.b != nil {
		return s.b.CheckedRemove(uint32(id))
	}
	if n := len(s.few); n == 0 || s.few[n-1] < uint32(id) {
		return false
	}
	at, there := slices.BinarySearch(s.few, uint32(id))
	if there {
		s.keep(slices.Delete(s.few, at, at+1))
	}
	return there
}

// keep makes a list the set's own.
func (s *Set) keep(few []uint32) {
	if s.few = few; len(few) == 0 {
		s.few = nil
	}
}

func (s Set) Has(id int64) bool {
	if id < 0 || id > 1<<32-1 {
		return false
	}
	if s.b != nil {
		return s.b.Contains(uint32(id))
	}
	_, there := slices.BinarySearch(s.few, uint32(id))
	return there
}

func (s Set) Len() int {
	if s.b != nil {
		return int(s.b.GetCardinality())
	}
	return len(s.few)
}

func (s Set) Empty() bool { return len(s.few) == 0 && (s.b == nil || s.b.IsEmpty()) }

// AddRange adds from..to, both included.
func (s *Set) AddRange(from, to int64) {
	switch n := int64(len(s.few)); {
	case from > to:
	case s.b == nil && to-from < fewIDs-n:
		for id := from; id <= to; id++ {
			s.Add(id)
		}
	default:
		s.bitmap().AddRange(uint64(from), uint64(to)+1)
	}
}

// RemoveRange removes from..to, both included.
func (s *Set) RemoveRange(from, to int64) {
	switch {
	case from > to:
	case s.b != nil:
		s.b.RemoveRange(uint64(from), uint64(to)+1)
	default:
		lo, hi := s.span(from, to)
		s.keep(slices.Delete(s.few, lo, hi))
	}
}

// span is which of a list's ids are from..to: from the lo-th up to, not including, the hi-th.
func (s Set) span(from, to int64) (lo, hi int) {
	above := func(x uint32, id int64) int { return cmp.Compare(int64(x), id) }
	lo, _ = slices.BinarySearchFunc(s.few, from, above)
	hi, _ = slices.BinarySearchFunc(s.few, to+1, above)
	return lo, max(lo, hi)
}

// Union adds the ids of another set.
func (s *Set) Union(o Set) {
	switch {
	case o.b != nil:
		s.bitmap().Or(o.b)
	case s.b == nil && len(s.few) == 0:
		s.few = slices.Clone(o.few)
	case s.b == nil:
		*s = settled(merged(s.few, o.few))
	default:
		s.b.AddMany(o.few)
	}
}

// merged is the ids in either of two lists.
func merged(a, b []uint32) []uint32 {
	out := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		x := min(a[0], b[0])
		if a[0] == x {
			a = a[1:]
		}
		if b[0] == x {
			b = b[1:]
		}
		out = append(out, x)
	}
	return append(append(out, a...), b...)
}

// Subtract takes the ids of another set away.
func (s *Set) Subtract(o Set) {
	switch {
	case s.b == nil:
		s.keep(slices.DeleteFunc(s.few, func(x uint32) bool { return o.Has(int64(x)) }))
	case o.b != nil:
		s.b.AndNot(o.b)
	default:
		for _, x := range o.few {
			s.b.Remove(x)
		}
	}
}

// Intersect leaves the ids that are in another set, too.
func (s *Set) Intersect(o Set) { *s = Both(*s, o) }

// Both is the ids in both sets, as a new set.
func Both(a, b Set) Set {
	if a.b != nil && b.b != nil {
		return settle(roaring.And(a.b, b.b))
	}
	if a.b != nil || b.b == nil && len(b.few) < len(a.few) {
		a, b = b, a
	}
	return a.filtered(func(x uint32) bool { return b.Has(int64(x)) })
}

// Without is the ids of a that are not in b, as a new set.
func Without(a, b Set) Set {
	switch {
	case a.b == nil:
		return a.filtered(func(x uint32) bool { return !b.Has(int64(x)) })
	case b.b != nil:
		return settle(roaring.AndNot(a.b, b.b))
	}
	a = a.Clone()
	a.Subtract(b)
	return a
}

// filtered is what of a list is wanted, as a new set.
func (s Set) filtered(wanted func(uint32) bool) (out Set) {
	for _, x := range s.few {
		if wanted(x) {
			if out.few == nil {
				out.few = make([]uint32, 0, len(s.few))
			}
			out.few = append(out.few, x)
		}
	}
	return out
}

// Either is the ids in any of the sets, as a new set.
func Either(sets ...Set) Set {
	bs := make([]*roaring.Bitmap, 0, len(sets)+1)
	n := 0
	for _, s := range sets {
		if s.b != nil {
			bs = append(bs, s.b)
		}
		n += len(s.few)
	}
	if n > 0 {
		few := make([]uint32, 0, n)
		for _, s := range sets {
			few = append(few, s.few...)
		}
		all := unordered(few)
		if len(bs) == 0 {
			return all
		}
		bs = append(bs, all.asBitmap())
	}
	return settle(roaring.FastOr(bs...))
}

// unordered is a set of ids in any order, which may repeat.
func unordered(ids []uint32) Set {
	if most := slices.Max(ids); len(ids) > fewIDs && int(most/64) < 16*len(ids) { // a bit each, sooner than sorting
		bits := make([]uint64, most/64+1)
		for _, x := range ids {
			bits[x/64] |= 1 << (x % 64)
		}
		return settle(roaring.FromDense(bits, true))
	}
	slices.Sort(ids)
	return settled(slices.Compact(ids))
}

// common is how many ids the sets have in common.
func (s Set) common(o Set) int {
	if s.b != nil && o.b != nil {
		return int(s.b.AndCardinality(o.b))
	}
	return Both(s, o).Len()
}

// size is about how many bytes of ids the set takes, and an operation on it looks at.
func (s Set) size() int {
	if s.b != nil {
		return int(s.b.GetSizeInBytes())
	}
	return 4 * len(s.few)
}

// is reports whether the sets have the same ids.
func (s Set) is(o Set) bool {
	n := s.Len()
	return n == o.Len() && (s.shares(o) || s.common(o) == n)
}

// shares reports whether a set is another's copy, and large.
func (s Set) shares(o Set) bool { return s.b != nil && s.b == o.b }

// Meets reports whether the sets have an id in common.
func (s Set) Meets(o Set) bool {
	if s.b != nil && o.b != nil {
		return s.b.Intersects(o.b)
	}
	if s.b != nil || o.b == nil && len(o.few) < len(s.few) {
		s, o = o, s
	}
	return slices.ContainsFunc(s.few, func(x uint32) bool { return o.Has(int64(x)) })
}

// Clone is a set of its own with the same ids.
func (s Set) Clone() Set {
	if s.b != nil {
		return Set{b: s.b.Clone()}
	}
	return Set{few: slices.Clone(s.few)}
}

// cloneIn is Clone with the memory from where other sets have theirs.
func (s Set) cloneIn(ids *room[uint32]) Set {
	if s.b != nil || len(s.few) == 0 {
		return s.Clone()
	}
	few := ids.take(len(s.few))
	copy(few, s.few)
	return Set{few: few}
}

// Between is the ids from..to, both included, as a new set.
func (s Set) Between(from, to int64) Set {
	if s.b == nil {
		lo, hi := s.span(from, to)
		return settled(slices.Clone(s.few[lo:hi]))
	}
	if s.Empty() {
		return Set{}
	}
	// No wider than what there is: a range costs by its width.
	if from, to = max(from, int64(s.b.Minimum())), min(to, int64(s.b.Maximum())); from > to {
		return Set{}
	}
	r := roaring.New()
	r.AddRange(uint64(from), uint64(to)+1)
	r.And(s.b)
	return settle(r)
}

// Min is the least id, if there is one.
func (s Set) Min() (int64, bool) {
	switch {
	case s.Empty():
		return 0, false
	case s.b != nil:
		return int64(s.b.Minimum()), true
	}
	return int64(s.few[0]), true
}

// Max is the greatest id, if there is one.
func (s Set) Max() (int64, bool) {
	switch {
	case s.Empty():
		return 0, false
	case s.b != nil:
		return int64(s.b.Maximum()), true
	}
	return int64(s.few[len(s.few)-1]), true
}

// Rank is how many ids are at most id.
func (s Set) Rank(id int64) int {
	switch {
	case id < 0:
		return 0
	case s.b != nil:
		return int(s.b.Rank(uint32(min(id, 1<<32-1))))
	}
	_, n := s.span(0, id)
	return n
}

// missing is the first id from one on that is not in the set.
func (s Set) missing(from int64) int64 {
	before := s.Rank(from - 1)
	return from + int64(sort.Search(MaxMessageID-int(from), func(n int) bool { return s.Rank(from+int64(n))-before <= n }))
}

// At is the i-th id, counted from 0; i must be below Len.
func (s Set) At(i int) int64 {
	if s.b == nil {
		return int64(s.few[i])
	}
	v, err := s.b.Select(uint32(i))
	if err != nil {
		panic("BUG: Set.At: " + err.Error())
	}
	return int64(v)
}

// slice is the ids from the lo-th up to, not including, the hi-th.
func (s Set) slice(lo, hi int) []MessageID {
	if lo >= hi {
		return nil
	}
	if s.b == nil {
		return IDs[MessageID](Set{few: s.few[lo:hi]})
	}
	return IDs[MessageID](s.Between(s.At(lo), s.At(hi-1)))
}

// Each calls fn with the ids ascending until it returns false.
func (s Set) Each(fn func(id int64) bool) {
	if s.b != nil {
		s.b.Iterate(func(x uint32) bool { return fn(int64(x)) })
		return
	}
	for _, x := range s.few {
		if !fn(int64(x)) {
			return
		}
	}
}

// eachBackward is Each from the last to the first.
func (s Set) eachBackward(fn func(id int64) bool) {
	if s.b != nil {
		for it := s.b.ReverseIterator(); it.HasNext(); {
			if !fn(int64(it.Next())) {
				return
			}
		}
		return
	}
	for _, x := range slices.Backward(s.few) {
		if !fn(int64(x)) {
			return
		}
	}
}

// Optimize turns long runs into run containers; call it after bulk changes.
func (s *Set) Optimize() {
	if s.b != nil {
		s.b.RunOptimize()
	}
}

// IDs returns the ids of a set ascending, never nil.
func IDs[T ~int64](s Set) []T {
	few := s.few
	if s.b != nil {
		few = s.b.ToArray() // many at once, sooner than one after the other
	}
	out := make([]T, len(few))
	for i, x := range few {
		out[i] = T(x)
	}
	return out
}

func (s Set) MarshalBinary() ([]byte, error) {
	if s.Empty() {
		return []byte{}, nil
	}
	if s.b != nil {
		s.b = s.b.Clone() // RunOptimize changes the bitmap; a row being written must not change under its readers
	}
	b := s.asBitmap()
	b.RunOptimize()
	return b.ToBytes()
}

// MarshalJSON shows the runs of a set, for people: [1,"5-9"].
func (s Set) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	from, to := int64(-1), int64(-2)
	run := func() {
		if from < 0 {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if out = strconv.AppendInt(out, from, 10); from < to {
			at := len(out) - len(strconv.FormatInt(from, 10))
			out = slices.Insert(out, at, '"')
			out = append(strconv.AppendInt(append(out, '-'), to, 10), '"')
		}
	}
	s.Each(func(id int64) bool {
		if id != to+1 {
			run()
			from = id
		}
		to = id
		return true
	})
	run()
	return append(out, ']'), nil
}

func (s *Set) UnmarshalBinary(data []byte) error {
	*s = Set{}
	if len(data) == 0 {
		return nil
	}
	b := roaring.New()
	if err := b.UnmarshalBinary(data); err != nil {
		return err
	}
	*s = settle(b)
	return nil
}
