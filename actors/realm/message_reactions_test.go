package realm_test

import (
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// Events of reactions have the name of the user that reacted, except for guests that are not allowed to see that user.
func TestReactionEventsHaveTheUsersName(t *testing.T) {
	s, owner, ann, _, guest := newLimitedGuestScene(t)
	realmtest.Do(s, ann, Subscribe{
		Channels: []ChannelToJoin{{Name: "shared"}}, Principals: []Principal{{ID: guest}}, AllOrNothing: true,
	})
	m := realmtest.Do(
		s,
		ann,
		SendMessage{ToChannel: true, ChannelName: "shared", Topic: "t", Body: Body{Text: "hi"}},
	).ID
	expect := func(names map[UserID]string) {
		t.Helper()
		for u, want := range names {
			var got []string
			for _, e := range s.ListEvents(u) {
				switch e := e.(type) {
				case *ReactionAdded:
					got = append(got, e.UserName)
				case *ReactionRemoved:
					got = append(got, e.UserName)
				}
			}
			if !slices.Equal(got, []string{want}) {
				t.Errorf("user %d: names %q, want %q", u, got, want)
			}
		}
	}
	for u, names := range map[UserID]map[UserID]string{
		ann:   {ann: "Ann", guest: "Ann"},
		owner: {ann: "Olive", guest: ""}, // the guest shares no channel with the owner
	} {
		realmtest.Do(s, u, AddReaction{Message: m, Name: "tada", NameCode: "1f389"})
		expect(names)
		realmtest.Do(s, u, RemoveReaction{Message: m, Name: "tada", NameCode: "1f389"})
		expect(names)
	}
}
