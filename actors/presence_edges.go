package actors

import (
	"maps"
	"slices"
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
)

const (
	// presenceReportInterval is the least time between two batches of presence that an edge sends to the owner. The
	// first report after a pause is sent at once; later ones are collected. Clients show a user as offline after
	// 200 seconds.
	presenceReportInterval = 3 * time.Second
	// unconfirmedSeconds is how long an edge shows a report of its own clients that the owner has not confirmed. The
	// owner confirms a report within milliseconds, but not at all if the user does not share presence or the link
	// broke.
	unconfirmedSeconds = 10
)

// Messages of a presence actor about the reports of edges.
type (
	mergePresence  struct{ list []presence.Report }
	reportPresence struct{} // the collected reports must be sent now
)

// edgePresence has the presence reports of the clients of an edge. The rows of the table come from the owner, which
// numbers them. Until the owner has sent the row of a report, the edge adds the report to the row that it shows.
type edgePresence struct {
	collected   map[realm.UserID]presence.Report // to be sent; at most MaxPresenceReports
	unconfirmed map[realm.UserID]presence.Report // not confirmed by the owner; one for each user
	sentAt      time.Duration                    // Server.sinceOpen, of the last batch
	sent        bool                             // there was a batch
}

// collect records on an edge that a user is active or idle.
func (p *presenceActor) collect(u realm.UserID, active bool, now int64) presence.Row {
	row, _ := p.table.Get(u)
	row.User = u
	e := &p.edge
	if !row.WouldChange(active, now) {
		return e.shown(row, now)
	}
	x := e.collected[u]
	x.User, x.Connected = u, now
	if active {
		x.Active = now
	}
	if e.collected == nil {
		e.collected = map[realm.UserID]presence.Report{}
	}
	if e.unconfirmed == nil {
		e.unconfirmed = map[realm.UserID]presence.Report{}
	}
	o := e.unconfirmed[u]
	e.unconfirmed[u] = presence.Report{User: u, Active: max(o.Active, x.Active), Connected: now}
	e.collected[u] = x
	wait := e.sentAt + presenceReportInterval - p.srv.sinceOpen()
	switch {
	case !e.sent || wait <= 0 || len(e.collected) == MaxPresenceReports:
		p.report()
	case len(e.collected) == 1:
		me := p.realm.presence
		p.srv.runtime.After(wait, func() { p.srv.runtime.Send(me, reportPresence{}) })
	}
	return e.shown(row, now)
}

// report sends the collected reports to the owner.
func (p *presenceActor) report() {
	e := &p.edge
	if len(e.collected) == 0 {
		return
	}
	list := make([]presence.Report, 0, len(e.collected))
	for _, x := range e.collected {
		list = append(list, x)
	}
	oldest := p.srv.now().Unix() - unconfirmedSeconds
	maps.DeleteFunc(e.unconfirmed, func(_ realm.UserID, x presence.Report) bool { return x.Connected < oldest })
	e.collected, e.sentAt, e.sent = nil, p.srv.sinceOpen(), true
	if owner := p.srv.ownerOf(p.realm); owner != nil {
		owner.ReportPresence(p.realm.id, list)
	} else { // this node owns the realm now
		p.merge(list)
	}
}

// shown returns a row, updated by the unconfirmed report of its user, if there is one.
func (e *edgePresence) shown(row presence.Row, now int64) presence.Row {
	if x, ok := e.unconfirmed[row.User]; ok && now-x.Connected < unconfirmedSeconds {
		row.Active, row.Connected = max(row.Active, x.Active), max(row.Connected, x.Connected)
	}
	return row
}

// confirm removes the unconfirmed report of a user if the owner's row includes it, or if the times of the row have
// decreased, because the user wants to appear offline.
func (e *edgePresence) confirm(before, row presence.Row) {
	x, ok := e.unconfirmed[row.User]
	if ok && (row.Connected >= x.Connected && row.Active >= x.Active || row.Connected < before.Connected) {
		delete(e.unconfirmed, row.User)
	}
}

// addUnconfirmed adds the unconfirmed reports of an edge to the rows that a client asks for, if the users were
// connected at oldest, in Unix seconds, or later. A client that has newer rows gets them, too.
func (p *presenceActor) addUnconfirmed(rows []presence.Row, oldest int64) []presence.Row {
	e := &p.edge
	if len(e.unconfirmed) == 0 {
		return rows
	}
	now := p.srv.now().Unix()
	listed := map[realm.UserID]bool{}
	for i := range rows {
		rows[i], listed[rows[i].User] = e.shown(rows[i], now), true
	}
	for u := range e.unconfirmed {
		row, _ := p.table.Get(u)
		row.User = u
		if row = e.shown(row, now); !listed[u] && row.Connected >= max(oldest, now-unconfirmedSeconds) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(x, y presence.Row) int { return int(x.User - y.User) })
	return rows
}

// MergePresence merges the presence that the clients of an edge have reported: the later of two times of a user counts.
// It skips users who do not share presence. If a user came online, it announces this to other users, as for a report to
// this node.
func (srv *Server) MergePresence(id realm.ID, list []presence.Report) {
	r := srv.find(id)
	if r == nil || srv.ownerOf(r) != nil {
		return
	}
	srv.runSystemAsync(r, func(t *realm.Turn) (any, error) {
		var shared []presence.Report
		for _, x := range list {
			if u := t.Find(x.User); u != nil && t.SharesPresence(u) {
				shared = append(shared, x)
			}
		}
		srv.runtime.Send(r.presence, mergePresence{shared})
		return nil, nil
	})
}

// merge merges the reports of an edge.
func (p *presenceActor) merge(list []presence.Report) {
	now := p.srv.now().Unix()
	var changed, online []presence.Row
	for _, x := range list {
		before, _ := p.table.Get(x.User)
		row, announce := p.table.Merge(x, now)
		p.seen.record(x.User, row.Connected)
		if row.Update != before.Update {
			changed = append(changed, row)
		}
		if announce {
			online = append(online, row)
		}
	}
	p.notifyFollowers(changed)
	for _, row := range online {
		announcement := realm.AnnouncePresence{
			User: row.User, Active: row.Active, Connected: row.Connected, Max: presence.MaxAudience,
		}
		p.srv.runSystemAsync(p.realm, func(t *realm.Turn) (any, error) { return announcement.Decide(t) })
	}
}

// notifyFollowers passes changed rows to the followers.
func (p *presenceActor) notifyFollowers(rows []presence.Row) {
	if len(rows) == 0 {
		return
	}
	for f := range p.followers {
		f.pass(rows)
	}
}
