package realm

// PresenceGate is what reporting presence needs to know of the organization.
type PresenceGate struct {
	Disabled bool // the organization shows nobody's presence
	Hidden   bool // the caller does not share his
}

// MayReport refuses bots and tells what to do with the caller's report.
func (v View) MayReport() (PresenceGate, error) {
	me, err := v.Human()
	if err != nil {
		return PresenceGate{}, err
	}
	return PresenceGate{Disabled: v.OrgBool("presence_disabled"), Hidden: !me.Flag("presence_enabled")}, nil
}

// CameOnline is the event that a user is here now. No fact stands behind it.
type CameOnline struct {
	User              PersonInfo
	Active, Connected int64
	At                int64 // when it was told
}

func (*CameOnline) EventType() string { return "presence" }

// TellPresence tells others that a user came online, unless there are more than max of them.
type TellPresence struct {
	User              UserID
	Active, Connected int64
	Max               int
}

func (c TellPresence) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	if u == nil || t.OrgBool("presence_disabled") {
		return Done{}, nil
	}
	if to := t.whoSee(u); len(to) <= c.Max {
		t.Tell(Notice{To: to, Event: &CameOnline{User: t.Person(u.ID), Active: c.Active, Connected: c.Connected, At: t.Now}})
	}
	return Done{}, nil
}
