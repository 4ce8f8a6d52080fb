package realm

import (
	"cmp"
	"slices"
)

// A browser session is the login of a user in one browser. The browser keeps its secret in a cookie; the realm stores
// only the secret's hash. A session ends by a logout, a new password, the deactivation of the account or of the
// organization, and by an operator, or when it was not used for BrowserSessionSeconds.

const (
	// BrowserSessionSeconds is the lifetime of a session after its last use (protocol).
	BrowserSessionSeconds = 14 * secondsPerDay
	// browserSessionStep is the precision with which the last use is stored: a fact for each request would fill the
	// journal.
	browserSessionStep = secondsPerDay
	// MaxBrowserSessions limits the sessions of one account. A new one ends the one that was unused longest.
	MaxBrowserSessions = 50
	// maxAgentBytes limits the User-Agent header that a session stores.
	maxAgentBytes = 256
	// BrowserSecretLength is the length of a session's secret in characters.
	BrowserSecretLength = 32
	// newAccountSeconds is the time after joining in which a login is part of the sign-up, so no email is sent about
	// it.
	newAccountSeconds = 60
)

// BrowserSession is one session of a user.
type BrowserSession struct {
	ID      int64    // unique in the organization; a session keeps it when it gets a new secret
	Hash    [32]byte // of the secret
	Opened  int64
	Used    int64 // last use, with the precision of a day
	Agent   string
	Address string // of the browser at Used
	Until   int64  // end of a login of the operator, see OpenHelpSession; 0: it is the user's own
	Reason  string // of a login of the operator
}

// Expires returns when the session ends if it is not used any more. The precision of Used is added, so that a session
// never ends too early.
func (s *BrowserSession) Expires() int64 {
	if s.IsHelp() {
		return s.Until
	}
	return s.Used + BrowserSessionSeconds + browserSessionStep
}

// renewalStep returns the precision, in seconds, with which the last use of a session is stored: a quarter of the time
// after which unused sessions end.
func (p LoginPolicy) renewalStep() int64 {
	if p.SessionIdle == 0 {
		return browserSessionStep
	}
	return min(browserSessionStep, p.SessionIdle/4)
}

// HasEnded reports whether a session has ended at a time by the rules of its organization. The precision of Used is
// added, so that a session in use never ends by not being used.
func (p LoginPolicy) HasEnded(s *BrowserSession, now int64) bool {
	return p.SessionIdle != 0 && now >= s.Used+p.SessionIdle+p.renewalStep() ||
		p.SessionLifetime != 0 && now >= s.Opened+p.SessionLifetime
}

// RenewalTime returns the time from which a use of a session is recorded again, or the end of its lifetime.
func (p LoginPolicy) RenewalTime(s *BrowserSession) int64 {
	at := s.Used + p.renewalStep()
	if p.SessionLifetime != 0 {
		at = min(at, s.Opened+p.SessionLifetime)
	}
	return at
}

// RenewalDue reports whether a use of the session at this time must be recorded.
func (p LoginPolicy) RenewalDue(s *BrowserSession, now int64) bool { return now >= p.RenewalTime(s) }

// BrowserSessions is the row with the sessions of one user, oldest first.
type BrowserSessions struct{ List []BrowserSession }

// StoredBrowserSessions returns the stored sessions of a user, also expired ones. The list is never modified.
func (r *Realm) StoredBrowserSessions(u UserID) []BrowserSession {
	if l := r.small.browserSessions.find(u); l != nil {
		return l.List
	}
	return nil
}

// browserSessionOf returns the valid session of a user with that hash, or nil.
func (r *Realm) browserSessionOf(u UserID, hash [32]byte, now int64) *BrowserSession {
	l := r.small.browserSessions.find(u)
	if l == nil {
		return nil
	}
	for i := range l.List {
		if s := &l.List[i]; s.Hash == hash && now < s.Expires() {
			return s
		}
	}
	return nil
}

// BrowserSessions returns the valid sessions of the caller or, for the server, of any user. The one used last comes
// first.
func (v View) BrowserSessions(u UserID) (out []BrowserSession) {
	l := v.small.browserSessions.find(u)
	if l == nil || !v.System && v.User != u {
		return nil
	}
	for _, s := range l.List {
		if v.Now < s.Expires() {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b BrowserSession) int { return cmp.Compare(b.Used, a.Used) })
	return out
}

// OwnBrowserSession returns the session that the request was sent with, or nil.
func (v View) OwnBrowserSession() *BrowserSession {
	return v.browserSessionOf(v.User, v.Session, v.Now)
}

// OpenBrowserSession logs a user in, in a browser. The server sends it after it has checked the credentials.
type OpenBrowserSession struct {
	LogIn
	Agent, Address string
	// Compose returns the email to the user about the login; nil: none.
	Compose func(LoginEmail) Email
}

// LoginEmail is the data of an email about a login.
type LoginEmail struct {
	User *User
	Letterhead
	Session BrowserSession
	App     bool // an app has got an API key, so there is no session
}

// OpenedBrowserSession answers OpenBrowserSession.
type OpenedBrowserSession struct {
	Secret string // for the cookie; it is not stored
	User   UserID
	ID     int64
}

func (c OpenBrowserSession) Decide(t *Turn) (a OpenedBrowserSession, err error) {
	u := t.Find(c.User)
	switch {
	case !t.System || u == nil || u.System || u.IsBot():
		return a, errPermission()
	case t.Org().Deactivated:
		return a, Refuse(Unauthenticated, "REALM_DEACTIVATED", "This organization has been deactivated")
	}
	known := t.BrowserSessions(u.ID)
	if _, err := c.LogIn.Decide(t); err != nil {
		return a, err
	}
	a.User, a.Secret, a.ID = u.ID, t.Token(BrowserSecretLength), t.nextID("browser session")
	s := BrowserSession{ID: a.ID, Hash: t.Hash(a.Secret), Opened: t.Now, Used: t.Now,
		Agent: cutAgent(c.Agent), Address: c.Address}
	t.Record(&BrowserSessionOpened{User: u.ID, Session: s, Ended: t.surplusBrowserSessions(u.ID)})
	sameDevice := func(other BrowserSession) bool { return other.Agent == s.Agent && other.Address == s.Address }
	if c.Compose != nil && u.wantsLoginEmail(t.Now) && !slices.ContainsFunc(known, sameDevice) {
		t.SendEmails(c.Compose(LoginEmail{User: u, Letterhead: t.LetterheadFor(u), Session: s}))
	}
	return a, nil
}

// cutAgent shortens a User-Agent header to maxAgentBytes. It leaves out all characters but printable ASCII ones.
func cutAgent(agent string) string {
	b := make([]byte, 0, min(len(agent), maxAgentBytes))
	for i := 0; i < len(agent) && len(b) < maxAgentBytes; i++ {
		if c := agent[i]; c >= ' ' && c < 0x7f {
			b = append(b, c)
		}
	}
	return string(b)
}

// surplusBrowserSessions returns the sessions of a user that must end before the user gets another one.
func (t *Turn) surplusBrowserSessions(u UserID) (ended []int64) {
	l := t.small.browserSessions.find(u)
	if l == nil {
		return nil
	}
	valid := slices.Clone(l.List)
	valid = slices.DeleteFunc(valid, func(s BrowserSession) bool {
		if t.Now >= s.Expires() {
			ended = append(ended, s.ID)
		}
		return t.Now >= s.Expires()
	})
	slices.SortStableFunc(valid, func(a, b BrowserSession) int { return cmp.Compare(a.Used, b.Used) })
	for i := range max(0, len(valid)+1-MaxBrowserSessions) {
		ended = append(ended, valid[i].ID)
	}
	return ended
}

// BrowserSessionOpened says that a user logged in, in a browser. Ended are sessions of the user that ended by it.
type BrowserSessionOpened struct {
	User    UserID
	Session BrowserSession
	Ended   []int64
}

func (f *BrowserSessionOpened) apply(r *Realm) {
	r.reserveID("browser session", f.Session.ID)
	r.removeBrowserSessions(f.User, f.Ended)
	l := r.small.browserSessions.ensure(f.User)
	l.List = append(slices.Clone(l.List), f.Session)
}

func (*BrowserSessionOpened) notices(*Realm) []Notice { return nil }

// RenewBrowserSession records that the caller's session is in use. It does nothing if the last use was recorded less
// than a day ago, or than the rules of the organization say.
type RenewBrowserSession struct {
	Agent, Address string
	Policy         LoginPolicy
}

func (c RenewBrowserSession) Decide(t *Turn) (Done, error) {
	if s := t.OwnBrowserSession(); s != nil && c.Policy.RenewalDue(s, t.Now) {
		t.Record(&BrowserSessionRenewed{User: t.User, ID: s.ID, Hash: s.Hash, Used: t.Now, Agent: cutAgent(c.Agent),
			Address: c.Address})
	}
	return Done{}, nil
}

// BrowserSessionRenewed says that a session was used, or that it has a new secret.
type BrowserSessionRenewed struct {
	User           UserID
	ID             int64
	Hash           [32]byte
	Used           int64
	Agent, Address string
}

func (f *BrowserSessionRenewed) apply(r *Realm) {
	l := r.small.browserSessions.change(f.User)
	l.List = slices.Clone(l.List)
	for i := range l.List {
		if s := &l.List[i]; s.ID == f.ID {
			s.Hash, s.Used, s.Agent, s.Address = f.Hash, f.Used, f.Agent, f.Address
		}
	}
}

func (*BrowserSessionRenewed) notices(*Realm) []Notice { return nil }

// EndBrowserSessions asks to end sessions of a user: one by its ID, or all of them. Users end their own; the server and
// its operator end any.
type EndBrowserSessions struct {
	User    UserID
	ID      int64 // 0: all
	KeepOwn bool  // with ID 0: all but the one that the request was sent with
}

// Decide returns the number of sessions that ended.
func (c EndBrowserSessions) Decide(t *Turn) (int, error) {
	if !t.System && t.User != c.User {
		return 0, errPermission()
	}
	var ended []int64
	for _, s := range t.BrowserSessions(c.User) {
		if c.ID == 0 && !(c.KeepOwn && s.Hash == t.Session) || s.ID == c.ID {
			ended = append(ended, s.ID)
		}
	}
	switch {
	case len(ended) > 0:
		t.Record(&BrowserSessionsEnded{c.User, ended})
	case c.ID != 0:
		return 0, Missing("There is no such session.")
	}
	return len(ended), nil
}

// BrowserSessionsEnded ends sessions of one user.
type BrowserSessionsEnded struct {
	User UserID
	IDs  []int64
}

func (f *BrowserSessionsEnded) apply(r *Realm)        { r.removeBrowserSessions(f.User, f.IDs) }
func (*BrowserSessionsEnded) notices(*Realm) []Notice { return nil }

func (r *Realm) removeBrowserSessions(u UserID, ended []int64) {
	if len(ended) == 0 {
		return
	}
	r.removeWebPush(u, func(session int64) bool { return slices.Contains(ended, session) })
	l := r.small.browserSessions.change(u)
	l.List = slices.DeleteFunc(slices.Clone(l.List), func(s BrowserSession) bool {
		return slices.Contains(ended, s.ID)
	})
	if len(l.List) == 0 {
		r.small.browserSessions.remove(u)
	}
}

// endBrowserSessions ends every session of users.
func (t *Turn) endBrowserSessions(users ...UserID) {
	users = slices.DeleteFunc(users, func(u UserID) bool { return t.small.browserSessions.find(u) == nil })
	if len(users) > 0 {
		t.Record(&AllBrowserSessionsEnded{users})
	}
}

// AllBrowserSessionsEnded ends every session of some users.
type AllBrowserSessionsEnded struct{ Users []UserID }

func (f *AllBrowserSessionsEnded) apply(r *Realm) {
	for _, u := range f.Users {
		r.removeWebPush(u, func(session int64) bool { return session != 0 })
		r.small.browserSessions.remove(u)
	}
}

// removeWebPush removes the subscriptions for notifications of browsers whose session ends.
func (r *Realm) removeWebPush(u UserID, ends func(session int64) bool) {
	l := r.small.pushTokens.find(u)
	gone := func(x PushToken) bool { return x.Kind == PushWeb && ends(x.Session) }
	if l == nil || !slices.ContainsFunc(l.List, gone) {
		return
	}
	(&PushTokensChanged{u, slices.DeleteFunc(slices.Clone(l.List), gone)}).apply(r)
}

func (*AllBrowserSessionsEnded) notices(*Realm) []Notice { return nil }

// renewOwnBrowserSession ends all other sessions of the caller and gives the own one a new secret, which it returns. It
// returns "" if the request was not sent with a session.
func (t *Turn) renewOwnBrowserSession() (secret string) {
	own := t.OwnBrowserSession()
	if own == nil {
		t.endBrowserSessions(t.User)
		return ""
	}
	renewed := &BrowserSessionRenewed{User: t.User, ID: own.ID, Used: t.Now, Agent: own.Agent, Address: own.Address}
	var others []int64
	for _, s := range t.small.browserSessions.must(t.User).List {
		if s.ID != renewed.ID {
			others = append(others, s.ID)
		}
	}
	if len(others) > 0 {
		t.Record(&BrowserSessionsEnded{t.User, others})
	}
	secret = t.Token(BrowserSecretLength)
	renewed.Hash = t.Hash(secret)
	t.Record(renewed)
	return secret
}

// These facts change credentials.

func (f *BrowserSessionOpened) Accounts() []UserID    { return []UserID{f.User} }
func (f *BrowserSessionRenewed) Accounts() []UserID   { return []UserID{f.User} }
func (f *BrowserSessionsEnded) Accounts() []UserID    { return []UserID{f.User} }
func (f *AllBrowserSessionsEnded) Accounts() []UserID { return f.Users }
