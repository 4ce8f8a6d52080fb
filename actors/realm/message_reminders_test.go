package realm_test

import (
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// Reminders of a deleted or erased message do not have its text any more, also after a restart. The users keep their
// times and notes, whatever the note or the message contains.
func TestRemindersForgetDeletedMessages(t *testing.T) {
	for _, note := range []string{"", "my note", "```\nYour note:\n```", " Your note:\n\n``` quote\nx\n```"} {
		for name, remove := range map[string]func(s *testScene, id MessageID){
			"deleted": func(s *testScene, id MessageID) { do(s, s.owner, DeleteMessage{Message: id}) },
			"erased":  func(s *testScene, _ MessageID) { s.erase(s.ann) },
		} {
			s := newTestScene(t)
			const text = "zebratext. Your note:\n\n``` quote\nzebraquote\n```"
			id := s.post(s.ann, s.public, "topic", text)
			kept := s.post(s.bo, s.public, "topic", "kept")
			at := s.Now + 1000
			x := do(s, s.cy, AddReminder{Message: id, At: at, Note: note, Text: text})
			other := do(s, s.cy, AddReminder{Message: kept, At: at + 1, Text: "kept"})
			s.Restart()
			s.OpenQueue(s.cy)
			remove(s, id)
			s.Restart()
			list := s.Realm.RemindersOf(s.cy)
			if len(list) != 2 || list[0].ID != x || list[0].At != at || list[1].ID != other {
				t.Fatalf("%s: the reminders are %+v", name, list)
			}
			body := list[0].Body.Text + list[0].Body.HTML
			if strings.Contains(body, "zebra") || !strings.Contains(body, strings.TrimSpace(note)) ||
				!strings.Contains(body, "deleted") {
				t.Errorf("%s, note %q: the reminder has the text %q", name, note, body)
			}
			if !strings.Contains(list[1].Body.Text, "kept") {
				t.Errorf("%s: the reminder of another message has the text %q", name, list[1].Body.Text)
			}
		}
	}
}

// An erasure removes the emails that wait to be sent to a person, or that name them, and no others. A name is no part
// of a longer word.
func TestErasureRemovesWaitingEmails(t *testing.T) {
	s := newTestScene(t)
	u := *s.Realm.Find(s.ann)
	realmtest.RunTurn(s.Scene, realmtest.System, func(t *Turn) (any, error) {
		t.SendEmails(Email{To: strings.ToUpper(u.Email), Subject: "a"},
			Email{To: "x@example.org", Subject: u.Name + " invites you"},
			Email{To: "x@example.org", Subject: "b", Paragraphs: []string{"from " + u.Email}},
			Email{To: "new@example.org", Subject: "c", Address: &EmailChange{User: s.ann, From: u.Email}},
			Email{To: "x@example.org", Subject: "d", Confirm: &EmailedLink{Email: u.Email}},
			Email{To: "x@example.org", Subject: "e", Unsubscribe: &Unsubscription{User: s.ann}},
			Email{To: "x@example.org", Subject: "by " + u.Name + "'s friend"},
			Email{To: "x@example.org", Subject: "x" + u.Name + " " + u.Name + "!"},
			Email{To: "x" + u.Email, Subject: "other", Paragraphs: []string{"ｘ" + u.Name + "e", u.Name + "1"}})
		return nil, nil
	})
	s.erase(s.ann)
	jobs := s.ViewAs(realmtest.System).OutboxJobs()
	if len(jobs) != 1 || jobs[0].Letter.Subject != "other" {
		t.Errorf("the waiting jobs are %+v", jobs)
	}
}
