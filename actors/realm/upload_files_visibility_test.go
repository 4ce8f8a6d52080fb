package realm_test

import (
	"fmt"
	"strings"
	"testing"

	. "parley/actors/realm"
)

// TestUploadVisibility follows one file from message to message. Exactly the users that may read one of the messages
// may fetch it.
func TestUploadVisibility(t *testing.T) {
	s := newTestScene(t)
	u := do(s, s.mod, SaveUpload{Name: "a.png", Type: "image/png", Hash: "aa", Size: 10, Width: 3, Height: 2})
	people := []struct {
		name string
		id   UserID // 0: a logged-out visitor
	}{
		{"owner", s.owner}, {"admin", s.admin}, {"uploader", s.mod}, {"ann", s.ann}, {"bo", s.bo}, {"cy", s.cy},
		{"guest", s.guest}, {"bot", s.bot}, {"visitor", 0},
	}
	fetch := func(when string, who ...string) {
		t.Helper()
		var got []string
		for _, p := range people {
			v := s.Realm.ViewAs(Caller{User: p.id}, s.Now)
			_, whole := v.VisibleUpload(u.Path)
			if _, small := v.RenderableUpload(u.Path); small != whole {
				t.Errorf("%s: %s can see the file: %v, its thumbnail: %v", when, p.name, whole, small)
			}
			if whole {
				got = append(got, p.name)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(who) {
			t.Errorf("%s: %s can fetch it, want %s", when, strings.Join(got, " "), strings.Join(who, " "))
		}
	}
	with := func(c SendMessage) SendMessage {
		c.Content = ContentInfo{Attachments: []string{u.Path}, Attachment: true}
		return c
	}
	fetch("in no message", "uploader")

	dm := do(s, s.mod, with(directMessage("x", s.ann))).ID
	fetch("in a direct message", "uploader", "ann")
	do(s, s.mod, with(directMessage("x", s.mod))) // a note to oneself, which keeps the file
	do(s, s.mod, DeleteMessage{Message: dm})
	fetch("after the message was deleted", "uploader")

	do(s, s.mod, with(directMessage("x", s.ann)))
	private := do(s, s.ann, with(channelMessage(s.private, "t", "x"))).ID
	fetch("after Ann posted it in a private channel", "uploader", "ann", "bo")
	s.join(s.cy, s.private)
	fetch("after Cy joined, with access to old messages", "uploader", "ann", "bo", "cy")
	s.leave(s.cy, s.private)
	fetch("after Cy left", "uploader", "ann", "bo")
	noFile := NewContent{Body: Body{Text: "no file", HTML: "<p>no file</p>"}}
	do(s, s.ann, EditMessage{Message: private, Mode: MoveOne, Content: &noFile})
	fetch("after an edit removed it", "uploader", "ann")

	hidden := do(s, s.ann, with(channelMessage(s.protected, "t", "x"))).ID
	fetch("in a channel with protected history", "uploader", "ann", "bo")
	s.join(s.cy, s.protected)
	fetch("after Cy joined that channel", "uploader", "ann", "bo")
	do(s, s.ann, DeleteMessage{Message: hidden})
	fetch("after that message was deleted", "uploader", "ann")

	do(s, s.ann, with(channelMessage(s.public, "t", "x")))
	fetch("in a public channel", "owner", "admin", "uploader", "ann", "bo", "cy", "guest", "bot")
	s.leave(s.guest, s.public)
	fetch("after the guest left it", "owner", "admin", "uploader", "ann", "bo", "cy", "bot")
	s.setOrgSetting("enable_spectator_access", true)
	do(s, s.owner, EditChannel{Channel: s.public, WebPublic: ptr(true)})
	fetch("in a web-public channel", "owner", "admin", "uploader", "ann", "bo", "cy", "guest", "bot", "visitor")
	s.setOrgSetting("enable_spectator_access", false)
	fetch("after spectator access was disabled", "owner", "admin", "uploader", "ann", "bo", "cy", "guest", "bot")

	do(s, s.mod, DeleteUpload{ID: u.ID})
	fetch("after the uploader deleted it")
}
