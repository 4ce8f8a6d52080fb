// Package stream has what leaves the owner of an organization: committed batches, in order, to the replica of its own
// node and to those of others, and the answers that wait for them. It is plain data; whoever makes a batch and whoever
// applies one need nothing else of each other.
package stream

import (
	"errors"
	"sync/atomic"

	"parley/actors/realm"
)

// Committed is a batch that is on disk, with the events of its facts. Everything outside the realm that follows its
// state is updated only from its committed batches, in order: sessions, unacked events, search, accounts, the cache of
// texts, outbox jobs and exports.
type Committed struct {
	Batch        realm.Batch
	Facts        []realm.Fact
	Publications []realm.Publication // also the ephemeral events of the turn
	// Sender is the key of the connection to the node that has sent the request; "" for this node.
	Sender string
	// MarkdownConfig and Closed are the state after the batch that other goroutines read: realm.MarkdownConfigVersion
	// and realm.Closed.
	MarkdownConfig realm.Seq
	Closed         bool
}

// NewCommitted returns a batch whose facts have been applied to a realm.
func NewCommitted(r *realm.Realm, b realm.Batch, facts []realm.Fact, publications []realm.Publication) *Committed {
	return &Committed{Batch: b, Facts: facts, Publications: publications, MarkdownConfig: r.MarkdownConfigVersion(),
		Closed: r.Closed()}
}

// Output is sent once the facts that it depends on are on disk: events, and after them an answer.
type Output struct {
	Publications []realm.Publication
	Weight       int  // of their events for each recipient; see queue.Weight
	Admitted     bool // it belongs to a command that the flow control has admitted
	Answer       Answer
}

// Result is the result of a command or view.
type Result struct {
	Value any
	Err   error
}

// ErrInternal is the result if a bug happens before anything was recorded.
var ErrInternal = errors.New("internal error")

// Answer is a result on its way to the caller of a command or view. The zero value is for nobody.
type Answer struct {
	Result
	Reply chan Result               // has room for the result; nil: nobody waits there
	Async realm.CommandWithCallback // gets the result; may be nil
	// InFlight counts the commands with Async that have no result yet; nil without Async.
	InFlight *atomic.Int64
	Sent     func() // is called after the result was sent; may be nil
}

// Send passes the result to the caller.
func (a *Answer) Send() {
	if a.Reply != nil {
		a.Reply <- a.Result
	}
	if a.Async != nil {
		a.InFlight.Add(-1)
		a.Async.Done(a.Value, a.Err)
	}
	if a.Sent != nil {
		a.Sent()
	}
}
