package wire

import (
	"parley/actors/realm"
)

var searchEndpoints []Endpoint

var searchEvents []EventKind

// searching is the search part of a narrow: what the index proposes, and what only the texts can decide.
type searching struct {
	words string
	hits  realm.Hits
}

// search looks the words of a narrow up.
func search(c *Call, words string) (*searching, error) {
	return &searching{words: words}, nil
}

func (s *searching) wanted() bool { return s.words != "" }

// page is a stretch of a narrow.
func (s *searching) page(c *Call, terms []realm.Term, r realm.Range) (realm.Page, error) {
	return Look(c, func(v realm.View) (realm.Page, error) {
		n, err := v.Narrow(terms, s.hits)
		if err != nil {
			return realm.Page{}, err
		}
		return n.Page(v.Resolve(n, r.Anchor, nil), r, nil), nil
	})
}

// among is which of some messages the caller may read and a narrow lets through.
func (s *searching) among(c *Call, terms []realm.Term, ids []int64) ([]realm.MessageID, error) {
	var set realm.Set
	for _, id := range ids {
		if id > 0 && id <= realm.MaxMessageID {
			set.Add(id)
		}
	}
	return Look(c, func(v realm.View) ([]realm.MessageID, error) { return v.Among(terms, s.hits, set) })
}

func (s *searching) match(topic string, body realm.Body) (content, subject string) { return "", "" }

// settle finds the stretch of a narrow beforehand if its messages must be compared by their texts.
func (s *searching) settle(c *Call, cmd *realm.FlagNarrow) error { return nil }
