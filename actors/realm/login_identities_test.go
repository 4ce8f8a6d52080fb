package realm_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

const issuer = "https://login.example.org"

func identity(subject string) realm.IdentityName {
	return realm.IdentityName{Issuer: issuer, Subject: subject}
}

// ownerOf returns the user with an identity, 0 if there is none.
func ownerOf(s *Scene, n realm.IdentityName) realm.UserID {
	if u := s.ViewAs(System).FindByIdentity(n); u != nil {
		return u.ID
	}
	return 0
}

// An identity belongs to one account, whatever the address, and only the server connects it.
func TestLinkIdentity(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robot", ann)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")}) // again: no effect
	if got := ownerOf(s, identity("1")); got != ann || len(s.Realm.IdentitiesOf(ann)) != 1 {
		t.Errorf("the identity belongs to %d, want %d", got, ann)
	}
	for _, other := range []realm.IdentityName{{Issuer: issuer, Subject: "2"}, {Issuer: issuer + "/x", Subject: "1"},
		{Issuer: issuer, Subject: "1 "}} {
		if got := ownerOf(s, other); got != 0 {
			t.Errorf("%+v belongs to %d", other, got)
		}
	}
	if u := s.ViewAs(bo).FindByIdentity(identity("1")); u != nil {
		t.Error("a user finds accounts by identity")
	}
	for _, x := range []struct {
		as   realm.UserID
		c    realm.LinkIdentity
		want string
	}{
		{System, realm.LinkIdentity{User: bo, Identity: identity("1")}, "BAD_REQUEST"},
		{System, realm.LinkIdentity{User: bot, Identity: identity("2")}, "Insufficient permission"},
		{ann, realm.LinkIdentity{User: ann, Identity: identity("2")}, "Insufficient permission"},
		{System, realm.LinkIdentity{User: bo, Identity: identity("")}, "BAD_REQUEST"},
		{System, realm.LinkIdentity{User: bo, Identity: realm.IdentityName{Subject: "2"}}, "BAD_REQUEST"},
		{System, realm.LinkIdentity{User: bo, Identity: identity(strings.Repeat("x", 257))}, "BAD_REQUEST"},
		{System, realm.LinkIdentity{User: bo, Identity: identity("\xff")}, "BAD_REQUEST"},
		{System, realm.LinkIdentity{User: bo, Identity: identity("2"), Password: "old"}, "AUTHENTICATION_FAILED"},
	} {
		ExpectRefusal(s, x.as, x.c, x.want)
	}
	for i := range realm.MaxIdentities {
		Do(s, System, realm.LinkIdentity{User: bo, Identity: identity(fmt.Sprint("bo", i))})
	}
	ExpectRefusal(s, System, realm.LinkIdentity{User: bo, Identity: identity("more")}, "BAD_REQUEST")
	Do(s, System, realm.DeactivateUser{User: bo})
	ExpectRefusal(s, System, realm.LinkIdentity{User: bo, Identity: identity("bo0")}, "USER_DEACTIVATED")
	if ownerOf(s, identity("bo0")) != bo {
		t.Error("a deactivated account has lost its identity: after the reactivation its user cannot log in")
	}
}

// Users disconnect their own identities, but never the last way to log in.
func TestUnlinkIdentity(t *testing.T) {
	s := New(t)
	ann, bo, olive := s.Join("Ann"), s.Join("Bo"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("2")})
	for _, who := range []realm.UserID{bo, olive} {
		if _, err := Try(s, who, realm.UnlinkIdentity{User: ann, Identity: identity("1")}); err == nil {
			t.Errorf("user %d disconnects an identity of another user", who)
		}
	}
	Do(s, ann, realm.UnlinkIdentity{User: ann, Identity: identity("1")})
	if ownerOf(s, identity("1")) != 0 {
		t.Error("the identity is still connected")
	}
	if _, err := Try(s, ann, realm.UnlinkIdentity{User: ann, Identity: identity("1")}); err == nil {
		t.Error("an identity that is not connected is disconnected")
	}
	ExpectRefusal(s, ann, realm.UnlinkIdentity{User: ann, Identity: identity("2")}, "BAD_REQUEST")
	hash := "$argon2id$"
	Do(s, ann, realm.ChangeSettings{Password: &hash})
	Do(s, ann, realm.UnlinkIdentity{User: ann, Identity: identity("2")})
	if len(s.Realm.IdentitiesOf(ann)) != 0 {
		t.Error("the last identity is still connected")
	}
	Do(s, System, realm.LinkIdentity{User: bo, Identity: identity("1")}) // it is free again
}

// A sign-up with an identity follows the rules of the organization, and of the invitation if there is one.
func TestSignUpWithIdentity(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	sign := func(subject, email string) realm.SignUpWithIdentity {
		return realm.SignUpWithIdentity{Identity: identity(subject), Email: email, Name: "New " + subject}
	}
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "invite_required", Value: true}}})
	ExpectRefusal(s, System, sign("1", "one@example.net"), "BAD_REQUEST")
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "invite_required", Value: false}}})
	id := Do(s, System, sign("1", "one@example.net"))
	if u := s.ViewAs(System).Find(id); ownerOf(s, identity("1")) != id || u.Password != "" || u.Role != realm.Member {
		t.Errorf("the account: %+v", u)
	}
	Do(s, System, realm.RequestPasswordReset{Email: "one@example.net",
		Compose: func(realm.EmailedLink, realm.Letterhead) realm.Email {
			t.Error("a user of a login provider is offered a new password")
			return realm.Email{}
		}})
	for subject, email := range map[string]string{"1": "two@example.net", "2": "one@example.net", "3": "bad",
		"4": "x@mailinator.com"} {
		if _, err := Try(s, System, sign(subject, email)); err == nil {
			t.Errorf("subject %s signs up as %s", subject, email)
		}
	}
	if _, err := Try(s, id, sign("5", "five@example.net")); err == nil {
		t.Error("a user signs up others")
	}
	if ownerOf(s, identity("2"))+ownerOf(s, identity("5")) != 0 {
		t.Error("a refused sign-up has connected an identity")
	}
}
