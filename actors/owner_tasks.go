package actors

import "parley/actors/realm"

// OwnerTask is background work for realms that only their owner may do, because it has effects outside the realm or
// must be done only once: emails, push notifications, webhooks, exports, sweeps of files, thumbnails. Scheduled
// messages and reminders are not owner tasks: they are sent in turns, and only the owner of a realm gives turns.
//
// The methods are called by realm actors and must not block.
type OwnerTask interface {
	// Begin starts the work for a realm: this node has become its owner.
	Begin(realm.ID)
	// End stops the work for a realm: this node has lost the ownership. Work in progress may be completed; no new work
	// begins.
	End(realm.ID)
}

// AddOwnerTask adds a task and begins it for every realm that this node owns.
func (srv *Server) AddOwnerTask(d OwnerTask) {
	srv.ownerTasksMu.Lock()
	defer srv.ownerTasksMu.Unlock()
	srv.ownerTasks = append(srv.ownerTasks, d)
	srv.eachRealm(func(r *realmHandle) {
		if r.owned.Load() {
			d.Begin(r.id)
		}
	})
}

// setOwned records whether this node owns a realm, and begins or ends the owner tasks.
func (srv *Server) setOwned(r *realmHandle, owned bool) {
	srv.ownerTasksMu.RLock() // only the actor of the realm changes its owned
	defer srv.ownerTasksMu.RUnlock()
	if r.owned.Swap(owned) == owned {
		return
	}
	for _, d := range srv.ownerTasks {
		if owned {
			d.Begin(r.id)
		} else {
			d.End(r.id)
		}
	}
}

// OnErased sets the function that is called when the owner of a realm has removed the bytes of erased data from its
// disk, and this node, another core, has a copy of them. It is called by realm actors and must not block.
func (srv *Server) OnErased(f func(realm.ID)) { srv.onErased.Store(&f) }

// Owns reports whether this node owns a realm.
func (srv *Server) Owns(id realm.ID) bool {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	r := srv.realms[id]
	return r != nil && r.owned.Load() || srv.sleepers.byID[id] != nil && srv.ownsSleepers()
}
