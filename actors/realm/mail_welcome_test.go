package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// People with a new account get one email. Bots, and accounts that the operator makes, get none.
func TestWelcomeEmails(t *testing.T) {
	s := New(t)
	s.EmailEnabled = true
	olive := s.Join("Olive", realm.Owner)
	s.JoinBot("Robo", olive)
	if n := len(outboxJobs(s, realm.OutboxWelcome)); n != 0 {
		t.Fatalf("%d welcome emails", n)
	}
	Do(s, olive, realm.InviteByMail{InviteOptions: realm.InviteOptions{Role: realm.Member}, Emails: "cy@example.com"})
	list, err := s.ViewAs(olive).ManagedInvites()
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	cy := Do(s, System, realm.AcceptInvite{Hash: list[0].Tokens[0], Email: "cy@example.com", Name: "Cy"})
	jobs := outboxJobs(s, realm.OutboxWelcome)
	if len(jobs) != 1 || s.Realm.Find(jobs[0].User).Name != "Cy" {
		t.Errorf("%v got %+v", cy, jobs)
	}
}

// A person is reminded once of an invitation that ends soon, with a link that works.
func TestInvitationReminders(t *testing.T) {
	const day = 24 * 3600
	s := New(t)
	s.EmailEnabled = true
	olive := s.Join("Olive", realm.Owner)
	minutes := func(days int64) *int64 { m := days * 24 * 60; return &m }
	invite := func(email string, validity *int64) {
		Do(s, olive, realm.InviteByMail{InviteOptions: realm.InviteOptions{Role: realm.Member, Minutes: validity},
			Emails: email})
	}
	invite("ten@example.com", minutes(10))
	invite("three@example.com", minutes(3))
	invite("ever@example.com", nil)
	invite("revoked@example.com", minutes(10))
	list, _ := s.ViewAs(olive).ManagedInvites()
	for _, i := range list {
		if i.Email == "revoked@example.com" {
			Do(s, olive, realm.RevokeInvite{ID: i.ID})
		}
	}
	finishOutbox(s)
	for i, want := range []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0} {
		tickAll(s)
		jobs := outboxJobs(s, realm.OutboxReminder)
		if len(jobs) != want {
			t.Fatalf("day %d: %+v", i, jobs)
		}
		for _, job := range jobs {
			e, ok := s.ViewAs(System).ReminderOf(&job)
			if !ok || e.Invite.Email != "ten@example.com" || len(e.Invite.Tokens) != 2 || e.Link == 0 {
				t.Errorf("day %d: %+v", i, e)
			}
			if _, err := s.ViewAs(System).FindInvite(e.Invite.Tokens[1]); err != nil {
				t.Errorf("the link of the reminder: %v", err)
			}
			Do(s, olive, realm.RevokeInvite{ID: job.Invite})
			if _, ok := s.ViewAs(System).ReminderOf(&job); ok {
				t.Error("a revoked invitation is reminded of")
			}
		}
		finishOutbox(s)
		s.Advance(day)
	}
}
