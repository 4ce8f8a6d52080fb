package realm

import (
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
)

// Set is a compressed set of ids (Roaring; the chosen home of that library). The zero value is empty and usable.
// It encodes as the portable Roaring format, so a user who has read a million messages costs a few runs.
type Set struct{ b *roaring.Bitmap }

func SetOf[T ~int64](ids ...T) Set {
	var s Set
	for _, id := range ids {
		s.Add(int64(id))
	}
	return s
}

// SetFrom is a bitmap that some device made, as a set. It belongs to the set from now on.
func SetFrom(b *roaring.Bitmap) Set { return Set{b} }

func (s *Set) bitmap() *roaring.Bitmap {
	if s.b == nil {
		s.b = roaring.New()
	}
	return s.b
}

func (s *Set) Add(id int64) bool    { return s.bitmap().CheckedAdd(uint32(id)) }
func (s *Set) Remove(id int64) bool { return s.b != nil && s.b.CheckedRemove(uint32(id)) }
func (s Set) Has(id int64) bool {
	return s.b != nil && id >= 0 && id <= 1<<32-1 && s.b.Contains(uint32(id))
}
func (s Set) Len() int {
	if s.b == nil {
		return 0
	}
	return int(s.b.GetCardinality())
}
func (s Set) Empty() bool { return s.b == nil || s.b.IsEmpty() }

// AddRange adds from..to, both included.
func (s *Set) AddRange(from, to int64) {
	if from <= to {
		s.bitmap().AddRange(uint64(from), uint64(to)+1)
	}
}

// RemoveRange removes from..to, both included.
func (s *Set) RemoveRange(from, to int64) {
	if s.b != nil && from <= to {
		s.b.RemoveRange(uint64(from), uint64(to)+1)
	}
}

func (s *Set) Union(o Set) {
	if o.b != nil {
		s.bitmap().Or(o.b)
	}
}
func (s *Set) Subtract(o Set) {
	if s.b != nil && o.b != nil {
		s.b.AndNot(o.b)
	}
}
func (s *Set) Intersect(o Set) {
	if o.b == nil {
		s.b = nil
	} else if s.b != nil {
		s.b.And(o.b)
	}
}

// Both is the ids in both sets, as a new set.
func Both(a, b Set) Set {
	if a.b == nil || b.b == nil {
		return Set{}
	}
	return Set{roaring.And(a.b, b.b)}
}

// Without is the ids of a that are not in b, as a new set.
func Without(a, b Set) Set {
	if a.b == nil {
		return Set{}
	}
	if b.b == nil {
		return a.Clone()
	}
	return Set{roaring.AndNot(a.b, b.b)}
}

// fewIDs is up to how many ids a set counts as small in a union: small ones are cheaper sorted than merged one by one.
const fewIDs = 64

// Either is the ids in any of the sets, as a new set.
func Either(sets ...Set) Set {
	bs := make([]*roaring.Bitmap, 0, len(sets)+1)
	var few []uint32
	for _, s := range sets {
		switch n := s.Len(); {
		case n == 0:
		case n <= fewIDs && len(sets) > 2:
			s.b.Iterate(func(x uint32) bool { few = append(few, x); return true })
		default:
			bs = append(bs, s.b)
		}
	}
	if len(few) > 0 {
		slices.Sort(few)
		bs = append(bs, roaring.BitmapOf(few...))
	}
	return Set{roaring.FastOr(bs...)}
}

// common is how many ids the sets have in common.
func (s Set) common(o Set) int {
	if s.b == nil || o.b == nil {
		return 0
	}
	return int(s.b.AndCardinality(o.b))
}

// Meets reports whether the sets have an id in common.
func (s Set) Meets(o Set) bool { return s.b != nil && o.b != nil && s.b.Intersects(o.b) }

func (s Set) Clone() Set {
	if s.b == nil {
		return Set{}
	}
	return Set{s.b.Clone()}
}

// Between is the ids from..to, both included, as a new set.
func (s Set) Between(from, to int64) Set {
	if s.Empty() {
		return Set{}
	}
	// No wider than what there is: a range costs by its width.
	if from, to = max(from, int64(s.b.Minimum())), min(to, int64(s.b.Maximum())); from > to {
		return Set{}
	}
	var r Set
	r.AddRange(from, to)
	return Both(s, r)
}

func (s Set) Min() (int64, bool) {
	if s.Empty() {
		return 0, false
	}
	return int64(s.b.Minimum()), true
}
func (s Set) Max() (int64, bool) {
	if s.Empty() {
		return 0, false
	}
	return int64(s.b.Maximum()), true
}

// Rank is how many ids are at most id.
func (s Set) Rank(id int64) int {
	if s.b == nil || id < 0 {
		return 0
	}
	return int(s.b.Rank(uint32(min(id, 1<<32-1))))
}

// At is the i-th id, counted from 0; i must be below Len.
func (s Set) At(i int) int64 {
	v, err := s.b.Select(uint32(i))
	if err != nil {
		panic("BUG: Set.At: " + err.Error())
	}
	return int64(v)
}

// Each calls fn with the ids ascending until it returns false.
func (s Set) Each(fn func(id int64) bool) {
	if s.b != nil {
		s.b.Iterate(func(x uint32) bool { return fn(int64(x)) })
	}
}

// eachBackward is Each from the last to the first.
func (s Set) eachBackward(fn func(id int64) bool) {
	if s.b == nil {
		return
	}
	for it := s.b.ReverseIterator(); it.HasNext(); {
		if !fn(int64(it.Next())) {
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
	out := make([]T, 0, s.Len())
	s.Each(func(id int64) bool { out = append(out, T(id)); return true })
	return out
}

func (s Set) MarshalBinary() ([]byte, error) {
	if s.Empty() {
		return []byte{}, nil
	}
	b := s.b.Clone() // RunOptimize changes the bitmap; a row being written must not change under its readers
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
	s.b = nil
	if len(data) == 0 {
		return nil
	}
	s.b = roaring.New()
	return s.b.UnmarshalBinary(data)
}
