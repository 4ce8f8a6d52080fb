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

// rest is the way of a realm out of memory. The owner handles all messages as before until everything is on disk,
// because facts of the server itself can still be recorded.
type rest struct {
	missing int // session actors that have not answered
	busy    bool
}

// beginRest asks the session actors whether a poll waits, unless the realm has work.
func (r *ownerRole) beginRest() {
	if _, ok := r.Realm().Sleep(r.srv.now().Unix()); !ok || r.rest != nil {
		r.srv.endRest(r.handle, sleepRetry)
		return
	}
	r.rest = &rest{missing: delivery.SessionActors}
	pid := r.handle.pid
	r.handle.sessions.SendAllInOrder(delivery.CheckIdle{Reply: func(busy bool) {
		r.srv.runtime.Send(pid, idleReport{busy})
	}})
}

// handleIdle writes the rows when all session actors have answered that no poll waits.
func (r *ownerRole) handleIdle(m idleReport) {
	if r.rest == nil {
		return
	}
	r.rest.busy = r.rest.busy || m.busy
	if r.rest.missing--; r.rest.missing > 0 {
		return
	}
	if r.rest.busy {
		r.stay(sleepRetry)
		return
	}
	r.BeforeSave()
	r.rows.SaveAndClose(r.endRest)
}

// stay ends the rest: the realm stays in memory.
func (r *ownerRole) stay(retryAfter int64) {
	r.rest = nil
	r.srv.endRest(r.handle, retryAfter)
}

// endRest is called when all facts are in the rows, or in the journal and the disk is full. If there is no new one, the
// realm leaves memory.
func (r *ownerRole) endRest() {
	if r.rest == nil || r.role != realmRole(r) {
		return
	}
	if !r.turns.AllStored() {
		r.srv.runtime.Send(r.handle.pid, idleReport{})
		r.rest.missing = 1 // handleIdle closes again, after the facts are on disk
		return
	}
	known, ok := r.Realm().Sleep(r.srv.now().Unix())
	if !ok {
		r.stay(sleepRetry)
		return
	}
	known.Epoch = r.epoch
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
func (r *ownerRole) storeAsleep() {
	known, ok := r.Realm().Sleep(r.srv.now().Unix())
	if !ok || !r.turns.AllStored() {
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
