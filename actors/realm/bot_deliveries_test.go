package realm_test

import (
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// record records the call of a bot's service as the server does.
func record(s *testScene, bot UserID, d BotDelivery) {
	s.T.Helper()
	_, err := realmtest.RunTurn(s.Scene, realmtest.System, func(t *Turn) (any, error) {
		t.RecordServiceCall(bot, d)
		return nil, nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
}

// newServiceBot makes an outgoing-webhook bot of Ann.
func newServiceBot(s *testScene) UserID {
	s.T.Helper()
	return do(s, s.ann, CreateBot{Name: "Service", Email: "service-bot@example.com", ShortName: "service",
		Type: OutgoingWebhook, URL: "http://service.example/", Interface: 1}).ID
}

func TestBotDeliveries(t *testing.T) {
	s := newTestScene(t)
	bot := newServiceBot(s)
	other := do(s, s.ann, CreateBot{Name: "Plain", Email: "plain-bot@example.com", ShortName: "plain",
		Type: GenericBot}).ID
	for i := range int64(25) {
		record(s, bot, BotDelivery{ID: i + 1, Message: 7, Attempts: 1, Status: 500, Why: strings.Repeat("é", 400)})
	}
	l := do(s, s.ann, ListBotDeliveries{bot})
	if len(l.List) != 20 || l.List[0].ID != 25 || l.List[19].ID != 6 || len(l.List[0].Why) != 500 {
		t.Errorf("%d calls are listed, the first is %+v", len(l.List), l.List[0])
	}
	if a := do(s, s.owner, ListBotDeliveries{bot}); len(a.List) != 20 || a.Secret != l.Secret {
		t.Errorf("an owner of the organization sees %d calls", len(a.List))
	}
	for _, refuse := range []func(UserID, UserID, string){
		func(u, b UserID, why string) { refused(s, u, ListBotDeliveries{b}, why) },
		func(u, b UserID, why string) { refused(s, u, TestService{b}, why) },
	} {
		refuse(s.bo, bot, "Insufficient permission")
		refuse(bot, bot, "Insufficient permission")
		refuse(s.ann, other, "This bot has no service that is called.")
		refuse(s.ann, s.bo, "No such bot")
	}
	do(s, s.ann, IssueBotKey{Bot: bot, Renew: true})
	if do(s, s.ann, ListBotDeliveries{bot}).Secret == l.Secret {
		t.Error("a new API key does not change the secret of the signatures")
	}
	for range 100 {
		do(s, s.ann, TestService{bot})
	}
	refused(s, s.ann, TestService{bot}, "SERVER_OVERLOADED")
	do(s, s.ann, DeactivateUser{User: bot, Bot: true})
	refused(s, s.ann, TestService{bot}, "The bot is deactivated.")
}

// Nodes of an older level do not know the records of calls, so none are made.
func TestBotDeliveriesOfOlderLevel(t *testing.T) {
	s := newTestScene(t)
	bot := newServiceBot(s)
	_, facts, _, err := RunTurn(s.Realm, System, TurnEnv{Level: 4, Now: s.Now}, func(t *Turn) (any, error) {
		t.RecordServiceCall(bot, BotDelivery{ID: 1})
		return nil, nil
	})
	if err != nil || len(facts) != 0 {
		t.Errorf("%d facts were recorded, %v", len(facts), err)
	}
}
