// Package presence is who of one organization is here, as plain data. Nothing of it is journaled: a crash may lose the
// last moments, and clients report again within a minute. It is saved with snapshots.
package presence

import (
	"slices"

	"parley/actors/realm"
)

// Seconds; the numbers are the protocol's.
const (
	OfflineAfter  = 200 // without contact for so long is offline
	PingInterval  = 60  // how often clients report
	throttle      = 55  // reports closer together than this change nothing
	announceAfter = 130 // active again after so long is told to others
	LegacyOffset  = 70  // in the old format, activity so long before the last contact still counts as active
	hideSeconds   = 265 // how far going invisible puts somebody back
	// MaxAudience is above how many listeners nobody is told: clients learn by polling.
	MaxAudience = 100
	// DefaultHistoryDays is how old presence may be to be of interest.
	DefaultHistoryDays = 14
	// PartialSubscriberDays is for how many days after the last contact a user is still in a channel's partial list of
	// subscribers (protocol).
	PartialSubscriberDays = 14
)

// Row is when one user was last active and last connected; Active 0 is never. Update is the organization's counter when
// the row last changed.
type Row struct {
	User              realm.UserID
	Active, Connected int64
	Update            int64
}

// Table is every user's presence.
type Table struct {
	rows    map[realm.UserID]*Row
	counter int64
	dirty   map[realm.UserID]bool
}

// New returns an empty book.
func New() *Table { return &Table{rows: map[realm.UserID]*Row{}, dirty: map[realm.UserID]bool{}} }

// Report notes that a user is active or idle and tells whether others should hear that he came online.
func (b *Table) Report(u realm.UserID, active bool, now int64) (row Row, tell bool) {
	r := b.rows[u]
	if r == nil {
		r = &Row{User: u, Connected: now}
		if active {
			r.Active = now
		}
		b.rows[u] = r
		b.markChanged(r)
		return *r, active
	}
	changed := false
	if r.Connected > now || r.Active > now { // the clock was set back: what was noted lies in the future
		r.Connected, r.Active, changed = min(r.Connected, now), min(r.Active, now), true
	}
	tell = active && now-r.Active > announceAfter
	if now-r.Connected > throttle {
		r.Connected, changed = now, true
	}
	if active && now-r.Active > throttle {
		r.Active, changed = now, true
		r.Connected = max(r.Connected, now)
	}
	if changed {
		b.markChanged(r)
	}
	return *r, tell
}

// Hide puts a user back far enough to appear offline at once; never forwards.
func (b *Table) Hide(u realm.UserID, now int64) Row {
	r := b.rows[u]
	if r == nil {
		r = &Row{User: u, Active: now - hideSeconds, Connected: now - hideSeconds}
		b.rows[u] = r
	}
	r.Active, r.Connected = min(r.Active, now-hideSeconds), min(r.Connected, now-hideSeconds)
	b.markChanged(r)
	return *r
}

func (b *Table) markChanged(r *Row) {
	b.counter++
	r.Update = b.counter
	b.dirty[r.User] = true
}

// ChangedSince is the rows that changed after an update id; the age limit (Unix seconds of the oldest contact) applies only
// where no update id is given, that is when it is not above 0.
func (b *Table) ChangedSince(update, oldest int64) []Row {
	var out []Row
	for _, r := range b.rows {
		if r.Update > update && (update > 0 || r.Connected >= oldest) {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(x, y Row) int { return int(x.User - y.User) })
	return out
}

// Get is one user's row.
func (b *Table) Get(u realm.UserID) (Row, bool) {
	if r := b.rows[u]; r != nil {
		return *r, true
	}
	return Row{}, false
}

// TakeChanged is the rows that changed since the last call, for the next snapshot.
func (b *Table) TakeChanged() []Row {
	out := make([]Row, 0, len(b.dirty))
	for u := range b.dirty {
		out = append(out, *b.rows[u])
	}
	clear(b.dirty)
	slices.SortFunc(out, func(x, y Row) int { return int(x.User - y.User) })
	return out
}

// Restore puts a row back that a snapshot kept.
func (b *Table) Restore(r Row) {
	b.rows[r.User] = &r
	b.counter = max(b.counter, r.Update)
}
