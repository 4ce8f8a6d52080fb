package actors

import (
	"math"
	"sync"

	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
)

// Messages of a presence actor.
type (
	presenceReport struct {
		user         realm.UserID
		active, hide bool
		done         func(row presence.Row, announce bool) // must not block
	}
	presenceSince struct {
		update, oldest int64
		reply          chan []presence.Row
	}
	presenceOf struct {
		user  realm.UserID
		reply chan *presence.Row
	}
	savePresence struct {
		to    mailbox.Address
		limit int  // of rows; 0: none
		early bool // the rows are not for a snapshot; see owner.PresenceRows
	}
	// followPresence adds or removes a follower; restorePresence has the rows that a replica or a standby gets.
	followPresence struct {
		follower *presenceFollower
		stop     bool
	}
	restorePresence struct{ rows []presence.Row }
	// presenceOwned says that this core has become the owner in an epoch.
	presenceOwned struct{ epoch uint64 }
)

// presenceFollower is a replica that gets all changed rows.
type presenceFollower struct{ pass func([]presence.Row) }

// presenceActor owns the presence of one realm's users.
type presenceActor struct {
	srv       *Server
	realm     *realmHandle
	table     *presence.Table
	seen      *lastSeenTable
	followers map[*presenceFollower]struct{} // nil: none
	edge      edgePresence
}

// lastSeenTable is when each user of a realm was last connected. The presence actor writes it; every goroutine may read
// it without asking that actor. A time may be lastSeenStep too old.
type lastSeenTable struct{ times sync.Map } // realm.UserID -> Unix seconds

// lastSeenStep is how many seconds pass before a user's time is updated. Readers only ask about days.
const lastSeenStep = 3600

// record notes that a user is connected now.
func (t *lastSeenTable) record(u realm.UserID, now int64) {
	if at, ok := t.times.Load(u); !ok || now-at.(int64) >= lastSeenStep {
		t.times.Store(u, now)
	}
}

// since reports whether a user was connected at that time or later, or at most lastSeenStep earlier.
func (t *lastSeenTable) since(u realm.UserID, oldest int64) bool {
	at, ok := t.times.Load(u)
	return ok && at.(int64)+lastSeenStep > oldest
}

func (p *presenceActor) Receive(message any) {
	switch m := message.(type) {
	case *presenceReport:
		now := p.srv.now().Unix()
		before, _ := p.table.Get(m.user)
		row, announce := presence.Row{}, true
		switch {
		case p.srv.ownerOf(p.realm) != nil && !m.hide:
			row, announce = p.collect(m.user, m.active, now), false // the owner announces it
		case m.hide:
			row = p.table.Hide(m.user, now)
		default:
			row, announce = p.table.Report(m.user, m.active, now)
			p.seen.record(m.user, now)
		}
		if row.Update != before.Update {
			p.notifyFollowers([]presence.Row{row})
		}
		m.done(row, announce)
	case mergePresence:
		p.merge(m.list)
	case reportPresence:
		p.report()
	case followPresence:
		p.follow(m)
	case restorePresence:
		p.restore(m.rows)
	case presenceOwned:
		p.table.BeginEpoch(m.epoch)
	case *presenceSince:
		m.reply <- p.addUnconfirmed(p.table.ChangedSince(m.update, m.oldest), m.oldest)
	case *presenceOf:
		r, _ := p.table.Get(m.user)
		r.User = m.user
		if r = p.edge.shown(r, p.srv.now().Unix()); r.Connected != 0 {
			m.reply <- &r
		} else {
			m.reply <- nil
		}
	case savePresence:
		var rows []realm.EncodedRow
		for _, r := range p.table.TakeChanged(m.limit) {
			rows = append(rows, p.srv.disk.EncodeRow(realm.PresenceTable, int64(r.User), &r))
		}
		p.srv.runtime.Send(m.to, owner.PresenceRows{Rows: rows, Early: m.early})
	}
}

// follow adds a follower, which gets every row at once, or removes it.
func (p *presenceActor) follow(m followPresence) {
	if m.stop {
		delete(p.followers, m.follower)
		return
	}
	if p.followers == nil {
		p.followers = map[*presenceFollower]struct{}{}
	}
	p.followers[m.follower] = struct{}{}
	m.follower.pass(p.table.ChangedSince(0, math.MinInt64))
}

// FollowPresence calls pass with every row of a realm's presence, and then with each row that changes, before its
// report is answered; again with every row when the realm was asleep. pass must not block.
func (srv *Server) FollowPresence(id realm.ID, pass func([]presence.Row)) (stop func()) {
	if !srv.has(id) {
		return func() {}
	}
	f := &presenceFollower{pass}
	change := func(stop bool) {
		all := srv.followersOf(id)
		// A link that ends stops thousands of them, so requests go on meanwhile; only publishAs waits.
		srv.mu.RLock()
		defer srv.mu.RUnlock()
		all.mu.Lock()
		defer all.mu.Unlock()
		if stop {
			delete(all.presence, f)
		} else {
			all.presence[f] = struct{}{}
		}
		if r := srv.realms[id]; r != nil {
			srv.runtime.Send(r.presence, followPresence{follower: f, stop: stop})
		}
	}
	change(false)
	return func() { change(true) }
}

// restore applies rows that the owner has sent. A core also stores them, so that they survive a crash. Rows that arrive
// after this node has become the owner are ignored.
func (p *presenceActor) restore(rows []presence.Row) {
	if p.realm.owned.Load() {
		return
	}
	for _, r := range rows {
		before, _ := p.table.Get(r.User)
		if p.realm.owner != nil { // an edge
			p.table.Restore(r)
		} else {
			p.table.Copy(r)
		}
		p.edge.confirm(before, r)
		p.seen.record(r.User, max(r.Active, r.Connected))
	}
}

// RestorePresence puts rows of the owner into the presence of a replica or a standby.
func (srv *Server) RestorePresence(id realm.ID, rows []presence.Row) {
	if r := srv.find(id); r != nil {
		srv.runtime.Send(r.presence, restorePresence{rows})
	}
}

// ReportPresence records that a user is active or idle. announce reports whether the caller must announce to other
// users that the user is online.
func (srv *Server) ReportPresence(id realm.ID, u realm.UserID, active bool) (row presence.Row, announce bool) {
	return srv.report(id, &presenceReport{user: u, active: active})
}

// ReportPresenceAsync is ReportPresence without waiting. The presence actor calls done, which must not block.
func (srv *Server) ReportPresenceAsync(id realm.ID, u realm.UserID, active bool,
	done func(row presence.Row, announce bool)) {
	if r := srv.enter(id, forClient); r != nil {
		defer r.leave()
		srv.runtime.Send(r.presence, &presenceReport{user: u, active: active, done: done})
	} else {
		done(presence.Row{}, false)
	}
}

// HidePresence makes a user appear offline at once.
func (srv *Server) HidePresence(id realm.ID, u realm.UserID) presence.Row {
	row, _ := srv.report(id, &presenceReport{user: u, hide: true})
	return row
}

func (srv *Server) report(id realm.ID, m *presenceReport) (row presence.Row, announce bool) {
	r := srv.enter(id, forClient)
	if r == nil {
		return presence.Row{}, false
	}
	defer r.leave()
	done := make(chan struct{})
	m.done = func(r presence.Row, a bool) {
		row, announce = r, a
		close(done)
	}
	srv.runtime.Send(r.presence, m)
	<-done
	return row, announce
}

// PresenceSince returns the rows that changed after an update id. If update is 0 or less, it returns the users that
// were connected at oldest, in Unix seconds, or later.
func (srv *Server) PresenceSince(id realm.ID, update, oldest int64) []presence.Row {
	r := srv.enter(id, forClient)
	if r == nil {
		return nil
	}
	defer r.leave()
	m := &presenceSince{update, oldest, make(chan []presence.Row, 1)}
	srv.runtime.Send(r.presence, m)
	return <-m.reply
}

// PresenceOf returns one user's row, or nil.
func (srv *Server) PresenceOf(id realm.ID, u realm.UserID) *presence.Row {
	r := srv.enter(id, forClient)
	if r == nil {
		return nil
	}
	defer r.leave()
	m := &presenceOf{u, make(chan *presence.Row, 1)}
	srv.runtime.Send(r.presence, m)
	return <-m.reply
}

// ActiveSince returns a function that reports whether a user was connected at a time, in Unix seconds, or later. Users
// who left up to an hour before it count too. The function may be called at any time.
func (srv *Server) ActiveSince(id realm.ID, oldest int64) func(realm.UserID) bool {
	r := srv.find(id)
	if r == nil {
		return func(realm.UserID) bool { return false }
	}
	return func(u realm.UserID) bool { return r.lastSeen.since(u, oldest) }
}
