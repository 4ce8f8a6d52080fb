package wire

import (
	"cmp"
	"slices"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

// A client with the capability short_user_list, an extension of the protocol, gets a short list of users in an
// organization that is large. The fields realm_users_incomplete and realm_active_user_count say so. Such a client gets
// the same events about users as others, of those that it does not know too: an event about an unknown user changes
// nothing at the client, and a user that it fetches later has the values of after the event.

// shortListBytes is the encoded size of a short list of users.
const shortListBytes = 72 << 10

// listedUser is an account of a short list with its JSON.
type listedUser struct {
	*realm.User
	list int
	json []byte
}

// listedUsers returns the accounts of the short list, by ascending id. It is built once for all sections.
func (s *initialState) listedUsers() []listedUser {
	if s.listed != nil {
		return s.listed
	}
	size := 0
	for _, u := range s.ShortUserList() {
		list, o := userListEntry(s.View, s.Me(), u, s.call.Site, s.Gravatar)
		x := listedUser{u, list, encode(o)}
		if size += len(x.json) + 1; size > shortListBytes && len(s.listed) > 0 {
			break
		}
		s.listed = append(s.listed, x)
	}
	slices.SortFunc(s.listed, func(a, b listedUser) int { return cmp.Compare(a.ID, b.ID) })
	return s.listed
}

// shortUsersSection adds the short list of users, and all system bots.
func shortUsersSection(s *initialState) {
	var lists [3]fragmentList
	for _, u := range s.listedUsers() {
		lists[u.list].add(ownFragment(u.json))
	}
	s.EachSystemBot(func(u *realm.User) {
		list, o := userListEntry(s.View, s.Me(), u, s.call.Site, s.Gravatar)
		lists[list].add(ownFragment(encode(o)))
	})
	s.setUserLists([3]Fragments{lists[0].end(), lists[1].end(), lists[2].end()}, true)
	s.answer.ShortList = true
	if !s.isLimitedGuest() { // who must not learn how many users there are
		census := s.Census()
		s.answer.ActiveUsers = census.Active
	}
}

// registeredGroupJSON is a user group in a registration. A member count says that the list of members is not complete:
// of a large group, clients with a short list of users get only the caller, or an empty list.
type registeredGroupJSON struct {
	groupJSON
	MemberCount *int `json:"member_count,omitzero"`
}

// shortGroups returns the user groups, without the members of large ones.
func (s *initialState) shortGroups(deactivated bool) encoded[[]registeredGroupJSON] {
	var list fragmentList
	s.EachGroup(func(g *realm.Group) {
		if g.Deactivated && !deactivated {
			return
		}
		list.add(ownFragment(s.ShortGroupJSON(g, func() []byte {
			members := s.MembersShown(g)
			out := registeredGroupJSON{groupJSON: newGroup(s.GroupInfoWith(g, members.IDs))}
			if !members.All {
				out.MemberCount = &members.Count
			}
			return encode(out)
		})))
	})
	return inFragments[[]registeredGroupJSON](list.end()...)
}

// shortSubscriberList returns the field with the subscribers of a channel: all of a small channel, of a large one only
// those that the short list of users has.
func (s *initialState) shortSubscriberList(c *realm.Channel) []byte {
	if s.SubscriberCount(c.ID) < realm.FullSubscriberListLimit {
		return subscriberListJSON(s.View, c, form.AllSubscribers, nil)
	}
	if !s.MaySeeSubscribers(c) {
		return []byte(`"subscribers":[]`)
	}
	var ids []realm.UserID
	for _, u := range s.listedUsers() {
		if u.Active && s.Subscribed(u.ID, c.ID) {
			ids = append(ids, u.ID)
		}
	}
	return userIDsField("partial_subscribers", ids)
}

// censusChunksPerView is how many chunks of 64 accounts one view counts: about a millisecond.
const censusChunksPerView = 200

// prepareUserList prepares the list of users of a registration in several views, because it can be large. It reports
// whether the client gets a short list, and refuses a list of all users that is too large.
func prepareUserList(c *Call, q *realm.Queue, wants func(string) bool) (short bool, err error) {
	lists := realm.UserLists{Accounts: wants("realm_user"), Members: wants("realm_user_groups"),
		Subscribers: wants("subscription") && q.Subscribers == "true"}
	if lists == (realm.UserLists{}) && !wants("subscription") {
		return false, nil
	}
	for counted := false; !counted; {
		if counted, err = Read(c, func(v realm.View) (bool, error) {
			short = v.GetsShortList(q.Caps)
			return v.WarmCensus(censusChunksPerView), nil
		}); err != nil {
			return false, err
		}
	}
	if short {
		return true, nil
	}
	if err := checkPermission(c, func(v realm.View) error { return v.CheckUserLists(lists) }); err != nil {
		return false, err
	}
	if !lists.Accounts {
		return false, nil
	}
	return false, encodeUsersAhead(c, q)
}

// presenceOfListed returns the presence of the users of the short list.
func presenceOfListed(c *Call, days int64) ([]presence.Row, error) {
	users, err := Read(c, func(v realm.View) ([]realm.UserID, error) {
		return each(v.ShortUserList(), func(u *realm.User) realm.UserID { return u.ID }), nil
	})
	if err != nil {
		return nil, err
	}
	return presenceOf(c, users, -1, days), nil
}

// presenceOf returns the rows of some users that changed after an update id within a number of days.
func presenceOf(c *Call, users []realm.UserID, last, days int64) (rows []presence.Row) {
	oldest := c.Server.Now().Unix() - days*86400
	for _, u := range users {
		if r := c.Server.PresenceOf(c.Realm, u); r != nil && r.Update > last && (last > 0 || r.Connected >= oldest) {
			rows = append(rows, *r)
		}
	}
	return rows
}
