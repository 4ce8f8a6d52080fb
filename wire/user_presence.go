package wire

import (
	"strconv"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

var presenceEndpoints = []Endpoint{
	Custom("POST", "/users/me/presence", postPresence).
		Returns("{presences?: {*: Presence | OldPresence}, presence_last_update_id: int, server_timestamp?: num}"),
	Custom("GET", "/realm/presence", realmPresence).Returns("{presences: {*: OldPresence}, server_timestamp: num}"),
	Custom("GET", "/users/{user_id_or_email}/presence", userPresence).
		Returns("{presence: {aggregated: {status: str, timestamp: int}, website: {status: str, timestamp: int}, " +
			"active_timestamp: int, idle_timestamp: int}, server_timestamp: num}"),
}

var presenceEvents = []EventKind{Event(cameOnline)}

type postPresenceForm struct {
	Status   string          `form:"status,required"`
	Last     form.Opt[int64] `form:"last_update_id"`
	History  int64           `form:"history_limit_days,default=14,min=0"`
	PingOnly bool            `form:"ping_only"`
	NewInput bool            `form:"new_user_input"`
	Slim     bool            `form:"slim_presence"`
}

func postPresence(c *Call, f postPresenceForm) (Answer, error) {
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
	return presences(c, f.since(), f.History, f.Last.Set || f.Slim)
}

// since returns the newest update id that the client has, -1 if it has none.
func (f *postPresenceForm) since() int64 {
	if !f.Last.Set {
		return -1
	}
	return f.Last.Value
}

func pingAnswer(last int64) Answer { return Answer{"presence_last_update_id": last} }

func announcePresence(row presence.Row) realm.AnnouncePresence {
	return realm.AnnouncePresence{User: row.User, Active: row.Active, Connected: row.Connected,
		Max: presence.MaxAudience}
}

// nowWithFraction returns the server time in Unix seconds with a fraction, as the protocol has it next to presence. It
// is the time by the clock of the presence itself: that of an edge's machine may differ.
func nowWithFraction(c *Call) float64 { return float64(c.Server.Now().UnixMicro()) / 1e6 }

// presences returns the presence of all users that the caller can see, in the modern or the legacy format.
func presences(c *Call, last, days int64, modern bool) (Answer, error) {
	rows := presenceRows(c, last, days)
	return Read(c, func(v realm.View) (Answer, error) {
		out, newest := presenceMap(v, rows, c.Site, modern)
		return Answer{"presences": out, "presence_last_update_id": max(newest, last),
			"server_timestamp": nowWithFraction(c)}, nil
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

// presenceMap formats presence rows: by user id in the modern format, by email address in the legacy one. Bots,
// deactivated accounts and users that the caller cannot see are left out. newest is the largest update id, -1 for
// none.
func presenceMap(v realm.View, rows []presence.Row, s Site, modern bool) (out obj, newest int64) {
	out, newest = obj{}, -1
	if v.OrgBool("presence_disabled") {
		return out, newest
	}
	for _, r := range rows {
		u := v.Find(r.User)
		if u == nil || u.IsBot() || !u.Active || !v.MaySeeUser(u) {
			continue
		}
		newest = max(newest, r.Update)
		active := r.Active
		if active == 0 {
			active = u.Joined
		}
		if modern {
			out[u.ID.String()] = obj{"active_timestamp": active, "idle_timestamp": r.Connected}
		} else {
			out[apiEmail(v.UserInfo(u.ID), s)] = legacyPresence(active, r.Connected)
		}
	}
	return out, newest
}

// legacyPresence returns the legacy format: one client named website, repeated as aggregated.
func legacyPresence(active, connected int64) obj {
	status, at := legacyStatus(active, connected)
	return obj{
		"aggregated": obj{"client": "website", "status": status, "timestamp": at},
		"website":    obj{"client": "website", "status": status, "timestamp": at, "pushable": false},
	}
}

func legacyStatus(active, connected int64) (string, int64) {
	if active+presence.LegacyOffset >= connected {
		return "active", active
	}
	return "idle", connected
}

func realmPresence(c *Call, _ noParameters) (Answer, error) {
	a, err := presences(c, -1, presence.DefaultHistoryDays, false)
	if err != nil {
		return nil, err
	}
	delete(a, "presence_last_update_id")
	return a, nil
}

type userPresenceForm struct {
	User string `path:"user_id_or_email"`
}

func userPresence(c *Call, f userPresenceForm) (Answer, error) {
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
	short := obj{"status": status, "timestamp": at}
	return Answer{"presence": obj{"aggregated": short, "website": short, "active_timestamp": active,
		"idle_timestamp": row.Connected}, "server_timestamp": nowWithFraction(c)}, nil
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
	active := e.Active
	if to.Has(realm.CapSimplifiedPresence) {
		return obj{"type": "presence", "presences": obj{e.User.ID.String(): obj{"active_timestamp": active,
			"idle_timestamp": e.Connected}}}
	}
	status, at := legacyStatus(active, e.Connected)
	o := obj{"type": "presence", "user_id": e.User.ID, "server_timestamp": float64(e.At),
		"presence": obj{"website": obj{"client": "website", "status": status, "timestamp": at, "pushable": false}}}
	if !to.Slim {
		o["email"] = apiEmail(e.User, to.Site)
	}
	return o
}
