package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"parley/actors"
)

// errNotLeader is the answer to nodes that ask a core which is not the leader.
var errNotLeader = errors.New("this core is not the leader")

// SetLeader records whether this core is the leader and owns the organizations. Only the leader has links: a core that
// loses the leadership cuts its links, so that the other nodes dial the new leader.
func (c *Leader) SetLeader(on bool) {
	if c.isLeader.Swap(on) == on {
		return
	}
	if on {
		c.owns.Signal()
	}
	c.Log.Info("leadership of the cluster", "leads", on)
	if !on {
		peers := c.links.Peers()
		time.AfterFunc(linkCutDelay, func() {
			for _, p := range peers {
				p.Cut(errNotLeader)
			}
		})
	}
}

// linkCutDelay is how long the links of a core that has lost the leadership stay open. In this time it sends the
// answers and refusals of the last requests.
const linkCutDelay = 100 * time.Millisecond

// IsLeader reports whether this core is the leader and owns the organizations.
func (c *Leader) IsLeader() bool { return c.isLeader.Load() }

// A core that asks for votes is often elected soon, and owns the organizations some milliseconds later. Nodes that
// connect meanwhile wait for that, at most ownershipTimeout, and need not connect again. electedPoll is how often it is
// checked that the core has not lost the election or the leadership meanwhile.
const (
	ownershipTimeout = 500 * time.Millisecond
	electedPoll      = 20 * time.Millisecond
)

// awaitOwnership returns true as soon as this core owns the organizations, and false if it is not going to.
func (c *Leader) awaitOwnership() bool {
	t := time.NewTicker(electedPoll)
	defer t.Stop()
	for end := time.Now().Add(ownershipTimeout); c.mayLead() && time.Now().Before(end); {
		owns := c.owns.Next()
		if c.isLeader.Load() {
			return true
		}
		select {
		case <-owns:
		case <-t.C:
		case <-c.closed:
			return false
		}
	}
	return c.isLeader.Load()
}

// mayLead reports whether this core has been elected or asks for votes.
func (c *Leader) mayLead() bool { return c.Node.IsElected() || c.Node.IsCandidate() }

// Changes lets any number of goroutines wait for the next change of something. The zero value can be used.
type Changes struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; nil: no one waits
}

// Signal ends the waits for the next change.
func (x *Changes) Signal() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next != nil {
		close(x.next)
		x.next = nil
	}
}

// Next returns a channel that is closed at the next change after this call.
func (x *Changes) Next() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next == nil {
		x.next = make(chan struct{})
	}
	return x.next
}

// Voters returns the number of cores with a vote.
func (c *Leader) Voters() (n int) {
	for _, m := range c.Node.Status().Members {
		if m.Voter {
			n++
		}
	}
	return n
}

// hasVote reports whether a core has a vote.
func (c *Leader) hasVote(node string) bool {
	for _, m := range c.Node.Status().Members {
		if m.ID == node {
			return m.Voter
		}
	}
	return false
}

// Successor returns the id of another core that could become the leader and make changes, because a majority of the
// voters, without this core, has links and free disk space. It returns "" if there is none. This core then stays the
// leader, so that it can answer reads: a new leader could not store its claims of the organizations and would refuse
// reads.
func (c *Leader) Successor() (id string) {
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

// reportsWithin is the time within which the leader learns that another core's disk is full.
const reportsWithin = reportInterval + 100*time.Millisecond

// memberRetryInterval is the time between two attempts to change the members.
const memberRetryInterval = 200 * time.Millisecond

// addCore adds a new core to the replicated log, without a vote.
func (c *Leader) addCore(node, address string) {
	c.retry("add a core", node, func() error { return c.Node.Add(node, address) })
	c.announceMembers()
}

// Promote gives a core a vote. The core asks for it when it has caught up.
func (c *Leader) Promote(node string) error {
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

// retry repeats a change until it succeeds or this core loses the leadership.
func (c *Leader) retry(what, node string, change func() error) {
	for c.isLeader.Load() {
		err := change()
		if err == nil {
			c.Log.Info(what, "node", node)
			return
		}
		c.Log.Warn(what+" failed", "node", node, "err", err)
		select {
		case <-time.After(memberRetryInterval):
		case <-c.closed:
			return
		}
	}
}

// StartCoreLink maintains the link of a core to the leader, which may be the core itself. While the core is not the
// leader, it hosts the event queues of clients that poll it, as an edge does, and forwards other requests over the
// link. See Start for subdomainOf.
func StartCoreLink(o FollowerOptions, orgs *actors.Server, subdomainOf func(host string) string) (*Follower, error) {
	e, err := NewFollower(o)
	if err == nil {
		orgs.FollowOwner(e, e.isHome)
		e.Start(nil, orgs, subdomainOf)
	}
	return e, err
}

// FollowLeader closes the link when the core learns of another leader, because the connections to a suspended or
// unreachable leader stay open. The next link is opened to that leader first. A core whose own leadership is moved
// closes the link to itself before the next leader is elected: its waiting requests can then be sent some milliseconds
// sooner, and no answer comes over that link.
func (e *Follower) FollowLeader(n *CoreNode) {
	e.mu.Lock()
	e.coreNode = n
	e.mu.Unlock()
	n.OnLeadershipTransfer(func(id string) {
		e.mu.Lock()
		e.leader = id
		link, isOwn := e.link, e.core == e.Directory.Node
		e.mu.Unlock()
		if link != nil && isOwn && id != e.Directory.Node {
			link.Close(errNotLeader)
		}
	})
	n.OnLeaderChange(func(id string) {
		e.mu.Lock()
		e.leader = id
		link, core := e.link, e.core
		e.mu.Unlock()
		if link != nil && core != id {
			link.Close(errNotLeader)
		}
		select {
		case e.newLeader <- struct{}{}:
		default:
		}
	})
}

// refusedTimeout limits an attempt to connect that ought to be refused.
const refusedTimeout = 200 * time.Millisecond

// replaceLeader lets this core ask for votes before the election timeout, if the process of the leader has ended: the
// link to it broke, and its host refuses connections. See replicated.Node.ReplaceLeader.
func (e *Follower) replaceLeader(leader, address string) {
	e.mu.Lock()
	n := e.coreNode
	e.mu.Unlock()
	if n == nil || leader == e.Directory.Node {
		return
	}
	n.ReplaceLeader(e.ctx, leader, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
		defer cancel()
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

// leaderFirst puts the address of the leader before the others in a list, if the leader is known and in the list.
func (e *Follower) leaderFirst(list []string) []string {
	e.mu.Lock()
	leader := e.leader
	e.mu.Unlock()
	for _, m := range e.Directory.ListMembers() {
		if i := slices.Index(list, m.Address); m.Node == leader && i > 0 {
			copy(list[1:i+1], list[:i])
			list[0] = m.Address
		}
	}
	return list
}

// AskForVote asks the leader for a vote until this core has one.
func (e *Follower) AskForVote(ctx context.Context, hasVote func() bool) {
	for !hasVote() {
		call, cancel := context.WithTimeout(ctx, MaxLinkWait)
		_, err := e.Command(call, "cluster-promote", map[string]string{"node": e.Directory.Node})
		cancel()
		if err != nil {
			e.Log.Warn("asking for a vote failed", "err", err)
		}
		select {
		case <-time.After(memberRetryInterval):
		case <-ctx.Done():
			return
		case <-e.ctx.Done():
			return
		}
	}
}
