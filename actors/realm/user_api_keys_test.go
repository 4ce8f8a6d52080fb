package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// A new password revokes every API key and every push device of the account, unless the keys are to be kept.
func TestPasswordChangeRevokesKeys(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	keys := func(u realm.UserID) int { return len(s.Realm.Find(u).Keys) }
	setUp := func() (first [32]byte) {
		for _, u := range []realm.UserID{ann, bo} {
			Do(s, u, realm.IssueAPIKey{User: u})
			Do(s, u, realm.IssueAPIKey{User: u, Key: "set by the operator"})
		}
		return s.Realm.Find(ann).Keys[0]
	}
	hash := "$argon2id$"
	for what, change := range map[string]func(keep bool) string{
		"by the user": func(keep bool) string {
			return Do(s, ann, realm.ChangeSettings{Password: &hash, KeepKeys: keep}).Key
		},
		"by the operator": func(keep bool) string {
			Do(s, System, realm.SetPassword{User: ann, Hash: hash, KeepKeys: keep})
			return ""
		},
	} {
		before := setUp()
		count, others := keys(ann), keys(bo)
		if key := change(true); key != "" || keys(ann) != count || s.Realm.Find(ann).Keys[0] != before {
			t.Errorf("%s: keys were to be kept: %d of %d, and %q", what, keys(ann), count, key)
		}
		key := change(false)
		if (key != "") != (what == "by the user") || keys(ann) != 1 || s.Realm.Find(ann).Keys[0] == before {
			t.Errorf("%s: %d keys after the change, and %q", what, keys(ann), key)
		}
		if keys(bo) != others {
			t.Errorf("%s: another account has %d keys instead of %d", what, keys(bo), others)
		}
	}
	Do(s, ann, realm.ChangeSettings{})
	if keys(ann) != 1 {
		t.Error("a change without a password touched the keys")
	}
}
