package realm_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

var member = realm.Invitation{Role: realm.Member, Notify: true}

// hashOf is the hash of a token as scenes make it.
func hashOf(token string) (h [32]byte) {
	copy(h[:], token)
	return h
}

func TestInvitationsAreCheckedInTheirOrder(t *testing.T) {
	s := New(t)
	olive, mo, ann, gus := s.Join("Olive", realm.Owner), s.Join("Mo", realm.Moderator), s.Join("Ann"), s.Join("Gus", realm.Guest)
	bot := s.JoinBot("Helper", ann)
	as := func(role realm.Role) realm.InviteByMail {
		return realm.InviteByMail{Invitation: realm.Invitation{Role: role, Channels: []realm.ChannelID{99}}}
	}
	Refused(s, gus, as(realm.Member), "Insufficient permission")
	Refused(s, bot, as(realm.Member), "This endpoint does not accept bot requests.")
	Refused(s, ann, as(realm.Owner), "Must be an organization owner")
	Refused(s, ann, as(realm.Moderator), "Must be an organization administrator")
	Refused(s, mo, as(realm.Administrator), "Must be an organization administrator")
	Refused(s, mo, as(realm.Moderator), "You must specify at least one email address.")
	c := as(realm.Member)
	c.Emails = " , \n"
	Refused(s, ann, c, "You must specify at least one email address.")
	c.Emails = "x@example.com"
	Refused(s, ann, c, "Invalid channel ID 99. No invites were sent.")
	c.Channels, c.Groups = nil, []realm.GroupID{99}
	Refused(s, ann, c, "Invalid user group")
	c.Groups = []realm.GroupID{Do(s, olive, realm.CreateGroup{Name: "ops"})}
	Refused(s, ann, c, "Insufficient permission")
	Refused(s, ann, realm.MakeInviteLink{Invitation: member}, "Insufficient permission")
	if _, err := Try(s, ann, realm.InviteByMail{Invitation: member, Emails: "a@example.com,b@example.com", Daily: 1}); failure(err)["daily_limit_reached"] != true {
		t.Errorf("over the daily limit: %v", err)
	}
}

func failure(err error) map[string]any {
	var r *realm.Refusal
	if !errors.As(err, &r) || r.Code != "INVITATION_FAILED" {
		return map[string]any{"refused": fmt.Sprint(err)}
	}
	return r.Data
}

func TestSomeInvitationsFail(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, olive, realm.DeactivateUser{User: bo})
	invite := func(emails string) (realm.InvitesMade, error) {
		return Try(s, ann, realm.InviteByMail{Invitation: member, Emails: emails})
	}
	_, err := invite("nobody,ann@example.com,new@example.com")
	if got := failure(err); !reflect.DeepEqual(got["errors"], []any{[]any{"nobody", "Invalid address.", false}, []any{"ann@example.com", "Already has an account.", false}}) || got["sent_invitations"] != false {
		t.Errorf("with an invalid address: %v", got)
	}
	_, err = invite("ANN@example.com, Bo B. <bo@example.com>")
	if got := failure(err); !reflect.DeepEqual(got["errors"], []any{[]any{"ANN@example.com", "Already has an account.", false}, []any{"bo@example.com", "Account has been deactivated.", true}}) || got["sent_invitations"] != false {
		t.Errorf("with known addresses only: %v", got)
	}
	made, err := invite("ann@example.com\nnew@example.com, New One <NEW@example.com>")
	if err != nil || len(made.Letters) != 1 || made.Letters[0].Invite.Email != "new@example.com" || made.Failure == nil || made.Failure.Data["sent_invitations"] != true {
		t.Errorf("some invited: %+v %v", made, err)
	}
	s.Hears(olive, "invites_changed")
	s.Hears(ann, "invites_changed")
}

func TestAnInvitedPersonJoins(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	ann, eve := s.Join("Ann"), s.Join("Eve")
	Do(s, olive, realm.Subscribe{Channels: []realm.Joining{{Name: "plans"}}})
	plans := s.Realm.FindChannelByName("plans").ID
	ops := Do(s, olive, realm.CreateGroup{Name: "ops"})
	welcome := "Read the handbook."
	c := realm.InviteByMail{Emails: "new@example.com", Invitation: realm.Invitation{Role: realm.Moderator, Channels: []realm.ChannelID{plans}, Groups: []realm.GroupID{ops}, Notify: true, Welcome: &welcome}}
	token := Do(s, olive, c).Letters[0].Token
	s.HearsNothing(ann)
	again := Do(s, ann, realm.InviteByMail{Emails: "new@example.com", Invitation: realm.Invitation{Role: realm.Member, Welcome: &welcome}})
	if again.Letters[0].Invite.Welcome != nil {
		t.Error("only administrators write welcomes")
	}
	join := realm.AcceptInvite{Hash: hashOf(token), Name: "New One", Email: "other@example.com"}
	Refused(s, olive, join, "Insufficient permission")
	short := join
	short.Name = "x"
	Refused(s, System, short, "Name too short!")
	id := Do(s, System, join)
	if got := HeardOf[*realm.InvitesChanged](s, ann); len(got) != 1 {
		t.Error("Ann did not hear that her invitation has had its time")
	}
	if got := HeardOf[*realm.MessageArrived](s, olive); len(got) != 1 {
		t.Errorf("the inviter heard %d messages", len(got))
	}
	u := s.Realm.Find(id)
	if u.Email != "new@example.com" || u.Role != realm.Moderator || !s.Realm.Subscribed(id, plans) || !s.View(olive).InGroup(u, ops) {
		t.Errorf("joined as %+v", u)
	}
	Refused(s, System, join, "This invitation has already been used.")
	Refused(s, System, realm.AcceptInvite{Hash: hashOf(again.Letters[0].Token), Name: "New Two"}, "This invitation has been revoked.")
	Refused(s, System, realm.AcceptInvite{Hash: hashOf("guessed"), Name: "New Two"}, "This invitation link is not valid.")
	_ = eve
}

func TestLinksLetManyIn(t *testing.T) {
	s := New(t)
	olive, adam := s.Join("Olive", realm.Owner), s.Join("Adam", realm.Administrator)
	minutes := int64(10)
	token := Do(s, olive, realm.MakeInviteLink{Invitation: realm.Invitation{Role: realm.Owner, Minutes: &minutes}})
	join := func(email string) realm.AcceptInvite {
		return realm.AcceptInvite{Hash: hashOf(token), Name: "New One", Email: email}
	}
	Do(s, System, join("a@example.com"))
	Do(s, System, join("b@example.com"))
	Refused(s, System, join("b@example.com"), "Email is already in use.")
	Refused(s, System, join("b"), "Enter a valid email address.")
	Refused(s, adam, realm.RevokeInvite{Multi: true, ID: 1}, "Must be an organization owner")
	s.Later(600)
	Refused(s, System, join("c@example.com"), "This invitation has expired.")
	if list, err := s.View(olive).ManagedInvites(); err != nil || len(list) != 0 {
		t.Errorf("an expired link is listed: %v %v", list, err)
	}
	Do(s, olive, realm.RevokeInvite{Multi: true, ID: 1})
	Refused(s, olive, realm.RevokeInvite{Multi: true, ID: 1}, "Invitation has already been revoked")
	Refused(s, olive, realm.RevokeInvite{Multi: true, ID: 2}, "No such invitation")
}

func TestInvitationsAreSentAgainAndTakenBack(t *testing.T) {
	s := New(t)
	olive, adam, ann, bo := s.Join("Olive", realm.Owner), s.Join("Adam", realm.Administrator), s.Join("Ann"), s.Join("Bo")
	first := Do(s, ann, realm.InviteByMail{Invitation: member, Emails: "new@example.com,more@example.com"}).Letters
	Refused(s, bo, realm.ResendInvite{ID: 1}, "Must be an organization administrator")
	second := Do(s, adam, realm.ResendInvite{ID: 1})
	if second.Inviter != "Ann" || second.Token == first[0].Token {
		t.Errorf("sent again as %+v", second)
	}
	for _, token := range []string{first[0].Token, second.Token} {
		if _, err := s.View(System).InviteAt(hashOf(token)); err != nil {
			t.Errorf("link %s: %v", token, err)
		}
	}
	Do(s, ann, realm.RevokeInvite{ID: 1})
	s.Hears(adam, "invites_changed")
	s.HearsNothing(bo)
	Refused(s, ann, realm.RevokeInvite{ID: 1}, "No such invitation")
	Do(s, olive, realm.DeactivateUser{User: ann}) // what she invited to goes with her
	if _, err := s.View(System).InviteAt(hashOf(first[1].Token)); err == nil {
		t.Error("the link of a deactivated inviter works")
	}
	s.Later(31 * 86400)
	Do(s, bo, realm.InviteByMail{Invitation: member, Emails: "late@example.com"})
	if _, err := s.View(System).InviteAt(hashOf(first[0].Token)); err == nil || err.Error() != "This invitation link is not valid." {
		t.Errorf("an old link: %v", err)
	}
}

func TestNewAccountsCannotInviteWhereAnybodyMayJoin(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "invite_required", Value: false}}})
	c := realm.InviteByMail{Invitation: member, Emails: "new@example.com"}
	Refused(s, ann, c, "INVITATION_FAILED")
	s.Later(3*86400 + 1)
	Do(s, ann, c)
}
