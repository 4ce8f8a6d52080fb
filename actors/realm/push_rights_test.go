package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// The bouncer's answers decide realm_push_notifications_enabled. Every client gets both values when one changes.
func TestPushRightsReachClients(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	ExpectRefusal(s, ann, realm.SetPushRights{Allowed: true}, "Insufficient permission")
	ExpectRefusal(s, ann, realm.MakePushSecret{}, "Insufficient permission")
	secret := Do(s, System, realm.MakePushSecret{})
	if again := Do(s, System, realm.MakePushSecret{}); again != secret || !strings.HasPrefix(secret, "zuliprealm_") {
		t.Errorf("secrets %q and %q", secret, again)
	}
	Do(s, System, realm.SetPushRights{Allowed: true, End: 1_900_000_000})
	s.ExpectEvents(ann, "realm", "realm")
	Do(s, System, realm.SetPushRights{Allowed: true, End: 1_900_000_000})
	s.ExpectNoEvents(ann)
	Do(s, System, realm.SetPushRights{Reason: "Missing data"})
	s.ExpectEvents(ann, "realm", "realm")
	Do(s, System, realm.SetPushRights{}) // an answer without the reason
	s.ExpectNoEvents(ann)
	want := realm.PushState{Answered: true, Reason: "Missing data", Secret: secret}
	if got := s.Realm.PushState(); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}

// The bouncer keeps devices by these UUIDs for years. They must never change.
func TestPushUserUUID(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	x, y := s.Realm.PushUserUUID(ann), s.Realm.PushUserUUID(bo)
	if x == y || len(x) != 36 || x[14] != '4' || !strings.Contains("89ab", x[19:20]) {
		t.Errorf("UUIDs %s and %s", x, y)
	}
	if again := s.Realm.PushUserUUID(ann); again != x {
		t.Errorf("UUID %s, then %s", x, again)
	}
}
