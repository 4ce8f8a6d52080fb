package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// Each code of a second factor works once, a later one never before an earlier one, and recovery codes once each.
func TestFactorCodesWorkOnce(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	one, two := [32]byte{1}, [32]byte{2}
	ExpectRefusal(s, System, realm.UseFactor{User: ann, Step: 1}, "AUTHENTICATION_FAILED")
	Do(s, System, realm.SetFactor{User: ann, Factor: realm.Factor{Secret: "sealed", Step: 100,
		Recovery: [][32]byte{one, two}}})
	for _, step := range []int64{0, 99, 100} {
		ExpectRefusal(s, System, realm.UseFactor{User: ann, Step: step}, "AUTHENTICATION_FAILED")
	}
	Do(s, System, realm.UseFactor{User: ann, Step: 101})
	ExpectRefusal(s, System, realm.UseFactor{User: ann, Step: 101}, "AUTHENTICATION_FAILED")
	Do(s, System, realm.UseFactor{User: ann, Recovery: two})
	ExpectRefusal(s, System, realm.UseFactor{User: ann, Recovery: two}, "AUTHENTICATION_FAILED")
	ExpectRefusal(s, System, realm.UseFactor{User: ann, Recovery: [32]byte{3}}, "AUTHENTICATION_FAILED")
	Do(s, System, realm.UseFactor{User: ann, Recovery: one})
	if f := s.Realm.FactorOf(ann); len(f.Recovery) != 0 || f.Step != 101 {
		t.Errorf("the factor is %+v", f)
	}
}

// Only the server sets and uses a factor. Administrators reset that of users that do not outrank them, and the user is
// told; no user resets their own with a session.
func TestFactorRights(t *testing.T) {
	s := New(t)
	olive, ada, mo := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Mo", realm.Moderator)
	ann, gus := s.Join("Ann"), s.Join("Gus", realm.Guest)
	bot := s.JoinBot("Robot", ann)
	f := realm.Factor{Secret: "sealed", Recovery: [][32]byte{{1}}}
	for _, who := range []realm.UserID{olive, ann} {
		if _, err := Try(s, who, realm.SetFactor{User: ann, Factor: f}); err == nil {
			t.Errorf("user %d sets a factor", who)
		}
		if _, err := Try(s, who, realm.UseFactor{User: ann, Recovery: [32]byte{1}}); err == nil {
			t.Errorf("user %d uses a factor", who)
		}
	}
	for _, x := range []realm.SetFactor{{User: bot, Factor: f}, {User: 999, Factor: f}, {User: ann},
		{User: ann, Factor: realm.Factor{Secret: "s", Recovery: make([][32]byte, realm.MaxRecoveryCodes+1)}}} {
		if _, err := Try(s, System, x); err == nil {
			t.Errorf("%+v is not refused", x)
		}
	}
	for _, x := range []struct {
		by, of realm.UserID
		ok     bool
	}{{olive, ann, true}, {ada, ann, true}, {mo, ann, false}, {gus, ann, false}, {ann, ann, false}, {ada, olive, false},
		{olive, olive, false}, {olive, ada, true}, {System, olive, true}} {
		if s.Realm.FactorOf(x.of) == nil {
			Do(s, System, realm.SetFactor{User: x.of, Factor: f})
		}
		ExpectRefusal(s, System, realm.SetFactor{User: x.of, Factor: f}, "BAD_REQUEST")
		queue := s.OpenQueue(x.of)
		_, err := Try(s, x.by, realm.RemoveFactor{User: x.of})
		if (err == nil) != x.ok || (s.Realm.FactorOf(x.of) == nil) != x.ok {
			t.Errorf("%d removes the factor of %d: %v", x.by, x.of, err)
		}
		if told := len(s.ListEvents(x.of)) > 0; x.ok && !told {
			t.Errorf("user %d was not told; queue %s", x.of, queue)
		}
	}
	Do(s, olive, realm.RemoveFactor{User: ann})
	if _, err := Try(s, olive, realm.RemoveFactor{User: ann}); err == nil {
		t.Error("a factor that does not exist is removed")
	}
}
