package realm

// Hits is what the search index proposes for the words and phrases a narrow searches for. A message matches when each is
// in its text or in the name of its topic.
type Hits []Hit

// Hit is the places of one word, or where one phrase may be.
type Hit struct {
	Messages Set
	Topics   []TopicID // whose name has it
	Any      bool      // the index cannot narrow this phrase down: every text may have it
	Phrase   string    // not "": which of Messages have it is for the texts to say
}

// Doubt is a phrase that the texts must be compared with, except in messages whose topic has it.
type Doubt struct {
	Phrase string
	Sure   Set
}

// search adds the messages in which every word occurs, and every phrase may.
func (n *narrowing) search() {
	for _, h := range n.hits {
		var sets []Set
		for _, id := range h.Topics {
			if t := n.Realm.topics.find(id); t != nil {
				if ix := n.by.channel[t.Channel].topics[fold(t.Name)]; ix != nil {
					sets = append(sets, ix.ids)
				}
			}
		}
		if h.Phrase != "" {
			named := Either(sets...)
			n.doubts = append(n.doubts, Doubt{h.Phrase, named})
			sets = []Set{named}
		}
		if !h.Any {
			n.add(Either(append(sets, h.Messages)...), false)
		}
	}
}
