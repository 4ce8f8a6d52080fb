package realm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm/ids"
)

// fuzzRealms are the organizations that the fuzzer queries. Every process makes them once, the same every time.
var fuzzRealms []*randomRealm

func makeFuzzRealms(f *testing.F) {
	for seed := int64(1); len(fuzzRealms) < 3; seed++ {
		fuzzRealms = append(fuzzRealms, newRandomRealm(f, seed, 500))
	}
}

// decodeTerms decodes a narrow from JSON. Each term is an object {operator, operand, negated} whose operand is a
// text, an id or a list of ids, as wire passes them.
func decodeTerms(text string) (terms []Term, ok bool) {
	var sent []struct {
		Operator string
		Operand  json.RawMessage
		Negated  bool
	}
	if json.Unmarshal([]byte(text), &sent) != nil || len(sent) > 10 {
		return nil, false
	}
	for _, s := range sent {
		t := Term{Operator: s.Operator, SentOperator: s.Operator, Negated: s.Negated}
		o := &t.Operand
		switch {
		case len(s.Operand) == 0:
			return nil, false
		case json.Unmarshal(s.Operand, &o.Text) == nil:
		case json.Unmarshal(s.Operand, &o.ID) == nil:
			o.IsID = true
		case json.Unmarshal(s.Operand, &o.IDs) == nil:
			o.IsList = true
		default:
			return nil, false
		}
		terms = append(terms, t)
	}
	return terms, true
}

// FuzzNarrow queries organizations with any narrow, as any user and around any anchor. It compares ids and found_*
// with a decision message by message, and requires that the caller may read all returned messages.
func FuzzNarrow(f *testing.F) {
	makeFuzzRealms(f)
	for i, narrow := range []string{
		`[]`,
		`[{"operator":"channel","operand":"channel 1"},{"operator":"topic","operand":" TEA "}]`,
		`[{"operator":"channel","operand":3},{"operator":"is","operand":"unread","negated":true}]`,
		`[{"operator":"channels","operand":"web-public"},{"operator":"sender","operand":"user3@example.com"}]`,
		`[{"operator":"channels","operand":"public"},{"operator":"channels","operand":"archived","negated":true}]`,
		`[{"operator":"dm","operand":[9,10]},{"operator":"near","operand":20}]`,
		`[{"operator":"dm","operand":"user9@example.com, user10@example.com"}]`,
		`[{"operator":"dm-including","operand":9},{"operator":"group-pm-with","operand":10,"negated":true}]`,
		`[{"operator":"is","operand":"dm"},{"operator":"has","operand":"link"}]`,
		`[{"operator":"in","operand":"home"},{"operator":"mentions","operand":9}]`,
		`[{"operator":"with","operand":"120"},{"operator":"topic","operand":"tea"}]`,
		`[{"operator":"id","operand":"0077"}]`,
		`[{"operator":"is","operand":"resolved","negated":true},{"operator":"is","operand":"muted"}]`,
		`[{"operator":"is","operand":"followed"},{"operator":"is","operand":"mentioned"},` +
			`{"operator":"is","operand":"starred","negated":true}]`,
		`[{"operator":"topic","operand":"ÜBER"},{"operator":"has","operand":"reaction","negated":true}]`,
	} {
		f.Add(narrow, byte(i), byte(i%5), int64(i*20), byte(i), byte(3*i))
	}
	old := maxTestedMessages
	f.Cleanup(func() { maxTestedMessages = old })
	f.Fuzz(func(t *testing.T, text string, who, kind byte, at int64, size, how byte) {
		terms, ok := decodeTerms(text)
		if !ok {
			return
		}
		w := fuzzRealms[int(who>>4)%len(fuzzRealms)]
		w.t = t
		u := UserID(0) // a logged-out visitor
		if i := int(who & 15); i < len(w.users) {
			u = w.users[i]
		}
		maxTestedMessages = []int{0, 20, 300, old}[how&3]
		a := Anchor{Kind: AnchorKind(kind % 5), ID: at, Time: w.now - at}
		g := PageRange{Anchor: a, Before: int(size & 15), After: int(size >> 4), Exclude: how&4 != 0}
		w.compareNarrow(t, u, terms, g)
		w.compareAmong(t, u, terms, ids.SetOf(max(at, 0)%500, int64(size), int64(how), 33, 34, 35, 36, 37))
	})
}

// compareNarrow compares a page of a narrow, and the complete result, with a decision message by message.
func (w *randomRealm) compareNarrow(t *testing.T, u UserID, terms []Term, g PageRange) {
	v := w.realm.ViewAs(Caller{User: u}, w.now)
	n, err := v.Narrow(terms, nil)
	if err != nil {
		return
	}
	want, unread := w.expected(u, terms)
	g.Anchor.ID = min(max(g.Anchor.ID, 0), NewestAnchor)
	page := n.Page(v.ResolveAnchor(&n, g.Anchor).ID(nil), g, nil)
	if wanted := expectedPage(w, want, unread, g); fmt.Sprint(page) != fmt.Sprint(wanted) {
		t.Fatalf("user %d, %+v, %+v:\n got %v\nwant %v\nall %v\nunread %v", u, terms, g, page, wanted, want, unread)
	}
	if seen := v.VisibleMessages(page.IDs); len(seen) != len(page.IDs) {
		t.Fatalf("user %d, %+v: the caller may read only %d of %v", u, terms, len(seen), page.IDs)
	}
	n = n.Frozen()
	if got := n.AllIDs(nil); !slices.Equal(got, want) {
		t.Fatalf("user %d, %+v:\n got %v\nwant %v", u, terms, got, want)
	}
}

// compareAmong compares those of some messages that match a narrow with a decision message by message.
func (w *randomRealm) compareAmong(t *testing.T, u UserID, terms []Term, idSet ids.Set) {
	n, err := w.realm.ViewAs(Caller{User: u}, w.now).NarrowAmong(terms, nil, idSet)
	if err != nil {
		return
	}
	terms = w.expandWith(u, terms)
	personal := slices.ContainsFunc(terms, func(t Term) bool {
		return t.Operator == "is" && t.Operand.Text != "resolved"
	})
	want := []MessageID{}
	idSet.Each(func(x int64) bool {
		id := MessageID(x)
		m := w.realm.message(id)
		if m == nil || !w.mayRead(u, id, m) || personal && !w.realm.hasRow(u, id, m) {
			return true
		}
		if w.matchesTerms(u, terms, id, m) {
			want = append(want, id)
		}
		return true
	})
	if got := n.AllIDs(nil); !slices.Equal(got, want) {
		t.Fatalf("among %v user %d, %+v:\n got %v\nwant %v", ids.IDs[int64](idSet), u, terms, got, want)
	}
}

// mayRead decides whether a user may read a message, following the protocol's description.
func (w *randomRealm) mayRead(u UserID, id MessageID, m *message) bool {
	r, me := w.realm, w.realm.Find(u)
	if m.channel == 0 {
		return slices.Contains(r.conversations.must(m.conversation).Members, u)
	}
	c := r.FindChannel(ChannelID(m.channel))
	s := r.SubscriptionOf(u, c.ID)
	switch {
	case me == nil:
		return c.WebPublic && !c.Archived
	case c.WebPublic:
		return true
	case s != nil && s.Active, !me.IsGuest() && !c.Private:
	case me.IsGuest() || !r.channelAllows(me, c, "can_subscribe_group") &&
		!r.channelAllows(me, c, "can_add_subscribers_group"):
		return false
	}
	return c.History || r.hasRow(u, id, m)
}

// foldOperand returns the text of an operand without surrounding white space, in lower case.
func foldOperand(o Operand) string { return strings.ToLower(strings.TrimSpace(o.Text)) }
