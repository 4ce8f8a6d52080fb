package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/wire/peer"
)

const (
	// statusLinkWait is how long the status waits for a link to the leader before it is the view of this node. A move
	// of the leadership takes some tens of milliseconds.
	statusLinkWait = 300 * time.Millisecond
	// statusTimeout is how long a leader with a link may take to answer. A suspended one does not answer.
	statusTimeout = 2 * time.Second
	// reachTimeout is how long a node may take to accept a connection until it counts as unreachable.
	reachTimeout = time.Second
)

// OwnView is the cluster as a node without a leader sees it.
type OwnView struct {
	Node string `json:"node"`
	Role string `json:"role"`
	// NoLeader says why no node answers for the whole cluster, and how the operator can help.
	NoLeader string `json:"no_leader"`
	// State, Term and the entries are those of a core in the replicated log.
	State   string `json:"state,omitempty"`
	Term    uint64 `json:"term,omitempty"`
	Applied uint64 `json:"applied_entry,omitempty"`
	Last    uint64 `json:"last_entry,omitempty"`
	// Contact is the time since the last message of a leader; it is missing if there was none since the start.
	Contact string `json:"leader_contact,omitempty"`
	// Cores are the other cores that this node knows.
	Cores []CoreSeen `json:"cores"`
}

// CoreSeen is another core, as a node without a leader sees it.
type CoreSeen struct {
	Node      string `json:"node,omitempty"` // an edge knows the addresses only
	Address   string `json:"address"`
	Voter     *bool  `json:"voter"`     // nil: an edge does not know it
	Reachable bool   `json:"reachable"` // it accepts connections of this node
	Problem   string `json:"problem,omitempty"`
}

// LeaderStatus asks the leader for the status of all nodes. The answer is JSON. An error says that no leader answers.
func (e *Follower) LeaderStatus(ctx context.Context) ([]byte, error) {
	waiting, cancel := context.WithTimeout(ctx, statusLinkWait)
	defer cancel()
	if _, err := e.waitForLink(waiting, false); err != nil {
		return nil, e.errNoLeader()
	}
	call, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	leader := e.Leader()
	data, err := e.Command(call, "cluster-status", nil)
	if err != nil {
		return nil, fmt.Errorf("the leader, %s, does not answer: %w", leader, err)
	}
	return data, nil
}

// OwnView returns the cluster as this node sees it. core is nil at an edge, and reason says why no leader answers.
func (e *Follower) OwnView(ctx context.Context, core *CoreNode, reason error) OwnView {
	v := OwnView{Node: e.Directory.Node, Role: string(e.Directory.Role), NoLeader: reason.Error(),
		Cores: []CoreSeen{}}
	if core == nil {
		for _, address := range e.Directory.CoreAddresses() {
			v.Cores = append(v.Cores, CoreSeen{Address: address})
		}
	} else {
		s := core.Status()
		v.State, v.Term, v.Applied, v.Last = s.State, s.Term, s.Applied, s.Last
		if s.Heard {
			v.Contact = s.Contact.Round(time.Millisecond).String()
		}
		voters := map[string]bool{}
		for _, m := range s.Members {
			voters[m.ID] = m.Voter
		}
		for _, m := range e.Directory.ListMembers() {
			if vote := voters[m.Node]; m.Role == peer.Core && m.Node != e.Directory.Node {
				v.Cores = append(v.Cores, CoreSeen{Node: m.Node, Address: m.Address, Voter: &vote})
			}
		}
	}
	var all sync.WaitGroup
	for i := range v.Cores {
		all.Go(func() { e.reach(ctx, &v.Cores[i]) })
	}
	all.Wait()
	return v
}

// reach records whether a core accepts a connection.
func (e *Follower) reach(ctx context.Context, x *CoreSeen) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	c, err := e.id.Dial(ctx, x.Address, peer.LinkProtocol)
	if err != nil {
		x.Problem = err.Error()
		return
	}
	x.Reachable = true
	c.Close()
}
