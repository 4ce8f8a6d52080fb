package replicated

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Member is a node of the cluster.
type Member struct {
	ID, Address string
	Voter       bool // its copy counts for the majority
	Leader      bool
}

// Status is the state of the cluster as this node sees it.
type Status struct {
	ID            string
	Leading       bool
	LeaderID      string // "" if it is unknown
	State         string // of this node in Raft: follower, candidate or leader
	Term          uint64
	Applied       uint64        // entry that the store of this node contains
	Commit        uint64        // entry that a majority has, as far as this node knows
	Last          uint64        // entry in the log of this node
	SnapshotIndex uint64        // index of the Raft snapshot: entries up to it may be deleted
	Contact       time.Duration // since the last message of a leader, or the start; 0 on the leader
	Heard         bool          // there was a message of a leader since the start
	Installs      int64         // backups of other nodes that were installed
	Verified      int64         // comparisons of the log that found no difference
	Differing     int64         // comparisons with a wrong sum of the leader: every entry of this node is intact
	Members       []Member
}

// Status returns the state of the cluster as this node sees it.
func (n *Node) Status() Status {
	_, leader := n.raft.LeaderWithID()
	s := Status{
		ID: n.o.ID, LeaderID: string(leader), Leading: n.raft.State() == raft.Leader, Term: n.raft.CurrentTerm(),
		Applied: n.store.Load().Applied(), Commit: n.raft.CommitIndex(), Last: n.raft.LastIndex(),
		Installs: n.installs.Load(), Verified: n.verified.Load(), Differing: n.differing.Load(),
	}
	if x, err := n.snapshots.read(); err == nil && x != nil {
		s.SnapshotIndex = x.Index
	}
	s.State = strings.ToLower(n.raft.State().String())
	if last := n.raft.LastContact(); !s.Leading {
		if s.Heard = !last.IsZero(); !s.Heard {
			last = n.opened
		}
		s.Contact = time.Since(last)
	}
	for _, x := range n.members() {
		s.Members = append(s.Members, Member{ID: string(x.ID), Address: string(x.Address),
			Voter: x.Suffrage == raft.Voter, Leader: x.ID == leader})
	}
	return s
}

// members returns the members of the cluster in this node's newest configuration.
func (n *Node) members() []raft.Server {
	f := n.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// memberTimeout is how long a change of the members may wait for Raft to accept it.
const memberTimeout = 10 * time.Second

// Add adds a node without a vote. The node receives a backup if it is far behind, and then every entry. Promote gives
// it a vote. Only one change of the members is in progress at a time.
func (n *Node) Add(id, address string) error {
	err := n.wait(n.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, memberTimeout))
	if err != nil {
		return fmt.Errorf("add node %s: %w", id, err)
	}
	return nil
}

// Promote gives a node a vote. The caller must check that the node has caught up: if another voter fails, appends wait
// for a voter that is far behind.
func (n *Node) Promote(id string) error {
	for _, m := range n.Status().Members {
		if m.ID == id {
			err := n.wait(n.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(m.Address), 0, memberTimeout))
			if err != nil {
				return fmt.Errorf("give node %s a vote: %w", id, err)
			}
			return nil
		}
	}
	return fmt.Errorf("the cluster has no node %s", id)
}

// Remove removes a node. The leader can remove itself: another voter then becomes the leader.
func (n *Node) Remove(id string) error {
	if err := n.wait(n.raft.RemoveServer(raft.ServerID(id), 0, memberTimeout)); err != nil {
		return fmt.Errorf("remove node %s: %w", id, err)
	}
	return nil
}

// MoveLeader makes another voter the leader: the one with the given id, or for "" the one with the newest entries.
func (n *Node) MoveLeader(id string) error {
	if id == "" {
		return n.wait(n.raft.LeadershipTransfer())
	}
	for _, m := range n.Status().Members {
		if m.ID == id && m.Voter {
			return n.wait(n.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(m.Address)))
		}
	}
	return fmt.Errorf("the cluster has no voter %s", id)
}
