package actors

import (
	"errors"
	"fmt"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/replica"
)

// ReplicaSource is the source of the data of a replica: the disk of the owner, or a link to the owner.
type ReplicaSource interface {
	// LoadReplica puts the rows of one snapshot into r and the presence rows into table, and returns the last fact that
	// the rows contain.
	LoadReplica(id realm.ID, r *realm.Realm, table *presence.Table) (realm.Seq, error)
	replica.Source
	// Text reads one version of a message's text. It reports false if there is none. An error that is a refusal of the
	// kind realm.Damaged says that the owner cannot read it; after any other error the caller is asked to come back.
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}

// OwnerLink sends messages about event queues and presence from a replica to the owner of its realm. Each method calls
// a method of Edge at the other end. The link calls Server.OwnerConnected when it has a new connection.
type OwnerLink interface {
	delivery.Owner
	// ReportPresence reports which users are active or idle, every few seconds and at most MaxPresenceReports users;
	// see Edge.ReportPresence.
	ReportPresence(realm.ID, []presence.Report)
}

// ReplicaOptions are the parts of a replica.
type ReplicaOptions struct {
	Source ReplicaSource
	Owner  OwnerLink
	// Home reports whether this node has sent the request with an id. This node hosts the queue that such a request
	// opens. nil: this node sends no requests.
	Home func(request string) bool
}

// OpenReplica loads a realm that another node owns and begins to follow its owner. It returns when the rows are loaded.
func (srv *Server) OpenReplica(id realm.ID, o ReplicaOptions) error {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	if srv.find(id) != nil {
		return fmt.Errorf("realm %d is open already", id)
	}
	r, table, err := srv.loadReplica(id, o.Source)
	if err != nil {
		return err
	}
	a := &edgeActor{options: o}
	a.role = &edgeRole{edgeActor: a}
	a.prepare(srv, a, r, r.Seq())
	srv.search.Attach(id, r.Seq(), r.Seq(), srv.searchTextReader(id))
	a.hosting.Expect() // the owner may believe so of every edge
	a.handle.source, a.handle.owner = o.Source, &remoteOwner{o.Owner, o.Home}
	a.start(a, table)
	a.publish()
	a.handle.setClosed(srv, r.Closed())
	srv.accounts.addRealm(r)
	srv.accounts.version.Add(1)
	a.handle.sessions.SendAll(&delivery.Restore{Seq: a.Durable()})
	srv.log.Info("replica open", "realm", id, "name", a.handle.name, "facts", uint64(a.Durable()))
	srv.runtime.Send(a.handle.pid, a.follower.Retry()) // its actor changes the state from now on
	return nil
}

// loadReplica loads the rows of a realm.
func (srv *Server) loadReplica(id realm.ID, from ReplicaSource) (*realm.Realm, *presence.Table, error) {
	r, table, err := srv.loadReplicaOnce(id, from)
	if errors.Is(err, realm.ErrBehind) { // its first snapshot was written after its rows had been read
		return srv.loadReplicaOnce(id, from)
	}
	return r, table, err
}

func (srv *Server) loadReplicaOnce(id realm.ID, from ReplicaSource) (*realm.Realm, *presence.Table, error) {
	r, table := realm.New(id), presence.New()
	r.SetClock(srv.now().Unix())
	at, err := from.LoadReplica(id, r, table)
	if err != nil {
		return nil, nil, fmt.Errorf("load a replica of realm %d: %w", id, err)
	}
	r.SetSeq(at, runParallel)
	if !r.Founded() { // no snapshot has been written yet
		err = replayFounding(r, from)
	}
	return r, table, err
}

// errFounded ends replayFounding.
var errFounded = errors.New("founded")

// replayFounding follows a realm without rows until it is founded.
func replayFounding(r *realm.Realm, from ReplicaSource) error {
	done := make(chan error, 1)
	from.Follow(r.ID(), r.Seq(), func(b realm.Batch) error {
		facts, err := replica.Decode(from, &b)
		if err == nil {
			_, err = r.Follow(b, facts)
		}
		if err == nil && r.Founded() {
			err = errFounded
		}
		return err
	}, func(err error) { done <- err })
	if err := <-done; !errors.Is(err, errFounded) {
		return fmt.Errorf("follow realm %d from its first fact: %w", r.ID(), err)
	}
	return nil
}

// DurableSeq returns the last fact of a realm that is on disk. On a replica it returns the last fact whose events have
// been sent to the session actors.
func (srv *Server) DurableSeq(id realm.ID) realm.Seq {
	if r := srv.find(id); r != nil {
		return realm.Seq(r.durable.Load())
	}
	known, _ := srv.sleeperOf(id)
	return known.Seq
}

// CloseQueue closes a queue whose client no longer polls the node that hosts it.
func (srv *Server) CloseQueue(id realm.ID, q realm.QueueID) {
	if r := srv.find(id); r != nil {
		srv.runSystemAsync(r, func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: q}.Decide(t) })
	}
}

// Tick records an empty fact, because a queue has no event ids left for ephemeral events.
func (srv *Server) Tick(id realm.ID) {
	if r := srv.find(id); r != nil {
		srv.runSystemAsync(r, func(t *realm.Turn) (any, error) { return nil, t.Tick() })
	}
}
