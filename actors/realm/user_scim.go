package realm

import (
	"strings"
	"unicode/utf8"
)

// maxScimValue limits each text of a row about SCIM in bytes: the longest identifier of a provider is far shorter.
const maxScimValue = 512

// The refusals of SCIM. Package scim gives them the status of its protocol.
var (
	ErrScimTaken = BadRequest("Another account or group has this name.")
	ErrScimOwner = Refuse(Forbidden, "PERMISSION_DENIED", "Owners of the organization are not managed by SCIM.")
	ErrScimGone  = Missing("There is no such resource.")
)

// ScimUser is the row with the values of a client of SCIM that the account itself does not have.
type ScimUser struct {
	UserName, ExternalID     string
	Formatted, Given, Family string // parts of the name
	// Gone says that the client has deleted the account: it is deactivated, and clients do not see it.
	Gone bool
}

// valid reports whether the texts of a row can be stored.
func (x *ScimUser) valid() bool {
	for _, text := range []string{x.UserName, x.ExternalID, x.Formatted, x.Given, x.Family} {
		if len(text) > maxScimValue || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return false
		}
	}
	return true
}

// ScimAccount is an account as clients of SCIM see it.
type ScimAccount struct {
	ScimUser
	ID          UserID
	Name, Email string
	Role        Role
	Active      bool
	Joined      int64 // Unix seconds
}

// seenByScim reports whether clients of SCIM see an account: of humans whose data are not erased.
func (r *Realm) seenByScim(u *User) bool {
	if u == nil || u.System || u.IsBot() || u.Deleted {
		return false
	}
	x := r.small.scimUsers.find(u.ID)
	return x == nil || !x.Gone
}

// ScimRow returns the values of a client of SCIM for an account; all are empty if it has set none.
func (r *Realm) ScimRow(u UserID) (row ScimUser) {
	if x := r.small.scimUsers.find(u); x != nil {
		row = *x
	}
	return row
}

// scimUser returns the row of an account. An account that no client has changed has its address as its user name.
func (r *Realm) scimUser(u *User) ScimUser {
	if x := r.small.scimUsers.find(u.ID); x != nil {
		return *x
	}
	return ScimUser{UserName: u.Email}
}

// ScimAccount returns an account for a client of SCIM, or ErrScimGone. Only the server asks for it.
func (v View) ScimAccount(id UserID) (ScimAccount, error) {
	u := v.Find(id)
	if !v.System || !v.seenByScim(u) {
		return ScimAccount{}, ErrScimGone
	}
	return ScimAccount{ScimUser: v.scimUser(u), ID: u.ID, Name: u.Name, Email: u.Email, Role: u.Role, Active: u.Active,
		Joined: u.Joined}, nil
}

// ScimAccounts returns up to limit accounts that clients of SCIM see, with ids larger than after, ordered by id. Only
// the server asks for it.
func (v View) ScimAccounts(after UserID, limit int) (out []ScimAccount) {
	for id := after + 1; id < v.Org().NextUser && len(out) < limit; id++ {
		if x, err := v.ScimAccount(id); err == nil {
			out = append(out, x)
		}
	}
	return out
}

// findScimName returns the account that has a user name, also one that is gone; nil: none. It reads all rows about
// SCIM: one for each account, at most.
func (r *Realm) findScimName(name string) *User {
	folded := fold(name)
	for id, x := range r.small.scimUsers.all() {
		if fold(x.UserName) == folded {
			return r.users.find(id)
		}
	}
	return nil
}

// SaveScimUser asks to make or change an account for a client of SCIM, as a whole or not at all. Only the server sends
// it. Fields that are nil do not change. It returns the account's id.
type SaveScimUser struct {
	User                     UserID // 0: a new account, or one that is gone
	UserName, ExternalID     *string
	Formatted, Given, Family *string
	Name, Email              *string // required for a new account
	Role                     Role    // 0: unchanged; a member if the account is new
	Active                   *bool
}

func (c SaveScimUser) Decide(t *Turn) (UserID, error) {
	switch {
	case !t.System:
		return 0, errPermission()
	case t.Level() < scimLevel:
		return 0, errLowLevel()
	case t.Org().Deactivated:
		return 0, BadRequest("The organization is deactivated.")
	case c.Role == Owner:
		return 0, ErrScimOwner
	case c.User == 0:
		return c.create(t)
	}
	u := t.Find(c.User)
	if !t.seenByScim(u) {
		return 0, ErrScimGone
	}
	return u.ID, c.change(t, u, t.scimUser(u))
}

// create makes an account. One that a client has deleted comes back instead, so that its messages have their author.
func (c SaveScimUser) create(t *Turn) (UserID, error) {
	if c.UserName == nil || c.Name == nil || c.Email == nil {
		return 0, BadRequest("A new account needs a user name, a name and an email address.")
	}
	byName, byEmail := t.findScimName(*c.UserName), t.FindByEmail(*c.Email)
	for _, u := range []*User{byName, byEmail} {
		if u == nil {
			continue
		}
		both := byName != nil && byEmail != nil && byName != byEmail
		if x := t.small.scimUsers.find(u.ID); both || x == nil || !x.Gone || u.Deleted {
			return 0, ErrScimTaken
		}
		active := c.Active == nil || *c.Active
		c.Active = &active
		return u.ID, c.change(t, u, ScimUser{})
	}
	row := ScimUser{}
	if err := c.changeRow(t, 0, &row); err != nil {
		return 0, err
	}
	if err := t.checkEmailDomain(*c.Email); err != nil {
		return 0, err
	}
	id, err := (CreateUser{Email: *c.Email, Name: *c.Name, Role: c.Role}).Decide(t)
	if err != nil {
		return 0, err
	}
	t.Record(&ScimUserSet{User: id, Row: row})
	if c.Active != nil && !*c.Active {
		t.deactivate(t.Find(id))
	} else {
		t.sendWelcomeMessages(id, nil)
	}
	return id, nil
}

// changeRow changes a row as the command says.
func (c SaveScimUser) changeRow(t *Turn, id UserID, row *ScimUser) error {
	for _, x := range []struct{ to, from *string }{{&row.UserName, c.UserName}, {&row.ExternalID, c.ExternalID},
		{&row.Formatted, c.Formatted}, {&row.Given, c.Given}, {&row.Family, c.Family}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if strings.TrimSpace(row.UserName) == "" || !row.valid() {
		return BadRequest("A value is empty or too long.")
	}
	if c.UserName != nil {
		for _, u := range []*User{t.findScimName(row.UserName), t.FindByEmail(row.UserName)} {
			if u != nil && u.ID != id && t.seenByScim(u) && fold(t.scimUser(u).UserName) == fold(row.UserName) {
				return ErrScimTaken
			}
		}
	}
	row.Gone = false
	return nil
}

// change changes an account. All checks are before the first fact.
func (c SaveScimUser) change(t *Turn, u *User, row ScimUser) error {
	if err := c.changeRow(t, u.ID, &row); err != nil {
		return err
	}
	var facts []Fact
	if c.Name != nil && strings.TrimSpace(*c.Name) != u.Name {
		name := strings.TrimSpace(*c.Name)
		if err := t.checkName(name, u.ID); err != nil {
			return err
		}
		facts = append(facts, &UserChanged{ID: u.ID, Name: &name, OldName: u.Name})
	}
	if c.Email != nil && strings.TrimSpace(*c.Email) != u.Email {
		if o := t.FindByEmail(strings.TrimSpace(*c.Email)); o != nil && o.ID != u.ID {
			return ErrScimTaken
		}
		f, err := t.planEmailChange(u, *c.Email)
		if err != nil {
			return err
		}
		facts = append(facts, f)
	}
	activity := c.Active != nil && *c.Active != u.Active
	role := c.Role != 0 && c.Role != u.Role
	if u.Role == Owner && (len(facts) > 0 || activity || role) {
		return ErrScimOwner
	}
	if role {
		if err := t.checkRoleChange(u, c.Role); err != nil {
			return err
		}
	}
	if activity && *c.Active {
		if _, err := (ReactivateUser{User: u.ID}).Decide(t); err != nil {
			return err
		}
	}
	if role {
		facts = append(facts, t.planRoleChange(t.Find(u.ID), c.Role)...)
	}
	for _, f := range facts {
		t.recordWithVisibility(f)
	}
	if before := t.small.scimUsers.find(u.ID); before == nil || *before != row {
		t.Record(&ScimUserSet{User: u.ID, Row: row})
	}
	if activity && !*c.Active {
		_, err := DeactivateUser{User: u.ID}.Decide(t)
		return err
	}
	return nil
}

// RemoveScimUser asks to delete an account for a client of SCIM: it is deactivated, and clients do not see it. Its
// messages remain.
type RemoveScimUser struct{ User UserID }

func (c RemoveScimUser) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	switch {
	case !t.System:
		return Done{}, errPermission()
	case t.Level() < scimLevel:
		return Done{}, errLowLevel()
	case !t.seenByScim(u):
		return Done{}, ErrScimGone
	case u.Role == Owner:
		return Done{}, ErrScimOwner
	}
	row := t.scimUser(u)
	row.Gone = true
	if u.Active {
		if _, err := (DeactivateUser{User: u.ID}).Decide(t); err != nil {
			return Done{}, err
		}
	}
	t.Record(&ScimUserSet{User: u.ID, Row: row})
	return Done{}, nil
}

// ScimUserSet has the values of a client of SCIM for an account.
type ScimUserSet struct {
	User UserID
	Row  ScimUser
}

func (f *ScimUserSet) apply(r *Realm) {
	x := f.Row
	r.small.scimUsers.put(f.User, &x)
}

func (*ScimUserSet) notices(*Realm) []Notice { return nil }
