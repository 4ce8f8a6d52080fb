package actors

import (
	"errors"
	"fmt"
	"time"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/stream"
)

// realmReloaded is a realm as it is on disk, for the actor that has lost its ownership.
type realmReloaded struct {
	loaded    *loadedRealm
	claimed   realm.Claimed
	committed []stream.Committed // the facts that the actor has not published
	err       error
}

// errOwnershipLost is the answer to commands and views that depend on facts which were not stored.
var errOwnershipLost = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The organization is being moved; try again in a few seconds.")

// reclaimInterval is how soon an actor tries again to become the owner of its realm.
const reclaimInterval = time.Second

// endOwnership ends the ownership of the realm after the journal refused a batch. The state in memory then includes
// facts that are not in the journal. So all output that depends on them is refused, the state is discarded, and the
// realm is loaded again. State outside the realm includes committed facts only and stays valid; see Committed.
func (a *realmActor) endOwnership(m owner.Refused) {
	if m.Epoch != a.epoch || a.reloading || a.standby {
		return
	}
	if a.srv.cluster != nil {
		a.srv.log.Warn("this node has lost the ownership of the organization", "realm", a.realm.ID(),
			"seq", uint64(a.durable), "err", m.Err)
		a.stepDown()
		return
	}
	a.srv.log.Error("the journal refused a batch; loading the organization again", "realm", a.realm.ID(),
		"seq", uint64(a.durable), "err", m.Err)
	a.srv.Metrics.OwnershipsLost.Add(1)
	a.reloading = true
	a.srv.setOwned(a.handle, false)
	pending := a.pending
	a.pending = nil
	for i := range pending {
		a.refusePending(&pending[i])
	}
	a.requests = recentRequests{} // the journal has those that were stored
	a.rows.Cancel(errOwnershipLost)
	a.srv.renderer.ForgetRealm(a.realm.ID())
	a.reload()
	a.rows.ContinueClose()
}

// refusePending answers a turn or view whose facts were not stored.
func (a *realmActor) refusePending(p *pendingOutput) {
	p.Answer.Result = stream.Result{Err: errOwnershipLost}
	p.Publications, p.committed, p.Answer.Sent = nil, nil, nil
	a.srv.countRefusal(errOwnershipLost)
	a.handle.sessions.Flow.Release(&p.Output)
}

// reload claims and loads the realm in the background. Its result arrives as realmReloaded.
func (a *realmActor) reload() {
	id, seen, published := a.realm.ID(), a.epoch, a.durable
	a.srv.runtime.RunInBackground(func() {
		m := &realmReloaded{}
		if m.claimed, m.err = a.srv.disk.Claim(id, seen); m.err == nil {
			m.loaded, m.err = load(a.srv.disk, id, m.claimed.Rows, a.srv.now())
		}
		if m.err == nil {
			m.committed, m.err = a.srv.committedAfter(m.loaded, published)
		}
		a.srv.runtime.Send(a.handle.pid, m)
	})
}

// committedAfter returns the facts of a loaded realm after one that was published, with their texts and events.
func (srv *Server) committedAfter(l *loadedRealm, published realm.Seq) (list []stream.Committed, err error) {
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
		c := stream.Committed{
			Batch: realm.Batch{Realm: l.realm.ID(), After: x.Seq - 1, Now: x.Now, Level: x.Level},
			Facts: []realm.Fact{x.Fact},
		}
		if c.Batch.Texts, err = realm.StoredTexts(x.Fact, text); err != nil {
			return err
		}
		if t, ok := publications[x.Seq]; ok {
			c.Publications = []realm.Publication{t}
		}
		list = append(list, c)
		return nil
	})
	return list, err
}

// handleReloaded continues with the loaded realm. It publishes the facts in the journal that were not published yet,
// such as those of another owner.
func (a *realmActor) handleReloaded(m *realmReloaded) {
	switch {
	case errors.Is(m.err, realm.ErrMoved):
		a.srv.log.Warn("another process owns the organization", "realm", a.realm.ID(), "err", m.err)
		a.srv.runtime.After(reclaimInterval, func() { a.srv.runtime.Send(a.handle.pid, reclaimRealm{}) })
		return
	case m.err != nil:
		a.srv.fatal(fmt.Errorf("load realm %d again: %w", a.realm.ID(), m.err))
		return
	}
	a.realm, a.epoch = m.loaded.realm, m.claimed.Epoch
	a.srv.configureRealm(a.realm)
	a.realm.SetClock(a.srv.now().Unix())
	a.reloading = false
	a.rows.Opened(m.claimed.Rows, m.claimed.Last, false)
	a.owned.SetStored(m.loaded.publications[:m.loaded.fromRows])
	a.realm.EachUser(func(u *realm.User) { a.srv.updateAccount(a.realm, u.ID) })
	for i := range m.committed {
		c := &m.committed[i]
		a.pending = append(a.pending, pendingOutput{
			Output: delivery.Output{Publications: c.Publications},
			seq:    c.Batch.After + 1, committed: c,
			markdownConfigSeq: a.realm.MarkdownConfigVersion(), closed: a.realm.Closed(),
		})
	}
	a.srv.log.Info("realm open again", "realm", a.realm.ID(), "facts", uint64(a.realm.Seq()),
		"published", len(m.committed))
	a.release(a.realm.Seq())
	a.handle.markdownConfigSeq.Store(uint64(a.realm.MarkdownConfigVersion()))
	if a.realm.HasJobs() {
		a.scheduleContinue()
	}
	a.srv.setOwned(a.handle, true)
}

// reclaimRealm asks an actor that has lost its realm to try again.
type reclaimRealm struct{}
