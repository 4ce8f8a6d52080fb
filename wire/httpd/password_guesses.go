package httpd

import (
	"strings"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/trustelem/zxcvbn"
	"github.com/trustelem/zxcvbn/frequency"
)

// dictionaries are those of the library, which fills them when the program starts and keeps them for ever: megabytes
// that are needed only when a password is set. So they are empty except then.
//
//go:linkname dictionaries github.com/trustelem/zxcvbn/matching.defaultRankedDictionnaries
var dictionaries struct {
	ranked map[string]map[string]int // by the name of the list: the rank of each word
}

// wordLists are the words of each list, the most frequent ones first, with spaces between them: a text of 0.8 MB
// instead of slices of 2.2 MB.
var wordLists = map[string]string{}

func init() {
	for name, words := range frequency.FrequencyLists {
		wordLists[name] = strings.Join(words, " ")
	}
	frequency.FrequencyLists, dictionaries.ranked = nil, nil
}

// dictionariesIdle is how long the dictionaries are kept after a password was set. To fill them takes some tens of
// milliseconds.
const dictionariesIdle = time.Minute

// dictionaryUse counts the estimates that use the dictionaries.
var dictionaryUse struct {
	sync.Mutex
	running int
	idle    *time.Timer // empties them; nil: they were not used yet
}

// guessesOf estimates how many guesses a password withstands.
func guessesOf(password string) float64 {
	fillDictionaries()
	defer releaseDictionaries()
	return zxcvbn.PasswordStrength(password, nil).Guesses
}

func fillDictionaries() {
	u := &dictionaryUse
	u.Lock()
	defer u.Unlock()
	u.running++
	if dictionaries.ranked != nil {
		return
	}
	ranked := map[string]map[string]int{}
	for name, list := range wordLists {
		words := map[string]int{}
		rank := 0
		for word := range strings.SplitSeq(list, " ") {
			rank++
			words[strings.ToLower(word)] = rank
		}
		ranked[name] = words
	}
	dictionaries.ranked = ranked
}

func releaseDictionaries() {
	u := &dictionaryUse
	u.Lock()
	defer u.Unlock()
	u.running--
	if u.idle != nil {
		u.idle.Reset(dictionariesIdle)
		return
	}
	u.idle = time.AfterFunc(dictionariesIdle, emptyDictionaries)
}

// emptyDictionaries releases the dictionaries unless an estimate uses them, whose end sets the timer again.
func emptyDictionaries() {
	u := &dictionaryUse
	u.Lock()
	defer u.Unlock()
	if u.running == 0 {
		dictionaries.ranked = nil
	}
}
