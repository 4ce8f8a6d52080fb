package realm

// PresencePolicy is what reporting presence needs to know of the organization.
type PresencePolicy struct {
	Disabled bool // the organization shows nobody's presence
	Hidden   bool // the caller does not share his
}

// PresencePolicy refuses bots and tells what to do with the caller's report.
func (v View) PresencePolicy() (PresencePolicy, error) {
	me, err := v.RequireHuman()
	if err != nil {
		return PresencePolicy{}, err
	}
	return PresencePolicy{Disabled: v.OrgBool("presence_disabled"), Hidden: !me.BoolSetting("presence_enabled")}, nil
}

// CameOnline is the event that a user is here now. No fact stands behind it.
type CameOnline struct {
	User              UserInfo
	Active, Connected int64
	At                int64 // when it was told
}

func (*CameOnline) EventType() string { return "presence" }

// AnnouncePresence tells others that a user came online, unless there are more than max of them.
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
		t.Tell(Notice{To: to, Event: &CameOnline{User: t.UserInfo(u.ID), Active: c.Active, Connected: c.Connected, At: t.Now}})
	}
	return Done{}, nil
}
