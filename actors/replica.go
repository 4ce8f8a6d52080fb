package actors

import (
	"math"
	"runtime/debug"

	"parley/actors/mailbox"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/stream"
)

// replica is an organization on one node, owner or not: the plain data, and access to the caches and sessions that
// follow its committed batches. Only the actor that contains it uses its fields.
type replica struct {
	srv     *Server
	handle  *realmHandle
	realm   *realm.Realm
	durable realm.Seq // last fact that is known to be on disk
}

// Realm returns the organization.
func (a *replica) Realm() *realm.Realm { return a.realm }

// Durable returns the last fact that is known to be on disk.
func (a *replica) Durable() realm.Seq { return a.durable }

// start starts an actor with this replica and the session and presence actors, and publishes the realm's handle.
func (a *replica) start(main mailbox.Actor, table *presence.Table) {
	srv, handle := a.srv, a.handle
	srv.configureRealm(a.realm)
	handle.sessions.ReplayedThrough = a.durable
	handle.latencies = turnLatencies{observer: srv.turnLatency}
	if a.realm.Founded() {
		handle.name = a.realm.Org().StringID
		handle.sessions.Site = srv.site(handle.name)
	}
	handle.durable.Store(uint64(a.durable))
	handle.lastSnapshot.Store(srv.now().Unix())
	handle.markdownConfigSeq.Store(uint64(a.realm.MarkdownConfigVersion()))
	handle.pid = srv.spawn(main)
	handle.sessions.RecentlyActive = func(u realm.UserID) bool {
		return handle.lastSeen.since(u, srv.now().Unix()-presence.PartialSubscriberDays*86400)
	}
	for _, row := range table.ChangedSince(0, math.MinInt64) {
		handle.lastSeen.times.Store(row.User, max(row.Active, row.Connected))
	}
	handle.sessions.Start(handle.pid)
	handle.presence = srv.spawn(&presenceActor{srv: srv, realm: handle, table: table, seen: &handle.lastSeen})
	srv.mu.Lock()
	srv.realms[handle.id] = handle
	if a.realm.Founded() {
		srv.byName[handle.name] = handle
	}
	srv.mu.Unlock()
	srv.accounts.version.Add(1)
}

// view runs a view. A bug in it costs one answer, because a view changes nothing.
func (a *replica) view(m *ask) (x stream.Result) {
	defer func() {
		if p := recover(); p != nil {
			a.srv.log.Error("panic in a view", "realm", a.realm.ID(), "panic", p, "stack", string(debug.Stack()))
			x = stream.Result{Err: errInternal}
		}
	}()
	now := a.srv.now().Unix()
	a.realm.SetClock(now)
	var v any
	err := a.realm.CheckCredentials(m.caller, now)
	if err == nil {
		v, err = m.view(a.realm.ViewAs(m.caller, now))
	}
	if err != nil {
		a.srv.countRefusal(err)
	}
	return stream.Result{Value: v, Err: err}
}
