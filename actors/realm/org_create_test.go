package realm_test

import (
	"errors"
	"slices"
	"testing"

	"parley/actors/realm"
	"parley/actors/realm/ids"
	. "parley/actors/realm/realmtest"
)

func TestOrganizationPictures(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	ExpectRefusal(s, ann, realm.SetPicture{Kind: realm.Icon, File: "f"}, "Must be an organization administrator")
	p := Do(s, olive, realm.SetPicture{Kind: realm.NightLogo, File: "f"})
	if p != (realm.Picture{Source: "U", File: "f", Version: 2}) {
		t.Errorf("the picture is %+v", p)
	}
	s.ExpectEvents(ann, "realm")
	if p := s.Realm.Org().PictureOf(realm.Logo); p.File != "" || p.Version != 1 {
		t.Errorf("the other logo became %+v", p)
	}
	if p := Do(s, olive, realm.SetPicture{Kind: realm.NightLogo}); p != (realm.Picture{Source: "D", Version: 3}) {
		t.Errorf("without a file the picture is %+v", p)
	}
	if p := Do(s, olive, realm.SetPicture{Kind: realm.Icon}); p.Source != "G" {
		t.Errorf("without a file the icon is %+v", p)
	}
}

func TestOnboardingSteps(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robbie", ann)
	all := len(s.Realm.OnboardingStepsLeft(ann))
	ExpectRefusal(s, ann, realm.DismissOnboardingStep{Step: "nothing"}, "Unknown onboarding_step: nothing")
	ExpectRefusal(s, bot, realm.DismissOnboardingStep{Step: "intro_resolve_topic"},
		"This endpoint does not accept bot requests.")
	Do(s, ann, realm.DismissOnboardingStep{Step: "intro_resolve_topic"})
	s.ExpectEvents(ann, "onboarding_steps")
	s.ExpectNoEvents(bo)
	left := func(u realm.UserID) int { return len(s.Realm.OnboardingStepsLeft(u)) }
	if n := left(ann); n != all-1 || left(bo) != all || left(bot) != 0 {
		t.Errorf("%d of %d hints are left", n, all)
	}
	Do(s, ann, realm.DismissOnboardingStep{Step: "intro_resolve_topic"})
	s.ExpectNoEvents(ann)
}

func TestDeactivateOrganization(t *testing.T) {
	s := New(t)
	olive, ada, ann := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Ann")
	ExpectRefusal(s, ada, realm.CloseRealm{}, "Must be an organization owner")
	ExpectRefusal(s, olive, realm.ReopenRealm{}, "Insufficient permission")
	Do(s, olive, realm.CloseRealm{})
	s.ExpectEvents(ann, "realm")
	if !s.Realm.Closed() {
		t.Error("the organization is open")
	}
	ExpectRefusal(s, olive, realm.CloseRealm{}, "The organization is already deactivated")
	Do(s, System, realm.ReopenRealm{})
	if s.Realm.Closed() {
		t.Error("the organization is closed")
	}
}

func TestExports(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	ExpectRefusal(s, ann, realm.StartExport{Kind: realm.PublicExport}, "Must be an organization administrator")
	ExpectRefusal(s, olive, realm.StartExport{Kind: realm.CompleteExport}, "Insufficient permission")
	e := Do(s, olive, realm.StartExport{Kind: realm.PublicExport})
	s.ExpectEvents(olive, "realm_export")
	s.ExpectNoEvents(ann)
	ExpectRefusal(s, olive, realm.DeleteExport{ID: e.ID}, "Export still in progress")
	ExpectRefusal(s, olive, realm.DeleteExport{ID: 99}, "Invalid data export ID")
	var r *realm.Refusal
	if _, err := Try(s, olive, realm.DeleteExport{ID: 99}); !errors.As(err, &r) || r.Kind != realm.Invalid {
		t.Errorf("an unknown export is refused with %+v", r)
	}
	ExpectRefusal(s, olive, realm.FinishExport{ID: e.ID}, "Invalid data export ID") // only the server may
	Do(s, System, realm.FinishExport{ID: e.ID})
	s.ExpectEvents(olive, "realm_export", "message")
	Do(s, olive, realm.DeleteExport{ID: e.ID})
	ExpectRefusal(s, olive, realm.DeleteExport{ID: e.ID}, "Export already deleted")
	f := Do(s, olive, realm.StartExport{Kind: realm.PublicExport})
	Do(s, System, realm.FinishExport{ID: f.ID, Failed: true})
	ExpectRefusal(s, olive, realm.DeleteExport{ID: f.ID}, "Export failed, nothing to delete")
	for range 3 {
		Do(s, olive, realm.StartExport{Kind: realm.PublicExport})
	}
	ExpectRefusal(s, olive, realm.StartExport{Kind: realm.PublicExport}, "Exceeded rate limit.")
	s.Advance(7 * 24 * 3600)
	Do(s, olive, realm.StartExport{Kind: realm.PublicExport})
}

// The list of exports has a limit. A new export takes the place of the oldest one without a file. The files of the
// others are never forgotten.
func TestExportsAreBounded(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	start := func() realm.Export {
		s.Advance(2 * 24 * 3600) // five a week are allowed
		return Do(s, olive, realm.StartExport{Kind: realm.PublicExport})
	}
	list := func() []realm.Export {
		exports, err := s.ViewAs(olive).Exports()
		if err != nil {
			t.Fatal(err)
		}
		return exports
	}
	for i := range realm.MaxExports {
		Do(s, System, realm.FinishExport{ID: start().ID, Failed: i == 3})
	}
	last := start()
	if l := list(); len(l) != realm.MaxExports ||
		slices.ContainsFunc(l, func(e realm.Export) bool { return e.ID == 4 }) ||
		l[0].ID != 1 ||
		l[len(l)-1].ID != last.ID {
		t.Errorf("%d exports are listed, %d to %d", len(l), l[0].ID, l[len(l)-1].ID)
	}
	s.Advance(2 * 24 * 3600)
	ExpectRefusal(s, olive, realm.StartExport{Kind: realm.PublicExport},
		"There are too many data exports. Delete old ones first.")
	Do(s, olive, realm.DeleteExport{ID: 2})
	start()
	if l := list(); len(l) != realm.MaxExports || l[1].ID != 3 {
		t.Errorf("%d exports are listed, the second is %d", len(l), l[1].ID)
	}
}

func TestExportContents(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	subscribers := []realm.Principal{{ID: olive}, {ID: ann}}
	open := Do(s, olive, realm.CreateChannel{New: realm.NewChannel{Name: "open"}, Subscribers: subscribers}).ID
	said := Do(s, ann, realm.SendMessage{ToChannel: true, Channel: open, Topic: "t",
		Body: realm.Body{Text: "to all"}}).ID
	private := Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "to Bo"}}).ID
	has := func(kind string, id realm.MessageID) bool {
		v := s.ViewAs(System)
		contains := func(source func(realm.View) ids.Set) bool { return source(v).Has(int64(id)) }
		return slices.ContainsFunc(v.ExportSources(kind), contains)
	}
	if !has(realm.PublicExport, said) || has(realm.PublicExport, private) ||
		has(realm.ConsentExport, private) || !has(realm.CompleteExport, private) {
		t.Error("an export contains a message it must not contain, or lacks one")
	}
	Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "allow_private_data_export", Value: true}}})
	s.ExpectEvents(olive, "realm_export_consent")
	if !has(realm.ConsentExport, private) {
		t.Error("the export lacks a direct message of a user that consented")
	}
}
