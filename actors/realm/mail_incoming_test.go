package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestPostEmail(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "inbox"}}})
	inbox := s.Realm.FindChannelByName("inbox").ID
	token := Do(s, ann, realm.MailToken{Channel: inbox}).Token
	post := realm.PostEmail{Token: token, Topic: strings.Repeat("t", 70), Text: strings.Repeat("x", 10001)}
	ExpectRefusal(s, ann, post, "Insufficient permission")
	Do(s, System, post)
	got := ListEventsOf[*realm.MessageArrived](s, ann)
	if len(got) != 1 || got[0].Message.Sender.ID != realm.EmailGateway ||
		got[0].Message.Topic != strings.Repeat("t", 59)+"…" {
		t.Fatalf("Ann got %+v", got)
	}
	post.Text = " "
	ExpectRefusal(s, System, post, "Message must not be empty")
	ExpectRefusal(s, System, realm.PostEmail{Token: "guessed", Text: "x"}, "No channel has this address.")
	Do(s, olive, realm.DeactivateUser{User: ann})
	post.Text = "too late"
	ExpectRefusal(s, System, post, "No channel has this address.")
}

func TestPostEmailWithFiles(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "inbox"}},
		Principals: []realm.Principal{{ID: ann}, {ID: bo}}})
	token := Do(s, ann, realm.MailToken{Channel: s.Realm.FindChannelByName("inbox").ID}).Token
	file := realm.SaveUpload{Name: "a [new] plan.txt", Type: "text/plain", Hash: "aa", Size: 10, Quota: 15}
	posted := Do(s, System, realm.PostEmail{Token: token, Topic: "plans", Text: strings.Repeat("x", realm.MaxMessage),
		Files: []realm.SaveUpload{file, file}})
	if len(posted.Files) != 1 {
		t.Fatalf("stored files: %v", posted.Files)
	}
	end := "x\n[message truncated]\n\n[a (new) plan.txt](/user_uploads/" + posted.Files[0].Path + ")\n" +
		"a (new) plan.txt: Upload would exceed your organization's upload quota."
	got := ListEventsOf[*realm.MessageArrived](s, bo)
	if len(got) != 1 {
		t.Fatalf("Bo got %+v", got)
	}
	if text := s.Text(got[0].Message.Ref).Text; !strings.HasSuffix(text, end) || len(text) != realm.MaxMessage {
		t.Errorf("Bo got %q", text)
	}
}
