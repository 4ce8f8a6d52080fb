package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// NarrowResult is the messages a narrow lets a caller see: candidates, and tests that each must pass. Most of it is worked
// out only when asked for: a page of a narrow that lets much through is found by testing a few hundred messages, and
// one that lets little through by the algebra of whole sets. Frozen makes a result that outlives its view.
type NarrowResult struct {
	ids        ids.Set // candidates; with tests nil, the result
	tests      []func(MessageID, *message) bool
	evaluate   func(ids.Set) ids.Set // does at once what the tests do one by one
	sharesIDs  bool                  // ids is the realm's own
	view       View
	terms      []Term
	Unverified []TextCondition
}

// wholeSet is the result as a whole.
func (n *NarrowResult) wholeSet() ids.Set {
	if n.tests != nil {
		n.ids, n.sharesIDs, n.tests = n.evaluate(n.ids), false, nil
	}
	return n.ids
}

// Frozen is the result for use after the view.
func (n NarrowResult) Frozen() NarrowResult {
	n.wholeSet()
	if n.sharesIDs {
		n.ids, n.sharesIDs = n.ids.Clone(), false
	}
	n.evaluate, n.view = nil, View{}
	return n
}

// maxTestedMessages is how many messages are tested one by one before whole sets are worked out instead: a millisecond or two.
// Tests of this package lower it to have both ways compared.
var maxTestedMessages = 16_000

// limitedFilter is the tests as a match, until too many have been tested; then it gives up, and so does whoever asked.
func (n *NarrowResult) limitedFilter() (match BatchFilter, gaveUp *bool) {
	left, up := maxTestedMessages, false
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
func (n *narrowQuery) result(terms []Term) NarrowResult {
	out := NarrowResult{view: n.View, terms: terms, Unverified: n.unverified}
	var sets, without []ids.Set
	var later []condition
	for _, c := range n.conditions {
		switch {
		case c.set == nil:
			later = append(later, c)
		case c.negated:
			without = append(without, *c.set)
		default:
			sets = append(sets, *c.set)
		}
	}
	row := n.me != nil && (n.rowsOnly || n.within == nil && !n.includeHistory)
	if row && len(later) > 0 && n.countSources(n.me.ID) <= fewConversations {
		sets = append(sets, n.rowsOf(n.me.ID)) // soon worked out, and most other messages are not his
	}
	slices.SortStableFunc(sets, func(a, b ids.Set) int { return a.Len() - b.Len() })
	switch {
	case n.within != nil:
		out.ids, out.sharesIDs = *n.within, true
	case len(sets) > 0:
		out.ids, out.sharesIDs, sets = sets[0], true, sets[1:]
	default:
		out.ids.AddRange(1, int64(n.LastMessageID()))
	}
	for _, s := range sets {
		out.ids, out.sharesIDs = ids.Intersection(out.ids, s), false
	}
	for _, s := range without {
		if !s.Empty() {
			out.ids, out.sharesIDs = ids.Difference(out.ids, s), false
		}
	}
	base := condition{test: n.access.canRead}
	switch {
	case n.me == nil:
		base.buildSet = func() ids.Set {
			return n.messagesInChannels(func(c *Channel) bool { return c.WebPublic && !c.Archived })
		}
	case row:
		base.test = n.access.hasReadableRow
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
	out.evaluate = func(ids ids.Set) ids.Set { return n.evaluateWithSets(ids, later, base, out.tests) }
	return out
}

// evaluateWithSets is the tests done at once, with sets; few candidates are tested one by one all the same.
func (n *narrowQuery) evaluateWithSets(idSet ids.Set, later []condition, base condition, tests []func(MessageID, *message) bool) ids.Set {
	if idSet.Len() <= maxTestedMessages {
		return n.filterByTests(idSet, tests)
	}
	for _, c := range later {
		if c.negated {
			idSet = ids.Difference(idSet, c.buildSet())
		} else {
			idSet = ids.Intersection(idSet, c.buildSet())
		}
	}
	switch {
	case base.test == nil:
		return idSet
	case idSet.Len() <= maxTestedMessages:
		return n.filterByTests(idSet, []func(MessageID, *message) bool{base.test})
	case n.me == nil:
		return ids.Intersection(idSet, base.buildSet())
	case n.within != nil && !n.rowsOnly:
		return n.readableAmong(idSet)
	}
	return n.readableRows(n.me, idSet)
}

// filterByTests is what of a set passes every test.
func (n *narrowQuery) filterByTests(idSet ids.Set, tests []func(MessageID, *message) bool) ids.Set {
	var out ids.Set
	idSet.Each(func(id int64) bool {
		m := n.message(MessageID(id))
		if m != nil && !slices.ContainsFunc(tests, func(t func(MessageID, *message) bool) bool { return !t(MessageID(id), m) }) {
			out.Add(id)
		}
		return true
	})
	return out
}

// readableAmong is what of a few messages the caller may read.
func (v View) readableAmong(idSet ids.Set) ids.Set {
	var out ids.Set
	p := readerAccess{View: v, reader: v.Me()}
	idSet.Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m != nil && p.canRead(MessageID(id), m) {
			out.Add(id)
		}
		return true
	})
	return out
}

// readableRows is what of a set a user has a row of and may still read: whoever lost access to a channel keeps the rows
// but does not see them.
func (v View) readableRows(u *User, within ids.Set) ids.Set {
	rows := v.rowsWithin(u.ID, &within)
	var strange ids.Set // rows of messages that are elsewhere now, or that came otherwise than by a subscription
	if l := v.subscriptions.find(u.ID); l != nil {
		for _, s := range l.List {
			ix := v.index.channels[s.Channel]
			if !v.hasContentAccess(u, v.channels.must(s.Channel)) {
				rows.Subtract(ix.ids)
			}
			if ix.sent.Len() != ix.sent.IntersectionSize(ix.ids) {
				strange.Union(ids.Difference(ix.sent, ix.ids))
			}
		}
	}
	if rd := v.marks.find(u.ID); rd != nil {
		strange.Union(rd.Rows)
	}
	p := readerAccess{View: v, reader: u}
	ids.Intersection(rows, strange).Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m == nil || !p.hasReadableRow(MessageID(id), m) {
			rows.Remove(id)
		}
		return true
	})
	return rows
}
