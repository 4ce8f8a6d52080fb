package wire

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire/form"
)

var userEndpoints = slices.Concat([]Endpoint{
	Custom("GET", "/users", getUsers).Returns("{members: [ListedUser]}").AllowVisitors(),
	Get("/users/me", getMe).Returns("OwnUser"),
}, userAdminEndpoints)

var userEvents = []EventKind{
	Event(userAppeared),
	Event(userVanished),
	Event(userLoggedIn),
	Event(userChanged),
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
func avatarURL(p realm.UserInfo, s Site, computed bool) any {
	switch {
	case p.Avatar == "U":
		return "/user_avatars/" + realmPath(s) + "/" + p.AvatarFile + ".png?v=" + strconv.Itoa(p.AvatarVersion)
	case p.Avatar == "G" && computed:
		return nil
	case p.Avatar == "G":
		h := md5.Sum([]byte(strings.ToLower(apiEmail(p, s))))
		return "https://secure.gravatar.com/avatar/" + hex.EncodeToString(h[:]) + "?d=identicon&v=" +
			strconv.Itoa(p.AvatarVersion)
	}
	return "/user_avatars/" + realmPath(s) + "/generated/" + p.ID.String() + ".png?v=" + strconv.Itoa(p.AvatarVersion)
}

// isoMinutes formats a time as the protocol does for join dates: ISO 8601 with minutes and +00:00.
func isoMinutes(unix int64) string {
	return time.Unix(unix, 0).UTC().Format("2006-01-02T15:04") + "+00:00"
}

// userObject returns an account with the fields that the view's caller can see.
func userObject(v realm.View, u *realm.User, s Site, gravatar, profile bool) obj {
	return userObjectFor(v, v.Me(), u, s, gravatar, profile)
}

// userObjectFor returns an account with the fields that the viewer can see. viewer is nil for logged-out visitors: as
// in Zulip, they get no time zone, and the day of the join date without its time.
func userObjectFor(v realm.View, viewer, u *realm.User, s Site, gravatar, profile bool) obj {
	o := personObject(u, v.UserInfo(u.ID), s, v.SeesEmail(viewer, u), gravatar, profile)
	if viewer == nil {
		delete(o, "timezone")
		o["date_joined"] = time.Unix(u.Joined, 0).UTC().Format(time.DateOnly)
	}
	return o
}

// personObject returns an account. sees reports whether the viewer can see the real email address.
func personObject(u *realm.User, p realm.UserInfo, s Site, sees, gravatar, profile bool) obj {
	o := obj{
		"user_id":          u.ID,
		"email":            apiEmail(p, s),
		"delivery_email":   nil,
		"full_name":        u.Name,
		"date_joined":      isoMinutes(u.Joined),
		"is_active":        u.Active,
		"is_owner":         u.Role == realm.Owner,
		"is_admin":         u.IsAdmin(),
		"is_guest":         u.IsGuest(),
		"is_bot":           u.IsBot(),
		"bot_type":         nil,
		"bot_owner_id":     nil,
		"role":             u.Role,
		"timezone":         u.Timezone,
		"avatar_url":       avatarURL(p, s, gravatar && sees),
		"avatar_version":   u.AvatarVersion,
		"is_imported_stub": u.ImportedStub,
	}
	if sees {
		o["delivery_email"] = u.Email
	}
	if u.IsBot() {
		o["bot_type"] = u.Bot
		if u.BotOwner != 0 {
			o["bot_owner_id"] = u.BotOwner
		}
	} else if profile {
		o["profile_data"] = profileData(u)
	}
	if u.Deleted {
		o["is_deleted"] = true
	}
	return o
}

func profileData(u *realm.User) obj {
	o := obj{}
	for id, value := range u.Profile {
		x := obj{"value": value}
		if html, ok := u.ProfileHTML[id]; ok {
			x["rendered_value"] = html
		}
		o[strconv.FormatInt(id, 10)] = x
	}
	return o
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
func getUsers(c *Call, f getUsersForm) (Answer, error) {
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
	return Answer{"members": members.elements()}, nil
}

// appendUsersAfter appends the requested accounts that the caller can see, starting after an id. It returns the last
// id read and whether more follow.
func appendUsersAfter(
	c *Call, v realm.View, f getUsersForm, after realm.UserID, max int, members *[]any,
) (last realm.UserID, more bool) {
	if f.IDs.Set {
		max = math.MaxInt // skipping an account is cheap, and few are requested
	}
	wanted := map[int64]bool{}
	for _, id := range f.IDs.Value {
		wanted[id] = true
	}
	return v.UsersAfter(after, max, func(u *realm.User) {
		if !u.System && (!f.IDs.Set || wanted[int64(u.ID)]) && v.MaySeeUser(u) {
			*members = append(*members, userObject(v, u, c.Site, f.Gravatar, f.Profile))
		}
	})
}

func getMe(c *Call, v realm.View, _ noParameters) (Answer, error) {
	me := v.Me()
	a := Answer(userObject(v, me, c.Site, false, true))
	for _, k := range []string{"bot_type", "bot_owner_id"} {
		if !me.IsBot() {
			delete(a, k)
		}
	}
	a["max_message_id"] = maxMessageID(v)
	return a, nil
}

// maxMessageID returns the newest message the caller received, -1 for none.
func maxMessageID(v realm.View) int64 {
	if id := v.NewestReceived(v.User); id != 0 {
		return int64(id)
	}
	return -1
}

func userAppeared(e *realm.UserAppeared, to *Recipient) any {
	if e.Unknown {
		if to.Has(realm.CapUserListIncomplete) {
			return nil
		}
		return obj{"type": "realm_user", "op": "add", "person": unknownUser(e.User.ID, to.Site)}
	}
	u := &e.User
	p := realm.UserInfo{ID: u.ID, Email: u.Email, EmailPublic: e.Public, Name: u.Name, Avatar: u.Avatar,
		AvatarFile: u.AvatarFile, AvatarVersion: u.AvatarVersion}
	return obj{"type": "realm_user", "op": "add", "person": personObject(u, p, to.Site, e.Sees, to.Gravatar, true)}
}

func userVanished(e *realm.UserVanished, _ *Recipient) any {
	return obj{"type": "realm_user", "op": "remove", "person": obj{"user_id": e.User, "full_name": unknownName}}
}

func userLoggedIn(e *realm.UserLoggedIn, _ *Recipient) any {
	return obj{"type": "realm_user", "op": "update", "person": obj{"user_id": e.ID, "date_joined": isoMinutes(e.At)}}
}

// The name and picture of users that the viewer is not allowed to see.
const (
	unknownName   = "Unknown user"
	unknownAvatar = "/static/images/unknown-user-avatar.png"
)

// unknownUser returns a placeholder for an account that the viewer is not allowed to see, for clients that need an
// object for every id.
func unknownUser(id realm.UserID, s Site) obj {
	return obj{
		"user_id":          id,
		"email":            dummyEmail(id, s),
		"delivery_email":   nil,
		"full_name":        unknownName,
		"date_joined":      isoMinutes(0),
		"is_active":        true,
		"is_owner":         false,
		"is_admin":         false,
		"is_guest":         false,
		"is_bot":           false,
		"bot_type":         nil,
		"bot_owner_id":     nil,
		"role":             realm.Member,
		"timezone":         "",
		"avatar_url":       unknownAvatar,
		"avatar_version":   1,
		"is_imported_stub": false,
		"profile_data":     obj{},
	}
}

func userChanged(e *realm.UserChanged, to *Recipient) any {
	p := obj{"user_id": e.ID}
	switch {
	case e.Name != nil:
		p["full_name"] = *e.Name
	case e.Role != nil:
		p["role"] = *e.Role
	case e.Active != nil:
		p["is_active"] = *e.Active
	case e.Timezone != nil:
		p["timezone"], p["email"] = *e.Timezone, apiEmail(*e.Person, to.Site)
	case e.Owner != nil:
		p["bot_owner_id"] = *e.Owner
	case e.Deleted:
		p["is_deleted"] = true
	default:
		panic(fmt.Sprintf("BUG: UserChanged without a change: %+v", *e))
	}
	return obj{"type": "realm_user", "op": "update", "person": p}
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
	return avatarURL(v.UserInfo(u.ID), s, false).(string)
}
