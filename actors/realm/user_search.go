package realm

import (
	"cmp"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// PeopleQuery is a search for users.
type PeopleQuery struct {
	Text        string // beginnings of the words of a name, or of an address; "": all users
	Active      bool   // active accounts; they are first
	Deactivated bool
	People      bool
	Bots        bool
	Offset      int // how many results to leave out
	Max         int
	Channel     ChannelID // only its subscribers, unless 0
	Group       GroupID   // only its direct members, unless 0
}

// maxPeopleText is the length in bytes of the text of a search: longer than a full name.
const maxPeopleText = 400

// maxPeopleExamined is how many accounts one search looks at: about ten milliseconds. A search that would have to look
// at more finds only the first results.
const maxPeopleExamined = 50_000

// fewVisible is the number of users that a limited guest can see up to which a search looks at each of them.
const fewVisible = 5000

// SearchPeople returns the users that match a query and that the caller may see, and whether there can be more. Those
// of the caller's recent direct conversations are first, then users whose name begins with the text, then users of whom
// another word of the name does, then those with such an address; each in the order of names. The system bots are left
// out.
func (v View) SearchPeople(q PeopleQuery) (found []*User, more bool, _ error) {
	if len(q.Text) > maxPeopleText {
		return nil, false, BadRequest("query is too long (limit: %d bytes)", maxPeopleText)
	}
	s := peopleFinder{View: v, query: q, text: fold(strings.TrimSpace(q.Text)), seen: map[UserID]bool{}}
	s.words = strings.Fields(s.text)
	if err := s.restrict(); err != nil {
		return nil, false, err
	}
	if s.text != "" {
		s.searchConversations()
	}
	x := v.cache.people.index
	switch me := v.Me(); {
	case s.few != nil:
		s.searchSorted(s.few)
	case me != nil && me.IsGuest() && v.GuestsLimited() && v.searchVisible(&s, me):
	case x == nil || v.users.size() <= fewUsers:
		s.searchSorted(v.activeAndOtherUsers())
	default:
		s.searchIndex(x)
	}
	found = append(s.active, s.deactivated...)
	found = found[min(q.Offset, len(found)):]
	if len(found) > q.Max {
		found, s.more = found[:q.Max], true
	}
	return found, s.more, nil
}

// restrict restricts the search to a channel or group. It refuses if the caller may not see who is in the channel.
func (s *peopleFinder) restrict() error {
	var few []UserID
	if id := s.query.Channel; id != 0 {
		c, err := s.VisibleChannel(id)
		if err != nil {
			return err
		}
		if !s.MaySeeSubscribers(c) {
			return BadRequest("Invalid channel ID")
		}
		in := s.index.channels[id].active
		s.inside = append(s.inside, func(u *User) bool { return in.Has(int64(u.ID)) })
		if in.Len() <= fewVisible {
			few = ids.IDs[UserID](in)
		}
	}
	if id := s.query.Group; id != 0 {
		g := s.groups.find(id)
		if g == nil || s.Me() == nil {
			return BadRequest("Invalid user group")
		}
		if !g.System {
			s.inside = append(s.inside, func(u *User) bool { return containsSorted(g.Members, u.ID) })
		} else {
			s.inside = append(s.inside, func(u *User) bool { return s.isDirectMember(u, id) })
		}
		if !g.System && len(g.Members) <= fewVisible {
			few = g.Members
		}
	}
	if few != nil {
		s.few = make([]*User, 0, len(few))
		for _, u := range few {
			s.few = append(s.few, s.users.must(u))
		}
	}
	return nil
}

// activeAndOtherUsers returns all accounts without the system bots.
func (r *Realm) activeAndOtherUsers() (out []*User) {
	r.EachUser(func(u *User) {
		if !u.System {
			out = append(out, u)
		}
	})
	return out
}

// searchVisible searches the users that a limited guest may see, and the bots. It reports false if they are too many to
// look at each.
func (v View) searchVisible(s *peopleFinder, me *User) bool {
	visible := v.visibleUsers(me)
	visible.Union(v.index.bots)
	if visible.Len() > fewVisible {
		return false
	}
	var list []*User
	visible.Each(func(id int64) bool {
		list = append(list, v.users.must(UserID(id)))
		return true
	})
	s.searchSorted(list)
	return true
}

// peopleFinder collects the results of one search.
type peopleFinder struct {
	View
	query               PeopleQuery
	text                string
	words               []string
	seen                map[UserID]bool
	examined            int
	active, deactivated []*User
	more                bool
	inside              []func(*User) bool // all are true for a result
	few                 []*User            // all users that can be results; nil: they are not few
}

// full reports whether the search can end: it has all results that are asked for and one more, or has examined enough.
func (s *peopleFinder) full() bool {
	enough := len(s.active) + len(s.deactivated)
	if s.query.Active {
		enough = len(s.active)
	}
	if s.examined >= maxPeopleExamined || enough > s.query.Offset+s.query.Max {
		s.more = true
		return true
	}
	return false
}

// try adds a user that matches.
func (s *peopleFinder) try(u *User) {
	s.examined++
	if u.System || s.seen[u.ID] || !(u.Active && s.query.Active || !u.Active && s.query.Deactivated) ||
		!(u.IsBot() && s.query.Bots || !u.IsBot() && s.query.People) || !s.matches(u) || !s.MaySeeUser(u) {
		return
	}
	for _, inside := range s.inside {
		if !inside(u) {
			return
		}
	}
	s.seen[u.ID] = true
	if u.Active {
		s.active = append(s.active, u)
	} else if len(s.deactivated) <= s.query.Offset+s.query.Max { // one more than asked for shows that there are more
		s.deactivated = append(s.deactivated, u)
	}
}

// matches reports whether each word of the text begins a word of the name, or the text begins the name or an address
// that the caller sees.
func (s *peopleFinder) matches(u *User) bool {
	if s.text == "" {
		return true
	}
	name := fold(u.Name)
	return strings.HasPrefix(name, s.text) || s.matchesWords(name) ||
		len(s.words) == 1 && strings.HasPrefix(FoldEmail(u.Email), s.text) && s.SeesEmail(s.Me(), u)
}

func (s *peopleFinder) matchesWords(name string) bool {
	for _, w := range s.words {
		if !beginsWord(name, w) {
			return false
		}
	}
	return true
}

// beginsWord reports whether a word of a name begins with a text.
func beginsWord(name, text string) bool {
	for rest := name; ; {
		if strings.HasPrefix(rest, text) {
			return true
		}
		_, after, found := strings.Cut(rest, " ")
		if !found {
			return false
		}
		rest = after
	}
}

// searchConversations searches the users of the caller's recent direct conversations.
func (s *peopleFinder) searchConversations() {
	if s.Me() == nil {
		return
	}
	for _, c := range s.RecentConversations() {
		for _, id := range c.Members {
			s.try(s.users.must(id))
		}
	}
}

// searchSorted searches a list of users that is in no order.
func (s *peopleFinder) searchSorted(list []*User) {
	type match struct {
		u    *User
		rank int
		name string
	}
	var matched []match
	for _, u := range list {
		if s.matches(u) {
			name := fold(u.Name)
			rank := 2
			if strings.HasPrefix(name, s.text) {
				rank = 0
			} else if s.matchesWords(name) {
				rank = 1
			}
			matched = append(matched, match{u, rank, name})
		}
	}
	slices.SortFunc(matched, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name), cmp.Compare(a.u.ID, b.u.ID))
	})
	for _, m := range matched {
		if s.full() {
			return
		}
		s.try(m.u)
	}
}

// searchIndex searches the accounts that have changed since the index was built, then the index.
func (s *peopleFinder) searchIndex(x *PeopleIndex) {
	changed := s.cache.people.changed
	var list []*User
	changed.Each(func(id int64) bool {
		if u := s.users.find(UserID(id)); u != nil {
			list = append(list, u)
		}
		return true
	})
	s.searchSorted(list)
	walk := func(found []uint32) {
		for _, id := range found {
			if s.full() {
				return
			}
			if u := s.users.find(UserID(id)); u != nil && !changed.Has(int64(id)) {
				s.try(u)
			}
		}
	}
	walk(x.names.starting(s.text))
	if s.text == "" {
		return
	}
	// the word that begins the fewest words of names
	rarest := slices.MinFunc(s.words, func(a, b string) int {
		return cmp.Compare(x.count(a), x.count(b))
	})
	if rarest != s.text {
		walk(x.names.starting(rarest))
	}
	walk(x.words.starting(rarest))
	if len(s.words) == 1 {
		walk(x.emails.starting(s.text))
	}
}
