package actors

import (
	"errors"
	"sync/atomic"

	"parley/actors/realm"
)

// Metrics are counted where things happen and read by the metrics page.
type Metrics struct {
	Turns, Views, Busy, Deliveries, Polls, Heartbeats, QueuesEvicted, Snapshots atomic.Int64
	// Parked polls, open queues, events their clients have not acknowledged, and facts whose events are kept for them.
	ParkedPolls, OpenQueues, UnackedEvents, UnackedFacts atomic.Int64
	// KeptBytes is about what these events take in memory; Undelivered is the recipients of notices that wait for sessions.
	UnackedBytes, Undelivered atomic.Int64
	// GivenUpBytes of the queues given up are those that fell to MaxUnackedBytes or MaxUnackedTotal.
	QueuesEvictedForMemory atomic.Int64
}

// RealmMetrics are the meters of each organization.
type RealmMetrics struct {
	InFlight           map[realm.ID]int64 // commands and views in its mailbox or waiting for the disk
	DurableFacts       map[realm.ID]int64
	SnapshotAgeSeconds map[realm.ID]int64 // presenceSince its rows were last written, or it was opened
	Refusals           map[string]int64   // commands and views refused, by the protocol's code
}

// RealmMetrics reads them.
func (srv *Server) RealmMetrics() RealmMetrics {
	m := RealmMetrics{map[realm.ID]int64{}, map[realm.ID]int64{}, map[realm.ID]int64{}, map[string]int64{}}
	now := srv.now().Unix()
	srv.eachRealm(func(r *realmHandle) {
		m.InFlight[r.id], m.DurableFacts[r.id] = r.inFlight.Load(), int64(r.durable.Load())
		m.SnapshotAgeSeconds[r.id] = max(0, now-r.lastSnapshot.Load())
	})
	srv.refusals.Range(func(code, n any) bool {
		m.Refusals[code.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return m
}

// countRefusal counts a refusal by its code; there are as many codes as the protocol has.
func (srv *Server) countRefusal(err error) {
	code := "INTERNAL"
	var r *realm.Refusal
	if errors.As(err, &r) {
		code = r.Code
	}
	n, ok := srv.refusals.Load(code)
	if !ok {
		n, _ = srv.refusals.LoadOrStore(code, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}
