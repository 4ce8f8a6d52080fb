package actors

import "parley/actors/realm"

// Duty is work that leaves the realm or that may be done only once: emails, push notifications, webhooks, exports,
// sweeps of files, thumbnails. A node has the duty only for the realms that it owns. Scheduled messages and reminders
// are not duties: they are sent in turns, and only the owner of a realm has turns.
//
// The methods are called by realm actors and must not block.
type Duty interface {
	// Begin says that this node owns the realm from now on.
	Begin(realm.ID)
	// End says that it does not own the realm any more. Work in progress may end; nothing new begins.
	End(realm.ID)
}

// AddDuty adds a duty and begins it for every realm that this node owns.
func (srv *Server) AddDuty(d Duty) {
	srv.dutiesMu.Lock()
	defer srv.dutiesMu.Unlock()
	srv.duties = append(srv.duties, d)
	srv.eachRealm(func(r *realmHandle) {
		if r.owned.Load() {
			d.Begin(r.id)
		}
	})
}

// setOwned records whether this node owns a realm and begins or ends the duties.
func (srv *Server) setOwned(r *realmHandle, owned bool) {
	srv.dutiesMu.Lock()
	defer srv.dutiesMu.Unlock()
	if r.owned.Swap(owned) == owned {
		return
	}
	for _, d := range srv.duties {
		if owned {
			d.Begin(r.id)
		} else {
			d.End(r.id)
		}
	}
}

// Owns reports whether this node owns a realm.
func (srv *Server) Owns(id realm.ID) bool {
	r := srv.find(id)
	return r != nil && r.owned.Load()
}
