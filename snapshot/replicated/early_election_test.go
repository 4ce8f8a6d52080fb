package replicated

import (
	"context"
	"sync/atomic"
	"testing"
)

// longElection is longer than testTimeout: an election before it was not caused by the election timeout.
const longElection = 2 * testTimeout

// refuse is an isRefused of ReplaceLeader.
func refuse(context.Context) bool { return true }

// slowFollowers returns the nodes but the leader, which wait longElection before they ask for votes.
func (c *cluster) slowFollowers(leader *Node) (list []*Node) {
	c.t.Helper()
	for _, n := range c.nodes {
		if n == leader {
			continue
		}
		config := n.raft.ReloadableConfig()
		config.HeartbeatTimeout, config.ElectionTimeout = longElection, longElection
		c.must(n.raft.ReloadConfig(config))
		list = append(list, n)
	}
	return list
}

// Followers that know that the process of the leader is gone elect another one before the election timeout. They ask
// for votes one after the other.
func TestReplaceLeaderThatIsGone(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(3)
	old := c.leader()
	turns := 0
	for _, n := range c.slowFollowers(old) {
		turn, votes := n.turnAfter(old.o.ID)
		if !votes || turn > 1 {
			t.Errorf("%s has turn %d, votes: %t", n.o.ID, turn, votes)
		}
		turns += turn
	}
	if turns != 1 {
		t.Error("two followers have the same turn")
	}
	c.kill(old.o.ID)
	asked := make(chan bool, len(c.nodes))
	for _, n := range c.nodes {
		go func() { asked <- n.ReplaceLeader(t.Context(), old.o.ID, refuse) }()
	}
	if first, second := <-asked, <-asked; !first && !second {
		t.Error("no follower asked for votes")
	}
	w = c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(6)
}

// A follower whose log misses acknowledged entries cannot win. If it asks for votes first, the other one asks after it
// and does not wait for the election timeout.
func TestReplaceLeaderAfterVain(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	w := c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(3)
	old := c.leader()
	var behind, ahead *Node
	for _, n := range c.slowFollowers(old) {
		if turn, _ := n.turnAfter(old.o.ID); turn == 0 {
			behind = n
		} else {
			ahead = n
		}
	}
	c.network.setCut(behind.o.Address, true)
	w.mustAdd(t, 3, 10)
	c.kill(old.o.ID)
	c.network.setCut(behind.o.Address, false)
	asked := make(chan bool, 1)
	go func() { asked <- ahead.ReplaceLeader(t.Context(), old.o.ID, refuse) }()
	if !behind.ReplaceLeader(t.Context(), old.o.ID, refuse) {
		t.Error("the follower whose turn it is did not ask for votes")
	}
	if !<-asked {
		t.Error("the other follower did not ask for votes")
	}
	w = c.claim()
	w.mustAdd(t, 3, 10)
	c.expectEqual(9)
}

// A leader that lives is not replaced when connections to it end: neither if it accepts new ones, nor if these are
// refused while its heartbeats arrive.
func TestReplaceLeaderThatLives(t *testing.T) {
	c := newCluster(t, nil, "a", "b", "c")
	c.claim().mustAdd(t, 3, 10)
	leader := c.leader()
	term := leader.Term()
	for id, n := range c.nodes {
		if id == leader.o.ID {
			continue
		}
		var refused atomic.Int64
		proxyRestarts := func(context.Context) bool { return refused.Add(1) < minRefusals }
		if n.ReplaceLeader(t.Context(), leader.o.ID, proxyRestarts) {
			t.Errorf("%s asked for votes although the leader accepts connections", id)
		}
		refused.Store(0)
		if n.ReplaceLeader(t.Context(), leader.o.ID, func(context.Context) bool { refused.Add(1); return true }) {
			t.Errorf("%s asked for votes although it hears the leader", id)
		}
		if refused.Load() < 2 {
			t.Errorf("%s gave up after %d refused connections", id, refused.Load())
		}
		if n.ReplaceLeader(t.Context(), id, refuse) || leader.ReplaceLeader(t.Context(), leader.o.ID, refuse) {
			t.Error("a node asked for votes in place of itself")
		}
	}
	if c.leader() != leader || leader.Term() != term {
		t.Errorf("there was an election: term %d after %d", leader.Term(), term)
	}
}
