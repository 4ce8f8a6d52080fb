package realm

import (
	"cmp"
	"fmt"
	"unicode/utf8"
)

// An operator can log in as a user who asked for help. Such a login is a browser session that ends at a given time, and
// at once if the user or an operator ends it. The user gets a message about it and sees it in the list of sessions; the
// owners see it in the audit log, as they do every change made with it.

// helpLevel is the rule level from which on such sessions exist: older programs would not end them in time.
const helpLevel uint16 = 5

const (
	// MaxHelpSeconds limits a login of the operator. Help that takes longer is asked for again.
	MaxHelpSeconds = 4 * secondsPerHour
	// minHelpSeconds is enough to follow the link.
	minHelpSeconds = 60
	// maxHelpReason limits the reason in code points, as the audit log limits values.
	maxHelpReason = maxAuditValue
)

// IsHelp reports whether the session is a login of the operator.
func (s *BrowserSession) IsHelp() bool { return s.Until != 0 }

// OpenHelpSession logs the operator in as a user. The answer's secret is for the link that begins the session.
type OpenHelpSession struct {
	User    UserID
	Seconds int64 // until the session ends
	Reason  string
}

func (c OpenHelpSession) Decide(t *Turn) (a OpenedBrowserSession, err error) {
	u := t.Find(c.User)
	switch {
	case !t.System || u == nil || u.System || u.IsBot():
		return a, errPermission()
	case !u.Active:
		return a, BadRequest("The account is deactivated")
	case t.Org().Deactivated:
		return a, Refuse(Unauthenticated, "REALM_DEACTIVATED", "This organization has been deactivated")
	case c.Seconds < minHelpSeconds || c.Seconds > MaxHelpSeconds:
		return a, BadRequest("The time must be between %d and %d seconds, not %d", minHelpSeconds, MaxHelpSeconds,
			c.Seconds)
	case c.Reason == "":
		return a, BadRequest("A reason is required; the user and the owners see it")
	case utf8.RuneCountInString(c.Reason) > maxHelpReason:
		return a, BadRequest("The reason is too long (limit: %d characters)", maxHelpReason)
	case t.Level() < helpLevel:
		return a, errLowLevel()
	}
	a.User, a.Secret, a.ID = u.ID, t.Token(BrowserSecretLength), t.nextID("browser session")
	s := BrowserSession{ID: a.ID, Hash: t.Hash(a.Secret), Opened: t.Now, Used: t.Now, Until: t.Now + c.Seconds,
		Reason: c.Reason}
	t.Record(&HelpSessionOpened{User: u.ID, Session: s, Ended: t.surplusBrowserSessions(u.ID)})
	t.SendBotMessage(BotMessage{People: []UserID{u.ID}, Text: fmt.Sprintf("An operator of this server can log in as "+
		"you until %s, to help you. Their reason:\n\n%s\nYou can end that login at any time in the [list of your "+
		"sessions](/accounts/sessions/).", shownTime(s.Until), QuoteBlock(c.Reason))})
	return a, nil
}

// shownTime returns Markdown that shows a time in the time zone of the reader.
func shownTime(at int64) string {
	minute := at % secondsPerDay / 60
	return fmt.Sprintf("<time:%sT%02d:%02d:00Z>", dateOf(at), minute/60, minute%60)
}

// HelpSessionOpened says that the operator can log in as a user. Ended are sessions of the user that ended by it.
type HelpSessionOpened struct {
	User    UserID
	Session BrowserSession
	Ended   []int64
}

func (f *HelpSessionOpened) apply(r *Realm) {
	(&BrowserSessionOpened{f.User, f.Session, f.Ended}).apply(r)
}

func (*HelpSessionOpened) notices(*Realm) []Notice { return nil }
func (f *HelpSessionOpened) Accounts() []UserID    { return []UserID{f.User} }

// BeginHelpSession gives the browser of the operator a secret of its own for the session of the caller, which is that
// of the link. So a link works once.
type BeginHelpSession struct{ Agent, Address string }

func (c BeginHelpSession) Decide(t *Turn) (a OpenedBrowserSession, err error) {
	s := t.OwnBrowserSession()
	if s == nil || !s.IsHelp() || s.Agent != "" {
		return a, ErrHelpLink()
	}
	a.User, a.ID, a.Secret = t.User, s.ID, t.Token(BrowserSecretLength)
	t.Record(&BrowserSessionRenewed{User: t.User, ID: s.ID, Hash: t.Hash(a.Secret), Used: t.Now,
		Agent: cmp.Or(cutAgent(c.Agent), "unknown"), Address: c.Address})
	return a, nil
}

// ErrHelpLink is the refusal of a link that does not begin a login of the operator.
func ErrHelpLink() *Refusal { return Missing("This link was used already, or its time is over.") }
