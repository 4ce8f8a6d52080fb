package realm

import (
	"slices"
	"strings"
)

// Each user can get a file with their own data. It is written outside the realm, by the owner of the organization, one
// file after the other. Only its user can download it, until it expires. This is an extension of the protocol.

// ownExportsLevel is the rule level from which on such files exist.
const ownExportsLevel uint16 = 5

const (
	// OwnExportPrefix begins the names of files with the data of one user. Names of other exports do not contain "-".
	OwnExportPrefix = "own-"
	// MaxOwnExports limits the files that one user can ask for in a day: each takes minutes in a large organization.
	MaxOwnExports = 3
	// OwnExportSeconds is for how long a file can be downloaded: a weekend and a day.
	OwnExportSeconds = 3 * secondsPerDay
)

// ExportFile returns the file of a data export that has a name in its row.
func ExportFile(name string) string {
	if strings.HasPrefix(name, OwnExportPrefix) {
		return name + ".zip"
	}
	return name + ".jsonl.gz"
}

// OwnExport is one file with the data of a user.
type OwnExport struct {
	ID      int64
	Started int64
	Ended   int64 // time at which the file was complete; 0: not complete
	Failed  int64
	Deleted int64
	Fetched int64  // time of the first download
	Bytes   int64  // size of the file
	Name    string // of the file; it cannot be guessed
}

// Pending reports whether the file is still being written.
func (e *OwnExport) Pending() bool { return e.Ended == 0 && e.Failed == 0 && e.Deleted == 0 }

// HasFile reports whether the file is complete and was not deleted.
func (e *OwnExport) HasFile() bool { return e.Ended != 0 && e.Deleted == 0 }

// Expires returns when the file cannot be downloaded any more, in Unix seconds; 0 without a file.
func (e *OwnExport) Expires() int64 {
	if !e.HasFile() {
		return 0
	}
	return e.Ended + OwnExportSeconds
}

// forgotten returns when the export leaves the list: with its file, but not on the day on which it counts for the
// limit. It is NeverDue for one that is being written.
func (e *OwnExport) forgotten() int64 {
	if e.Pending() {
		return NeverDue
	}
	return max(e.Expires(), e.Started+secondsPerDay)
}

// OwnExports is the row of a user: their exports, the oldest first. At most one has a file or is being written.
type OwnExports struct{ List []OwnExport }

func (x *OwnExports) pending() *OwnExport {
	for i := range x.List {
		if x.List[i].Pending() {
			return &x.List[i]
		}
	}
	return nil
}

// StartOwnExport asks for a file with the data of the caller.
type StartOwnExport struct {
	FileRefusal error // the refusal if the file cannot be stored now; nil if it can
}

func (c StartOwnExport) Decide(t *Turn) (OwnExport, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return OwnExport{}, err
	}
	if t.Level() < ownExportsLevel {
		return OwnExport{}, errLowLevel()
	}
	row, recent := t.ownExports(me.ID), 0
	for _, e := range row.List {
		if e.Pending() {
			return OwnExport{}, BadRequest("A file with your data is being written already.")
		}
		if e.Started > t.Now-secondsPerDay {
			recent++
		}
	}
	if recent >= MaxOwnExports {
		return OwnExport{}, BadRequest("You can ask for your data %d times a day.", MaxOwnExports)
	}
	if c.FileRefusal != nil {
		return OwnExport{}, c.FileRefusal
	}
	e := OwnExport{ID: t.nextID("export"), Started: t.Now, Name: OwnExportPrefix + t.Token(40)}
	row.List = append(row.List, e)
	t.Record(&OwnExportsChanged{me.ID, row.List})
	t.note(AuditEntry{Kind: auditOwnExport, User: me.ID, New: "started"})
	return e, nil
}

// auditOwnExport is the kind of entries about files with the data of one user.
const auditOwnExport = "user.data_export"

// ownExports returns a copy of a user's row.
func (r *Realm) ownExports(u UserID) OwnExports {
	if x := r.small.ownExports.find(u); x != nil {
		return OwnExports{slices.Clone(x.List)}
	}
	return OwnExports{}
}

// OwnExports returns the exports of the caller, the oldest first.
func (v View) OwnExports() ([]OwnExport, error) {
	me, err := v.RequireHuman()
	if err != nil {
		return nil, err
	}
	return v.ownExports(me.ID).List, nil
}

// MayContinueOwnExport refuses an export whose user was deactivated since it was started.
func (v View) MayContinueOwnExport(u UserID) error {
	if by := v.users.find(u); by == nil || !by.Active || v.Org().Deactivated || v.ownPending(u) == nil {
		return errPermission()
	}
	return nil
}

func (r *Realm) ownPending(u UserID) *OwnExport {
	if x := r.small.ownExports.find(u); x != nil {
		return x.pending()
	}
	return nil
}

// PendingOwnExport is an export that is being written.
type PendingOwnExport struct {
	User   UserID
	Export OwnExport
}

// PendingOwnExports returns the exports of all users that are being written, for the server.
func (v View) PendingOwnExports() (out []PendingOwnExport) {
	if !v.System {
		return nil
	}
	for _, u := range v.small.ownExports.keys() {
		if e := v.ownPending(u); e != nil {
			out = append(out, PendingOwnExport{u, *e})
		}
	}
	return out
}

// FinishOwnExport is a command of the server: a file is complete, or could not be written.
type FinishOwnExport struct {
	User   UserID
	ID     int64
	Bytes  int64
	Failed bool
}

func (c FinishOwnExport) Decide(t *Turn) (Done, error) {
	row := t.ownExports(c.User)
	e := row.pending()
	if !t.System || e == nil || e.ID != c.ID {
		return Done{}, errOwnExport()
	}
	result, text := "complete", "The file with your data is complete. Download it in the [settings of your account]"+
		"(#settings/account) within three days."
	if c.Failed {
		result, text = "failed", "The file with your data could not be written; the server's log says why."
		e.Failed = t.Now
	} else {
		for i := range row.List { // the new file replaces the old one
			if row.List[i].HasFile() {
				row.List[i].Deleted = t.Now
			}
		}
		e.Ended, e.Bytes = t.Now, c.Bytes
	}
	t.Record(&OwnExportsChanged{c.User, row.List})
	t.note(AuditEntry{Kind: auditOwnExport, User: c.User, New: result})
	if u := t.users.find(c.User); u != nil && u.Active {
		t.NotifyUsers(text, c.User)
	}
	return Done{}, nil
}

func errOwnExport() *Refusal { return BadRequest("Invalid data export ID") }

// DeleteOwnExport asks to delete a file with the caller's data. The answer has its name.
type DeleteOwnExport struct{ ID int64 }

func (c DeleteOwnExport) Decide(t *Turn) (OwnExport, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return OwnExport{}, err
	}
	row := t.ownExports(me.ID)
	for i := range row.List {
		if e := &row.List[i]; e.ID == c.ID && e.HasFile() {
			e.Deleted = t.Now
			t.Record(&OwnExportsChanged{me.ID, row.List})
			t.note(AuditEntry{Kind: auditOwnExport, User: me.ID, New: "deleted"})
			return *e, nil
		}
	}
	return OwnExport{}, errOwnExport()
}

// FetchOwnExport asks to download a file with the caller's data. The first download is in the audit log.
type FetchOwnExport struct{ ID int64 }

func (c FetchOwnExport) Decide(t *Turn) (OwnExport, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return OwnExport{}, err
	}
	row := t.ownExports(me.ID)
	for i := range row.List {
		e := &row.List[i]
		if e.ID != c.ID || !e.HasFile() || t.Now >= e.Expires() {
			continue
		}
		if e.Fetched == 0 {
			e.Fetched = t.Now
			t.Record(&OwnExportsChanged{me.ID, row.List})
			t.note(AuditEntry{Kind: auditOwnExport, User: me.ID, New: "downloaded"})
		}
		return *e, nil
	}
	return OwnExport{}, errOwnExport()
}

// OwnExportsChanged sets the exports of a user.
type OwnExportsChanged struct {
	User UserID
	List []OwnExport
}

func (f *OwnExportsChanged) apply(r *Realm) {
	for _, e := range f.List {
		r.reserveID("export", e.ID)
	}
	if len(f.List) == 0 {
		r.small.ownExports.remove(f.User)
		return
	}
	r.small.ownExports.put(f.User, &OwnExports{slices.Clone(f.List)})
}

func (*OwnExportsChanged) notices(*Realm) []Notice { return nil }

// ownExportsDue returns a turn that removes exports whose time has passed, or nil. A sweep then removes their files.
func ownExportsDue(r *Realm, now int64) func(*Turn) (any, error) {
	var due []UserID
	for _, u := range r.small.ownExports.keys() {
		if r.small.ownExports.must(u).forgotten() <= now && len(due) < maxDuePerTurn {
			due = append(due, u)
		}
	}
	if len(due) == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		for _, u := range due {
			row := t.ownExports(u)
			t.Record(&OwnExportsChanged{u, slices.DeleteFunc(row.List, func(e OwnExport) bool {
				return e.forgotten() <= t.Now
			})})
		}
		return nil, nil
	}
}

// forgotten returns when the next export leaves the list.
func (x *OwnExports) forgotten() int64 {
	next := int64(NeverDue)
	for i := range x.List {
		next = min(next, x.List[i].forgotten())
	}
	return next
}

// nextOwnExport returns when the next export leaves a list.
func nextOwnExport(r *Realm, _ int64) int64 {
	next := int64(NeverDue)
	for _, x := range r.small.ownExports.all() {
		next = min(next, x.forgotten())
	}
	return next
}
