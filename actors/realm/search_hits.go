package realm

import "parley/actors/realm/ids"

// SearchHits is the answer of the search index to the words and phrases of a narrow, one hit each. A message matches
// if its text or its topic's name contains each of them.
type SearchHits []SearchHit

// Highlighter returns the words and phrases to highlight in a plain text.
type Highlighter func(text string) (words, phrases []string)

// SearchHit is the answer for one word or phrase.
// The fields Messages and Topics are the messages and topics that contain a word. For a phrase they are the
// candidates.
type SearchHit struct {
	Messages  ids.Set
	Topics    []TopicID  // spellings that contain it
	Unbounded bool       // the index cannot limit the candidates of this phrase: every text may contain it
	Phrase    string     // not "": Messages are candidates, whose texts must be compared with this phrase
	Not       SearchHits // not nil: this hit is a negated search; messages that it finds do not match
}

// NeedTexts reports whether message texts must be compared.
func (h SearchHits) NeedTexts() bool {
	for _, h := range h {
		if h.Phrase != "" || h.Not.NeedTexts() {
			return true
		}
	}
	return false
}

// TextCondition is a phrase that message texts must contain. Messages in TopicMatches match without it: their topic
// contains it.
type TextCondition struct {
	Phrase       string
	TopicMatches ids.Set
	// Not, unless nil, is a negated search instead: a message in Candidates must not meet all of these conditions.
	Not        []TextCondition
	Candidates ids.Set
}

// addSearch adds the conditions of all search terms. Conditions that the index decides become sets; the rest go to
// unverified.
func (n *narrowQuery) addSearch() {
	for _, h := range n.hits {
		if h.Not == nil {
			set, doubts := n.resolveHit(h)
			n.unverified = append(n.unverified, doubts...)
			if set != nil {
				n.addSet(*set, false)
			}
			continue
		}
		var all ids.Set
		all.AddRange(1, int64(n.LastMessageID()))
		var doubts []TextCondition
		for _, h := range h.Not {
			set, d := n.resolveHit(h)
			doubts = append(doubts, d...)
			if set != nil {
				all = ids.Intersection(all, *set)
			}
		}
		if doubts == nil {
			n.addSet(all, true)
		} else {
			n.unverified = append(n.unverified, TextCondition{Not: doubts, Candidates: all})
		}
	}
}

// resolveHit returns the candidates of a hit, nil if every message is one, and the conditions that texts have to
// decide.
func (n *narrowQuery) resolveHit(h SearchHit) (*ids.Set, []TextCondition) {
	var sets []ids.Set
	for _, id := range h.Topics {
		if t := n.Realm.topics.find(id); t != nil {
			if ix := n.index.channels[t.Channel].topics[fold(t.Name)]; ix != nil {
				sets = append(sets, ix.ids)
			}
		}
	}
	var doubts []TextCondition
	if h.Phrase != "" {
		named := ids.Union(sets...)
		doubts, sets = []TextCondition{{Phrase: h.Phrase, TopicMatches: named}}, []ids.Set{named}
	}
	if h.Unbounded {
		return nil, doubts
	}
	set := ids.Union(append(sets, h.Messages)...)
	return &set, doubts
}
