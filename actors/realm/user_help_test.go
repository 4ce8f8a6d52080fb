package realm_test

import (
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// The operator logs in as a user for a limited time. The user gets a message and ends it at once; it is in the audit
// log, as is each change made with it.
func TestHelpSession(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robo", ann)
	open := realm.OpenHelpSession{User: ann, Seconds: 600, Reason: "asked by phone"}
	for want, c := range map[string]realm.OpenHelpSession{
		"Insufficient permission":        {User: bot, Seconds: 600, Reason: "why"},
		"A reason is required":           {User: ann, Seconds: 600},
		"The time must be between 60":    {User: ann, Seconds: 59, Reason: "why"},
		"and 14400 seconds":              {User: ann, Seconds: 14_401, Reason: "why"},
		"The reason is too long (limit:": {User: ann, Seconds: 600, Reason: strings.Repeat("x", 201)},
	} {
		if _, err := TryAs(s, realm.Operator, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	for _, u := range []realm.UserID{olive, ann, bo} {
		ExpectRefusal(s, u, open, "Insufficient permission")
	}
	_, last := auditLines(t, s, 0)
	link := DoAs(s, realm.Operator, open)
	var text string
	for _, e := range s.ListEvents(ann) {
		if m, ok := e.(*realm.MessageArrived); ok && m.Message.Sender.ID == realm.NotificationBot {
			text = s.Text(m.Message.Ref).Text
		}
	}
	if !strings.HasPrefix(text, "An operator of this server can log in as you until <time:") ||
		!strings.Contains(text, "asked by phone") {
		t.Errorf("the message to the user: %q", text)
	}
	as := func(secret string) realm.Caller {
		c := realm.Caller{User: ann, Client: "website"}
		copy(c.Session[:], secret)
		return c
	}
	mine := DoAs(s, as(link.Secret), realm.BeginHelpSession{Agent: "Firefox"})
	if _, err := TryAs(s, as(link.Secret), realm.BeginHelpSession{}); err == nil {
		t.Error("the link works twice")
	}
	if _, err := TryAs(s, as(mine.Secret), realm.BeginHelpSession{}); err == nil {
		t.Error("the session begins twice")
	}
	DoAs(s, as(mine.Secret), realm.AddKey{User: ann, Label: "a program"})
	lines, _ := auditLines(t, s, last)
	if len(lines) != 2 || !strings.Contains(lines[0], `login.help by 0 via operator: user`) ||
		!strings.Contains(lines[0], "asked by phone") || !strings.Contains(lines[1], "key.add") ||
		!strings.Contains(lines[1], "via help session") {
		t.Errorf("the audit log:\n%s", strings.Join(lines, "\n"))
	}
	list := s.ViewAs(ann).BrowserSessions(ann)
	if len(list) != 1 || !list[0].IsHelp() || list[0].Reason != "asked by phone" || list[0].Until != s.Now+600 {
		t.Errorf("the sessions of the user: %+v", list)
	}
	Do(s, ann, realm.EndBrowserSessions{User: ann, ID: mine.ID})
	if _, err := TryAs(s, as(mine.Secret), realm.DeactivateUser{User: ann}); err == nil {
		t.Error("an ended session deactivates the account")
	}

	late := DoAs(s, realm.Operator, open)
	s.Advance(600)
	if _, err := TryAs(s, as(late.Secret), realm.BeginHelpSession{}); err == nil {
		t.Error("a link works after its time")
	}
}
