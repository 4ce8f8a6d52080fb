package realm_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// newChannels asks for channels with these names.
func newChannels(names ...string) realm.Subscribe {
	var c realm.Subscribe
	for _, n := range names {
		c.Channels = append(c.Channels, realm.ChannelToJoin{Name: n})
	}
	return c
}

func countChannels(s *Scene) (n int) {
	s.Realm.EachChannel(func(*realm.Channel) { n++ })
	return n
}

// numbered returns n names that begin with a word.
func numbered(word string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(word, " ", i))
	}
	return names
}

// A member creates a limited number of channels a day, together with the member's bots and in every way. The limit
// ends with the day. Administrators are not limited.
func TestChannelsPerDay(t *testing.T) {
	s := New(t)
	adam, ann, bo := s.Join("Adam", realm.Administrator), s.Join("Ann"), s.Join("Bo")
	bot := Do(s, ann, realm.CreateBot{Name: "Robo", Email: "robo@example.com", ShortName: "robo",
		Type: realm.GenericBot}).ID
	s.Realm.SetLimits(realm.Limits{ChannelsPerDay: 5})
	const why = "You cannot create more channels today (limit: 5 a day)"
	Do(s, ann, newChannels(numbered("a", 3)...))
	ExpectRefusal(s, ann, newChannels("x", "y", "z"), why)
	Do(s, ann, realm.CreateChannel{New: realm.NewChannel{Name: "empty"}})
	Do(s, bot, newChannels("of the bot"))
	for _, who := range []realm.UserID{ann, bot} {
		ExpectRefusal(s, who, newChannels("x"), why)
		ExpectRefusal(s, who, realm.CreateChannel{New: realm.NewChannel{Name: "x"}}, why)
		ExpectRefusal(s, who, realm.Resubscribe{Add: newChannels("x").Channels}, why)
	}
	Do(s, ann, newChannels("a 0"))  // exists
	Do(s, bo, newChannels("of Bo")) // has a limit of their own
	Do(s, adam, newChannels(numbered("admin", 20)...))
	s.Advance(86400 - 10)
	ExpectRefusal(s, ann, newChannels("x"), why)
	s.Advance(20)
	Do(s, ann, newChannels("x"))
}

// The organization has a largest number of channels, and a request a largest number of new ones and of subscriptions,
// for administrators too.
func TestChannelLimits(t *testing.T) {
	s := New(t)
	adam, ann := s.Join("Adam", realm.Administrator), s.Join("Ann")
	s.Realm.SetLimits(realm.Limits{Channels: 10, ChannelsPerCall: 4, JoinsPerCall: 8})
	ExpectRefusal(s, adam, newChannels(numbered("a", 5)...), "Too many new channels in one request (limit: 4)")
	Do(s, adam, newChannels(numbered("a", 4)...))
	all := newChannels(numbered("a", 4)...)
	all.Principals = []realm.Principal{{ID: adam}, {ID: ann}, {ID: ann}}
	ExpectRefusal(s, adam, all, "Too many subscriptions in one request (limit: 8)")
	ExpectRefusal(s, adam, realm.Unsubscribe{Names: numbered("a", 4), Principals: all.Principals},
		"Too many subscriptions in one request (limit: 8)")
	full := "This organization cannot have more channels (limit: 10)"
	for i := 0; countChannels(s) < 10; i++ {
		Do(s, ann, newChannels(fmt.Sprint("b ", i)))
	}
	ExpectRefusal(s, adam, newChannels("x"), full)
	ExpectRefusal(s, ann, realm.CreateChannel{New: realm.NewChannel{Name: "x"}}, full)
	Do(s, adam, realm.ArchiveChannel{Channel: s.Realm.FindChannelByName("a 0").ID})
	ExpectRefusal(s, adam, newChannels("x"), full) // archived channels count: clients get them
	Do(s, System, realm.CreateChannel{New: realm.NewChannel{Name: "of the operator"}})
}

// User groups and bots have limits likewise.
func TestGroupAndBotLimits(t *testing.T) {
	s := New(t)
	adam, ann, bo := s.Join("Adam", realm.Administrator), s.Join("Ann"), s.Join("Bo")
	system := 0
	s.Realm.EachGroup(func(*realm.Group) { system++ })
	s.Realm.SetLimits(realm.Limits{Groups: system + 4, GroupsPerDay: 2, BotsPerUser: 2})
	group := func(name string) realm.CreateGroup {
		return realm.CreateGroup{Name: name, Members: []realm.UserID{ann}}
	}
	Do(s, ann, group("one"))
	Do(s, ann, group("two"))
	ExpectRefusal(s, ann, group("x"), "You cannot create more user groups today (limit: 2 a day)")
	s.Advance(86401)
	Do(s, ann, group("three"))
	Do(s, adam, group("four"))
	for _, u := range []realm.UserID{adam, bo} {
		ExpectRefusal(s, u, group("x"),
			fmt.Sprintf("This organization cannot have more user groups (limit: %d)", system+4))
	}
	bot := func(n int) realm.CreateBot {
		return realm.CreateBot{Name: fmt.Sprint("Bot ", n), Email: fmt.Sprint("b", n, "@example.com"),
			ShortName: fmt.Sprint("b", n), Type: realm.GenericBot}
	}
	first := Do(s, ann, bot(1)).ID
	Do(s, ann, bot(2))
	Do(s, ann, realm.DeactivateUser{User: first, Bot: true})
	ExpectRefusal(s, ann, bot(3), "You cannot have more bots (limit: 2)")
	Do(s, bo, bot(3))
}

// Nothing that is in every registration makes it larger than its limit, at the request of any role.
func TestRegistrationSize(t *testing.T) {
	s := New(t)
	adam, ann := s.Join("Adam", realm.Administrator), s.Join("Ann")
	long := strings.Repeat("x", 1000)
	channel := Do(s, ann, realm.CreateChannel{New: realm.NewChannel{Name: "first"}}).ID
	group := Do(s, ann, realm.CreateGroup{Name: "first", Members: []realm.UserID{ann}})
	limit := s.Realm.ListsSize() + 100
	s.Realm.SetLimits(realm.Limits{RegistrationSize: limit})
	why := fmt.Sprintf("The lists of channels and groups of this organization cannot become larger "+
		"(limit: %d bytes)", limit)
	for _, refused := range []func(){
		func() { ExpectRefusal(s, ann, newChannels("x"), why) },
		func() { ExpectRefusal(s, ann, realm.CreateChannel{New: realm.NewChannel{Name: "x"}}, why) },
		func() { ExpectRefusal(s, ann, realm.EditChannel{Channel: channel, Description: &long}, why) },
		func() { ExpectRefusal(s, ann, realm.CreateGroup{Name: "x"}, why) },
		func() { ExpectRefusal(s, ann, realm.EditGroup{Group: group, Description: &long}, why) },
		func() {
			ExpectRefusal(s, adam, realm.SaveProfileField{New: true, Type: realm.ShortText,
				Name: &[]string{strings.Repeat("n", 40)}[0], Hint: &[]string{strings.Repeat("h", 80)}[0]}, why)
		},
		func() { ExpectRefusal(s, adam, realm.CreateFolder{Name: "x", Description: long}, why) },
		func() { ExpectRefusal(s, adam, realm.SaveLinkifier{Linkifier: realm.Linkifier{Pattern: long}}, why) },
		func() {
			ExpectRefusal(s, adam, realm.AddPlayground{Name: "x", Language: "go", Template: long}, why)
		},
		func() { ExpectRefusal(s, ann, realm.AddEmoji{Name: "x", Kind: "image/png"}, why) },
	} {
		refused()
	}
	s.Realm.SetLimits(realm.Limits{})
	Do(s, ann, newChannels("x"))
}

// Joining is not refused by the size of registrations, but by the number of accounts, for all roles and for bots.
func TestUserLimit(t *testing.T) {
	s := New(t)
	adam := s.Join("Adam", realm.Administrator)
	n := 0
	s.Realm.EachUser(func(*realm.User) { n++ })
	s.Realm.SetLimits(realm.Limits{Users: n + 2, RegistrationSize: 1})
	bot := func(n int) realm.CreateBot {
		return realm.CreateBot{Name: fmt.Sprint("Bot ", n), Email: fmt.Sprint("b", n, "@example.com"),
			ShortName: fmt.Sprint("b", n), Type: realm.GenericBot}
	}
	s.Join("Bo")
	Do(s, adam, bot(1))
	err := s.ViewAs(adam).CheckUserLists(realm.UserLists{Accounts: true})
	if err == nil || !strings.Contains(err.Error(), "registration-size") {
		t.Errorf("a complete list of users that is too large: %v", err)
	}
	why := fmt.Sprintf("This organization cannot have more users (limit: %d)", n+2)
	ExpectRefusal(s, adam, bot(2), why)
	ExpectRefusal(s, System, realm.CreateUser{Email: "cy@example.org", Name: "Cy"}, why)
}

// One user's lists of texts, which that user's registrations contain, have a size too, new texts and changes alike.
func TestOwnTextLimits(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	long := strings.Repeat("€", realm.MaxMessage) // three bytes each
	full := realm.MaxOwnTexts / len(long)
	draft := func(text string) realm.AddDrafts { return realm.AddDrafts{Drafts: []realm.Draft{{Content: text}}} }
	var drafts, snippets int64
	for range full {
		drafts = Do(s, ann, draft(long))[0]
		snippets = Do(s, ann, realm.AddSnippet{Title: "t", Content: long})
	}
	why := fmt.Sprintf("Too much text in %%s (limit: %d bytes)", realm.MaxOwnTexts)
	ExpectRefusal(s, ann, draft(long), fmt.Sprintf(why, "drafts"))
	ExpectRefusal(s, ann, realm.AddSnippet{Title: "t", Content: long}, fmt.Sprintf(why, "saved snippets"))
	Do(s, ann, realm.ChangeDraft{ID: drafts, Draft: realm.Draft{Content: "short"}})
	Do(s, ann, draft(long))
	ExpectRefusal(s, ann, realm.ChangeDraft{ID: drafts, Draft: realm.Draft{Content: long}}, fmt.Sprintf(why, "drafts"))
	short := "short"
	Do(s, ann, realm.ChangeSnippet{ID: snippets, Content: &short})
	Do(s, ann, realm.AddSnippet{Title: "t", Content: long})
	ExpectRefusal(s, ann, realm.ChangeSnippet{ID: snippets, Content: &long}, fmt.Sprintf(why, "saved snippets"))

	large := realm.Body{Text: "x", HTML: strings.Repeat("x", realm.MaxOwnTexts/2-1)}
	schedule := func(b realm.Body) realm.ScheduleMessage {
		return realm.ScheduleMessage{At: s.Now + 3600,
			Message: realm.SendMessage{People: []realm.Principal{{ID: ann}}, Body: b}}
	}
	last := Do(s, ann, schedule(large))
	Do(s, ann, schedule(large))
	small := realm.Body{Text: "xx", HTML: "yy"}
	ExpectRefusal(s, ann, schedule(small), fmt.Sprintf(why, "scheduled messages"))
	Do(s, ann, realm.ChangeScheduled{ID: last, Body: &small})
	Do(s, ann, schedule(small))
	ExpectRefusal(s, ann, realm.ChangeScheduled{ID: last, Body: &large}, fmt.Sprintf(why, "scheduled messages"))
}
