package actors

import (
	"fmt"

	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

// Messages of a loadingRole.
type (
	standbyLoaded struct {
		loaded *loadedRealm
		texts  []realm.TextWrite // of the facts after the previous state
		err    error
	}
	// retryLoad asks to try again.
	retryLoad struct{}
)

// loadingRole loads a realm again on a core node: its state may have facts that were not stored, or it lacks some.
// Until then it refuses everything.
type loadingRole struct{ *realmActor }

func (r *loadingRole) ask(m *ask) { r.refuse(m) }

func (r *loadingRole) receive(message any) {
	switch m := message.(type) {
	case *standbyLoaded:
		r.handleLoaded(m)
	case retryLoad:
		r.begin()
	case replica.Wait:
		r.follower.HoldWait(m)
	default:
		r.handleAsStandby(message)
	}
}

// begin loads the realm in the background. The result arrives as standbyLoaded.
func (r *loadingRole) begin() {
	r.follower.StopFollowing()
	id, from := r.Realm().ID(), r.Durable()
	r.srv.runtime.RunInBackground(func() {
		m := &standbyLoaded{}
		m.loaded, m.err = r.srv.loadStandby(id)
		if m.err == nil && m.loaded.rowsSeq <= from {
			var list []*stream.Committed
			list, m.err = r.srv.committedAfter(m.loaded, from)
			for _, c := range list {
				m.texts = append(m.texts, c.Batch.Texts...)
			}
		}
		r.srv.runtime.Send(r.handle.pid, m)
	})
}

// handleLoaded continues with the loaded realm. It drops all caches that may include facts that were not stored:
// rendered texts, texts and accounts.
func (r *loadingRole) handleLoaded(m *standbyLoaded) {
	if m.err == nil && m.loaded.realm.Seq() < r.Durable() {
		m.err = fmt.Errorf("the journal ends at fact %d, fact %d was stored", m.loaded.realm.Seq(), r.Durable())
	}
	if m.err != nil {
		r.srv.log.Error("loading the organization again failed", "realm", r.Realm().ID(), "err", m.err)
		r.srv.runtime.After(reclaimInterval, func() { r.srv.runtime.Send(r.handle.pid, retryLoad{}) })
		return
	}
	l := m.loaded
	r.follower.Replace(l.realm, l.realm.Seq())
	r.srv.configureRealm(l.realm)
	r.forgetCaches()
	r.owned.Reset()
	r.owned.Restore(l.publications, l.fromRows, l.ackedThrough)
	r.rows.Opened(l.rowsSeq, r.Durable(), false)
	r.updateAccounts()
	r.srv.search.Feed(l.realm.ID(), r.Durable(), m.texts)
	standby := &standbyRole{realmActor: r.realmActor}
	r.role = standby
	standby.begin()
	r.rows.ContinueClose()
}
