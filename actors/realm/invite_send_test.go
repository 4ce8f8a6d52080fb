package realm_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

var memberOptions = realm.InviteOptions{Role: realm.Member, Notify: true}

// hashOf returns the hash of a token as scenes compute it.
func hashOf(token string) (h [32]byte) {
	copy(h[:], token)
	return h
}

func TestInviteCheckOrder(t *testing.T) {
	s := New(t)
	olive, mo := s.Join("Olive", realm.Owner), s.Join("Mo", realm.Moderator)
	ann, gus := s.Join("Ann"), s.Join("Gus", realm.Guest)
	bot := s.JoinBot("Helper", ann)
	as := func(role realm.Role) realm.InviteByMail {
		return realm.InviteByMail{InviteOptions: realm.InviteOptions{Role: role, Channels: []realm.ChannelID{99}}}
	}
	ExpectRefusal(s, gus, as(realm.Member), "Insufficient permission")
	ExpectRefusal(s, bot, as(realm.Member), "This endpoint does not accept bot requests.")
	ExpectRefusal(s, ann, as(realm.Owner), "Must be an organization owner")
	ExpectRefusal(s, ann, as(realm.Moderator), "Must be an organization administrator")
	ExpectRefusal(s, mo, as(realm.Administrator), "Must be an organization administrator")
	ExpectRefusal(s, mo, as(realm.Moderator), "You must specify at least one email address.")
	c := as(realm.Member)
	c.Emails = " , \n"
	ExpectRefusal(s, ann, c, "You must specify at least one email address.")
	c.Emails = "x@example.com"
	ExpectRefusal(s, ann, c, "Invalid channel ID 99. No invites were sent.")
	c.Channels, c.Groups = nil, []realm.GroupID{99}
	ExpectRefusal(s, ann, c, "Invalid user group")
	c.Groups = []realm.GroupID{Do(s, olive, realm.CreateGroup{Name: "ops"})}
	ExpectRefusal(s, ann, c, "Insufficient permission")
	ExpectRefusal(s, ann, realm.MakeInviteLink{InviteOptions: memberOptions}, "Insufficient permission")
	two := realm.InviteByMail{InviteOptions: memberOptions, Emails: "a@example.com,b@example.com", Daily: 1}
	if _, err := Try(s, ann, two); invitationFailure(err)["daily_limit_reached"] != true {
		t.Errorf("above the daily limit: %v", err)
	}
}

// invitationFailure returns the data of an INVITATION_FAILED refusal.
func invitationFailure(err error) map[string]any {
	var r *realm.Refusal
	if !errors.As(err, &r) || r.Code != "INVITATION_FAILED" {
		return map[string]any{"refused": fmt.Sprint(err)}
	}
	return r.Data
}

func TestInviteSomeAddressesFail(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, olive, realm.DeactivateUser{User: bo})
	invite := func(emails string) (realm.InvitesMade, error) {
		return Try(s, ann, realm.InviteByMail{InviteOptions: memberOptions, Emails: emails})
	}
	_, err := invite("nobody,ann@example.com,new@example.com")
	want := []any{
		[]any{"nobody", "Invalid address.", false},
		[]any{"ann@example.com", "Already has an account.", false},
	}
	if got := invitationFailure(err); !reflect.DeepEqual(got["errors"], want) || got["sent_invitations"] != false {
		t.Errorf("with an invalid address: %v", got)
	}
	_, err = invite("ANN@example.com, Bo B. <bo@example.com>")
	want = []any{
		[]any{"ANN@example.com", "Already has an account.", false},
		[]any{"bo@example.com", "Account has been deactivated.", true},
	}
	if got := invitationFailure(err); !reflect.DeepEqual(got["errors"], want) || got["sent_invitations"] != false {
		t.Errorf("with known addresses only: %v", got)
	}
	made, err := invite("ann@example.com\nnew@example.com, New One <NEW@example.com>")
	if err != nil || len(made.Emails) != 1 || made.Emails[0].Invite.Email != "new@example.com" ||
		made.Failure == nil || made.Failure.Data["sent_invitations"] != true {
		t.Errorf("with one known address: %+v %v", made, err)
	}
	s.ExpectEvents(olive, "invites_changed")
	s.ExpectEvents(ann, "invites_changed")
}

func TestAcceptEmailInvite(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	ann, eve := s.Join("Ann"), s.Join("Eve")
	Do(s, olive, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "plans"}}})
	plans := s.Realm.FindChannelByName("plans").ID
	ops := Do(s, olive, realm.CreateGroup{Name: "ops"})
	welcome := "Read the handbook."
	c := realm.InviteByMail{Emails: "new@example.com", InviteOptions: realm.InviteOptions{Role: realm.Moderator,
		Channels: []realm.ChannelID{plans}, Groups: []realm.GroupID{ops}, Notify: true, Welcome: &welcome}}
	token := Do(s, olive, c).Emails[0].Token
	s.ExpectNoEvents(ann)
	again := Do(s, ann, realm.InviteByMail{Emails: "new@example.com",
		InviteOptions: realm.InviteOptions{Role: realm.Member, Welcome: &welcome}})
	if again.Emails[0].Invite.Welcome != nil {
		t.Error("a member set a welcome message; only administrators may")
	}
	join := realm.AcceptInvite{Hash: hashOf(token), Name: "New One", Email: "other@example.com"}
	ExpectRefusal(s, olive, join, "Insufficient permission")
	short := join
	short.Name = "x"
	ExpectRefusal(s, System, short, "Name too short!")
	id := Do(s, System, join)
	if got := ListEventsOf[*realm.InvitesChanged](s, ann); len(got) != 1 {
		t.Error("Ann got no event that her invitation was revoked")
	}
	if got := ListEventsOf[*realm.MessageArrived](s, olive); len(got) != 1 {
		t.Errorf("the inviter got %d messages, want 1", len(got))
	}
	u := s.Realm.Find(id)
	if u.Email != "new@example.com" || u.Role != realm.Moderator ||
		!s.Realm.Subscribed(id, plans) || !s.ViewAs(olive).InGroup(u, ops) {
		t.Errorf("the new user is %+v", u)
	}
	ExpectRefusal(s, System, join, "This invitation has already been used.")
	revoked := realm.AcceptInvite{Hash: hashOf(again.Emails[0].Token), Name: "New Two"}
	ExpectRefusal(s, System, revoked, "This invitation has been revoked.")
	guessed := realm.AcceptInvite{Hash: hashOf("guessed"), Name: "New Two"}
	ExpectRefusal(s, System, guessed, "This invitation link is not valid.")
	_ = eve
}

func TestAcceptInviteLink(t *testing.T) {
	s := New(t)
	olive, adam := s.Join("Olive", realm.Owner), s.Join("Adam", realm.Administrator)
	minutes := int64(10)
	options := realm.InviteOptions{Role: realm.Owner, Minutes: &minutes}
	token := Do(s, olive, realm.MakeInviteLink{InviteOptions: options})
	join := func(email string) realm.AcceptInvite {
		return realm.AcceptInvite{Hash: hashOf(token), Name: "New One", Email: email}
	}
	Do(s, System, join("a@example.com"))
	Do(s, System, join("b@example.com"))
	ExpectRefusal(s, System, join("b@example.com"), "Email is already in use.")
	ExpectRefusal(s, System, join("b"), "Enter a valid email address.")
	ExpectRefusal(s, adam, realm.RevokeInvite{Multi: true, ID: 1}, "Must be an organization owner")
	s.Advance(600)
	ExpectRefusal(s, System, join("c@example.com"), "This invitation has expired.")
	if list, err := s.ViewAs(olive).ManagedInvites(); err != nil || len(list) != 0 {
		t.Errorf("an expired link is listed: %v %v", list, err)
	}
	Do(s, olive, realm.RevokeInvite{Multi: true, ID: 1})
	ExpectRefusal(s, olive, realm.RevokeInvite{Multi: true, ID: 1}, "Invitation has already been revoked")
	ExpectRefusal(s, olive, realm.RevokeInvite{Multi: true, ID: 2}, "No such invitation")
}

func TestResendAndRevokeInvite(t *testing.T) {
	s := New(t)
	olive, adam := s.Join("Olive", realm.Owner), s.Join("Adam", realm.Administrator)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	invite := realm.InviteByMail{InviteOptions: memberOptions, Emails: "new@example.com,more@example.com"}
	first := Do(s, ann, invite).Emails
	ExpectRefusal(s, bo, realm.ResendInvite{ID: 1}, "Must be an organization administrator")
	second := Do(s, adam, realm.ResendInvite{ID: 1})
	if second.Inviter != "Ann" || second.Token == first[0].Token {
		t.Errorf("the second email is %+v", second)
	}
	for _, token := range []string{first[0].Token, second.Token} {
		if _, err := s.ViewAs(System).FindInvite(hashOf(token)); err != nil {
			t.Errorf("link %s: %v", token, err)
		}
	}
	Do(s, ann, realm.RevokeInvite{ID: 1})
	s.ExpectEvents(adam, "invites_changed")
	s.ExpectNoEvents(bo)
	ExpectRefusal(s, ann, realm.RevokeInvite{ID: 1}, "No such invitation")
	Do(s, olive, realm.DeactivateUser{User: ann}) // this revokes her invitations
	if _, err := s.ViewAs(System).FindInvite(hashOf(first[1].Token)); err == nil {
		t.Error("the link of a deactivated inviter works")
	}
	s.Advance(31 * 86400)
	Do(s, bo, realm.InviteByMail{InviteOptions: memberOptions, Emails: "late@example.com"})
	_, err := s.ViewAs(System).FindInvite(hashOf(first[0].Token))
	if err == nil || err.Error() != "This invitation link is not valid." {
		t.Errorf("an old link: %v", err)
	}
}

func TestNewAccountsCannotInvite(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "invite_required", Value: false}}})
	c := realm.InviteByMail{InviteOptions: memberOptions, Emails: "new@example.com"}
	ExpectRefusal(s, ann, c, "INVITATION_FAILED")
	s.Advance(3*86400 + 1)
	Do(s, ann, c)
}

// TestInvitesGrantNoRoleAboveTheCallers holds that no user gets a role through an invitation that they could not grant:
// administrators do not see links of owners, and links of users that lost their role end.
func TestInvitesGrantNoRoleAboveTheCallers(t *testing.T) {
	s := New(t)
	olive, second := s.Join("Olive", realm.Owner), s.Join("Second", realm.Owner)
	adam := s.Join("Adam", realm.Administrator)
	link := func(by realm.UserID, role realm.Role) string {
		return Do(s, by, realm.MakeInviteLink{InviteOptions: realm.InviteOptions{Role: role}})
	}
	owners, members := link(olive, realm.Owner), link(olive, realm.Member)
	mail := Do(s, olive, realm.InviteByMail{InviteOptions: realm.InviteOptions{Role: realm.Owner},
		Emails: "new@example.com"}).Emails[0].Token
	for u, want := range map[realm.UserID]int{olive: 3, second: 3, adam: 2} {
		if list, err := s.ViewAs(u).ManagedInvites(); err != nil || len(list) != want {
			t.Errorf("user %d sees %d invitations, want %d: %v", u, len(list), want, err)
		}
	}
	administrator := realm.Administrator
	Do(s, second, realm.EditUser{User: olive, Role: &administrator})
	for _, token := range []string{owners, mail} {
		ExpectRefusal(s, System, realm.AcceptInvite{Hash: hashOf(token), Name: "New One", Email: "new@example.com"},
			"This invitation has been revoked.")
	}
	if list, err := s.ViewAs(olive).ManagedInvites(); err != nil || len(list) != 2 {
		t.Errorf("after the loss of the role %d invitations are listed, want 2: %v", len(list), err)
	}
	Do(s, System, realm.AcceptInvite{Hash: hashOf(members), Name: "New One", Email: "one@example.com"})
}
