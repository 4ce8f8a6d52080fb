package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// NarrowResult is the set of messages of a narrow that the caller may read: candidates, and tests that each message
// must pass. It is evaluated when needed. A page of a narrow that matches many messages is found by testing a few
// hundred. For a narrow that matches few, whole sets are combined. A result belongs to its view; Frozen makes one
// that can be used later.
type NarrowResult struct {
	ids        ids.Set // candidates, or the result if tests is nil
	tests      []func(MessageID, *message) bool
	evaluate   func(ids.Set) ids.Set // applies all tests to a set at once
	sharesIDs  bool                  // ids belongs to the realm and must not be changed
	view       View
	terms      []Term
	Unverified []TextCondition
}

// wholeSet returns the complete result.
func (n *NarrowResult) wholeSet() ids.Set {
	if n.tests != nil {
		n.ids, n.sharesIDs, n.tests = n.evaluate(n.ids), false, nil
	}
	return n.ids
}

// Frozen returns the complete result, for use after the view.
func (n NarrowResult) Frozen() NarrowResult {
	n.wholeSet()
	if n.sharesIDs {
		n.ids, n.sharesIDs = n.ids.Clone(), false
	}
	n.evaluate, n.view = nil, View{}
	return n
}

// maxTestedMessages is how many messages are tested one by one before whole sets are combined instead. It is about
// one or two milliseconds. Tests change it to compare both ways.
var maxTestedMessages = 16_000

// limitedFilter returns the tests as a filter. After maxTestedMessages messages the filter ends the search and sets
// gaveUp; then the result must be evaluated with whole sets.
func (n *NarrowResult) limitedFilter() (match BatchFilter, gaveUp *bool) {
	left, exceeded := maxTestedMessages, false
	return func(batch []MessageID) []bool {
		if left -= len(batch); left < 0 {
			exceeded = true
			return nil
		}
		out := make([]bool, len(batch))
	candidates:
		for i, id := range batch {
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
	}, &exceeded
}

// result combines the conditions. Existing sets are intersected to candidates, all other conditions become tests. The
// access check is the last test.
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
		sets = append(sets, n.rowsOf(n.me.ID)) // quickly built, and it excludes most messages
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
		return out // all messages of a channel that the caller may read
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
	out.evaluate = func(s ids.Set) ids.Set { return n.evaluateWithSets(s, later, base, out.tests) }
	return out
}

// evaluateWithSets applies the tests by combining whole sets. Few candidates are tested one by one.
func (n *narrowQuery) evaluateWithSets(
	candidates ids.Set, later []condition, base condition, tests []func(MessageID, *message) bool,
) ids.Set {
	if candidates.Len() <= maxTestedMessages {
		return n.filterByTests(candidates, tests)
	}
	for _, c := range later {
		if c.negated {
			candidates = ids.Difference(candidates, c.buildSet())
		} else {
			candidates = ids.Intersection(candidates, c.buildSet())
		}
	}
	switch {
	case base.test == nil:
		return candidates
	case candidates.Len() <= maxTestedMessages:
		return n.filterByTests(candidates, []func(MessageID, *message) bool{base.test})
	case n.me == nil:
		return ids.Intersection(candidates, base.buildSet())
	case n.within != nil && !n.rowsOnly:
		return n.readableAmong(candidates)
	}
	return n.readableRows(n.me, candidates)
}

// filterByTests returns the messages of a set that pass every test.
func (n *narrowQuery) filterByTests(candidates ids.Set, tests []func(MessageID, *message) bool) ids.Set {
	var out ids.Set
	candidates.Each(func(id int64) bool {
		m := n.message(MessageID(id))
		fails := func(test func(MessageID, *message) bool) bool { return !test(MessageID(id), m) }
		if m != nil && !slices.ContainsFunc(tests, fails) {
			out.Add(id)
		}
		return true
	})
	return out
}

// readableAmong returns those of a few messages that the caller may read.
func (v View) readableAmong(candidates ids.Set) ids.Set {
	var out ids.Set
	p := readerAccess{View: v, reader: v.Me()}
	candidates.Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m != nil && p.canRead(MessageID(id), m) {
			out.Add(id)
		}
		return true
	})
	return out
}

// readableRows returns the messages of a set that a user has a row of and may still read. Users that lost access to a
// channel keep their rows but cannot read the messages.
func (v View) readableRows(u *User, within ids.Set) ids.Set {
	rows := v.rowsWithin(u.ID, &within)
	var exceptions ids.Set // rows of messages that moved to another channel, or rows that no subscription gave
	if l := v.subscriptions.find(u.ID); l != nil {
		for _, s := range l.List {
			ix := v.index.channels[s.Channel]
			if !v.hasContentAccess(u, v.channels.must(s.Channel)) {
				rows.Subtract(ix.ids)
			}
			if ix.sent.Len() != ix.sent.IntersectionSize(ix.ids) {
				exceptions.Union(ids.Difference(ix.sent, ix.ids))
			}
		}
	}
	if rd := v.marks.find(u.ID); rd != nil {
		exceptions.Union(rd.Rows)
	}
	p := readerAccess{View: v, reader: u}
	ids.Intersection(rows, exceptions).Each(func(id int64) bool {
		if m := v.message(MessageID(id)); m == nil || !p.hasReadableRow(MessageID(id), m) {
			rows.Remove(id)
		}
		return true
	})
	return rows
}
