package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestMailIsPostedToItsChannel(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	Do(s, ann, realm.Subscribe{Channels: []realm.Joining{{Name: "inbox"}}})
	inbox := s.Realm.FindChannelByName("inbox").ID
	token := Do(s, ann, realm.MailToken{Channel: inbox}).Token
	post := realm.PostMail{Token: token, Topic: strings.Repeat("t", 70), Text: strings.Repeat("x", 10001)}
	Refused(s, ann, post, "Insufficient permission")
	Do(s, System, post)
	got := HeardOf[*realm.MessageArrived](s, ann)
	if len(got) != 1 || got[0].Message.Sender.ID != realm.EmailGateway || got[0].Message.Topic != strings.Repeat("t", 59)+"…" {
		t.Fatalf("Ann heard %+v", got)
	}
	post.Text = " "
	Refused(s, System, post, "Message must not be empty")
	Refused(s, System, realm.PostMail{Token: "guessed", Text: "x"}, "No channel has this address.")
	Do(s, olive, realm.DeactivateUser{User: ann})
	post.Text = "too late"
	Refused(s, System, post, "No channel has this address.")
}
