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

// TestUnsubscribeInTurns: a crowd leaves two channels, some in each turn, and the answer says of each channel whether
// anybody left it.
func TestUnsubscribeInTurns(t *testing.T) {
	s := newStage(t)
	var crowd []UserID
	for i := range 90 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	do(s, s.ann, Subscribe{Channels: joining("crowd"), Principals: people(crowd...), Fatal: true})
	do(s, s.ann, Subscribe{Channels: joining("few"), Principals: people(crowd[80:]...), Fatal: true})
	do(s, s.ann, Subscribe{Channels: joining("none"), Principals: people(s.ann), Fatal: true})
	c := Unsubscribe{Names: []string{"crowd", "few", "none"}, Principals: people(append(slices.Clone(crowd), 9999)...), AtOnce: 60}
	refused(s, s.ann, c, "No such user")
	c.Principals = people(crowd...)
	refused(s, s.bo, c, "Insufficient permission")
	id := s.Realm.FindChannelByName("crowd").ID
	a := do(s, s.ann, c)
	turns := 1
	for ; a.Rest != nil; turns++ {
		if n := s.Realm.SubscriberCount(id); n != 90-20*turns {
			t.Fatalf("after %d turns %d are left", turns, n)
		}
		a.Add(do(s, s.ann, *a.Rest))
	}
	if n := s.Realm.SubscriberCount(id); n != 0 || turns != 5 || !slices.Equal(a.Removed, []string{"crowd", "few"}) || !slices.Equal(a.NotRemoved, []string{"none"}) {
		t.Errorf("after %d turns %d are left, removed %v, not removed %v", turns, n, a.Removed, a.NotRemoved)
	}
}

// TestCreateInTurns: a new channel's crowd joins some in each turn; what begins the channel comes with the last one.
func TestCreateInTurns(t *testing.T) {
	s := newStage(t)
	var crowd []UserID
	for i := range 130 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	made := do(s, s.ann, CreateChannel{New: NewChannel{Name: "crowd"}, Subscribers: people(crowd...), AtOnce: 50})
	if n := s.Realm.SubscriberCount(made.ID); n != 50 || made.Rest == nil {
		t.Fatalf("the first turn joins %d and leaves %+v", n, made.Rest)
	}
	for rest := made.Rest; rest != nil; {
		rest = do(s, s.ann, *rest).Rest
	}
	if n := s.Realm.SubscriberCount(made.ID); n != len(crowd) {
		t.Errorf("%d of %d joined", n, len(crowd))
	}
}

// TestTooManySubscriptionsAreRefused: what one request makes or ends is bounded by users times channels.
func TestTooManySubscriptionsAreRefused(t *testing.T) {
	s := newStage(t)
	var names []string
	for i := range 1000 {
		names = append(names, "channel "+string(rune('a'+i)))
	}
	many := people(slices.Repeat([]UserID{s.bo}, MaxSubscriptionsAsked/1000+1)...)
	refused(s, s.ann, Subscribe{Channels: joining(names...), Principals: many}, "Too many subscriptions in one request (limit: 200000)")
	refused(s, s.ann, Unsubscribe{Names: names, Principals: many}, "Too many subscriptions in one request (limit: 200000)")
}
