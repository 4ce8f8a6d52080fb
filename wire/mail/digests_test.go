package mail

import (
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire"
	"parley/wire/dispatch"
)

// sceneServer is a wire.Server for the organization of a scene.
type sceneServer struct {
	wire.Server
	s      *realmtest.Scene
	online realm.UserID
}

func (x sceneServer) View(_ realm.ID, c realm.Caller, f func(realm.View) (any, error)) (any, error) {
	return f(x.s.ViewAs(c.User))
}

func (x sceneServer) Turn(_ realm.ID, c realm.Caller, f func(*realm.Turn) (any, error)) (any, error) {
	return realmtest.RunTurn(x.s, c.User, f)
}

func (x sceneServer) Text(_ realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	b := x.s.Text(ref)
	return realm.Body{Text: b.Text, HTML: "<p>" + b.Text + "</p>"}, true, nil
}

func (x sceneServer) FetchTexts(realm.ID, []realm.BodyRef) {}

func (x sceneServer) ActiveSince(realm.ID, int64) func(realm.UserID) bool {
	return func(u realm.UserID) bool { return u == x.online }
}

// handle runs a job, which exists only in this test, and returns the email that it sends, or nil.
func (x sceneServer) handle(t *testing.T, job realm.OutboxJob) *realm.Email {
	t.Helper()
	before := map[int64]bool{}
	for _, j := range x.s.ViewAs(realmtest.System).OutboxJobs() {
		before[j.ID] = true
		if j.Kind == job.Kind && j.User == job.User {
			job = j
		}
	}
	h := &Notices{Server: x, Now: func() time.Time { return time.Unix(x.s.Now, 0) }}
	a := &dispatch.Attempt{Realm: 1, Site: wire.Site{URL: "https://chat.example"}, Job: job}
	if o := h.Handle(t.Context(), a); o.RetryAfter != 0 {
		t.Fatalf("%+v", o)
	}
	for _, j := range x.s.ViewAs(realmtest.System).OutboxJobs() {
		if !before[j.ID] {
			return j.Letter
		}
	}
	return nil
}

// A digest shows the most lively topics to users that were away, and no text to users that want none in emails.
func TestDigestEmail(t *testing.T) {
	s := realmtest.New(t)
	s.EmailEnabled = true
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	realmtest.Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{
		{Name: "digest_emails_enabled", Value: true}}})
	realmtest.Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "plans"}},
		Principals: []realm.Principal{{ID: ann}, {ID: bo}}, AllOrNothing: true})
	for _, topic := range []string{"a", "b", "c", "d", "e", ""} {
		realmtest.Do(s, ann, realm.SendMessage{ToChannel: true, ChannelName: "plans", Topic: topic, ReadBySender: true,
			Body: realm.Body{Text: "who rows in " + topic}})
	}
	s.Now = time.Unix(s.Now, 0).UTC().Truncate(7*24*time.Hour).AddDate(0, 0, 8).Unix() + 9*3600
	s.Realm.SetClock(s.Now)
	for due := s.Realm.Due(s.Now); due != nil; due = s.Realm.Due(s.Now) {
		realmtest.RunTurn(s, realmtest.System, due)
	}
	x := sceneServer{s: s}
	job := realm.OutboxJob{Kind: realm.OutboxDigest, User: bo}
	x.online = bo
	if e := x.handle(t, job); e != nil {
		t.Fatalf("a user who was online got %+v", e)
	}
	x.online = 0
	e := x.handle(t, job)
	if e == nil || e.To != "bo@example.com" || e.Unsubscribe.Topic != realm.DigestEmails || e.Unsubscribe.User != bo {
		t.Fatalf("%+v", e)
	}
	text := plainText(*e)
	for _, want := range []string{"#plans > a (new messages: 1, senders: 1)", "Ann: who rows in a", "More topics: 3",
		"https://chat.example/#narrow/channel/"} {
		if !strings.Contains(text, want) {
			t.Errorf("the digest has no %q:\n%s", want, text)
		}
	}
	realmtest.Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{
		{Name: "message_content_in_email_notifications", Value: false}}})
	e = composeFor(t, x, bo)
	if text := plainText(*e); strings.Contains(text, "rows") || strings.Contains(text, "plans") ||
		!strings.Contains(text, "Topics with new messages: 7") {
		t.Errorf("the digest without texts:\n%s", text)
	}
	if e := x.handle(t, realm.OutboxJob{Kind: realm.OutboxDigest, User: ann}); e != nil {
		t.Errorf("a user who has read everything got %+v", e)
	}
}

func composeFor(t *testing.T, x sceneServer, u realm.UserID) *realm.Email {
	t.Helper()
	h := &Notices{Server: x, Now: func() time.Time { return time.Unix(x.s.Now, 0) }}
	e, err := h.digest(&dispatch.Attempt{Realm: 1, Job: realm.OutboxJob{User: u}})
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	return e
}

// New users are told where their account is, and invited people are reminded, while both are still so.
func TestWelcomeAndReminderEmails(t *testing.T) {
	s := realmtest.New(t)
	s.EmailEnabled = true
	olive := s.Join("Olive", realm.Owner)
	x := sceneServer{s: s}
	minutes := int64(10 * 24 * 60)
	realmtest.Do(s, olive, realm.InviteByMail{Emails: "cy@example.com,di@example.com",
		InviteOptions: realm.InviteOptions{Role: realm.Member, Minutes: &minutes}})
	list, err := s.ViewAs(olive).ManagedInvites()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	cy := realmtest.Do(s, realmtest.System, realm.AcceptInvite{Hash: list[0].Tokens[0], Email: "cy@example.com",
		Name: "Cy"})
	e := x.handle(t, realm.OutboxJob{Kind: realm.OutboxWelcome, User: cy})
	if e == nil || e.To != "cy@example.com" || !strings.Contains(plainText(*e), "https://chat.example") {
		t.Fatalf("%+v", e)
	}
	s.Advance(9 * 24 * 3600)
	s.Realm.SetClock(s.Now)
	for due := s.Realm.Due(s.Now); due != nil; due = s.Realm.Due(s.Now) {
		realmtest.RunTurn(s, realmtest.System, due)
	}
	e = x.handle(t, realm.OutboxJob{Kind: realm.OutboxReminder})
	if e == nil || e.To != "di@example.com" || e.Link == 0 ||
		!strings.Contains(plainText(*e), realm.LinkPlaceholder) || !strings.HasPrefix(e.Subject, "Reminder: Olive") {
		t.Fatalf("%+v", e)
	}
}
