// Package delivery brings the events of an organization to the event queues of its clients. It consumes what leaves the
// owner, and knows no role of a node.
//
//	Flow.Release ──► session actors ──► event queues ──► parked polls
//	                      ▲    │
//	Sessions.Poll ────────┘    └──► Main: acknowledgements, queues to adopt
//
// Sessions are the 16 session actors of one realm, and Main the actor of the realm's node that uses them. A user's
// queues belong to one session actor; a mailbox for each queue would cost more than the queue (BenchmarkFanout). Flow
// is the flow control: it sends events to the session actors a few at a time, and lets commands wait when events are
// late.
//
// A queue that this node does not host, or whose events it does not have, is adopted before its client gets events:
//
//	unknown ── poll ──► adopting ── OpenAdopted ──► adopting, with all later events
//	                        │                              │
//	                        ◄── error: the next poll ──────┤
//	                                                       └─ FinishAdoption ──► open
package delivery

import (
	"log/slog"
	"sync/atomic"
	"time"

	"parley/actors/mailbox"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// SessionActors is the number of session actors of an organization. It is large enough that two processors never wait
// for one actor, and small enough that a notice to every user is only a few sends.
const SessionActors = 16

// NoQueue is the acknowledgement of a session actor without queues.
const NoQueue = ^realm.Seq(0)

// QueueRef names an event queue.
type QueueRef struct {
	User realm.UserID
	ID   realm.QueueID
}

// DroppedQueue is a queue that has moved from another node to another node.
type DroppedQueue struct {
	QueueRef
	// Number is the number of the adoption that ends. A later adoption of the same queue by the same node stays valid.
	Number uint64
}

// Node has the methods of a node that the sessions of its realms call. Its methods may be called by any goroutine and
// do not block.
type Node interface {
	// CloseQueue asks the owner of a realm to close a queue. It may be lost; the caller asks again.
	CloseQueue(realm.ID, realm.QueueID)
	// Tick asks the owner to record an empty fact, because a queue has no event ids left for ephemeral events.
	Tick(realm.ID)
	// HasOtherNodes reports whether other nodes may host queues of a realm.
	HasOtherNodes(realm.ID) bool
	// MayChangeOwner reports whether a realm can be taken from this node: then a session actor without queues of the
	// realm may get some.
	MayChangeOwner() bool
	// ReadOnly reports whether no fact can be recorded.
	ReadOnly() bool
	// AuthVersion changes whenever a cached key lookup becomes invalid.
	AuthVersion() uint64
	// Charged returns the account that the bounds of a user count for, and whether the user is a bot.
	Charged(realm.ID, realm.UserID) (charged realm.UserID, bot bool)
	// Refused counts a refusal.
	Refused(error)
	// Home returns the node with a connection of that key, or nil if it has ended.
	Home(key string) Home
	// Realms returns the number of realms on this node.
	Realms() int
}

// Env has the parts that the sessions of all realms of a process share.
type Env struct {
	Node      Node
	Runtime   mailbox.Runtime
	Guard     func(mailbox.Actor) mailbox.Actor // of actors whose panic must end the process
	Log       *slog.Logger
	SinceOpen func() time.Duration // since the process began; never jumps
	Protocol  session.Protocol
	Texts     session.TextReader
	Metrics   *Metrics
	// Lag is how long events may wait for their delivery before commands have to wait for their turn; 0: without limit.
	Lag time.Duration
	// Limits are those of unacked events. MaxRefs is MaxUnackedRefs; tests lower it while session actors read it.
	Limits  Limits
	MaxRefs atomic.Int64
}

// elapsed returns the seconds since the process began.
func (e *Env) elapsed() int64 { return int64(e.SinceOpen() / time.Second) }

// Metrics are the counters and gauges of the sessions of all realms.
type Metrics struct {
	Deliveries, Polls, Heartbeats, QueuesEvicted atomic.Int64
	// Gauges: polls that wait, open event queues, and unacked events in them.
	ParkedPolls, OpenQueues, UnackedEvents atomic.Int64
	// Undelivered is how many recipients of notices wait for the session actors.
	Undelivered atomic.Int64
	// CommandsWaited counts the commands that had to wait because events were late, CommandsRefused those of them that
	// were refused, CommandWaitNanos the time that the others waited. CommandsWaiting is how many wait now.
	CommandsWaited, CommandsRefused, CommandWaitNanos, CommandsWaiting atomic.Int64
	// QueuesEvictedForMemory counts the queues among QueuesEvicted that were closed because of the limit of all unacked
	// events, QueuesEvictedForAccount those that were closed because their account used more than its share.
	QueuesEvictedForMemory, QueuesEvictedForAccount atomic.Int64
	// QueuesAdopted counts the event queues that another node became the home of, because their clients poll it.
	QueuesAdopted atomic.Int64
	// Gauges: facts whose events are stored because some queue has not acknowledged them, and an estimate of the memory
	// of these events.
	UnackedFacts, UnackedBytes atomic.Int64
}

// Sessions are the session actors of one realm, and the flow control before them. The fields do not change after Start,
// except Site, which is set before a realm that is being created gets its first client.
type Sessions struct {
	Realm realm.ID
	Site  realm.Site
	// RecentlyActive reports whether a user was seen in the last presence.PartialSubscriberDays.
	RecentlyActive func(realm.UserID) bool
	// ReplayedThrough is the fact up to which facts were replayed. The queues that they opened existed before this
	// process.
	ReplayedThrough realm.Seq
	Flow            *Flow

	// Undelivered is this realm's part of Metrics.Undelivered.
	Undelivered atomic.Int64
	// Shared says that another node has asked for queues of the realm.
	Shared atomic.Bool

	env  *Env
	main mailbox.Address
	// openings counts how often queues were opened other than by the fact of their registration, and opened has the
	// newest number that each session actor was sent: earlier reports do not include those queues. Main uses them.
	openings       uint64
	opened         [SessionActors]uint64
	largestAccount atomic.Int64 // see LargestAccount
	actors         [SessionActors]mailbox.Address
	// empty are the session actors without queues that have reported so.
	empty [SessionActors]atomic.Bool
	// refs has the unacked events of the charged accounts with many of them, by session actor; see limitRefs.
	refs [SessionActors]atomic.Pointer[map[realm.UserID]int]
}

// Prepare sets what Start and the actor of the realm need.
func (all *Sessions) Prepare(env *Env, id realm.ID) {
	all.env, all.Realm, all.Flow = env, id, newFlow(env, all)
}

// Start starts the session actors. main is the actor of the realm that gets their messages: AckReport, AdoptQueue and
// *LaggingReport.
func (all *Sessions) Start(main mailbox.Address) {
	all.main = main
	spawn := all.env.Runtime.SessionSpawner()
	for k := range all.actors {
		all.actors[k] = spawn(all.env.Guard(newSessionActor(all, k)))
	}
}

// Stop stops the session actors: messages to them are dropped from then on.
func (all *Sessions) Stop() {
	for _, a := range all.actors {
		all.env.Runtime.Stop(a)
	}
}

// ActorOf returns the index of a user's session actor.
func ActorOf(u realm.UserID) int { return int(uint64(u) % SessionActors) }

// Message is a message to a session actor.
type Message interface{ handle(*sessionActor) }

// Send sends a message to one session actor.
func (all *Sessions) Send(sessionActor int, m Message) {
	all.env.Runtime.Send(all.actors[sessionActor], m)
}

// SendAll sends a message to every session actor.
func (all *Sessions) SendAll(m Message) {
	for k := range all.actors {
		all.Send(k, m)
	}
}

// SendInOrder sends a message to one session actor after the events that were released before.
func (all *Sessions) SendInOrder(sessionActor int, m Message) {
	all.Flow.runInOrder(func() { all.Send(sessionActor, m) })
}

// SendAllInOrder sends a message to every session actor after the events that were released before.
func (all *Sessions) SendAllInOrder(m Message) {
	all.Flow.runInOrder(func() { all.SendAll(m) })
}

// CountUndelivered counts n more recipients of events that wait in the mailboxes of the session actors.
func (all *Sessions) CountUndelivered(n int64) {
	all.env.Metrics.Undelivered.Add(n)
	all.Undelivered.Add(n)
}

// nextOpening returns the number of a new opening of queues by a session actor.
func (all *Sessions) nextOpening(sessionActor int) uint64 {
	all.openings++
	all.opened[sessionActor] = all.openings
	return all.openings
}

// HasQueues reports whether a session actor has queues. A closed queue still counts for up to two seconds.
func (all *Sessions) HasQueues() bool {
	for k := range all.empty {
		if !all.empty[k].Load() {
			return true
		}
	}
	return false
}

// Sweep lets every session actor with queues send heartbeats, close idle queues and report acknowledgements, and
// refuses commands that have waited too long.
func (all *Sessions) Sweep() {
	now := all.env.elapsed()
	for k := range all.actors {
		if !all.empty[k].Load() {
			all.Send(k, sweepQueues{now: now})
		}
	}
	all.Flow.expire()
}

// CollectAcks makes every session actor report its acknowledgements, and waits until they have.
func (all *Sessions) CollectAcks() {
	done := make(chan struct{}, SessionActors)
	all.SendAllInOrder(sweepQueues{now: all.env.elapsed(), done: done})
	for range all.actors {
		<-done
	}
}

// Poll sends polls to the session actors that own their queues. The actors answer them, at once or later, and reference
// each poll until it is answered, but not the list.
func (all *Sessions) Poll(list []*queue.PollRequest) {
	var sizes [SessionActors]int
	for _, p := range list {
		sizes[ActorOf(p.User)]++
	}
	rest := make(pollBatch, len(list)) // the memory of all parts
	var parts [SessionActors]pollBatch
	for k, n := range sizes {
		parts[k], rest = rest[:0:n], rest[n:]
	}
	for _, p := range list {
		k := ActorOf(p.User)
		parts[k] = append(parts[k], p)
	}
	for k, p := range parts {
		if len(p) > 0 {
			all.env.Runtime.Send(all.actors[k], p)
		}
	}
}

// CancelPoll says that the client of a waiting poll has left.
func (all *Sessions) CancelPoll(u realm.UserID, q realm.QueueID, r queue.Reply) {
	all.Send(ActorOf(u), &cancelPoll{u, q, r})
}

// EndPolls answers every waiting poll of a user with no events after a time, because an API key of the user was
// revoked.
func (all *Sessions) EndPolls(u realm.UserID, answerAfter time.Duration) {
	all.Send(ActorOf(u), endPolls{u, answerAfter})
}

// Drain answers every waiting poll with a heartbeat, and lets no further one wait. done gets a value from each session
// actor, SessionActors in all.
func (all *Sessions) Drain(done chan<- struct{}) { all.SendAll(drainPolls{done}) }

// State is the state of a user's queues for messages, for notifications. Polling: one of them is in use. Received: the
// client of one has acknowledged everything up to a fact.
type State struct{ Polling, Received bool }

// StateOf returns the state of a user's queues on this node.
func (all *Sessions) StateOf(u realm.UserID, seq realm.Seq) State {
	m := &checkState{u, seq, make(chan State, 1)}
	all.Send(ActorOf(u), m)
	return <-m.reply
}

// Messages of the session actors to Main.
type (
	// AckReport says how far the clients of a session actor have acknowledged the realm's facts.
	AckReport struct {
		SessionActor int
		Seq          realm.Seq // every queue has acknowledged everything up to this fact
		Newest       realm.Seq // newest fact that the session actor has received
		Confirmed    bool      // the last of its restored queues has just been polled
		Opening      uint64    // newest opening that the report is about
	}
	// AdoptQueue asks to make this node the home of a queue. Main answers with FinishAdoption, and before it, if events
	// must be fetched from the owner, with OpenAdopted.
	AdoptQueue struct {
		Queue QueueRef
		Last  int64 // last_event_id of the client
	}
	// LaggingReport is the answer to FindLagging.
	LaggingReport struct {
		SessionActor int
		Round        uint64
		Newest       realm.Seq        // newest fact that the session actor has received
		Accounts     []LaggingAccount // by Open
	}
)

// LaggingAccount is an account with unacked events.
type LaggingAccount struct {
	User  realm.UserID
	Acked realm.Seq // fact that every queue of the account has acknowledged
	Open  realm.Seq // the same without queues that are being closed; NoQueue: there are no others
}
