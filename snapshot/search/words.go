package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Query is the text of a search, taken apart.
type Query struct {
	Words   []string // stems, each of which must be there
	Phrases []string // in lower case, each of which must be there as it stands
}

// Parse reads what somebody searches for: words, and phrases in double quotes. A word without a letter or digit can
// only be looked for as it stands.
func Parse(text string) Query {
	var q Query
	seen := map[string]bool{}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if text[0] == '"' {
			if end := strings.IndexByte(text[1:], '"'); end > 0 {
				q.Phrases = append(q.Phrases, strings.ToLower(text[1:1+end]))
				text = text[end+2:]
				continue
			}
		}
		word := text
		if end := strings.IndexFunc(text, unicode.IsSpace); end >= 0 {
			word = text[:end]
		}
		text = text[len(word):]
		any := false
		tokens(word, func(t string, _, _ bool) {
			any = true
			if s := stem(t); !seen[s] {
				seen[s] = true
				q.Words = append(q.Words, s)
			}
		})
		if !any {
			q.Phrases = append(q.Phrases, strings.ToLower(word))
		}
	}
	return q
}

// Highlights is what of a text is to be highlighted: the words that a search for these hits, and the phrases themselves.
func (q Query) Highlights(text string) (words, phrases []string) {
	if len(q.Words) == 0 {
		return nil, q.Phrases
	}
	wanted := make(map[string]bool, len(q.Words))
	for _, w := range q.Words {
		wanted[w] = true
	}
	seen := map[string]bool{}
	tokens(text, func(t string, _, _ bool) {
		if !seen[t] && wanted[stem(t)] {
			seen[t] = true
			words = append(words, t)
		}
	})
	return words, q.Phrases
}

// tokens calls fn with every word of a text in lower case: a run of letters, digits and marks, or one character of a
// script that does not part words. begins and ends say whether something that is no word stands before and after it.
func tokens(text string, fn func(token string, begins, ends bool)) {
	text = strings.ToLower(text)
	start := -1
	for i, c := range text {
		single := isOwnWord(c)
		if start >= 0 && (single || !inWord(c)) {
			fn(text[start:i], start > 0, true)
			start = -1
		}
		switch {
		case single:
			fn(text[i:i+utf8.RuneLen(c)], true, true)
		case start < 0 && inWord(c):
			start = i
		}
	}
	if start >= 0 {
		fn(text[start:], start > 0, false)
	}
}

func inWord(c rune) bool {
	if c < utf8.RuneSelf {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
	}
	return unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
}

// isOwnWord is whether a character is a word of its own: these scripts write without spaces.
func isOwnWord(c rune) bool {
	return c >= 0x0E00 &&
		unicode.In(
			c,
			unicode.Han,
			unicode.Hiragana,
			unicode.Katakana,
			unicode.Thai,
			unicode.Lao,
			unicode.Khmer,
			unicode.Myanmar,
		)
}

// stem is the form under which the inflections of an English word are one; other words stay as they are.
func stem(word string) string {
	if len(word) < 3 {
		return word
	}
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// irregular are the words whose stem does not begin like them.
var irregular = map[string][]string{"die": {"dying"}, "lie": {"lying"}, "tie": {"tying"}}

// stemPrefix is how every word with that stem begins, but for the irregular ones.
func stemPrefix(stem string) string {
	if len(stem) < 3 {
		return stem
	}
	return stem[:len(stem)-1]
}
