package delivery

import "parley/actors/realm"

// Limits of the messages between a node that follows and the owner about event queues, so that each message fits into a
// frame of the link.
const (
	// MaxHostedQueues is how many queues one HostedQueues has: about 100 kB.
	MaxHostedQueues = 2000
	// MaxAdoptedBytes limits the events in one Adopted, by their estimated memory. A larger event is sent alone.
	MaxAdoptedBytes = 128 << 10
	// MaxWaitingAdoptions is how many requests for queues of one realm wait until the facts that their nodes have
	// applied are published here: as many as requests of a realm may be in progress.
	MaxWaitingAdoptions = 10_000
)

// Adoption asks the owner of a realm to move an event queue to the node that asks, because the client of the queue
// polls that node. The node that hosts a queue is called its home.
type Adoption struct {
	Queue QueueRef
	Last  int64 // last_event_id of the client
	// After is 0 for the first part of the events, and then the Through of the previous Adopted: the owner sends only
	// the events after that fact.
	After realm.Seq
	// Through is the last fact that the node has applied; the node gets the events of later facts from its replica. 0:
	// the replica does not know the queue yet. Then the node only asks whether the queue exists, and its home does not
	// change.
	Through realm.Seq
	Number  uint64 // counts the adoptions of the node; see QueueAcks
}

// Adopted answers an Adoption.
type Adopted struct {
	Found bool      // false: the realm has no such queue, or it is of another user
	Moved bool      // another node has adopted the queue since the first part of the events was sent
	Seq   realm.Seq // last fact on disk
	// Events are the publications up to Through that the client may not have acknowledged, ordered by fact. Their only
	// audience is the queue's user.
	Events  []realm.Publication
	Through realm.Seq
	More    bool // there are more events up to Adoption.Through
	// Texts are the message texts of these events, at most MaxAdoptedBytes. The node fetches other texts when it needs
	// them.
	Texts []realm.TextWrite
}

// QueueAcks has, for each session actor of a node that follows, the facts up to which its clients have acknowledged all
// events of a realm. The owner stores the unacked events and drops those that no node needs.
type QueueAcks struct {
	// Acked is the fact up to which every queue of the session actor has acknowledged everything; the largest number if
	// there is no queue. Seen is the newest fact that it has received, and Adopted the number of the newest Adoption
	// that it counts: the owner ignores reports older than a registration or an adoption.
	Acked, Seen [SessionActors]realm.Seq
	Adopted     [SessionActors]uint64
}

// HostedQueues is the list of all queues of a realm that a node hosts. It is sent in parts of at most MaxHostedQueues.
type HostedQueues struct {
	Queues []QueueRef
	More   bool // further parts follow
	// The list has every queue that was registered up to fact Through or adopted up to Number.
	Through realm.Seq
	Number  uint64
}

// Home is another node that hosts event queues of realms which this node owns. Its methods may be called by any
// goroutine and do not block.
type Home interface {
	Key() string // unique; for logs
	Lost() bool  // the connection to it has ended
	// DropQueues asks it to drop queues that have moved to other nodes. The list has at most MaxHostedQueues queues.
	DropQueues(realm.ID, []DroppedQueue)
	// EvictQueues asks it to close the queues whose clients have not acknowledged all facts before the given one.
	EvictQueues(realm.ID, realm.Seq)
}

// Owner is another node that owns realms which this node follows. Actors call its methods, which must not block. The
// calls of a method must arrive in order. While there is no connection, calls without an answer are lost.
type Owner interface {
	// CloseQueue asks to close a queue whose client no longer polls.
	CloseQueue(realm.ID, realm.QueueID)
	// Tick asks for an empty fact, because a queue has no event ids left for ephemeral events.
	Tick(realm.ID)
	// AdoptQueue asks for a queue whose client polls this node. answer is called once, from any goroutine. After an
	// error there is no connection, or it broke: this node asks again.
	AdoptQueue(id realm.ID, a Adoption, answer func(Adopted, error))
	// ReportQueues reports which queues this node hosts.
	ReportQueues(realm.ID, HostedQueues)
	// ReportAcks reports the acknowledgements of the clients of this node, at most once a second.
	ReportAcks(realm.ID, QueueAcks)
}
