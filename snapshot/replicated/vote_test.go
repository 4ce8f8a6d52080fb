package replicated

import (
	"testing"
	"time"
)

// The leader is lost right after it has given a third node a vote, and the other voter does not know that yet: it is
// behind. The third node is the only one that can lead, and the other one votes for it.
func TestVoteForUnknownVoter(t *testing.T) {
	c := newCluster(t, func(o *Options) {
		o.ElectionTimeout = 2 * time.Second // the leader goes on that long without the other voter
	}, "a", "b")
	w := c.claim()
	w.mustAdd(t, 5, 10)
	c.expectEqual(5)
	leader, behind := c.leader(), c.follower()
	c.startNew("c", PrepareJoin)
	c.must(leader.Add("c", c.address["c"]))
	c.caughtUp("c")
	c.caughtUp(behind)
	c.network.setCut(c.address[behind], true)
	c.must(leader.Promote("c"))
	c.wait("c knows that it has a vote", func() bool { return hasVote(c.nodes["c"], "c") })
	c.kill(leader.o.ID)
	if hasVote(c.nodes[behind], "c") {
		t.Fatal("the other voter knows it, too")
	}
	c.network.setCut(c.address[behind], false)
	w = c.claim()
	if id := w.journal.o.ID; id != "c" {
		t.Errorf("%s leads", id)
	}
	w.mustAdd(t, 3, 10)
	c.expectEqual(8)
}

// hasVote reports whether a node has a vote, as another one knows.
func hasVote(at *Node, id string) bool {
	for _, m := range at.Status().Members {
		if m.ID == id {
			return m.Voter
		}
	}
	return false
}
