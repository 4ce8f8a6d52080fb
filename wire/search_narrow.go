package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

// searchQuery is what a narrow searches for: several search terms are one, negated ones are one each.
type searchQuery struct {
	words    string
	excluded []string
}

// narrowTerms is a narrow in the realm's terms, and what it searches for.
func narrowTerms(n form.Narrow) ([]realm.Term, searchQuery) {
	var q searchQuery
	terms := make([]realm.Term, len(n))
	for i, t := range n {
		terms[i] = realm.Term{Operator: t.Canonical(), SentOperator: t.Operator, Negated: t.Negated, Operand: realm.Operand{
			Text: t.Operand.Text, ID: t.Operand.ID, IDs: t.Operand.IDs, IsID: t.Operand.Kind == form.OperandID, IsList: t.Operand.Kind == form.OperandIDs}}
		switch {
		case terms[i].Operator != "search":
		case t.Negated:
			q.excluded = append(q.excluded, t.Operand.Text)
		case q.words != "":
			q.words += " " + t.Operand.Text
		default:
			q.words = t.Operand.Text
		}
	}
	return terms, q
}

// realmAnchor is an anchor in the realm's terms. The date is looked at only if it is the anchor.
func realmAnchor(a form.Anchor, date form.Opt[string]) (realm.Anchor, error) {
	switch a.Kind {
	case form.AnchorNewest:
		return realm.Anchor{Kind: realm.AnchorNewest}, nil
	case form.AnchorOldest:
		return realm.Anchor{Kind: realm.AnchorOldest}, nil
	case form.AnchorFirstUnread:
		return realm.Anchor{Kind: realm.AnchorFirstUnread}, nil
	case form.AnchorDate:
		if !date.Set {
			return realm.Anchor{}, form.Missing("anchor_date")
		}
		var at form.Instant
		if err := at.DecodeParam(date.Value, ""); err != nil {
			return realm.Anchor{}, err.Named("anchor_date")
		}
		return realm.Anchor{Kind: realm.AnchorDate, Time: at.Unix}, nil
	case form.AnchorID:
		return realm.Anchor{ID: a.ID}, nil
	}
	return realm.Anchor{}, form.MissingAnchor()
}
