package realm_test

import (
	"fmt"
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// Each channel without messages becomes inactive exactly once, although one turn handles only some of them.
func TestQuietChannelsPerTurn(t *testing.T) {
	s := newTestScene(t)
	var names []string
	for i := range 25 {
		names = append(names, fmt.Sprint("still ", i))
	}
	do(s, s.ann, Subscribe{Channels: channelsToJoin(names...)})
	s.Advance(100 * 86400)
	s.post(s.ann, s.public, "t", "not quiet")
	s.Advance(81 * 86400)
	var inactive, want []ChannelID
	turns := 0
	for s.Realm.Due(s.Now) != nil {
		s.runDue()
		n := 0
		for _, e := range realmtest.ListEventsOf[*ChannelQuieted](s.Scene, s.mod) {
			inactive = append(inactive, e.Channel)
			n++
		}
		if turns++; n > 10 || turns > 10 {
			t.Fatalf("turn %d marks %d channels", turns, n)
		}
	}
	for _, n := range names {
		want = append(want, s.Realm.FindChannelByName(n).ID)
	}
	if slices.Sort(inactive); !slices.Equal(inactive, want) { // the moderator cannot see the private channels
		t.Errorf("events mark channels %v as inactive, want %v", inactive, want)
	}
	for _, c := range append(want, s.private, s.protected) {
		if s.ViewAs(s.ann).ChannelInfo(s.Realm.FindChannel(c)).RecentlyActive {
			t.Errorf("channel %d is still recently active", c)
		}
	}
	if !s.ViewAs(s.ann).ChannelInfo(s.Realm.FindChannel(s.public)).RecentlyActive {
		t.Error("a channel with a new message is not recently active")
	}
}
