package ids

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
)

// Set is a compressed set of ids. The zero value is an empty set. Few ids are a sorted list; more are a Roaring
// bitmap, in which a user's million read messages take a few runs. Both encode as the portable Roaring format. A copy
// of a Set shares its ids: use Clone before changing one of the two. A Set is not safe for concurrent changes.
type Set struct {
	list   []uint32 // ascending; nil if empty
	bitmap *roaring.Bitmap
}

// maxListIDs is the largest number of ids kept as a list. A list takes at most 1 kB. A bitmap of ids scattered over a
// million messages takes sixteen containers of sixty bytes and more.
const maxListIDs = 256

// SetOf returns the set of these ids, given in any order.
func SetOf[T ~int64](ids ...T) Set {
	if len(ids) > maxListIDs {
		list := make([]uint32, len(ids))
		for i, id := range ids {
			list[i] = uint32(id)
		}
		return SetOfUnsorted(list)
	}
	var s Set
	for _, id := range ids {
		s.Add(int64(id))
	}
	return s
}

// SetFromBitmap returns a bitmap as a set. The set owns the bitmap from now on.
func SetFromBitmap(b *roaring.Bitmap) Set { return bitmapAsSet(b) }

// bitmapAsSet returns a bitmap as a set: as a list if it has few ids.
func bitmapAsSet(b *roaring.Bitmap) Set {
	n := b.GetCardinality()
	switch {
	case n == 0:
		return Set{}
	case n <= maxListIDs:
		return Set{list: b.ToArray()}
	}
	return Set{bitmap: b}
}

// listAsSet returns ascending ids as a set. The set owns the slice.
func listAsSet(ids []uint32) Set {
	switch {
	case len(ids) == 0:
		return Set{}
	case len(ids) <= maxListIDs:
		return Set{list: ids}
	}
	return Set{bitmap: roaring.BitmapOf(ids...)}
}

// toBitmap turns the set into a bitmap and returns it.
func (s *Set) toBitmap() *roaring.Bitmap {
	if s.bitmap == nil {
		s.bitmap = roaring.BitmapOf(s.list...)
		s.list = nil
	}
	return s.bitmap
}

// readOnlyBitmap returns the set as a bitmap that must not be changed.
func (s Set) readOnlyBitmap() *roaring.Bitmap { return s.toBitmap() }

// Add adds an id and reports whether it was new.
func (s *Set) Add(id int64) bool {
	if s.bitmap != nil {
		return s.bitmap.CheckedAdd(uint32(id))
	}
	x, n := uint32(id), len(s.list)
	at := n
	if n > 0 && s.list[n-1] >= x {
		var found bool
		if at, found = slices.BinarySearch(s.list, x); found {
			return false
		}
	}
	if n == maxListIDs {
		return s.toBitmap().CheckedAdd(x)
	}
	if n == cap(s.list) { // grow by a quarter only, because there are very many sets
		s.list = append(make([]uint32, 0, n+n/4+1), s.list...)
	}
	s.list = slices.Insert(s.list, at, x)
	return true
}

// AppendSorted adds an id to a set that is being built; it must not be smaller than the ids before. For very many ids
// this is several times as fast as Add. Other methods must not be used until FinishAppending.
func (s *Set) AppendSorted(id int64) {
	if n := len(s.list); n == 0 || s.list[n-1] != uint32(id) {
		s.list = append(s.list, uint32(id))
	}
}

// FinishAppending ends a series of AppendSorted calls.
func (s *Set) FinishAppending() {
	if len(s.list) > maxListIDs {
		*s = listAsSet(s.list)
	} else if len(s.list) < cap(s.list) {
		s.list = append(make([]uint32, 0, len(s.list)), s.list...)
	}
}

// Remove removes an id and reports whether it was in the set.
func (s *Set) Remove(id int64) bool {
	if s.bitmap != nil {
		return s.bitmap.CheckedRemove(uint32(id))
	}
	if n := len(s.list); n == 0 || s.list[n-1] < uint32(id) {
		return false
	}
	at, found := slices.BinarySearch(s.list, uint32(id))
	if found {
		s.setList(slices.Delete(s.list, at, at+1))
	}
	return found
}

// setList sets the set's list.
func (s *Set) setList(list []uint32) {
	if s.list = list; len(list) == 0 {
		s.list = nil
	}
}

// Has reports whether the set contains an id.
func (s Set) Has(id int64) bool {
	if id < 0 || id > 1<<32-1 {
		return false
	}
	if s.bitmap != nil {
		return s.bitmap.Contains(uint32(id))
	}
	_, found := slices.BinarySearch(s.list, uint32(id))
	return found
}

// Len returns the number of ids.
func (s Set) Len() int {
	if s.bitmap != nil {
		return int(s.bitmap.GetCardinality())
	}
	return len(s.list)
}

// Empty reports whether the set has no ids.
func (s Set) Empty() bool { return len(s.list) == 0 && (s.bitmap == nil || s.bitmap.IsEmpty()) }

// AddRange adds the ids from..to, both included.
func (s *Set) AddRange(from, to int64) {
	switch n := int64(len(s.list)); {
	case from > to:
	case s.bitmap == nil && to-from < maxListIDs-n:
		for id := from; id <= to; id++ {
			s.Add(id)
		}
	default:
		s.toBitmap().AddRange(uint64(from), uint64(to)+1)
	}
}

// listRange returns the positions lo..hi-1 of the ids from..to in the list.
func (s Set) listRange(from, to int64) (lo, hi int) {
	above := func(x uint32, id int64) int { return cmp.Compare(int64(x), id) }
	lo, _ = slices.BinarySearchFunc(s.list, from, above)
	hi, _ = slices.BinarySearchFunc(s.list, to+1, above)
	return lo, max(lo, hi)
}

// Union adds the ids of another set.
func (s *Set) Union(o Set) {
	switch {
	case o.bitmap != nil:
		s.toBitmap().Or(o.bitmap)
	case s.bitmap == nil && len(s.list) == 0:
		s.list = slices.Clone(o.list)
	case s.bitmap == nil:
		*s = listAsSet(mergeSorted(s.list, o.list))
	default:
		s.bitmap.AddMany(o.list)
	}
}

// mergeSorted merges two ascending lists without duplicates.
func mergeSorted(a, b []uint32) []uint32 {
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

// Subtract removes the ids of another set.
func (s *Set) Subtract(o Set) {
	switch {
	case s.bitmap == nil:
		s.setList(slices.DeleteFunc(s.list, func(x uint32) bool { return o.Has(int64(x)) }))
	case o.bitmap != nil:
		s.bitmap.AndNot(o.bitmap)
	default:
		for _, x := range o.list {
			s.bitmap.Remove(x)
		}
	}
}

// Intersect removes the ids that are not in another set.
func (s *Set) Intersect(o Set) { *s = Intersection(*s, o) }

// Intersection returns the ids that are in both sets, as a new set.
func Intersection(a, b Set) Set {
	if a.bitmap != nil && b.bitmap != nil {
		return bitmapAsSet(roaring.And(a.bitmap, b.bitmap))
	}
	if a.bitmap != nil || b.bitmap == nil && len(b.list) < len(a.list) {
		a, b = b, a
	}
	return a.filterList(func(x uint32) bool { return b.Has(int64(x)) })
}

// Difference returns the ids of a that are not in b, as a new set.
func Difference(a, b Set) Set {
	switch {
	case a.bitmap == nil:
		return a.filterList(func(x uint32) bool { return !b.Has(int64(x)) })
	case b.bitmap != nil:
		return bitmapAsSet(roaring.AndNot(a.bitmap, b.bitmap))
	}
	a = a.Clone()
	a.Subtract(b)
	return a
}

// filterList returns the ids of a list for which wanted returns true, as a new set.
func (s Set) filterList(wanted func(uint32) bool) (out Set) {
	for _, x := range s.list {
		if wanted(x) {
			if out.list == nil {
				out.list = make([]uint32, 0, len(s.list))
			}
			out.list = append(out.list, x)
		}
	}
	return out
}

// Union returns the ids that are in any of the sets, as a new set.
func Union(sets ...Set) Set {
	bs := make([]*roaring.Bitmap, 0, len(sets)+1)
	n := 0
	for _, s := range sets {
		if s.bitmap != nil {
			bs = append(bs, s.bitmap)
		}
		n += len(s.list)
	}
	if n > 0 {
		list := make([]uint32, 0, n)
		for _, s := range sets {
			list = append(list, s.list...)
		}
		all := SetOfUnsorted(list)
		if len(bs) == 0 {
			return all
		}
		bs = append(bs, all.readOnlyBitmap())
	}
	return bitmapAsSet(roaring.FastOr(bs...))
}

// SetOfUnsorted returns the set of ids in any order, possibly repeated. It may reorder the slice and keep it.
func SetOfUnsorted(ids []uint32) Set {
	// A bit for each id is faster than sorting.
	if most := slices.Max(ids); len(ids) > maxListIDs && int(most/64) < 16*len(ids) {
		bits := make([]uint64, most/64+1)
		for _, x := range ids {
			bits[x/64] |= 1 << (x % 64)
		}
		return bitmapAsSet(roaring.FromDense(bits, true))
	}
	slices.Sort(ids)
	return listAsSet(slices.Compact(ids))
}

// IntersectionSize returns the number of ids that are in both sets.
func (s Set) IntersectionSize(o Set) int {
	if s.bitmap != nil && o.bitmap != nil {
		return int(s.bitmap.AndCardinality(o.bitmap))
	}
	return Intersection(s, o).Len()
}

// SizeBytes returns about how many bytes the ids take in memory, which an operation on the set reads too.
func (s Set) SizeBytes() int {
	if s.bitmap != nil {
		return int(s.bitmap.GetSizeInBytes())
	}
	return 4 * len(s.list)
}

// Equal reports whether the sets have the same ids.
func (s Set) Equal(o Set) bool {
	n := s.Len()
	return n == o.Len() && (s.SharesBitmap(o) || s.IntersectionSize(o) == n)
}

// SharesBitmap reports whether one set is an unchanged copy of the other. It is always false for lists.
func (s Set) SharesBitmap(o Set) bool { return s.bitmap != nil && s.bitmap == o.bitmap }

// Intersects reports whether an id is in both sets.
func (s Set) Intersects(o Set) bool {
	if s.bitmap != nil && o.bitmap != nil {
		return s.bitmap.Intersects(o.bitmap)
	}
	if s.bitmap != nil || o.bitmap == nil && len(o.list) < len(s.list) {
		s, o = o, s
	}
	return slices.ContainsFunc(s.list, func(x uint32) bool { return o.Has(int64(x)) })
}

// Clone returns a set with the same ids that shares nothing with s.
func (s Set) Clone() Set {
	if s.bitmap != nil {
		return Set{bitmap: s.bitmap.Clone()}
	}
	return Set{list: slices.Clone(s.list)}
}

// CloneInto is Clone, but for few ids it takes the memory from take. take returns an unused slice of n elements.
func (s Set) CloneInto(take func(n int) []uint32) Set {
	if s.bitmap != nil || len(s.list) == 0 {
		return s.Clone()
	}
	list := take(len(s.list))
	copy(list, s.list)
	return Set{list: list}
}

// Between returns the ids from..to, both included, as a new set.
func (s Set) Between(from, to int64) Set {
	if s.bitmap == nil {
		lo, hi := s.listRange(from, to)
		return listAsSet(slices.Clone(s.list[lo:hi]))
	}
	if s.Empty() {
		return Set{}
	}
	// The range is not wider than the set, because its cost grows with its width.
	if from, to = max(from, int64(s.bitmap.Minimum())), min(to, int64(s.bitmap.Maximum())); from > to {
		return Set{}
	}
	r := roaring.New()
	r.AddRange(uint64(from), uint64(to)+1)
	r.And(s.bitmap)
	return bitmapAsSet(r)
}

// Min returns the smallest id, and false if the set is empty.
func (s Set) Min() (int64, bool) {
	switch {
	case s.Empty():
		return 0, false
	case s.bitmap != nil:
		return int64(s.bitmap.Minimum()), true
	}
	return int64(s.list[0]), true
}

// Max returns the largest id, and false if the set is empty.
func (s Set) Max() (int64, bool) {
	switch {
	case s.Empty():
		return 0, false
	case s.bitmap != nil:
		return int64(s.bitmap.Maximum()), true
	}
	return int64(s.list[len(s.list)-1]), true
}

// Rank returns the number of ids that are at most id.
func (s Set) Rank(id int64) int {
	switch {
	case id < 0:
		return 0
	case s.bitmap != nil:
		return int(s.bitmap.Rank(uint32(min(id, 1<<32-1))))
	}
	_, n := s.listRange(0, id)
	return n
}

// FirstMissing returns the smallest id from one on that is not in the set.
func (s Set) FirstMissing(from int64) int64 {
	before := s.Rank(from - 1)
	missing := func(n int) bool { return s.Rank(from+int64(n))-before <= n }
	return from + int64(sort.Search(MaxMessageID-int(from), missing))
}

// At returns the i-th smallest id, counted from 0. i must be less than Len.
func (s Set) At(i int) int64 {
	if s.bitmap == nil {
		return int64(s.list[i])
	}
	v, err := s.bitmap.Select(uint32(i))
	if err != nil {
		panic("BUG: Set.At: " + err.Error())
	}
	return int64(v)
}

// Slice returns the ids at positions lo to hi-1.
func (s Set) Slice(lo, hi int) []MessageID {
	if lo >= hi {
		return nil
	}
	if s.bitmap == nil {
		return IDs[MessageID](Set{list: s.list[lo:hi]})
	}
	return IDs[MessageID](s.Between(s.At(lo), s.At(hi-1)))
}

// Each calls fn with each id, ascending, until fn returns false.
func (s Set) Each(fn func(id int64) bool) {
	if s.bitmap != nil {
		s.bitmap.Iterate(func(x uint32) bool { return fn(int64(x)) })
		return
	}
	for _, x := range s.list {
		if !fn(int64(x)) {
			return
		}
	}
}

// EachBackward calls fn with each id, descending, until fn returns false.
func (s Set) EachBackward(fn func(id int64) bool) {
	if s.bitmap != nil {
		for it := s.bitmap.ReverseIterator(); it.HasNext(); {
			if !fn(int64(it.Next())) {
				return
			}
		}
		return
	}
	for _, x := range slices.Backward(s.list) {
		if !fn(int64(x)) {
			return
		}
	}
}

// Optimize turns long runs of ids into run containers. Call it after many changes.
func (s *Set) Optimize() {
	if s.bitmap != nil {
		s.bitmap.RunOptimize()
	}
}

// IDs returns the ids of a set, ascending. The result is never nil.
func IDs[T ~int64](s Set) []T {
	list := s.list
	if s.bitmap != nil {
		list = s.bitmap.ToArray() // faster than one by one
	}
	out := make([]T, len(list))
	for i, x := range list {
		out[i] = T(x)
	}
	return out
}

// MarshalBinary encodes the set in the portable Roaring format; an empty set is encoded as no bytes.
func (s Set) MarshalBinary() ([]byte, error) {
	if s.Empty() {
		return []byte{}, nil
	}
	if s.bitmap != nil {
		s.bitmap = s.bitmap.Clone() // RunOptimize changes the bitmap, which readers of the row still use
	}
	b := s.readOnlyBitmap()
	b.RunOptimize()
	return b.ToBytes()
}

// MarshalJSON encodes the set for people, with ranges: [1,"5-9"].
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

// UnmarshalBinary decodes a set, see MarshalBinary.
func (s *Set) UnmarshalBinary(data []byte) error {
	*s = Set{}
	if len(data) == 0 {
		return nil
	}
	b := roaring.New()
	if err := b.UnmarshalBinary(data); err != nil {
		return err
	}
	*s = bitmapAsSet(b)
	return nil
}
