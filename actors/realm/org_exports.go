package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Export is the row of one data export.
type Export struct {
	ID      int64
	By      UserID
	Kind    string // PublicExport, ConsentExport or CompleteExport
	Started int64
	Ended   int64 // time at which the file was complete; 0: not complete
	Failed  int64
	Deleted int64
	Name    string // of the file; it cannot be guessed
}

// Pending reports whether the file is still being written.
func (e *Export) Pending() bool { return e.Ended == 0 && e.Failed == 0 && e.Deleted == 0 }

// Kinds of exports: public data; also the private data of users that consented; everything.
const (
	PublicExport   = "public"
	ConsentExport  = "full_with_consent"
	CompleteExport = "full_without_consent"
)

// Limit of exports: number that may be started within a window in seconds (protocol: five per week).
const (
	maxNewExports = 5
	exportWindow  = 7 * 24 * 3600
	// MaxExports limits the rows of exports of an organization: two years of exports, or twenty weeks of files that no
	// user deletes. Each change of an export is an event with all of them.
	MaxExports = 100
)

// StartExport asks for a file with the organization's data. It is written outside the realm.
type StartExport struct {
	Kind        string
	FileRefusal error // the refusal if the file cannot be stored now; nil if it can
}

func (c StartExport) Decide(t *Turn) (Export, error) {
	me, err := t.exportAdmin()
	if err != nil {
		return Export{}, err
	}
	if c.Kind == CompleteExport && !t.OrgBool("owner_full_content_access") {
		return Export{}, errPermission()
	}
	recent := 0
	for _, e := range t.small.exports.all() {
		if e.Started > t.Now-exportWindow {
			recent++
		}
	}
	if recent >= maxNewExports {
		return Export{}, BadRequest("Exceeded rate limit.")
	}
	if c.FileRefusal != nil {
		return Export{}, c.FileRefusal
	}
	forgotten, ok := t.surplusExports()
	if !ok {
		return Export{}, BadRequest("There are too many data exports. Delete old ones first.")
	}
	e := Export{ID: t.nextID("export"), By: me.ID, Kind: c.Kind, Started: t.Now, Name: t.Token(40)}
	t.Record(&ExportChanged{e, forgotten})
	return e, nil
}

// surplusExports returns the exports that must leave the list before another one is started: the oldest ones without a
// file. It reports false if there are not enough of them.
func (t *Turn) surplusExports() (out []int64, ok bool) {
	surplus := t.small.exports.size() + 1 - MaxExports
	for id, e := range t.small.exports.all() {
		if len(out) >= surplus {
			break
		}
		if e.Deleted != 0 || e.Failed != 0 {
			out = append(out, id)
		}
	}
	return out, len(out) >= surplus
}

// exportAdmin returns the caller if it is an administrator and not a bot.
func (v View) exportAdmin() (*User, error) {
	me, err := v.RequireAdmin()
	if err == nil && me.IsBot() {
		err = errBotsNotAllowed()
	}
	return me, err
}

// MayContinueExport refuses an export whose user has lost the right to it since it was started.
func (v View) MayContinueExport(e Export) error {
	by := v.users.find(e.By)
	if by == nil || !by.Active || !by.IsAdmin() || v.Org().Deactivated {
		return errPermission()
	}
	return nil
}

// FinishExport is a command of the server: an export's file is complete, or could not be written.
type FinishExport struct {
	ID     int64
	Failed bool
}

func (c FinishExport) Decide(t *Turn) (Done, error) {
	e := t.small.exports.find(c.ID)
	if !t.System || e == nil || !e.Pending() {
		return Done{}, BadRequest("Invalid data export ID")
	}
	x := *e
	if c.Failed {
		x.Failed = t.Now
	} else {
		x.Ended = t.Now
	}
	t.Record(&ExportChanged{Export: x})
	text := "Your data export is complete; the organization's settings list it."
	if c.Failed {
		text = "Your data export failed; the server's log says why."
	}
	if u := t.users.find(x.By); u != nil && u.Active {
		t.NotifyUsers(text, x.By)
	}
	return Done{}, nil
}

// DeleteExport asks to delete an export. The answer has the name of the file.
type DeleteExport struct{ ID int64 }

func (c DeleteExport) Decide(t *Turn) (Export, error) {
	if _, err := t.exportAdmin(); err != nil {
		return Export{}, err
	}
	e := t.small.exports.find(c.ID)
	switch {
	case e == nil:
		return Export{}, BadRequest("Invalid data export ID")
	case e.Deleted != 0:
		return Export{}, BadRequest("Export already deleted")
	case e.Failed != 0:
		return Export{}, BadRequest("Export failed, nothing to delete")
	case e.Pending():
		return Export{}, BadRequest("Export still in progress")
	}
	x := *e
	x.Deleted = t.Now
	t.Record(&ExportChanged{Export: x})
	return x, nil
}

// ExportChanged says that an export was started, finished, failed or deleted.
type ExportChanged struct {
	Export    Export
	Forgotten []int64 // exports that leave the list
}

func (f *ExportChanged) apply(r *Realm) {
	e := f.Export
	r.reserveID("export", e.ID)
	for _, id := range f.Forgotten {
		r.small.exports.remove(id)
	}
	r.small.exports.put(e.ID, &e)
}

func (f *ExportChanged) notices(r *Realm) []Notice {
	if to := r.humanAdminsAudience(); len(to) > 0 {
		return []Notice{{To: to, Event: &ExportListEvent{r.exportList()}}}
	}
	return nil
}

// ExportListEvent is the event realm_export, with all exports.
type ExportListEvent struct{ Exports []Export }

func (*ExportListEvent) EventType() string { return "realm_export" }

func (r *Realm) exportList() []Export { return r.small.exports.list() }

// Exports returns the data exports, for administrators.
func (v View) Exports() ([]Export, error) {
	if !v.System {
		if _, err := v.exportAdmin(); err != nil {
			return nil, err
		}
	}
	return v.exportList(), nil
}

// Consents returns, for administrators, all active users that are not bots. Their Consented says whether their private
// data may be exported.
func (v View) Consents() ([]*User, error) {
	if _, err := v.exportAdmin(); err != nil {
		return nil, err
	}
	return v.activeHumans(), nil
}

// Consented reports whether the user allows administrators to export their private data.
func (u *User) Consented() bool { return u.BoolSetting("allow_private_data_export") }

// ExportSources returns functions that each return some of the messages of an export of that kind: of public channels;
// with consent, also messages that consenting users received. Each function takes at most the time that one view may
// take.
func (v View) ExportSources(kind string) (places []func(View) ids.Set) {
	if kind == CompleteExport {
		newest := int64(v.LastMessageID())
		return append(places, func(View) (ids ids.Set) { // includes deleted messages: MessagesAt leaves them out
			ids.AddRange(1, newest)
			return ids
		})
	}
	for _, id := range v.channels.keys() {
		if !v.channels.must(id).Private {
			places = append(places, func(v View) (ids ids.Set) {
				if !v.channels.must(id).Private { // it may have become private
					ids = v.index.channels[id].ids.Clone()
				}
				return ids
			})
		}
	}
	if kind == ConsentExport {
		for _, u := range v.activeHumans() {
			if u.Consented() {
				places = append(places, func(v View) ids.Set { return v.rowsOf(u.ID) })
			}
		}
	}
	return places
}

// MessagesAt returns those of some messages that still exist.
func (v View) MessagesAt(ids []MessageID) (out []MessageInfo) {
	for _, id := range ids {
		if m := v.message(id); m != nil {
			if i, err := v.ReadableMessage(id); err == nil {
				out = append(out, i)
			}
		}
	}
	return slices.Clip(out)
}

// ExportConsentEvent is the event realm_export_consent: a user gave or withdrew consent to exports.
type ExportConsentEvent struct {
	User      UserID
	Consented bool
}

func (*ExportConsentEvent) EventType() string { return "realm_export_consent" }

// consentNotices returns the events to administrators about whether a reactivated account consents to exports. No other
// event contains it, and none does for a new account (protocol).
func (r *Realm) consentNotices(u *User) []Notice {
	to := r.humanAdminsAudience()
	if u.IsBot() || len(to) == 0 {
		return nil
	}
	return []Notice{{To: to, Event: &ExportConsentEvent{u.ID, u.Consented()}}}
}
