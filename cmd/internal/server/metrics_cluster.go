package server

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/cmd/internal/cluster"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// link returns the edge's link to the core, or that of a core to the leader; nil at a single node.
func (r *metricReading) link() *cluster.Edge {
	if r.server.edge != nil {
		return r.server.edge.Edge
	}
	return r.server.link
}

// ofLink returns a function that reads a metric of the link, 0 at a single node.
func ofLink(read func(*cluster.Edge) int64) func(*metricReading) int64 {
	return func(r *metricReading) int64 {
		if l := r.link(); l != nil {
			return read(l)
		}
		return 0
	}
}

// ofCore returns a function that reads a metric of a core, 0 elsewhere.
func ofCore(read func(*cluster.Core) int64) func(*metricReading) int64 {
	return func(r *metricReading) int64 {
		if r.server.core == nil {
			return 0
		}
		return read(r.server.core)
	}
}

// clusterMetrics are the metrics without labels of a node in a cluster.
var clusterMetrics = []metric{
	{
		name: "parley_cluster_facts_sent_total", kind: prometheus.CounterValue,
		meaning: "Facts that this core has sent to edges; a fact counts once for each edge that gets it.",
		read:    ofCore(func(c *cluster.Core) int64 { return c.FactsSent.Load() }),
	},
	{
		name: "parley_cluster_presence_rows_sent_total", kind: prometheus.CounterValue,
		meaning: "Changes of users' presence that this core has sent to other cores.",
		read:    ofCore(func(c *cluster.Core) int64 { return c.PresenceCopied.Load() }),
	},
	{
		name: "parley_cluster_states_compared_total", kind: prometheus.CounterValue,
		meaning: "Organizations whose state parley cluster verify has compared on all nodes, at this core.",
		read:    ofCore(func(c *cluster.Core) int64 { return c.Compared.Load() }),
	},
	{
		name: "parley_cluster_states_different_total", kind: prometheus.CounterValue,
		meaning: "Organizations whose state was different on another node, or could not be compared.",
		read:    ofCore(func(c *cluster.Core) int64 { return c.Different.Load() }),
	},
	{
		name: "parley_cluster_voters", kind: prometheus.GaugeValue,
		meaning: "Voters: cores with a vote, as far as this core knows.",
		read:    ofCore(func(c *cluster.Core) int64 { return int64(c.Voters()) }),
	},
	{
		name: "parley_cluster_level", kind: prometheus.GaugeValue,
		meaning: "Rule level of the cluster, which parley cluster level raises; 0 on servers that are not cores.",
		read:    ofCore(func(c *cluster.Core) int64 { return int64(c.Node.Level()) }),
	},
	{
		name: "parley_cluster_requests_served_total", kind: prometheus.CounterValue,
		meaning: "Requests that other nodes have forwarded and this core has answered.",
		read:    ofCore(func(c *cluster.Core) int64 { return c.Served.Load() }),
	},
	{
		name: "parley_cluster_requests_failed_total", kind: prometheus.CounterValue,
		meaning: "Requests that other nodes have forwarded and this core could not decode or answer.",
		read:    ofCore(func(c *cluster.Core) int64 { return c.ServeFailed.Load() }),
	},
	{
		name: "parley_cluster_link_up", kind: prometheus.GaugeValue,
		meaning: "1 while this node has a link to the leader.",
		read:    ofLink(func(e *cluster.Edge) int64 { return oneIf(e.Silence() >= 0) }),
	},
	{
		name: "parley_cluster_ready", kind: prometheus.GaugeValue,
		meaning: "At an edge: 1 while its replicas have caught up since the link to the leader was opened. At a core: " +
			"1 while it has a link.",
		read: ofLink(func(e *cluster.Edge) int64 { return oneIf(e.IsReady()) }),
	},
	{
		name: "parley_cluster_keeps_queues", kind: prometheus.GaugeValue,
		meaning: "1 while this core is a follower and hosts event queues of its clients; otherwise it forwards polls.",
		read:    ofLink(func(e *cluster.Edge) int64 { return oneIf(e.HostsAnyQueues()) }),
	},
	{
		name: "parley_cluster_link_silence_seconds", kind: prometheus.GaugeValue, scale: 1e-3,
		meaning: "Time since the last message of the leader; 0 without a link.",
		read: ofLink(func(e *cluster.Edge) int64 {
			return int64(max(0, e.Silence()) / time.Millisecond)
		}),
	},
	{
		name: "parley_cluster_links_opened_total", kind: prometheus.CounterValue,
		meaning: "Links to a leader that this node has opened.",
		read:    ofLink(func(e *cluster.Edge) int64 { return e.Counters.Connects.Load() }),
	},
	{
		name: "parley_cluster_link_sent_bytes_total", kind: prometheus.CounterValue,
		meaning: "Bytes that this node has sent over links to the leader.",
		read:    ofLink(func(e *cluster.Edge) int64 { sent, _ := e.Traffic(); return sent }),
	},
	{
		name: "parley_cluster_link_received_bytes_total", kind: prometheus.CounterValue,
		meaning: "Bytes that this node has received over links to the leader.",
		read:    ofLink(func(e *cluster.Edge) int64 { _, received := e.Traffic(); return received }),
	},
	{
		name: "parley_cluster_queues_asked_total", kind: prometheus.CounterValue,
		meaning: "Event queues that this node has asked the leader for, because their clients poll this node.",
		read:    ofLink(func(e *cluster.Edge) int64 { return e.Counters.Adoptions.Load() }),
	},
	{
		name: "parley_cluster_late_replicas", kind: prometheus.GaugeValue,
		meaning: "Organizations whose requests this edge refuses, because the replica is more than 10 seconds behind.",
		read:    ofLink(func(e *cluster.Edge) int64 { return e.Replicas().Late }),
	},
	{
		name: "parley_cluster_text_calls_total", kind: prometheus.CounterValue,
		meaning: "Requests of this edge to the leader for message texts: one for a page of messages.",
		read:    ofLink(func(e *cluster.Edge) int64 { return e.Counters.TextCalls.Load() }),
	},
	{
		name: "parley_cluster_replicas_unloaded_total", kind: prometheus.CounterValue,
		meaning: "Idle replicas that this edge has unloaded.",
		read:    ofLink(func(e *cluster.Edge) int64 { return e.Counters.Unloads.Load() }),
	},
}

// The metrics of a node in a cluster that have a label.
var (
	forwards = newLabeledMetric(labeledMetric{
		name: "parley_cluster_forwards_total", kind: "counter", label: "result",
		meaning: "Attempts to forward a request: answered; not_sent, to be repeated; or ambiguous, because the link " +
			"broke before the answer. The leader then looks the request up by its id.",
	})
	peerConnected = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_connected", kind: "gauge", label: "node",
		meaning: "At the leader: 1 while a node has a link.",
	})
	peerLagFacts = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_lag_facts", kind: "gauge", label: "node",
		meaning: "At the leader: facts that a node has not applied, as of its last report, twice a second.",
	})
	peerLagSeconds = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_lag_seconds", kind: "gauge", label: "node",
		meaning: "At the leader: time since a node last had the newest fact of the organization where it is farthest " +
			"behind, with a precision of half a second.",
	})
	peerQueues = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_queues", kind: "gauge", label: "node",
		meaning: "At the leader: event queues that a node hosts.",
	})
	peerSent = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_sent_bytes_total", kind: "counter", label: "node",
		meaning: "At the leader: bytes sent to a node over its links, without requests for files.",
	})
	peerReceived = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_received_bytes_total", kind: "counter", label: "node",
		meaning: "At the leader: bytes received from a node over its links, without requests for files.",
	})
	peerQueued = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_queued_bytes", kind: "gauge", label: "node",
		meaning: "At the leader: bytes of messages in the send queue of the link of a node.",
	})
	peerAdoptions = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_adoptions_total", kind: "counter", label: "node",
		meaning: "At the leader: event queues that a node has adopted.",
	})
	peerLinks = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_links_total", kind: "counter", label: "node",
		meaning: "At the leader: links that a node has opened.",
	})
	peerCopies = newLabeledMetric(labeledMetric{
		name: "parley_cluster_peer_copies_per_fact", kind: "gauge", label: "node",
		meaning: "At the leader: average number of times that a fact was sent over one link of a node. It must be 1.00.",
	})
)

// clusterLabeledMetrics returns the metrics with a label, in the order of the reference page.
func clusterLabeledMetrics() []*labeledMetric {
	return []*labeledMetric{forwards, peerConnected, peerLagFacts, peerLagSeconds, peerQueues, peerSent, peerReceived,
		peerQueued, peerAdoptions, peerLinks, peerCopies}
}

// sendClusterMetrics sends the metrics with a label.
func (r *metricReading) sendClusterMetrics(send func(*labeledMetric, float64, ...string)) {
	if l := r.link(); l != nil {
		c := &l.Counters
		send(forwards, float64(c.Answered.Load()), "answered")
		send(forwards, float64(c.NotSent.Load()), "not_sent")
		send(forwards, float64(c.Ambiguous.Load()), "ambiguous")
	}
	if r.server.core == nil {
		return
	}
	for _, p := range r.server.core.Peers() {
		send(peerConnected, float64(oneIf(p.Connected)), p.Node)
		send(peerLagFacts, float64(p.FactsBehind), p.Node)
		send(peerLagSeconds, p.SecondsBehind, p.Node)
		send(peerQueues, float64(p.Queues), p.Node)
		send(peerSent, float64(p.Sent), p.Node)
		send(peerReceived, float64(p.Received), p.Node)
		send(peerQueued, float64(p.QueuedBytes), p.Node)
		send(peerAdoptions, float64(p.Adoptions), p.Node)
		send(peerLinks, float64(p.Links), p.Node)
		if p.FactsFresh > 0 {
			send(peerCopies, float64(p.FactsSent)/float64(p.FactsFresh), p.Node)
		}
	}
}

// clusterBounds are the bounds of a node in a cluster.
var clusterBounds = []Bound{
	{
		Name: "replicas",
		Of:   "organizations that an edge has in memory",
		Overflow: "replicas without clients for a minute are unloaded; if there are none, requests for other " +
			"organizations are answered 503",
		Reason: "each has its own actors and caches, about 200 kB when it is empty",
		limit:  func(r *metricReading) int64 { return int64(r.server.MaxReplicas) },
		used:   ofLink(func(e *cluster.Edge) int64 { return e.Replicas().Open }),
		hits:   ofLink(func(e *cluster.Edge) int64 { return e.Counters.NoRoom.Load() }),
	},
	{
		Name:     "replica_bytes",
		Of:       "bytes of loaded rows, and of the facts since, of all organizations on an edge",
		Overflow: "as for replicas; one organization is always loaded, whatever its size",
		Reason:   "they take about twice as much memory",
		limit:    func(r *metricReading) int64 { return int64(r.server.memory().Replicas(r.server.ReplicaMemory)) },
		used:     ofLink(func(e *cluster.Edge) int64 { return e.Replicas().Bytes }),
	},
	{
		Name:     "unknown_names",
		Of:       "requests at an edge that wait for the answer whether there is an organization with their subdomain",
		Overflow: "503 with Retry-After",
		Reason:   "each takes about 50 kB; requests for one subdomain share a question to the leader",
		limit:    constant(cluster.MaxUnknownNames),
		used:     ofLink(func(e *cluster.Edge) int64 { n, _ := e.UnknownNames(); return n }),
		hits:     ofLink(func(e *cluster.Edge) int64 { _, n := e.UnknownNames(); return n }),
	},
	{
		Name:     "forwarded_polls",
		Of:       "forwarded polls of a core that wait at the leader, because the core cannot host event queues",
		Overflow: "503; the client polls again, perhaps another node",
		Reason:   "each takes about 50 kB at both nodes; usually a node answers its polls itself",
		limit:    constant(httpd.MaxForwardedPolls),
		used:     func(r *metricReading) int64 { n, _ := r.server.http.ForwardedPolls(); return n },
		hits:     func(r *metricReading) int64 { _, n := r.server.http.ForwardedPolls(); return n },
	},
	{
		Name:     "catching_up",
		Of:       "requests of a node that wait for the newest changes of the leader before they are refused",
		Overflow: "503 with Retry-After",
		Reason:   "each takes about 50 kB; usually they wait for milliseconds, and at most 2 seconds",
		limit:    constant(httpd.MaxCatchingUp),
		used:     func(r *metricReading) int64 { n, _ := r.server.http.CatchingUp(); return n },
		hits:     func(r *metricReading) int64 { _, n := r.server.http.CatchingUp(); return n },
	},
	{
		Name:     "forwarded_calls",
		Of:       "requests and followed organizations of one node that the leader handles",
		Overflow: "others wait at the node that sends them",
		Reason:   "each takes about 20 kB for its stacks and buffers",
		limit:    constant(peer.MaxCalls),
	},
	{
		Name: "peer_handshakes",
		Of: fmt.Sprintf("connections to peer-listen without a certificate yet; %d places of them are for addresses "+
			"of nodes, at most %d for one; of the others at most %d for one", peer.MaxMemberHandshakes,
			peer.MaxMemberHandshakesPerAddress, peer.MaxHandshakesPerAddress),
		Overflow: "the oldest one that has sent nothing is closed, of the address with most",
		Reason:   "each takes about 30 kB, and strangers must not keep nodes out",
		limit:    constant(peer.MaxMemberHandshakes + peer.MaxHandshakes),
		used:     ofCore(func(c *cluster.Core) int64 { n, _ := c.Handshakes(); return int64(n) }),
		hits:     ofCore(func(c *cluster.Core) int64 { _, n := c.Handshakes(); return n }),
	},
	{
		Name:     "link_queue_bytes",
		Of:       "bytes in the send queue of the link of one node; also limited to 10,000 messages",
		Overflow: "the link is cut; when the node connects again it gets the present state",
		Reason:   "a node that reads slowly must not fill the memory of the leader",
		limit:    constant(peer.MaxQueuedBytes),
		used: ofCore(func(c *cluster.Core) (most int64) {
			for _, p := range c.Peers() {
				most = max(most, p.QueuedBytes)
			}
			return most
		}),
	},
	{
		Name:     "owner_connections",
		Of:       "connections of a node to the leader for files and large requests",
		Overflow: "a request waits for 10 seconds, then 503",
		Reason:   "a download lasts as long as its client takes",
		limit:    constant(httpd.MaxOwnerConnections),
	},
}
