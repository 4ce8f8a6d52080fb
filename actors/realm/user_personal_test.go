package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestMuteUserMarksRead(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	say := func(text string) realm.MessageID {
		return Do(s, bo, realm.SendMessage{People: []realm.Principal{{ID: ann}}, Body: realm.Body{Text: text}}).ID
	}
	before := say("before")
	if s.ViewAs(ann).FlagsOf(before)&realm.FlagRead != 0 {
		t.Fatal("a new message is read")
	}
	ExpectRefusal(s, ann, realm.MuteUser{User: ann}, "Cannot mute self")
	ExpectRefusal(s, ann, realm.MuteUser{User: bo, Unmute: true}, "User is not muted")
	Do(s, ann, realm.MuteUser{User: bo})
	s.ExpectEvents(ann, "muted_users", "update_message_flags")
	s.ExpectNoEvents(bo)
	ExpectRefusal(s, ann, realm.MuteUser{User: bo}, "User already muted")
	for _, id := range []realm.MessageID{before, say("after")} {
		if s.ViewAs(ann).FlagsOf(id)&realm.FlagRead == 0 {
			t.Fatalf("message %d of a muted user is unread", id)
		}
	}
	Do(s, ann, realm.MuteUser{User: bo, Unmute: true})
	if id := say("again"); s.ViewAs(ann).FlagsOf(id)&realm.FlagRead != 0 {
		t.Fatal("a message of an unmuted user is read")
	}
}

func TestAlertWords(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	words := Do(s, ann, realm.ChangeAlertWords{Words: []string{" Lunch ", "lunch", "tea"}})
	if len(words) != 2 || words[0] != "Lunch" {
		t.Fatalf("the words are %q", words)
	}
	s.ExpectEvents(ann, "alert_words")
	s.ExpectNoEvents(bo)
	id := Do(s, bo, realm.SendMessage{People: []realm.Principal{{ID: ann}},
		Body: realm.Body{Text: "lunch?"}, Content: realm.ContentInfo{AlertWords: []string{"lunch"}}}).ID
	if s.ViewAs(ann).FlagsOf(id)&realm.FlagAlert == 0 {
		t.Fatal("the message has no alert flag")
	}
	if s.ViewAs(bo).FlagsOf(id)&realm.FlagAlert != 0 {
		t.Fatal("a user without the alert word has an alert flag")
	}
	if got := Do(s, ann, realm.ChangeAlertWords{Words: []string{"LUNCH"}, Remove: true}); len(got) != 1 {
		t.Fatalf("the words are %q", got)
	}
}

func TestSetStatus(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	text := "out for lunch"
	Do(s, ann, realm.SetStatus{Text: &text})
	s.ExpectEvents(bo, "user_status")
	ExpectRefusal(s, ann, realm.SetStatus{}, "Client did not pass any new values.")
	ExpectRefusal(s, bo, realm.SetStatus{User: ann, Text: &text}, "UNAUTHORIZED_PRINCIPAL")
	empty := ""
	Do(s, ann, realm.SetStatus{Text: &empty})
	if s.Realm.StatusOf(ann) != (realm.UserStatus{}) {
		t.Fatal("the status is still there")
	}
}

// A user that does not share presence is away for everyone. The stored status is shown again after a reactivation.
func TestStatusWithPresenceOff(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	presence := func(on, asStatus bool) {
		Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "presence_enabled", Value: on}}})
		if away := !on; asStatus {
			Do(s, ann, realm.SetStatus{Away: &away})
		}
	}
	presence(false, false)
	if got := ListEventsOf[*realm.StatusChanged](s, bo); len(got) != 0 || !s.Realm.StatusOf(ann).Away {
		t.Fatalf("after changing the setting Bo got %+v", got)
	}
	presence(true, false)
	presence(false, true)
	if got := ListEventsOf[*realm.StatusChanged](s, bo); len(got) != 1 || got[0].User != ann || !*got[0].Away {
		t.Fatalf("after turning presence off Bo got %+v", got)
	}
	text := "busy"
	Do(s, ann, realm.SetStatus{Text: &text})
	Do(s, olive, realm.DeactivateUser{User: ann})
	s.OpenQueue(bo)
	Do(s, olive, realm.ReactivateUser{User: ann})
	if got := ListEventsOf[*realm.StatusChanged](s, bo); len(got) != 1 || *got[0].Text != text || !*got[0].Away {
		t.Fatalf("after the reactivation Bo got %+v", got)
	}
	presence(true, true)
	if got := ListEventsOf[*realm.StatusChanged](s, bo); len(got) != 1 || *got[0].Away || s.Realm.StatusOf(ann).Away {
		t.Fatalf("after turning presence on Bo got %+v", got)
	}
	Do(s, olive, realm.ChangeUserDefaults{Values: []realm.SettingValue{{Name: "presence_enabled", Value: false}}})
	cy := Do(s, 0, realm.CreateUser{Name: "Cy", Email: "cy@example.com"})
	if got := ListEventsOf[*realm.StatusChanged](s, bo); len(got) != 1 || got[0].User != cy || !*got[0].Away {
		t.Fatalf("for a new account with presence off Bo got %+v", got)
	}
}

func TestDefaultLanguageOfNewAccounts(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	speaks := func(email string) any {
		return s.Realm.Find(Do(s, 0, realm.CreateUser{Name: "New", Email: email})).Setting("default_language")
	}
	if got := speaks("a@example.com"); got != "en" {
		t.Fatalf("the default language is %v", got)
	}
	language := []realm.SettingValue{{Name: "default_language", Value: "fr"}}
	Do(s, olive, realm.ChangeOrganization{Values: language})
	if got := speaks("b@example.com"); got != "fr" {
		t.Fatalf("in a French organization the language is %v", got)
	}
	language[0].Value = "de"
	Do(s, olive, realm.ChangeUserDefaults{Values: language})
	if got := speaks("c@example.com"); got != "de" {
		t.Fatalf("with German as the default for new accounts the language is %v", got)
	}
}
