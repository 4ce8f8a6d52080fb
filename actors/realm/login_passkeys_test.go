package realm_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func passkey(id, name string) realm.Passkey {
	return realm.Passkey{ID: []byte(id), Key: []byte("key"), Name: name, Asked: 10}
}

// Each answer of a passkey works once, none after a later one, and never one whose device has counted less.
func TestPasskeyAnswersWorkOnce(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	Do(s, System, realm.AddPasskey{User: ann, Passkey: passkey("a", "  My   phone "), Recovery: [][32]byte{{1}}})
	for _, x := range []struct {
		use realm.UsePasskey
		ok  bool
	}{
		{realm.UsePasskey{Asked: 10}, false}, // that of the registration
		{realm.UsePasskey{Asked: 9}, false},
		{realm.UsePasskey{Asked: 20}, true},
		{realm.UsePasskey{Asked: 20}, false},
		{realm.UsePasskey{Asked: 30, Count: 7}, true},
		{realm.UsePasskey{Asked: 40, Count: 7}, false},
		{realm.UsePasskey{Asked: 40, Count: 6}, false},
		{realm.UsePasskey{Asked: 40}, false},
		{realm.UsePasskey{Asked: 40, Count: 8}, true},
	} {
		x.use.User, x.use.ID = ann, []byte("a")
		if _, err := Try(s, System, x.use); (err == nil) != x.ok {
			t.Errorf("%+v: %v", x.use, err)
		}
	}
	ExpectRefusal(s, System, realm.UsePasskey{User: ann, ID: []byte("b"), Asked: 90}, "AUTHENTICATION_FAILED")
	if p := s.Realm.PasskeysOf(ann)[0]; p.Name != "My phone" || p.Asked != 40 || p.Count != 8 || p.Used != s.Now {
		t.Errorf("the passkey: %+v", p)
	}
}

// A passkey is a second factor: recovery codes come with the first factor and end with the last one.
func TestPasskeysAndRecoveryCodes(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	one, two, three := [][32]byte{{1}}, [][32]byte{{2}}, [][32]byte{{3}}
	app := realm.Factor{Secret: "sealed", Recovery: three}
	codes := func(want ...byte) {
		t.Helper()
		f := s.Realm.FactorOf(ann)
		if (f == nil) != (len(want) == 0) || f != nil && (len(f.Recovery) != len(want) || f.Recovery[0][0] != want[0]) {
			t.Errorf("the factor is %+v, want codes %v", f, want)
		}
	}
	if s.Realm.HasFactor(ann) || s.Realm.HasPasskeys() {
		t.Error("there is a second factor")
	}
	if !Do(s, System, realm.AddPasskey{User: ann, Passkey: passkey("a", "a"), Recovery: one}) {
		t.Error("the first codes are not stored")
	}
	if Do(s, System, realm.AddPasskey{User: ann, Passkey: passkey("b", "b"), Recovery: two}) {
		t.Error("the codes of a second passkey replace the first ones")
	}
	codes(1)
	ExpectRefusal(s, System, realm.UseFactor{User: ann, Step: 1 << 40}, "AUTHENTICATION_FAILED") // there is no app
	Do(s, System, realm.SetFactor{User: ann, Factor: app})
	codes(3)
	Do(s, System, realm.RemoveFactorApp{User: ann})
	codes(3)
	ExpectRefusal(s, System, realm.RemoveFactorApp{User: ann}, "BAD_REQUEST")
	Do(s, System, realm.SetFactor{User: ann, Factor: app})
	Do(s, System, realm.RemovePasskey{User: ann, ID: []byte("a")})
	Do(s, System, realm.RemovePasskey{User: ann, ID: []byte("b")})
	codes(3)
	if !s.Realm.HasFactor(ann) || s.Realm.HasPasskeys() {
		t.Error("the app has ended with the passkeys")
	}
	Do(s, System, realm.RemoveFactorApp{User: ann})
	codes()
	Do(s, System, realm.AddPasskey{User: ann, Passkey: passkey("a", "a"), Recovery: one})
	Do(s, System, realm.UseFactor{User: ann, Recovery: [32]byte{1}})
	Do(s, System, realm.RemovePasskey{User: ann, ID: []byte("a")})
	codes()
	if s.Realm.HasFactor(ann) {
		t.Error("there is a second factor")
	}
}

// Only the server changes passkeys. Administrators remove all factors of users that do not outrank them.
func TestPasskeyRights(t *testing.T) {
	s := New(t)
	olive, ada, ann := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Ann")
	bot := s.JoinBot("Robot", ann)
	key := []byte("a")
	for _, who := range []realm.UserID{olive, ada, ann} {
		ExpectRefusal(s, who, realm.AddPasskey{User: ann, Passkey: passkey("a", "a")}, "Insufficient permission")
		ExpectRefusal(s, who, realm.UsePasskey{User: ann, ID: key, Asked: 99}, "Insufficient permission")
		ExpectRefusal(s, who, realm.RenamePasskey{User: ann, ID: key, Name: "x"}, "Insufficient permission")
		ExpectRefusal(s, who, realm.RemovePasskey{User: ann, ID: key}, "Insufficient permission")
		ExpectRefusal(s, who, realm.RemoveFactorApp{User: ann}, "Insufficient permission")
	}
	long := strings.Repeat("x", 61)
	bad := func(change func(*realm.AddPasskey)) realm.AddPasskey {
		c := realm.AddPasskey{User: ann, Passkey: passkey("new", "new")}
		change(&c)
		return c
	}
	for i, c := range []realm.AddPasskey{
		bad(func(c *realm.AddPasskey) { c.User = bot }),
		bad(func(c *realm.AddPasskey) { c.User = 999 }),
		bad(func(c *realm.AddPasskey) { c.Passkey.Name = " " }),
		bad(func(c *realm.AddPasskey) { c.Passkey.Name = long }),
		bad(func(c *realm.AddPasskey) { c.Passkey.Name = "\xff" }),
		bad(func(c *realm.AddPasskey) { c.Passkey.ID = nil }),
		bad(func(c *realm.AddPasskey) { c.Passkey.ID = make([]byte, 1024) }),
		bad(func(c *realm.AddPasskey) { c.Passkey.Key = nil }),
		bad(func(c *realm.AddPasskey) { c.Passkey.Key = make([]byte, 1025) }),
		bad(func(c *realm.AddPasskey) { c.Recovery = make([][32]byte, realm.MaxRecoveryCodes+1) }),
	} {
		if _, err := Try(s, System, c); err == nil {
			t.Errorf("passkey %d is not refused", i)
		}
	}
	for i := range realm.MaxPasskeys {
		Do(s, System, realm.AddPasskey{User: ann, Passkey: passkey(fmt.Sprint("k", i), "phone")})
	}
	ExpectRefusal(s, System, realm.AddPasskey{User: ann, Passkey: passkey("more", "more")}, "BAD_REQUEST")
	Do(s, System, realm.RemovePasskey{User: ann, ID: []byte("k3")})
	ExpectRefusal(s, System, realm.AddPasskey{User: ann, Passkey: passkey("k4", "again")}, "BAD_REQUEST")
	Do(s, System, realm.RenamePasskey{User: ann, ID: []byte("k4"), Name: "tablet"})
	ExpectRefusal(s, System, realm.RenamePasskey{User: ann, ID: []byte("k4"), Name: long}, "BAD_REQUEST")
	ExpectRefusal(s, System, realm.RenamePasskey{User: ann, ID: []byte("k3"), Name: "x"}, "BAD_REQUEST")
	ExpectRefusal(s, System, realm.RemovePasskey{User: ann, ID: []byte("k3")}, "BAD_REQUEST")
	if p := s.Realm.PasskeysOf(ann)[3]; p.Name != "tablet" || string(p.ID) != "k4" {
		t.Errorf("the fourth passkey: %+v", p)
	}
	ExpectRefusal(s, ann, realm.RemoveFactor{User: ann}, "Insufficient permission")
	Do(s, ada, realm.RemoveFactor{User: ann})
	if s.Realm.HasFactor(ann) || s.Realm.HasPasskeys() {
		t.Error("the reset leaves a second factor")
	}
	Do(s, System, realm.AddPasskey{User: olive, Passkey: passkey("o", "o"), Recovery: [][32]byte{{1}}})
	if _, err := Try(s, ada, realm.RemoveFactor{User: olive}); err == nil || !s.Realm.HasFactor(olive) {
		t.Errorf("an administrator removes the passkey of an owner: %v", err)
	}
	Do(s, System, realm.DeactivateUser{User: ann})
	ExpectRefusal(s, System, realm.AddPasskey{User: ann, Passkey: passkey("a", "a")}, "BAD_REQUEST")
}
