package realm_test

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// ChargedUser follows the owners of bots, and ends for cycles, which imported data can have.
func TestChargedUser(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	first := s.JoinBot("First", ann)
	second := s.JoinBot("Second", first)
	third := s.JoinBot("Third", second)
	alone := s.JoinBot("Alone", 0)
	for u, want := range map[realm.UserID]realm.UserID{
		ann: ann, bo: bo, first: ann, second: ann, third: ann, alone: alone, 9999: 9999,
	} {
		if got := s.Realm.ChargedUser(u); got != want {
			t.Errorf("account %d is charged to %d, want %d", u, got, want)
		}
	}
	setOwner := func(bot, owner realm.UserID) {
		t.Helper()
		if _, err := RunTurn(s, System, func(t *realm.Turn) (any, error) {
			t.Record(&realm.UserChanged{ID: bot, Owner: &owner})
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	setOwner(first, bo)
	if got := s.Realm.ChargedUser(third); got != bo {
		t.Errorf("after the first bot changed hands the third is charged to %d, want %d", got, bo)
	}
	setOwner(first, third)
	for _, u := range []realm.UserID{first, second, third} {
		if got := s.Realm.ChargedUser(u); got != first {
			t.Errorf("in a cycle account %d is charged to %d, want %d", u, got, first)
		}
	}
	for n, last := 0, ann; n < 40; n++ {
		last = s.JoinBot(fmt.Sprint("Link ", n), last)
		if got := s.Realm.ChargedUser(last); n < 15 && got != ann {
			t.Errorf("bot %d of a chain is charged to %d", n, got)
		}
	}
}

// A member with bots has no more of anything than a member without bots: each bound counts bots under their owner.
// Another member's bound is not used.
func TestBotsCountUnderTheirOwner(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	bots := []realm.UserID{s.JoinBot("First", ann), s.JoinBot("Second", ann)}
	team := append([]realm.UserID{ann}, bots...)
	public := Do(s, bo, realm.CreateChannel{New: realm.NewChannel{Name: "everyone"}}).ID
	for _, u := range bots {
		Do(s, u, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "everyone"}}})
	}
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "everyone"}}})
	hi := Do(s, bo, realm.SendMessage{ToChannel: true, Channel: public, Topic: "t",
		Body: realm.Body{Text: "hi"}}).ID
	register := realm.Register{State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }}
	for name, b := range map[string]struct {
		limit int
		use   func(u realm.UserID, n int) error
	}{
		"queues": {realm.MaxQueues - len(team), func(u realm.UserID, _ int) error { return try(s, u, register) }},
		"snippets": {1000, func(u realm.UserID, n int) error {
			return try(s, u, realm.AddSnippet{Title: fmt.Sprint(n), Content: "x"})
		}},
		"reactions": {realm.MaxReactionsOfUser, func(u realm.UserID, n int) error {
			return try(s, u, realm.AddReaction{Message: hi, Name: fmt.Sprint("e", n),
				NameCode: fmt.Sprintf("%x", 0x1f600+n)})
		}},
	} {
		for n := range b.limit {
			if err := b.use(team[n%len(team)], n); err != nil {
				t.Fatalf("%s: number %d of %d is refused: %v", name, n, b.limit, err)
			}
		}
		for _, u := range team {
			if b.use(u, b.limit+int(u)) == nil {
				t.Errorf("%s: account %d uses more than %d of the bound of its owner", name, u, b.limit)
			}
		}
		if err := b.use(bo, 0); err != nil {
			t.Errorf("%s: another member: %v", name, err)
		}
	}
}

// try runs a command and returns its refusal.
func try[R any](s *Scene, u realm.UserID, c realm.Command[R]) error {
	_, err := Try(s, u, c)
	return err
}

// A bot that is given away counts for its new owner, who must have room for it. Otherwise two members could own any
// number of bots.
func TestGivenBotsCount(t *testing.T) {
	s := New(t)
	s.Realm.SetLimits(realm.Limits{BotsPerUser: 2})
	ann, bo := s.Join("Ann"), s.Join("Bo")
	for n := range 2 {
		s.JoinBot(fmt.Sprint("Of Bo ", n), bo)
	}
	given := s.JoinBot("Of Ann", ann)
	ExpectRefusal(s, ann, realm.EditBot{Bot: given, Owner: &bo}, "You cannot have more bots (limit: 2)")
	if u := s.Realm.Find(given); u.BotOwner != ann {
		t.Errorf("the bot has changed hands to %d", u.BotOwner)
	}
	Do(s, System, realm.EditBot{Bot: given, Owner: &bo}) // the operator has no bounds
}

// The calls of the services of all bots of one member that wait are limited together.
func TestWebhookJobsOfOneOwner(t *testing.T) {
	s := New(t)
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	call := func(owner realm.UserID, name string) realm.UserID {
		b := Do(s, owner, realm.CreateBot{Name: name, Email: name + "@example.org", ShortName: name,
			Type: realm.OutgoingWebhook, URL: "https://example.org", Interface: 1})
		for range 100 {
			Do(s, bo, realm.SendMessage{People: []realm.Principal{{ID: b.ID}}, Body: realm.Body{Text: "hi"}})
		}
		return b.ID
	}
	for n := range 4 {
		call(ann, fmt.Sprint("robo", n))
	}
	of := map[realm.UserID]int{}
	count := func() {
		clear(of)
		for _, j := range outboxJobs(s, realm.OutboxWebhook) {
			of[s.Realm.ChargedUser(j.User)]++
		}
	}
	if count(); of[ann] != 250 {
		t.Errorf("%d calls wait for the bots of one member, want 250", of[ann])
	}
	call(cy, "other")
	if count(); of[cy] != 100 {
		t.Errorf("%d calls wait for the bot of another member, want 100", of[cy])
	}
}
