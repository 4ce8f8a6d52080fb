package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func role(r realm.Role) *realm.Role { return &r }

func TestOwnerRoleChanges(t *testing.T) {
	s := New(t)
	olive, ada := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator)
	ann, gus := s.Join("Ann"), s.Join("Gus", realm.Guest)

	ExpectRefusal(s, ada, realm.EditUser{User: ann, Role: role(realm.Owner)}, "UNAUTHORIZED_PRINCIPAL")
	ExpectRefusal(s, ada, realm.EditUser{User: olive, Role: role(realm.Member)}, "UNAUTHORIZED_PRINCIPAL")
	ExpectRefusal(s, olive, realm.EditUser{User: olive, Role: role(realm.Member)},
		"The owner permission cannot be removed from the only organization owner.")
	ExpectRefusal(s, olive, realm.EditUser{
		User: gus, Role: role(realm.Administrator),
	}, "Guests cannot be organization administrators")
	ExpectRefusal(s, ann, realm.EditUser{User: gus, Role: role(realm.Member)}, "Insufficient permission")
	Do(s, olive, realm.EditUser{User: ann, Role: role(realm.Owner)})
	s.ExpectEvents(gus, "realm_user", "user_group", "user_group", "user_group")
	Do(s, ann, realm.EditUser{User: olive, Role: role(realm.Member)})
	ExpectRefusal(s, olive, realm.EditUser{User: gus, Role: role(realm.Member)}, "Insufficient permission")
}

func TestNewMemberSeesPublicChannels(t *testing.T) {
	s := New(t)
	olive, gus := s.Join("Olive", realm.Owner), s.Join("Gus", realm.Guest)
	Do(s, olive, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "dev"}}, AllOrNothing: true})
	s.ExpectNoEvents(gus)
	Do(s, olive, realm.EditUser{User: gus, Role: role(realm.Member)})
	if got := ListEventsOf[*realm.ChannelAppeared](s, gus); len(got) != 1 || got[0].Channels[0].Name != "dev" {
		t.Fatalf("the new member got %+v", got)
	}
	Do(s, olive, realm.EditUser{User: gus, Role: role(realm.Guest)})
	if got := ListEventsOf[*realm.ChannelVanished](s, gus); len(got) != 1 {
		t.Fatalf("the new guest got %d events of vanished channels, want 1", len(got))
	}
}

func TestDeactivatedAccountGetsNoEvents(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robo", ann)
	Do(s, ann, realm.Subscribe{
		Channels: []realm.ChannelToJoin{{Name: "dev"}}, Principals: []realm.Principal{{ID: ann}, {ID: bo}},
		AllOrNothing: true,
	})

	ExpectRefusal(s, bo, realm.DeactivateUser{User: ann}, "Insufficient permission")
	ExpectRefusal(s, olive, realm.DeactivateUser{Self: true}, "CANNOT_DEACTIVATE_LAST_USER")
	Do(s, olive, realm.DeactivateUser{User: ann})
	s.ExpectNoEvents(ann)
	ExpectRefusal(s, olive, realm.DeactivateUser{User: ann}, "User is deactivated")
	ExpectRefusal(s, bo, realm.DeactivateUser{User: ann}, "User is deactivated")
	if s.Realm.Find(bot).Active {
		t.Fatal("the bot of a deactivated owner is still active")
	}
	dev := s.Realm.FindChannelByName("dev")
	Do(s, bo, realm.SendMessage{ToChannel: true, Channel: dev.ID, Topic: "x", Body: realm.Body{Text: "she is gone"}})
	s.ExpectNoEvents(ann)
	ExpectRefusal(s, bo, realm.SendMessage{People: []realm.Principal{{ID: ann}}, Body: realm.Body{Text: "hi"}},
		"'"+s.Realm.Find(ann).Email+"' is no longer using Zulip.")

	ExpectRefusal(s, bo, realm.ReactivateUser{User: ann}, "Insufficient permission")
	Do(s, olive, realm.ReactivateUser{User: ann})
	Do(s, olive, realm.ReactivateUser{User: ann}) // again
	s.ExpectNoEvents(olive)
	ExpectRefusal(s, bo, realm.ReactivateUser{User: ann}, "Insufficient permission")
	Do(s, olive, realm.ReactivateUser{User: bot})
	ExpectRefusal(s, olive, realm.ReactivateUser{User: bot}, `There is already an active bot named "Robo" in this `+
		`organization. To reactivate this bot, you must rename or deactivate the other one first.`)
	s.OpenQueue(ann)
	Do(s, bo, realm.SendMessage{ToChannel: true, Channel: dev.ID, Topic: "x", Body: realm.Body{Text: "welcome back"}})
	if got := ListEventsOf[*realm.MessageArrived](s, ann); len(got) != 1 {
		t.Fatalf("after reactivation Ann got %d messages, want 1", len(got))
	}
}

func TestCreateUserNeedsGrant(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	ExpectRefusal(s, olive, realm.CreateUser{
		Email: "new@example.org", Name: "New Person",
	}, "User not authorized to create users")
	Do(s, 0, realm.Grant{User: olive, CreateUsers: true})
	Do(s, olive, realm.CreateUser{Email: "new@example.org", Name: "New Person"})
	s.ExpectEvents(olive, "realm_user", "user_group", "user_group")
	ExpectRefusal(s, olive, realm.CreateUser{Email: "NEW@example.org", Name: "New Person"}, "Email is already in use.")
	ExpectRefusal(s, olive, realm.CreateUser{Email: "x@example.org", Name: "X*"}, "Invalid characters in name!")
	ExpectRefusal(s, olive, realm.CreateUser{Email: "example.org", Name: "New Person"}, "Bad name or username")
}

// TestLogInChecksAccountWhenItActs holds that a login whose password was right when it was checked is refused after the
// account was deactivated or its password changed.
func TestLogInChecksAccountWhenItActs(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	Do(s, System, realm.SetPassword{User: ann, Hash: "old"})
	Do(s, System, realm.LogIn{User: ann, Password: "old"})
	Do(s, System, realm.SetPassword{User: ann, Hash: "new"})
	ExpectRefusal(s, System, realm.LogIn{User: ann, Password: "old"}, "AUTHENTICATION_FAILED")
	Do(s, System, realm.DeactivateUser{User: ann})
	ExpectRefusal(s, System, realm.LogIn{User: ann, Password: "new"}, "USER_DEACTIVATED")
}
