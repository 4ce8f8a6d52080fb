package realm_test

import (
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// openSession logs a user in from a browser and returns the caller of its requests.
func openSession(s *Scene, u realm.UserID, agent string) (realm.Caller, realm.OpenedBrowserSession) {
	o := Do(s, System, realm.OpenBrowserSession{LogIn: realm.LogIn{User: u}, Agent: agent, Address: "192.0.2.1"})
	return sessionCaller(s, u, o.Secret), o
}

func sessionCaller(s *Scene, u realm.UserID, secret string) realm.Caller {
	var hash [32]byte
	Do(s, System, turnFunc(func(t *realm.Turn) { hash = t.Hash(secret) }))
	return realm.Caller{User: u, Client: "website", Session: hash}
}

// turnFunc is a command that only looks.
type turnFunc func(*realm.Turn)

func (f turnFunc) Decide(t *realm.Turn) (realm.Done, error) { f(t); return realm.Done{}, nil }

// valid reports whether the realm accepts a caller now.
func valid(s *Scene, c realm.Caller) bool {
	s.Realm.SetClock(s.Now)
	return s.Realm.CheckCredentials(c, s.Now) == nil
}

// Every way in which a session ends ends it at once, and leaves the sessions of others.
func TestBrowserSessionEnds(t *testing.T) {
	hash := "$argon2id$"
	for name, c := range map[string]struct {
		end  func(s *Scene, ann realm.UserID, first realm.OpenedBrowserSession)
		want []bool // whether the first and the second session of the user are valid afterwards
		bo   bool   // and that of another user
	}{
		"by its user": {func(s *Scene, ann realm.UserID, first realm.OpenedBrowserSession) {
			Do(s, ann, realm.EndBrowserSessions{User: ann, ID: first.ID})
		}, []bool{false, true}, true},
		"all, by the operator": {func(s *Scene, ann realm.UserID, _ realm.OpenedBrowserSession) {
			Do(s, System, realm.EndBrowserSessions{User: ann})
		}, []bool{false, false}, true},
		"by a password of the operator": {func(s *Scene, ann realm.UserID, _ realm.OpenedBrowserSession) {
			Do(s, System, realm.SetPassword{User: ann, Hash: hash, KeepKeys: true})
		}, []bool{false, false}, true},
		"by a new password, without a session": {func(s *Scene, ann realm.UserID, _ realm.OpenedBrowserSession) {
			Do(s, ann, realm.ChangeSettings{Password: &hash})
		}, []bool{false, false}, true},
		"by deactivation": {func(s *Scene, ann realm.UserID, _ realm.OpenedBrowserSession) {
			Do(s, System, realm.DeactivateUser{User: ann})
		}, []bool{false, false}, true},
		"by deactivation of the organization": {func(s *Scene, ann realm.UserID, _ realm.OpenedBrowserSession) {
			Do(s, System, realm.CloseRealm{})
			Do(s, System, realm.ReopenRealm{})
		}, []bool{false, false}, false},
		"not by another setting": {func(s *Scene, ann realm.UserID, _ realm.OpenedBrowserSession) {
			Do(s, ann, realm.ChangeSettings{})
		}, []bool{true, true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			ann, bo := s.Join("Ann"), s.Join("Bo")
			one, opened := openSession(s, ann, "one")
			two, _ := openSession(s, ann, "two")
			other, _ := openSession(s, bo, "one")
			stolen := one
			stolen.User = bo
			if !valid(s, one) || !valid(s, two) || !valid(s, other) || valid(s, stolen) {
				t.Fatal("not all sessions are valid for their users, and only for these")
			}
			c.end(s, ann, opened)
			if got := []bool{valid(s, one), valid(s, two)}; !slices.Equal(got, c.want) {
				t.Errorf("valid afterwards: %v, want %v", got, c.want)
			}
			if valid(s, other) != c.bo {
				t.Errorf("session of another user is valid: %v, want %v", !c.bo, c.bo)
			}
		})
	}
}

// A user that changes the password in a browser goes on there with a new secret; all other sessions end.
func TestPasswordChangeRenewsOwnSession(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	one, opened := openSession(s, ann, "one")
	two, _ := openSession(s, ann, "two")
	hash := "$argon2id$"
	secret := DoAs(s, one, realm.ChangeSettings{Password: &hash}).Session
	if secret == "" || valid(s, one) || valid(s, two) || !valid(s, sessionCaller(s, ann, secret)) {
		t.Error("only the caller's session goes on, with the new secret")
	}
	if list := s.ViewAs(ann).BrowserSessions(ann); len(list) != 1 || list[0].ID != opened.ID {
		t.Errorf("sessions %+v, want the caller's with its id %d", list, opened.ID)
	}
}

// A session lasts two weeks from its last use. The use is recorded once a day.
func TestBrowserSessionSlides(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	one, _ := openSession(s, ann, "one")
	const day = 24 * 60 * 60
	for range 40 {
		s.Advance(day)
		before := s.Realm.Seq()
		DoAs(s, one, realm.RenewBrowserSession{Agent: "newer", Address: "192.0.2.2"})
		DoAs(s, one, realm.RenewBrowserSession{Agent: "newer", Address: "192.0.2.2"})
		if n := s.Realm.Seq() - before; n != 1 {
			t.Fatalf("%d facts for two requests of a day, want 1", n)
		}
	}
	if l := s.ViewAs(ann).BrowserSessions(ann); len(l) != 1 || l[0].Agent != "newer" || l[0].Address != "192.0.2.2" ||
		l[0].Used != s.Now {
		t.Errorf("sessions %+v", l)
	}
	s.Advance(realm.BrowserSessionSeconds)
	if !valid(s, one) {
		t.Error("the session ended within two weeks of its last use")
	}
	s.Advance(day)
	if valid(s, one) || len(s.ViewAs(ann).BrowserSessions(ann)) > 0 {
		t.Error("the session goes on after two weeks without use")
	}
	before := s.Realm.StoredBrowserSessions(ann)
	openSession(s, ann, "two")
	if after := s.Realm.StoredBrowserSessions(ann); len(before) != 1 || len(after) != 1 {
		t.Errorf(
			"%d stored sessions before and %d after a login, want the expired one removed",
			len(before),
			len(after),
		)
	}
}

// The number of sessions of an account is limited: the one unused longest ends.
func TestBrowserSessionLimit(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	first, _ := openSession(s, ann, "first")
	for n := range realm.MaxBrowserSessions - 1 {
		s.Advance(60)
		openSession(s, ann, fmt.Sprint(n))
	}
	if !valid(s, first) {
		t.Fatal("a session ended below the limit")
	}
	s.Advance(60)
	last, _ := openSession(s, ann, "last")
	if n := len(s.ViewAs(ann).BrowserSessions(ann)); valid(s, first) || !valid(s, last) ||
		n != realm.MaxBrowserSessions {
		t.Errorf("%d sessions; the first is valid: %v", n, valid(s, first))
	}
}

// Logins that are refused open no session; users end only their own.
func TestBrowserSessionRefusals(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robot", ann)
	open := func(u realm.UserID, password string) realm.OpenBrowserSession {
		return realm.OpenBrowserSession{LogIn: realm.LogIn{User: u, Password: password}}
	}
	ExpectRefusal(s, ann, open(ann, ""), "Insufficient permission")
	ExpectRefusal(s, System, open(bot, ""), "Insufficient permission")
	ExpectRefusal(s, System, open(ann, "the hash of before"), "AUTHENTICATION_FAILED")
	_, opened := openSession(s, ann, "one")
	ExpectRefusal(s, bo, realm.EndBrowserSessions{User: ann, ID: opened.ID}, "Insufficient permission")
	ExpectRefusal(s, bo, realm.EndBrowserSessions{User: bo, ID: opened.ID}, "There is no such session.")
	if l := s.ViewAs(bo).BrowserSessions(ann); len(l) > 0 {
		t.Errorf("another user sees the sessions: %+v", l)
	}
	Do(s, System, realm.DeactivateUser{User: bo})
	ExpectRefusal(s, System, open(bo, ""), "USER_DEACTIVATED")
	Do(s, System, realm.CloseRealm{})
	ExpectRefusal(s, System, open(ann, ""), "REALM_DEACTIVATED")
}

// An email tells about a login from a device that has no session, unless the user has switched that off or has just
// joined.
func TestLoginEmail(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	sent := 0
	logIn := func(agent string) {
		Do(s, System, realm.OpenBrowserSession{LogIn: realm.LogIn{User: ann}, Agent: agent, Address: "192.0.2.1",
			Compose: func(l realm.LoginEmail) realm.Email {
				sent++
				return realm.Email{To: l.User.Email}
			}})
	}
	expect := func(what string, want int) {
		t.Helper()
		if sent != want {
			t.Errorf("%s: %d emails, want %d", what, sent, want)
		}
		sent = 0
	}
	logIn("one")
	expect("just joined", 0)
	s.Advance(3600)
	logIn("one")
	expect("a known device", 0)
	logIn("two")
	expect("a new device", 1)
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_login_emails", Value: false}}})
	logIn("three")
	expect("switched off", 0)
}

// An email tells about each login of an app, because apps have no sessions by which they could be known again. A login
// that is refused has no email.
func TestAppLoginEmail(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	Do(s, System, realm.SetPassword{User: ann, Hash: "$argon2id$", KeepKeys: true})
	var sent []realm.LoginEmail
	logIn := func(password string) error {
		_, err := Try(s, System, realm.LogInApp{LogIn: realm.LogIn{User: ann, Password: password},
			Agent: "ZulipMobile/30.0 (Android 16)", Address: "192.0.2.1",
			Compose: func(l realm.LoginEmail) realm.Email {
				sent = append(sent, l)
				return realm.Email{To: l.User.Email}
			}})
		return err
	}
	expect := func(what string, want int) {
		t.Helper()
		if len(sent) != want {
			t.Errorf("%s: %d emails, want %d", what, len(sent), want)
		}
		sent = nil
	}
	logIn("$argon2id$")
	expect("just joined", 0)
	s.Advance(3600)
	if err := logIn("$argon2id$"); err != nil || len(sent) != 1 || !sent[0].App ||
		sent[0].Session.Address != "192.0.2.1" {
		t.Errorf("a login: %v, emails %+v", err, sent)
	}
	sent = nil
	logIn("$argon2id$")
	expect("a second login", 1)
	if err := logIn("$another$"); err == nil {
		t.Error("a password that was replaced meanwhile is accepted")
	}
	expect("a refused login", 0)
	Do(s, ann, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_login_emails", Value: false}}})
	logIn("$argon2id$")
	expect("switched off", 0)
}
