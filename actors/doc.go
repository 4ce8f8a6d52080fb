// Package actors runs the organizations of one process: mailboxes, supervision and timers around the plain data of its
// sub-packages.
//
//	Turn, View ──► realm actor ── facts ──► journal actor ──► Disk.Append (one synced batch)
//	RunAsync          │    ▲                      │
//	                  │    └── facts ≤ n on disk ─┘
//	                  │ release: what depends on facts ≤ n leaves
//	                  ├──► answers, accounts, search, texts, unacked events (Committed)
//	                  ├──► Outbox.AddJobs: emails, push notifications, webhooks
//	                  └──► notices ──► session actors ──► event queues ──► parked polls
//	                                        ▲
//	Poll, PollAll ──────────────────────────┘
//	ReportPresence ──► presence actor ──► rows of the next snapshot
//
// There is one realm actor, one presence actor and 16 session actors for each organization, and one journal actor.
//
// The rooms, none of which knows the cluster or the role of a node:
//
//	mailbox   runs actors, and is the only one that names the actor library
//	stream    what leaves an owner: committed batches, and outputs with events and answers
//	owner     turns, the journal and the rows: it knows no client, no session and no other node
//	replica   applies a stream in order and serves views
//	delivery  flow control, session actors, event queues, their homes and adoption
//	actors    the server and the actor of a realm, whose role starts, joins and ends the three above
//
// The role is a type (realm.go and role_edge.go have the charts):
//
//	single server  ownerRole                Turns ──► stream ──► replica ──► delivery
//	leading core   ownerRole                Turns ──► Raft ──► stream ──► replica ──► delivery ──► other nodes
//	other core     standbyRole              Raft ──► stream ──► replica ──► delivery
//	edge           edgeRole                 link ──► stream ──► replica ──► delivery
//	in between     reclaimingRole, loadingRole, edgeLoadingRole, closedRole: everything is refused
//
// The session actors of all organizations share a few goroutines and take turns. Flow control lets commands wait for
// their turn when events are delivered late.
//
// The contract:
//
//   - The process sends nothing that a crash could undo. Answers, events and outbox jobs wait until the facts that they
//     depend on are on disk; the answer to a view waits for the facts that the view could see.
//   - A batch that the journal refuses ends the ownership of its realm, not the process (role_owner.go). Work that only
//     the owner may do begins and ends with the ownership (owner_tasks.go).
//   - A node that follows applies the committed batches of the owner, serves views and polls, and refuses commands: it
//     forwards their requests to the owner. Each event queue is hosted by one node, at first the node that received the
//     request to open it.
//   - A command whose request has an id is executed at most once (owner.Turns).
//   - A turn that panics before its first fact costs one answer. Any other panic in an actor, and a failed write, calls
//     Options.Fatal: the process ends, and the next start recovers.
//   - Events of a fact reach each queue in the order of the facts, under the same ids before and after a crash.
//   - Every mailbox, cache and list has a limit (limits.go, and unacked.go and flow.go of delivery). When a limit is
//     reached, commands are rejected as busy or the slowest queues are evicted.
//
// The package imports plain data only. The disk, the search index, the client protocol, the renderer and the outbox are
// interfaces that others implement.
package actors
