// Package replica applies what leaves the owner of an organization, in order, and serves views of it: the same code on
// the owner's node, on a core that follows, and on an edge. It knows no role of a node, no session and no disk.
//
//	Source.Follow ──► Subscription ── Next ──► mailbox ──► Follower.Apply ──► Caches, Clients
//	                                                            │
//	                                             Expect, Wait ──┴──► answers
package replica

import (
	"log/slog"
	"runtime/debug"
	"time"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/actors/stream"
)

// Env has the parts that the replicas of all realms of a process share.
type Env struct {
	Runtime mailbox.Runtime
	Log     *slog.Logger
	Now     func() time.Time // the wall clock; it may jump
	Refused func(error)      // counts a refusal
}

// Caches are what this node knows of a realm outside the actor of the realm. They follow the committed batches.
type Caches interface {
	// Stored records the last fact on disk, and gets the texts that the newest facts wrote.
	Stored(seq realm.Seq, texts []realm.TextWrite)
	// Publish gets a committed batch that has been applied to the realm.
	Publish(*realm.Realm, *stream.Committed)
}

// Replica is an organization on one node, owner or not. Only the actor that contains it uses it.
type Replica struct {
	env     *Env
	caches  Caches
	realm   *realm.Realm
	durable realm.Seq // last fact that is known to be on disk
}

// Realm returns the organization.
func (r *Replica) Realm() *realm.Realm { return r.realm }

// Durable returns the last fact that is known to be on disk.
func (r *Replica) Durable() realm.Seq { return r.durable }

// Replace continues with a realm that was loaded again. All facts up to durable are on disk.
func (r *Replica) Replace(x *realm.Realm, durable realm.Seq) { r.realm, r.durable = x, durable }

// Stored records that all facts up to seq are on disk. texts are those that the newest of them wrote.
func (r *Replica) Stored(seq realm.Seq, texts []realm.TextWrite) {
	r.durable = seq
	r.caches.Stored(seq, texts)
}

// Publish passes a committed batch to the caches.
func (r *Replica) Publish(c *stream.Committed) { r.caches.Publish(r.realm, c) }

// View runs a view. A bug in it costs one answer, because a view changes nothing.
func (r *Replica) View(c realm.Caller, view func(realm.View) (any, error)) (x stream.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.env.Log.Error("panic in a view", "realm", r.realm.ID(), "panic", p, "stack", string(debug.Stack()))
			x = stream.Result{Err: stream.ErrInternal}
		}
	}()
	now := r.env.Now().Unix()
	r.realm.SetClock(now)
	var v any
	err := r.realm.CheckCredentials(c, now)
	if err == nil {
		v, err = view(r.realm.ViewAs(c, now))
	}
	if err != nil {
		r.env.Refused(err)
	}
	return stream.Result{Value: v, Err: err}
}
