package markdown

import (
	"slices"
	"strings"
)

const (
	beforeAlert = " \n`(\".,';[*>"
	afterAlert  = " \n`)?:.,';]!*"
)

// AlertMatcher finds any number of alert words in one pass over a text, with the Aho-Corasick automaton. It is
// immutable.
type AlertMatcher struct {
	nodes []alertNode
	edges []alertEdge
	words []int32 // next word with the same spelling, by word
	size  []int   // bytes, by word
	first [256]int32
}

// alertNode is a state of the automaton: the longest prefix of any word that is a suffix of the text so far.
type alertNode struct {
	edges, count int32 // the edges to longer prefixes, sorted by byte
	fail         int32 // the state of the next shorter prefix
	word         int32 // the first word that ends here, or -1
	output       int32 // the next shorter state at which a word ends, or 0
}

type alertEdge struct {
	c  byte
	to int32
}

// NewAlertMatcher returns a matcher for words. Find refers to them by index; empty words are never found.
func NewAlertMatcher(words []string) *AlertMatcher {
	m := &AlertMatcher{words: make([]int32, len(words)), size: make([]int, len(words))}
	type build struct{ children map[byte]int32 }
	tree := []build{{}}
	m.nodes = []alertNode{{word: -1}}
	for w, word := range words {
		m.words[w] = -1
		word = strings.ToLower(word)
		m.size[w] = len(word)
		if word == "" {
			continue
		}
		at := int32(0)
		for i := 0; i < len(word); i++ {
			next, ok := tree[at].children[word[i]]
			if !ok {
				next = int32(len(tree))
				tree = append(tree, build{})
				m.nodes = append(m.nodes, alertNode{word: -1})
				if tree[at].children == nil {
					tree[at].children = map[byte]int32{}
				}
				tree[at].children[word[i]] = next
			}
			at = next
		}
		m.words[w] = m.nodes[at].word
		m.nodes[at].word = int32(w)
	}
	for i := range tree {
		m.nodes[i].edges = int32(len(m.edges))
		for c, to := range tree[i].children {
			m.edges = append(m.edges, alertEdge{c, to})
		}
		edges := m.edges[m.nodes[i].edges:]
		slices.SortFunc(edges, func(a, b alertEdge) int { return int(a.c) - int(b.c) })
		m.nodes[i].count = int32(len(edges))
	}
	for _, e := range m.edges[:m.nodes[0].count] {
		m.first[e.c] = e.to
	}
	m.link()
	return m
}

// link computes fail and output of all states, level by level.
func (m *AlertMatcher) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		n := m.nodes[at]
		for _, e := range m.edges[n.edges : n.edges+n.count] {
			child := &m.nodes[e.to]
			if at != 0 {
				child.fail = m.step(n.fail, e.c)
			}
			child.output = child.fail
			if m.nodes[child.fail].word < 0 {
				child.output = m.nodes[child.fail].output
			}
			queue = append(queue, e.to)
		}
	}
}

func (m *AlertMatcher) step(at int32, c byte) int32 {
	for at != 0 {
		n := &m.nodes[at]
		for _, e := range m.edges[n.edges : n.edges+n.count] {
			if e.c == c {
				return e.to
			}
			if e.c > c {
				break
			}
		}
		at = n.fail
	}
	return m.first[c]
}

// Find returns the indexes of the words that occur in text outside fenced code, in rising order. It ignores case. A
// word counts only between the characters of beforeAlert and afterAlert, so "cat" is not found in "concatenate".
func (m *AlertMatcher) Find(text string) (found []int) {
	if len(m.nodes) == 1 {
		return nil
	}
	text = strings.ToLower(alertText(text))
	at := int32(0)
	for i := 0; i < len(text); i++ {
		at = m.step(at, text[i])
		for s := at; s != 0; s = m.nodes[s].output {
			w := m.nodes[s].word
			if w < 0 || slices.Contains(found, int(w)) || !hasBoundaries(text, i+1-m.size[w], i+1) {
				continue
			}
			for ; w >= 0; w = m.words[w] {
				found = append(found, int(w))
			}
		}
	}
	slices.Sort(found)
	return found
}

// alertText returns the part of a text in which words count.
func alertText(text string) string {
	text = normalize(text)
	r := renderer{options: &Options{}, wordsOnly: true}
	return r.replaceFences(text)
}

func hasBoundaries(text string, start, end int) bool {
	return (start == 0 || strings.IndexByte(beforeAlert, text[start-1]) >= 0) &&
		(end == len(text) || strings.IndexByte(afterAlert, text[end]) >= 0)
}
