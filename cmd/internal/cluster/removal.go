package cluster

import (
	"fmt"
	"time"

	"parley/wire/peer"
)

// removalDelay is the time for sending the answer to the command with which a core has removed itself.
const removalDelay = 50 * time.Millisecond

// CutOff ends the connections of a removed node to this core, and tells the edges that it was removed. The other cores
// end theirs when they apply the change. All that the node sends in the meantime is refused. If the node itself has
// sent the command, it gets the answer first.
func (c *Leader) CutOff(node string) {
	cut := func() {
		if p := c.links.Find(node); p != nil {
			p.Cut(fmt.Errorf("node %s was removed from the cluster", node))
		}
		c.Node.listener.CutOff(node)
	}
	if p := c.links.Find(node); p != nil && p.Link.(*edgeLink).commands.Load() > 0 {
		time.AfterFunc(removalDelay, cut)
	} else {
		cut()
	}
	c.announceMembers()
}

// announceMembers sends the cores to all edges.
func (c *Leader) announceMembers() {
	for _, p := range c.links.Peers() {
		c.sendMembers(p)
	}
}

// sendMembers sends the cores to a node, if it is an edge: it has no other way to learn which of them were removed.
func (c *Leader) sendMembers(p *peer.Peer) {
	if p.Role == peer.Edge {
		p.Send(encode(msgMembers, &membersMessage{c.Directory.CoreAddresses(), c.Directory.removedCores()}))
	}
}

// receiveMembers records the cores, at an edge.
func (e *Follower) receiveMembers(x *membersMessage) error {
	if err := e.Directory.setCores(x.Cores); err != nil {
		return err
	}
	return e.Directory.setRemovedCores(x.Removed)
}
