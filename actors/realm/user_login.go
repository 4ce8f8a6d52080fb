package realm

// LogIn records that a user logged in. Checking a password takes long, so the command refuses the login if the account
// was deactivated or the password changed meanwhile.
type LogIn struct {
	User     UserID
	Password string // the hash that the password was checked against, or "" for a login without password
}

// LogInApp records that a user logged in with an app, which gets an API key. The server sends it after it has checked
// the credentials.
type LogInApp struct {
	LogIn
	Agent, Address string
	// Compose returns the email to the user about the login; nil: none.
	Compose func(LoginEmail) Email
}

// Decide returns the API key of the account. Apps have no sessions by which a device could be known again, so the user
// gets an email about each login (protocol).
func (c LogInApp) Decide(t *Turn) (string, error) {
	if _, err := c.LogIn.Decide(t); err != nil {
		return "", err
	}
	key, err := IssueAPIKey{User: c.User}.Decide(t)
	if err != nil {
		return "", err
	}
	t.note(AuditEntry{Kind: auditLogin, By: c.User, User: c.User, Via: "key", Address: c.Address})
	login := BrowserSession{Opened: t.Now, Agent: cutAgent(c.Agent), Address: c.Address}
	if u := t.Find(c.User); c.Compose != nil && u.wantsLoginEmail(t.Now) {
		t.SendEmails(c.Compose(LoginEmail{User: u, Letterhead: t.LetterheadFor(u), Session: login, App: true}))
	}
	return key, nil
}

// wantsLoginEmail reports whether a user gets emails about logins at a time.
func (u *User) wantsLoginEmail(now int64) bool {
	return u.BoolSetting("enable_login_emails") && now >= u.Joined+newAccountSeconds
}

func (c LogIn) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	switch {
	case u != nil && !u.Active:
		return Done{}, Refuse(Unauthenticated, "USER_DEACTIVATED", "Account is deactivated")
	case c.Password != "" && !t.PasswordLogin():
		return Done{}, ErrPasswordLogin()
	case u != nil && c.Password != "" && c.Password != u.Password:
		return Done{}, Refuse(Unauthenticated, "AUTHENTICATION_FAILED", "Your username or password is incorrect")
	}
	if u != nil && !u.LoggedIn {
		then := *u
		then.Joined = t.Now
		waits := u.Active && t.listedAsFullMember(u) && !t.listedAsFullMember(&then)
		f := &UserLoggedIn{ID: u.ID, At: t.Now, Waits: waits}
		if f.Waits {
			t.trackChannelVisibility(func() { t.Record(f) })
		} else {
			t.Record(f)
		}
	}
	return Done{}, nil
}

// UserLoggedIn says that a user logged in for the first time to an account made by someone else. The user joined at
// this time.
type UserLoggedIn struct {
	ID    UserID
	At    int64
	Waits bool // no longer a full member: the waiting period begins now
}

func (f *UserLoggedIn) apply(r *Realm) {
	u := r.users.change(f.ID)
	u.LoggedIn, u.Joined = true, f.At
}

func (f *UserLoggedIn) notices(r *Realm) (out []Notice) {
	if to := r.canSeeUserAudience(r.users.must(f.ID)); len(to) > 0 {
		out = append(out, Notice{To: to, Event: f})
	}
	if to := r.everyoneAudience(); f.Waits && len(to) > 0 {
		out = append(out, Notice{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Users: []UserID{f.ID}}})
	}
	return out
}

func (*UserLoggedIn) EventType() string { return "realm_user" }
