package replicated

import (
	"errors"

	"github.com/hashicorp/raft"
)

// noteCommit records which entry the leader has committed when this node hears from it. Raft itself knows only the
// entries that this node has: its commit index is never beyond its own log.
func (n *Node) noteCommit(a *raft.AppendEntriesRequest) {
	if a.LeaderCommitIndex == 0 || n.leaderCommit.Load() != 0 {
		return
	}
	// Before the start it waits for the next request, which comes within requestAgainAfter.
	if n.isStarted() && a.Term >= n.raft.CurrentTerm() {
		n.leaderCommit.CompareAndSwap(0, a.LeaderCommitIndex)
	}
}

// IsCurrent reports whether this node leads, or has applied everything that the leader had committed when it had its
// first answer of this node after the start.
func (n *Node) IsCurrent() bool {
	if n.isLeading() {
		return true
	}
	want := n.leaderCommit.Load()
	if want == 0 || n.raft.AppliedIndex() < want {
		return false
	}
	// Raft counts entries as applied that still wait for the state machine, which gets only those with operations.
	for i := want; ; i-- {
		var l raft.Log
		if err := n.wal.read(i, &l); err != nil {
			return errors.Is(err, raft.ErrLogNotFound) // deleted: the store has synced it
		}
		if l.Type == raft.LogCommand {
			return max(n.handled.Load(), n.store.Load().Applied()) >= i
		}
	}
}

// isLeading reports whether this node is the leader and has applied everything that earlier leaders have committed.
func (n *Node) isLeading() bool {
	n.leaderMu.Lock()
	defer n.leaderMu.Unlock()
	return n.leading
}
