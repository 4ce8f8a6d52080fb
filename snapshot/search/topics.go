package search

import (
	"strings"
	"sync"

	"parley/actors/realm"
)

// topicNames are the names of an organization's topics. A name never changes; new ones are appended.
type topicNames struct {
	mu    sync.Mutex
	last  realm.TopicID
	ids   []realm.TopicID
	names []string // in lower case, one for each id
	words map[string][]realm.TopicID
}

func (t *topicNames) update(next func(realm.TopicID) ([]realm.TopicName, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.words == nil {
		t.words = map[string][]realm.TopicID{}
	}
	for {
		list, err := next(t.last)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, n := range list {
			t.last = n.ID
			t.ids, t.names = append(t.ids, n.ID), append(t.names, strings.ToLower(n.Name))
			tokens(n.Name, func(w string, _, _ bool) {
				w = stem(w)
				if l := t.words[w]; len(l) == 0 || l[len(l)-1] != n.ID {
					t.words[w] = append(l, n.ID)
				}
			})
		}
	}
}

// withStem returns the topics with a word of the stem. Lists are only appended to, so the result stays valid.
func (t *topicNames) withStem(stem string) []realm.TopicID {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.words[stem]
	return l[:len(l):len(l)]
}

func (t *topicNames) containing(text string) []realm.TopicID {
	t.mu.Lock()
	ids, names := t.ids, t.names
	t.mu.Unlock()
	var out []realm.TopicID
	for i, n := range names {
		if strings.Contains(n, text) {
			out = append(out, ids[i])
		}
	}
	return out
}
