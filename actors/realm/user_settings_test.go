package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestChangedPreferenceReachesOnlyItsUser(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "twenty_four_hour_time", Value: true}, {Name: "color_scheme", Value: int64(2)}}})
	s.Hears(ann, "user_settings", "user_settings")
	s.HearsNothing(bo)
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "color_scheme", Value: int64(2)}}})
	s.HearsNothing(ann)
	Refused(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "email_notifications_batching_period_seconds", Value: int64(0)}}}, "Invalid email batching period: 0 seconds")
	bot := s.JoinBot("Robo", ann)
	Refused(s, bot, realm.ChangeSettings{}, "This endpoint does not accept bot requests.")
}

func TestHidingTheAddressTellsThoseWhoLoseIt(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "email_address_visibility", Value: int64(3)}}})
	if got := HeardOf[*realm.DeliveryEmailSeen](s, bo); len(got) != 1 || got[0].Email != "" {
		t.Fatalf("a member heard %+v", got)
	}
	if got := HeardOf[*realm.DeliveryEmailSeen](s, olive); len(got) != 0 {
		t.Fatalf("the owner, who still may know it, heard %+v", got)
	}
	v := s.View(bo)
	if v.SeesEmail(v.Me(), s.Realm.Find(ann)) {
		t.Fatal("the member still sees the address")
	}
}

func TestAnAddressCountsWhenItIsConfirmed(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	old, fresh := s.Realm.Find(ann).Email, "ann@example.net"
	letter := func(a realm.AddressChange, org string) realm.Letter { return realm.Letter{To: a.To, Address: &a} }
	notice := func(a realm.AddressChange, org string) realm.Letter { return realm.Letter{To: a.From} }
	Do(s, ann, realm.ChangeSettings{Email: &fresh, Confirm: letter})
	s.HearsNothing(bo)
	list := errands(s, realm.LetterErrand)
	if len(list) != 1 || list[0].Letter.To != fresh || s.Realm.Find(ann).Email != old {
		t.Fatalf("she has %s; letters: %+v", s.Realm.Find(ann).Email, list)
	}
	change := *list[0].Letter.Address
	confirm := func(of realm.AddressChange) realm.ConfirmAddress {
		return realm.ConfirmAddress{AddressChange: of, Notice: notice}
	}
	Refused(s, ann, confirm(change), "Insufficient permission") // only who has the link, for whom the server asks
	late, taken := change, change
	late.Until = change.Until - realm.AddressValidity - 1
	Refused(s, System, confirm(late), "This link is not valid, or not any longer.")
	taken.To = s.Realm.Find(bo).Email
	Refused(s, System, confirm(taken), "Already has an account.")

	Do(s, System, confirm(change))
	s.Hears(bo, "realm_user", "realm_user") // the address, and the one he is shown
	if s.Realm.Find(ann).Email != fresh || s.Realm.FindByEmail(old) != nil {
		t.Errorf("she has %s", s.Realm.Find(ann).Email)
	}
	if list = errands(s, realm.LetterErrand); len(list) != 2 || list[1].Letter.To != old {
		t.Errorf("the old address was not told: %+v", list)
	}
	Refused(s, System, confirm(change), "This link is not valid, or not any longer.") // once
}

func TestOrganizationSettingsAreForAdministrators(t *testing.T) {
	s := New(t)
	olive, ada, ann := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Ann")
	edit := func(name string, v any) realm.ChangeOrganization {
		return realm.ChangeOrganization{Values: []realm.SettingValue{{Name: name, Value: v}}}
	}
	Refused(s, ann, edit("digest_weekday", int64(2)), "UNAUTHORIZED_PRINCIPAL")
	Refused(s, ada, edit("invite_required", false), "UNAUTHORIZED_PRINCIPAL")
	Refused(s, olive, edit("message_content_edit_limit_seconds", int64(0)), "REQUEST_VARIABLE_INVALID")
	Refused(s, ada, edit("waiting_period_threshold", int64(3)), "UNAUTHORIZED_PRINCIPAL")
	Refused(s, olive, edit("waiting_period_threshold", int64(-1)), "waiting_period_threshold is too small")
	Refused(s, ada, edit("video_chat_provider", int64(8)), "Invalid video_chat_provider 8")
	Refused(s, ada, edit("gif_rating_policy", int64(5)), "Invalid gif_rating_policy 5")
	long, blank, none, yes := strings.Repeat("x", 1001), " ", false, true
	Refused(s, ada, realm.ChangeOrganization{Name: &blank}, "name cannot be blank")
	Refused(s, ada, realm.ChangeOrganization{Name: &long}, "name is too long (limit: 40 characters)")
	Refused(s, ada, realm.ChangeOrganization{Description: &long}, "description is too long (limit: 1000 characters)")
	Refused(s, ada, realm.ChangeOrganization{Passwords: &yes}, "UNAUTHORIZED_PRINCIPAL")
	Refused(s, olive, realm.ChangeOrganization{Passwords: &none}, "At least one authentication method must be enabled.")
	Do(s, olive, realm.ChangeOrganization{Passwords: &yes})
	s.HearsNothing(ann)
	Do(s, ada, edit("message_content_edit_limit_seconds", nil))
	s.Hears(ann, "realm")
	Do(s, ada, edit("message_content_edit_limit_seconds", nil))
	s.HearsNothing(ann)
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_invite_users_group", New: realm.GroupValue{Members: []realm.UserID{ann}}}}})
	s.Hears(ann, "realm")
	if v := s.View(ann); !v.May(v.Me(), "can_invite_users_group") {
		t.Fatal("a named member may not")
	}
	if v := s.View(ada); v.May(v.Me(), "can_invite_users_group") {
		t.Fatal("an unnamed administrator may")
	}
	Refused(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_create_web_public_channel_group", New: realm.GroupValue{Members: []realm.UserID{ann}}}}}, "SYSTEM_GROUP_REQUIRED")
	Refused(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_invite_users_group", New: realm.GroupValue{Group: 1}, Old: &realm.GroupValue{Group: 1}}}}, "EXPECTATION_MISMATCH")
}
