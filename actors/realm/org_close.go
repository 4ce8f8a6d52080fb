package realm

// CloseRealm asks to deactivate the organization. Then no user can log in, and nothing is deleted.
type CloseRealm struct{}

func (CloseRealm) Decide(t *Turn) (Done, error) {
	if !t.System {
		me, err := t.RequireOwner()
		if err != nil {
			return Done{}, err
		}
		if me.IsBot() {
			return Done{}, errBotsNotAllowed()
		}
	}
	if t.Org().Deactivated {
		return Done{}, BadRequest("The organization is already deactivated")
	}
	t.endBrowserSessions(t.small.browserSessions.keys()...)
	t.Record(&RealmClosed{By: t.User, At: t.Now})
	return Done{}, nil
}

// RealmClosed deactivates the organization.
type RealmClosed struct {
	By UserID
	At int64
}

func (f *RealmClosed) apply(r *Realm) { r.org.change(0).Deactivated = true }
func (f *RealmClosed) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: &RealmEnded{r.ID()}}}
}

// Closed reports whether the organization is deactivated.
func (r *Realm) Closed() bool { return r.Founded() && r.Org().Deactivated }

// RealmEnded is the event realm/deactivated.
type RealmEnded struct{ Realm ID }

func (*RealmEnded) EventType() string { return "realm" }

// ReopenRealm asks, for the operator, to reactivate a deactivated organization.
type ReopenRealm struct{}

func (ReopenRealm) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	if !t.Org().Deactivated {
		return Done{}, BadRequest("The organization is not deactivated")
	}
	t.Record(&RealmReopened{t.Now})
	return Done{}, nil
}

// RealmReopened reactivates the organization.
type RealmReopened struct{ At int64 }

func (f *RealmReopened) apply(r *Realm)            { r.org.change(0).Deactivated = false }
func (f *RealmReopened) notices(r *Realm) []Notice { return nil }
