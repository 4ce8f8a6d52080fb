package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestBotsBelongToTheirOwners(t *testing.T) {
	s := New(t)
	olive, ann, bo, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	make := realm.CreateBot{Name: "Helper", ShortName: "helper", Email: "helper-bot@example.org", Type: realm.GenericBot}
	Refused(s, gus, make, "Not allowed for guest users")
	b := Do(s, ann, make)
	s.Hears(ann, "realm_user", "user_group", "user_group", "realm_bot")
	s.Hears(olive, "realm_user", "user_group", "user_group", "realm_bot")
	s.Hears(bo, "realm_user", "user_group", "user_group")
	Refused(s, bo, make, "Email is already in use.")
	Refused(s, bo, realm.CreateBot{Name: "HELPER", ShortName: "h2", Email: "h2-bot@example.org", Type: realm.GenericBot}, "Name is already in use.")
	Refused(s, bo, realm.CreateBot{Name: "Bad", ShortName: "bad", Email: "bad-bot@example.org", Type: 9}, "Invalid bot type")
	Refused(s, bo, realm.CreateBot{Name: "Out", ShortName: "out", Email: "out-bot@example.org", Type: realm.OutgoingWebhook, Interface: 7}, "Invalid interface type")
	Refused(s, bo, realm.EditBot{Bot: b.ID}, "Insufficient permission")
	Refused(s, bo, realm.EditBot{Bot: ann}, "No such bot")
	address := "-bot@example.com"
	Refused(s, ann, realm.EditBot{Bot: b.ID, Email: &address}, "Bad name or username")
	Do(s, ann, realm.EditBot{Bot: b.ID, Owner: &bo})
	if got := HeardOf[*realm.BotMoved](s, ann); len(got) != 1 {
		t.Fatalf("the old owner heard %d times that the bot is gone", len(got))
	}
	if got := HeardOf[*realm.BotChanged](s, bo); len(got) != 1 || !got[0].New {
		t.Fatalf("the new owner heard %+v", got)
	}
	Refused(s, ann, realm.DeactivateUser{User: b.ID, Bot: true}, "Insufficient permission")
	Do(s, bo, realm.DeactivateUser{User: b.ID, Bot: true})
}

func TestARenamedChannelIsTheBotsDefaultUnderItsNewName(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	c := Do(s, olive, realm.CreateChannel{New: realm.NewChannel{Name: "old"}}).ID
	for i, name := range []string{"sends", "listens", "neither"} {
		b := realm.CreateBot{Name: name, ShortName: name, Email: name + "-bot@example.org", Type: realm.GenericBot}
		switch i {
		case 0:
			b.Sending = "old"
		case 1:
			b.Register = "old"
		}
		Do(s, ann, b)
	}
	name := "new"
	Do(s, olive, realm.EditChannel{Channel: c, Name: &name})
	if got := HeardOf[*realm.BotChanged](s, ann); len(got) != 2 || got[0].Sending != "new" || got[1].Register != "new" || got[0].New {
		t.Fatalf("the bots' owner heard %+v", got)
	}
}

func TestBotStorageLimitFromBothSides(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	bot := s.JoinBot("Robo", ann)
	Refused(s, ann, realm.Store{Values: map[string]string{"k": "v"}}, "PERMISSION_DENIED")
	full := strings.Repeat("é", 10_000_000-1)
	Do(s, bot, realm.Store{Values: map[string]string{"k": full}})
	Refused(s, bot, realm.Store{Values: map[string]string{"x": ""}}, "Request exceeds storage limit by 1 characters. The limit is 10000000 characters.")
	Do(s, bot, realm.Store{Values: map[string]string{"k": "small"}})
	Refused(s, bot, realm.Store{Forget: true, Keys: []string{"k", "nope"}}, "Key does not exist.")
	if got, err := s.View(bot).Stored(nil); err != nil || got["k"] != "small" {
		t.Fatalf("%v, %v", got, err)
	}
	Do(s, bot, realm.Store{Forget: true})
	if got, _ := s.View(bot).Stored(nil); len(got) != 0 {
		t.Fatalf("still %v", got)
	}
}

func TestProfileValuesGoByTheirFields(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	bot := s.JoinBot("Robo", ann)
	field := func(kind realm.FieldType, name, data string) int64 {
		return Do(s, olive, realm.PutField{Type: kind, Name: &name, Data: &data})
	}
	name := "Food"
	Refused(s, ann, realm.PutField{Type: realm.ShortText, Name: &name}, "UNAUTHORIZED_PRINCIPAL")
	for _, x := range []struct {
		kind       realm.FieldType
		data, want string
	}{
		{realm.SelectField, "", "Field must have at least one choice."},
		{realm.SelectField, `{"a": {"text": " ", "order": "1"}}`, `field_data["text"] cannot be blank.`},
		{realm.SelectField, `{"a": {"text": "A"}}`, `field_data["order"] cannot be blank.`},
		{realm.SelectField, `{"a": {"text": "A", "order": "1"}, "b": {"text": "A", "order": "2"}}`, "Field must not have duplicate choices."},
		{realm.ExternalAccount, `{"subtype": "custom", "url_pattern": "https://example.org"}`, "URL pattern must contain '%(username)s'."},
		{realm.ExternalAccount, `{"subtype": "else"}`, "Invalid external account type"},
	} {
		Refused(s, olive, realm.PutField{Type: x.kind, Name: &name, Data: &x.data}, x.want)
	}
	food := field(realm.SelectField, "Food", `{"1":{"text":"Soup","order":"1"},"2":{"text":"Pie","order":"2"}}`)
	s.Hears(ann, "custom_profile_fields")
	Refused(s, olive, realm.PutField{Type: realm.ShortText, Name: &name}, "A field with that label already exists.")
	born, mentor, about := field(realm.DateField, "Born", ""), field(realm.UserField, "Mentor", ""), field(realm.LongText, "About", "")
	text := func(id int64, v string) realm.ChangeProfile {
		return realm.ChangeProfile{Values: []realm.ProfileValue{{Field: id, Value: &v}}}
	}
	Refused(s, ann, text(food, "3"), "'3' is not a valid choice for 'Food'.")
	Refused(s, ann, text(born, "2023-02-29"), "Born is not a date")
	Refused(s, ann, text(99, "x"), "Field id 99 not found.")
	Refused(s, ann, text(about, strings.Repeat("x", 501)), "About is too long (limit: 500 characters)")
	Refused(s, ann, realm.ChangeProfile{Values: []realm.ProfileValue{{Field: mentor, Users: []realm.UserID{bot}}}}, "User with ID 10 is a bot")
	Do(s, ann, text(born, "2024-02-29"))
	s.Hears(olive, "realm_user")
	Do(s, ann, realm.ChangeProfile{Values: []realm.ProfileValue{{Field: mentor, Users: []realm.UserID{olive}}}})
	if got := s.Realm.Find(ann).Profile[mentor]; got != "[8]" {
		t.Fatalf("people are kept as %q", got)
	}
	Do(s, olive, realm.RemoveField{ID: born})
	if _, has := s.Realm.Find(ann).Profile[born]; has {
		t.Fatal("a value outlived its field")
	}
}
