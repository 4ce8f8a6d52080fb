package realm

// PresencePolicy says how to treat a presence report of the caller.
type PresencePolicy struct {
	Disabled bool // the organization shows no presence
	Hidden   bool // the caller does not share their presence
}

// PresencePolicy returns the policy for the caller's report. Bots are refused.
func (v View) PresencePolicy() (PresencePolicy, error) {
	me, err := v.RequireHuman()
	if err != nil {
		return PresencePolicy{}, err
	}
	return PresencePolicy{Disabled: v.OrgBool("presence_disabled"), Hidden: !me.BoolSetting("presence_enabled")}, nil
}

// SharesPresence reports whether the presence of a user may be recorded and shown to others.
func (v View) SharesPresence(u *User) bool {
	return u.Active && !u.IsBot() && !v.OrgBool("presence_disabled") && u.BoolSetting("presence_enabled")
}

// CameOnline is the event that a user is active now. It belongs to no fact and is not stored.
type CameOnline struct {
	User              UserInfo
	Active, Connected int64
	At                int64 // when the event was made
}

func (*CameOnline) EventType() string { return "presence" }

// AnnouncePresence sends the event to the users that may see the user, unless there are more than Max.
type AnnouncePresence struct {
	User              UserID
	Active, Connected int64
	Max               int
}

func (c AnnouncePresence) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	if u == nil || t.OrgBool("presence_disabled") {
		return Done{}, nil
	}
	if to := t.canSeeUserAudience(u); len(to) <= c.Max {
		e := &CameOnline{User: t.UserInfo(u.ID), Active: c.Active, Connected: c.Connected, At: t.Now}
		t.SendEphemeral(Notice{To: to, Event: e})
	}
	return Done{}, nil
}
