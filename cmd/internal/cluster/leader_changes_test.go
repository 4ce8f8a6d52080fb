package cluster

import (
	"slices"
	"testing"

	"parley/wire/peer"
)

// The address of the leader comes first, if it is known.
func TestLeaderFirst(t *testing.T) {
	d := &Directory{state: state{Role: peer.Core, Members: []Member{
		{Node: "a", Role: peer.Core, Address: "1"}, {Node: "b", Role: peer.Core, Address: "2"},
		{Node: "gone", Role: peer.Core, Address: "9", Removed: 1}, {Node: "c", Role: peer.Core, Address: "3"},
	}}}
	e := &Follower{FollowerOptions: FollowerOptions{Directory: d}}
	for leader, want := range map[string][]string{
		"": {"1", "2", "3"}, "a": {"1", "2", "3"}, "b": {"2", "1", "3"}, "c": {"3", "1", "2"}, "gone": {"1", "2", "3"},
	} {
		e.leader = leader
		if got := e.leaderFirst(d.CoreAddresses()); !slices.Equal(got, want) {
			t.Errorf("leader %q: %v, want %v", leader, got, want)
		}
	}
}
