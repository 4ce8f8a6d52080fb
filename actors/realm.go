package actors

import (
	"time"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/stream"
)

// asyncBatch is commands that arrived together.
type asyncBatch []ask

// Messages of a realm actor besides ask.
type (
	clockTick  struct{ now int64 } // Unix seconds
	closeRealm struct{ done chan error }
)

// realmActor runs one organization on a node that stores it. Its role says who gives the organization its turns.
//
//	        openRealm                          openStandby
//	            │                                   │
//	            ▼         the journal refuses       ▼
//	     ┌─ ownerRole ─┐  facts, or another   standbyRole ◄──────────┐
//	     │      ▲   ▲  └──── node leads ─────►  │   │                │
//	refused     │   └── claimed, all applied ───┘   │ facts missing  │ loaded
//	     │      │                                   ▼                │
//	     └► reclaimingRole  (single node)       loadingRole ─────────┘
//
// On a single node the journal refuses facts only if another process owns the organization. In a cluster a node that
// loses the ownership keeps its state if every fact of it is on disk, and loads it again if not.
type realmActor struct {
	localRealm
	role    realmRole
	epoch   uint64 // of the last claim
	turnEnv realm.TurnEnv
	owned   delivery.Owned
	rows    owner.Rows
	rest    *rest // nil: the realm stays in memory
}

// realmRole is the role of a node for a realm that it stores. A change of the role replaces the value.
type realmRole interface {
	ask(*ask)
	receive(message any)
}

// newRealmActor makes the actor of a realm that is stored on this node. The caller gives it its role.
func newRealmActor(srv *Server, r *realm.Realm, durable realm.Seq) *realmActor {
	a := &realmActor{}
	a.prepare(srv, a, r, durable)
	a.owned = delivery.NewOwned(&a.handle.sessions, a)
	a.rows = owner.NewRows(&srv.owner, a, &a.owned, &a.handle.lastSnapshot)
	return a
}

// Run runs a command of the server itself. A node that does not own the realm ignores it.
func (a *realmActor) Run(decide func(*realm.Turn) (any, error)) {
	if r, is := a.role.(*ownerRole); is {
		r.turns.System(decide)
	}
}

// Epoch returns the epoch of the last claim.
func (a *realmActor) Epoch() uint64 { return a.epoch }

// SendPresence asks the presence actor for changed rows.
func (a *realmActor) SendPresence(limit int, early bool) {
	a.srv.runtime.Send(a.handle.presence, savePresence{to: a.handle.pid, limit: limit, early: early})
}

// BeforeSave drops the events that every queue has acknowledged. Acknowledgements record no fact, but the rows of these
// events must go, too.
func (a *realmActor) BeforeSave() {
	switch a.role.(type) {
	case *standbyRole, *loadingRole:
		a.owned.DropJournaled()
	default:
		a.owned.DropAcknowledged() // session actors without queues do not report
		a.journalAcks()
	}
}

// Settled reports whether the realm is not being loaded again.
func (a *realmActor) Settled() bool {
	switch a.role.(type) {
	case *reclaimingRole, *loadingRole:
		return false
	}
	return true
}

// Owns reports whether this node gives the realm its turns now.
func (a *realmActor) Owns() bool {
	_, is := a.role.(*ownerRole)
	return is
}

// CanServe reports whether a node that follows knows its state to be new enough for clients.
func (a *realmActor) CanServe() bool {
	_, is := a.role.(*standbyRole)
	return is && a.ownerIsReachable()
}

// Receive handles one message and measures how long that took.
func (a *realmActor) Receive(message any) {
	if list, ok := message.(asyncBatch); ok {
		for i := range list {
			began := time.Now()
			a.role.ask(&list[i])
			a.handle.latencies.observe(list[i].caller.Operation, list[i].caller.User, began, time.Since(began))
		}
		return
	}
	began := time.Now()
	switch m := message.(type) {
	case *ask:
		a.role.ask(m)
	case owner.RowsMessage:
		m.HandleRows(&a.rows)
	case storeAsleep:
		a.storeAsleep()
		m.done <- nil
	case reached:
		close(m.done)
	case restRealm:
		a.beginRest()
	case closeRealm:
		a.follower.StopFollowing()
		a.rows.BeginClose(m.done)
	default:
		a.role.receive(message)
	}
	if kind, user := messageKind(message); kind != "" {
		a.handle.latencies.observe(kind, user, began, time.Since(began))
	}
}

// refuse answers a command or view because this node has lost the realm.
func (a *realmActor) refuse(m *ask) {
	p := m.output(stream.Result{})
	a.srv.owner.RefuseOutput(&p)
	a.Release(&p)
}

// journalAcks records in the journal how far the queues have acknowledged, so that standbys need not store older
// events. It records nothing if there was no new event since the last record.
func (a *realmActor) journalAcks() {
	if a.srv.cluster != nil && a.Owns() && !a.srv.readOnly.Load() {
		a.owned.JournalAcks()
	}
}

// TurnEnv returns the environment of the next turn.
func (a *realmActor) TurnEnv() realm.TurnEnv {
	if a.turnEnv.Token == nil {
		a.turnEnv = a.srv.turnEnv(a.handle)
	}
	env := a.turnEnv
	env.Now = a.srv.now().Unix()
	env.PushEnabled, env.PushBouncer = a.srv.pushEnabled.Load(), a.srv.bouncerEnabled.Load()
	env.EmailEnabled = a.srv.mailEnabled.Load()
	env.ReadOnly = a.srv.readOnly.Load()
	if a.srv.cluster != nil {
		env.OfSeveral, env.Level = true, a.srv.cluster.Level()
	}
	return env
}
