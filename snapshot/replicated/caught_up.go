package replicated

import (
	"errors"

	"github.com/hashicorp/raft"
)

// recordLeaderCommit records the leader's commit index from the first request of the leader after the start. Raft
// itself cannot tell it: the commit index of a follower is never beyond the end of the follower's own log.
func (n *Node) recordLeaderCommit(a *raft.AppendEntriesRequest) {
	if a.LeaderCommitIndex == 0 || n.leaderCommit.Load() != 0 {
		return
	}
	// While Raft is starting, the request is ignored: the next one arrives within idleRequestInterval.
	if n.isStarted() && a.Term >= n.raft.CurrentTerm() {
		n.leaderCommit.CompareAndSwap(0, a.LeaderCommitIndex)
	}
}

// IsCaughtUp reports whether this node is the leader, or has applied everything that the leader had committed when this
// node first received a request from it.
func (n *Node) IsCaughtUp() bool {
	if n.isLeading() {
		return true
	}
	want := n.leaderCommit.Load()
	if want == 0 || n.raft.AppliedIndex() < want {
		return false
	}
	// Raft's applied index includes entries that still wait for the state machine. The state machine receives only
	// entries with operations.
	for i := want; ; i-- {
		var l raft.Log
		if err := n.wal.read(i, &l); err != nil {
			return errors.Is(err, raft.ErrLogNotFound) // deleted: the store has synced it
		}
		if l.Type == raft.LogCommand {
			return max(n.fsmApplied.Load(), n.store.Load().Applied()) >= i
		}
	}
}

// isLeading reports whether this node is the leader and has applied everything that earlier leaders have committed.
func (n *Node) isLeading() bool {
	n.leaderMu.Lock()
	defer n.leaderMu.Unlock()
	return n.leading
}
