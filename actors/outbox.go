package actors

import "parley/actors/realm"

// Outbox does the errands of organizations: what leaves the server. Errands must not block.
type Outbox interface {
	AddJobs(realm.ID, realm.Site, *realm.OutboxJobsAdded)
}

// SetOutbox has errands done from now on, those of missed messages among them; pushes says that there is a service that
// notifies phones, bouncer that it passes notifications on for us.
func (srv *Server) SetOutbox(o Outbox, pushes, bouncer bool) {
	srv.pushEnabled.Store(pushes)
	srv.bouncerEnabled.Store(bouncer)
	srv.mailEnabled.Store(true)
	srv.outbox.Store(&o)
}

// addOutboxJobs hands jobs that are on disk to the outbox. Before SetOutbox nothing is lost: when the outbox starts it
// reads every job that waits from the realm.
func (srv *Server) addOutboxJobs(r *realmHandle, list []*realm.OutboxJobsAdded) {
	if o := srv.outbox.Load(); o != nil {
		for _, f := range list {
			(*o).AddJobs(r.id, r.site, f)
		}
	}
}
