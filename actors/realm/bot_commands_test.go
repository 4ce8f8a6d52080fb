package realm_test

import (
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// triggered returns the bots whose services a message of Ann in the public channel triggers.
func triggered(s *testScene, text string) (out []UserID) {
	s.T.Helper()
	before := len(s.ViewAs(s.owner).OutboxJobs())
	s.post(s.ann, s.public, "a", text)
	for _, job := range s.ViewAs(s.owner).OutboxJobs()[before:] {
		if job.Kind == OutboxWebhook {
			out = append(out, job.User)
		}
	}
	return out
}

func TestBotCommands(t *testing.T) {
	s := newTestScene(t)
	bot := newServiceBot(s)
	set := func(names ...string) SetBotCommands {
		c := SetBotCommands{Bot: bot}
		for _, n := range names {
			c.List = append(c.List, BotCommand{Name: n, Usage: " SERVICE ", Description: "Deploys a service"})
		}
		return c
	}
	refused(s, s.bo, set("deploy"), "Insufficient permission")
	for name, want := range map[string]string{"": "The name of a command", "Deploy": "The name of a command",
		"a b": "The name of a command", "poll": "There is a command 'poll' already.",
		strings.Repeat("x", 31): "The name of a command"} {
		if _, err := realmtest.Try(s.Scene, s.ann, set(name)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the command %q: %v", name, err)
		}
	}
	refused(s, s.ann, set("a", "a"), "There is a command 'a' already.")
	refused(s, s.ann, set(strings.Fields(strings.Repeat("a ", 21))...), "A bot has too many commands (limit: 20)")
	do(s, s.ann, set("deploy", "undo"))
	l := s.ViewAs(s.bo).ListBotCommands()
	if len(l) != 2 || l[0].Bot != bot || l[0].BotCommand != (BotCommand{"deploy", "SERVICE", "Deploys a service"}) {
		t.Errorf("the commands are %+v", l)
	}
	other := do(s, s.ann, CreateBot{Name: "Other", Email: "other-service-bot@example.com", ShortName: "other-service",
		Type: OutgoingWebhook, URL: "http://service.example/", Interface: 1}).ID
	refused(s, s.ann, SetBotCommands{Bot: other, List: []BotCommand{{Name: "undo"}}},
		"There is a command 'undo' already.")

	for text, want := range map[string]int{"/deploy web": 1, "/deploy": 1, "/undo\nnow": 1, "/deployment": 0,
		"do /deploy": 0, "deploy": 0, "/Deploy": 0} {
		if got := triggered(s, text); len(got) != want || want == 1 && got[0] != bot {
			t.Errorf("%q triggers %v", text, got)
		}
	}
	do(s, s.ann, DeactivateUser{User: bot, Bot: true})
	if len(triggered(s, "/deploy web")) != 0 || len(s.ViewAs(s.bo).ListBotCommands()) != 0 {
		t.Error("a deactivated bot has commands")
	}
}
