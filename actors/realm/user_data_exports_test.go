package realm_test

import (
	"errors"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// A user has one file with their own data at a time, asks for three a day, and gets a message when it is complete. No
// other user finds it. It expires after three days.
func TestOwnDataExports(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo", realm.Owner)
	bot := s.JoinBot("Robot", ann)
	s.OpenQueue(ann)
	finish := func(e realm.OwnExport, failed bool) {
		Do(s, System, realm.FinishOwnExport{User: ann, ID: e.ID, Bytes: 7, Failed: failed})
	}
	list := func() []realm.OwnExport {
		out, err := s.ViewAs(ann).OwnExports()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const unknown = "Invalid data export ID"
	expectRefused(s, bot, realm.StartOwnExport{}, "does not accept bot requests")
	expectRefused(s, ann, realm.StartOwnExport{FileRefusal: errors.New("no space")}, "no space")
	first := Do(s, ann, realm.StartOwnExport{})
	expectRefused(s, ann, realm.StartOwnExport{}, "is being written already")
	expectRefused(s, ann, realm.FetchOwnExport{ID: first.ID}, unknown)
	expectRefused(s, ann, realm.DeleteOwnExport{ID: first.ID}, unknown)
	expectRefused(s, bo, realm.FinishOwnExport{User: ann, ID: first.ID}, unknown)
	if p := s.ViewAs(System).PendingOwnExports(); len(p) != 1 || p[0].User != ann || p[0].Export.ID != first.ID {
		t.Errorf("exports that are written: %+v", p)
	}
	if s.ViewAs(bo).PendingOwnExports() != nil {
		t.Error("an owner gets the names of files of others")
	}
	finish(first, false)
	arrived := ListEventsOf[*realm.MessageArrived](s, ann)
	if len(arrived) != 1 || !strings.Contains(s.Text(arrived[0].Message.Ref).Text, "is complete") {
		t.Errorf("messages about the end: %v", arrived)
	}
	for _, other := range []realm.UserID{bo, bot} {
		if _, err := Try(s, other, realm.FetchOwnExport{ID: first.ID}); err == nil {
			t.Errorf("user %d gets the file", other)
		}
		if _, err := Try(s, other, realm.DeleteOwnExport{ID: first.ID}); err == nil {
			t.Errorf("user %d deletes the file", other)
		}
	}
	Do(s, ann, realm.FetchOwnExport{ID: first.ID})
	Do(s, ann, realm.FetchOwnExport{ID: first.ID})

	second := Do(s, ann, realm.StartOwnExport{})
	Do(s, ann, realm.FetchOwnExport{ID: first.ID}) // until the new file exists
	finish(second, false)
	expectRefused(s, ann, realm.FetchOwnExport{ID: first.ID}, unknown)
	finish(Do(s, ann, realm.StartOwnExport{}), true)
	Do(s, ann, realm.FetchOwnExport{ID: second.ID})
	expectRefused(s, ann, realm.StartOwnExport{}, "3 times a day")
	if l := list(); len(l) != 3 || l[0].HasFile() || !l[1].HasFile() || l[2].Failed == 0 {
		t.Errorf("after three exports: %+v", l)
	}
	kinds := ""
	entries, _, _ := s.ViewAs(System).AuditLog(realm.AuditFilter{Kind: "user.data_export", After: -1, Limit: 20})
	for _, e := range entries {
		kinds += e.New + " "
	}
	if kinds != "started complete downloaded started complete started failed downloaded " {
		t.Errorf("the audit log has %q", kinds)
	}

	s.Advance(24 * 3600)
	runDue(s)
	if l := list(); len(l) != 1 || l[0].ID != second.ID {
		t.Errorf("a day later: %+v", l)
	}
	s.Advance(2 * 24 * 3600)
	expectRefused(s, ann, realm.FetchOwnExport{ID: second.ID}, unknown)
	runDue(s)
	if l := list(); len(l) != 0 {
		t.Errorf("three days later: %+v", l)
	}
}

func runDue(s *Scene) {
	for d := s.Realm.Due(s.Now); d != nil; d = s.Realm.Due(s.Now) {
		RunTurn(s, System, d)
	}
}

// The file of a user that was deactivated is not written, and the data of an erased user name no file.
func TestOwnDataExportEndsWithAccount(t *testing.T) {
	s := New(t)
	s.Join("Olive", realm.Owner)
	ann := s.Join("Ann")
	e := Do(s, ann, realm.StartOwnExport{})
	if err := s.ViewAs(System).MayContinueOwnExport(ann); err != nil {
		t.Errorf("the export must go on: %v", err)
	}
	Do(s, ann, realm.DeactivateUser{Self: true})
	if err := s.ViewAs(System).MayContinueOwnExport(ann); err == nil {
		t.Error("the export of a deactivated user goes on")
	}
	Do(s, System, realm.EraseUser{User: ann})
	expectRefused(s, System, realm.FinishOwnExport{User: ann, ID: e.ID}, "Invalid data export ID")
	names := map[string]bool{e.Name: true}
	if got, _ := s.ViewAs(System).ReferencedFiles(realm.ArchiveFile, names, 1); len(got) != 0 {
		t.Errorf("files of an erased user: %v", got)
	}
}

// expectRefused expects that a command is refused with a text that contains another one.
func expectRefused[A any](s *Scene, u realm.UserID, c realm.Command[A], part string) {
	s.T.Helper()
	if _, err := Try(s, u, c); err == nil || !strings.Contains(err.Error(), part) {
		s.T.Errorf("%T by user %d: %v, want a refusal with %q", c, u, err, part)
	}
}
