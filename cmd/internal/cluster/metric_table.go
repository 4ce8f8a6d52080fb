package cluster

import (
	"time"

	"parley/actors/registry"
)

// Metrics returns the metrics of a node: of a core, which is nil elsewhere, and of the link to the leader, which is nil
// at a single node.
func Metrics(core *Leader, link *Follower) []registry.Metric {
	return []registry.Metric{
		{
			Name: "parley_cluster_facts_sent_total", Counter: true,
			Meaning: "Facts that this core has sent to edges; a fact counts once for each edge that gets it.",
			Read:    ofCore(core, func(c *Leader) int64 { return c.FactsSent.Load() }),
		},
		{
			Name: "parley_cluster_presence_rows_sent_total", Counter: true,
			Meaning: "Changes of users' presence that this core has sent to other cores.",
			Read:    ofCore(core, func(c *Leader) int64 { return c.PresenceCopied.Load() }),
		},
		{
			Name: "parley_cluster_states_compared_total", Counter: true,
			Meaning: "Organizations whose state parley cluster verify has compared on all nodes, at this core.",
			Read:    ofCore(core, func(c *Leader) int64 { return c.Compared.Load() }),
		},
		{
			Name: "parley_cluster_states_different_total", Counter: true,
			Meaning: "Organizations whose state was different on another node, or could not be compared.",
			Read:    ofCore(core, func(c *Leader) int64 { return c.Different.Load() }),
		},
		{
			Name:    "parley_cluster_voters",
			Meaning: "Voters: cores with a vote, as far as this core knows.",
			Read:    ofCore(core, func(c *Leader) int64 { return int64(c.Voters()) }),
		},
		{
			Name:    "parley_cluster_level",
			Meaning: "Rule level of the cluster, which parley cluster level raises; 0 on servers that are not cores.",
			Read:    ofCore(core, func(c *Leader) int64 { return int64(c.Node.Level()) }),
		},
		{
			Name: "parley_cluster_requests_served_total", Counter: true,
			Meaning: "Requests that other nodes have forwarded and this core has answered.",
			Read:    ofCore(core, func(c *Leader) int64 { return c.Served.Load() }),
		},
		{
			Name: "parley_cluster_requests_failed_total", Counter: true,
			Meaning: "Requests that other nodes have forwarded and this core could not decode or answer.",
			Read:    ofCore(core, func(c *Leader) int64 { return c.ServeFailed.Load() }),
		},
		{
			Name:    "parley_cluster_link_up",
			Meaning: "1 while this node has a link to the leader.",
			Read:    ofLink(link, func(e *Follower) int64 { return registry.OneIf(e.Silence() >= 0) }),
		},
		{
			Name: "parley_cluster_ready",
			Meaning: "At an edge: 1 while its replicas have caught up since the link to the leader was opened. At a " +
				"core: " +
				"1 while it has a link.",
			Read: ofLink(link, func(e *Follower) int64 { return registry.OneIf(e.IsReady()) }),
		},
		{
			Name: "parley_cluster_keeps_queues",
			Meaning: "1 while this core is a follower and hosts event queues of its clients; otherwise it forwards " +
				"polls.",
			Read: ofLink(link, func(e *Follower) int64 { return registry.OneIf(e.HostsAnyQueues()) }),
		},
		{
			Name: "parley_cluster_link_silence_seconds", Scale: 1e-3,
			Meaning: "Time since the last message of the leader; 0 without a link.",
			Read: ofLink(link, func(e *Follower) int64 {
				return int64(max(0, e.Silence()) / time.Millisecond)
			}),
		},
		{
			Name: "parley_cluster_links_opened_total", Counter: true,
			Meaning: "Links to a leader that this node has opened.",
			Read:    ofLink(link, func(e *Follower) int64 { return e.Counters.Connects.Load() }),
		},
		{
			Name: "parley_cluster_link_sent_bytes_total", Counter: true,
			Meaning: "Bytes that this node has sent over links to the leader.",
			Read:    ofLink(link, func(e *Follower) int64 { sent, _ := e.Traffic(); return sent }),
		},
		{
			Name: "parley_cluster_link_received_bytes_total", Counter: true,
			Meaning: "Bytes that this node has received over links to the leader.",
			Read:    ofLink(link, func(e *Follower) int64 { _, received := e.Traffic(); return received }),
		},
		{
			Name: "parley_cluster_queues_asked_total", Counter: true,
			Meaning: "Event queues that this node has asked the leader for, because their clients poll this node.",
			Read:    ofLink(link, func(e *Follower) int64 { return e.Counters.Adoptions.Load() }),
		},
		{
			Name: "parley_cluster_late_replicas",
			Meaning: "Organizations whose requests this edge refuses, because the replica is more than 10 seconds " +
				"behind.",
			Read: ofLink(link, func(e *Follower) int64 { return e.Replicas().Late }),
		},
		{
			Name: "parley_cluster_text_calls_total", Counter: true,
			Meaning: "Requests of this edge to the leader for message texts: one for a page of messages.",
			Read:    ofLink(link, func(e *Follower) int64 { return e.Counters.TextCalls.Load() }),
		},
		{
			Name: "parley_cluster_replicas_unloaded_total", Counter: true,
			Meaning: "Idle replicas that this edge has unloaded.",
			Read:    ofLink(link, func(e *Follower) int64 { return e.Counters.Unloads.Load() }),
		},
	}
}

// Labeled returns the metrics of a node that have a label. core and link are as for Metrics.
func Labeled(core *Leader, link *Follower) []registry.Labeled {
	ofPeers := func(read func(PeerMetrics) float64) func(func(string, float64)) {
		return func(send func(string, float64)) {
			if core == nil {
				return
			}
			for _, p := range core.Peers() {
				send(p.Node, read(p))
			}
		}
	}
	return []registry.Labeled{
		{
			Name: "parley_cluster_forwards_total", Counter: true, Label: "result",
			Meaning: "Attempts to forward a request: answered; not_sent, to be repeated; or ambiguous, because the " +
				"link " +
				"broke before the answer. The leader then looks the request up by its id.",
			Each: func(send func(string, float64)) {
				if link != nil {
					send("answered", float64(link.Counters.Answered.Load()))
					send("not_sent", float64(link.Counters.NotSent.Load()))
					send("ambiguous", float64(link.Counters.Ambiguous.Load()))
				}
			},
		},
		{
			Name: "parley_cluster_peer_connected", Label: "node",
			Meaning: "At the leader: 1 while a node has a link.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(registry.OneIf(p.Connected)) }),
		},
		{
			Name: "parley_cluster_peer_lag_facts", Label: "node",
			Meaning: "At the leader: facts that a node has not applied, as of its last report, twice a second.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.FactsBehind) }),
		},
		{
			Name: "parley_cluster_peer_lag_seconds", Label: "node",
			Meaning: "At the leader: time since a node last had the newest fact of the organization where it is " +
				"farthest " +
				"behind, with a precision of half a second.",
			Each: ofPeers(func(p PeerMetrics) float64 { return p.SecondsBehind }),
		},
		{
			Name: "parley_cluster_peer_queues", Label: "node",
			Meaning: "At the leader: event queues that a node hosts.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.Queues) }),
		},
		{
			Name: "parley_cluster_peer_sent_bytes_total", Counter: true, Label: "node",
			Meaning: "At the leader: bytes sent to a node over its links, without requests for files.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.Sent) }),
		},
		{
			Name: "parley_cluster_peer_received_bytes_total", Counter: true, Label: "node",
			Meaning: "At the leader: bytes received from a node over its links, without requests for files.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.Received) }),
		},
		{
			Name: "parley_cluster_peer_queued_bytes", Label: "node",
			Meaning: "At the leader: bytes of messages in the send queue of the link of a node.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.QueuedBytes) }),
		},
		{
			Name: "parley_cluster_peer_adoptions_total", Counter: true, Label: "node",
			Meaning: "At the leader: event queues that a node has adopted.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.Adoptions) }),
		},
		{
			Name: "parley_cluster_peer_links_total", Counter: true, Label: "node",
			Meaning: "At the leader: links that a node has opened.",
			Each:    ofPeers(func(p PeerMetrics) float64 { return float64(p.Links) }),
		},
		{
			Name: "parley_cluster_peer_copies_per_fact", Label: "node",
			Meaning: "At the leader: average number of times that a fact was sent over one link of a node. It must " +
				"be 1.00.",
			Each: func(send func(string, float64)) {
				if core == nil {
					return
				}
				for _, p := range core.Peers() {
					if p.FactsFresh > 0 {
						send(p.Node, float64(p.FactsSent)/float64(p.FactsFresh))
					}
				}
			},
		},
	}
}
