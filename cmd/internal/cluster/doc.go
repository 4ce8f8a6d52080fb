// Package cluster connects the nodes of a cluster. It implements the membership in the data directory, the messages
// between nodes, and both ends of a link. Package server builds a node from it; package replicated keeps the log.
//
// # Roles
//
//	leader            the core that owns the organizations: it gives turns, writes the log and serves links
//	core              has all organizations on its disk and a vote; hosts event queues of its clients
//	core, no vote     has joined and applies the log; it asks for a vote when it has caught up
//	edge              stores nothing: replicas in memory, for clients that read and poll
//	removed           its certificate is refused at every core
//
// Leader is the end of a link at the leader, Follower the end at a node that follows: an edge, or a core that does not
// lead.
//
// # Links
//
// Every node except the leader opens one link to the leader (package peer: TLS 1.3, certificates of the cluster). Only
// the leader accepts links; the other cores refuse them, and the node tries the next core. Cores also have connections
// among each other for Raft and for files, and nodes send uploads and downloads to the leader over HTTP.
//
//	node ── messages, calls (linkTable) ──► leader      Raft, files: core ◄──► core
//	node ◄── messages (leaderTable) ─────── leader      HTTP: node ──► leader
//
// The leader looks up each message in linkTable: the kinds of nodes that may send it, and its largest size. It refuses
// all others and ends the link of a node that sent a forbidden message. A node trusts the messages of the core that it
// has dialed.
//
//	messages                                         from
//	open, close, close-queue, tick, report, digest,
//	adopt, hosted, acks, online                      cores, edges
//
//	calls                                            from
//	forward (a request of a client), seq, command    cores, edges
//	rows, follow, text, texts, realm                 edges
//	queues                                           cores
//	import                                           cores with a vote
//
//	from the leader: presence, ephemeral, ask-digest, adopted, drop, evict, seqs, members
//
// Forwarded changes and questions for the newest fact (seq) share one stream of a link; other calls have their own.
//
// A command is an operator command. Package server has a table of them, with the nodes that may send each: almost all
// need a core with a vote, and an edge may ask for the status only.
//
// # A change of the leader
//
//	old leader                        new leader                            other nodes
//
//	crashes, is cut off, or is        Raft: wins the election
//	asked to move the leadership      applies the entries of earlier
//	(waits for turns in progress)     leaders
//	                                  owns all organizations by one entry,
//	realm actors step down: they      those in memory as its standbys have
//	refuse or forward                 them; opens the event queues of all nodes
//	                                  from its unacked events
//	SetLeader(false): its links       SetLeader(true): accepts links ◄───── dial it, or wait up to half
//	end after 100 ms                                                        a second while it is elected
//	follows like the others ────────► sends presence, members  ───────────► send their lists of queues
//	                                  answers requests that are repeated ◄─ send open requests again,
//	                                  from their facts, by request id       with the same request ids
//
// Waiting polls stay open, or are answered without events at the two nodes that change their role. A client polls again
// with its last_event_id, so it misses no event and gets none twice.
package cluster
