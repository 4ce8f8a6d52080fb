package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

// searchQuery is the search terms of a narrow. Several positive terms are joined, each negated term is separate.
type searchQuery struct {
	words    string
	excluded []string
}

// narrowTerms converts a narrow to the terms of the realm and its search query.
func narrowTerms(n form.Narrow) ([]realm.Term, searchQuery) {
	var q searchQuery
	terms := make([]realm.Term, len(n))
	for i, t := range n {
		terms[i] = realm.Term{
			Operator:     t.Canonical(),
			SentOperator: t.Operator,
			Negated:      t.Negated,
			Operand: realm.Operand{
				Text: t.Operand.Text, ID: t.Operand.ID, IDs: t.Operand.IDs, IsID: t.Operand.Kind == form.OperandID,
				IsList: t.Operand.Kind == form.OperandIDs},
		}
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

// realmAnchor converts an anchor. The date is parsed only if the anchor is a date.
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
