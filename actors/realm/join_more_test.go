package realm_test

import (
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// TestSubscribeInTurns: a crowd joins a private channel its creator is not in, some in each turn. All is refused or
// allowed at first; who was let in hears of those after him; whose account is closed meanwhile is left out.
func TestSubscribeInTurns(t *testing.T) {
	s := newStage(t)
	var crowd []UserID
	for i := range 130 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	c := Subscribe{Channels: joining("crowd"), New: NewChannel{Private: true}, Fatal: true, AtOnce: 50}
	c.Principals = people(append(slices.Clone(crowd), 9999)...)
	refused(s, s.ann, c, "No such user")
	if s.Realm.FindChannelByName("crowd") != nil {
		t.Fatal("a refused request created the channel")
	}
	c.Principals = people(crowd...)
	s.HearsNothing(crowd...)
	a := do(s, s.ann, c)
	id := a.Created[0]
	if n := s.Realm.SubscriberCount(id); n != 50 || len(a.Subscribed) != 50 || a.Rest == nil {
		t.Fatalf("the first turn joins %d, answers %d, and leaves %+v", n, len(a.Subscribed), a.Rest)
	}
	if e := realmtest.HeardOf[*SubscriptionAdded](s.Scene, crowd[49]); len(e) != 1 || !slices.Equal(e[0].For(crowd[49]).Members, crowd[:50]) {
		t.Errorf("the last of the first hears %+v", e)
	}
	s.Heard(crowd[0])
	s.HearsNothing(crowd[50:]...)
	realmtest.Turn(s.Scene, realmtest.System, done(func(t *Turn) { t.Record(&UserChanged{ID: crowd[129], Active: ptr(false)}) }))
	s.Heard(crowd[0])
	a.Add(do(s, s.ann, *a.Rest))
	if e := realmtest.HeardOf[*PeersChanged](s.Scene, crowd[0]); len(e) != 1 || !e[0].Joined || !slices.Equal(e[0].Users, crowd[50:100]) {
		t.Errorf("the first hears of the next %+v", e)
	}
	if e := realmtest.HeardOf[*SubscriptionAdded](s.Scene, crowd[50]); len(e) != 1 || !slices.Equal(e[0].For(crowd[50]).Members, crowd[:100]) {
		t.Errorf("the next hears %+v", e)
	}
	a.Add(do(s, s.ann, *a.Rest))
	if n := s.Realm.SubscriberCount(id); n != 129 || len(a.Subscribed) != 129 || len(a.Already) != 0 || a.Rest != nil {
		t.Errorf("%d joined, %d answered, left %+v", n, len(a.Subscribed), a.Rest)
	}
}
