package actors

import "parley/actors/realm"

// Search is the full-text index, behind the journal.
type Search interface {
	// Attach takes a realm up whose journal ends at last and whose rows stand at rows; text reads its texts.
	Attach(id realm.ID, last, rows realm.Seq, text realm.TextReader)
	// Feed notes what a commit wrote; it never blocks.
	Feed(id realm.ID, upto realm.Seq, texts []realm.TextWrite)
	// Find answers in the state of a number or later; next hands out the topics made after one. It reports false while
	// the index is far behind.
	Find(id realm.ID, upto realm.Seq, words string, next func(after realm.TopicID) ([]realm.TopicName, error)) (hits realm.SearchHits, marks realm.Highlighter, ready bool, err error)
}

// noSearch is a house without an index: tools that work on a stopped server.
type noSearch struct{}

func (noSearch) Attach(realm.ID, realm.Seq, realm.Seq, realm.TextReader) {}
func (noSearch) Feed(realm.ID, realm.Seq, []realm.TextWrite)             {}
func (noSearch) Find(realm.ID, realm.Seq, string, func(realm.TopicID) ([]realm.TopicName, error)) (realm.SearchHits, realm.Highlighter, bool, error) {
	return nil, nil, false, nil
}

// topicsPerView is how many topic names one look at a realm copies: about half a millisecond.
const topicsPerView = 5000

// Search looks words up in the full-text index.
func (h *Server) Search(id realm.ID, words string) (realm.SearchHits, realm.Highlighter, error) {
	system := realm.Caller{System: true, Client: "Internal"}
	seq, err := h.View(id, system, func(v realm.View) (any, error) { return v.Seq(), nil })
	if err != nil {
		return nil, nil, err
	}
	hits, marks, ready, err := h.search.Find(id, seq.(realm.Seq), words, func(after realm.TopicID) ([]realm.TopicName, error) {
		list, err := h.View(id, system, func(v realm.View) (any, error) { return v.TopicsAfter(after, topicsPerView), nil })
		names, _ := list.([]realm.TopicName)
		return names, err
	})
	if err != nil {
		return nil, nil, err
	}
	if !ready {
		return nil, nil, realm.Refuse(realm.Busy, "BAD_REQUEST", "The search index is catching up; try again in a moment.")
	}
	return hits, marks, nil
}
