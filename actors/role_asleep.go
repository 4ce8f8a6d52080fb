package actors

import (
	"parley/actors/delivery"
	"parley/actors/realm"
)

// Messages of the actor of a realm that leaves memory.
type (
	// restRealm asks the actor to leave memory. No request reaches it any more.
	restRealm struct{}
	// storeAsleep stores the record of a realm that is closed, for the next start. Done gets nil.
	storeAsleep struct{ done chan error }
	// idleReport is the answer of a session actor to delivery.CheckIdle.
	idleReport struct{ busy bool }
)

// rest is the way of a realm out of memory. The node handles all messages as before until everything is on disk,
// because facts of the server itself, or of the owner, can still be recorded.
type rest struct {
	role    realmRole // that began it
	missing int       // session actors that have not answered
	busy    bool
}

// mayRest reports whether the role is one from which a realm can leave memory. The owner stays while another node hosts
// event queues. A node that follows drops those that it hosts: the owner hosts them until their clients poll again.
func (r *realmActor) mayRest() bool {
	switch x := r.role.(type) {
	case *ownerRole:
		return !r.handle.followers.hasNodes()
	case *standbyRole:
		return x.claim == nil && r.follower.IsFollowing()
	}
	return false
}

// beginRest asks the session actors whether a poll waits, unless the realm has work.
func (r *realmActor) beginRest() {
	if _, ok := r.Realm().Sleep(r.srv.now().Unix()); !ok || r.rest != nil || !r.mayRest() {
		r.srv.endRest(r.handle, sleepRetry)
		return
	}
	r.rest = &rest{role: r.role, missing: delivery.SessionActors}
	pid := r.handle.pid
	r.handle.sessions.SendAllInOrder(delivery.CheckIdle{Reply: func(busy bool) {
		r.srv.runtime.Send(pid, idleReport{busy})
	}})
}

// handleIdle writes the rows when all session actors have answered that no poll waits.
func (r *realmActor) handleIdle(m idleReport) {
	if r.rest == nil {
		return
	}
	r.rest.busy = r.rest.busy || m.busy
	if r.rest.missing--; r.rest.missing > 0 {
		return
	}
	if r.rest.busy {
		r.stay()
		return
	}
	r.BeforeSave()
	r.rows.SaveAndClose(r.endRest)
}

// stay ends the rest, if there is one: the realm stays in memory.
func (r *realmActor) stay() {
	if r.rest != nil {
		r.rest = nil
		r.srv.endRest(r.handle, sleepRetry)
	}
}

// allStored reports whether every fact of the state is on disk.
func (r *realmActor) allStored() bool {
	switch x := r.role.(type) {
	case *ownerRole:
		return x.turns.AllStored()
	case *standbyRole:
		return true
	}
	return false
}

// endRest is called when all facts are in the rows, or in the journal and the disk is full. If there is no new one, the
// realm leaves memory.
func (r *realmActor) endRest() {
	if r.rest == nil || r.role != r.rest.role {
		return
	}
	if !r.allStored() {
		r.srv.runtime.Send(r.handle.pid, idleReport{})
		r.rest.missing = 1 // handleIdle closes again, after the facts are on disk
		return
	}
	known, ok := r.Realm().Sleep(r.srv.now().Unix())
	if !ok || !r.mayRest() {
		r.stay()
		return
	}
	known.Epoch = r.epoch
	r.follower.StopFollowing()
	srv, handle, held := r.srv, r.handle, r.Realm()
	r.role = asleepRole{}
	r.owned.Reset()
	handle.sessions.SendAll(delivery.Leave{})
	srv.runtime.RunInBackground(func() {
		srv.forgetRealm(handle, held)
		if err := srv.sleepers.disk.WriteAsleep(handle.id, known.Epoch, &known); err != nil {
			srv.log.Warn("the state of a sleeping organization is not stored", "realm", handle.id, "err", err)
		}
		srv.fallAsleep(handle, known)
		srv.log.Debug("organization asleep", "realm", handle.id, "facts", uint64(known.Seq), "due", known.Due)
		srv.runtime.After(stoppedActorsAfter, func() {
			srv.runtime.Stop(handle.pid)
			srv.runtime.Stop(handle.presence)
			handle.sessions.Stop()
		})
	})
	r.rest = nil
}

// storeAsleep stores the record for the next start, unless the realm has work: then the next start loads it.
func (r *realmActor) storeAsleep() {
	if !r.allStored() {
		return
	}
	known, ok := r.Realm().Sleep(r.srv.now().Unix())
	if !ok {
		return
	}
	known.Epoch = r.epoch
	if err := r.srv.sleepers.disk.WriteAsleep(r.handle.id, r.epoch, &known); err != nil {
		r.srv.log.Warn("the state of a sleeping organization is not stored", "realm", r.handle.id, "err", err)
	}
}

// forgetRealm removes what this node has in memory of a realm outside its actors. The version of the accounts stays,
// because no account changes while the realm is asleep.
func (srv *Server) forgetRealm(h *realmHandle, r *realm.Realm) {
	srv.setOwned(h, false)
	srv.accounts.dropRealm(r)
	srv.renderer.ForgetRealm(h.id)
	srv.texts.dropRealm(h.id)
	srv.search.Detach(h.id)
}

// asleepRole drops the messages of timers that arrive after the realm has left memory. No request reaches it.
type asleepRole struct{}

func (asleepRole) ask(m *ask)  { m.Refuse(errWaking) }
func (asleepRole) receive(any) {}
