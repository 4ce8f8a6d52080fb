package actors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/actors/replica"
)

// Cluster is the replicated journal of a core node, beyond the methods of its disk. At most one node, the leader, may
// own organizations. Package replicated implements it.
type Cluster interface {
	// Bounds returns the sequence number of the rows on this node and the last fact in its journal.
	Bounds(id realm.ID) (rows, last realm.Seq, err error)
	replica.Source // this node's journal
	// Owned returns the claim of an organization that is part of this node's leadership, without waiting. ok is false
	// if nodes of older releases are in the cluster: then the disk's Claim is needed. The error is a realm.ErrMoved if
	// this node has lost the leadership.
	Owned(id realm.ID) (claimed realm.Claimed, ok bool, err error)
	// HasOwned reports whether Owned returns ok.
	HasOwned() bool
	// Level returns the rule level of the cluster.
	Level() uint16
	// VerifyLeader calls done with nil when a majority has confirmed that this node was still the leader after the
	// call, or else with an error. It does not block.
	VerifyLeader(done func(error))
}

// SetLeader must be called when this node becomes the leader and when it loses the leadership. The leader becomes the
// owner of every organization. SetLeader returns before that is done; Owns reports it.
func (srv *Server) SetLeader(on bool) {
	srv.isLeader.Store(on)
	if on {
		if err := srv.openNewRealms(); err != nil {
			srv.fatal(fmt.Errorf("open the organizations of another leader: %w", err))
			return
		}
		srv.ownSleepers()
	}
	srv.eachRealm(func(r *realmHandle) { srv.runtime.Send(r.pid, leadershipChanged{on}) })
	srv.eachResting(func(r *realmHandle) { srv.runtime.Send(r.pid, leadershipChanged{on}) })
}

// IsLeader reports whether this node is the leader, according to the last call of SetLeader.
func (srv *Server) IsLeader() bool { return srv.isLeader.Load() }

// OwnsAll reports whether this node owns every organization that it has.
func (srv *Server) OwnsAll() bool {
	all := true
	srv.eachRealm(func(r *realmHandle) { all = all && r.owned.Load() })
	return all
}

// OwnsNone reports whether this node owns no organization.
func (srv *Server) OwnsNone() bool {
	none := true
	srv.eachRealm(func(r *realmHandle) { none = none && !r.owned.Load() })
	return none
}

// FinishTurns waits until the turns that have begun are on disk and answered, or until ctx ends.
func (srv *Server) FinishTurns(ctx context.Context) {
	var all sync.WaitGroup
	srv.eachRealm(func(r *realmHandle) {
		if !r.owned.Load() {
			return
		}
		id := r.id
		all.Go(func() {
			srv.View(id, realm.Caller{System: true}, func(realm.View) (any, error) { return nil, nil })
		})
	})
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// openNewRealms opens the organizations of the disk that are not open yet: those that another leader has created.
func (srv *Server) openNewRealms() error {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	ids, err := srv.disk.Realms()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if opened, asleep, seq := srv.stateOf(id); asleep {
			srv.wakeIfOlder(id, seq)
			continue
		} else if opened {
			continue
		}
		// An unfinished import is skipped. Its rows and the number of its last fact become visible together, at its
		// end.
		_, last, err := srv.cluster.Bounds(id)
		if err != nil {
			return err
		}
		if last == 0 {
			continue
		}
		if srv.sleepers.disk != nil && srv.maySleep() {
			if known, ok := srv.sleepers.disk.Asleep(id); ok {
				srv.addSleeper(id, known)
				continue
			}
		}
		if err := srv.openStandby(id); err != nil {
			return err
		}
	}
	return nil
}

// openStandby opens an organization that another node owns.
func (srv *Server) openStandby(id realm.ID) error {
	l, err := srv.loadStandby(id)
	if err != nil {
		return err
	}
	if !l.realm.Founded() {
		return nil // not complete yet; openNewRealms tries again
	}
	a := srv.startStandby(l, 0)
	srv.accounts.version.Add(1)
	srv.log.Info("following an organization", "realm", id, "name", a.handle.name, "facts", uint64(l.realm.Seq()))
	srv.publishStandby(a, nil)
	return nil
}

// startStandby starts the actor of an organization that was loaded. idle is for how many seconds its event queues have
// had no client.
func (srv *Server) startStandby(l *loadedRealm, idle int64) *realmActor {
	a := newRealmActor(srv, l.realm, l.realm.Seq())
	a.role = &standbyRole{realmActor: a, idle: idle}
	a.owned.Restore(l.publications, l.fromRows, l.ackedThrough)
	a.rows.Opened(l.rowsSeq, l.realm.Seq(), true)
	srv.search.Attach(l.realm.ID(), a.Durable(), l.rowsSeq, srv.searchTextReader(l.realm.ID()))
	a.start(a, l.presence)
	a.handle.closed.Store(l.realm.Closed())
	srv.accounts.addRealm(l.realm)
	return a
}

// publishStandby lets the actor follow the journal, or on the leader become the owner, before requests find it. s is
// nil unless the organization was asleep.
func (srv *Server) publishStandby(a *realmActor, s *sleeper) {
	srv.runtime.Send(a.handle.pid, a.follower.Retry()) // its actor changes the state from now on
	// Otherwise the first request would find no owner, and be sent again after a pause.
	if srv.isLeader.Load() {
		done := make(chan struct{})
		srv.runtime.Send(a.handle.pid, reached{done})
		<-done
	}
	a.publishAs(true, s)
	srv.runtime.Send(a.handle.pid, leadershipChanged{srv.isLeader.Load()}) // it may have changed before publishAs
}

// loadStandby loads an organization as this node's disk has it.
func (srv *Server) loadStandby(id realm.ID) (*loadedRealm, error) {
	rows, _, err := srv.cluster.Bounds(id)
	if err != nil {
		return nil, err
	}
	return load(srv.disk, id, rows, srv.now())
}

// waitUntilOpen is awaken for a realm that may not exist yet. A core that does not lead opens an organization a moment
// after the leader has created it. It returns nil if there is none when ctx ends, and at once on other nodes.
func (srv *Server) waitUntilOpen(ctx context.Context, id realm.ID) *realmHandle {
	for {
		if r, err := srv.awaken(id, forClient); err == nil || srv.cluster == nil {
			return r
		}
		if err := srv.openNewRealms(); err != nil {
			srv.log.Warn("a new organization is not open yet", "realm", id, "err", err)
		}
		select {
		case <-time.After(openPoll):
		case <-ctx.Done():
			return nil
		}
	}
}

// openTimeout limits how long CommitImported waits until this node owns the organization, and openPoll is how often it
// looks.
const (
	openTimeout = 30 * time.Second
	openPoll    = 10 * time.Millisecond
)

// CommitImported makes an imported organization visible: its texts and rows are already stored through the replicated
// log. If the string id is free, and no other organization has one of the API keys with these hashes, CommitImported
// calls commit, which appends the last step to the log. It returns when this node owns the organization. It can be
// repeated. No other organization is created at the same time. The error is a realm.ErrMoved if this node has lost the
// leadership.
func (srv *Server) CommitImported(stringID string, id realm.ID, keys [][32]byte, commit func() error) error {
	srv.creating.Lock()
	err := srv.commitImported(stringID, id, keys, commit)
	srv.creating.Unlock()
	for end := srv.sinceOpen() + openTimeout; err == nil && !srv.Owns(id); time.Sleep(openPoll) {
		if !srv.isLeader.Load() || srv.sinceOpen() > end {
			return fmt.Errorf("%w: the organization is stored, but this node does not own it", realm.ErrMoved)
		}
	}
	return err
}

func (srv *Server) commitImported(stringID string, id realm.ID, keys [][32]byte, commit func() error) error {
	if srv.has(id) {
		return nil
	}
	if _, err := srv.nextRealm(stringID); err != nil {
		return err
	}
	for _, k := range keys {
		if id, found := srv.RealmOfKey(k); found {
			return ErrKeysInUse(id)
		}
	}
	if err := srv.checkWritable(); err != nil {
		return err
	}
	if err := commit(); err != nil {
		return err
	}
	return srv.openStandby(id)
}

// ErrKeysInUse is the error of an import whose API keys belong to another organization.
func ErrKeysInUse(id realm.ID) error {
	return fmt.Errorf("API keys of the export belong to organization %d of this server; revoke those of the export "+
		"with --new-keys", id)
}

// openNewRealmsLater opens new organizations in the background: loading a large one would stop the clock. It does
// nothing while the last call is not done.
func (srv *Server) openNewRealmsLater() {
	if !srv.openingNew.CompareAndSwap(false, true) {
		return
	}
	srv.stopped.Go(func() {
		defer srv.openingNew.Store(false)
		if err := srv.openNewRealms(); err != nil {
			srv.log.Warn("a new organization is not open yet", "err", err)
		}
	})
}
