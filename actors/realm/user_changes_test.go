package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func role(r realm.Role) *realm.Role { return &r }

func TestOwnersRulesForTheOwnerRole(t *testing.T) {
	s := New(t)
	olive, ada, ann, gus := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Ann"), s.Join("Gus", realm.Guest)

	Refused(s, ada, realm.EditUser{User: ann, Role: role(realm.Owner)}, "UNAUTHORIZED_PRINCIPAL")
	Refused(s, ada, realm.EditUser{User: olive, Role: role(realm.Member)}, "UNAUTHORIZED_PRINCIPAL")
	Refused(s, olive, realm.EditUser{User: olive, Role: role(realm.Member)}, "The owner permission cannot be removed from the only organization owner.")
	Refused(s, olive, realm.EditUser{User: gus, Role: role(realm.Administrator)}, "Guests cannot be organization administrators")
	Refused(s, ann, realm.EditUser{User: gus, Role: role(realm.Member)}, "Insufficient permission")
	Do(s, olive, realm.EditUser{User: ann, Role: role(realm.Owner)})
	s.Hears(gus, "realm_user", "user_group", "user_group", "user_group")
	Do(s, ann, realm.EditUser{User: olive, Role: role(realm.Member)})
	Refused(s, olive, realm.EditUser{User: gus, Role: role(realm.Member)}, "Insufficient permission")
}

func TestGuestWhoBecomesMemberSeesPublicChannels(t *testing.T) {
	s := New(t)
	olive, gus := s.Join("Olive", realm.Owner), s.Join("Gus", realm.Guest)
	Do(s, olive, realm.Subscribe{Channels: []realm.Joining{{Name: "dev"}}, Fatal: true})
	s.HearsNothing(gus)
	Do(s, olive, realm.EditUser{User: gus, Role: role(realm.Member)})
	if got := HeardOf[*realm.ChannelAppeared](s, gus); len(got) != 1 || got[0].Channels[0].Name != "dev" {
		t.Fatalf("the new member was told of %+v", got)
	}
	Do(s, olive, realm.EditUser{User: gus, Role: role(realm.Guest)})
	if got := HeardOf[*realm.ChannelVanished](s, gus); len(got) != 1 {
		t.Fatalf("the new guest was told of %d vanished channels", len(got))
	}
}

func TestDeactivatedAccountReceivesNothing(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robo", ann)
	Do(s, ann, realm.Subscribe{Channels: []realm.Joining{{Name: "dev"}}, Principals: []realm.Principal{{ID: ann}, {ID: bo}}, Fatal: true})

	Refused(s, bo, realm.DeactivateUser{User: ann}, "Insufficient permission")
	Refused(s, olive, realm.DeactivateUser{Self: true}, "CANNOT_DEACTIVATE_LAST_USER")
	Do(s, olive, realm.DeactivateUser{User: ann})
	s.HearsNothing(ann)
	if s.Realm.Find(bot).Active {
		t.Fatal("the bot outlived its owner")
	}
	dev := s.Realm.FindChannelByName("dev")
	Do(s, bo, realm.SendMessage{ToChannel: true, Channel: dev.ID, Topic: "x", Body: realm.Body{Text: "she is gone"}})
	s.HearsNothing(ann)
	Refused(s, bo, realm.SendMessage{People: []realm.Principal{{ID: ann}}, Body: realm.Body{Text: "hi"}}, "'"+s.Realm.Find(ann).Email+"' is no longer using Zulip.")

	Refused(s, bo, realm.ReactivateUser{User: ann}, "Insufficient permission")
	Do(s, olive, realm.ReactivateUser{User: ann})
	Refused(s, olive, realm.ReactivateUser{User: ann}, "User is already active")
	s.Listen(ann)
	Do(s, bo, realm.SendMessage{ToChannel: true, Channel: dev.ID, Topic: "x", Body: realm.Body{Text: "welcome back"}})
	if got := HeardOf[*realm.MessageArrived](s, ann); len(got) != 1 {
		t.Fatalf("after coming back she heard %d messages", len(got))
	}
}

func TestCreatingUsersNeedsTheGrant(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	Refused(s, olive, realm.JoinUser{Email: "new@example.org", Name: "New Person"}, "User not authorized to create users")
	Do(s, 0, realm.Grant{User: olive, CreateUsers: true})
	Do(s, olive, realm.JoinUser{Email: "new@example.org", Name: "New Person"})
	s.Hears(olive, "realm_user", "user_group", "user_group", "realm_export_consent")
	Refused(s, olive, realm.JoinUser{Email: "NEW@example.org", Name: "New Person"}, "Email is already in use.")
	Refused(s, olive, realm.JoinUser{Email: "x@example.org", Name: "X*"}, "Invalid characters in name!")
	Refused(s, olive, realm.JoinUser{Email: "example.org", Name: "New Person"}, "Bad name or username")
}
