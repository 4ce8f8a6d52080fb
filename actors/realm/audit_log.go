package realm

import (
	"cmp"
	"strings"
)

// The audit log has the author, time, address and login of each change. A turn derives its entries from its own facts,
// in one place (audit_entries.go), and records them as one more fact in the same batch: so no change is without
// its entry, and every node of a cluster has the same log. Entries have numbers instead of names and no text of a
// message; readers look names up with their own rights.

// AuditEntry is the row of one entry. Its key is its number.
type AuditEntry struct {
	At   int64  // Unix seconds
	Kind string // such as "user.role"; AuditKinds has all
	By   UserID // 0: the operator or the server
	// Via is the login of By: "session 3", "help session 4" (of the operator), "key 2" (an additional API key), or
	// "key"; else the names of loginOf.
	Via     string
	Client  string // name of the client program
	Address string // network address of the client; "": not known

	User    UserID    // that was changed; 0: none
	Channel ChannelID // 0: none
	Group   GroupID   // 0: none
	Name    string    // of a setting or permission
	Old     string    // value before; "" also if it is private
	New     string
	Count   int // of messages, users, keys or invitations; 0: the entry is about one thing
}

const (
	// maxAuditEntries limits the log of an organization: about 30 MB. The oldest entries are removed first.
	maxAuditEntries = 100_000
	// maxAuditDropped limits how many entries one fact removes. It is more than one turn usually adds.
	maxAuditDropped = 200
	// maxAuditValue limits a value of an entry in code points, so that a long text does not fill the log.
	maxAuditValue = 200
	// DefaultAuditDays is for how many days entries are kept if the organization has not said otherwise.
	DefaultAuditDays = 365
	// MaxAuditDays is ten years.
	MaxAuditDays = 3650
)

// auditLevel is the rule level from which on changes are in the audit log.
const auditLevel uint16 = 4

// AuditPolicy is the row that says for how long entries are kept. It has the key 0.
type AuditPolicy struct{ Days int64 }

// note adds an entry for a fact that is about to be recorded, or for an event without a fact, to the turn's entries.
func (t *Turn) note(e AuditEntry) {
	if t.Level() < auditLevel || !t.Founded() {
		return
	}
	c := t.Caller
	if e.By == 0 {
		e.By = c.User
	}
	e.At, e.Client, e.Address = t.Now, c.Client, cmp.Or(e.Address, c.Address)
	e.Old, e.New = firstRunes(e.Old, maxAuditValue), firstRunes(e.New, maxAuditValue)
	if e.Via == "" {
		e.Via = t.loginOf(c)
	}
	t.entries = append(t.entries, e)
}

// loginOf returns the login of a caller for the audit log.
func (r *Realm) loginOf(c Caller) string {
	switch {
	case c.System && c.Client == Operator.Client:
		return "operator"
	case c.System && strings.HasPrefix(c.Client, ScimClient):
		return c.Client
	case c.System:
		return "server"
	case c.Session != ([32]byte{}):
		if l := r.small.browserSessions.find(c.User); l != nil {
			for i := range l.List {
				if l.List[i].Hash == c.Session {
					if l.List[i].IsHelp() {
						return "help session " + number(l.List[i].ID)
					}
					return "session " + number(l.List[i].ID)
				}
			}
		}
		return "session"
	}
	if u := r.users.find(c.User); u != nil {
		if k := findKey(u.KeyInfo, c.Key); k != nil {
			return "key " + number(k.ID)
		}
	}
	return "key"
}

// recordEntries records the entries of the turn after all its other facts.
func (t *Turn) recordEntries() {
	if entries := t.entries; len(entries) > 0 {
		t.entries = nil
		t.record(&Audited{Entries: entries})
	}
}

// Audited adds entries to the audit log. No client is notified.
type Audited struct{ Entries []AuditEntry }

func (f *Audited) apply(r *Realm) {
	now := int64(0)
	for i := range f.Entries {
		e := f.Entries[i]
		r.small.auditLast++
		r.small.audit.put(r.small.auditLast, &e)
		now = max(now, e.At)
	}
	for range maxAuditDropped {
		id, ok := r.small.audit.firstKey()
		if !ok || r.small.audit.size() <= maxAuditEntries && r.small.audit.must(id).At >= r.auditBegins(now) {
			return
		}
		r.small.audit.remove(id)
	}
}

func (*Audited) notices(*Realm) []Notice { return nil }

// auditBegins returns the time of the oldest entries that are kept.
func (r *Realm) auditBegins(now int64) int64 { return now - r.AuditDays()*24*3600 }

// AuditDays returns for how many days entries of the audit log are kept.
func (r *Realm) AuditDays() int64 {
	if p := r.small.auditPolicy.find(0); p != nil {
		return p.Days
	}
	return DefaultAuditDays
}

// SetAuditDays asks to keep the audit log for a number of days. Only owners and the operator are allowed to. Entries
// that are older than that are not shown any more at once, and removed with the next changes.
type SetAuditDays struct{ Days int64 }

func (c SetAuditDays) Decide(t *Turn) (Done, error) {
	if err := t.checkAuditReader(); err != nil {
		return Done{}, err
	}
	if c.Days < 1 || c.Days > MaxAuditDays {
		return Done{}, BadRequest("retention_days must be between 1 and %d", MaxAuditDays)
	}
	if t.Level() < auditLevel {
		return Done{}, errLowLevel()
	}
	if c.Days != t.AuditDays() {
		t.Record(&AuditDaysSet{c.Days})
	}
	return Done{}, nil
}

// AuditDaysSet says for how many days entries of the audit log are kept.
type AuditDaysSet struct{ Days int64 }

func (f *AuditDaysSet) apply(r *Realm)        { r.small.auditPolicy.put(0, &AuditPolicy{f.Days}) }
func (*AuditDaysSet) notices(*Realm) []Notice { return nil }

// checkAuditReader refuses callers that are neither owners nor the operator.
func (v View) checkAuditReader() error {
	if me := v.Me(); !v.System && (me == nil || me.Role != Owner) {
		return errNotOwner()
	}
	return nil
}

// AuditFilter selects entries of the audit log. Zero values select all.
type AuditFilter struct {
	Before, After int64  // numbers of entries, exclusive
	Kind          string // a kind, or the part before the dot
	By, User      UserID
	Channel       ChannelID
	Limit         int // entries of the answer
}

// MaxAuditAnswer limits the entries of one answer.
const MaxAuditAnswer = 1000

// NumberedEntry is an entry with its number.
type NumberedEntry struct {
	ID int64
	AuditEntry
}

// AuditLog returns the newest entries that a filter selects, the newest first; with After, the oldest ones after that
// number (-1: all), the oldest first. more reports whether further entries match.
func (v View) AuditLog(f AuditFilter) (out []NumberedEntry, more bool, err error) {
	if err := v.checkAuditReader(); err != nil {
		return nil, false, err
	}
	limit := min(max(f.Limit, 1), MaxAuditAnswer)
	// The numbers of the stored entries have no gaps.
	first, last := v.small.auditLast-int64(v.small.audit.size())+1, v.small.auditLast
	first = max(first, f.After+1)
	if f.Before != 0 {
		last = min(last, f.Before-1)
	}
	begins, step, id := v.auditBegins(v.Now), int64(-1), last
	if f.After != 0 {
		step, id = 1, first
	}
	for ; first <= id && id <= last; id += step {
		e := v.small.audit.must(id)
		if e.At < begins || !f.matches(e) {
			continue
		}
		if len(out) == limit {
			return out, true, nil
		}
		out = append(out, NumberedEntry{id, *e})
	}
	return out, false, nil
}

func (f *AuditFilter) matches(e *AuditEntry) bool {
	return (f.Kind == "" || e.Kind == f.Kind || len(e.Kind) > len(f.Kind) && e.Kind[:len(f.Kind)+1] == f.Kind+".") &&
		(f.By == 0 || e.By == f.By) && (f.User == 0 || e.User == f.User) && (f.Channel == 0 || e.Channel == f.Channel)
}

// eraseAudit removes the addresses and programs of a person from the audit log. The number of the account remains.
func (r *Realm) eraseAudit(u UserID) {
	for _, id := range r.small.audit.keys() {
		e := r.small.audit.must(id)
		if (e.By == u || e.Kind == auditLoginFailed && e.User == u) && (e.Address != "" || e.Client != "") {
			e = r.small.audit.change(id)
			e.Address, e.Client = "", ""
		}
	}
}

// NoteFailedLogin adds a refused password to the audit log. The caller does not wait for it, so that the time of an
// answer does not tell which accounts exist. The limit of failed logins of an account bounds how many there are.
type NoteFailedLogin struct{ User UserID }

func (c NoteFailedLogin) Decide(t *Turn) (any, error) {
	if t.Find(c.User) != nil {
		t.note(AuditEntry{Kind: auditLoginFailed, User: c.User})
	}
	return nil, nil
}

// Done implements CommandWithCallback.
func (NoteFailedLogin) Done(any, error) {}
