package replicated

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// confirmations records the answers of other nodes that confirm the leadership. Raft's own check is not enough. It also
// counts answers to requests that were sent before the check began: a leader that was suspended by a signal finds such
// answers in its sockets when it resumes, although another node has become the leader. And it counts answers of nodes
// without a vote. So a check also needs answers of a majority of the voters to requests that were sent after it began.
type confirmations struct {
	began   atomic.Uint64 // number of the newest check
	arrived chan struct{} // buffered, one element: an answer has arrived

	mu     sync.Mutex
	newest map[raft.ServerID]confirmation // of each node
}

// confirmation is an accepted request of a node: its term, and the newest check that had begun before it was sent.
type confirmation struct{ term, check uint64 }

// confirmRetryInterval is how long a check waits for answers before it asks Raft again, which detects broken links.
const confirmRetryInterval = 50 * time.Millisecond

func newConfirmations() *confirmations {
	return &confirmations{arrived: make(chan struct{}, 1), newest: map[raft.ServerID]confirmation{}}
}

// record records that a node has accepted a request of a term. check is the value of began before the request was sent.
func (c *confirmations) record(id raft.ServerID, term, check uint64) {
	c.mu.Lock()
	if x := c.newest[id]; x.term < term || x.term == term && x.check < check {
		c.newest[id] = confirmation{term, check}
	}
	c.mu.Unlock()
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

// isConfirmed reports whether a majority of the voters has confirmed a check in a term. own is this node.
func (c *confirmations) isConfirmed(check, term uint64, own raft.ServerID, members []raft.Server) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	voters, votes := 0, 0
	for _, m := range members {
		if m.Suffrage != raft.Voter {
			continue
		}
		voters++
		if x := c.newest[m.ID]; m.ID == own || x.term == term && x.check >= check {
			votes++
		}
	}
	return votes > voters/2
}

// confirmLeader returns when a majority of the voters has confirmed that this node is the leader, by answers to
// requests that were sent after this call.
func (n *Node) confirmLeader() error {
	c := n.confirmations
	term, check := n.raft.CurrentTerm(), c.began.Add(1)
	for n.raft.CurrentTerm() == term {
		if err := n.wait(n.raft.VerifyLeader()); err != nil { // sends a request to each node
			return err
		}
		again := time.After(confirmRetryInterval)
		for waits := true; waits; {
			if c.isConfirmed(check, term, raft.ServerID(n.o.ID), n.members()) {
				return nil
			}
			select {
			case <-c.arrived:
			case <-again:
				waits = false
			}
		}
	}
	return raft.ErrNotLeader
}
