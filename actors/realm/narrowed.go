package realm

import "slices"

// Narrowed is the messages a narrow lets a caller see: candidates, and tests that each must pass. Most of it is worked
// out only when asked for: a page of a narrow that lets much through is found by testing a few hundred messages, and
// one that lets little through by the algebra of whole sets. Frozen makes a result that outlives its view.
type Narrowed struct {
	ids    Set // candidates; with tests nil, the result
	tests  []func(MessageID, *message) bool
	all    func(Set) Set // does at once what the tests do one by one
	shared bool          // ids is the realm's own
	view   View
	terms  []Term
	Doubts []Doubt
}

// set is the result as a whole.
func (n *Narrowed) set() Set {
	if n.tests != nil {
		n.ids, n.shared, n.tests = n.all(n.ids), false, nil
	}
	return n.ids
}

// Frozen is the result for use after the view.
func (n Narrowed) Frozen() Narrowed {
	n.set()
	if n.shared {
		n.ids, n.shared = n.ids.Clone(), false
	}
	n.all, n.view = nil, View{}
	return n
}

// walkable is how many messages are tested one by one before whole sets are worked out instead: a millisecond or two.
// Tests of this package lower it to have both ways compared.
var walkable = 16_000

// walk is the tests as a match, until too many have been tested; then it gives up, and so does whoever asked.
func (n *Narrowed) walk() (match Match, gaveUp *bool) {
	left, up := walkable, false
	return func(ids []MessageID) []bool {
		if left -= len(ids); left < 0 {
			up = true
			return nil
		}
		out := make([]bool, len(ids))
	candidates:
		for i, id := range ids {
			m := n.view.message(id)
			if m == nil {
				continue
			}
			for _, test := range n.tests {
				if !test(id, m) {
					continue candidates
				}
			}
			out[i] = true
		}
		return out
	}, &up
}

// result puts the conditions together: sets that are there already make the candidates, the rest become tests.
func (n *narrowing) result(terms []Term) Narrowed {
	out := Narrowed{view: n.View, terms: terms, Doubts: n.doubts}
	var sets, without []Set
	var later []condition
	for _, c := range n.terms {
		switch {
		case c.set == nil:
			later = append(later, c)
		case c.negated:
			without = append(without, *c.set)
		default:
			sets = append(sets, *c.set)
		}
	}
	row := n.me != nil && (n.personal || n.within == nil && !n.history)
	if row && len(later) > 0 && n.sources(n.me.ID) <= fewSources {
		sets = append(sets, n.rowsOf(n.me.ID)) // soon worked out, and most other messages are not his
	}
	slices.SortStableFunc(sets, func(a, b Set) int { return a.Len() - b.Len() })
	switch {
	case n.within != nil:
		out.ids, out.shared = *n.within, true
	case len(sets) > 0:
		out.ids, out.shared, sets = sets[0], true, sets[1:]
	default:
		out.ids.AddRange(1, int64(n.LastMessage()))
	}
	for _, s := range sets {
		out.ids, out.shared = Both(out.ids, s), false
	}
	for _, s := range without {
		if !s.Empty() {
			out.ids, out.shared = Without(out.ids, s), false
		}
	}
	base := condition{test: n.places.readable}
	switch {
	case n.me == nil:
		base.whole = func() Set { return n.inChannels(func(c *Channel) bool { return c.WebPublic && !c.Archived }) }
	case row:
		base.test = n.places.row
	case n.within != nil:
	case len(later) == 0:
		return out // all of a channel that the caller may read
	default:
		base.test = nil
	}
	for _, c := range append(later, base) {
		if c.test == nil {
			continue
		}
		test := c.test
		if c.negated {
			test = func(id MessageID, m *message) bool { return !c.test(id, m) }
		}
		out.tests = append(out.tests, test)
	}
	out.all = func(ids Set) Set { return n.algebra(ids, later, base, out.tests) }
	return out
}

// algebra is the tests done at once, with sets; few candidates are tested one by one all the same.
func (n *narrowing) algebra(ids Set, later []condition, base condition, tests []func(MessageID, *message) bool) Set {
	if ids.Len() <= walkable {
		return n.passing(ids, tests)
	}
	for _, c := range later {
		if c.negated {
			ids = Without(ids, c.whole())
		} else {
			ids = Both(ids, c.whole())
		}
	}
	switch {
	case base.test == nil:
		return ids
	case ids.Len() <= walkable:
		return n.passing(ids, []func(MessageID, *message) bool{base.test})
	case n.me == nil:
		return Both(ids, base.whole())
	case n.within != nil && !n.personal:
		return n.readable(ids)
	}
	return n.readableRows(n.me, ids)
}

// passing is what of a set passes every test.
func (n *narrowing) passing(ids Set, tests []func(MessageID, *message) bool) Set {
	var out Set
	ids.Each(func(id int64) bool {
		m := n.message(MessageID(id))
		if m != nil && !slices.ContainsFunc(tests, func(t func(MessageID, *message) bool) bool { return !t(MessageID(id), m) }) {
			out.Add(id)
		}
		return true
	})
	return out
}

// readable is what of a few messages the caller may read.
func (v View) readable(ids Set) Set {
	var out Set
	p := places{View: v, me: v.Me()}
	ids.Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m != nil && p.readable(MessageID(id), m) {
			out.Add(id)
		}
		return true
	})
	return out
}

// readableRows is what of a set a user has a row of and may still read: whoever lost access to a channel keeps the rows
// but does not see them.
func (v View) readableRows(u *User, within Set) Set {
	rows := v.rowsWithin(u.ID, &within)
	var strange Set // rows of messages that are elsewhere now, or that came otherwise than by a subscription
	if l := v.subs.find(u.ID); l != nil {
		for _, s := range l.List {
			ix := v.by.channel[s.Channel]
			if !v.hasContent(u, v.chans.must(s.Channel)) {
				rows.Subtract(ix.ids)
			}
			if ix.sent.Len() != ix.sent.common(ix.ids) {
				strange.Union(Without(ix.sent, ix.ids))
			}
		}
	}
	if rd := v.reading.find(u.ID); rd != nil {
		strange.Union(rd.Rows)
	}
	p := places{View: v, me: u}
	Both(rows, strange).Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m == nil || !p.row(MessageID(id), m) {
			rows.Remove(id)
		}
		return true
	})
	return rows
}
