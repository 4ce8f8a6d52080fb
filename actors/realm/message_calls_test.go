package realm_test

import (
	"slices"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func startCall(channel realm.ChannelID, topic, key string, people ...realm.UserID) realm.StartCall {
	c := realm.StartCall{Key: key, Send: realm.SendMessage{Body: realm.Body{Text: key, HTML: key},
		ToChannel: channel != 0, Channel: channel, Topic: topic}}
	for _, u := range people {
		c.Send.People = append(c.Send.People, realm.Principal{ID: u})
	}
	return c
}

func mayJoin(s *Scene, u realm.UserID, key string) bool {
	_, _, err := s.ViewAs(u).JoinableCall(key)
	return err == nil
}

// A call can be joined by the users that see its conversation at that moment: in a channel the subscribers, in a direct
// conversation its people. A call has one message, and a second start in the conversation joins the first call.
func TestCallsInChannels(t *testing.T) {
	s := New(t)
	owner, ann, bo, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	bot := s.JoinBot("Robot", ann)
	c := Do(s, ann, realm.CreateChannel{New: realm.NewChannel{Name: "crew", Private: true},
		Subscribers: []realm.Principal{{ID: ann}, {ID: gus}}}).ID
	expectRefused(s, bo, startCall(c, "x", "k0"), "does not exist")
	expectRefused(s, gus, startCall(c, "x", "k0"), "Insufficient permission")
	expectRefused(s, bot, startCall(c, "x", "k0"), "does not accept bot requests")
	call := Do(s, ann, startCall(c, "x", "k1"))
	if again := Do(s, ann, startCall(c, "X", "k2")); again.ID != call.ID || again.Key != "k1" {
		t.Errorf("a second call in the topic: %+v", again)
	}
	for u, want := range map[realm.UserID]bool{ann: true, gus: true, bo: false, owner: false, bot: false, 0: false} {
		if mayJoin(s, u, "k1") != want {
			t.Errorf("user %d may join: %v", u, !want)
		}
	}
	if mayJoin(s, ann, "k2") || mayJoin(s, ann, "") {
		t.Error("a call with another key exists")
	}
	expectRefused(s, ann, realm.SetCallPeople{ID: call.ID}, "The call has ended")
	Do(s, System, realm.SetCallPeople{ID: call.ID, Present: []realm.UserID{gus, ann, gus}})
	if x, _, _ := s.ViewAs(ann).JoinableCall("k1"); !slices.Equal(x.Present, []realm.UserID{ann, gus}) {
		t.Errorf("in the call: %v", x.Present)
	}
	Do(s, ann, realm.Unsubscribe{Names: []string{"crew"}, Principals: []realm.Principal{{ID: gus}}})
	if mayJoin(s, gus, "k1") || s.ViewAs(System).MayBeInCall(gus, "k1") {
		t.Error("a user who left the channel may be in the call")
	}
	Do(s, owner, realm.DeactivateUser{User: ann})
	if s.ViewAs(System).MayBeInCall(ann, "k1") {
		t.Error("a deactivated user may be in the call")
	}
	s.Restart()
	if len(s.ViewAs(System).Calls()) != 1 || s.ViewAs(owner).Calls() != nil {
		t.Error("the call is lost, or shown to a user")
	}
}

// In a direct conversation the clients of the others ring until one of them joins, or the call ends without people.
func TestCallsRing(t *testing.T) {
	s := New(t)
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	for _, u := range []realm.UserID{ann, bo, cy} {
		s.OpenQueue(u)
	}
	Do(s, cy, realm.MuteUser{User: ann})
	rings := func(u realm.UserID) (out []bool) {
		for _, e := range ListEventsOf[*realm.CallRinging](s, u) {
			out = append(out, !e.Stop)
		}
		return out
	}
	call := Do(s, ann, startCall(0, "", "k1", bo, cy))
	for u, want := range map[realm.UserID][]bool{ann: nil, bo: {true}, cy: nil} {
		if got := rings(u); !slices.Equal(got, want) {
			t.Errorf("user %d: rings %v, want %v", u, got, want)
		}
	}
	set := func(present ...realm.UserID) bool {
		return Do(s, System, realm.SetCallPeople{ID: call.ID, Present: present})
	}
	set(ann)
	if got := rings(bo); len(got) != 0 {
		t.Errorf("Bo's client got %v when the caller came", got)
	}
	set(ann, bo)
	if got := rings(bo); !slices.Equal(got, []bool{false}) {
		t.Errorf("Bo's client got %v when Bo joined", got)
	}
	set()
	s.Advance(realm.EmptyCallSeconds - 1)
	if Do(s, System, realm.SetCallPeople{ID: call.ID, Unknown: true}) || set() {
		t.Error("the call ended too early")
	}
	s.Advance(1)
	if Do(s, System, realm.SetCallPeople{ID: call.ID, Unknown: true}) {
		t.Error("the call ended while LiveKit did not answer")
	}
	if !set() || mayJoin(s, ann, "k1") {
		t.Error("the call did not end")
	}
	if next := Do(s, ann, startCall(0, "", "k3", cy, bo)); next.Key != "k3" {
		t.Errorf("the next call: %+v", next)
	}
	Do(s, ann, startCall(0, "", "k4", bo))
	Do(s, ann, startCall(0, "", "k5", cy))
	expectRefused(s, ann, startCall(0, "", "k6", ann), "Too many calls")
	s.Advance(realm.MaxCallSeconds)
	for _, x := range s.ViewAs(System).Calls() {
		if !Do(s, System, realm.SetCallPeople{ID: x.ID, Unknown: true}) {
			t.Errorf("call %s has no end", x.Key)
		}
	}
}
