package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestSettingEventOnlyToItsUser(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{
		{Name: "twenty_four_hour_time", Value: true}, {Name: "color_scheme", Value: int64(2)},
	}})
	s.ExpectEvents(ann, "user_settings", "user_settings")
	s.ExpectNoEvents(bo)
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "color_scheme", Value: int64(2)}}})
	s.ExpectNoEvents(ann)
	ExpectRefusal(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{
		Name: "email_notifications_batching_period_seconds", Value: int64(0),
	}}}, "Invalid email batching period: 0 seconds")
	bot := s.JoinBot("Robo", ann)
	ExpectRefusal(s, bot, realm.ChangeSettings{}, "This endpoint does not accept bot requests.")
}

func TestHideEmailEvents(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "email_address_visibility", Value: int64(3)}}})
	if got := ListEventsOf[*realm.DeliveryEmailSeen](s, bo); len(got) != 1 || got[0].Email != "" {
		t.Fatalf("a member got %+v", got)
	}
	if got := ListEventsOf[*realm.DeliveryEmailSeen](s, olive); len(got) != 0 {
		t.Fatalf("the owner, who may still see the address, got %+v", got)
	}
	v := s.ViewAs(bo)
	if v.SeesEmail(v.Me(), s.Realm.Find(ann)) {
		t.Fatal("the member still sees the address")
	}
}

func TestEmailChangeNeedsConfirmation(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	old, fresh := s.Realm.Find(ann).Email, "ann@example.net"
	letter := func(a realm.EmailChange, _ realm.Letterhead) realm.Email { return realm.Email{To: a.To, Address: &a} }
	notice := func(a realm.EmailChange, _ realm.Letterhead) realm.Email { return realm.Email{To: a.From} }
	Do(s, ann, realm.ChangeSettings{Email: &fresh, Confirm: letter})
	s.ExpectNoEvents(bo)
	list := outboxJobs(s, realm.OutboxEmail)
	if len(list) != 1 || list[0].Letter.To != fresh || s.Realm.Find(ann).Email != old {
		t.Fatalf("Ann's address is %s; emails: %+v", s.Realm.Find(ann).Email, list)
	}
	change := *list[0].Letter.Address
	confirm := func(of realm.EmailChange) realm.ConfirmEmailChange {
		return realm.ConfirmEmailChange{EmailChange: of, Notice: notice}
	}
	// Only the server may confirm, for the visitor with the link.
	ExpectRefusal(s, ann, confirm(change), "Insufficient permission")
	late, taken := change, change
	late.Until = change.Until - realm.EmailChangeValidity - 1
	ExpectRefusal(s, System, confirm(late), "This link is not valid, or not any longer.")
	taken.To = s.Realm.Find(bo).Email
	ExpectRefusal(s, System, confirm(taken), "Already has an account.")

	Do(s, System, confirm(change))
	s.ExpectEvents(bo, "realm_user", "realm_user") // the email address, and the address shown to bo
	if s.Realm.Find(ann).Email != fresh || s.Realm.FindByEmail(old) != nil {
		t.Errorf("Ann's address is %s", s.Realm.Find(ann).Email)
	}
	if list = outboxJobs(s, realm.OutboxEmail); len(list) != 2 || list[1].Letter.To != old {
		t.Errorf("the old address got no email: %+v", list)
	}
	ExpectRefusal(s, System, confirm(change), "This link is not valid, or not any longer.") // only once
}

func TestOrganizationSettingsNeedAdmin(t *testing.T) {
	s := New(t)
	olive, ada, ann := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Ann")
	edit := func(name string, v any) realm.ChangeOrganization {
		return realm.ChangeOrganization{Values: []realm.SettingValue{{Name: name, Value: v}}}
	}
	ExpectRefusal(s, ann, edit("digest_weekday", int64(2)), "UNAUTHORIZED_PRINCIPAL")
	ExpectRefusal(s, ada, edit("invite_required", false), "UNAUTHORIZED_PRINCIPAL")
	ExpectRefusal(s, olive, edit("message_content_edit_limit_seconds", int64(0)), "REQUEST_VARIABLE_INVALID")
	ExpectRefusal(s, ada, edit("waiting_period_threshold", int64(3)), "UNAUTHORIZED_PRINCIPAL")
	ExpectRefusal(s, olive, edit("waiting_period_threshold", int64(-1)), "waiting_period_threshold is too small")
	ExpectRefusal(s, ada, edit("video_chat_provider", int64(8)), "Invalid video_chat_provider 8")
	ExpectRefusal(s, ada, edit("gif_rating_policy", int64(5)), "Invalid gif_rating_policy 5")
	long, blank, none, yes := strings.Repeat("x", 1001), " ", false, true
	ExpectRefusal(s, ada, realm.ChangeOrganization{Name: &blank}, "name cannot be blank")
	ExpectRefusal(s, ada, realm.ChangeOrganization{Name: &long}, "name is too long (limit: 40 characters)")
	ExpectRefusal(s, ada, realm.ChangeOrganization{Description: &long},
		"description is too long (limit: 1000 characters)")
	ExpectRefusal(s, ada, realm.ChangeOrganization{Passwords: &yes}, "UNAUTHORIZED_PRINCIPAL")
	ExpectRefusal(s, olive, realm.ChangeOrganization{Passwords: &none},
		"At least one authentication method must be enabled.")
	Do(s, olive, realm.ChangeOrganization{Passwords: &yes})
	s.ExpectNoEvents(ann)
	Do(s, ada, edit("message_content_edit_limit_seconds", nil))
	s.ExpectEvents(ann, "realm")
	Do(s, ada, edit("message_content_edit_limit_seconds", nil))
	s.ExpectNoEvents(ann)
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{
		Name: "can_invite_users_group", New: realm.GroupValue{Members: []realm.UserID{ann}},
	}}})
	s.ExpectEvents(ann, "realm")
	if v := s.ViewAs(ann); !v.HasPermission(v.Me(), "can_invite_users_group") {
		t.Fatal("a member named by the setting lacks the permission")
	}
	if v := s.ViewAs(ada); v.HasPermission(v.Me(), "can_invite_users_group") {
		t.Fatal("an administrator not named by the setting has the permission")
	}
	ExpectRefusal(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{
		Name: "can_create_web_public_channel_group", New: realm.GroupValue{Members: []realm.UserID{ann}},
	}}}, "SYSTEM_GROUP_REQUIRED")
	ExpectRefusal(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{
		Name: "can_invite_users_group", New: realm.GroupValue{Group: 1}, Old: &realm.GroupValue{Group: 1},
	}}}, "EXPECTATION_MISMATCH")
}
