package cluster

import (
	"fmt"

	"parley/actors/registry"
	"parley/wire/peer"
)

// Bounds returns the bounds of a node: of a core, which is nil elsewhere, and of the link to the leader, which is nil
// at a single node. replicaBytes is how many bytes of rows an edge loads.
func Bounds(core *Leader, link *Follower, maxReplicas int, replicaBytes int64) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "served_files",
			Of:       "files that a core without a bucket is sending to other cores",
			Overflow: "the other core tries the next one, or answers its request 503",
			Reason:   "each has a connection and buffers of about 70 kB",
			Limit:    registry.Constant(MaxServedFiles),
			Used:     ofCore(core, (*Leader).ServedFiles),
			Whole:    registry.OfCluster,
		},
		{
			Name: "replicas",
			Of:   "organizations that an edge has in memory",
			Overflow: "replicas without clients for a minute are unloaded; if there are none, requests for other " +
				"organizations are answered 503",
			Reason: "each has its own actors and caches, about 200 kB when it is empty",
			Limit:  registry.Constant(int64(maxReplicas)),
			Used:   ofLink(link, func(e *Follower) int64 { return e.Replicas().Open }),
			Hits:   ofLink(link, func(e *Follower) int64 { return e.Counters.NoRoom.Load() }),
			Whole:  registry.OfCluster,
		},
		{
			Name:     "replica_bytes",
			Of:       "bytes of loaded rows, and of the facts since, of all organizations on an edge",
			Overflow: "as for replicas; one organization is always loaded, whatever its size",
			Reason:   "they take about twice as much memory",
			Limit:    registry.Constant(replicaBytes),
			Used:     ofLink(link, func(e *Follower) int64 { return e.Replicas().Bytes }),
			Whole:    registry.OfCluster,
		},
		{
			Name: "unknown_names",
			Of: "requests at an edge that wait for the answer whether there is an organization with their " +
				"subdomain",
			Overflow: "503 with Retry-After",
			Reason:   "each takes about 50 kB; requests for one subdomain share a question to the leader",
			Limit:    registry.Constant(MaxUnknownNames),
			Used:     ofLink(link, func(e *Follower) int64 { n, _ := e.UnknownNames(); return n }),
			Hits:     ofLink(link, func(e *Follower) int64 { _, n := e.UnknownNames(); return n }),
			Whole:    registry.OfCluster,
		},
		{
			Name:     "forwarded_calls",
			Of:       "requests and followed organizations of one node that the leader handles",
			Overflow: "others wait at the node that sends them",
			Reason:   "each takes about 20 kB for its stacks and buffers",
			Limit:    registry.Constant(peer.MaxCalls),
			Whole:    registry.OfCluster,
		},
		{
			Name:     "shared_calls",
			Of:       "short calls of one node that share a stream and are not answered",
			Overflow: "others have their own streams; beyond that the leader receives no more",
			Reason:   "each takes about 30 kB for its stack and buffers",
			Limit:    registry.Constant(peer.MaxSharedCalls),
			Whole:    registry.OfCluster,
		},
		{
			Name: "peer_handshakes",
			Of: fmt.Sprintf("connections to peer-listen without a certificate yet; %d places of them are for "+
				"addresses "+
				"of nodes, at most %d for one; of the others at most %d for one", peer.MaxMemberHandshakes,
				peer.MaxMemberHandshakesPerAddress, peer.MaxHandshakesPerAddress),
			Overflow: "the oldest one that has sent nothing is closed, of the address with most",
			Reason:   "each takes about 30 kB, and strangers must not keep nodes out",
			Limit:    registry.Constant(peer.MaxMemberHandshakes + peer.MaxHandshakes),
			Used:     ofCore(core, func(c *Leader) int64 { n, _ := c.Handshakes(); return int64(n) }),
			Hits:     ofCore(core, func(c *Leader) int64 { _, n := c.Handshakes(); return n }),
			Whole:    registry.OfCluster,
		},
		{
			Name:     "link_queue_bytes",
			Of:       "bytes in the send queue of the link of one node; also limited to 10,000 messages",
			Overflow: "the link is cut; when the node connects again it gets the present state",
			Reason:   "a node that reads slowly must not fill the memory of the leader",
			Limit:    registry.Constant(peer.MaxQueuedBytes),
			Used: ofCore(core, func(c *Leader) (most int64) {
				for _, p := range c.Peers() {
					most = max(most, p.QueuedBytes)
				}
				return most
			}),
			Whole: registry.OfCluster,
		},
	}
}

// ofLink returns a function that reads a number of a link; it returns 0 without one.
func ofLink(e *Follower, read func(*Follower) int64) func() int64 {
	return func() int64 {
		if e == nil {
			return 0
		}
		return read(e)
	}
}

// ofCore returns a function that reads a number of a core; it returns 0 if there is none.
func ofCore(c *Leader, read func(*Leader) int64) func() int64 {
	return func() int64 {
		if c == nil {
			return 0
		}
		return read(c)
	}
}
