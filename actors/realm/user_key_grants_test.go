package realm_test

import (
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// redeem asks for the secret of a granted key as the server does.
func redeem(s *testScene, user UserID, key int64) (RedeemedKey, error) {
	return realmtest.Try(s.Scene, realmtest.System, RedeemKey{User: user, Key: key})
}

// A granted key is of no use and in no list before it is redeemed. It is redeemed once: at the second attempt, the key
// that the first one has made is revoked.
func TestGrantedKeys(t *testing.T) {
	s := newTestScene(t)
	grant := GrantKey{App: "An app", Lifetime: 86400, Scope: &KeyScope{Rights: []string{RightRead}}}
	id := do(s, s.ann, grant)
	if l, err := s.ViewAs(s.ann).AdditionalKeys(s.ann); err != nil || len(l) != 0 {
		t.Errorf("a granted key is listed: %v %v", l, err)
	}
	refused(s, s.ann, RedeemKey{User: s.ann, Key: id}, "Insufficient permission")
	if _, err := redeem(s, s.bo, id); err == nil {
		t.Error("the key is redeemed for another user")
	}
	if _, err := redeem(s, s.ann, 0); err == nil {
		t.Error("key 0 is redeemed")
	}
	s.Advance(30)
	k, err := redeem(s, s.ann, id)
	if err != nil || k.Used || k.Secret == "" || k.Expires != s.Now+86400 || k.ID == id || !k.Scope.Has(RightRead) ||
		k.Scope.Has(RightSend) {
		t.Fatalf("the key is %+v, %v", k, err)
	}
	if l, _ := s.ViewAs(s.ann).AdditionalKeys(s.ann); len(l) != 1 || l[0].ID != k.ID || l[0].Label != "An app" {
		t.Errorf("the keys are %+v", l)
	}
	if again, err := redeem(s, s.ann, id); err != nil || !again.Used || again.Secret != "" {
		t.Errorf("redeemed again: %+v %v", again, err)
	}
	if l, _ := s.ViewAs(s.ann).AdditionalKeys(s.ann); len(l) != 0 {
		t.Errorf("after the second attempt the keys are %+v", l)
	}

	late := do(s, s.ann, grant)
	s.Advance(GrantTime)
	if _, err := redeem(s, s.ann, late); err == nil {
		t.Error("a granted key is redeemed too late")
	}
	gone := do(s, s.ann, grant)
	do(s, s.ann, RevokeKey{User: s.ann, Key: gone})
	if _, err := redeem(s, s.ann, gone); err == nil {
		t.Error("a revoked key is redeemed")
	}
	for range MaxAdditionalKeys {
		do(s, s.ann, grant)
	}
	refused(s, s.ann, grant, "The account has 20 additional API keys, which is the limit.")
}
