package actors

import (
	"errors"
	"fmt"
	"time"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

// Messages of a reclaimingRole.
type (
	// realmReloaded is a realm as it is on disk.
	realmReloaded struct {
		loaded    *loadedRealm
		claimed   realm.Claimed
		committed []*stream.Committed // the facts that the actor has not published
		err       error
	}
	// reclaimRealm asks to try again.
	reclaimRealm struct{}
)

// reclaimInterval is how soon an actor tries again to become the owner of its realm.
const reclaimInterval = time.Second

// reclaimingRole claims and loads a realm whose ownership a single server has lost. Until then it refuses everything.
type reclaimingRole struct{ *realmActor }

func (r *reclaimingRole) ask(m *ask) { r.refuse(m) }

func (r *reclaimingRole) receive(message any) {
	switch m := message.(type) {
	case *realmReloaded:
		r.handleReloaded(m)
	case reclaimRealm:
		r.begin()
	case delivery.OwnerMessage:
		m.HandleOwned(&r.owned)
	case replica.Message:
		m.HandleOwner(owner.ErrOwnershipLost)
	}
}

// begin claims and loads the realm in the background. Its result arrives as realmReloaded.
func (r *reclaimingRole) begin() {
	id, seen, published := r.Realm().ID(), r.epoch, r.Durable()
	r.srv.runtime.RunInBackground(func() {
		m := &realmReloaded{}
		if m.claimed, m.err = r.srv.disk.Claim(id, seen); m.err == nil {
			m.loaded, m.err = load(r.srv.disk, id, m.claimed.Rows, r.srv.now())
		}
		if m.err == nil {
			m.committed, m.err = r.srv.committedAfter(m.loaded, published)
		}
		r.srv.runtime.Send(r.handle.pid, m)
	})
}

// committedAfter returns the facts of a loaded realm after one that was published, with their texts and events.
func (srv *Server) committedAfter(l *loadedRealm, published realm.Seq) (list []*stream.Committed, err error) {
	if l.rowsSeq > published {
		return nil, fmt.Errorf("the rows of realm %d are at fact %d; events were sent up to fact %d",
			l.realm.ID(), l.rowsSeq, published)
	}
	publications := map[realm.Seq]realm.Publication{}
	for _, t := range l.publications[l.fromRows:] {
		publications[t.Seq] = t
	}
	text := func(ref realm.BodyRef) (realm.Body, bool, error) { return srv.disk.Text(l.realm.ID(), ref) }
	err = srv.disk.Tail(l.realm.ID(), published, func(x realm.Record) error {
		b := realm.Batch{Realm: l.realm.ID(), After: x.Seq - 1, Now: x.Now, Level: x.Level}
		if b.Texts, err = realm.StoredTexts(x.Fact, text); err != nil {
			return err
		}
		var events []realm.Publication
		if t, ok := publications[x.Seq]; ok {
			events = []realm.Publication{t}
		}
		list = append(list, stream.NewCommitted(l.realm, b, []realm.Fact{x.Fact}, events))
		return nil
	})
	return list, err
}

// handleReloaded continues as the owner of the loaded realm. It publishes the facts in the journal that were not
// published yet, such as those of another owner.
func (r *reclaimingRole) handleReloaded(m *realmReloaded) {
	switch {
	case errors.Is(m.err, realm.ErrMoved):
		r.srv.log.Warn("another process owns the organization", "realm", r.Realm().ID(), "err", m.err)
		r.srv.runtime.After(reclaimInterval, func() { r.srv.runtime.Send(r.handle.pid, reclaimRealm{}) })
		return
	case m.err != nil:
		r.srv.fatal(fmt.Errorf("load realm %d again: %w", r.Realm().ID(), m.err))
		return
	}
	r.follower.Replace(m.loaded.realm, r.Durable())
	r.srv.configureRealm(r.Realm())
	o := r.own(m.claimed.Epoch)
	r.rows.Opened(m.claimed.Rows, m.claimed.Last, false)
	r.owned.SetStored(m.loaded.publications[:m.loaded.fromRows])
	r.updateAccounts()
	r.srv.log.Info("realm open again", "realm", r.Realm().ID(), "facts", uint64(r.Realm().Seq()),
		"published", len(m.committed))
	o.turns.Restore(m.committed)
	r.publishState()
	r.srv.setOwned(r.handle, true)
}
