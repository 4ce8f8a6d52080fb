package realm_test

import (
	"slices"
	"strings"
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

// keyLabels returns the labels of an account's additional keys.
func keyLabels(s *Scene, u realm.UserID) (out []string) {
	for _, k := range s.Realm.Find(u).KeyInfo {
		out = append(out, k.Label)
	}
	return out
}

// An account has several additional keys. Each is valid until it is revoked, expires, or the account's keys end.
func TestAdditionalKeys(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	as := func(k realm.NewKey) error {
		return s.Realm.CheckCredentials(realm.Caller{User: ann, Key: k.Hash}, s.Now)
	}
	lasting := Do(s, ann, realm.AddKey{User: ann, Label: " script "})
	short := Do(s, ann, realm.AddKey{User: ann, Label: "short", Lifetime: 100})
	if lasting.Secret == short.Secret || lasting.Expires != 0 || short.Expires != s.Now+100 || lasting.ID == short.ID {
		t.Errorf("keys: %+v, %+v", lasting, short)
	}
	list, err := s.ViewAs(ann).AdditionalKeys(ann)
	if err != nil || len(list) != 2 || list[0].Label != "script" || list[0].Hash != [32]byte{} || list[0].Used != 0 {
		t.Errorf("list: %+v, %v", list, err)
	}
	s.Advance(99)
	if as(lasting) != nil || as(short) != nil {
		t.Error("a valid key is refused")
	}
	s.Advance(1)
	if as(lasting) != nil || as(short) == nil {
		t.Error("an expired key is accepted, or one that does not expire is refused")
	}
	for range 2 { // one fact per day
		Do(s, System, realm.Command[any](realm.RecordKeyUse{User: ann, Hash: lasting.Hash}))
	}
	if list, _ = s.ViewAs(ann).AdditionalKeys(ann); list[0].Used != s.Now-s.Now%86400 {
		t.Errorf("the last use is %d", list[0].Used)
	}
	third := Do(s, ann, realm.AddKey{User: ann, Label: "third"})
	if got := keyLabels(s, ann); !slices.Equal(got, []string{"script", "third"}) {
		t.Errorf("a new key does not replace expired ones: %v", got)
	}
	Do(s, ann, realm.RevokeKey{User: ann, Key: lasting.ID})
	ExpectRefusal(s, ann, realm.RevokeKey{User: ann, Key: lasting.ID}, "API key does not exist")
	if as(lasting) == nil || as(third) != nil {
		t.Error("revoking a key has ended another one, or not this one")
	}
	s.ExpectNoEvents(ann)
	s.Restart()
	if as(lasting) == nil || as(third) != nil {
		t.Error("a restart changed the keys")
	}
}

// A new password, a new classic key and a deactivation end all additional keys, unless a new password keeps them.
func TestAdditionalKeysEndWithTheAccountsKeys(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	hash := "$argon2id$"
	for name, end := range map[string]func(){
		"password": func() { Do(s, ann, realm.ChangeSettings{Password: &hash}) },
		"operator": func() { Do(s, System, realm.SetPassword{User: ann, Hash: hash}) },
		"classic":  func() { Do(s, ann, realm.IssueAPIKey{User: ann, Only: true}) },
		"deactivation": func() {
			Do(s, olive, realm.DeactivateUser{User: ann})
			Do(s, olive, realm.ReactivateUser{User: ann})
		},
	} {
		k := Do(s, ann, realm.AddKey{User: ann, Label: "script"})
		Do(s, ann, realm.ChangeSettings{Password: &hash, KeepKeys: true})
		Do(s, ann, realm.IssueAPIKey{User: ann})
		caller := realm.Caller{User: ann, Key: k.Hash}
		if err := s.Realm.CheckCredentials(caller, s.Now); err != nil {
			t.Errorf("%s: a kept key is refused: %v", name, err)
		}
		end()
		if err := s.Realm.CheckCredentials(caller, s.Now); err == nil || len(keyLabels(s, ann)) != 0 {
			t.Errorf("%s: the key is still valid", name)
		}
	}
}

// Keys of other accounts are managed by rank, and only keys of bots can be added by others. An additional key makes no
// keys. The length of keys is limited.
func TestAdditionalKeysByRank(t *testing.T) {
	s := New(t)
	olive, ada, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Bot", ann)
	id := Do(s, ann, realm.AddKey{User: ann, Label: "mine"}).ID
	botKey := Do(s, ann, realm.AddKey{User: bot, Label: "the bot's"}).ID
	owners := Do(s, olive, realm.AddKey{User: olive, Label: "owner's"}).ID
	ExpectRefusal(s, bo, realm.RevokeKey{User: ann, Key: id}, "Insufficient permission")
	ExpectRefusal(s, bo, realm.RevokeKey{User: bot, Key: botKey}, "Insufficient permission")
	ExpectRefusal(s, bo, realm.RevokeKey{User: bo, Key: id}, "API key does not exist")
	ExpectRefusal(s, ada, realm.RevokeKey{User: olive, Key: owners}, "Must be an organization owner")
	ExpectRefusal(s, ada, realm.AddKey{User: ann, Label: "x"}, "Insufficient permission")
	ExpectRefusal(s, bo, realm.AddKey{User: bot, Label: "x"}, "Insufficient permission")
	ExpectRefusal(s, ann, realm.AddKey{User: 99, Label: "x"}, "No such user")
	if _, err := s.ViewAs(bo).AdditionalKeys(ann); err == nil {
		t.Error("a member lists the keys of another one")
	}
	for _, c := range []realm.RevokeKey{{ann, id}, {bot, botKey}} {
		if list, err := s.ViewAs(ada).AdditionalKeys(c.User); err != nil || len(list) != 1 {
			t.Errorf("an administrator lists %v, %v", list, err)
		}
		Do(s, ada, c)
	}
	ExpectRefusal(s, ann, realm.AddKey{User: ann, Label: " "}, "An API key needs a label.")
	ExpectRefusal(
		s,
		ann,
		realm.AddKey{User: ann, Label: strings.Repeat("x", 61)},
		"The label is too long (limit: 60 characters)",
	)
	ExpectRefusal(s, ann, realm.AddKey{User: ann, Label: "a\u202eb"}, "Invalid characters in the label.")
	for _, lifetime := range []int64{-1, 59, realm.MaxKeyLifetime + 1} {
		ExpectRefusal(s, ann, realm.AddKey{User: ann, Label: "x", Lifetime: lifetime},
			"The lifetime of an API key must be between 60 and 316224000 seconds.")
	}
	for range realm.MaxAdditionalKeys {
		Do(s, ann, realm.AddKey{User: ann, Label: "x", Lifetime: 60})
	}
	ExpectRefusal(
		s,
		ann,
		realm.AddKey{User: ann, Label: "x"},
		"The account has 20 additional API keys, which is the limit.",
	)
	s.Advance(60)
	k := Do(s, ann, realm.AddKey{User: ann, Label: "x"})
	withKey := func(decide func(*realm.Turn) error) error {
		_, err := RunTurn(s, ann, func(t *realm.Turn) (any, error) {
			t.Key = k.Hash
			return nil, decide(t)
		})
		return err
	}
	for name, decide := range map[string]func(*realm.Turn) error{
		"add": func(t *realm.Turn) error { _, err := realm.AddKey{User: ann, Label: "y"}.Decide(t); return err },
		"regenerate": func(t *realm.Turn) error {
			_, err := realm.IssueAPIKey{User: ann, Only: true}.Decide(t)
			return err
		},
	} {
		if err := withKey(decide); err == nil ||
			err.Error() != "An additional API key cannot create API keys of its account." {
			t.Errorf("%s under an additional key: %v", name, err)
		}
	}
}
