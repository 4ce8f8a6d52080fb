package realm

// Hits is what the search index proposes for the words and phrases a narrow searches for. A message matches when each is
// in its text or in the name of its topic.
type Hits []Hit

// Marks is what of a plain text a search hits, to be highlighted: whole words, and phrases.
type Marks func(text string) (words, phrases []string)

// Hit is the places of one word, or where one phrase may be.
type Hit struct {
	Messages Set
	Topics   []TopicID // whose name has it
	Any      bool      // the index cannot narrow this phrase down: every text may have it
	Phrase   string    // not "": which of Messages have it is for the texts to say
	Not      Hits      // not nil: a search of its own instead, and what it finds does not match
}

// Doubtful reports whether texts must be compared.
func (h Hits) Doubtful() bool {
	for _, h := range h {
		if h.Phrase != "" || h.Not.Doubtful() {
			return true
		}
	}
	return false
}

// Doubt is a phrase that the texts must be compared with, except in messages whose topic has it.
type Doubt struct {
	Phrase string
	Sure   Set
	Not    []Doubt // not nil: phrases instead, of which a message of Maybe must not have all
	Maybe  Set
}

// search adds the messages in which every word occurs, and every phrase may, and leaves out what must not be found.
func (n *narrowing) search() {
	for _, h := range n.hits {
		if h.Not == nil {
			set, doubts := n.hit(h)
			n.doubts = append(n.doubts, doubts...)
			if set != nil {
				n.add(*set, false)
			}
			continue
		}
		var all Set
		all.AddRange(1, int64(n.LastMessage()))
		var doubts []Doubt
		for _, h := range h.Not {
			set, d := n.hit(h)
			doubts = append(doubts, d...)
			if set != nil {
				all = Both(all, *set)
			}
		}
		if doubts == nil {
			n.add(all, true)
		} else {
			n.doubts = append(n.doubts, Doubt{Not: doubts, Maybe: all})
		}
	}
}

// hit is the messages in which a word occurs or a phrase may, nil if that may be all, and what is in doubt then.
func (n *narrowing) hit(h Hit) (*Set, []Doubt) {
	var sets []Set
	for _, id := range h.Topics {
		if t := n.Realm.topics.find(id); t != nil {
			if ix := n.by.channel[t.Channel].topics[fold(t.Name)]; ix != nil {
				sets = append(sets, ix.ids)
			}
		}
	}
	var doubts []Doubt
	if h.Phrase != "" {
		named := Either(sets...)
		doubts, sets = []Doubt{{Phrase: h.Phrase, Sure: named}}, []Set{named}
	}
	if h.Any {
		return nil, doubts
	}
	set := Either(append(sets, h.Messages)...)
	return &set, doubts
}
