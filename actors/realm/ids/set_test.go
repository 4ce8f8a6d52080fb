package ids

import (
	"maps"
	"math/rand"
	"slices"
	"testing"
)

// A set behaves the same as a list and as a bitmap, whatever operations made it.
func TestSetMatchesMap(t *testing.T) {
	seed := int64(1)
	random := rand.New(rand.NewSource(seed))
	type twin struct {
		set Set
		has map[int64]bool
	}
	check := func(what string, s Set, want map[int64]bool) {
		t.Helper()
		ids := slices.Sorted(maps.Keys(want))
		var back []int64
		s.EachBackward(func(id int64) bool { back = append(back, id); return true })
		slices.Reverse(back)
		same := slices.Equal(IDs[int64](s), ids) && slices.Equal(back, ids)
		if !same || s.Len() != len(ids) || s.Empty() != (len(ids) == 0) {
			t.Fatalf("seed %d: %s: %d ids, want %d", seed, what, s.Len(), len(ids))
		}
		data, err := s.MarshalBinary()
		var again Set
		if err != nil || again.UnmarshalBinary(data) != nil || !slices.Equal(IDs[int64](again), ids) {
			t.Fatalf("seed %d: %s: encoded and decoded: %v", seed, what, err)
		}
		least, some := s.Min()
		most, _ := s.Max()
		if some != (len(ids) > 0) || some && (least != ids[0] || most != ids[len(ids)-1]) {
			t.Fatalf("seed %d: %s: from %d to %d", seed, what, least, most)
		}
		x := int64(random.Intn(3000))
		rank, found := slices.BinarySearch(ids, x)
		if s.Has(x) != found || s.Rank(x-1) != rank || rank < len(ids) && s.At(rank) != ids[rank] {
			t.Fatalf("seed %d: %s: of %d", seed, what, x)
		}
		if lo := random.Intn(len(ids) + 1); true {
			hi := lo + random.Intn(len(ids)-lo+1)
			for i, id := range s.Slice(lo, hi) {
				if int64(id) != ids[lo+i] {
					t.Fatalf("seed %d: %s: the %d-th is %d", seed, what, lo+i, id)
				}
			}
		}
	}
	only := func(has map[int64]bool, wanted func(int64) bool) map[int64]bool {
		out := maps.Clone(has)
		maps.DeleteFunc(out, func(id int64, _ bool) bool { return !wanted(id) })
		return out
	}
	twins := make([]twin, 5)
	for i := range twins {
		twins[i].has = map[int64]bool{}
	}
	for step := range 6000 {
		a, b := &twins[random.Intn(len(twins))], &twins[random.Intn(len(twins))]
		id := int64(random.Intn(3000))
		to := id + int64(random.Intn(1+random.Intn(600)))
		both := only(a.has, func(x int64) bool { return b.has[x] })
		without := only(a.has, func(x int64) bool { return !b.has[x] })
		either := maps.Clone(a.has)
		maps.Copy(either, b.has)
		switch what := random.Intn(14); what {
		case 0, 1, 2, 3, 4:
			if a.set.Add(id) == a.has[id] {
				t.Fatalf("seed %d, step %d: added %d", seed, step, id)
			}
			a.has[id] = true
		case 5:
			if a.set.Remove(id) != a.has[id] {
				t.Fatalf("seed %d, step %d: removed %d", seed, step, id)
			}
			delete(a.has, id)
		case 6:
			a.set.AddRange(id, to)
			for x := id; x <= to; x++ {
				a.has[x] = true
			}
		case 8:
			a.set, a.has = a.set.Clone(), maps.Clone(a.has)
			a.set.Union(b.set)
			a.has = either
		case 9:
			a.set = a.set.Clone()
			a.set.Subtract(b.set)
			a.has = without
		case 10:
			a.set.Intersect(b.set)
			a.has = both
		case 11:
			a.set, a.has = Set{}, map[int64]bool{}
		case 12:
			a.set.Optimize()
		}
		check("changed", a.set, a.has)
		check("both", Intersection(a.set, b.set), only(a.has, func(x int64) bool { return b.has[x] }))
		check("without", Difference(a.set, b.set), only(a.has, func(x int64) bool { return !b.has[x] }))
		check("between", a.set.Between(id, to), only(a.has, func(x int64) bool { return x >= id && x <= to }))
		n := len(only(a.has, func(x int64) bool { return b.has[x] }))
		if a.set.IntersectionSize(b.set) != n || a.set.Intersects(b.set) != (n > 0) {
			t.Fatalf("seed %d, step %d: %d in common", seed, step, n)
		}
		if step%10 == 0 {
			all := map[int64]bool{}
			sets := make([]Set, len(twins))
			for i, x := range twins {
				maps.Copy(all, x.has)
				sets[i] = x.set
			}
			check("either", Union(sets...), all)
			check("either of lists", Union(SetOf(id), SetOf(to), SetOf(id)), map[int64]bool{id: true, to: true})
		}
	}
}
