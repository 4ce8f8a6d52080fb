// Package stream has what leaves the owner of an organization: committed batches, in order, to the replica of its own
// node and to those of others, and the answers that wait for them. It is plain data; whoever makes a batch and whoever
// applies one need nothing else of each other.
package stream

import (
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
}

// Result is the result of a command or view.
type Result struct {
	Value any
	Err   error
}

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
