package wire

import (
	"bytes"

	"parley/actors/realm"
)

// The three lists of accounts in a registration.
const (
	activeUsers = iota
	inactiveUsers
	systemUsers
)

var userLists = [3]string{"realm_users", "realm_non_active_users", "cross_realm_bots"}

// userListEntry is an account in one of the lists; which list says whether it is active.
func userListEntry(v realm.View, viewer, u *realm.User, s Site, gravatar bool) (list int, o obj) {
	o = personObject(u, v.UserInfo(u.ID), s, v.SeesEmail(viewer, u), gravatar, true)
	delete(o, "is_active")
	switch {
	case u.System:
		o["is_system_bot"] = true
		return systemUsers, o
	case u.Active:
		return activeUsers, o
	}
	return inactiveUsers, o
}

// userListCacheKey is everything beside the accounts themselves that their faces depend on. What a viewer may know of
// addresses follows from his role, but for his own.
type userListCacheKey struct {
	role     realm.Role
	gravatar bool
	site     Site
}

// usersSection is every account, from faces that all viewers of a kind share.
func usersSection(s *initialState) {
	me := s.Me()
	if s.isLimitedGuest() {
		usersSectionUncached(s)
		return
	}
	kind, anybody := s.userListKey()
	var own realm.UserID
	if me != nil && s.SeesEmail(me, me) != s.SeesEmail(anybody, me) {
		own = me.ID
	}
	lists := s.UserListJSON(kind, s.userChunkEncoder(anybody), own, s.userChunkEncoder(me), joinUserChunks).([3]Fragments)
	for i, name := range userLists {
		s.answer[name] = lists[i]
	}
}

// joinUserChunks makes the three lists of their chunks.
func joinUserChunks(chunks [][][]byte, kept bool) any {
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
		if kept {
			out[i] = Fragments{{Run: NewSharedFragments(out[i])}}
		}
	}
	return out
}

// usersSectionUncached is usersSection account by account, for guests who may not know everybody.
func usersSectionUncached(s *initialState) {
	lists := [3][]any{{}, {}, {}}
	s.EachUser(func(u *realm.User) {
		if s.MaySeeUser(u) {
			i, o := userListEntry(s.View, s.Me(), u, s.call.Site, s.Gravatar)
			lists[i] = append(lists[i], o)
		} else if !s.Has(realm.CapUserListIncomplete) {
			o := unknownUser(u.ID, s.call.Site)
			delete(o, "is_active")
			lists[activeUsers] = append(lists[activeUsers], o)
		}
	})
	for i, name := range userLists {
		s.answer[name] = lists[i]
	}
}

// fragmentList is a JSON list of which each piece is some elements.
type fragmentList struct{ p Fragments }

var (
	listOpen, listClose              = ownFragment([]byte("[")), ownFragment([]byte("]"))
	objectsOpen, objectsClose        = ownFragment([]byte("[{")), ownFragment([]byte("}]"))
	comma, betweenObjects, listEmpty = ownFragment([]byte(",")), ownFragment([]byte("},{")), ownFragment([]byte("[]"))
)

// add puts elements at the end; none are skipped.
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

// objectList is a JSON list of objects, each made of members that are encoded already.
type objectList struct{ p Fragments }

// newObjectList is an empty list with room for so many objectNotations of so many members.
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

// groupsSection is the user groups, the same for everybody.
func groupsSection(s *initialState) {
	all := s.Has(realm.CapDeactivatedGroups)
	s.answer["realm_user_groups"] = Fragments{sharedFragment(s.GroupListJSON(all, func() []byte { return encode(allGroupObjects(s.View, all)) }))}
}

func allGroupObjects(v realm.View, all bool) []any {
	list := []any{}
	v.EachGroup(func(g *realm.Group) {
		if !g.Deactivated || all {
			list = append(list, groupObject(v.GroupInfo(g)))
		}
	})
	return list
}

// isLimitedGuest reports a guest who may not know everybody: what he is shown is made for him alone.
func (s *initialState) isLimitedGuest() bool {
	return s.Me() != nil && s.GuestsLimited() && s.Me().IsGuest()
}

// userListKey is the kind of viewer that registers, and somebody of it.
func (s *initialState) userListKey() (userListCacheKey, *realm.User) {
	role := realm.Guest // visitors see addresses as guests do
	if me := s.Me(); me != nil {
		role = me.Role
	}
	if role == realm.Owner {
		role = realm.Administrator
	}
	return userListCacheKey{role, s.Gravatar, s.call.Site}, &realm.User{Role: role}
}

// userChunkEncoder encodes neighbouring accounts for a viewer, a piece for each of the lists.
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

// userChunksPerView is how many chunks of accounts one look encodes: about a millisecond. maxEncodeAheadViews bounds the looks, should
// accounts change as fast as they are encoded: what is left is then done in the turn.
const (
	userChunksPerView   = 3
	maxEncodeAheadViews = 1000
)

// encodeUsersAhead encodes, some at a time, the accounts that a registration will show and nobody has been shown lately.
func encodeUsersAhead(c *Call, q *realm.Queue) error {
	for range maxEncodeAheadViews {
		done, err := Read(c, func(v realm.View) (bool, error) {
			s := &initialState{call: c, View: v, queue: q, Client: ClientOf(q)}
			if s.isLimitedGuest() {
				return true, nil
			}
			kind, anybody := s.userListKey()
			return s.WarmUserListJSON(kind, s.userChunkEncoder(anybody), userChunksPerView), nil
		})
		if done || err != nil {
			return err
		}
	}
	return nil
}
