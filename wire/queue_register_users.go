package wire

import (
	"bytes"

	"parley/actors/realm"
)

// The indexes of the three lists of accounts in a registration.
const (
	activeUsers = iota
	inactiveUsers
	systemUsers
)

// userListEntry returns an account and the list it belongs to. The field is_active is left out where the list implies
// it.
func userListEntry(v realm.View, viewer, u *realm.User, s Site, gravatar bool) (list int, entry any) {
	x := userSeenBy(v, viewer, u, s, gravatar, true)
	switch {
	case u.System:
		return systemUsers, systemBotJSON{x, true}
	case u.Active:
		return activeUsers, x.registered(viewer)
	}
	return inactiveUsers, x.registered(viewer)
}

// userListCacheKey is everything besides the accounts that their cached JSON depends on. Whether a viewer sees email
// addresses follows from the login and the role, except for the viewer's own address.
type userListCacheKey struct {
	visitor  bool // not logged in
	role     realm.Role
	gravatar bool
	site     Site
}

// usersSection adds all accounts, from cached JSON that all viewers of a kind share.
func usersSection(s *initialState) {
	me := s.Me()
	switch {
	case s.short:
		shortUsersSection(s)
		return
	case s.isLimitedGuest():
		usersSectionUncached(s)
		return
	}
	kind, viewer := s.userListKey()
	var own realm.UserID
	if me != nil && s.SeesEmail(me, me) != s.SeesEmail(viewer, me) {
		own = me.ID
	}
	lists := s.UserListJSON(kind, s.userChunkEncoder(viewer), own, s.userChunkEncoder(me),
		joinUserChunks).([3]Fragments)
	s.setUserLists(lists, false)
}

// setUserLists adds the three lists. With inPlace they are encoded with the other fields.
func (s *initialState) setUserLists(lists [3]Fragments, inPlace bool) {
	s.answer.Users = encoded[[]registeredUserJSON]{lists[activeUsers], inPlace}
	s.answer.InactiveUsers = encoded[[]registeredUserJSON]{lists[inactiveUsers], inPlace}
	s.answer.SystemBots = encoded[[]systemBotJSON]{lists[systemUsers], inPlace}
}

// joinUserChunks joins chunks of accounts to the three lists.
func joinUserChunks(chunks [][][]byte, cached bool) any {
	var lists [3]fragmentList
	lists[activeUsers].p = make(Fragments, 0, 2*len(chunks)+1)
	for _, chunk := range chunks {
		for i := range lists {
			lists[i].add(sharedFragment(chunk[i]))
		}
	}
	var out [3]Fragments
	for i := range out {
		out[i] = lists[i].end()
		if cached {
			out[i] = Fragments{{Run: NewSharedFragments(out[i])}}
		}
	}
	return out
}

// usersSectionUncached builds the lists account by account, for guests that cannot see all users.
func usersSectionUncached(s *initialState) {
	lists := [3][]any{{}, {}, {}}
	s.EachUser(func(u *realm.User) {
		if s.MaySeeUser(u) {
			i, o := userListEntry(s.View, s.Me(), u, s.call.Site, s.Gravatar)
			lists[i] = append(lists[i], o)
		} else if !s.Has(realm.CapUserListIncomplete) {
			x := unknownUser(u.ID, s.call.Site)
			lists[activeUsers] = append(lists[activeUsers], x.registered(s.Me()))
		}
	})
	var parts [3]Fragments
	for i, list := range lists {
		parts[i] = Fragments{ownFragment(encode(list))}
	}
	s.setUserLists(parts, true)
}

// fragmentList is a JSON list of which each fragment is some elements.
type fragmentList struct{ p Fragments }

var (
	listOpen, listClose              = ownFragment([]byte("[")), ownFragment([]byte("]"))
	objectsOpen, objectsClose        = ownFragment([]byte("[{")), ownFragment([]byte("}]"))
	comma, betweenObjects, listEmpty = ownFragment([]byte(",")), ownFragment([]byte("},{")), ownFragment([]byte("[]"))
)

// add appends elements. Empty fragments are skipped.
func (l *fragmentList) add(elements ...Fragment) {
	if len(elements) == 0 || len(elements[0].JSON) == 0 {
		return
	}
	if len(l.p) == 0 {
		l.p = append(l.p, listOpen)
	} else {
		l.p = append(l.p, comma)
	}
	l.p = append(l.p, elements...)
}

func (l *fragmentList) end() Fragments {
	if len(l.p) == 0 {
		return Fragments{listEmpty}
	}
	return append(l.p, listClose)
}

// objectList is a JSON list of objects, each made of encoded fields.
type objectList struct{ p Fragments }

// newObjectList returns an empty list with room for a number of objects and fields.
func newObjectList(objects, members int) *objectList {
	return &objectList{make(Fragments, 0, 2*objects*members+1)}
}

func (l *objectList) add(members ...Fragment) {
	next := objectsOpen
	if len(l.p) > 0 {
		next = betweenObjects
	}
	for _, m := range members {
		if len(m.JSON) > 0 {
			l.p = append(l.p, next, m)
			next = comma
		}
	}
}

func (l *objectList) end() Fragments {
	if len(l.p) == 0 {
		return Fragments{listEmpty}
	}
	return append(l.p, objectsClose)
}

// groupsSection adds the user groups, the same for all users.
func groupsSection(s *initialState) {
	all := s.Has(realm.CapDeactivatedGroups)
	if s.short {
		s.answer.Groups = s.shortGroups(all)
		return
	}
	s.answer.Groups = inFragments[[]registeredGroupJSON](sharedFragment(s.GroupListJSON(all, func() []byte {
		return encode(allGroups(s.View, all))
	})))
}

func allGroups(v realm.View, all bool) []groupJSON {
	list := []groupJSON{}
	v.EachGroup(func(g *realm.Group) {
		if !g.Deactivated || all {
			list = append(list, newGroup(v.GroupInfo(g)))
		}
	})
	return list
}

// isLimitedGuest reports whether the registering user is a guest that cannot see all users. The lists of such guests
// are not cached.
func (s *initialState) isLimitedGuest() bool {
	return s.Me() != nil && s.GuestsLimited() && s.Me().IsGuest()
}

// userListKey returns the cache key of the registering user, and a user that represents all viewers with that key.
func (s *initialState) userListKey() (userListCacheKey, *realm.User) {
	me := s.Me()
	if me == nil {
		return userListCacheKey{visitor: true, site: s.call.Site}, nil
	}
	role := me.Role
	if role == realm.Owner {
		role = realm.Administrator
	}
	return userListCacheKey{role: role, gravatar: s.Gravatar, site: s.call.Site}, &realm.User{Role: role}
}

// userChunkEncoder returns a function that encodes consecutive accounts for a viewer, one fragment for each list.
func (s *initialState) userChunkEncoder(viewer *realm.User) func([]*realm.User) [][]byte {
	return func(users []*realm.User) [][]byte {
		var lists [3]bytes.Buffer
		for _, u := range users {
			list, o := userListEntry(s.View, viewer, u, s.call.Site, s.Gravatar)
			if b := &lists[list]; b.Len() > 0 {
				b.WriteByte(',')
			}
			lists[list].Write(encode(o))
		}
		return [][]byte{bytes.Clone(lists[0].Bytes()), bytes.Clone(lists[1].Bytes()), bytes.Clone(lists[2].Bytes())}
	}
}

// userChunksPerView is how many chunks of accounts one view encodes: about a millisecond. maxEncodeAheadViews bounds
// the number of views, in case accounts change as fast as they are encoded. The turn then encodes the rest.
const (
	userChunksPerView   = 3
	maxEncodeAheadViews = 1000
)

// encodeUsersAhead encodes the accounts that a registration needs and that are not in the cache, some per view.
func encodeUsersAhead(c *Call, q *realm.Queue) error {
	for range maxEncodeAheadViews {
		done, err := Read(c, func(v realm.View) (bool, error) {
			s := &initialState{call: c, View: v, queue: q, Client: ClientOf(q)}
			if s.isLimitedGuest() {
				return true, nil
			}
			kind, viewer := s.userListKey()
			return s.WarmUserListJSON(kind, s.userChunkEncoder(viewer), userChunksPerView), nil
		})
		if done || err != nil {
			return err
		}
	}
	return nil
}
