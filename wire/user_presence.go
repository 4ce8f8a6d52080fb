package wire

import (
	"strconv"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

var presenceEndpoints = []Endpoint{
	Custom("POST", "/users/me/presence", postPresence),
	Custom("GET", "/realm/presence", realmPresence),
	Custom("GET", "/users/{user_id_or_email}/presence", userPresence),
}

var presenceEvents = []EventKind{
	EventOneOf(cameOnline).sends(formOf[presencesEvent](), formOf[oldPresenceEvent]()),
}

// presencesAnswer has only the id if the request is a report without a query.
type presencesAnswer struct {
	Presences  presenceMap `json:"presences,omitzero"`
	LastUpdate int64       `json:"presence_last_update_id"`
	ServerTime float64     `json:"server_timestamp,omitzero"`
}

type realmPresenceAnswer struct {
	Presences  map[string]oldPresenceJSON `json:"presences"`
	ServerTime float64                    `json:"server_timestamp"`
}

type userPresenceAnswer struct {
	Presence struct {
		Aggregated shortPresence `json:"aggregated"`
		Website    shortPresence `json:"website"`
		presenceJSON
	} `json:"presence"`
	ServerTime float64 `json:"server_timestamp"`
}

type shortPresence struct {
	Status string `json:"status"`
	At     int64  `json:"timestamp"`
}

type presenceJSON struct {
	Active    int64 `json:"active_timestamp"`
	Connected int64 `json:"idle_timestamp"`
}

// oldPresenceJSON has one client named website, repeated as aggregated.
type oldPresenceJSON struct {
	Aggregated struct {
		Client string `json:"client"`
		Status string `json:"status" enum:"active|idle"`
		At     int64  `json:"timestamp"`
	} `json:"aggregated"`
	Website clientPresence `json:"website"`
}

type clientPresence struct {
	Client   string `json:"client"`
	Status   string `json:"status" enum:"active|idle"`
	At       int64  `json:"timestamp"`
	Pushable bool   `json:"pushable"`
}

// presenceMap is presences in one of two formats: by user id, or in the legacy format by email address.
type presenceMap map[string]either[presenceJSON, oldPresenceJSON]

type presencesEvent struct {
	_         struct{}                `const:"type=presence"`
	Presences map[string]presenceJSON `json:"presences"`
}

type oldPresenceEvent struct {
	_          struct{}     `const:"type=presence"`
	User       realm.UserID `json:"user_id"`
	Email      string       `json:"email,omitzero"` // unless the client asked for slim presence
	ServerTime float64      `json:"server_timestamp"`
	Presence   struct {
		Website clientPresence `json:"website"`
	} `json:"presence"`
}

type postPresenceForm struct {
	Status   string          `form:"status,required"`
	Last     form.Opt[int64] `form:"last_update_id"`
	History  int64           `form:"history_limit_days,default=14,min=0"`
	PingOnly bool            `form:"ping_only"`
	NewInput bool            `form:"new_user_input"`
	Slim     bool            `form:"slim_presence"`

	Users form.Opt[[]realm.UserID] `form:"presence_user_ids,maxitems=500,extension=clients can show few users"`
}

func postPresence(c *Call, f postPresenceForm) (*presencesAnswer, error) {
	policy, err := Read(c, func(v realm.View) (realm.PresencePolicy, error) { return v.PresencePolicy() })
	if err != nil {
		return nil, err
	}
	if f.Status != "active" && f.Status != "idle" {
		return nil, realm.BadRequest("Invalid status: %s", f.Status)
	}
	if !policy.Disabled && !policy.Hidden {
		if row, announce := c.Server.ReportPresence(c.Realm, c.Caller.User, f.Status == "active"); announce {
			if _, err := Execute(c, announcePresence(row)); err != nil {
				return nil, err
			}
		}
	}
	if f.PingOnly {
		return pingAnswer(f.since()), nil
	}
	if f.Users.Set {
		return newPresences(c, presenceOf(c, f.Users.Value, f.since(), f.History), f.since(), f.Last.Set || f.Slim)
	}
	return presences(c, f.since(), f.History, f.Last.Set || f.Slim)
}

// since returns the newest update id that the client has, -1 if it has none.
func (f *postPresenceForm) since() int64 {
	if !f.Last.Set {
		return -1
	}
	return f.Last.Value
}

func pingAnswer(last int64) *presencesAnswer { return &presencesAnswer{LastUpdate: last} }

func announcePresence(row presence.Row) realm.AnnouncePresence {
	return realm.AnnouncePresence{User: row.User, Active: row.Active, Connected: row.Connected,
		Max: presence.MaxAudience}
}

// nowWithFraction returns the server time in Unix seconds with a fraction, as the protocol has it next to presence. It
// is the time by the clock of the presence itself: that of an edge's machine may differ.
func nowWithFraction(c *Call) float64 { return float64(c.Server.Now().UnixMicro()) / 1e6 }

// presences returns the presence of all users that the caller can see, in the modern or the legacy format.
func presences(c *Call, last, days int64, modern bool) (*presencesAnswer, error) {
	return newPresences(c, presenceRows(c, last, days), last, modern)
}

// newPresences returns the rows of users that the caller can see.
func newPresences(c *Call, rows []presence.Row, last int64, modern bool) (*presencesAnswer, error) {
	return Read(c, func(v realm.View) (*presencesAnswer, error) {
		out, newest := newPresenceMap(v, rows, c.Site, modern)
		return &presencesAnswer{out, max(newest, last), nowWithFraction(c)}, nil
	})
}

// presenceRows returns the rows changed after an update id within a number of days. A request for zero days without
// an update id gets none.
func presenceRows(c *Call, last, days int64) []presence.Row {
	if days == 0 && last <= 0 {
		return nil
	}
	return c.Server.PresenceSince(c.Realm, last, c.Server.Now().Unix()-days*86400)
}

// newPresenceMap formats presence rows: by user id in the modern format, by email address in the legacy one. Bots,
// deactivated accounts and users that the caller cannot see are left out. newest is the largest update id, -1 for
// none.
func newPresenceMap(v realm.View, rows []presence.Row, s Site, modern bool) (out presenceMap, newest int64) {
	out, newest = presenceMap{}, -1
	if v.OrgBool("presence_disabled") {
		return out, newest
	}
	for _, r := range rows {
		p, ok := shownPresence(v, r)
		if !ok {
			continue
		}
		newest = max(newest, r.Update)
		if modern {
			out[r.User.String()] = either[presenceJSON, oldPresenceJSON]{p}
		} else {
			out[apiEmail(v.UserInfo(r.User), s)] = either[presenceJSON, oldPresenceJSON]{
				newOldPresence(p.Active, p.Connected)}
		}
	}
	return out, newest
}

// shownPresence returns the presence of a user as the caller sees it. It reports false for bots, deactivated accounts
// and users that the caller cannot see.
func shownPresence(v realm.View, r presence.Row) (presenceJSON, bool) {
	u := v.Find(r.User)
	if u == nil || u.IsBot() || !u.Active || !v.MaySeeUser(u) {
		return presenceJSON{}, false
	}
	active := r.Active
	if active == 0 {
		active = u.Joined
	}
	return presenceJSON{active, r.Connected}, true
}

func newOldPresence(active, connected int64) (out oldPresenceJSON) {
	out.Website = newClientPresence(active, connected)
	out.Aggregated.Client, out.Aggregated.Status, out.Aggregated.At = out.Website.Client, out.Website.Status,
		out.Website.At
	return out
}

func newClientPresence(active, connected int64) clientPresence {
	status, at := legacyStatus(active, connected)
	return clientPresence{Client: "website", Status: status, At: at}
}

func legacyStatus(active, connected int64) (string, int64) {
	if active+presence.LegacyOffset >= connected {
		return "active", active
	}
	return "idle", connected
}

func realmPresence(c *Call, _ noParameters) (*realmPresenceAnswer, error) {
	a, err := presences(c, -1, presence.DefaultHistoryDays, false)
	if err != nil {
		return nil, err
	}
	out := &realmPresenceAnswer{map[string]oldPresenceJSON{}, a.ServerTime}
	for email, p := range a.Presences {
		out.Presences[email] = p.value.(oldPresenceJSON)
	}
	return out, nil
}

type userPresenceForm struct {
	User string `path:"user_id_or_email"`
}

func userPresence(c *Call, f userPresenceForm) (*userPresenceAnswer, error) {
	type target struct {
		id     realm.UserID
		joined int64
	}
	user, err := Read(c, func(v realm.View) (target, error) {
		u := findByPath(v, f.User, c.Site)
		switch {
		case u == nil || !u.Active || !v.MaySeeUser(u):
			return target{}, realm.BadRequest("No such user")
		case u.IsBot():
			return target{}, realm.BadRequest("Presence is not supported for bot users.")
		case v.OrgBool("presence_disabled"):
			return target{}, realm.BadRequest("No presence data for %s", f.User)
		}
		return target{u.ID, u.Joined}, nil
	})
	if err != nil {
		return nil, err
	}
	row := c.Server.PresenceOf(c.Realm, user.id)
	if row == nil {
		return nil, realm.BadRequest("No presence data for %s", f.User)
	}
	active := row.Active
	if active == 0 {
		active = user.joined
	}
	status, at := legacyStatus(active, row.Connected)
	if c.Server.Now().Unix()-at > presence.OfflineAfter {
		status = "offline"
	}
	out := &userPresenceAnswer{ServerTime: nowWithFraction(c)}
	p := &out.Presence
	p.Aggregated, p.presenceJSON = shortPresence{status, at}, presenceJSON{active, row.Connected}
	p.Website = p.Aggregated
	return out, nil
}

// findByPath returns the user that a path parameter names: by id, by real address if the caller can see it, or by
// placeholder address.
func findByPath(v realm.View, idOrEmail string, s Site) *realm.User {
	if id, err := strconv.ParseInt(idOrEmail, 10, 64); err == nil {
		return v.Find(realm.UserID(id))
	}
	return findByAddress(v, idOrEmail, s)
}

func cameOnline(e *realm.CameOnline, to *Recipient) any {
	if to.Has(realm.CapSimplifiedPresence) {
		return &presencesEvent{Presences: map[string]presenceJSON{e.User.ID.String(): {e.Active, e.Connected}}}
	}
	out := &oldPresenceEvent{User: e.User.ID, ServerTime: float64(e.At)}
	out.Presence.Website = newClientPresence(e.Active, e.Connected)
	if !to.Slim {
		out.Email = apiEmail(e.User, to.Site)
	}
	return out
}
