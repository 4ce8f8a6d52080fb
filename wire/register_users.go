package wire

import (
	"bytes"

	"parley/actors/realm"
)

// The three lists of accounts in a registration.
const (
	activeUsers = iota
	goneUsers
	systemUsers
)

var userLists = [3]string{"realm_users", "realm_non_active_users", "cross_realm_bots"}

// userEntry is an account in one of the lists; which list says whether it is active.
func userEntry(v realm.View, viewer, u *realm.User, s Site, gravatar bool) (list int, o obj) {
	o = personObject(u, v.Person(u.ID), s, v.SeesEmail(viewer, u), gravatar, true)
	delete(o, "is_active")
	switch {
	case u.System:
		o["is_system_bot"] = true
		return systemUsers, o
	case u.Active:
		return activeUsers, o
	}
	return goneUsers, o
}

// rosterKind is everything beside the accounts themselves that their faces depend on. What a viewer may know of
// addresses follows from his role, but for his own.
type rosterKind struct {
	role     realm.Role
	gravatar bool
	site     Site
}

// usersSection is every account, from faces that all viewers of a kind share.
func usersSection(s *state) {
	me := s.Me()
	if s.limitedGuest() {
		usersAnew(s)
		return
	}
	kind, anybody := s.roster()
	var own realm.UserID
	if me != nil && s.SeesEmail(me, me) != s.SeesEmail(anybody, me) {
		own = me.ID
	}
	lists := s.UserFaces(kind, s.userChunk(anybody), own, s.userChunk(me), joinUsers).([3]Pieces)
	for i, name := range userLists {
		s.a[name] = lists[i]
	}
}

// joinUsers makes the three lists of their chunks.
func joinUsers(chunks [][][]byte, kept bool) any {
	var lists [3]pieceList
	lists[activeUsers].p = make(Pieces, 0, 2*len(chunks)+1)
	for _, chunk := range chunks {
		for i := range lists {
			lists[i].add(shared(chunk[i]))
		}
	}
	var out [3]Pieces
	for i := range out {
		out[i] = lists[i].end()
		if kept {
			out[i] = Pieces{{Run: NewRun(out[i])}}
		}
	}
	return out
}

// usersAnew is usersSection account by account, for guests who may not know everybody.
func usersAnew(s *state) {
	lists := [3][]any{{}, {}, {}}
	s.EachUser(func(u *realm.User) {
		if s.MaySee(u) {
			i, o := userEntry(s.View, s.Me(), u, s.c.Site, s.Gravatar)
			lists[i] = append(lists[i], o)
		} else if !s.Has(realm.CapUserListIncomplete) {
			o := unknownUser(u.ID, s.c.Site)
			delete(o, "is_active")
			lists[activeUsers] = append(lists[activeUsers], o)
		}
	})
	for i, name := range userLists {
		s.a[name] = lists[i]
	}
}

// pieceList is a JSON list of which each piece is some elements.
type pieceList struct{ p Pieces }

var (
	listOpen, listClose              = own([]byte("[")), own([]byte("]"))
	objectsOpen, objectsClose        = own([]byte("[{")), own([]byte("}]"))
	comma, betweenObjects, listEmpty = own([]byte(",")), own([]byte("},{")), own([]byte("[]"))
)

// add puts elements at the end; none are skipped.
func (l *pieceList) add(elements ...Part) {
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

func (l *pieceList) end() Pieces {
	if len(l.p) == 0 {
		return Pieces{listEmpty}
	}
	return append(l.p, listClose)
}

// objectList is a JSON list of objects, each made of members that are encoded already.
type objectList struct{ p Pieces }

// objectsOf is an empty list with room for so many objects of so many members.
func objectsOf(objects, members int) *objectList {
	return &objectList{make(Pieces, 0, 2*objects*members+1)}
}

func (l *objectList) add(members ...Part) {
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

func (l *objectList) end() Pieces {
	if len(l.p) == 0 {
		return Pieces{listEmpty}
	}
	return append(l.p, objectsClose)
}

// groupsSection is the user groups, the same for everybody.
func groupsSection(s *state) {
	all := s.Has(realm.CapDeactivatedGroups)
	s.a["realm_user_groups"] = Pieces{shared(s.GroupFaces(all, func() []byte { return encode(groupsAnew(s.View, all)) }))}
}

func groupsAnew(v realm.View, all bool) []any {
	list := []any{}
	v.EachGroup(func(g *realm.Group) {
		if !g.Deactivated || all {
			list = append(list, groupObject(v.GroupInfo(g)))
		}
	})
	return list
}

// limitedGuest reports a guest who may not know everybody: what he is shown is made for him alone.
func (s *state) limitedGuest() bool { return s.Me() != nil && s.GuestsLimited() && s.Me().IsGuest() }

// roster is the kind of viewer that registers, and somebody of it.
func (s *state) roster() (rosterKind, *realm.User) {
	role := realm.Guest // visitors see addresses as guests do
	if me := s.Me(); me != nil {
		role = me.Role
	}
	if role == realm.Owner {
		role = realm.Administrator
	}
	return rosterKind{role, s.Gravatar, s.c.Site}, &realm.User{Role: role}
}

// userChunk encodes neighbouring accounts for a viewer, a piece for each of the lists.
func (s *state) userChunk(viewer *realm.User) func([]*realm.User) [][]byte {
	return func(users []*realm.User) [][]byte {
		var lists [3]bytes.Buffer
		for _, u := range users {
			list, o := userEntry(s.View, viewer, u, s.c.Site, s.Gravatar)
			if b := &lists[list]; b.Len() > 0 {
				b.WriteByte(',')
			}
			lists[list].Write(encode(o))
		}
		return [][]byte{bytes.Clone(lists[0].Bytes()), bytes.Clone(lists[1].Bytes()), bytes.Clone(lists[2].Bytes())}
	}
}

// warmedAView is how many chunks of accounts one look encodes: about a millisecond. warmViews bounds the looks, should
// accounts change as fast as they are encoded: what is left is then done in the turn.
const (
	warmedAView = 3
	warmViews   = 1000
)

// warmUsers encodes, some at a time, the accounts that a registration will show and nobody has been shown lately.
func warmUsers(c *Call, q *realm.Queue) error {
	for range warmViews {
		done, err := Look(c, func(v realm.View) (bool, error) {
			s := &state{c: c, View: v, queue: q, Client: ClientOf(q)}
			if s.limitedGuest() {
				return true, nil
			}
			kind, anybody := s.roster()
			return s.WarmUserFaces(kind, s.userChunk(anybody), warmedAView), nil
		})
		if done || err != nil {
			return err
		}
	}
	return nil
}
