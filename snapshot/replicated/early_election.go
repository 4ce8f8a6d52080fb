package replicated

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// minSilence is how long a leader whose address refuses connections must have been silent before a follower asks
	// for votes, as a part of the election timeout. The leader sends a heartbeat after 0.1 to 0.2 of it, over
	// connections that it has opened itself. So a leader that lives is not replaced because the connections to it break
	// and are refused for a while, as when a proxy between the nodes restarts.
	minSilence = 0.3
	// connectInterval is the time between two connections to its address, and minRefusals is how many of them must be
	// refused in succession.
	connectInterval = 25 * time.Millisecond
	minRefusals     = 3
	// socketCloseTime is how long a process that was killed may still accept connections after one of them has ended:
	// the kernel closes its sockets one after the other.
	socketCloseTime = 100 * time.Millisecond
	// candidateDelay is how much later the next voter asks for votes, in the order of the ids. An election takes some
	// milliseconds, so two voters do not split the votes.
	candidateDelay = 75 * time.Millisecond
)

// ReplaceLeader ends the election timeout early if the process of a leader has ended. The caller has seen the end of a
// connection to it. isRefused opens a connection and reports whether the host of the leader refuses it, because no
// process listens at the address. While it does, and no message of the leader arrives, the process is gone. Without
// that knowledge a follower waits up to twice the election timeout: the leader could be only slow or unreachable.
//
// Raft is safe whenever a node asks for votes. ReplaceLeader reports whether this node did.
func (n *Node) ReplaceLeader(ctx context.Context, leader string, isRefused func(context.Context) bool) bool {
	t, is := n.transport.(*retryingTransport)
	if !is || n.failed.get() != nil {
		return false
	}
	term := n.raft.CurrentTerm()
	ctx, cancel := context.WithTimeout(ctx, 2*n.o.ElectionTimeout) // later the ordinary election has begun
	defer cancel()
	refusals, silence := 0, time.Duration(minSilence*float64(n.o.ElectionTimeout))
	for began := time.Now(); ; {
		turn, votes := n.turnAfter(leader)
		if !votes || n.raft.State() != raft.Follower || !n.lacksLeader(leader, term) {
			return false
		}
		switch {
		case isRefused(ctx):
			refusals++
		case time.Since(began) > socketCloseTime:
			return false
		default:
			refusals = 0
		}
		if refusals >= minRefusals && time.Since(n.raft.LastContact()) >= silence+time.Duration(turn)*candidateDelay {
			break
		}
		select {
		case <-time.After(connectInterval):
		case <-ctx.Done():
			return false
		case <-n.closing:
			return false
		}
	}
	n.log.Info("the process of the leader has ended: asking for votes", "leader", leader, "term", term)
	// The same request as in a move of the leadership, in which the leader sends it. The others then vote although they
	// may not have noticed yet that the leader is gone.
	h := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(n.o.ID),
		Addr: t.EncodePeer(raft.ServerID(n.o.ID), raft.ServerAddress(n.o.Address))}
	r := raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: h}, RespChan: make(chan raft.RPCResponse, 1)}
	select {
	case t.consumer <- r:
		return true
	case <-ctx.Done():
	case <-n.closing:
	}
	return false
}

// lacksLeader reports whether no node has replaced the leader of a term: this node still follows it, or follows no node
// in a later term. The latter happens after another follower asked for votes and got none, because its log misses
// entries that this node has. If this node gave its vote, its last contact is new, so it waits for minSilence before it
// asks for votes.
func (n *Node) lacksLeader(leader string, term uint64) bool {
	_, id := n.raft.LeaderWithID()
	return string(id) == leader || id == "" && n.raft.CurrentTerm() > term
}

// turnAfter returns how many other voters come before this one in the order of ids, without a leader that is gone.
// votes is false if this node has no vote.
func (n *Node) turnAfter(leader string) (turn int, votes bool) {
	var ids []string
	for _, x := range n.members() {
		if x.Suffrage == raft.Voter && string(x.ID) != leader {
			ids = append(ids, string(x.ID))
		}
	}
	slices.Sort(ids)
	turn = slices.Index(ids, n.o.ID)
	return turn, turn >= 0
}
