package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// replyScene is a channel and a direct conversation with a message of Ann in each.
type replyScene struct {
	*Scene
	olive, ann, bo, gus realm.UserID
	channel             realm.ChannelID
	posted, direct      realm.MessageID
}

func newReplyScene(t *testing.T) *replyScene {
	s := &replyScene{Scene: New(t)}
	s.EmailEnabled = true
	s.olive, s.ann, s.bo = s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	s.gus = s.Join("Gus", realm.Guest)
	Do(s.Scene, s.ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "plans"}},
		New: realm.NewChannel{Private: true}, Principals: []realm.Principal{{ID: s.ann}, {ID: s.bo}},
		AllOrNothing: true})
	s.channel = s.Realm.FindChannelByName("plans").ID
	s.posted = Do(s.Scene, s.ann, realm.SendMessage{ToChannel: true, Channel: s.channel, Topic: "boats",
		Body: realm.Body{Text: "who rows?"}}).ID
	s.direct = Do(s.Scene, s.ann, realm.SendMessage{People: []realm.Principal{{ID: s.bo}, {ID: s.gus}},
		Body: realm.Body{Text: "you?"}}).ID
	return s
}

// A reply by email is a message of the user, in the conversation of the message that it answers.
func TestReplyByEmail(t *testing.T) {
	s := newReplyScene(t)
	last := func(u realm.UserID) realm.MessageInfo {
		t.Helper()
		list := ListEventsOf[*realm.MessageArrived](s.Scene, u)
		if len(list) != 1 {
			t.Fatalf("%d messages", len(list))
		}
		return list[0].Message
	}
	Do(s.Scene, s.bo, realm.ReplyByEmail{Message: s.posted, Text: "I do\n\n"})
	if m := last(s.ann); m.Sender.ID != s.bo || m.Channel != s.channel || m.Topic != "boats" ||
		s.Text(m.Ref).Text != "I do" {
		t.Errorf("Ann got %+v", m)
	}
	Do(s.Scene, s.bo, realm.ReplyByEmail{Message: s.direct, Text: "me"})
	if m := last(s.gus); m.Sender.ID != s.bo || m.Channel != 0 || len(m.People) != 3 {
		t.Errorf("Gus got %+v", m)
	}
	topic := "ships"
	Do(s.Scene, s.ann, realm.EditMessage{Message: s.posted, Topic: &topic, Mode: realm.MoveAll})
	Do(s.Scene, s.bo, realm.ReplyByEmail{Message: s.posted, Text: "still me"})
	if m := last(s.ann); m.Topic != "ships" {
		t.Errorf("after the move Ann got %+v", m)
	}
}

// The files of a reply are the user's. A reply may have nothing else.
func TestReplyByEmailWithFiles(t *testing.T) {
	s := newReplyScene(t)
	file := realm.SaveUpload{Name: "plan.txt", Type: "text/plain", Hash: "aa", Size: 10, Quota: 15}
	for _, text := range []string{"", "here"} {
		posted := Do(s.Scene, s.bo, realm.ReplyByEmail{Message: s.posted, Text: text,
			Files: []realm.SaveUpload{file}})
		m := ListEventsOf[*realm.MessageArrived](s.Scene, s.ann)
		if len(m) != 1 {
			t.Fatalf("Ann got %+v", m)
		}
		got, want := s.Text(m[0].Message.Ref).Text, "plan.txt: Upload would exceed your organization's upload quota."
		if text == "" {
			if len(posted.Files) != 1 || posted.Files[0].Owner != s.bo {
				t.Fatalf("stored files: %+v", posted.Files)
			}
			want = "[plan.txt](/user_uploads/" + posted.Files[0].Path + ")"
		}
		if !strings.HasSuffix(got, want) || !strings.HasPrefix(got, text) {
			t.Errorf("Ann got %q, want %q", got, want)
		}
	}
}

// A user replies by email only where the user may send at that moment, and a refused reply stores nothing.
func TestReplyByEmailIsRefused(t *testing.T) {
	s := newReplyScene(t)
	file := realm.SaveUpload{Name: "plan.txt", Type: "text/plain", Hash: "aa", Size: 10}
	refuse := func(u realm.UserID, m realm.MessageID, text, want string) {
		t.Helper()
		ExpectRefusal(s.Scene, u, realm.ReplyByEmail{Message: m, Text: text, Files: []realm.SaveUpload{file}}, want)
	}
	for _, u := range []realm.UserID{s.olive, s.gus} {
		refuse(u, s.posted, "x", "Invalid message(s)")
	}
	refuse(s.olive, s.direct, "x", "Invalid message(s)")
	refuse(s.bo, 9999, "x", "Invalid message(s)")
	refuse(s.bo, s.posted, "x\x00", "Message must not contain null bytes")
	ExpectRefusal(s.Scene, s.bo, realm.ReplyByEmail{Message: s.posted, Text: " \n"}, "Message must not be empty")
	ExpectRefusal(s.Scene, System, realm.ReplyByEmail{Message: s.posted, Text: "x"}, "Must be an organization member")

	Do(s.Scene, s.olive, realm.Unsubscribe{Names: []string{"plans"}, Principals: []realm.Principal{{ID: s.bo}}})
	refuse(s.bo, s.posted, "x", "Invalid message(s)")
	Do(s.Scene, s.ann, realm.DeleteMessage{Message: s.direct})
	refuse(s.bo, s.direct, "x", "Invalid message(s)")
	Do(s.Scene, s.olive, realm.ArchiveChannel{Channel: s.channel})
	refuse(s.ann, s.posted, "x", "Invalid message(s)")
	if err := s.ViewAs(System).CheckUploadQuota(1, 1); err != nil {
		t.Errorf("refused replies have stored files: %v", err)
	}
}
