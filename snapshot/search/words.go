package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"parley/actors/realm"
)

// Query is a parsed search text.
type Query struct {
	Words   []string // stems that must all occur
	Phrases []string // in lower case; all must occur exactly
}

// Parse parses a search text into words, and phrases in double quotes. Stop words are left out, except in phrases. A
// word becomes a phrase if it has no letter or digit, or joins only stop words with other characters, like "C++" and
// "don't". A query of nothing but stop words is empty: it finds no message.
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
		n, stopWord := 0, ""
		onlyStopWords := true
		tokens(word, func(t string, _, _ bool) {
			n++
			if realm.IsStopWord(t) {
				stopWord = t
				return
			}
			onlyStopWords = false
			if s := stem(t); !seen[s] {
				seen[s] = true
				q.Words = append(q.Words, s)
			}
		})
		switch phrase := strings.ToLower(word); {
		case n == 0:
			q.Phrases = append(q.Phrases, phrase)
		case onlyStopWords:
			if phrase = strings.Trim(phrase, sentenceCharacters); n > 1 || phrase != stopWord {
				q.Phrases = append(q.Phrases, phrase)
			}
		}
	}
	return q
}

// sentenceCharacters can follow or precede a word of a sentence without being a part of it.
const sentenceCharacters = ".,;:!?'\"()[]"

// Empty reports whether the query consists of stop words, so that it finds no message.
func (q Query) Empty() bool { return len(q.Words)+len(q.Phrases) == 0 }

// Highlights returns the parts of a text to be highlighted. words are the words of the text that match the query's
// words or words of its phrases, without stop words. phrases are those to be highlighted as a whole: phrases of stop
// words or without any word, and those that begin or end within a word of the text.
func (q Query) Highlights(text string) (words, phrases []string) {
	wanted := map[string]bool{} // by stem; true: the text contains it
	for _, w := range q.Words {
		wanted[w] = false
	}
	stems := make([][]string, len(q.Phrases))
	for i, p := range q.Phrases {
		tokens(p, func(t string, _, _ bool) {
			if !realm.IsStopWord(t) {
				s := stem(t)
				stems[i] = append(stems[i], s)
				wanted[s] = false
			}
		})
	}
	if len(wanted) > 0 {
		seen := map[string]bool{}
		tokens(text, func(t string, _, _ bool) {
			if seen[t] {
				return
			}
			seen[t] = true
			s := stem(t)
			if _, is := wanted[s]; is {
				wanted[s] = true
				words = append(words, t)
			}
		})
	}
	missing := func(stem string) bool { return !wanted[stem] }
	for i, p := range q.Phrases {
		if stems[i] == nil || slices.ContainsFunc(stems[i], missing) {
			phrases = append(phrases, p)
		}
	}
	return words, phrases
}

// tokens calls fn with every word of a text in lower case. A word is a run of letters, digits and marks, or one
// character of a script that does not separate words. begins and ends report whether a character that is not part of a
// word precedes and follows it.
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

// isOwnWord reports whether a character is a word of its own. These scripts do not put spaces between words.
func isOwnWord(c rune) bool {
	return c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// stem returns the common form of an English word's inflections. Other words are returned unchanged.
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

// irregular are the words that do not begin with their stem.
var irregular = map[string][]string{"die": {"dying"}, "lie": {"lying"}, "tie": {"tying"}}

// stemPrefix returns the beginning that all words with the stem have, apart from the irregular ones.
func stemPrefix(stem string) string {
	if len(stem) < 3 {
		return stem
	}
	return stem[:len(stem)-1]
}
