package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// Role of a user. Lower numbers have more permissions. The numbers are the protocol's.
type Role int

const (
	Owner         Role = 100
	Administrator Role = 200
	Moderator     Role = 300
	Member        Role = 400
	Guest         Role = 600
)

// BotType is 0 for humans. The numbers are the protocol's.
type BotType int

const (
	Human           BotType = 0
	GenericBot      BotType = 1
	IncomingWebhook BotType = 2
	OutgoingWebhook BotType = 3
	EmbeddedBot     BotType = 4
)

// User is the row of one account.
type User struct {
	ID              UserID
	Email           string // the real address as given; compared without case
	Name            string
	Role            Role
	Bot             BotType
	BotOwner        UserID // 0: none
	System          bool   // one of the three system bots
	Active          bool
	Deleted         bool
	ImportedStub    bool
	Joined          int64
	LoggedIn        bool // has logged in since the account was created
	Timezone        string
	Avatar          string // source: J generated, G external, U uploaded
	AvatarFile      string
	AvatarVersion   int
	Keys            [][32]byte // hashes of the API keys, oldest first; the keys are not stored
	Password        string     // Argon2id in PHC form, "" for none
	Settings        map[string]any
	Profile         Profile // custom profile values by field id, as stored
	ProfileHTML     Profile
	MayChangeEmails bool      // granted by the operator: can_change_user_emails
	MayCreateUsers  bool      // granted by the operator: can_create_users
	KeyEpoch        int64     // how often the account's API key was revoked
	KeyInfo         []KeyInfo // additional API keys, oldest first
}

func (u *User) IsAdmin() bool     { return u.Role <= Administrator }
func (u *User) IsModerator() bool { return u.Role <= Moderator }
func (u *User) IsGuest() bool     { return u.Role == Guest }
func (u *User) IsBot() bool       { return u.Bot != Human }

// addUser stores a new account and adds it to the indexes.
func (r *Realm) addUser(u *User) {
	o := r.org.change(0)
	o.NextUser = max(o.NextUser, u.ID+1)
	r.users.put(u.ID, u)
	r.index.userByEmail[FoldEmail(u.Email)] = u.ID
	r.index.addUserName(u.ID, u.Name)
	r.index.indexBot(u)
	r.index.indexUserSettings(u)
}

// indexUserSettings updates the indexes of user settings: emails about all channel messages, hidden presence, and
// whether notices of resolved topics count as read.
func (x *indexes) indexUserSettings(u *User) {
	note := func(s *ids.Set, in bool) {
		if in {
			s.Add(int64(u.ID))
		} else {
			s.Remove(int64(u.ID))
		}
	}
	note(&x.emailsAllChannels, u.BoolSetting(emailSettings.channel))
	note(&x.presenceHidden, u.away())
	policy := u.TextSetting("resolved_topic_notice_auto_read_policy")
	note(&x.autoReadsResolved, policy == "always")
	note(&x.autoReadsUnfollowed, policy == "except_followed")
}

// indexBot adds an account to the index of bots. A bot never becomes a human.
func (x *indexes) indexBot(u *User) {
	if u.IsBot() && !u.System {
		x.bots.Add(int64(u.ID))
	}
}

// addUserName adds a user to the index of names. Several users may have the same name.
func (x *indexes) addUserName(u UserID, name string) {
	list := x.usersByName[fold(name)]
	if i, known := slices.BinarySearch(list, u); !known {
		x.usersByName[fold(name)] = slices.Insert(list, i, u)
	}
}

// removeUserName removes a user from the index of names.
func (x *indexes) removeUserName(u UserID, name string) {
	list := x.usersByName[fold(name)]
	if i, known := slices.BinarySearch(list, u); known {
		x.usersByName[fold(name)] = slices.Delete(list, i, i+1)
	}
	if len(x.usersByName[fold(name)]) == 0 {
		delete(x.usersByName, fold(name))
	}
}

// FindByName returns the user with that name, compared without case, or nil. It prefers active accounts, then the
// oldest.
func (r *Realm) FindByName(name string) *User {
	var found *User
	for _, id := range r.index.usersByName[fold(name)] {
		if u := r.users.must(id); found == nil || u.Active && !found.Active {
			found = u
		}
	}
	return found
}

// FoldEmail returns an email address in the form used for comparisons: addresses that differ only in case are the same.
func FoldEmail(e string) string { return strings.ToLower(strings.TrimSpace(e)) }

// Find returns the user with that id, system bots included, or nil.
func (r *Realm) Find(id UserID) *User { return r.users.find(id) }

// FindByEmail returns the user with that real email address, or nil.
func (r *Realm) FindByEmail(email string) *User {
	if id, ok := r.index.userByEmail[FoldEmail(email)]; ok {
		return r.users.find(id)
	}
	return nil
}

// EachUser calls fn with every account, ordered by id, system bots included.
func (r *Realm) EachUser(fn func(*User)) {
	for id := UserID(0); id < r.Org().NextUser; id++ {
		if u := r.users.find(id); u != nil {
			fn(u)
		}
	}
}

// EachBot calls fn with every bot except system bots, ordered by id.
func (r *Realm) EachBot(fn func(*User)) {
	r.index.bots.Each(func(id int64) bool {
		fn(r.users.must(UserID(id)))
		return true
	})
}

// EachSystemBot calls fn with every system bot, ordered by id.
func (r *Realm) EachSystemBot(fn func(*User)) {
	for _, id := range []UserID{NotificationBot, WelcomeBot, EmailGateway} {
		if u := r.users.find(id); u != nil && u.System {
			fn(u)
		}
	}
}

// UsersAfter calls fn with at most max accounts with ids above after, in ascending order. It returns the id to continue
// after, and whether there are more.
func (r *Realm) UsersAfter(after UserID, max int, fn func(*User)) (last UserID, more bool) {
	for id := after + 1; id < r.Org().NextUser; id++ {
		if u := r.users.find(id); u != nil {
			if max == 0 {
				return id - 1, true
			}
			max--
			fn(u)
		}
	}
	return 0, false
}

// Me returns the caller's row, or nil for visitors and the server itself.
func (v View) Me() *User { return v.users.find(v.User) }

// RequireHuman returns the caller's row. It refuses bots and visitors.
func (v View) RequireHuman() (*User, error) {
	me := v.Me()
	if me == nil {
		return nil, errNotMember()
	}
	if me.IsBot() {
		return nil, errBotsNotAllowed()
	}
	return me, nil
}

// RequireAdmin returns the caller's row. It refuses everyone but administrators and owners.
func (v View) RequireAdmin() (*User, error) {
	me := v.Me()
	if me == nil || !me.IsAdmin() {
		return nil, errNotAdmin()
	}
	return me, nil
}

// RequireOwner returns the caller's row. It refuses everyone but owners.
func (v View) RequireOwner() (*User, error) {
	me := v.Me()
	if me == nil || me.Role != Owner {
		return nil, errNotOwner()
	}
	return me, nil
}

// MaySeeUser reports whether the caller may see a user. Everyone may see everyone, unless guests are limited to users
// with whom they share a channel or a direct conversation.
func (v View) MaySeeUser(u *User) bool {
	me := v.Me()
	if me == nil {
		return v.System || v.SpectatorsAllowed()
	}
	return v.Realm.maySeeUser(me, u)
}

// maySeeUser reports whether me may see u; see View.MaySeeUser.
func (r *Realm) maySeeUser(me, u *User) bool {
	if !me.IsGuest() || me.ID == u.ID || u.IsBot() || !r.GuestsLimited() {
		return true
	}
	// A deactivated user is in no channel.
	if u.Active && !ids.Intersection(r.subscribedChannelSet(me.ID), r.subscribedChannelSet(u.ID)).Empty() {
		return true
	}
	return findSet(r.index.directMessages, me.ID).Intersects(findSet(r.index.directMessages, u.ID))
}

// GuestsLimited reports whether guests may see only users with whom they share a channel or a direct conversation.
func (r *Realm) GuestsLimited() bool {
	return r.OrgGroup("can_access_all_users_group").Group == r.SystemGroup("role:members")
}

// SeesEmail reports whether the viewer may see the user's real email address (protocol: email_address_visibility).
// viewer is nil for logged-out visitors, who see only the addresses of bots.
func (r *Realm) SeesEmail(viewer, u *User) bool {
	if u.IsBot() {
		return true
	}
	if viewer == nil {
		return false
	}
	vis := u.IntSetting("email_address_visibility")
	if viewer.ID == u.ID {
		return true
	}
	switch {
	case viewer.IsAdmin():
		return vis != 4
	case viewer.Role == Moderator:
		return vis == 1 || vis == 2 || vis == 5
	case viewer.Role == Member:
		return vis == 1 || vis == 2
	}
	return vis == 1
}

// activeUsers returns all active accounts except system bots.
func (r *Realm) activeUsers() []*User {
	out := make([]*User, 0, r.users.size())
	r.EachUser(func(u *User) {
		if u.Active && !u.System {
			out = append(out, u)
		}
	})
	return out
}

// CreateUser asks to create an account. Administrators with the grant may do so, and the server itself.
type CreateUser struct {
	Email, Name, Password string // Password: Argon2id in PHC form, or ""
	Role                  Role
	Key                   string // API key; "": none
	Bot                   BotType
	BotOwner              UserID
	Channels              []ChannelID // in addition to the default channels
	NoDefaults            bool
	First                 bool // the organization's first owner: no announcement
}

func (c CreateUser) Decide(t *Turn) (UserID, error) {
	if err := t.CheckNewUser(c.Email, c.Name); err != nil {
		return 0, err
	}
	if err := t.checkUserCount(); err != nil {
		return 0, err
	}
	email := strings.TrimSpace(c.Email)
	role := c.Role
	if role == 0 {
		role = Member
	}
	id := t.Org().NextUser
	u := User{
		ID: id, Email: email, Name: strings.TrimSpace(c.Name), Role: role, Bot: c.Bot, BotOwner: c.BotOwner,
		Active: true, Joined: t.Now, LoggedIn: t.System, Password: c.Password,
		Avatar: t.OrgText("default_avatar_source"), AvatarVersion: 1, Settings: map[string]any{},
	}
	if language := t.OrgText("default_language"); language != "en" {
		u.Settings["default_language"] = language
	}
	for k, v := range t.Org().UserDefaults {
		u.Settings[k] = v
	}
	if c.Key != "" {
		u.Keys = [][32]byte{t.Hash(c.Key)}
	}
	t.Record(&UserJoined{User: u})
	channels := slices.Clone(c.Channels)
	if !c.NoDefaults {
		channels = append(channels, t.Org().DefaultChannels...)
	}
	t.joinFirstChannels(&u, channels)
	if !t.System {
		t.sendWelcomeMessages(id, nil)
	}
	return id, nil
}

// UserJoined says that an account was created.
type UserJoined struct{ User User }

func (f *UserJoined) apply(r *Realm) {
	u := f.User
	u.Settings = cloneMap(u.Settings)
	r.addUser(&u)
}

func (f *UserJoined) notices(r *Realm) []Notice {
	u := r.users.must(f.User.ID)
	out := append(r.announceUser(u, r.everyoneAudience(), false), r.statusNotices(u)...)
	if to := r.everyoneAudience(); len(to) > 0 { // registrations show group members to everyone
		out = append(out, Notice{To: to, Event: &GroupMembersChanged{
			Group: groupOfRole(u.Role), Joined: true, Users: []UserID{u.ID},
		}})
		if r.listedAsFullMember(u) {
			out = append(out, Notice{To: to, Event: &GroupMembersChanged{
				Group: groupFullMembers, Joined: true, Users: []UserID{u.ID},
			}})
		}
	}
	return out
}

// UserChanged says that fields of an account changed. Nil fields did not.
type UserChanged struct {
	ID       UserID
	Name     *string
	Role     *Role
	Active   *bool
	Email    *string
	Timezone *string
	Person   *UserInfo // with Timezone, whose event contains the user's address, too
	Owner    *UserID   // of a bot
	OldName  string
	OldRole  Role        // with Role
	Appear   []ChannelID // with Role: channels that became visible; only in old journals, ChannelsShown replaced it
	Vanish   []ChannelID // with Role: channels that became invisible
	WasFull  bool        // with Role: listed as a full member before
	IsFull   bool        // with Role: listed as a full member afterwards
	Deleted  bool        // the account is deleted permanently
}

func (f *UserChanged) apply(r *Realm) {
	u := r.users.change(f.ID)
	if f.Name != nil {
		r.index.removeUserName(u.ID, u.Name)
		u.Name = *f.Name
		r.index.addUserName(u.ID, u.Name)
	}
	if f.Role != nil {
		u.Role = *f.Role
		r.index.queueAudiences.valid = false
	}
	if f.Active != nil {
		u.Active = *f.Active
		r.indexAccountActive(u)
	}
	if f.Email != nil {
		delete(r.index.userByEmail, FoldEmail(u.Email))
		u.Email = *f.Email
		r.index.userByEmail[FoldEmail(u.Email)] = u.ID
	}
	if f.Timezone != nil {
		u.Timezone = *f.Timezone
	}
	if f.Owner != nil {
		u.BotOwner = *f.Owner
	}
	if f.Deleted {
		u.Deleted = true
	}
}

func (f *UserChanged) notices(r *Realm) []Notice {
	u := r.users.must(f.ID)
	if f.Email != nil {
		return r.emailNotices(u)
	}
	var out []Notice
	if f.Timezone != nil { // the only setting that is also sent to other users
		out = append(out, Notice{To: r.usersAudience(f.ID), Event: &UserSettingChanged{
			User: f.ID, Name: "timezone", Value: *f.Timezone,
		}})
	}
	out = append(out, Notice{To: r.canSeeUserAudience(u), Event: f})
	if f.Role != nil {
		out = append(out, f.roleNotices(r)...)
	}
	return out
}

func (f *UserChanged) EventType() string { return "realm_user" }

// emailNotices returns the events about a new email address: to users who may see it, and to all who see it as the
// shown address.
func (r *Realm) emailNotices(u *User) (out []Notice) {
	if to := r.matchingAudience(func(w *User) bool { return r.maySeeUser(w, u) && r.SeesEmail(w, u) }); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &DeliveryEmailSeen{User: u.ID, Email: u.Email}})
	}
	if u.Avatar == "G" { // its picture belongs to the address
		if to := r.canSeeUserAudience(u); len(to) > 0 {
			out = append(out, Notice{To: to, Event: &AvatarShown{r.UserInfo(u.ID)}})
		}
	}
	if p := r.UserInfo(u.ID); p.EmailPublic {
		if to := r.canSeeUserAudience(u); len(to) > 0 {
			out = append(out, Notice{To: to, Event: &ShownEmailChanged{p}})
		}
	}
	return out
}

// PasswordChanged carries the new Argon2id hash in PHC form.
type PasswordChanged struct {
	ID   UserID
	Hash string
}

func (f *PasswordChanged) apply(r *Realm)            { r.users.change(f.ID).Password = f.Hash }
func (f *PasswordChanged) notices(r *Realm) []Notice { return nil }

// SetPassword asks to set a password, for the operator or the page for forgotten passwords. Hash is Argon2id in PHC
// form.
type SetPassword struct {
	User     UserID
	Hash     string
	KeepKeys bool // the API keys stay valid; otherwise all are revoked
}

func (c SetPassword) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	if u == nil || (!t.System && t.User != c.User) {
		return Done{}, errNoUser()
	}
	t.Record(&PasswordChanged{u.ID, c.Hash})
	t.endBrowserSessions(u.ID)
	if !c.KeepKeys {
		t.issueKey(u, true)
	}
	return Done{}, nil
}

// cloneMap returns a copy of a map. Unlike maps.Clone it never returns nil, so the copy can be written to.
func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// FindByShownEmail returns the user that an address means to the caller. A real address counts only if the caller may
// see it, so that the owner of a hidden address cannot be found. A placeholder address is resolved by the id in it.
func (v View) FindByShownEmail(address string) *User {
	if u := v.FindByEmail(address); u != nil && (v.System || v.SeesEmail(v.Me(), u)) {
		return u
	}
	if id, ok := v.parseDummyEmail(strings.TrimSpace(address)); ok {
		return v.Find(id)
	}
	return nil
}

// CheckNewUser refuses callers who may not create accounts, and invalid or used addresses and names.
func (v View) CheckNewUser(email, name string) error {
	if !v.System {
		if me, err := v.RequireAdmin(); err != nil {
			return err
		} else if !me.MayCreateUsers {
			return BadRequest("User not authorized to create users")
		}
	}
	if err := v.checkName(name, 0); err != nil {
		return err
	}
	email = strings.TrimSpace(email)
	switch {
	case !ValidEmail(email) && v.System:
		return ErrInvalidEmail()
	case !ValidEmail(email):
		return BadRequest("Bad name or username")
	case !v.System:
		if err := v.checkEmailDomain(email); err != nil {
			return err
		}
	}
	if v.FindByEmail(email) != nil {
		return BadRequest("Email is already in use.")
	}
	return nil
}
