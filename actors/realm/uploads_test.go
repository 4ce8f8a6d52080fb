package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestUploadIsSeenByWhoMayReadAMessageWithIt(t *testing.T) {
	s := New(t)
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	u := Do(s, ann, realm.SaveUpload{Name: "../a (b).png", Type: "image/png", Hash: "ab12", Size: 10})
	s.Hears(ann, "attachment")
	s.HearsNothing(bo)
	if u.Name != "a-b.png" {
		t.Fatalf("the file is named %q", u.Name)
	}
	sees := func(who realm.UserID) bool { _, ok := s.View(who).VisibleUpload(u.Path); return ok }
	if !sees(ann) || sees(bo) {
		t.Fatal("a file that no message uses is its uploader's alone")
	}
	id := Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "look"}, Content: realm.Content{Attachments: []string{u.Path}, Attachment: true}}).ID
	s.Hears(ann, "message", "attachment")
	if !sees(bo) || sees(cy) {
		t.Fatal("a file in a direct message is for its people")
	}
	Do(s, ann, realm.DeleteMessage{Message: id})
	if sees(bo) {
		t.Fatal("a file outlived the message for others")
	}
	Refused(s, bo, realm.DeleteUpload{ID: u.ID}, "Invalid attachment")
	if hash := Do(s, ann, realm.DeleteUpload{ID: u.ID}); hash != "ab12" {
		t.Fatalf("content nobody uses is %q", hash)
	}
	Refused(s, ann, realm.SaveUpload{Name: "x", Size: 11, Quota: 10}, "REALM_UPLOAD_QUOTA")
}
