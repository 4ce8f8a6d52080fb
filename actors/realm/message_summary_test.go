package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// Owners agree to summaries and translations; until then, and without the permission, users get none. Programs of an
// older level do not know the setting, so it cannot be changed below its level.
func TestAssistantPermissions(t *testing.T) {
	s := New(t)
	olive, ada, gus := s.Join("Olive", realm.Owner), s.Join("Ada", realm.Administrator), s.Join("Gus", realm.Guest)
	agree := realm.ChangeOrganization{Values: []realm.SettingValue{{Name: realm.AssistantSetting, Value: true}}}
	check := func(who realm.UserID, summary, translation string) {
		t.Helper()
		v := realm.View{Realm: s.Realm, Caller: realm.Caller{User: who}}
		for _, x := range []struct {
			err  error
			want string
		}{{v.MaySummarize(), summary}, {v.MayTranslate(), translation}} {
			if x.err == nil && x.want != "" || x.err != nil && x.err.Error() != x.want {
				t.Errorf("user %d: %v, want %q", who, x.err, x.want)
			}
		}
	}
	const off = "Your organization does not allow summaries and translations."
	check(olive, off, off)
	_, facts, _, err := realm.RunTurn(s.Realm, realm.Caller{User: olive}, realm.TurnEnv{Level: 4, Now: s.Now},
		func(t *realm.Turn) (any, error) { return agree.Decide(t) })
	if !realm.IsBusy(err) || len(facts) != 0 {
		t.Errorf("below the level: %d facts, %v", len(facts), err)
	}
	ExpectRefusal(s, ada, agree, "Must be an organization owner")
	Do(s, olive, agree)
	check(gus, "", "")
	members := realm.GroupChange{Name: "can_summarize_topics_group",
		New: realm.GroupValue{Group: s.Realm.SystemGroup("role:members")}}
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{members}})
	check(ada, "", "")
	check(gus, "Insufficient permission", "")
	const visitor = "Not logged in: API authentication or user session required"
	check(0, visitor, visitor)
}
