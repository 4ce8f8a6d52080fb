package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// asCommand makes a command of a function.
func asCommand(fn func(*realm.Turn)) func(*realm.Turn) (realm.Done, error) {
	return func(t *realm.Turn) (realm.Done, error) { fn(t); return realm.Done{}, nil }
}

func TestNotifyChannelAndUsers(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "tea"}}})
	tea := s.Realm.FindChannelByName("tea").ID

	RunTurn(s, System, asCommand(func(t *realm.Turn) {
		t.NotifyChannel(tea, "news", "the kettle & the pot\n\nboil", ann)
	}))
	got := ListEventsOf[*realm.MessageArrived](s, ann)
	if len(got) != 1 || got[0].Message.Sender.ID != realm.NotificationBot || got[0].Message.Topic != "news" {
		t.Fatalf("Ann received %+v", got)
	}
	if html := got[0].Message.Body.HTML; html != "<p>the kettle &amp; the pot</p>\n<p>boil</p>" {
		t.Errorf("rendered as %q", html)
	}
	if f := got[0].FlagsFor(ann); f&realm.FlagRead == 0 {
		t.Error("the message is not marked as read for Ann")
	}
	s.ExpectNoEvents(bo)

	RunTurn(s, System, asCommand(func(t *realm.Turn) { t.NotifyUsers("psst", bo) }))
	if got := ListEventsOf[*realm.MessageArrived](s, bo); len(got) != 1 || got[0].Message.Channel != 0 ||
		len(got[0].Message.People) != 2 {
		t.Fatalf("Bo received %+v", got)
	}
	s.ExpectNoEvents(ann)
}

// System bots quote descriptions, explanations and answers of services. A null byte in them must not prevent the
// message.
func TestSystemBotsQuoteNullBytes(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "tea"}}})
	tea := s.Realm.FindChannelByName("tea").ID

	odd := "leaves\x00 and water"
	Do(s, ann, realm.EditChannel{Channel: tea, Description: &odd})
	got := ListEventsOf[*realm.MessageArrived](s, ann)
	if len(got) != 1 || !strings.Contains(got[0].Message.Body.Text, "leaves and water") {
		t.Errorf("after the new description Ann received %+v", got)
	}
	RunTurn(s, System, asCommand(func(t *realm.Turn) { t.NotifyUsers("\x00 \n\x00", bo) }))
	s.ExpectNoEvents(bo)
}
