package cluster

import (
	"testing"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
)

// The presence of 1,000,000 users, more than may wait for a node at once, reaches an edge without breaking its link,
// in the order of the changes: a client that has seen one has seen all before it.
func TestEdgeGetsPresenceOfLargeOrganization(t *testing.T) {
	users := 1_000_000
	if testing.Short() { // the race detector is slow
		users = 50_000
	}
	c := startTestCore(t, "big")
	id := c.orgs.Realms()["big"]
	now := time.Now().Unix()
	rows := make([]presence.Row, users)
	for i := range rows { // the first users have changed last
		rows[i] = presence.Row{User: realm.UserID(1000 + i), Active: now - 500, Connected: now - 400,
			Update: int64(users - i)}
	}
	edge := startTestEdge(c, "b", nil)
	if err := edge.Prepare("big"); err != nil {
		t.Fatal(err)
	}
	feed := &presenceFeed{peer: c.links.Find("b"), realm: id}
	feed.add(rows)
	last, first := realm.UserID(1000), realm.UserID(1000+users-1)
	eventually(t, "presence arrives", func() bool { return edge.orgs.PresenceOf(id, first) != nil })
	have := edge.orgs.PresenceSince(id, 0, 0)
	for _, r := range have {
		if r.Update > int64(len(have)) {
			t.Fatalf("of %d changes that the edge has, one is change %d", len(have), r.Update)
		}
	}
	eventually(t, "all presence arrives", func() bool { return edge.orgs.PresenceOf(id, last) != nil })
	if all := edge.orgs.PresenceSince(id, 0, 0); len(all) != users || len(have) == users {
		t.Errorf("the edge has the presence of %d users; it had that of %d in between", len(all), len(have))
	}
	if n := edge.Counters.Connects.Load(); n != 1 {
		t.Errorf("the edge has opened %d links", n)
	}
}
