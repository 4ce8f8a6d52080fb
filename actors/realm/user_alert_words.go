package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// AlertWords is the row of one user's alert words: spelled as first written, in the order in which they were added.
type AlertWords struct{ List []string }

// Limits of alert words. The length is the protocol's, in code points. The number keeps one user from filling the
// matcher that every message passes through.
const (
	maxAlertWord  = 100
	maxAlertWords = 1000
)

// AlertWordsOf returns a copy of a user's alert words.
func (r *Realm) AlertWordsOf(u UserID) []string {
	if l := r.small.alertWords.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return []string{}
}

// ChangeAlertWords asks to add words to the caller's alert words, or to remove them. Upper and lower case are the same.
// It answers the new list.
type ChangeAlertWords struct {
	Words  []string
	Remove bool
}

func (c ChangeAlertWords) Decide(t *Turn) ([]string, error) {
	if t.Me() == nil {
		return nil, errNotMember()
	}
	words := t.AlertWordsOf(t.User)
	before := slices.Clone(words)
	for _, w := range c.Words {
		w = strings.TrimSpace(w)
		if runeCount(w) > maxAlertWord {
			return nil, BadRequest("alert_words is too long (limit: %d characters)", maxAlertWord)
		}
		same := func(x string) bool { return fold(x) == fold(w) }
		switch {
		case w == "":
		case c.Remove:
			words = slices.DeleteFunc(words, same)
		case !slices.ContainsFunc(words, same):
			words = append(words, w)
		}
	}
	if len(words) > maxAlertWords {
		return nil, BadRequest("Too many alert words (limit: %d)", maxAlertWords)
	}
	if !slices.Equal(before, words) {
		t.Record(&AlertWordsChanged{t.User, words})
	}
	return words, nil
}

// AlertWordsChanged replaces a user's alert words. It is the event alert_words too.
type AlertWordsChanged struct {
	User  UserID
	Words []string
}

func (f *AlertWordsChanged) apply(r *Realm) {
	r.unindexAlertWords(f.User)
	r.small.alertWords.put(f.User, &AlertWords{f.Words})
	r.indexAlertWords(f.User)
}

func (f *AlertWordsChanged) notices(r *Realm) []Notice {
	if to := r.usersAudience(f.User); len(to) > 0 {
		return []Notice{{To: to, Event: f}}
	}
	return nil
}

func (*AlertWordsChanged) EventType() string { return "alert_words" }

// unindexAlertWords removes a user's alert words from the index of users by word.
func (r *Realm) unindexAlertWords(u UserID) {
	for _, w := range r.AlertWordsOf(u) {
		if s := r.index.usersByAlertWord[fold(w)]; s != nil {
			if s.Remove(int64(u)); s.Empty() {
				delete(r.index.usersByAlertWord, fold(w))
			}
		}
	}
}

// indexAlertWords adds a user's alert words to the index of users by word.
func (r *Realm) indexAlertWords(u UserID) {
	for _, w := range r.AlertWordsOf(u) {
		openSet(r.index.usersByAlertWord, fold(w)).Add(int64(u))
	}
}

// allAlertWords returns the alert words of all users: case-folded, sorted, without duplicates.
func (r *Realm) allAlertWords() []string {
	words := make([]string, 0, len(r.index.usersByAlertWord))
	for w := range r.index.usersByAlertWord {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// alertedUsers returns the active users that will receive a message and have an alert word in it.
func (t *Turn) alertedUsers(f *MessageSent) []UserID {
	var alerted ids.Set
	for _, w := range f.Content.AlertWords {
		if users := t.index.usersByAlertWord[fold(w)]; users != nil {
			alerted.Union(*users)
		}
	}
	var receivers []UserID
	for _, u := range ids.IDs[UserID](alerted) {
		if user := t.Find(u); user != nil && user.Active && t.isRecipient(f, u) {
			receivers = append(receivers, u)
		}
	}
	return receivers
}
