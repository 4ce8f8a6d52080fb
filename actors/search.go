package actors

import "parley/actors/realm"

// Search is the full-text index. It is updated after the journal. Package snapshot/search implements it.
type Search interface {
	// Attach adds a realm. last is the last fact of its journal, rows the sequence number of its rows; text reads its
	// texts.
	Attach(id realm.ID, last, rows realm.Seq, text realm.TextReader)
	// Detach removes a realm that leaves memory. Attach may add it again at once.
	Detach(id realm.ID)
	// Feed tells the index which texts a commit wrote, and the last fact of the commit. It never blocks.
	Feed(id realm.ID, upto realm.Seq, texts []realm.TextWrite)
	// Find searches in the state of fact upto or a later one. next returns the topics that were created after a topic.
	// ready is false while the index is far behind.
	Find(id realm.ID, upto realm.Seq, words string, next TopicPager) (
		hits realm.SearchHits, marks realm.Highlighter, ready bool, err error)
}

// TopicPager returns the next topics after one, ordered by id; none if there are no more.
type TopicPager = func(after realm.TopicID) ([]realm.TopicName, error)

// noSearch is used where there is no index: by tools that work on a stopped server.
type noSearch struct{}

func (noSearch) Attach(realm.ID, realm.Seq, realm.Seq, realm.TextReader) {}
func (noSearch) Detach(realm.ID)                                         {}
func (noSearch) Feed(realm.ID, realm.Seq, []realm.TextWrite)             {}
func (noSearch) Find(realm.ID, realm.Seq, string, TopicPager) (realm.SearchHits, realm.Highlighter, bool, error) {
	return nil, nil, false, nil
}

// topicsPerView is how many topic names one view copies: about half a millisecond.
const topicsPerView = 5000

var errSearchBehind = realm.Refuse(realm.Busy, "BAD_REQUEST", "The search index is catching up; try again in a moment.")

// Search looks words up in the full-text index. The result is as new as everything that the caller can have seen. The
// highlighter is nil if the words only exclude messages.
func (srv *Server) Search(id realm.ID, words string) (realm.SearchHits, realm.Highlighter, error) {
	if r := srv.find(id); r != nil && r.source != nil {
		return nil, nil, realm.ErrNotOwner // the owner has the index
	}
	system := realm.System
	seq, err := srv.View(id, system, func(v realm.View) (any, error) { return v.Seq(), nil })
	if err != nil {
		return nil, nil, err
	}
	next := func(after realm.TopicID) ([]realm.TopicName, error) {
		list, err := srv.View(id, system, func(v realm.View) (any, error) {
			return v.TopicsAfter(after, topicsPerView), nil
		})
		names, _ := list.([]realm.TopicName)
		return names, err
	}
	hits, marks, ready, err := srv.search.Find(id, seq.(realm.Seq), words, next)
	if err != nil {
		return nil, nil, err
	}
	if !ready {
		return nil, nil, errSearchBehind
	}
	return hits, marks, nil
}
