package actors

import (
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
)

// presenceReportEvery is how long an edge collects the presence of its clients before it sends it to the owner. Clients
// show a user as offline after 200 seconds.
const presenceReportEvery = 3 * time.Second

// Messages of a presence actor about the reports of edges.
type (
	mergePresence  struct{ list []presence.Report }
	reportPresence struct{} // the time of collecting is over
)

// collect notes on an edge that a user is active or idle. The rows of an edge are those of the owner: it numbers them.
func (p *presenceActor) collect(u realm.UserID, active bool, now int64) presence.Row {
	row, _ := p.table.Get(u)
	row.User = u
	if !row.IsNews(active, now) {
		return row
	}
	x := p.collected[u]
	x.User, x.Connected = u, now
	if active {
		x.Active = now
	}
	if p.collected == nil {
		p.collected = map[realm.UserID]presence.Report{}
	}
	if p.collected[u] = x; len(p.collected) == 1 {
		me := p.realm.presence
		p.srv.runtime.after(presenceReportEvery, func() { p.srv.runtime.send(me, reportPresence{}) })
	} else if len(p.collected) == MaxPresenceReports {
		p.report()
	}
	row.Active, row.Connected = max(row.Active, x.Active), max(row.Connected, x.Connected)
	return row
}

// report sends the collected reports to the owner.
func (p *presenceActor) report() {
	if len(p.collected) == 0 {
		return
	}
	list := make([]presence.Report, 0, len(p.collected))
	for _, x := range p.collected {
		list = append(list, x)
	}
	p.collected = nil
	p.realm.owner.ReportPresence(p.realm.id, list)
}

// MergePresence merges the presence that the clients of an edge have reported: of two times of a user the later one
// counts. Users that share no presence are left out. Other users are told that a user came online, as if that user's
// report had been sent to this node.
func (srv *Server) MergePresence(id realm.ID, list []presence.Report) {
	r := srv.find(id)
	if r == nil || r.owner != nil {
		return
	}
	srv.runSystemAsync(r, func(t *realm.Turn) (any, error) {
		var shared []presence.Report
		for _, x := range list {
			if u := t.Find(x.User); u != nil && t.SharesPresence(u) {
				shared = append(shared, x)
			}
		}
		srv.runtime.send(r.presence, mergePresence{shared})
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
	p.passOn(changed)
	for _, row := range online {
		tell := realm.AnnouncePresence{
			User: row.User, Active: row.Active, Connected: row.Connected, Max: presence.MaxAudience,
		}
		p.srv.runSystemAsync(p.realm, func(t *realm.Turn) (any, error) { return tell.Decide(t) })
	}
}

// passOn passes changed rows to the followers.
func (p *presenceActor) passOn(rows []presence.Row) {
	if len(rows) == 0 {
		return
	}
	for f := range p.followers {
		f.pass(rows)
	}
}
