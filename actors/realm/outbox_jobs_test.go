package realm_test

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// outboxJobs returns the waiting jobs of one kind.
func outboxJobs(s *Scene, kind realm.OutboxJobKind) (out []realm.OutboxJob) {
	for _, e := range s.ViewAs(System).OutboxJobs() {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// finishOutbox finishes all waiting jobs and counts the notifications as shown.
func finishOutbox(s *Scene) {
	var ids []int64
	for _, e := range s.ViewAs(System).OutboxJobs() {
		ids = append(ids, e.ID)
	}
	Do(s, System, realm.FinishOutboxJobs{IDs: ids, Shown: ids})
}

func TestWebhookJobWaitsUntilFinished(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	b := Do(s, ann, realm.CreateBot{Name: "Robo", Email: "robo-bot@example.org", ShortName: "robo",
		Type: realm.OutgoingWebhook, URL: "https://example.org", Interface: 1})
	to := []realm.Principal{{ID: b.ID}}
	id := Do(s, bo, realm.SendMessage{People: to, Body: realm.Body{Text: "hi"}}).ID
	Do(s, b.ID, realm.SendMessage{People: []realm.Principal{{ID: bo}},
		Body: realm.Body{Text: "a message of the bot itself causes no call"}})
	list := outboxJobs(s, realm.OutboxWebhook)
	if len(list) != 1 || list[0].User != b.ID || list[0].Message != id {
		t.Fatalf("waiting: %+v", list)
	}
	ExpectRefusal(s, ann, realm.FinishOutboxJobs{IDs: []int64{list[0].ID}}, "Insufficient permission")
	for range 120 {
		Do(s, bo, realm.SendMessage{People: to, Body: realm.Body{Text: "hi"}})
	}
	if n := len(outboxJobs(s, realm.OutboxWebhook)); n != 100 {
		t.Errorf("%d calls wait for one bot, want 100", n)
	}
	finishOutbox(s)
	if n := len(s.ViewAs(System).OutboxJobs()); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
	Do(s, bo, realm.SendMessage{People: to, Body: realm.Body{Text: "hi"}})
	if n := len(outboxJobs(s, realm.OutboxWebhook)); n != 1 {
		t.Errorf("%d jobs wait after the outbox was emptied, want 1", n)
	}
}

func TestInvitationEmailJobs(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	made := Do(s, olive, realm.InviteByMail{Emails: "a@example.com, b@example.com",
		InviteOptions: realm.InviteOptions{Role: realm.Member}, Compose: func(l realm.InviteEmail) realm.Email {
			return realm.Email{To: l.Invite.Email, Paragraphs: []string{realm.LinkPlaceholder}, Link: l.Link}
		}})
	list := outboxJobs(s, realm.OutboxEmail)
	if len(list) != 2 || list[0].Letter.To != "a@example.com" || list[0].Letter.Link != made.Emails[0].Link ||
		list[0].Letter.Link >= 0 {
		t.Fatalf("waiting: %+v", list)
	}
	if a, b := made.Emails[0].Token, made.Emails[1].Token; a == b {
		t.Errorf("both links end in %s", a)
	}
}

// addPhones gives each user a device with a push token.
func addPhones(s *Scene, users ...realm.UserID) {
	s.PushEnabled = true
	for _, u := range users {
		Do(s, u, realm.AddPushToken{Kind: realm.PushFCM, Token: fmt.Sprint("phone of ", u)})
	}
}

func TestPushTriggers(t *testing.T) {
	s := New(t)
	ann, bo, cy, di := s.Join("Ann"), s.Join("Bo"), s.Join("Cy"), s.Join("Di")
	everyone := []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}, {ID: di}}
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "dev"}}, Principals: everyone,
		AllOrNothing: true})
	dev := s.Realm.FindChannelByName("dev").ID
	addPhones(s, ann, bo, cy)
	finishOutbox(s)
	say := func(topic string, c realm.ContentInfo) map[realm.UserID]string {
		Do(s, ann, realm.SendMessage{ToChannel: true, Channel: dev, Topic: topic, Body: realm.Body{Text: "hi"},
			Content: c})
		out := map[realm.UserID]string{}
		for _, e := range outboxJobs(s, realm.OutboxPush) {
			out[e.User] = e.Why
		}
		finishOutbox(s)
		return out
	}
	same := func(what string, got map[realm.UserID]string, want map[realm.UserID]string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	type triggers = map[realm.UserID]string
	all, yes := realm.ContentInfo{ChannelWildcard: true}, true
	same("an ordinary message", say("x", realm.ContentInfo{}), triggers{})
	// Di has no device
	same("a mention", say("m", realm.ContentInfo{Users: []realm.UserID{ann, bo, di}}), triggers{bo: "mentioned"})
	same("a mention of all", say("x", all), triggers{bo: "stream_wildcard_mentioned", cy: "stream_wildcard_mentioned"})
	Do(s, bo, realm.SetTopicPolicy{Channel: dev, Topic: "x", Policy: realm.TopicMuted})
	Do(s, cy, realm.SetTopicPolicy{Channel: dev, Topic: "x", Policy: realm.TopicFollowed})
	same("a followed and a muted topic", say("x", realm.ContentInfo{}), triggers{cy: "followed_topic_push_notify"})
	same("a mention of all in both topics", say("x", all), triggers{cy: "stream_wildcard_mentioned_in_followed_topic"})
	same("a mention in a muted topic", say("x", realm.ContentInfo{Users: []realm.UserID{bo}}),
		triggers{bo: "mentioned", cy: "followed_topic_push_notify"})
	Do(s, bo, realm.SetTopicPolicy{Channel: dev, Topic: "x", Policy: realm.TopicInherits})
	Do(s, bo, realm.SetSubscriptionProperties{Changes: []realm.PropertyChange{
		{Channel: dev, Property: "push_notifications", Bool: &yes}}})
	same("a channel that notifies", say("x", realm.ContentInfo{}),
		triggers{bo: "stream_push_notify", cy: "followed_topic_push_notify"})
	Do(s, bo, realm.MuteUser{User: ann})
	same("a muted sender", say("n", realm.ContentInfo{Users: []realm.UserID{bo}}), triggers{})
	Do(s, bo, realm.MuteUser{User: ann, Unmute: true})
	Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{
		{Name: "enable_offline_push_notifications", Value: false}}})
	same("personal notifications off", say("p", realm.ContentInfo{}), triggers{bo: "stream_push_notify"})
	s.PushEnabled = false
	same("without a push service", say("x", all), triggers{})
}

func TestReadMessagesAreRemovedFromDevices(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	addPhones(s, bo)
	var ids []realm.MessageID
	for range 3 {
		ids = append(ids, Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}},
			Body: realm.Body{Text: "hi"}}).ID)
	}
	list := outboxJobs(s, realm.OutboxPush)
	if len(list) != 3 || list[0].Why != "direct_message" {
		t.Fatalf("waiting: %+v", list)
	}
	finishOutbox(s)
	due := func() []realm.MessageID {
		t.Helper()
		if d := s.Realm.Due(s.Now); d != nil {
			if _, err := RunTurn(s, System, d); err != nil {
				t.Fatal(err)
			}
		}
		var out []realm.MessageID
		for _, e := range outboxJobs(s, realm.OutboxPushRemoval) {
			if e.User != bo {
				t.Errorf("user %d has a push removal, only Bo should", e.User)
			}
			out = append(out, e.Gone...)
		}
		finishOutbox(s)
		return out
	}
	if got := due(); got != nil {
		t.Errorf("removed before a message was read: %v", got)
	}
	Do(s, bo, realm.Flag{Messages: ids[:1], Op: "add", Flag: "read"})
	Do(s, ann, realm.DeleteMessage{Message: ids[1]})
	if got := due(); fmt.Sprint(got) != fmt.Sprint(ids[:2]) {
		t.Errorf("removed: %v, want %v", got, ids[:2])
	}
	if got := due(); got != nil {
		t.Errorf("removed twice: %v", got)
	}
	Do(s, bo, realm.Flag{Messages: ids[2:], Op: "add", Flag: "read"})
	s.Restart()
	if got := due(); fmt.Sprint(got) != fmt.Sprint(ids[2:]) {
		t.Errorf("removed after a restart: %v, want %v", got, ids[2:])
	}
	last := Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi"}}).ID
	e := outboxJobs(s, realm.OutboxPush)[0]
	Do(s, bo, realm.Flag{Messages: []realm.MessageID{last}, Op: "add", Flag: "read"})
	if _, ok := s.ViewAs(System).PushMessage(&e); ok {
		t.Error("a message that was read before its notification was sent still causes one")
	}
}

func TestDeactivationDeletesMessages(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "dev"}},
		Principals: []realm.Principal{{ID: ann}, {ID: bo}}, AllOrNothing: true})
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "secret"}}, New: realm.NewChannel{Private: true},
		AllOrNothing: true})
	dev, secret := s.Realm.FindChannelByName("dev").ID, s.Realm.FindChannelByName("secret").ID
	send := func(u realm.UserID, m realm.SendMessage) realm.MessageID {
		m.Body = realm.Body{Text: "words"}
		return Do(s, u, m).ID
	}
	var public []realm.MessageID
	for i := range 12 {
		public = append(public, send(ann, realm.SendMessage{ToChannel: true, Channel: dev,
			Topic: fmt.Sprint("topic ", i)}))
	}
	hidden := send(ann, realm.SendMessage{ToChannel: true, Channel: secret, Topic: "x"})
	direct := send(ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}})
	other := send(bo, realm.SendMessage{ToChannel: true, Channel: dev, Topic: "topic 1"})

	ExpectRefusal(s, bo, realm.DeactivateUser{User: ann, Actions: realm.DeactivationActions{Public: true}},
		"Insufficient permission")
	Do(s, olive, realm.DeactivateUser{User: ann, Actions: realm.DeactivationActions{
		Profile: true, Public: true, Direct: true},
		FarewellEmail: func(u *realm.User, h realm.Letterhead) realm.Email {
			return realm.Email{To: u.Email, Subject: h.Org}
		}})
	if u := s.Realm.Find(ann); u.Name != "Deleted user" || u.Active || !u.Deleted {
		t.Errorf("the account is %q, deleted: %v", u.Name, u.Deleted)
	}
	deleted := 0
	for _, e := range ListEventsOf[*realm.UserChanged](s, bo) {
		if e.ID == ann && e.Deleted {
			deleted++
		}
	}
	if deleted != 1 {
		t.Errorf("%d events say that the account is deleted", deleted)
	}
	ExpectRefusal(s, olive, realm.ReactivateUser{User: ann}, "No such user")
	if l := outboxJobs(s, realm.OutboxEmail); len(l) != 1 || l[0].Letter.To != "ann@example.com" {
		t.Errorf("emails: %+v", l)
	}
	for range 20 {
		if d := s.Realm.Due(s.Now); d != nil {
			RunTurn(s, System, d)
		}
	}
	gone := func(id realm.MessageID) bool { _, err := s.ViewAs(System).ReadableMessage(id); return err != nil }
	for _, id := range append(public, direct) {
		if !gone(id) {
			t.Errorf("message %d was not deleted", id)
		}
	}
	if gone(hidden) || gone(other) {
		t.Error("a message outside the request was deleted")
	}
	if s.Realm.Due(s.Now) != nil {
		t.Error("a turn is due although all work is done")
	}
}

func TestWelcomeBotAnswers(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	Do(s, System, realm.Grant{User: olive, CreateUsers: true})
	ann := Do(s, olive, realm.CreateUser{Email: "ann@example.org", Name: "Ann"})
	s.OpenQueue(ann)
	said := func(text string) (answers int) {
		Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: realm.WelcomeBot}}, Body: realm.Body{Text: text}})
		for _, m := range ListEventsOf[*realm.MessageArrived](s, ann) {
			if m.Message.Sender.ID == realm.WelcomeBot {
				answers++
			}
		}
		return answers
	}
	// the welcome message told Ann these words
	for text, want := range map[string]int{"Topics": 1, " themes? ": 1, "help": 1, "what is the meaning of life": 0} {
		if got := said(text); got != want {
			t.Errorf("%q is answered %d times, want %d", text, got, want)
		}
	}
	starred := s.ViewAs(ann).Starred()
	if len(starred) != 1 {
		t.Fatalf("starred for Ann: %v", starred)
	}
	if m, err := s.ViewAs(ann).ReadableMessage(starred[0]); err != nil || m.Sender.ID != realm.WelcomeBot {
		t.Errorf("starred is %+v %v", m, err)
	}
	if bo := s.Join("Bo"); true {
		Do(s, bo, realm.SendMessage{People: []realm.Principal{{ID: realm.WelcomeBot}},
			Body: realm.Body{Text: "hello?"}})
		if n := len(ListEventsOf[*realm.MessageArrived](s, bo)); n != 2 {
			t.Errorf("Bo's first message to the welcome bot causes %d messages, want 2", n)
		}
	}
}

func TestWelcomeMessagePreview(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	ExpectRefusal(s, ann, realm.SendTestWelcome{Text: "hi"}, "Must be an organization administrator")
	ExpectRefusal(s, olive, realm.SendTestWelcome{Text: " "}, "Message must not be empty")
	id := Do(s, olive, realm.SendTestWelcome{Text: "Be kind."})
	s.ExpectEvents(olive, "message")
	if m, err := s.ViewAs(olive).ReadableMessage(id); err != nil || m.Sender.ID != realm.WelcomeBot {
		t.Errorf("%+v %v", m, err)
	}
}
