package realm_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestUploadVisibleToMessageReaders(t *testing.T) {
	s := New(t)
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	u := Do(s, ann, realm.SaveUpload{Name: "../a (b).png", Type: "image/png", Hash: "ab12", Size: 10})
	s.ExpectEvents(ann, "attachment")
	s.ExpectNoEvents(bo)
	if u.Name != "a (b).png" || path.Base(u.Path) != "a-b.png" {
		t.Fatalf("the file has name %q and path %q", u.Name, u.Path)
	}
	sees := func(who realm.UserID) bool { _, ok := s.ViewAs(who).VisibleUpload(u.Path); return ok }
	if !sees(ann) || sees(bo) {
		t.Fatal("an unused file must be visible to its uploader only")
	}
	id := Do(s, ann, realm.SendMessage{
		People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "look"},
		Content: realm.ContentInfo{Attachments: []string{u.Path}, Attachment: true},
	}).ID
	s.ExpectEvents(ann, "message", "attachment")
	if !sees(bo) || sees(cy) {
		t.Fatal("a file in a direct message must be visible to the participants only")
	}
	Do(s, ann, realm.SendMessage{
		People: []realm.Principal{{ID: ann}}, Body: realm.Body{Text: "a note"},
		Content: realm.ContentInfo{Attachments: []string{u.Path}, Attachment: true},
	})
	Do(s, ann, realm.DeleteMessage{Message: id})
	if sees(bo) || !sees(ann) {
		t.Fatal("after the deletion the file must be visible to its uploader only")
	}
	ExpectRefusal(s, bo, realm.DeleteUpload{ID: u.ID}, "Invalid attachment")
	if hash := Do(s, ann, realm.DeleteUpload{ID: u.ID}); hash != "ab12" {
		t.Fatalf("the unused content is %q", hash)
	}
	ExpectRefusal(s, ann, realm.SaveUpload{Name: "x", Size: 11, Quota: 10}, "REALM_UPLOAD_QUOTA")
}

func TestUploadNames(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	long := strings.Repeat("ä", 300)
	for _, x := range []struct{ sent, name, address string }{
		{"plan.txt", "plan.txt", "plan.txt"},
		{"my plan  (1) - [new].txt", "my plan  (1) - [new].txt", "my-plan-1-new.txt"},
		{`C:\docs\über uns.pdf`, "über uns.pdf", "über-uns.pdf"},
		{"../../etc/passwd", "passwd", "passwd"},
		{"a\x00b\n\u200bc.txt", "abc.txt", "abc.txt"},
		{"..", "uploaded-file", "uploaded-file"},
		{"", "uploaded-file", "uploaded-file"},
		{"???", "???", "uploaded-file"},
		{"50% \"off\" <b>.html", "50% \"off\" <b>.html", "50-off-b.html"},
		{long + ".txt", long[:2*251] + ".txt", long[:2*251] + ".txt"},
		{"x." + long, "x." + long[:2*253], "x." + long[:2*253]},
	} {
		u := Do(s, ann, realm.SaveUpload{Name: x.sent, Type: "text/plain", Hash: "ab12", Size: 10})
		if u.Name != x.name || path.Base(u.Path) != x.address {
			t.Errorf("%q has name %q and path %q", x.sent, u.Name, u.Path)
		}
	}
}

func TestLinkDoesNotShareInvisibleUpload(t *testing.T) {
	s := New(t)
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	u := Do(s, ann, realm.SaveUpload{Name: "plan.txt", Type: "text/plain", Hash: "ab12", Size: 10})
	sees := func(who realm.UserID) bool { _, ok := s.ViewAs(who).VisibleUpload(u.Path); return ok }
	with := realm.ContentInfo{Attachments: []string{u.Path}, Attachment: true}
	write := func(from, to realm.UserID, x realm.ContentInfo) realm.MessageID {
		return Do(s, from, realm.SendMessage{
			People: []realm.Principal{{ID: to}}, Body: realm.Body{Text: "look"}, Content: x,
		}).ID
	}
	write(bo, cy, with)
	if sees(bo) || sees(cy) {
		t.Fatal("sending the URL of an invisible file made it visible")
	}
	id := write(bo, cy, realm.ContentInfo{})
	Do(s, bo, realm.EditMessage{Message: id, Mode: realm.MoveOne, Content: &realm.NewContent{
		Body: realm.Body{Text: "look at this"}, Content: with,
	}})
	if sees(bo) || sees(cy) {
		t.Fatal("editing the URL of an invisible file into a message made it visible")
	}
	write(ann, bo, with)
	if !sees(bo) || sees(cy) {
		t.Fatal("a file in a direct message must be visible to the participants only")
	}
	write(bo, cy, with)
	if !sees(cy) {
		t.Fatal("a user who can see a file must be able to share it")
	}
}

func TestEditUpdatesAttachmentUses(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	a := Do(s, ann, realm.SaveUpload{Name: "a.txt", Type: "text/plain", Hash: "aa", Size: 10})
	b := Do(s, ann, realm.SaveUpload{Name: "b.txt", Type: "text/plain", Hash: "bb", Size: 20})
	with := func(paths ...string) realm.ContentInfo {
		return realm.ContentInfo{Attachments: paths, Attachment: len(paths) > 0}
	}
	id := Do(s, ann, realm.SendMessage{
		People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "look"}, Content: with(a.Path),
	}).ID
	edit := func(c realm.ContentInfo) (uses map[string][]realm.MessageID) {
		Do(s, ann, realm.EditMessage{Message: id, Mode: realm.MoveOne, Content: &realm.NewContent{
			Body: realm.Body{Text: "look again"}, Content: c,
		}})
		uses = map[string][]realm.MessageID{}
		for _, e := range s.ListEvents(ann) {
			if x, ok := e.(*realm.AttachmentChanged); ok {
				if x.New || x.Used != 30 {
					t.Errorf("the uploader got %+v", x)
				}
				uses[x.Attachment.Name] = x.Attachment.Messages
			}
		}
		return uses
	}
	if got := edit(with(b.Path)); len(got) != 2 || len(got["a.txt"]) != 0 ||
		!slices.Equal(got["b.txt"], []realm.MessageID{id}) {
		t.Errorf("after replacing the file: %v", got)
	}
	if got := edit(with(b.Path)); len(got) != 0 {
		t.Errorf("after an edit that keeps the file: %v", got)
	}
	if got := edit(with()); len(got) != 1 || len(got["b.txt"]) != 0 {
		t.Errorf("after removing the file: %v", got)
	}
}

func TestThumbnailState(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	u := Do(s, ann, realm.SaveUpload{
		Name: "a.gif", Type: "image/gif", Hash: "aa", Size: 10, Width: 30, Height: 20, Animated: true,
	})
	Do(s, ann, realm.SaveUpload{Name: "b.txt", Type: "text/plain", Hash: "bb", Size: 10})
	if w := s.ViewAs(System).ThumbnailsWanted(); len(w) != 1 || w[0].ID != u.ID {
		t.Errorf("wanted thumbnails: %+v", w)
	}
	// Ignored: only the server may do this.
	Do(s, bo, realm.SetThumbnailState{Upload: u.ID, State: realm.ThumbnailImpossible})
	if i, ok := s.ViewAs(ann).RenderableUpload(u.Path); !ok || i.Thumbnailed || !i.Animated {
		t.Errorf("%+v %v", i, ok)
	}
	Do(s, System, realm.SetThumbnailState{Upload: u.ID, State: realm.ThumbnailMade})
	if i, ok := s.ViewAs(ann).RenderableUpload(u.Path); !ok || !i.Thumbnailed ||
		len(s.ViewAs(System).ThumbnailsWanted()) != 0 {
		t.Errorf("%+v %v", i, ok)
	}
	Do(s, System, realm.SetThumbnailState{Upload: u.ID, State: realm.ThumbnailImpossible})
	if i, ok := s.ViewAs(ann).RenderableUpload(u.Path); ok {
		t.Errorf("a file without possible thumbnail is renderable: %+v", i)
	}
	Do(s, System, realm.SetThumbnailState{Upload: 99, State: realm.ThumbnailMade}) // deleted in the meantime
}

func TestUploadEventsCarryTotalSize(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	save := func(who realm.UserID, hash string, size int64) realm.Upload {
		return Do(s, who, realm.SaveUpload{Name: "a.txt", Type: "text/plain", Hash: hash, Size: size})
	}
	u := save(ann, "aa", 10)
	s.ListEvents(bo)
	save(bo, "bb", 20)
	if told, ok := s.ListEvents(bo)[0].(*realm.AttachmentChanged); !ok || told.Used != 30 {
		t.Errorf("Bo got %+v", told)
	}
	if list, used := s.ViewAs(ann).UploadsOf(ann, 10); len(list) != 1 || used != 30 {
		t.Errorf("Ann's uploads: %v, total %d", list, used)
	}
	s.ListEvents(ann)
	Do(s, ann, realm.DeleteUpload{ID: u.ID})
	if told, ok := s.ListEvents(ann)[0].(*realm.AttachmentGone); !ok || told.Used != 20 {
		t.Errorf("Ann got %+v", told)
	}
}

func TestUploadDeletedWithLastMessage(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	u := Do(s, ann, realm.SaveUpload{Name: "a.txt", Type: "text/plain", Hash: "aa", Size: 10})
	never := Do(s, ann, realm.SaveUpload{Name: "b.txt", Type: "text/plain", Hash: "bb", Size: 20})
	with := realm.ContentInfo{Attachments: []string{u.Path}, Attachment: true}
	there := func() bool { _, ok := s.ViewAs(ann).VisibleUpload(u.Path); return ok }
	send := func(from, to realm.UserID) realm.MessageID {
		return Do(s, from, realm.SendMessage{
			People: []realm.Principal{{ID: to}}, Body: realm.Body{Text: "look"}, Content: with,
		}).ID
	}
	do := func(id realm.MessageID) { Do(s, olive, realm.DeleteMessage{Message: id}) }
	first, second := send(ann, olive), send(olive, bo)
	do(first)
	if !there() {
		t.Fatal("the file was deleted while a message used it")
	}
	waiting := Do(s, ann, realm.ScheduleMessage{Message: realm.SendMessage{
		People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "look"}, Content: with,
	}, At: s.Now + 3600})
	do(second)
	if !there() {
		t.Fatal("the file was deleted while a scheduled message used it")
	}
	third := send(ann, olive)
	Do(s, ann, realm.Unschedule{ID: waiting})
	s.ListEvents(ann)
	do(third)
	var gone []*realm.AttachmentGone
	for _, e := range s.ListEvents(ann) {
		if x, ok := e.(*realm.AttachmentGone); ok {
			gone = append(gone, x)
		}
	}
	if there() || len(gone) != 1 || *gone[0] != (realm.AttachmentGone{ID: u.ID, Used: 20}) {
		t.Errorf("file exists: %v; its owner got %+v", there(), gone)
	}
	if list, _ := s.ViewAs(ann).UploadsOf(ann, 10); len(list) != 1 || list[0].ID != never.ID {
		t.Errorf("remaining uploads: %+v", list)
	}
}

// A quota of one user is not that of others. The user and the owners get one message when a quota is almost full, and
// space that a deletion frees counts.
func TestUploadQuotas(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	const mib = 1 << 20
	save := func(size int64) realm.SaveUpload {
		return realm.SaveUpload{Name: "x.bin", Type: "application/octet-stream", Hash: "aa", Size: size * mib,
			Quota: 100 * mib, UserQuota: 50 * mib}
	}
	warnings := func(u realm.UserID) (texts []string) {
		for _, m := range ListEventsOf[*realm.MessageArrived](s, u) {
			texts = append(texts, s.Text(m.Message.Ref).Text)
		}
		return texts
	}
	first := Do(s, ann, save(30))
	if w := warnings(ann); len(w) != 0 {
		t.Errorf("warned at 60 %%: %q", w)
	}
	Do(s, ann, save(12))
	if w := warnings(ann); len(w) != 1 || !strings.HasPrefix(w[0], "Your uploaded files take 84 % of your 50 MiB.") {
		t.Errorf("warnings of the user: %q", w)
	}
	if w := warnings(olive); len(w) != 0 {
		t.Errorf("the owner is warned of a user's quota: %q", w)
	}
	Do(s, ann, save(1))
	if w := warnings(ann); len(w) != 0 {
		t.Errorf("warned twice: %q", w)
	}
	if _, err := Try(s, ann, save(8)); err == nil || !strings.Contains(err.Error(), "your quota of uploaded files") {
		t.Errorf("a file above the quota of the user: %v", err)
	}
	Do(s, bo, save(39))
	if w := warnings(olive); len(w) != 1 || !strings.Contains(w[0], "organization take 82 % of its 100 MiB") {
		t.Errorf("warnings of the owner: %q", w)
	}
	ExpectRefusal(s, olive, save(19), "REALM_UPLOAD_QUOTA")
	Do(s, ann, realm.DeleteUpload{ID: first.ID})
	Do(s, ann, save(8))
}
