package cluster

import (
	"context"
	"errors"
	"time"

	"parley/actors"
)

// errNotLeader is the answer to nodes that ask a core which is not the leader.
var errNotLeader = errors.New("this core is not the leader")

// SetLeading says whether this core is the leader and owns the organizations. Only the leader has links: a core that is
// not the leader any more cuts them, so that the other nodes look for the new one.
func (c *Core) SetLeading(on bool) {
	if c.leads.Swap(on) == on {
		return
	}
	c.Log.Info("leadership of the cluster", "leads", on)
	if !on {
		peers := c.links.Peers()
		time.AfterFunc(cutAfter, func() {
			for _, p := range peers {
				p.Cut(errNotLeader)
			}
		})
	}
}

// cutAfter is how long a core that has lost the leadership keeps its links. In this time it sends the answers to its
// last requests, refusals included.
const cutAfter = 100 * time.Millisecond

// Leads reports whether this core is the leader and owns the organizations.
func (c *Core) Leads() bool { return c.leads.Load() }

// Voters returns the number of cores with a vote.
func (c *Core) Voters() (n int) {
	for _, m := range c.Node.Status().Members {
		if m.Voter {
			n++
		}
	}
	return n
}

// Successor returns the id of another core that could lead and make changes: a majority of the cores with a vote has
// links and space without this one. "": there is none. This core then stays the leader, so reads go on: a new leader
// could not store that it owns the organizations, and would refuse them.
func (c *Core) Successor() (id string) {
	voters, with := map[string]bool{}, 0
	for _, m := range c.Node.Status().Members {
		if m.Voter {
			voters[m.ID] = true
		}
	}
	for _, p := range c.links.Peers() {
		if e, is := p.Link.(*edgeLink); is && voters[p.Node] && p.Node != c.Directory.Node && !e.isFull() {
			if with++; id == "" {
				id = p.Node
			}
		}
	}
	if with <= len(voters)/2 {
		return ""
	}
	return id
}

// ReportsWithin is how long it takes until the leader knows that another core's disk is full.
const ReportsWithin = reportEvery + 100*time.Millisecond

// memberAgainAfter is how soon a change of the members is tried again.
const memberAgainAfter = 200 * time.Millisecond

// addCore adds a new core to the replicated log, without a vote.
func (c *Core) addCore(node, address string) {
	c.retry("add a core", node, func() error { return c.Node.Add(node, address) })
}

// Promote gives a core a vote. The core asks for it when it has caught up.
func (c *Core) Promote(node string) error {
	if err := c.Directory.checkMember(node); err != nil {
		return err
	}
	for _, m := range c.Node.Status().Members {
		if m.ID == node && m.Voter {
			return nil
		}
	}
	return c.Node.Promote(node)
}

// retry makes a change until it succeeds, or this core is not the leader any more.
func (c *Core) retry(what, node string, change func() error) {
	for c.leads.Load() {
		err := change()
		if err == nil {
			c.Log.Info(what, "node", node)
			return
		}
		c.Log.Warn(what+" failed", "node", node, "err", err)
		select {
		case <-time.After(memberAgainAfter):
		case <-c.closed:
			return
		}
	}
}

// StartCoreLink keeps a link of a core to the leader, which may be the core itself. While the core is not the leader,
// it keeps the event queues of clients that poll it, as an edge does, and forwards other requests by the link.
// subdomainOf is that of Start.
func StartCoreLink(o EdgeOptions, orgs *actors.Server, subdomainOf func(host string) string) (*Edge, error) {
	e, err := NewEdge(o)
	if err == nil {
		orgs.FollowOwner(e, e.isHome)
		e.Start(nil, orgs, subdomainOf)
	}
	return e, err
}

// FollowLeader ends the link when the core has learned of another leader: a leader that does not run any more keeps its
// connections.
func (e *Edge) FollowLeader(n *CoreNode) {
	n.OnLeaderChange(func(id string) {
		e.mu.Lock()
		link, core := e.link, e.core
		e.mu.Unlock()
		if link != nil && core != id {
			link.Close(errNotLeader)
		}
	})
}

// AskForVote asks the leader for a vote until this core has one.
func (e *Edge) AskForVote(ctx context.Context, hasVote func() bool) {
	for !hasVote() {
		call, cancel := context.WithTimeout(ctx, MaxLinkWait)
		_, err := e.Command(call, "cluster-promote", map[string]string{"node": e.Directory.Node})
		cancel()
		if err != nil {
			e.Log.Warn("no vote yet", "err", err)
		}
		select {
		case <-time.After(memberAgainAfter):
		case <-ctx.Done():
			return
		case <-e.ctx.Done():
			return
		}
	}
}
