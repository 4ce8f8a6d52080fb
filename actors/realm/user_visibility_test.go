package realm_test

import (
	"maps"
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// newLimitedGuestScene creates an organization whose guests see only users that share a channel or conversation with
// them.
func newLimitedGuestScene(t *testing.T) (s *realmtest.Scene, owner, ann, bo, guest UserID) {
	s = realmtest.New(t)
	owner, ann, bo, guest = s.Join("Olive", Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", Guest)
	realmtest.Do(s, ann, Subscribe{Channels: []ChannelToJoin{{Name: "shared"}}, AllOrNothing: true})
	realmtest.Do(s, owner, ChangeOrganization{Groups: []GroupChange{{
		Name: "can_access_all_users_group", New: GroupValue{Group: s.Realm.SystemGroup("role:members")},
	}}})
	s.OpenQueue(guest) // the change closed the guest's queue
	return s, owner, ann, bo, guest
}

func appearedUsers(s *realmtest.Scene, u UserID) (out []UserID) {
	for _, e := range realmtest.ListEventsOf[*UserAppeared](s, u) {
		if !e.Unknown {
			out = append(out, e.User.ID)
		}
	}
	return out
}

func vanishedUsers(s *realmtest.Scene, u UserID) (out []UserID) {
	for _, e := range realmtest.ListEventsOf[*UserVanished](s, u) {
		out = append(out, e.User)
	}
	return out
}

func TestLimitedGuestVisibilityEvents(t *testing.T) {
	s, owner, ann, bo, guest := newLimitedGuestScene(t)
	want := func(of string, got, want []UserID) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", of, got, want)
		}
	}
	shared := Subscribe{
		Channels: []ChannelToJoin{{Name: "shared"}}, Principals: []Principal{{ID: guest}}, AllOrNothing: true,
	}
	realmtest.Do(s, ann, shared)
	want("the guest joined Ann's channel", appearedUsers(s, guest), []UserID{ann})
	shared.Principals = []Principal{{ID: bo}}
	realmtest.Do(s, ann, shared)
	want("Bo joined too", appearedUsers(s, guest), []UserID{bo})
	want("members could see Bo already", appearedUsers(s, owner), nil)
	realmtest.Do(s, bo, Unsubscribe{Names: []string{"shared"}})
	want("Bo left", vanishedUsers(s, guest), []UserID{bo})
	write := func() MessageID {
		return realmtest.Do(s, owner, directMessage("hi", guest)).ID
	}
	first := write()
	want("the owner wrote to the guest", appearedUsers(s, guest), []UserID{owner})
	second := write()
	want("the owner wrote again", appearedUsers(s, guest), nil)
	realmtest.Do(s, owner, DeleteMessage{first})
	want("one of two messages is gone", vanishedUsers(s, guest), nil)
	realmtest.Do(s, owner, DeleteMessage{second})
	want("all messages are deleted", vanishedUsers(s, guest), []UserID{owner})
	write()
	want("the owner wrote again after that", appearedUsers(s, guest), []UserID{owner})

	realmtest.Do(s, bo, Subscribe{Channels: []ChannelToJoin{{Name: "bo 1"}, {Name: "bo 2"}}, AllOrNothing: true})
	realmtest.Do(s, bo, Subscribe{
		Channels: []ChannelToJoin{{Name: "bo 1"}, {Name: "bo 2"}}, Principals: []Principal{{ID: guest}},
		AllOrNothing: true,
	})
	want("the guest joined two of Bo's channels at once", appearedUsers(s, guest), []UserID{bo})
	realmtest.Do(s, bo, Unsubscribe{Names: []string{"bo 1", "bo 2"}})
	want("Bo left both", vanishedUsers(s, guest), []UserID{bo})

	realmtest.Do(s, bo, Subscribe{Channels: []ChannelToJoin{{Name: "bo 1"}}, AllOrNothing: true})
	want("Bo joined one of them again", appearedUsers(s, guest), []UserID{bo})
	ends := func(u UserID) (out []bool) {
		for _, e := range realmtest.ListEventsOf[*UserChanged](s, guest) {
			if e.ID == u && e.Active != nil {
				out = append(out, !*e.Active)
			}
		}
		return out
	}
	realmtest.Do(s, owner, DeactivateUser{User: bo})
	want("Bo was deactivated", vanishedUsers(s, guest), []UserID{bo})
	if got := ends(bo); got != nil {
		t.Errorf("deactivation of Bo, who is no longer visible: the guest got %v", got)
	}
	realmtest.Do(s, owner, ReactivateUser{User: bo})
	want("Bo was reactivated", appearedUsers(s, guest), []UserID{bo})
	wrote := realmtest.Do(s, bo, SendMessage{People: principals(guest), Body: Body{Text: "hi", HTML: "<p>hi</p>"}}).ID
	realmtest.Do(s, owner, DeactivateUser{User: bo})
	want("Bo was deactivated after writing to the guest", vanishedUsers(s, guest), nil)
	if got := ends(bo); !slices.Equal(got, []bool{true}) {
		t.Errorf("deactivation of Bo, who wrote to the guest: the guest got %v", got)
	}
	realmtest.Do(s, owner, ReactivateUser{User: bo})
	want("Bo was reactivated again", appearedUsers(s, guest), nil)
	realmtest.Do(s, bo, DeleteMessage{wrote})
	realmtest.Do(s, bo, Unsubscribe{Names: []string{"bo 1"}})
	want("Bo left again", vanishedUsers(s, guest), []UserID{bo})

	new := realmtest.Do(s, realmtest.System, CreateUser{Name: "New", Email: "new@example.com"})
	if e := realmtest.ListEventsOf[*UserAppeared](s, guest); len(e) != 1 || !e[0].Unknown {
		t.Errorf("the guest got %+v about a new user", e)
	}
	want("members get a new user", appearedUsers(s, owner), []UserID{new})
	if e := realmtest.ListEventsOf[*GroupMembersChanged](s, guest); len(e) != 2 {
		t.Errorf("new members of system groups, which registrations show to everyone: the guest got %+v", e)
	}

	member := Member
	realmtest.Do(s, owner, EditUser{User: guest, Role: &member})
	want("the guest became a member", appearedUsers(s, guest), []UserID{bo, new})
	role := Guest
	realmtest.Do(s, owner, EditUser{User: guest, Role: &role})
	want("the member became a guest again", vanishedUsers(s, guest), []UserID{bo, new})
}

func TestEmailVisibilityEvents(t *testing.T) {
	s := realmtest.New(t)
	owner, ann, guest := s.Join("Olive", Owner), s.Join("Ann"), s.Join("Gus", Guest)
	realmtest.Do(s, realmtest.System, Grant{User: owner, ChangeEmails: true})
	realmtest.Do(s, ann, ChangeSettings{Values: []SettingValue{{Name: "email_address_visibility", Value: int64(3)}}})
	to := "ann.lee@example.com"
	realmtest.Do(s, owner, EditUser{User: ann, NewEmail: &to})
	s.ExpectEvents(owner, "realm_user") // the email address
	s.ExpectEvents(ann, "realm_user")
	s.ExpectNoEvents(guest)
	realmtest.Do(s, owner, ChangeUserDefaults{Values: []SettingValue{{
		Name: "email_address_visibility", Value: int64(3),
	}}})
	new := realmtest.Do(s, realmtest.System, CreateUser{Name: "New", Email: "new@example.com"})
	for u, sees := range map[UserID]bool{owner: true, ann: false, guest: false} {
		if e := realmtest.ListEventsOf[*UserAppeared](s, u); len(e) != 1 || e[0].User.ID != new || e[0].Sees != sees ||
			e[0].Public || e[0].User.Password != "" {
			t.Errorf("user %d got %+v", u, e)
		}
	}
}

func TestJoinDateIsFirstLogin(t *testing.T) {
	s := realmtest.New(t)
	owner := s.Join("Olive", Owner)
	realmtest.Do(s, realmtest.System, Grant{User: owner, CreateUsers: true})
	u := realmtest.Do(s, owner, CreateUser{Name: "New", Email: "new@example.com"})
	s.Advance(3600)
	realmtest.Do(s, realmtest.System, LogIn{User: u})
	s.ExpectEvents(owner, "realm_user")
	s.Advance(3600)
	realmtest.Do(s, realmtest.System, LogIn{User: u})
	s.ExpectNoEvents(owner)
	if got := s.Realm.Find(u).Joined; got != realmtest.StartTime+3600 {
		t.Errorf("joined at %d, want the first login", got-realmtest.StartTime)
	}
	realmtest.Do(s, realmtest.System, LogIn{User: owner})
	s.ExpectNoEvents(owner)
}

// A guest who was once subscribed to a web-public channel gets edits and deletions of messages received then, but not
// of later messages.
func TestFormerSubscriberGuestEvents(t *testing.T) {
	s := realmtest.New(t)
	owner, guest := s.Join("Olive", Owner), s.Join("Gus", Guest)
	on := true
	realmtest.Do(s, owner, ChangeOrganization{Values: []SettingValue{{Name: "enable_spectator_access", Value: true}}})
	realmtest.Do(s, owner, Subscribe{
		Channels: []ChannelToJoin{{Name: "open"}}, Principals: []Principal{{ID: owner}, {ID: guest}},
		New: NewChannel{WebPublic: on}, AllOrNothing: true,
	})
	send := func() MessageID {
		return realmtest.Do(s, owner, SendMessage{
			ToChannel: true, Channel: s.Realm.FindChannelByName("open").ID, Topic: "t",
			Body: Body{Text: "hi", HTML: "<p>hi</p>"},
		}).ID
	}
	received := send()
	realmtest.Do(s, guest, Unsubscribe{Names: []string{"open"}})
	later := send()
	for _, id := range []MessageID{later, received} {
		changed := NewContent{Body: Body{Text: "changed", HTML: "<p>changed</p>"}}
		realmtest.Do(s, owner, EditMessage{Message: id, Mode: MoveOne, Content: &changed})
		edits := len(realmtest.ListEventsOf[*MessageUpdate](s, guest))
		realmtest.Do(s, owner, DeleteMessage{id})
		deletions := len(realmtest.ListEventsOf[*MessagesVanished](s, guest))
		if want := map[bool]int{true: 1}[id == received]; edits != want || deletions != want {
			t.Errorf("message %d: the guest got %d edits and %d deletions, want %d", id, edits, deletions, want)
		}
	}
}

// Clients ignore events about unknown users, so the users must come first.
func TestUserAppearsBeforeOtherEvents(t *testing.T) {
	s, owner, _, bo, guest := newLimitedGuestScene(t)
	shared := []ChannelToJoin{{Name: "shared"}}
	realmtest.Do(s, owner, Subscribe{
		Channels: shared, Principals: []Principal{{ID: guest}, {ID: owner}}, AllOrNothing: true,
	})
	s.ExpectEvents(guest, "realm_user", "realm_user", "stream", "subscription") // Olive and Ann
	realmtest.Do(s, bo, Subscribe{Channels: shared, AllOrNothing: true})
	s.ExpectEvents(guest, "realm_user", "subscription")
	realmtest.Do(s, bo, Unsubscribe{Names: []string{"shared"}})
	s.ExpectEvents(guest, "subscription", "realm_user")
	realmtest.Do(s, bo, SendMessage{People: principals(guest), Body: Body{Text: "hi", HTML: "<p>hi</p>"}})
	s.ExpectEvents(guest, "realm_user", "message")
	if got := appearedUsers(s, guest); !slices.Equal(got, []UserID{bo}) {
		t.Errorf("appeared: %v", got)
	}
}

// A user who can see channels because of a new role also gets the subscribers of these channels.
func TestRoleChangeShowsChannelSubscribers(t *testing.T) {
	s := realmtest.New(t)
	owner, ann, guest := s.Join("Olive", Owner), s.Join("Ann"), s.Join("Gus", Guest)
	for _, name := range []string{"one", "two"} {
		realmtest.Do(s, ann, Subscribe{Channels: []ChannelToJoin{{Name: name}}, AllOrNothing: true})
	}
	realmtest.Do(s, owner, Subscribe{Channels: []ChannelToJoin{{Name: "two"}, {Name: "three"}}, AllOrNothing: true})
	member := Member
	realmtest.Do(s, owner, EditUser{User: guest, Role: &member})
	people := map[string][]UserID{}
	for _, e := range s.ListEvents(guest) {
		switch e := e.(type) {
		case *ChannelAppeared:
			for _, c := range e.Channels {
				people[c.Name] = []UserID{}
				if c.Subscribers != 0 {
					t.Errorf("%s: the channel event already counts subscribers that come next", c.Name)
				}
			}
		case *PeersChanged:
			for _, c := range e.Channels {
				people[s.Realm.FindChannel(c).Name] = e.Users
			}
		}
	}
	want := map[string][]UserID{"one": {ann}, "two": {owner, ann}, "three": {owner}}
	if !maps.EqualFunc(people, want, slices.Equal) {
		t.Errorf("channels with subscribers: %v, want %v", people, want)
	}
}

// A fact that may show or hide users must not bypass recordWithVisibility.
func TestRecordRejectsVisibilityFacts(t *testing.T) {
	s, _, _, _, guest := newLimitedGuestScene(t)
	role := Member
	defer func() {
		if recover() == nil {
			t.Error("Record accepted a change of role where guests are limited")
		}
	}()
	RunTurn(s.Realm, Caller{System: true}, TurnEnv{}, func(t *Turn) (Done, error) {
		t.Record(&UserChanged{ID: guest, Role: &role})
		return Done{}, nil
	})
}
