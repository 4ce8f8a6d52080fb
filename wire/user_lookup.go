package wire

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
)

var userEndpoints = slices.Concat([]Endpoint{
	Custom("GET", "/users", getUsers).AllowVisitors(),
	Get("/users/me", getMe),
}, userAdminEndpoints)

var userEvents = []EventKind{
	Event(userAppeared),
	Event(userVanished),
	Event(userLoggedIn),
	EventOneOf(userChanged).sends(formOf[personEvent[personName]](), formOf[personEvent[personRole]](),
		formOf[personEvent[personActive]](), formOf[personEvent[personTimezone]](),
		formOf[personEvent[personOwner]](), formOf[personEvent[personDeleted]]()),
}

// apiEmail returns the email address that clients see: the real one if it is visible to all users, else the
// placeholder.
func apiEmail(p realm.UserInfo, s Site) string {
	if p.EmailPublic {
		return p.Email
	}
	return dummyEmail(p.ID, s)
}

// findByAddress returns the user with a real or placeholder address. A placeholder address of another organization
// matches no user.
func findByAddress(v realm.View, address string, s Site) *realm.User {
	address = strings.TrimSpace(address)
	u := v.FindByShownEmail(address)
	if u == nil || strings.EqualFold(address, u.Email) {
		return u
	}
	if _, host, _ := strings.Cut(address, "@"); !strings.EqualFold(host, s.Host) {
		return nil
	}
	return u
}

// dummyEmail returns the placeholder address of a user.
func dummyEmail(u realm.UserID, s Site) string { return "user" + u.String() + "@" + s.Host }

// avatarURL returns the URL of a user's picture. It returns nil (JSON null) for a Gravatar if the client computes its
// URL itself. A client cannot compute the URL of an uploaded or generated picture.
func avatarURL(p realm.UserInfo, s Site, computed bool) *string {
	if p.Avatar == "G" && computed {
		return nil
	}
	return ptr(ownAvatarURL(p, s))
}

// GravatarHost is the host from which browsers load the pictures of accounts that have one there.
const GravatarHost = "secure.gravatar.com"

// ownAvatarURL returns the URL of a user's picture, also of a Gravatar.
func ownAvatarURL(p realm.UserInfo, s Site) string {
	switch p.Avatar {
	case "U":
		return "/user_avatars/" + realmPath(s) + "/" + p.AvatarFile + ".png?v=" + strconv.Itoa(p.AvatarVersion)
	case "G":
		h := md5.Sum([]byte(strings.ToLower(apiEmail(p, s))))
		return "https://" + GravatarHost + "/avatar/" + hex.EncodeToString(h[:]) + "?d=identicon&v=" +
			strconv.Itoa(p.AvatarVersion)
	}
	return "/user_avatars/" + realmPath(s) + "/generated/" + p.ID.String() + ".png?v=" + strconv.Itoa(p.AvatarVersion)
}

// isoMinutes formats a time as the protocol does for join dates: ISO 8601 with minutes and +00:00.
func isoMinutes(unix int64) string {
	return time.Unix(unix, 0).UTC().Format("2006-01-02T15:04") + "+00:00"
}

// accountFields are the fields of an account that all clients get.
type accountFields struct {
	ID            realm.UserID            `json:"user_id"`
	Email         string                  `json:"email"`
	Name          string                  `json:"full_name"`
	Joined        string                  `json:"date_joined"`
	IsOwner       bool                    `json:"is_owner"`
	IsAdmin       bool                    `json:"is_admin"`
	IsGuest       bool                    `json:"is_guest"`
	IsBot         bool                    `json:"is_bot"`
	Role          realm.Role              `json:"role"`
	AvatarVersion int                     `json:"avatar_version"`
	ImportedStub  bool                    `json:"is_imported_stub"`
	Profile       map[string]profileValue `json:"profile_data,omitzero"`
}

// shownFields depend on the rights of the viewer.
type shownFields struct {
	DeliveryEmail *string `json:"delivery_email"`
	Avatar        *string `json:"avatar_url"`
	Deleted       bool    `json:"is_deleted,omitzero"`
}

// botDetails are null for people.
type botDetails struct {
	BotType  realm.BotType `json:"bot_type" zero:"null"`
	BotOwner realm.UserID  `json:"bot_owner_id" zero:"null"`
}

// visitorTimezone is absent for logged-out visitors.
type visitorTimezone struct {
	Timezone *string `json:"timezone,omitzero"`
}

type profileValue struct {
	Value string  `json:"value"`
	HTML  *string `json:"rendered_value,omitzero"`
}

type userJSON struct {
	accountFields
	shownFields
	botDetails
	Timezone string `json:"timezone"`
	Active   bool   `json:"is_active"`
}

// listedUserJSON is an account in GET /users, which logged-out visitors can use.
type listedUserJSON struct {
	accountFields
	shownFields
	botDetails
	visitorTimezone
	Active bool `json:"is_active"`
}

// registeredUserJSON is an account in a list of a registration, which implies whether it is active.
type registeredUserJSON struct {
	accountFields
	shownFields
	botDetails
	visitorTimezone
}

type systemBotJSON struct {
	userJSON
	System bool `json:"is_system_bot"`
}

// ownUserJSON is the caller's own account.
type ownUserJSON struct {
	accountFields
	DeliveryEmail string                `json:"delivery_email"`
	Avatar        string                `json:"avatar_url"`
	Timezone      string                `json:"timezone"`
	Active        bool                  `json:"is_active"`
	BotType       realm.BotType         `json:"bot_type,omitzero"`
	BotOwner      *orNull[realm.UserID] `json:"bot_owner_id,omitzero"`
	MaxMessage    int64                 `json:"max_message_id"`
}

// newUserJSON returns an account with the fields that the view's caller can see.
func newUserJSON(v realm.View, u *realm.User, s Site, gravatar, profile bool) userJSON {
	return userSeenBy(v, v.Me(), u, s, gravatar, profile)
}

// userSeenBy returns an account with the fields that the viewer can see. viewer is nil for logged-out visitors: as in
// Zulip, they get the day of the join date without its time.
func userSeenBy(v realm.View, viewer, u *realm.User, s Site, gravatar, profile bool) userJSON {
	out := newPerson(u, v.UserInfo(u.ID), s, v.SeesEmail(viewer, u), gravatar, profile)
	if viewer == nil {
		out.Joined = time.Unix(u.Joined, 0).UTC().Format(time.DateOnly)
	}
	return out
}

// newPerson returns an account. sees reports whether the viewer can see the real email address.
func newPerson(u *realm.User, p realm.UserInfo, s Site, sees, gravatar, profile bool) userJSON {
	out := userJSON{
		accountFields: accountFields{ID: u.ID, Email: apiEmail(p, s), Name: u.Name, Joined: isoMinutes(u.Joined),
			IsOwner: u.Role == realm.Owner, IsAdmin: u.IsAdmin(), IsGuest: u.IsGuest(), IsBot: u.IsBot(), Role: u.Role,
			AvatarVersion: u.AvatarVersion, ImportedStub: u.ImportedStub},
		shownFields: shownFields{Avatar: avatarURL(p, s, gravatar && sees), Deleted: u.Deleted},
		Timezone:    u.Timezone,
		Active:      u.Active,
	}
	if sees {
		out.DeliveryEmail = &u.Email
	}
	if u.IsBot() {
		out.botDetails = botDetails{u.Bot, u.BotOwner}
	} else if profile {
		out.Profile = profileData(u)
	}
	return out
}

// listed returns the account as it is listed. viewer is nil for logged-out visitors, who get no time zone.
func (u *userJSON) listed(viewer *realm.User) listedUserJSON {
	return listedUserJSON{u.accountFields, u.shownFields, u.botDetails, u.timezoneFor(viewer), u.Active}
}

// registered is listed without the field that the list implies.
func (u *userJSON) registered(viewer *realm.User) registeredUserJSON {
	return registeredUserJSON{u.accountFields, u.shownFields, u.botDetails, u.timezoneFor(viewer)}
}

func (u *userJSON) timezoneFor(viewer *realm.User) visitorTimezone {
	if viewer == nil {
		return visitorTimezone{}
	}
	return visitorTimezone{&u.Timezone}
}

func profileData(u *realm.User) map[string]profileValue {
	out := make(map[string]profileValue, len(u.Profile))
	for id, value := range u.Profile {
		x := profileValue{Value: value}
		if html, ok := u.ProfileHTML[id]; ok {
			x.HTML = &html
		}
		out[strconv.FormatInt(id, 10)] = x
	}
	return out
}

type getUsersForm struct {
	Gravatar bool              `form:"client_extavatar,alias=client_gravatar,default=true"`
	Profile  bool              `form:"include_custom_profile_fields"`
	IDs      form.Opt[[]int64] `form:"user_ids"`
}

// usersPerView is how many accounts one view returns: about a millisecond.
const usersPerView = 50

// getUsers reads the accounts in several views. Each account is consistent, but the list as a whole is not a
// snapshot.
func getUsers(c *Call, f getUsersForm) (*usersAnswer, error) {
	members := newEncodedList(c)
	for after, more := realm.UserID(0), true; more; {
		part, err := Read(c, func(v realm.View) (part []any, _ error) {
			after, more = appendUsersAfter(c, v, f, after, usersPerView, &part)
			return part, nil
		})
		if err != nil {
			return nil, err
		}
		if err := members.add(part...); err != nil {
			return nil, err
		}
	}
	return &usersAnswer{listOf[listedUserJSON]{members.elements()}}, nil
}

type usersAnswer struct {
	Members listOf[listedUserJSON] `json:"members"`
}

// appendUsersAfter appends the requested accounts that the caller can see, starting after an id. It returns the last
// id read and whether more follow.
func appendUsersAfter(
	c *Call, v realm.View, f getUsersForm, after realm.UserID, max int, members *[]any,
) (last realm.UserID, more bool) {
	add := func(u *realm.User) {
		if !u.System && v.MaySeeUser(u) {
			x := newUserJSON(v, u, c.Site, f.Gravatar, f.Profile)
			*members = append(*members, x.listed(v.Me()))
		}
	}
	if !f.IDs.Set {
		return v.UsersAfter(after, max, add)
	}
	eachUserOf(v, f.IDs.Value, add)
	return 0, false
}

func getMe(c *Call, v realm.View, _ noParameters) (*ownUserJSON, error) {
	me := v.Me()
	u := newUserJSON(v, me, c.Site, false, true)
	out := &ownUserJSON{accountFields: u.accountFields, DeliveryEmail: me.Email, Avatar: *u.Avatar,
		Timezone: u.Timezone, Active: u.Active, BotType: u.BotType, MaxMessage: maxMessageID(v)}
	if me.IsBot() {
		out.BotOwner = &orNull[realm.UserID]{}
		if u.BotOwner != 0 {
			out.BotOwner.value = &u.BotOwner
		}
	}
	return out, nil
}

// maxMessageID returns the newest message the caller received, -1 for none.
func maxMessageID(v realm.View) int64 {
	if id := v.NewestReceived(v.User); id != 0 {
		return int64(id)
	}
	return -1
}

type userAddedEvent struct {
	_      struct{} `const:"type=realm_user op=add"`
	Person userJSON `json:"person"`
}

func userAppeared(e *realm.UserAppeared, to *Recipient) *userAddedEvent {
	if e.Unknown {
		if to.Has(realm.CapUserListIncomplete) {
			return nil
		}
		return &userAddedEvent{Person: unknownUser(e.User.ID, to.Site)}
	}
	u := &e.User
	p := realm.UserInfo{ID: u.ID, Email: u.Email, EmailPublic: e.Public, Name: u.Name, Avatar: u.Avatar,
		AvatarFile: u.AvatarFile, AvatarVersion: u.AvatarVersion}
	return &userAddedEvent{Person: newPerson(u, p, to.Site, e.Sees, to.Gravatar, true)}
}

type userRemovedEvent struct {
	_      struct{}   `const:"type=realm_user op=remove"`
	Person personName `json:"person"`
}

func userVanished(e *realm.UserVanished, _ *Recipient) *userRemovedEvent {
	return &userRemovedEvent{Person: personName{e.User, unknownName}}
}

// personEvent is an event about some changed fields of an account.
type personEvent[P any] struct {
	_      struct{} `const:"type=realm_user op=update"`
	Person P        `json:"person"`
}

func newPersonEvent[P any](p P) *personEvent[P] { return &personEvent[P]{Person: p} }

type (
	personName struct {
		ID   realm.UserID `json:"user_id"`
		Name string       `json:"full_name"`
	}
	personRole struct {
		ID   realm.UserID `json:"user_id"`
		Role realm.Role   `json:"role"`
	}
	personActive struct {
		ID     realm.UserID `json:"user_id"`
		Active bool         `json:"is_active"`
	}
	personTimezone struct {
		ID       realm.UserID `json:"user_id"`
		Timezone string       `json:"timezone"`
		Email    string       `json:"email"`
	}
	personOwner struct {
		ID    realm.UserID `json:"user_id"`
		Owner realm.UserID `json:"bot_owner_id"`
	}
	personDeleted struct {
		ID      realm.UserID `json:"user_id"`
		Deleted bool         `json:"is_deleted"`
	}
	personJoined struct {
		ID     realm.UserID `json:"user_id"`
		Joined string       `json:"date_joined"`
	}
)

func userLoggedIn(e *realm.UserLoggedIn, _ *Recipient) *personEvent[personJoined] {
	return newPersonEvent(personJoined{e.ID, isoMinutes(e.At)})
}

// The name and picture of users that the viewer is not allowed to see.
const (
	unknownName   = "Unknown user"
	unknownAvatar = "/static/images/unknown-user-avatar.png"
)

// unknownUser returns a placeholder for an account that the viewer is not allowed to see, for clients that need an
// object for every id.
func unknownUser(id realm.UserID, s Site) userJSON {
	return userJSON{
		accountFields: accountFields{ID: id, Email: dummyEmail(id, s), Name: unknownName, Joined: isoMinutes(0),
			Role: realm.Member, AvatarVersion: 1, Profile: map[string]profileValue{}},
		shownFields: shownFields{Avatar: ptr(unknownAvatar)},
		Active:      true,
	}
}

func userChanged(e *realm.UserChanged, to *Recipient) any {
	switch {
	case e.Name != nil:
		return newPersonEvent(personName{e.ID, *e.Name})
	case e.Role != nil:
		return newPersonEvent(personRole{e.ID, *e.Role})
	case e.Active != nil:
		return newPersonEvent(personActive{e.ID, *e.Active})
	case e.Timezone != nil:
		return newPersonEvent(personTimezone{e.ID, *e.Timezone, apiEmail(*e.Person, to.Site)})
	case e.Owner != nil:
		return newPersonEvent(personOwner{e.ID, *e.Owner})
	case e.Deleted:
		return newPersonEvent(personDeleted{e.ID, true})
	}
	panic(fmt.Sprintf("BUG: UserChanged without a change: %+v", *e))
}

// FindAvatarURL returns the URL of a user's picture, by id or address, "" if there is none. For users that the caller
// is not allowed to see it returns the placeholder picture for ids, and "" for addresses. So an address does not
// reveal whether it belongs to an account.
func FindAvatarURL(v realm.View, idOrEmail string, s Site) string {
	u := findByPath(v, idOrEmail, s)
	_, err := strconv.ParseInt(idOrEmail, 10, 64)
	switch {
	case u == nil || err != nil && v.Me() == nil:
		return ""
	case !v.MaySeeUser(u) && err == nil && v.Me() != nil:
		return unknownAvatar
	case !v.MaySeeUser(u):
		return ""
	}
	return ownAvatarURL(v.UserInfo(u.ID), s)
}

// eachUserOf calls fn with the users of some ids, by ascending id and each once. The caller checks who may see them.
func eachUserOf[ID realm.UserID | int64](v realm.View, list []ID, fn func(*realm.User)) {
	list = slices.Clone(list)
	slices.Sort(list)
	for _, id := range slices.Compact(list) {
		if u := v.Find(realm.UserID(id)); u != nil {
			fn(u)
		}
	}
}
