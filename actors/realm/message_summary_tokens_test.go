package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// A user at the bound is refused after a restart, and the next day begins at zero. Erasing a user removes the user's
// row, but not the tokens of the organization.
func TestTokensLastOverRestarts(t *testing.T) {
	s := New(t)
	s.Join("Olive", realm.Owner)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	reserve := func(n int64) realm.ReserveTokens {
		return realm.ReserveTokens{Tokens: n, PerUser: 100, PerOrganization: 150}
	}
	const user, all = "You have used up your summaries and translations of today.",
		"Your organization has used up its summaries and translations of today."
	got := Do(s, ann, reserve(90))
	got = Do(s, ann, realm.SettleTokens{Day: got.Day, Change: 5})
	if want := (realm.TokensOfDay{Day: StartTime / 86400, User: 95, Organization: 95}); got != want {
		t.Errorf("after a call: %+v, want %+v", got, want)
	}
	ExpectRefusal(s, ann, reserve(6), user)
	s.Restart()
	ExpectRefusal(s, ann, reserve(6), user)
	ExpectRefusal(s, bo, reserve(60), all)
	ExpectRefusal(s, bo, reserve(0), "Invalid number of tokens")
	ExpectRefusal(s, 0, reserve(1), "Not logged in: API authentication or user session required")

	Do(s, System, realm.EraseUser{User: ann})
	ExpectRefusal(s, ann, reserve(1), "Not logged in: API authentication or user session required")
	ExpectRefusal(s, bo, reserve(60), all)
	after := Do(s, ann, realm.SettleTokens{Day: got.Day, Change: 10}) // a call that began before the erasure
	if after.User != 0 || after.Organization != 105 {
		t.Errorf("after the erasure: %+v", after)
	}

	s.Advance(86400)
	if next := Do(s, bo, reserve(60)); next.User != 60 || next.Organization != 60 {
		t.Errorf("the next day: %+v", next)
	}
	Do(s, bo, realm.SettleTokens{Day: got.Day, Change: -1000}) // of the day before
	if next := Do(s, bo, reserve(1)); next.User != 61 || next.Organization != 61 {
		t.Errorf("after a settlement of the day before: %+v", next)
	}
	_, facts, _, err := realm.RunTurn(s.Realm, realm.Caller{User: bo}, realm.TurnEnv{Level: 4, Now: s.Now},
		func(t *realm.Turn) (any, error) { return reserve(1).Decide(t) })
	if !realm.IsBusy(err) || len(facts) != 0 {
		t.Errorf("below the level: %d facts, %v", len(facts), err)
	}
}
