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
	l := s.commands(s.bo, 0)
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
	if len(triggered(s, "/deploy web")) != 0 || len(s.commands(s.bo, 0)) != 0 {
		t.Error("a deactivated bot has commands")
	}
}

// commands returns the commands that a user gets for a channel; 0: for all channels.
func (s *testScene) commands(u UserID, c ChannelID) []ListedCommand {
	s.T.Helper()
	l, err := s.ViewAs(u).ListBotCommands(c)
	if err != nil {
		s.T.Fatal(err)
	}
	return l
}

// A command gives a bot nothing that the bot is not allowed to read, and tells nobody else of a private channel.
func TestBotCommandsInPrivateChannels(t *testing.T) {
	s := newTestScene(t)
	bot := newServiceBot(s)
	do(s, s.ann, SetBotCommands{Bot: bot, List: []BotCommand{{Name: "deploy"}}})
	other := s.channel("other", NewChannel{Private: true}, s.ann, s.bo)
	// calls returns how many calls of the service a message causes, and whether the last one still has a content.
	calls := func(u UserID, c ChannelID, text string) (n int, job OutboxJob) {
		before := len(s.ViewAs(s.owner).OutboxJobs())
		s.post(u, c, "a", text)
		for _, x := range s.ViewAs(s.owner).OutboxJobs()[before:] {
			if x.Kind == OutboxWebhook {
				n, job = n+1, x
			}
		}
		return n, job
	}
	delivered := func(job OutboxJob) bool {
		_, ok := s.Realm.ViewAs(System, s.Now).ServiceCall(&job)
		return ok
	}

	if n, job := calls(s.ann, s.public, "/deploy web"); n != 1 || !delivered(job) {
		t.Errorf("in a public channel: %d calls", n)
	}
	for name, c := range map[string]ChannelID{"private": s.private, "protected": s.protected} {
		if n, _ := calls(s.ann, c, "/deploy web"); n != 0 {
			t.Errorf("a bot without subscription gets a command of the channel %s", name)
		}
		if l := s.commands(s.ann, c); len(l) != 0 {
			t.Errorf("the channel %s offers %v", name, l)
		}
		s.join(bot, c)
		n, job := calls(s.ann, c, "/deploy web")
		if n != 1 || !delivered(job) || len(s.commands(s.ann, c)) != 1 {
			t.Errorf("a subscribed bot gets %d calls of the channel %s", n, name)
		}
		if _, err := s.ViewAs(s.cy).ListBotCommands(c); err == nil {
			t.Errorf("a user without access gets the commands of the channel %s", name)
		}
		// The bot loses its subscription before the call is made.
		do(s, s.ann, Unsubscribe{Names: []string{name}, Principals: []Principal{{ID: bot}}})
		if delivered(job) {
			t.Errorf("an unsubscribed bot gets a message of the channel %s", name)
		}
	}
	if _, err := s.ViewAs(s.cy).ListBotCommands(9999); err == nil {
		t.Error("a missing channel has commands")
	}

	// The message is moved before the call is made: the new topic is delivered, the new private channel is not.
	_, job := calls(s.ann, s.public, "/deploy moved")
	topic := "renamed"
	do(s, s.owner, EditMessage{Message: job.Message, Topic: &topic, Mode: MoveOne})
	if call, ok := s.Realm.ViewAs(System, s.Now).ServiceCall(&job); !ok || call.Message.Topic != topic {
		t.Errorf("a renamed topic: %v %+v", ok, call)
	}
	s.join(s.owner, other)
	do(s, s.owner, EditMessage{Message: job.Message, Channel: other, Mode: MoveOne})
	if delivered(job) {
		t.Error("a message that was moved to a private channel is delivered")
	}

	// The owner of the bot is not in the channel, and is told of a failure without the channel.
	hidden := s.channel("hidden", NewChannel{Private: true}, s.bo)
	do(s, s.bo, Subscribe{Channels: []ChannelToJoin{{Name: "hidden"}}, Principals: []Principal{{ID: bot}},
		AllOrNothing: true})
	for c, linked := range map[ChannelID]bool{hidden: false, s.public: true} {
		_, job = calls(s.bo, c, "/deploy fails")
		s.OpenQueue(s.ann)
		do(s, realmtest.System, ReportServiceFailure{Bot: bot, Delivery: BotDelivery{ID: 1, Message: job.Message,
			Why: "no"}})
		sent := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann)
		text := s.Text(sent[len(sent)-1].Message.Ref).Text
		if !strings.Contains(text, "to your bot") || strings.Contains(text, "#narrow") != linked {
			t.Errorf("the owner of the bot gets %q, a link: %v", text, linked)
		}
	}

	// A guest uses commands in the channels of the guest only.
	if n, _ := calls(s.guest, s.public, "/deploy web"); n != 1 || len(s.commands(s.guest, s.public)) != 1 {
		t.Errorf("a guest causes %d calls", n)
	}
	for _, c := range []ChannelID{s.private, hidden} {
		if _, err := s.ViewAs(s.guest).ListBotCommands(c); err == nil {
			t.Error("a guest gets the commands of a channel without access")
		}
	}
	_, job = calls(s.ann, s.public, "/deploy late")
	do(s, s.ann, DeactivateUser{User: bot, Bot: true})
	if delivered(job) {
		t.Error("a deactivated bot gets a call")
	}
}
