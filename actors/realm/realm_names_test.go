package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// Names must not contain controls of the text direction: they would show one name as another.
func TestNamesHaveNoDirectionControls(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	for _, control := range []rune{0x061C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E,
		0x2066, 0x2067, 0x2068, 0x2069} {
		name := "a" + string(control) + "b"
		ExpectRefusal(s, System, realm.CreateUser{Email: "x@example.org", Name: name}, "Invalid characters in name!")
		ExpectRefusal(s, olive, realm.ChangeSettings{Name: &name}, "Invalid characters in name!")
		ExpectRefusal(s, olive, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name}}},
			"Invalid character in channel name, at position 2.")
		ExpectRefusal(s, olive, realm.CreateGroup{Name: name}, "Invalid character in user group name, at position 2.")
		ExpectRefusal(s, olive, realm.CreateFolder{Name: name},
			"Invalid character in channel folder name, at position 2.")
		ExpectRefusal(s, olive, realm.ChangeOrganization{Name: &name}, "Invalid character in name, at position 2.")
	}
	hebrew := "שלום עולם" // written from right to left without controls
	Do(s, olive, realm.ChangeSettings{Name: &hebrew})
}
