package wire

import (
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/markdown"
)

var searchEndpoints = []Endpoint{
	Custom("GET", "/messages/matches_narrow", matchesNarrow).Says("{messages: {*: {match_content: str, match_subject: str}}}"),
}

var searchEvents []EventKind

// Found is what the search index says to the words of a search.
type Found struct {
	Hits  realm.Hits
	Marks realm.Marks // nil if the narrow only says what must not be found
}

// SearchText is what of a message's text can be found: as it was written, and as it reads.
func SearchText(b realm.Body) string {
	shown := markdown.SearchText(b.HTML)
	if shown == b.Text {
		return shown
	}
	return b.Text + "\n" + shown
}

// searching is the search part of a narrow: what the index proposes, and what only the texts can decide.
type searching struct {
	c        *Call
	wanted   bool // a term searches
	found    Found
	compared int
	err      error // of comparing
}

// maxCompared is how many texts one search may be compared with: a second or two of reading. Only phrases of the
// commonest fragments need more.
const maxCompared = 200_000

// search looks the words of a narrow up.
func search(c *Call, q query) (*searching, error) {
	s := &searching{c: c, wanted: q.words != "" || q.without != nil}
	var err error
	if q.words != "" {
		if s.found, err = c.House.Search(c.Realm, q.words); err != nil {
			return nil, err
		}
	}
	for _, words := range q.without {
		not, err := c.House.Search(c.Realm, words)
		if err != nil {
			return nil, err
		}
		s.found.Hits = append(s.found.Hits, realm.Hit{Not: not.Hits})
	}
	return s, nil
}

// page is a stretch of a narrow.
func (s *searching) page(c *Call, terms []realm.Term, r realm.Range) (realm.Page, error) {
	if !s.found.Hits.Doubtful() {
		return Look(c, func(v realm.View) (realm.Page, error) {
			n, err := v.Narrow(terms, s.found.Hits)
			if err != nil {
				return realm.Page{}, err
			}
			return n.Page(v.Spot(&n, r.Anchor).In(nil), r, nil), nil
		})
	}
	type place struct {
		n    realm.Narrowed
		spot realm.Spot
	}
	p, err := Look(c, func(v realm.View) (place, error) {
		n, err := v.Narrow(terms, s.found.Hits)
		if err != nil {
			return place{}, err
		}
		n = n.Frozen()
		return place{n, v.Spot(&n, r.Anchor)}, nil
	})
	if err != nil {
		return realm.Page{}, err
	}
	match := s.comparing(p.n.Doubts)
	page := p.n.Page(p.spot.In(match), r, match)
	return page, s.err
}

// comparing reads texts to decide where phrases really are.
func (s *searching) comparing(doubts []realm.Doubt) realm.Match {
	return func(ids []realm.MessageID) []bool {
		out := make([]bool, len(ids))
		if s.compared += len(ids); s.err != nil || s.compared > maxCompared {
			if s.err == nil {
				s.err = realm.Refuse(realm.Busy, "BAD_REQUEST", "This search would have to read too many messages; add a word or a channel to it.")
			}
			return out
		}
		refs, err := Look(s.c, func(v realm.View) ([]realm.BodyRef, error) { return v.Refs(ids), nil })
		if err != nil {
			s.err = err
			return out
		}
		for i, ref := range refs {
			if ref.Message == 0 {
				continue
			}
			text, read := "", false
			has := func(d realm.Doubt) bool {
				if d.Sure.Has(int64(ids[i])) {
					return true
				}
				if !read {
					body, _ := s.c.House.Text(s.c.Realm, ref)
					text, read = strings.ToLower(body.Text), true
				}
				return strings.Contains(text, d.Phrase)
			}
			lacks := func(d realm.Doubt) bool { return !has(d) }
			out[i] = !slices.ContainsFunc(doubts, func(d realm.Doubt) bool {
				if d.Not == nil {
					return lacks(d)
				}
				return d.Maybe.Has(int64(ids[i])) && !slices.ContainsFunc(d.Not, lacks)
			})
		}
		return out
	}
}

// settle finds the stretch of a narrow beforehand if its messages must be compared by their texts.
func (s *searching) settle(c *Call, cmd *realm.FlagNarrow) error {
	if !s.found.Hits.Doubtful() {
		return nil
	}
	page, err := s.page(c, cmd.Terms, cmd.Range.Bounded())
	cmd.Page = &page
	return err
}

// among is which of some messages the caller may read and a narrow lets through.
func (s *searching) among(c *Call, terms []realm.Term, ids []int64) ([]realm.MessageID, error) {
	return s.which(c, terms, ids, realm.View.Among)
}

// which is the messages of a list that select takes and the texts confirm.
func (s *searching) which(c *Call, terms []realm.Term, ids []int64, choose func(realm.View, []realm.Term, realm.Hits, realm.Set) (realm.Narrowed, error)) ([]realm.MessageID, error) {
	var set realm.Set
	for _, id := range ids {
		if id > 0 && id <= realm.MaxMessageID {
			set.Add(id)
		}
	}
	n, err := Look(c, func(v realm.View) (realm.Narrowed, error) {
		n, err := choose(v, terms, s.found.Hits, set)
		if err != nil {
			return n, err
		}
		return n.Frozen(), nil
	})
	if err != nil {
		return nil, err
	}
	var match realm.Match
	if len(n.Doubts) > 0 {
		match = s.comparing(n.Doubts)
	}
	return n.Matching(match), s.err
}

// match is a message's text and topic with the hits marked.
func (s *searching) match(topic string, body realm.Body) (content, subject string) {
	if s.found.Marks == nil {
		return body.HTML, markdown.HighlightText(topic, nil, nil)
	}
	words, phrases := s.found.Marks(markdown.SearchText(body.HTML))
	content = markdown.Highlight(body.HTML, words, phrases)
	words, phrases = s.found.Marks(topic)
	return content, markdown.HighlightText(topic, words, phrases)
}

type matchesNarrowForm struct {
	IDs    []int64     `form:"msg_ids,required,maxitems=5000"`
	Narrow form.Narrow `form:"narrow,required"`
}

func matchesNarrow(c *Call, f matchesNarrowForm) (Answer, error) {
	terms, q := narrowTerms(f.Narrow)
	s, err := search(c, q)
	if err != nil {
		return nil, err
	}
	ids, err := s.which(c, terms, f.IDs, realm.View.Received)
	if err != nil {
		return nil, err
	}
	messages := obj{}
	err = read(c, ids, func(m *realm.Seen, body realm.Body) {
		topic := m.Topic // of a direct message, none: not the empty one
		if m.Channel != 0 {
			topic = Client{}.Topic(topic)
		}
		content, subject := s.match(topic, body)
		messages[m.ID.String()] = obj{"match_content": content, "match_subject": subject}
	})
	if err != nil {
		return nil, err
	}
	return Answer{"messages": messages}, nil
}
