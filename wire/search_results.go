package wire

import (
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/wire/form"
	"parley/wire/markdown"
)

var searchEndpoints = []Endpoint{
	Custom("GET", "/messages/matches_narrow", matchesNarrow),
}

// matchesAnswer is the messages that match, by id.
type matchesAnswer struct {
	Messages map[string]matchedTexts `json:"messages"`
}

// matchedTexts is the text and topic of a message with the search hits marked.
type matchedTexts struct {
	Content string `json:"match_content"`
	Topic   string `json:"match_subject"`
}

// searchResult is the answer of the search index to the words of a search.
type searchResult struct {
	Hits  realm.SearchHits
	Marks realm.Highlighter // nil if all search terms are negated
}

// SearchText returns the searchable text of a message: its Markdown source and its rendered text, without the addresses
// of links that no reader sees.
func SearchText(b realm.Body) string {
	rendered := markdown.SearchText(b.HTML)
	if rendered == b.Text {
		return rendered
	}
	return markdown.VisibleSource(b.Text) + "\n" + rendered
}

// phraseMatcher returns a function that reports whether the text of a message contains a phrase, which is in lower
// case. An address that no reader sees does not count.
func phraseMatcher(b realm.Body) func(phrase string) bool {
	source := strings.ToLower(b.Text)
	visible := strings.ToLower(markdown.VisibleSource(b.Text))
	rendered := ""
	return func(phrase string) bool {
		if !strings.Contains(source, phrase) {
			return false
		}
		if strings.Contains(visible, phrase) {
			return true
		}
		if rendered == "" {
			rendered = strings.ToLower(markdown.SearchText(b.HTML))
		}
		return strings.Contains(rendered, phrase)
	}
}

// narrowSearch is the search part of a narrow: the candidates of the index, and the comparison with message texts
// that confirms them.
type narrowSearch struct {
	c        *Call
	wanted   bool // the narrow has a search term
	found    searchResult
	compared int
	err      error // of comparing texts
}

// maxTextsCompared is how many texts one search can be compared with: one or two seconds of reading. Only phrases of
// very common fragments need more.
const maxTextsCompared = 200_000

// newNarrowSearch looks up the words of a narrow in the search index.
func newNarrowSearch(c *Call, q searchQuery) (*narrowSearch, error) {
	s := &narrowSearch{c: c, wanted: q.words != "" || q.excluded != nil}
	var err error
	if q.words != "" {
		if s.found.Hits, s.found.Marks, err = c.Server.Search(c.Realm, q.words); err != nil {
			return nil, err
		}
	}
	for _, words := range q.excluded {
		hits, _, err := c.Server.Search(c.Realm, words)
		if err != nil {
			return nil, err
		}
		s.found.Hits = append(s.found.Hits, realm.SearchHit{Not: hits})
	}
	return s, nil
}

// page returns a range of the messages of a narrow.
func (s *narrowSearch) page(c *Call, terms []realm.Term, r realm.PageRange) (realm.Page, error) {
	if !s.found.Hits.NeedTexts() {
		return Read(c, func(v realm.View) (realm.Page, error) {
			n, err := v.Narrow(terms, s.found.Hits)
			if err != nil {
				return realm.Page{}, err
			}
			return n.Page(v.ResolveAnchor(&n, r.Anchor).ID(nil), r, nil), nil
		})
	}
	type place struct {
		n    realm.NarrowResult
		spot realm.ResolvedAnchor
	}
	p, err := Read(c, func(v realm.View) (place, error) {
		n, err := v.Narrow(terms, s.found.Hits)
		if err != nil {
			return place{}, err
		}
		n = n.Frozen()
		return place{n, v.ResolveAnchor(&n, r.Anchor)}, nil
	})
	if err != nil {
		return realm.Page{}, err
	}
	match := s.textMatcher(p.n.Unverified)
	page := p.n.Page(p.spot.ID(match), r, match)
	return page, s.err
}

// textMatcher returns a function that reads texts to decide which candidates really contain the phrases.
func (s *narrowSearch) textMatcher(doubts []realm.TextCondition) realm.BatchFilter {
	return func(ids []realm.MessageID) []bool {
		out := make([]bool, len(ids))
		if s.compared += len(ids); s.err != nil || s.compared > maxTextsCompared {
			if s.err == nil {
				s.err = realm.Refuse(realm.Busy, "BAD_REQUEST",
					"This search would have to read too many messages; add a word or a channel to it.")
			}
			return out
		}
		refs, err := Read(s.c, func(v realm.View) ([]realm.BodyRef, error) { return v.BodyRefs(ids), nil })
		if err != nil {
			s.err = err
			return out
		}
		for i, ref := range refs {
			if ref.Message == 0 {
				continue
			}
			var contains func(phrase string) bool
			has := func(d realm.TextCondition) bool {
				if d.TopicMatches.Has(int64(ids[i])) {
					return true
				}
				if contains == nil {
					body, _, err := s.c.Server.Text(s.c.Realm, ref)
					if err != nil {
						s.err = err // whether the message is a result is unknown
					}
					contains = phraseMatcher(body)
				}
				return contains(d.Phrase)
			}
			lacks := func(d realm.TextCondition) bool { return !has(d) }
			out[i] = !slices.ContainsFunc(doubts, func(d realm.TextCondition) bool {
				if d.Not == nil {
					return lacks(d)
				}
				return d.Candidates.Has(int64(ids[i])) && !slices.ContainsFunc(d.Not, lacks)
			})
		}
		return out
	}
}

// fixPage determines the messages of a flag change in advance, if the narrow must be compared with texts.
func (s *narrowSearch) fixPage(c *Call, cmd *realm.FlagNarrow) error {
	if !s.found.Hits.NeedTexts() {
		return nil
	}
	page, err := s.page(c, cmd.Terms, cmd.Range.Bounded())
	cmd.Page = &page
	return err
}

// messagesAmong returns those of some messages that the caller can read and the narrow includes.
func (s *narrowSearch) messagesAmong(c *Call, terms []realm.Term, ids []int64) ([]realm.MessageID, error) {
	return s.filterIDs(c, terms, ids, realm.View.NarrowAmong)
}

// filterIDs returns the messages of a list that choose selects and the texts confirm.
func (s *narrowSearch) filterIDs(
	c *Call, terms []realm.Term, idList []int64, choose func(realm.View, []realm.Term, realm.SearchHits,
		ids.Set) (realm.NarrowResult, error),
) ([]realm.MessageID, error) {
	var set ids.Set
	for _, id := range idList {
		if id > 0 && id <= realm.MaxMessageID {
			set.Add(id)
		}
	}
	n, err := Read(c, func(v realm.View) (realm.NarrowResult, error) {
		n, err := choose(v, terms, s.found.Hits, set)
		if err != nil {
			return n, err
		}
		return n.Frozen(), nil
	})
	if err != nil {
		return nil, err
	}
	var match realm.BatchFilter
	if len(n.Unverified) > 0 {
		match = s.textMatcher(n.Unverified)
	}
	return n.AllIDs(match), s.err
}

// highlight returns a message's text and topic with the search hits marked.
func (s *narrowSearch) highlight(topic string, body realm.Body) (content, subject string) {
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

func matchesNarrow(c *Call, f matchesNarrowForm) (*matchesAnswer, error) {
	terms, query := narrowTerms(f.Narrow)
	search, err := newNarrowSearch(c, query)
	if err != nil {
		return nil, err
	}
	ids, err := search.filterIDs(c, terms, f.IDs, realm.View.NarrowReceived)
	if err != nil {
		return nil, err
	}
	messages, memory := map[string]matchedTexts{}, answerMemory{call: c}
	err = forEachMessage(c, ids, func(m *realm.VisibleMessage, body realm.Body) error {
		topic := m.Topic // direct messages have no topic, which is not the empty topic
		if m.Channel != 0 {
			topic = Client{}.Topic(topic)
		}
		content, subject := search.highlight(topic, body)
		messages[m.ID.String()] = matchedTexts{content, subject}
		if err := memory.add(foundMessageBytes + len(content) + len(subject)); err != nil {
			return err
		}
		if memory.used > MaxPageBytes && len(messages) > 1 {
			return errAnswerTooLarge()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &matchesAnswer{messages}, nil
}

// forEachMessage calls fn for each message with its text, until fn returns an error. It reads the messages in short
// views, so that other requests do not wait. Messages that were deleted meanwhile are left out;
// a damaged text ends the loop with an error.
func forEachMessage(c *Call, ids []realm.MessageID, fn func(*realm.VisibleMessage, realm.Body) error) error {
	for len(ids) > 0 {
		part := ids[:min(len(ids), messagesPerView)]
		ids = ids[len(part):]
		seen, err := Read(c, func(v realm.View) ([]realm.VisibleMessage, error) { return v.VisibleMessages(part), nil })
		if err != nil {
			return err
		}
		fetchTexts(c, seen)
		for i := range seen {
			body, ok, err := c.Server.Text(c.Realm, seen[i].Ref)
			if ok {
				err = fn(&seen[i], body)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
