package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestBotOwnership(t *testing.T) {
	s := New(t)
	olive, ann, bo, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	make := realm.CreateBot{Name: "Helper", ShortName: "helper", Email: "helper-bot@example.org",
		Type: realm.GenericBot}
	ExpectRefusal(s, gus, make, "Not allowed for guest users")
	b := Do(s, ann, make)
	s.ExpectEvents(ann, "realm_user", "user_group", "user_group", "realm_bot")
	s.ExpectEvents(olive, "realm_user", "user_group", "user_group", "realm_bot")
	s.ExpectEvents(bo, "realm_user", "user_group", "user_group")
	ExpectRefusal(s, bo, make, "Email is already in use.")
	for _, name := range []string{"Helper", " Olive "} {
		ExpectRefusal(s, bo, realm.CreateBot{Name: name, ShortName: "h2", Email: "h2-bot@example.org",
			Type: realm.GenericBot}, "Name is already in use.")
	}
	ExpectRefusal(s, bo, realm.CreateBot{Name: "Bad", ShortName: "bad", Email: "bad-bot@example.org", Type: 9},
		"Invalid bot type")
	ExpectRefusal(s, bo, realm.CreateBot{Name: "Out", ShortName: "out", Email: "out-bot@example.org",
		Type: realm.OutgoingWebhook, Interface: 7}, "Invalid interface type")
	ExpectRefusal(s, bo, realm.EditBot{Bot: b.ID}, "Insufficient permission")
	ExpectRefusal(s, bo, realm.EditBot{Bot: ann}, "No such bot")
	address := "-bot@example.com"
	ExpectRefusal(s, ann, realm.EditBot{Bot: b.ID, Email: &address}, "Bad name or username")
	Do(s, ann, realm.EditBot{Bot: b.ID, Owner: &bo})
	if got := ListEventsOf[*realm.BotOwnerChanged](s, ann); len(got) != 1 {
		t.Fatalf("the old owner received %d events of the bot's deletion, want 1", len(got))
	}
	if got := ListEventsOf[*realm.BotChanged](s, bo); len(got) != 1 || !got[0].New {
		t.Fatalf("the new owner received %+v", got)
	}
	ExpectRefusal(s, ann, realm.DeactivateUser{User: b.ID, Bot: true}, "Insufficient permission")
	Do(s, bo, realm.DeactivateUser{User: b.ID, Bot: true})
}

func TestUsersEndpointRejectsBots(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	b := Do(s, ann, realm.CreateBot{Name: "Robo", ShortName: "robo", Email: "robo-bot@example.org",
		Type: realm.GenericBot})
	ExpectRefusal(s, olive, realm.DeactivateUser{User: b.ID}, "No such user")
	ExpectRefusal(s, ann, realm.DeactivateUser{User: b.ID}, "No such user")
	Do(s, olive, realm.DeactivateUser{User: b.ID, Bot: true})
	if got := ListEventsOf[*realm.UserChanged](s, ann); len(got) != 1 || got[0].Active == nil || *got[0].Active {
		t.Fatalf("after deactivation by the endpoint for bots the owner received %+v", got)
	}
}

func TestRenamedChannelInBotDefaults(t *testing.T) {
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
	if got := ListEventsOf[*realm.BotChanged](s, ann); len(got) != 2 || got[0].Sending != "new" ||
		got[1].Register != "new" || got[0].New {
		t.Fatalf("the bots' owner received %+v", got)
	}
}

func TestBotStorageLimit(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	bot := s.JoinBot("Robo", ann)
	ExpectRefusal(s, ann, realm.ChangeBotStorage{Values: map[string]string{"k": "v"}}, "PERMISSION_DENIED")
	full := strings.Repeat("é", 10_000_000-1)
	Do(s, bot, realm.ChangeBotStorage{Values: map[string]string{"k": full}})
	ExpectRefusal(s, bot, realm.ChangeBotStorage{Values: map[string]string{"x": ""}},
		"Request exceeds storage limit by 1 characters. The limit is 10000000 characters.")
	Do(s, bot, realm.ChangeBotStorage{Values: map[string]string{"k": "small"}})
	ExpectRefusal(s, bot, realm.ChangeBotStorage{Forget: true, Keys: []string{"k", "nope"}}, "Key does not exist.")
	if got, err := s.ViewAs(bot).BotStorageValues(nil); err != nil || got["k"] != "small" {
		t.Fatalf("%v, %v", got, err)
	}
	Do(s, bot, realm.ChangeBotStorage{Forget: true})
	if got, _ := s.ViewAs(bot).BotStorageValues(nil); len(got) != 0 {
		t.Fatalf("after removing all keys the storage has %v", got)
	}
}

func TestProfileValuesFollowFieldRules(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	bot := s.JoinBot("Robo", ann)
	field := func(kind realm.FieldType, name, data string) int64 {
		return Do(s, olive, realm.SaveProfileField{New: true, Type: kind, Name: &name, Data: &data})
	}
	name := "Food"
	ExpectRefusal(s, ann, realm.SaveProfileField{New: true, Type: realm.ShortText, Name: &name},
		"UNAUTHORIZED_PRINCIPAL")
	for _, x := range []struct {
		kind       realm.FieldType
		data, want string
	}{
		{realm.SelectField, "", "Field must have at least one choice."},
		{realm.SelectField, `{"a": {"text": " ", "order": "1"}}`, `field_data["text"] cannot be blank.`},
		{realm.SelectField, `[1]`, "field_data is not a dict"},
		{realm.SelectField, `{"a": {"text": "A"}}`, "order key is missing from field_data"},
		{realm.SelectField, `{"a": {"text": "A", "order": 1}}`, `field_data["order"] is not a string`},
		{realm.SelectField, `{" ": {"text": "A", "order": "1"}}`, "'value' cannot be blank."},
		{realm.SelectField, `{"a": {"text": "A", "order": "1", "more": "x"}}`, "Unexpected arguments: more"},
		{realm.ExternalAccount, "", "subtype key is missing from field_data"},
		{realm.ExternalAccount, `{"subtype": "custom"}`, "Custom external account must define URL pattern"},
		{realm.ExternalAccount, `{"subtype": "custom", "url_pattern": "see %(username)s"}`,
			`field_data["url_pattern"] is not a URL`},
		{realm.ExternalAccount, `{"subtype": "github", "more": "x"}`, "Unexpected arguments: more"},
		{realm.SelectField, `{"a": {"text": "A", "order": "1"}, "b": {"text": "A", "order": "2"}}`,
			"Field must not have duplicate choices."},
		{realm.ExternalAccount, `{"subtype": "custom", "url_pattern": "https://example.org"}`,
			"URL pattern must contain '%(username)s'."},
		{realm.ExternalAccount, `{"subtype": "else"}`, "Invalid external account type"},
	} {
		ExpectRefusal(s, olive, realm.SaveProfileField{New: true, Type: x.kind, Name: &name, Data: &x.data}, x.want)
	}
	food := field(realm.SelectField, "Food", `{"1":{"text":"Soup","order":"1"},"2":{"text":"Pie","order":"2"}}`)
	s.ExpectEvents(ann, "custom_profile_fields")
	ExpectRefusal(s, olive, realm.SaveProfileField{New: true, Type: realm.ShortText, Name: &name},
		"A field with that label already exists.")
	ExpectRefusal(s, olive, realm.SaveProfileField{Name: &name}, "Field id 0 not found.")
	born, mentor, about := field(realm.DateField, "Born", ""), field(realm.UserField, "Mentor", ""),
		field(realm.LongText, "About", "")
	text := func(id int64, v string) realm.ChangeProfile {
		return realm.ChangeProfile{Values: []realm.ProfileValue{{Field: id, Value: &v}}}
	}
	ExpectRefusal(s, ann, text(food, "3"), "'3' is not a valid choice for 'Food'.")
	Do(s, ann, text(food, "2"))
	s.ExpectEvents(olive, "realm_user")
	less, more := `{"1":{"text":"Soup","order":"1"},"3":{"text":"Rice","order":"2"}}`,
		`{"1":{"text":"Soup","order":"1"},"2":{"text":"Pie","order":"2"}}`
	// a choice that is added again is not chosen by the users that had it before
	for _, data := range []string{less, more} {
		Do(s, olive, realm.SaveProfileField{ID: food, Data: &data})
		s.ExpectEvents(ann, "custom_profile_fields")
		if v, has := s.Realm.Find(ann).Profile[food]; has {
			t.Fatalf("the value %q remains although its choice was removed", v)
		}
	}
	ExpectRefusal(s, ann, text(born, "2023-02-29"), "Born is not a date")
	ExpectRefusal(s, ann, text(99, "x"), "Field id 99 not found.")
	ExpectRefusal(s, ann, text(about, strings.Repeat("x", 501)), "About is too long (limit: 500 characters)")
	ExpectRefusal(s, ann, realm.ChangeProfile{Values: []realm.ProfileValue{
		{Field: mentor, Users: []realm.UserID{bot}}}}, "User with ID 10 is a bot")
	Do(s, ann, text(born, "2024-02-29"))
	s.ExpectEvents(olive, "realm_user")
	Do(s, ann, realm.ChangeProfile{Values: []realm.ProfileValue{{Field: mentor, Users: []realm.UserID{olive}}}})
	if got := s.Realm.Find(ann).Profile[mentor]; got != "[8]" {
		t.Fatalf("users are stored as %q", got)
	}
	ExpectRefusal(s, olive, realm.OrderProfileFields{IDs: []int64{food, born, mentor, about, food}},
		"Invalid order mapping.")
	Do(s, olive, realm.RemoveProfileField{ID: born})
	if _, has := s.Realm.Find(ann).Profile[born]; has {
		t.Fatal("a value remains after its field was removed")
	}
}

func TestStandardProfileFieldsAreFixed(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	name, hint, github, custom, yes := "Mine", "a hint", `{"subtype": "github"}`,
		`{"subtype": "custom", "url_pattern": "https://a.example/%(username)s"}`, true
	id := Do(s, olive, realm.SaveProfileField{New: true, Type: realm.ExternalAccount, Name: &name, Hint: &hint,
		Data: &github})
	field := func() realm.ProfileField { return s.Realm.ProfileFields()[0] }
	if f := field(); f.Name != "GitHub username" || f.Hint != "" {
		t.Fatalf("a standard field has the name %q and the hint %q", f.Name, f.Hint)
	}
	for _, c := range []realm.SaveProfileField{{Name: &name}, {Hint: &hint}, {Data: &custom}} {
		c.ID = id
		ExpectRefusal(s, olive, c, "Default custom field cannot be updated.")
	}
	known, spaced := "GitHub username", `{ "subtype" : "github" }`
	Do(s, olive, realm.SaveProfileField{ID: id, Name: &known, Data: &spaced, Required: &yes, Summary: &yes})
	if f := field(); !f.Required || !f.Summary {
		t.Fatalf("%+v", f)
	}
	text := Do(s, olive, realm.SaveProfileField{New: true, Type: realm.ShortText, Name: &name, Data: &github})
	Do(s, olive, realm.SaveProfileField{ID: text, Data: &github, Required: &yes})
	if f := s.Realm.ProfileFields()[1]; f.Data != "" || !f.Required {
		t.Fatalf("a text field has data: %+v", f)
	}
}

func TestBotReactivationNeedsCreationRights(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	make := realm.CreateBot{Name: "Helper", ShortName: "one", Email: "one-bot@example.org", Type: realm.GenericBot}
	first := Do(s, ann, make)
	Do(s, ann, realm.DeactivateUser{User: first.ID, Bot: true})
	make.ShortName, make.Email = "two", "two-bot@example.org"
	second := Do(s, ann, make)
	ExpectRefusal(s, ann, realm.ReactivateUser{User: first.ID},
		"There is already an active bot named \"Helper\" in this organization. "+
			"To reactivate this bot, you must rename or deactivate the other one first.")
	Do(s, ann, realm.DeactivateUser{User: second.ID, Bot: true})
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{
		{Name: "can_create_bots_group", New: realm.GroupValue{Group: s.Realm.SystemGroup("role:administrators")}}}})
	ExpectRefusal(s, ann, realm.ReactivateUser{User: first.ID}, "Insufficient permission")
	Do(s, olive, realm.ReactivateUser{User: first.ID})
}

// TestUsersCannotManageBotsThatOutrankThem holds that no path gives a user a right of a bot that the user lacks: a
// higher role, or a right that the operator granted.
func TestUsersCannotManageBotsThatOutrankThem(t *testing.T) {
	const forbidden, ownersOnly = "Insufficient permission", "UNAUTHORIZED_PRINCIPAL"
	s := New(t)
	olive, ada, mo := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Mo", realm.Moderator)
	ann := s.Join("Ann")
	channel := Do(s, olive, realm.CreateChannel{New: realm.NewChannel{Name: "all"}}).ID
	bots := map[string]realm.UserID{}
	for _, name := range []string{"owner", "admin", "moderator", "member", "creator", "changer"} {
		bots[name] = s.JoinBot(name, ann)
	}
	for name, role := range map[string]realm.Role{
		"owner": realm.Owner, "admin": realm.Administrator, "moderator": realm.Moderator,
	} {
		Do(s, olive, realm.EditBot{Bot: bots[name], Role: &role})
	}
	Do(s, System, realm.Grant{User: bots["creator"], CreateUsers: true})
	Do(s, System, realm.Grant{User: bots["changer"], ChangeEmails: true})
	name, member, yes := "Renamed", realm.Member, true
	commands := func(b realm.UserID) []realm.Command[realm.Done] {
		return []realm.Command[realm.Done]{
			realm.EditBot{
				Bot:  b,
				Name: &name,
			}, realm.EditBot{Bot: b, Owner: &ann}, realm.EditBot{Bot: b, AllPublic: &yes},
			realm.EditBot{Bot: b, Role: &member}, realm.EditBot{Bot: b, Avatar: "picture"},
			realm.DeactivateUser{User: b, Bot: true},
		}
	}
	for _, x := range []struct {
		user realm.UserID
		bot  string
		want string
	}{
		{olive, "creator", forbidden}, {olive, "changer", forbidden},
		{ada, "owner", ownersOnly}, {ada, "creator", forbidden}, {ada, "changer", forbidden},
		{mo, "member", forbidden}, // neither its owner nor an administrator
		{ann, "owner", forbidden}, {ann, "admin", forbidden}, {ann, "moderator", forbidden}, {ann, "creator",
			forbidden},
	} {
		b := bots[x.bot]
		for _, c := range commands(b) {
			ExpectRefusal(s, x.user, c, x.want)
		}
		for _, renew := range []bool{false, true} {
			ExpectRefusal(s, x.user, realm.IssueBotKey{Bot: b, Renew: renew}, x.want)
		}
		if x.user != ann && x.user != mo {
			ExpectRefusal(s, x.user, realm.EditUser{User: b, Name: &name}, x.want)
			ExpectRefusal(s, x.user, realm.EditUser{User: b, Role: &member}, x.want)
		}
		if x.user == ann {
			ExpectRefusal(s, ann, realm.MailToken{Channel: channel, Sender: b}, "Invalid user ID: "+b.String())
		}
		Do(s, System, realm.DeactivateUser{User: b, Bot: true})
		ExpectRefusal(s, x.user, realm.ReactivateUser{User: b}, x.want)
		Do(s, System, realm.ReactivateUser{User: b})
	}
	ExpectRefusal(s, ann, realm.EditBot{Bot: bots["member"], Owner: &mo}, forbidden)
	ExpectRefusal(s, ada, realm.EditBot{Bot: bots["member"], Owner: &olive}, forbidden)
	for u, list := range map[realm.UserID][]string{
		olive: {"owner", "admin", "moderator", "member"}, ada: {"admin", "moderator", "member"}, ann: {"member"},
	} {
		for _, b := range list {
			if key := Do(s, u, realm.IssueBotKey{Bot: bots[b]}); key == "" {
				t.Errorf("user %d got no key of bot %s", u, b)
			}
		}
	}
	Do(s, ann, realm.MailToken{Channel: channel, Sender: bots["member"]})
	Do(s, ada, realm.EditBot{Bot: bots["member"], Owner: &mo})
}

// TestEmailShowsNoSenderThatOutranksItsUser holds that an email address stops to post as a bot that outranks the user
// of the address.
func TestEmailShowsNoSenderThatOutranksItsUser(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	bot := s.JoinBot("Robo", ann)
	channel := Do(s, olive, realm.CreateChannel{New: realm.NewChannel{Name: "all"}}).ID
	token := Do(s, ann, realm.MailToken{Channel: channel, Sender: bot}).Token
	Do(s, System, realm.PostEmail{Token: token, Topic: "t", Text: "hi"})
	admin := realm.Administrator
	Do(s, olive, realm.EditBot{Bot: bot, Role: &admin})
	if _, err := Try(s, System, realm.PostEmail{Token: token, Topic: "t", Text: "hi"}); err == nil {
		t.Fatal("an email of a member was posted as an administrator's")
	}
}

// TestBotDefaultsDoNotNameHiddenChannels holds that a bot's owner who lost access to a private channel does not learn
// its new name from the bot's details.
func TestBotDefaultsDoNotNameHiddenChannels(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	c := Do(s, olive, realm.CreateChannel{
		New: realm.NewChannel{Name: "plans", Private: true}, Subscribers: []realm.Principal{{ID: olive}, {ID: ann}},
	}).ID
	Do(s, ann, realm.CreateBot{Name: "Robo", ShortName: "robo", Email: "robo-bot@example.org",
		Type: realm.GenericBot, Sending: "plans"})
	Do(s, ann, realm.Unsubscribe{Names: []string{"plans"}})
	name := "secret"
	Do(s, olive, realm.EditChannel{Channel: c, Name: &name})
	for u, want := range map[realm.UserID]string{olive: "secret", ann: ""} {
		if got := ListEventsOf[*realm.BotChanged](s, u); len(got) != 1 || got[0].Sending != want {
			t.Errorf("user %d got %+v, want the name %q", u, got, want)
		}
	}
}
