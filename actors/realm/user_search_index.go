package realm

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// PersonText is the texts by which a user is found.
type PersonText struct {
	ID          UserID
	Name, Email string
}

// PeopleIndex finds users by the beginnings of words. It never changes after it was built. It takes about 40 bytes for
// an account with two names: of each word it keeps the first eight bytes and the account. A search compares the rest
// with the row.
type PeopleIndex struct {
	names  prefixList // whole names, in the order of names
	words  prefixList // the words of names without the first, in the order of words and then of names
	emails prefixList // addresses, in their order
}

// prefixList is ids sorted by texts, with the first bytes of the texts.
type prefixList struct {
	keys []uint64
	ids  []uint32
}

// keyBytes is how many bytes of a text a prefixList keeps.
const keyBytes = 8

// prefixKey returns the first bytes of a text as a number, so that numbers have the order of texts.
func prefixKey(text string) uint64 {
	var b [keyBytes]byte
	copy(b[:], text)
	return binary.BigEndian.Uint64(b[:])
}

// BuildPeopleIndex builds an index. It takes about two seconds for a million users, so it is called outside of turns.
func BuildPeopleIndex(list []PersonText) *PeopleIndex {
	entries := make([]textEntry, 0, len(list))
	for _, p := range list {
		entries = append(entries, newTextEntry(fold(p.Name), uint32(p.ID), uint32(p.ID)))
	}
	x := &PeopleIndex{names: sortTexts(entries)}
	var words []textEntry
	for i, e := range entries { // in the order of names
		_, rest, _ := strings.Cut(e.text, " ")
		for _, w := range strings.Fields(rest) {
			words = append(words, newTextEntry(w, e.id, uint32(i)))
		}
	}
	x.words = sortTexts(words)
	entries = entries[:0]
	for _, p := range list {
		entries = append(entries, newTextEntry(FoldEmail(p.Email), uint32(p.ID), uint32(p.ID)))
	}
	x.emails = sortTexts(entries)
	return x
}

// textEntry is a text of an account while the index is built. Entries with the same text are in the order of rank.
type textEntry struct {
	key      uint64
	text     string
	id, rank uint32
}

func newTextEntry(text string, id, rank uint32) textEntry {
	return textEntry{prefixKey(text), text, id, rank}
}

func sortTexts(entries []textEntry) prefixList {
	slices.SortFunc(entries, func(a, b textEntry) int {
		if a.key != b.key { // for nearly all, which is much faster than to compare the texts
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.rank, b.rank))
	})
	out := prefixList{make([]uint64, len(entries)), make([]uint32, len(entries))}
	for i, e := range entries {
		out.keys[i], out.ids[i] = e.key, e.id
	}
	return out
}

// SizeBytes returns the memory of the index.
func (x *PeopleIndex) SizeBytes() int {
	return 12 * (len(x.names.ids) + len(x.words.ids) + len(x.emails.ids))
}

// starting returns the ids of the texts whose first bytes can begin with a prefix. Texts that do not begin with it are
// among them if the prefix is longer than those bytes.
func (l *prefixList) starting(prefix string) []uint32 {
	from := prefixKey(prefix)
	to := from
	if n := len(prefix); n < keyBytes {
		to |= 1<<(8*(keyBytes-n)) - 1
	}
	lo, _ := slices.BinarySearch(l.keys, from)
	hi := len(l.keys)
	if to != ^uint64(0) {
		hi, _ = slices.BinarySearch(l.keys, to+1)
	}
	return l.ids[lo:hi]
}

// count returns how many words of names can begin with a text.
func (x *PeopleIndex) count(text string) int {
	return len(x.names.starting(text)) + len(x.words.starting(text))
}

// peopleSearch is the state of the search for users of one organization.
type peopleSearch struct {
	index   *PeopleIndex
	changed ids.Set // accounts that have changed since the texts of the index were read
	// A build in progress; buildSince is 0 if there is none.
	buildSince   int64
	buildNumber  int
	buildChanged ids.Set // accounts that have changed since the build began
}

func (p *peopleSearch) markChanged(u UserID) {
	if p.index != nil {
		p.changed.Add(int64(u))
	}
	if p.buildSince != 0 {
		p.buildChanged.Add(int64(u))
	}
}

const (
	// fewUsers is the number of accounts up to which a search looks at each: less than a millisecond.
	fewUsers = 2000
	// maxPeopleChanged is how many accounts can have changed before the index is built again. A search looks at each
	// of them: about a millisecond.
	maxPeopleChanged = 5000
	// peopleBuildTime is how many seconds a build can take. After it another request builds the index.
	peopleBuildTime = 30
)

// PeopleBuild says what a request does before it searches.
type PeopleBuild int

const (
	PeopleReady PeopleBuild = iota // search
	PeopleBegun                    // read the texts, build the index and store it
	PeopleWait                     // another request builds the index
)

// BeginPeopleBuild begins to build the index of users if that is needed. number identifies the build.
func (v View) BeginPeopleBuild() (step PeopleBuild, number int) {
	p := &v.cache.people
	building := p.buildSince != 0 && v.Now-p.buildSince < peopleBuildTime
	switch {
	case v.users.size() <= fewUsers:
		return PeopleReady, 0
	case p.index != nil && (p.changed.Len() <= maxPeopleChanged || building):
		return PeopleReady, 0
	case building:
		return PeopleWait, 0
	}
	p.buildSince, p.buildChanged = max(v.Now, 1), ids.Set{}
	p.buildNumber++
	return PeopleBegun, p.buildNumber
}

// PeopleTexts appends the texts of at most max accounts with ids above after. It returns the id to continue after, and
// whether there are more.
func (v View) PeopleTexts(list []PersonText, after UserID, max int) (out []PersonText, last UserID, more bool) {
	last, more = v.UsersAfter(after, max, func(u *User) {
		if !u.System {
			list = append(list, PersonText{u.ID, u.Name, u.Email})
		}
	})
	return list, last, more
}

// FinishPeopleBuild stores an index, unless another build has begun since.
func (v View) FinishPeopleBuild(number int, x *PeopleIndex) {
	if p := &v.cache.people; p.buildSince != 0 && p.buildNumber == number {
		*p = peopleSearch{index: x, changed: p.buildChanged, buildNumber: number}
	}
}
