package actors

import (
	"math"

	"parley/actors/delivery"
	"parley/actors/mailbox"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

// localRealm is an organization on one node: the plain data with the caches and sessions that follow its committed
// batches, and the event queues that a node which follows hosts. The actor of the realm contains it.
type localRealm struct {
	srv      *Server
	handle   *realmHandle
	follower replica.Follower
	hosting  delivery.Hosting
}

// realmMain is the actor of a realm, as its parts see it.
type realmMain interface {
	mailbox.Actor
	delivery.Follower
	replica.Clients
}

// prepare fills the parts of a realm whose facts up to durable are on disk.
func (a *localRealm) prepare(srv *Server, main realmMain, r *realm.Realm, durable realm.Seq) {
	h := &realmHandle{id: r.ID(), followers: srv.followersOf(r.ID())}
	h.sessions.Prepare(&srv.delivery, r.ID())
	a.srv, a.handle = srv, h
	a.follower = replica.NewFollower(&srv.replicas, caches{srv, h}, main, &h.durable, r, durable)
	a.hosting = delivery.NewHosting(&h.sessions, main)
}

// start starts an actor with this realm and the session and presence actors. publish follows.
func (a *localRealm) start(main mailbox.Actor, table *presence.Table) {
	srv, handle, r := a.srv, a.handle, a.Realm()
	srv.configureRealm(r)
	handle.sessions.ReplayedThrough = a.Durable()
	handle.latencies = turnLatencies{observer: srv.turnLatency}
	if r.Founded() {
		handle.name = r.Org().StringID
		handle.sessions.Site = srv.site(handle.name)
	}
	handle.durable.Store(uint64(a.Durable()))
	handle.lastSnapshot.Store(srv.now().Unix())
	handle.markdownConfigSeq.Store(uint64(r.MarkdownConfigVersion()))
	handle.pid = srv.spawn(main)
	handle.sessions.RecentlyActive = func(u realm.UserID) bool {
		return handle.lastSeen.since(u, srv.now().Unix()-presence.PartialSubscriberDays*86400)
	}
	for _, row := range table.ChangedSince(0, math.MinInt64) {
		handle.lastSeen.times.Store(row.User, max(row.Active, row.Connected))
	}
	handle.sessions.Start(handle.pid)
	handle.presence = srv.spawn(&presenceActor{srv: srv, realm: handle, table: table, seen: &handle.lastSeen})
	handle.stayAwake(srv.elapsed() + sleepAfterWork)
}

// publish lets requests find the realm.
func (a *localRealm) publish() {
	a.publishAs(a.Realm().Founded(), nil)
}

// publishAs is publish while the actor may already change the realm. s is not nil if the realm was asleep.
func (a *localRealm) publishAs(founded bool, s *sleeper) {
	a.srv.mu.Lock()
	defer a.srv.mu.Unlock()
	a.srv.realms[a.handle.id] = a.handle
	if founded {
		a.srv.byName[a.handle.name] = a.handle
	}
	a.handle.followers.mu.Lock()
	for f := range a.handle.followers.presence {
		a.srv.runtime.Send(a.handle.presence, followPresence{follower: f})
	}
	a.handle.followers.mu.Unlock()
	if s != nil {
		a.srv.sendPending(s, a.handle)
	}
}

// Realm returns the organization.
func (a *localRealm) Realm() *realm.Realm { return a.follower.Realm() }

// Durable returns the last fact that is known to be on disk.
func (a *localRealm) Durable() realm.Seq { return a.follower.Durable() }

// Owner returns the node that owns the realm, or nil.
func (a *localRealm) Owner() delivery.Owner {
	if owner := a.srv.ownerOf(a.handle); owner != nil {
		return owner
	}
	return nil
}

// ownerIsReachable reports whether the state of a node that follows can be new enough for clients.
func (a *localRealm) ownerIsReachable() bool {
	return !a.srv.replicasPaused.Load() && a.srv.ownerOf(a.handle) != nil
}

// KeepText puts a text that the owner has sent into the cache.
func (a *localRealm) KeepText(t realm.TextWrite) { a.srv.texts.put(a.handle.id, t.Ref, *t.Body) }

// Opens reports whether this node hosts the queue that a request opens; see replica.Clients.
func (a *localRealm) Opens(request string) bool {
	owner := a.srv.ownerOf(a.handle)
	if owner == nil || owner.home == nil || !owner.home(request) {
		return false
	}
	a.hosting.Opened()
	return true
}

// Expect says that a queue may be opened here by a request that this node has sent.
func (a *localRealm) Expect() { a.hosting.Expect() }

// HasQueues reports whether this node hosts event queues.
func (a *localRealm) HasQueues() bool { return !a.hosting.None() }

// Address returns where messages to the actor are sent.
func (a *localRealm) Address() mailbox.Address { return a.handle.pid }

// Release sends an output to the event queues and the caller.
func (a *localRealm) Release(p *stream.Output) { a.handle.sessions.Flow.Release(p) }

// Applied continues the adoptions that wait for facts.
func (a *localRealm) Applied() { a.hosting.Continue() }

// publishState updates the facts about the realm that other goroutines read.
func (a *localRealm) publishState() {
	a.handle.markdownConfigSeq.Store(uint64(a.Realm().MarkdownConfigVersion()))
	a.handle.setClosed(a.srv, a.Realm().Closed())
}

// forgetCaches drops the rendered texts and the texts of the realm, because they may come from facts that were not
// stored, or were changed by facts that this node has not applied.
func (a *localRealm) forgetCaches() {
	a.srv.renderer.ForgetRealm(a.handle.id)
	a.srv.texts.dropRealm(a.handle.id)
}

// updateAccounts replaces all accounts of the realm.
func (a *localRealm) updateAccounts() {
	a.Realm().EachUser(func(u *realm.User) { a.srv.updateAccount(a.Realm(), u.ID) })
}
