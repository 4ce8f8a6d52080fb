package actors

import "parley/actors/realm"

// Outbox gets the outbox jobs of every realm: emails, push notifications, webhooks, everything that leaves the server.
// Package wire/dispatch implements it. AddJobs is called in a realm actor when the jobs are on disk, and must not
// block.
type Outbox interface {
	AddJobs(realm.ID, realm.Site, *realm.OutboxJobsAdded)
}

// SetOutbox sets where outbox jobs are sent from now on; it also turns on emails about missed messages. pushes says
// that a push notification service is configured, bouncer that notifications go through a push bouncer.
func (srv *Server) SetOutbox(o Outbox, pushes, bouncer bool) {
	srv.pushEnabled.Store(pushes)
	srv.bouncerEnabled.Store(bouncer)
	srv.mailEnabled.Store(true)
	srv.outbox.Store(&o)
}

// addOutboxJobs hands jobs that are on disk to the outbox. Before SetOutbox nothing is lost: when the dispatcher
// starts, it reads every waiting job from the realm.
func (srv *Server) addOutboxJobs(r *realmHandle, list []*realm.OutboxJobsAdded) {
	if o := srv.outbox.Load(); o != nil && r.owned.Load() {
		for _, f := range list {
			(*o).AddJobs(r.id, r.sessions.Site, f)
		}
	}
}
