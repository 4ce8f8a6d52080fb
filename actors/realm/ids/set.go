package ids

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
	list   []uint32 // sortUnique; nil if none
	bitmap *roaring.Bitmap
}

// maxListIDs is up to how many ids a set is a list: a kilobyte at most, where a bitmap of ids that are scattered over a
// million messages takes sixteen containers of sixty bytes and more.
const maxListIDs = 256

// SetOf is the set of these ids, in whatever order they come.
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

// SetFromBitmap is a bitmap that some device made, as a set. It belongs to the set from now on.
func SetFromBitmap(b *roaring.Bitmap) Set { return bitmapAsSet(b) }

// bitmapAsSet is a bitmap as a set: as a list if it has few ids.
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

// listAsSet is ascending ids as a set, whose own they become.
func listAsSet(ids []uint32) Set {
	switch {
	case len(ids) == 0:
		return Set{}
	case len(ids) <= maxListIDs:
		return Set{list: ids}
	}
	return Set{bitmap: roaring.BitmapOf(ids...)}
}

// toBitmap is the set as a toBitmap, its own from now on.
func (s *Set) toBitmap() *roaring.Bitmap {
	if s.bitmap == nil {
		s.bitmap = roaring.BitmapOf(s.list...)
		s.list = nil
	}
	return s.bitmap
}

// readOnlyBitmap is the set as a bitmap that must not be changed.
func (s Set) readOnlyBitmap() *roaring.Bitmap { return s.toBitmap() }

func (s *Set) Add(id int64) bool {
	if s.bitmap != nil {
		return s.bitmap.CheckedAdd(uint32(id))
	}
	x, n := uint32(id), len(s.list)
	at := n
	if n > 0 && s.list[n-1] >= x {
		var there bool
		if at, there = slices.BinarySearch(s.list, x); there {
			return false
		}
	}
	if n == maxListIDs {
		return s.toBitmap().CheckedAdd(x)
	}
	if n == cap(s.list) { // grows by a quarter only: there are very many sets
		s.list = append(make([]uint32, 0, n+n/4+1), s.list...)
	}
	s.list = slices.Insert(s.list, at, x)
	return true
}

// AppendSorted adds an id, which none that was pushed exceeds, to a set that is being built: a list as long as it may get, until
// bitmapAsSet makes it what it is to be. For very many ids that is several times as fast as Add.
func (s *Set) AppendSorted(id int64) {
	if n := len(s.list); n == 0 || s.list[n-1] != uint32(id) {
		s.list = append(s.list, uint32(id))
	}
}

// FinishAppending ends the pushing.
func (s *Set) FinishAppending() {
	if len(s.list) > maxListIDs {
		*s = listAsSet(s.list)
	} else if len(s.list) < cap(s.list) {
		s.list = append(make([]uint32, 0, len(s.list)), s.list...)
	}
}

func (s *Set) Remove(id int64) bool {
	if s.bitmap != nil {
		return s.bitmap.CheckedRemove(uint32(id))
	}
	if n := len(s.list); n == 0 || s.list[n-1] < uint32(id) {
		return false
	}
	at, there := slices.BinarySearch(s.list, uint32(id))
	if there {
		s.setList(slices.Delete(s.list, at, at+1))
	}
	return there
}

// setList makes a list the set's own.
func (s *Set) setList(few []uint32) {
	if s.list = few; len(few) == 0 {
		s.list = nil
	}
}

func (s Set) Has(id int64) bool {
	if id < 0 || id > 1<<32-1 {
		return false
	}
	if s.bitmap != nil {
		return s.bitmap.Contains(uint32(id))
	}
	_, there := slices.BinarySearch(s.list, uint32(id))
	return there
}

func (s Set) Len() int {
	if s.bitmap != nil {
		return int(s.bitmap.GetCardinality())
	}
	return len(s.list)
}

func (s Set) Empty() bool { return len(s.list) == 0 && (s.bitmap == nil || s.bitmap.IsEmpty()) }

// AddRange adds from..to, both included.
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

// RemoveRange removes from..to, both included.
func (s *Set) RemoveRange(from, to int64) {
	switch {
	case from > to:
	case s.bitmap != nil:
		s.bitmap.RemoveRange(uint64(from), uint64(to)+1)
	default:
		lo, hi := s.listRange(from, to)
		s.setList(slices.Delete(s.list, lo, hi))
	}
}

// listRange is which of a list's ids are from..to: from the lo-th up to, not including, the hi-th.
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

// mergeSorted is the ids in either of two lists.
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

// Subtract takes the ids of another set away.
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

// Intersect leaves the ids that are in another set, too.
func (s *Set) Intersect(o Set) { *s = Intersection(*s, o) }

// Intersection is the ids in both sets, as a new set.
func Intersection(a, b Set) Set {
	if a.bitmap != nil && b.bitmap != nil {
		return bitmapAsSet(roaring.And(a.bitmap, b.bitmap))
	}
	if a.bitmap != nil || b.bitmap == nil && len(b.list) < len(a.list) {
		a, b = b, a
	}
	return a.filterList(func(x uint32) bool { return b.Has(int64(x)) })
}

// Difference is the ids of a that are not in b, as a new set.
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

// filterList is what of a list is wanted, as a new set.
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

// Union is the ids in any of the sets, as a new set.
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
		few := make([]uint32, 0, n)
		for _, s := range sets {
			few = append(few, s.list...)
		}
		all := SetOfUnsorted(few)
		if len(bs) == 0 {
			return all
		}
		bs = append(bs, all.readOnlyBitmap())
	}
	return bitmapAsSet(roaring.FastOr(bs...))
}

// SetOfUnsorted is a set of ids in any order, which may repeat.
func SetOfUnsorted(ids []uint32) Set {
	if most := slices.Max(ids); len(ids) > maxListIDs && int(most/64) < 16*len(ids) { // a bit each, sooner than sorting
		bits := make([]uint64, most/64+1)
		for _, x := range ids {
			bits[x/64] |= 1 << (x % 64)
		}
		return bitmapAsSet(roaring.FromDense(bits, true))
	}
	slices.Sort(ids)
	return listAsSet(slices.Compact(ids))
}

// IntersectionSize is how many ids the sets have in IntersectionSize.
func (s Set) IntersectionSize(o Set) int {
	if s.bitmap != nil && o.bitmap != nil {
		return int(s.bitmap.AndCardinality(o.bitmap))
	}
	return Intersection(s, o).Len()
}

// SizeBytes is about how many bytes of ids the set takes, and an operation on it looks at.
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

// SharesBitmap reports whether a set is another's copy, and large.
func (s Set) SharesBitmap(o Set) bool { return s.bitmap != nil && s.bitmap == o.bitmap }

// Intersects reports whether the sets have an id in common.
func (s Set) Intersects(o Set) bool {
	if s.bitmap != nil && o.bitmap != nil {
		return s.bitmap.Intersects(o.bitmap)
	}
	if s.bitmap != nil || o.bitmap == nil && len(o.list) < len(s.list) {
		s, o = o, s
	}
	return slices.ContainsFunc(s.list, func(x uint32) bool { return o.Has(int64(x)) })
}

// Clone is a set of its own with the same ids.
func (s Set) Clone() Set {
	if s.bitmap != nil {
		return Set{bitmap: s.bitmap.Clone()}
	}
	return Set{list: slices.Clone(s.list)}
}

// CloneInto is Clone for a set of few ids in memory that take hands out: take returns a list of n ids of its own.
func (s Set) CloneInto(take func(n int) []uint32) Set {
	if s.bitmap != nil || len(s.list) == 0 {
		return s.Clone()
	}
	few := take(len(s.list))
	copy(few, s.list)
	return Set{list: few}
}

// Between is the ids from..to, both included, as a new set.
func (s Set) Between(from, to int64) Set {
	if s.bitmap == nil {
		lo, hi := s.listRange(from, to)
		return listAsSet(slices.Clone(s.list[lo:hi]))
	}
	if s.Empty() {
		return Set{}
	}
	// No wider than what there is: a range costs by its width.
	if from, to = max(from, int64(s.bitmap.Minimum())), min(to, int64(s.bitmap.Maximum())); from > to {
		return Set{}
	}
	r := roaring.New()
	r.AddRange(uint64(from), uint64(to)+1)
	r.And(s.bitmap)
	return bitmapAsSet(r)
}

// Min is the least id, if there is one.
func (s Set) Min() (int64, bool) {
	switch {
	case s.Empty():
		return 0, false
	case s.bitmap != nil:
		return int64(s.bitmap.Minimum()), true
	}
	return int64(s.list[0]), true
}

// Max is the greatest id, if there is one.
func (s Set) Max() (int64, bool) {
	switch {
	case s.Empty():
		return 0, false
	case s.bitmap != nil:
		return int64(s.bitmap.Maximum()), true
	}
	return int64(s.list[len(s.list)-1]), true
}

// Rank is how many ids are at most id.
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

// FirstMissing is the first id from one on that is not in the set.
func (s Set) FirstMissing(from int64) int64 {
	before := s.Rank(from - 1)
	return from + int64(sort.Search(MaxMessageID-int(from), func(n int) bool { return s.Rank(from+int64(n))-before <= n }))
}

// At is the i-th id, counted from 0; i must be below Len.
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

// Slice is the ids from the lo-th up to, not including, the hi-th.
func (s Set) Slice(lo, hi int) []MessageID {
	if lo >= hi {
		return nil
	}
	if s.bitmap == nil {
		return IDs[MessageID](Set{list: s.list[lo:hi]})
	}
	return IDs[MessageID](s.Between(s.At(lo), s.At(hi-1)))
}

// Each calls fn with the ids ascending until it returns false.
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

// EachBackward is Each from the last to the first.
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

// Optimize turns long runs into run containers; call it after bulk changes.
func (s *Set) Optimize() {
	if s.bitmap != nil {
		s.bitmap.RunOptimize()
	}
}

// IDs returns the ids of a set ascending, never nil.
func IDs[T ~int64](s Set) []T {
	few := s.list
	if s.bitmap != nil {
		few = s.bitmap.ToArray() // many at once, sooner than one after the other
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
	if s.bitmap != nil {
		s.bitmap = s.bitmap.Clone() // RunOptimize changes the bitmap; a row being written must not change under its readers
	}
	b := s.readOnlyBitmap()
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
	*s = bitmapAsSet(b)
	return nil
}
