package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestChangeOthersSettings(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robbie", ann)
	dark := []realm.SettingValue{{Name: "color_scheme", Value: int64(2)}}
	both := []realm.UserID{bo, ann}
	ExpectRefusal(s, ann, realm.ChangeOthersSettings{Users: both, Values: dark},
		"Must be an organization administrator")
	ExpectRefusal(s, olive, realm.ChangeOthersSettings{Users: []realm.UserID{99}, Values: dark}, "No such user")
	ExpectRefusal(s, olive, realm.ChangeOthersSettings{
		Users: []realm.UserID{bot}, Values: dark,
	}, "Bots have no settings")
	ExpectRefusal(s, olive, realm.ChangeOthersSettings{Groups: []realm.GroupID{99}, Values: dark}, "Invalid user group")
	Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "color_scheme", Value: int64(3)}}})
	Do(s, olive, realm.ChangeOthersSettings{Users: both, Values: dark, SkipEdited: true})
	s.ExpectEvents(ann, "user_settings")
	s.ExpectNoEvents(bo, olive)
	ops := Do(s, olive, realm.CreateGroup{Name: "ops", Members: []realm.UserID{bo}})
	Do(s, olive, realm.ChangeOthersSettings{Groups: []realm.GroupID{ops}, Values: dark})
	s.ExpectEvents(bo, "user_settings")
	s.ExpectNoEvents(ann, olive)
}
