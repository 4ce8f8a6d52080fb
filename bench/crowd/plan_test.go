package crowd

import "testing"

// Rooms divide the users: each user is in exactly one, and no room is larger than asked for.
func TestRoomsDivideUsers(t *testing.T) {
	rooms := Plan{Users: 1050, Room: 100, Seed: 1}.Members()
	if len(rooms) != 11 {
		t.Fatalf("%d rooms", len(rooms))
	}
	in := map[int32]int{}
	for _, r := range rooms {
		if len(r) > 100 {
			t.Errorf("a room has %d users", len(r))
		}
		for _, u := range r {
			in[u]++
		}
	}
	for u, n := range in {
		if n != 1 || u < 0 || u >= 1050 {
			t.Errorf("user %d is in %d rooms", u, n)
		}
	}
	if len(in) != 1050 {
		t.Errorf("%d users are in rooms", len(in))
	}
}
