package realm

import "parley/actors/realm/ids"

// SearchHits is what the search index proposes for the words and phrases a narrow searches for. A message matches when each is
// in its text or in the name of its topic.
type SearchHits []SearchHit

// Highlighter is what of a plain text a search hits, to be highlighted: whole words, and phrases.
type Highlighter func(text string) (words, phrases []string)

// SearchHit is the places of one word, or where one phrase may be.
type SearchHit struct {
	Messages  ids.Set
	Topics    []TopicID  // whose name has it
	Unbounded bool       // the index cannot narrow this phrase down: every text may have it
	Phrase    string     // not "": which of Messages have it is for the texts to say
	Not       SearchHits // not nil: a search of its own instead, and what it finds does not match
}

// NeedTexts reports whether texts must be compared.
func (h SearchHits) NeedTexts() bool {
	for _, h := range h {
		if h.Phrase != "" || h.Not.NeedTexts() {
			return true
		}
	}
	return false
}

// TextCondition is a phrase that the texts must be compared with, except in messages whose topic has it.
type TextCondition struct {
	Phrase       string
	TopicMatches ids.Set
	Not          []TextCondition // not nil: phrases instead, of which a message of Maybe must not have all
	Candidates   ids.Set
}

// addSearch adds the messages in which every word occurs, and every phrase may, and leaves out what must not be found.
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

// resolveHit is the messages in which a word occurs or a phrase may, nil if that may be all, and what is in doubt then.
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
