package presence

import (
	"cmp"
	"slices"

	"parley/actors/realm"
)

// Times in seconds, unless the name or the comment has another unit. The values are the protocol's.
const (
	OfflineAfter  = 200  // a user without contact for so long is offline
	PingInterval  = 60   // how often clients report
	throttle      = 55   // reports closer together than this change nothing
	announceAfter = 130  // a user that is active again after so long is announced to others
	LegacyOffset  = 70   // in the old format, activity so long before the last contact counts as active
	hideSeconds   = 265  // Hide sets the times of a user back by so long
	lostUpdates   = 1000 // update ids, beyond two for each user, that a crash may lose: of new users, and of Hide
	// epochBits is the number of bits of an update id below the epoch: 100,000 users report 2^32 times in 30 days. The
	// protocol's numbers have 53 bits, so there are ids for 2 million epochs.
	epochBits = 32
	// MaxAudience is the number of connected users above which no user is notified: their clients poll presence.
	MaxAudience = 100
	// DefaultHistoryDays is how old presence may be to be returned, unless the client asks for less or more.
	DefaultHistoryDays = 14
	// PartialSubscriberDays is for how many days after the last contact a user is still in a channel's partial list of
	// subscribers (protocol).
	PartialSubscriberDays = 14
)

// Row has the times at which one user was last active and last connected, in Unix seconds. An Active of 0 means never.
// Update is the table's counter when the row last changed.
type Row struct {
	User              realm.UserID
	Active, Connected int64
	Update            int64
}

// Report has the times at which an edge has seen a user active and connected, in Unix seconds. An Active of 0 means
// never.
type Report struct {
	User              realm.UserID
	Active, Connected int64
}

// Table is the presence of every user of one organization.
type Table struct {
	rows    map[realm.UserID]*Row
	counter int64                 // the last update id
	dirty   map[realm.UserID]bool // changed since they were last taken
}

// New returns an empty table.
func New() *Table { return &Table{rows: map[realm.UserID]*Row{}, dirty: map[realm.UserID]bool{}} }

// Report records that a user is active or idle. announce reports whether other users must be notified that the user
// is online.
func (t *Table) Report(u realm.UserID, active bool, now int64) (row Row, announce bool) {
	r := t.rows[u]
	if r == nil {
		r = &Row{User: u, Connected: now}
		if active {
			r.Active = now
		}
		t.rows[u] = r
		t.markChanged(r)
		return *r, active
	}
	changed := false
	if r.Connected > now || r.Active > now { // the clock was set back: the row is in the future
		r.Connected, r.Active, changed = min(r.Connected, now), min(r.Active, now), true
	}
	announce = active && now-r.Active > announceAfter
	if now-r.Connected > throttle {
		r.Connected, changed = now, true
	}
	if active && now-r.Active > throttle {
		r.Active, changed = now, true
		r.Connected = max(r.Connected, now)
	}
	if changed {
		t.markChanged(r)
	}
	return *r, announce
}

// WouldChange reports whether a report that a user is active or idle now would change the row.
func (r *Row) WouldChange(active bool, now int64) bool {
	return r.Connected > now || r.Active > now || now-r.Connected > throttle || active && now-r.Active > throttle
}

// Merge records the times at which an edge has seen a user: of two times the later one counts, and none is in the
// future. announce reports whether other users must be notified that the user is online.
func (t *Table) Merge(x Report, now int64) (row Row, announce bool) {
	x.Active, x.Connected = min(x.Active, now), min(x.Connected, now)
	r := t.rows[x.User]
	if r == nil {
		r = &Row{User: x.User}
		t.rows[x.User] = r
	}
	announce = x.Active > 0 && x.Active-r.Active > announceAfter
	if x.Active > r.Active || x.Connected > r.Connected {
		r.Active, r.Connected = max(r.Active, x.Active), max(r.Connected, x.Connected)
		t.markChanged(r)
	}
	return *r, announce
}

// Hide sets a user's times back so far that the user appears offline at once. It never sets them forward.
func (t *Table) Hide(u realm.UserID, now int64) Row {
	r := t.rows[u]
	if r == nil {
		r = &Row{User: u, Active: now - hideSeconds, Connected: now - hideSeconds}
		t.rows[u] = r
	}
	r.Active, r.Connected = min(r.Active, now-hideSeconds), min(r.Connected, now-hideSeconds)
	t.markChanged(r)
	return *r
}

// markChanged gives a row the next update id.
func (t *Table) markChanged(r *Row) {
	t.counter++
	r.Update = t.counter
	t.dirty[r.User] = true
}

// ChangedSince returns the rows that changed after an update id, by user. If update is 0 or less, it returns instead
// the rows whose last contact is at oldest, in Unix seconds, or later.
func (t *Table) ChangedSince(update, oldest int64) []Row {
	var out []Row
	for _, r := range t.rows {
		if r.Update > update && (update > 0 || r.Connected >= oldest) {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(x, y Row) int { return int(x.User - y.User) })
	return out
}

// Get returns one user's row.
func (t *Table) Get(u realm.UserID) (Row, bool) {
	if r := t.rows[u]; r != nil {
		return *r, true
	}
	return Row{}, false
}

// TakeChanged returns the rows that changed since they were last taken, by user, to be stored. A limit of 0 means all;
// otherwise at most that many are returned, those that changed first, and the next call returns others.
func (t *Table) TakeChanged(limit int) []Row {
	out := make([]Row, 0, len(t.dirty))
	for u := range t.dirty {
		out = append(out, *t.rows[u])
	}
	if limit > 0 && len(out) > limit {
		slices.SortFunc(out, func(x, y Row) int { return cmp.Compare(x.Update, y.Update) })
		out = out[:limit]
	}
	for _, r := range out {
		delete(t.dirty, r.User)
	}
	slices.SortFunc(out, func(x, y Row) int { return int(x.User - y.User) })
	return out
}

// Restore adds a stored row.
func (t *Table) Restore(r Row) {
	t.rows[r.User] = &r
	t.counter = max(t.counter, r.Update)
}

// Copy stores a row of another node, which owns the organization.
func (t *Table) Copy(r Row) {
	if old := t.rows[r.User]; old != nil && *old == r {
		return
	}
	t.Restore(r)
	t.dirty[r.User] = true
}

// BeginEpoch skips update ids. It must be called when this node has become the owner of the organization in an epoch,
// and every stored row is restored. Earlier owners may have given update ids that are in no stored row, and clients
// that have seen them would miss rows that get these ids again. So an id begins with the epoch, which is on disk before
// the first id of the epoch is given, and in a cluster in the replicated log.
//
// An owner that gives more than 2^epochBits ids continues in the range of the next epoch. Then BeginEpoch skips the ids
// that a crash can lose: of about half a minute, in which each client reports about once.
func (t *Table) BeginEpoch(epoch uint64) {
	t.counter = max(t.counter+2*int64(len(t.rows))+lostUpdates, int64(epoch)<<epochBits)
}
