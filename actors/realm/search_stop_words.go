package realm

import (
	_ "embed"
	"strings"
)

//go:embed search_stop_words.txt
var stopWordsText string

// stopWords are the words of the list in their order, isStopWord the same as a set.
var stopWords, isStopWord = func() (list []string, set map[string]bool) {
	set = map[string]bool{}
	for line := range strings.Lines(stopWordsText) {
		words, _, _ := strings.Cut(line, "|")
		for _, w := range strings.Fields(words) {
			list, set[w] = append(list, w), true
		}
	}
	return list, set
}()

// StopWords returns the words that searches ignore, because nearly every text contains them. Clients get the list, so
// that they do not mark these words either. The caller must not change it.
func StopWords() []string { return stopWords }

// IsStopWord reports whether searches ignore a word, which is in lower case.
func IsStopWord(word string) bool { return isStopWord[word] }
