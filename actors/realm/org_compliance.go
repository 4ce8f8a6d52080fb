package realm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An organization can demand that two owners agree to each compliance export: one asks, another approves, and then the
// operator writes the file with the criteria of the request, once. An owner alone can switch the demand on. To switch
// it off is a request, too. This is an extension of the protocol.

// complianceLevel is the rule level from which on organizations can demand this.
const complianceLevel uint16 = 5

const (
	// complianceWait is for how long a request can be approved, and then for how long it can be used.
	complianceWait = 7 * secondsPerDay
	// complianceOwners is how many owners must agree.
	complianceOwners = 2
	// MaxComplianceRequests limits the requests that are kept. The oldest one that cannot be approved or used any more
	// is forgotten; the audit log has all of them.
	MaxComplianceRequests = 50
	// MaxCompliancePlaces limits the persons and the channels of a request.
	MaxCompliancePlaces = 50
	// maxComplianceSearch limits the searched text in code points, as the audit log limits values.
	maxComplianceSearch = maxAuditValue
)

// ComplianceFormats are the formats of a compliance export.
var ComplianceFormats = []string{"jsonl", "csv", "eml"}

// ComplianceCriteria choose the messages of a compliance export. Empty criteria choose all.
type ComplianceCriteria struct {
	Persons  []UserID
	Channels []ChannelID
	From, To int64 // Unix seconds; To is not included; 0: no limit
	Search   string
	Format   string
}

// String returns the criteria without the searched text, for the audit log and for owners.
func (c *ComplianceCriteria) String() string {
	parts := []string{"format " + c.Format}
	for _, x := range []struct {
		name string
		ids  []string
	}{{"users", idTexts(c.Persons)}, {"channels", idTexts(c.Channels)}} {
		if len(x.ids) > 0 {
			parts = append(parts, x.name+" "+strings.Join(x.ids, " "))
		}
	}
	if c.From != 0 {
		parts = append(parts, "from "+dateOf(c.From))
	}
	if c.To != 0 {
		parts = append(parts, "before "+dateOf(c.To))
	}
	if c.Search != "" {
		parts = append(parts, "with a search")
	}
	return strings.Join(parts, ", ")
}

func idTexts[T fmt.Stringer](ids []T) (out []string) {
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

// ComplianceRequest is the row of a request for a compliance export, or to switch the demand for two owners off.
type ComplianceRequest struct {
	ID        int64
	At        int64
	End       bool               // to switch the demand off
	Criteria  ComplianceCriteria // of an export
	Owners    []UserID           // that agree, the one that asked first; a request of the operator begins with none
	Agreed    int64              // time at which enough owners agreed; 0: not yet
	Refused   int64              // time
	RefusedBy UserID
	Used      int64 // time at which the file was written
}

// asksSame reports whether an owner, or the operator, made this request and asks the same again.
func (q *ComplianceRequest) asksSame(me *User, again *ComplianceRequest) bool {
	if me == nil && len(q.Owners) > 0 || me != nil && (len(q.Owners) == 0 || q.Owners[0] != me.ID) {
		return false
	}
	a, b := &q.Criteria, &again.Criteria
	return q.End == again.End && slices.Equal(a.Persons, b.Persons) && slices.Equal(a.Channels, b.Channels) &&
		a.From == b.From && a.To == b.To && a.Search == b.Search && a.Format == b.Format
}

// State returns whether a request is "pending", "approved", "refused", "used" or "expired" at a time.
func (q *ComplianceRequest) State(now int64) string {
	switch {
	case q.Used != 0:
		return "used"
	case q.Refused != 0:
		return "refused"
	case q.Agreed != 0 && now < q.Agreed+complianceWait:
		return "approved"
	case q.Agreed == 0 && now < q.At+complianceWait:
		return "pending"
	}
	return "expired"
}

// CompliancePolicy is the row that says whether two owners must agree. It has the key 0.
type CompliancePolicy struct{ TwoOwners bool }

// TwoOwnersExport reports whether two owners must agree to a compliance export.
func (r *Realm) TwoOwnersExport() bool {
	p := r.small.compliancePolicy.find(0)
	return p != nil && p.TwoOwners
}

// ComplianceRequests returns the requests, the oldest first, for owners and the operator.
func (v View) ComplianceRequests() (out []ComplianceRequest, err error) {
	if err := v.checkAuditReader(); err != nil {
		return nil, err
	}
	for _, id := range v.small.compliance.keys() {
		out = append(out, *v.small.compliance.must(id))
	}
	return out, nil
}

// FindPerson returns the user that the operator has named by an address or a number. System bots are not found.
func (r *Realm) FindPerson(person string) (*User, error) {
	u := r.FindByEmail(person)
	if id, err := strconv.ParseInt(person, 10, 64); u == nil && err == nil {
		u = r.Find(UserID(id))
	}
	if u == nil || u.System {
		return nil, fmt.Errorf("no user %q; parley user list shows them", person)
	}
	return u, nil
}

// ComplianceIDs returns the numbers of users and channels that an operator has named, by address, name or number.
func (v View) ComplianceIDs(persons, channels []string) (users []UserID, places []ChannelID, err error) {
	for _, name := range persons {
		u, err := v.FindPerson(name)
		if err != nil {
			return nil, nil, err
		}
		users = append(users, u.ID)
	}
	for _, name := range channels {
		c := v.FindChannelByName(name)
		if id, err := strconv.ParseInt(name, 10, 64); c == nil && err == nil {
			c = v.FindChannel(ChannelID(id))
		}
		if c == nil {
			return nil, nil, fmt.Errorf("no channel %q; parley channel list shows them", name)
		}
		places = append(places, c.ID)
	}
	return users, places, nil
}

// complianceOwner returns the caller if it is an owner and not a bot, nil for the operator.
func (t *Turn) complianceOwner() (*User, error) {
	if t.Level() < complianceLevel {
		return nil, errLowLevel()
	}
	if t.System {
		return nil, nil
	}
	me, err := t.RequireOwner()
	if err == nil && me.IsBot() {
		err = errBotsNotAllowed()
	}
	return me, err
}

// DemandTwoOwners asks to switch the demand on at once, or asks the other owners to switch it off. The answer has the
// request of the latter.
type DemandTwoOwners struct{ On bool }

func (c DemandTwoOwners) Decide(t *Turn) (ComplianceRequest, error) {
	me, err := t.complianceOwner()
	switch {
	case err != nil:
		return ComplianceRequest{}, err
	case c.On == t.TwoOwnersExport():
		return ComplianceRequest{}, nil
	case !c.On:
		return t.askOwners(me, ComplianceRequest{End: true})
	case len(t.activeOwners(maxOwnersNotified)) < complianceOwners:
		return ComplianceRequest{}, BadRequest("The organization needs at least %d owners for this.", complianceOwners)
	}
	t.Record(&ComplianceChanged{Policy: &CompliancePolicy{true}})
	t.note(AuditEntry{Kind: "export.policy", Old: "one owner", New: "two owners"})
	return ComplianceRequest{}, nil
}

// AskComplianceExport asks the owners to approve a compliance export.
type AskComplianceExport struct{ Criteria ComplianceCriteria }

func (c AskComplianceExport) Decide(t *Turn) (ComplianceRequest, error) {
	me, err := t.complianceOwner()
	if err != nil {
		return ComplianceRequest{}, err
	}
	x := &c.Criteria
	switch {
	case !t.TwoOwnersExport():
		err = BadRequest("This organization does not demand that two owners agree.")
	case !slices.Contains(ComplianceFormats, x.Format):
		err = BadRequest("Invalid format")
	case len(x.Persons) > MaxCompliancePlaces || len(x.Channels) > MaxCompliancePlaces:
		err = BadRequest("Too many users or channels (limit: %d)", MaxCompliancePlaces)
	case utf8.RuneCountInString(x.Search) > maxComplianceSearch:
		err = BadRequest("The searched text is too long (limit: %d characters)", maxComplianceSearch)
	case x.From < 0 || x.To < 0 || x.To != 0 && x.From >= x.To:
		err = BadRequest("Invalid dates")
	case slices.ContainsFunc(x.Persons, func(id UserID) bool { u := t.Find(id); return u == nil || u.System }):
		err = BadRequest("Invalid user ID")
	case slices.ContainsFunc(x.Channels, func(id ChannelID) bool { return t.FindChannel(id) == nil }):
		err = BadRequest("Invalid channel ID")
	}
	if err != nil {
		return ComplianceRequest{}, err
	}
	return t.askOwners(me, ComplianceRequest{Criteria: *x})
}

// askOwners records a request and tells the other owners. me is nil for the operator. A request that its owner has
// already made, and that waits, is returned instead: a form may be sent twice.
func (t *Turn) askOwners(me *User, q ComplianceRequest) (ComplianceRequest, error) {
	for _, id := range t.small.compliance.keys() {
		if p := t.small.compliance.must(id); p.State(t.Now) == "pending" && p.asksSame(me, &q) {
			return *p, nil
		}
	}
	forgotten := int64(0)
	if t.small.compliance.size() >= MaxComplianceRequests {
		for _, id := range t.small.compliance.keys() {
			if s := t.small.compliance.must(id).State(t.Now); s != "pending" && s != "approved" {
				forgotten = id
				break
			}
		}
		if forgotten == 0 {
			return q, BadRequest("There are too many requests. Refuse old ones first.")
		}
	}
	q.ID, q.At = t.nextID("compliance request"), t.Now
	by := "The operator of this server"
	if me != nil {
		q.Owners = []UserID{me.ID}
		by = t.SilentMention(me.ID)
	}
	t.Record(&ComplianceChanged{Request: &q, Forgotten: forgotten})
	t.note(AuditEntry{Kind: "export.request", New: q.auditText()})
	wish := "a compliance export (" + q.Criteria.String() + ")"
	if q.End {
		wish = "that compliance exports need one owner only"
	}
	for _, id := range t.activeOwners(maxOwnersNotified) {
		if me == nil || id != me.ID {
			t.NotifyUsers(by+" asks for "+wish+". Approve or refuse it in the [settings of the organization]"+
				"(#organization/compliance).", id)
		}
	}
	return q, nil
}

func (q *ComplianceRequest) auditText() string {
	if q.End {
		return "request " + number(q.ID) + ": one owner"
	}
	return "request " + number(q.ID) + ": " + q.Criteria.String()
}

// openRequest returns a copy of a request that waits for owners.
func (t *Turn) openRequest(id int64) (ComplianceRequest, error) {
	q := t.small.compliance.find(id)
	if q == nil || q.State(t.Now) != "pending" {
		return ComplianceRequest{}, BadRequest("Invalid request ID")
	}
	x := *q
	x.Owners = slices.Clone(q.Owners)
	return x, nil
}

// AnswerComplianceRequest asks to approve or refuse a request. The owner who asked can only refuse it.
type AnswerComplianceRequest struct {
	ID      int64
	Approve bool
}

func (c AnswerComplianceRequest) Decide(t *Turn) (Done, error) {
	me, err := t.complianceOwner()
	if err != nil {
		return Done{}, err
	}
	if me == nil {
		return Done{}, errNotOwner()
	}
	q, err := t.openRequest(c.ID)
	switch {
	case err != nil:
		return Done{}, err
	case !c.Approve:
		q.Refused, q.RefusedBy = t.Now, me.ID
		t.Record(&ComplianceChanged{Request: &q})
		t.note(AuditEntry{Kind: "export.refuse", New: q.auditText()})
		t.tellOwners(&q, me, "refused")
		return Done{}, nil
	case slices.Contains(q.Owners, me.ID):
		return Done{}, BadRequest("Another owner must approve this.")
	}
	q.Owners = append(q.Owners, me.ID)
	enough := len(t.agreeing(&q)) >= complianceOwners
	if enough {
		if q.Agreed = t.Now; q.End {
			q.Used = t.Now
		}
	}
	changed := &ComplianceChanged{Request: &q}
	if enough && q.End {
		changed.Policy = &CompliancePolicy{}
	}
	t.Record(changed)
	t.note(AuditEntry{Kind: "export.approve", New: q.auditText()})
	if changed.Policy != nil {
		t.note(AuditEntry{Kind: "export.policy", Old: "two owners", New: "one owner"})
	}
	t.tellOwners(&q, me, "approved")
	return Done{}, nil
}

// tellOwners tells the owners that agreed to a request about an answer.
func (t *Turn) tellOwners(q *ComplianceRequest, by *User, answer string) {
	for _, id := range q.Owners {
		if u := t.users.find(id); id != by.ID && u != nil && u.Active {
			t.NotifyUsers(fmt.Sprintf("%s has %s request %d in the [settings of the organization]"+
				"(#organization/compliance).", t.SilentMention(by.ID), answer, q.ID), id)
		}
	}
}

// agreeing returns the owners of a request that still are active owners.
func (r *Realm) agreeing(q *ComplianceRequest) (out []UserID) {
	for _, id := range q.Owners {
		if u := r.users.find(id); u != nil && u.Active && u.Role == Owner {
			out = append(out, id)
		}
	}
	return out
}

// NoteComplianceExport asks, for the operator, to add an entry about a compliance export to the audit log before it
// begins. The answer has the criteria of the request. Where two owners must agree, an approved request is required,
// which this uses up, or Force.
type NoteComplianceExport struct {
	Criteria string // without a request
	Request  int64
	Force    bool
}

func (c NoteComplianceExport) Decide(t *Turn) (out ComplianceCriteria, err error) {
	if !t.System {
		return out, errPermission()
	}
	if c.Request == 0 {
		text := c.Criteria
		if t.TwoOwnersExport() {
			if !c.Force {
				return out, BadRequest("Two owners must agree to this export: ask them with --ask, then use " +
					"--request. With --force the export is made without them, and the audit log says so.")
			}
			text = "without the owners: " + text
		}
		t.note(AuditEntry{Kind: "export.compliance", New: text})
		return out, nil
	}
	q := t.small.compliance.find(c.Request)
	switch {
	case q == nil || q.End:
		return out, BadRequest("There is no request %d for an export", c.Request)
	case q.State(t.Now) != "approved":
		return out, BadRequest("Request %d is %s", c.Request, q.State(t.Now))
	case len(t.agreeing(q)) < complianceOwners:
		return out, BadRequest("Request %d was approved by users who are no owners any more", c.Request)
	}
	x := *q
	x.Used = t.Now
	t.Record(&ComplianceChanged{Request: &x})
	t.note(AuditEntry{Kind: "export.compliance", New: x.auditText()})
	return x.Criteria, nil
}

// ComplianceChanged sets a request and whether two owners must agree.
type ComplianceChanged struct {
	Request   *ComplianceRequest // nil: none changes
	Policy    *CompliancePolicy  // nil: it does not change
	Forgotten int64              // request that is forgotten; 0: none
}

func (f *ComplianceChanged) apply(r *Realm) {
	if f.Forgotten != 0 {
		r.small.compliance.remove(f.Forgotten)
	}
	if q := f.Request; q != nil {
		r.reserveID("compliance request", q.ID)
		x := *q
		r.small.compliance.put(q.ID, &x)
	}
	if f.Policy != nil {
		p := *f.Policy
		r.small.compliancePolicy.put(0, &p)
	}
}

func (*ComplianceChanged) notices(*Realm) []Notice { return nil }
