package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
)

// dangerousAct is a request for which a browser that was left open is not enough.
type dangerousAct struct {
	method, path string
	form         url.Values
	isKey        bool // a recent login is not enough either: a key outlives the session
}

// dangerousActs are the acts of an owner, in an order in which all are possible: boss is another owner.
func dangerousActs(bo, boss string) []dangerousAct {
	owner := url.Values{"invite_as": {"100"}}
	email := url.Values{"invite_as": {"100"}, "invitee_emails": {"new@example.org"}, "stream_ids": {"[]"}}
	return []dangerousAct{
		{"POST", "fetch_api_key", nil, true},
		{"POST", "users/me/api_keys", url.Values{"label": {"script"}}, true},
		{"POST", "users/me/api_keys", url.Values{"label": {"reader"}, "scope": {`{"rights":["read"]}`}}, true},
		{"POST", "export/realm", nil, false},
		{"PATCH", "compliance_exports", url.Values{"two_owners": {"true"}}, false},
		{"POST", "compliance_exports", nil, false},
		{"POST", "compliance_exports/1", url.Values{"approve": {"false"}}, false},
		{"POST", "invites/multiuse", owner, false},
		{"POST", "invites", email, false},
		{"PATCH", "users/" + bo, url.Values{"role": {"100"}}, false},
		{"PATCH", "users/" + bo, url.Values{"role": {"400"}}, false},
		{"PATCH", "users/" + boss, url.Values{"new_email": {"chief@example.org"}}, false},
		{"DELETE", "users/" + boss, nil, false},
		{"POST", "users/" + boss + "/reactivate", nil, false},
		{"DELETE", "users/me", nil, false},
		{"POST", "realm/deactivate", nil, false},
	}
}

// usualActs are acts that no session is asked about.
func usualActs(bo string) []dangerousAct {
	return []dangerousAct{
		{"PATCH", "users/" + bo, url.Values{"role": {"300"}}, false},
		{"PATCH", "users/" + bo, url.Values{"full_name": {"Bo Other"}}, false},
		{"POST", "invites/multiuse", url.Values{"invite_as": {"200"}}, false},
		{"DELETE", "users/" + bo, nil, false},
		{"POST", "users/" + bo + "/reactivate", nil, false},
		{"GET", "export/realm", nil, false},
	}
}

// undoneActs are calls that only owners can make and that other owners see and undo, so no session is asked.
var undoneActs = []string{"PATCH /audit_log", "POST /realm/domains", "PATCH /realm/domains/{domain}",
	"DELETE /realm/domains/{domain}"}

var pathParameter = regexp.MustCompile(`\{[^}]*\}`)

// TestOwnersActsAreDangerous demands that each call that changes something, and that only owners can make, is one of
// dangerousActs, or has a reason not to be.
func TestOwnersActsAreDangerous(t *testing.T) {
	acts := dangerousActs("9", "8")
	for call, cells := range readRoleTable(t).cells {
		method, route, _ := strings.Cut(call, " ")
		if cells[1] != "owners" || method == "GET" || strings.Contains(route, " ") { // a note: some values of the call
			continue
		}
		route = pathParameter.ReplaceAllString(route, "*")
		isAct := slices.ContainsFunc(acts, func(x dangerousAct) bool {
			matches, _ := path.Match(route, "/"+x.path)
			return x.method == method && matches
		})
		switch isUndone := slices.Contains(undoneActs, call); {
		case !isAct && !isUndone:
			t.Errorf("%s: only owners can make it: add it to dangerousActs, or to undoneActs", call)
		case isAct && isUndone:
			t.Errorf("%s is in both lists", call)
		}
	}
}

// dangerScene is an organization with a clock and two owners, Olive and another one, who has no password.
type dangerScene struct {
	*demoServer
	skip     atomic.Int64 // seconds that the clock is ahead
	bo, boss string       // ids
}

func newDangerScene(t *testing.T) *dangerScene {
	t.Helper()
	s := &dangerScene{}
	s.demoServer = startDemoAt(t, func() time.Time {
		return time.Now().Add(time.Duration(s.skip.Load()) * time.Second)
	})
	hash, err := s.passwords.Hash(1, matrixPassword)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := s.logIn("olive@example.org")
	set := realm.SetPassword{User: id, Hash: hash, KeepKeys: true}
	if _, err := realm.Execute(s.orgs, 1, realm.System, set); err != nil {
		t.Fatal(err)
	}
	boss, err := realm.Execute(s.orgs, 1, realm.System, realm.CreateUser{Email: "boss@example.org", Name: "The Boss",
		Role: realm.Owner})
	if err != nil {
		t.Fatal(err)
	}
	bo, _ := s.logIn("bo@example.org")
	s.bo, s.boss = bo.String(), boss.String()
	return s
}

// askAs sends a request of a session.
type askAs func(method, path string, form url.Values) browserAnswer

// logIn opens a session without a password, and returns its user.
func (s *dangerScene) logIn(email string) (realm.UserID, askAs) {
	s.t.Helper()
	a := s.browse("POST", "/api/v1/dev_fetch_api_key", url.Values{"username": {email}}, "", nil)
	return realm.UserID(a.body["user_id"].(float64)), s.asking(a.cookies)
}

func (s *dangerScene) asking(cookies map[string]*http.Cookie) askAs {
	return func(method, path string, form url.Values) browserAnswer {
		s.t.Helper()
		return s.browse(method, "/json/"+path, form, cookies["csrftoken"].Value, cookies)
	}
}

// oldLogin opens a session and lets the time pass until it is not fresh.
func (s *dangerScene) oldLogin(email string) askAs {
	s.t.Helper()
	_, ask := s.logIn(email)
	s.skip.Add(10*60 + 1)
	return ask
}

// TestDangerousActsAskAgain tries each act with an old session, a wrong password, the right one and a fresh session.
func TestDangerousActsAskAgain(t *testing.T) {
	s := newDangerScene(t)
	for _, act := range dangerousActs(s.bo, s.boss) {
		name := fmt.Sprintf("%s %s %v", act.method, act.path, act.form)
		refused := func(what string, a browserAnswer) {
			t.Helper()
			switch {
			case act.isKey && (a.status != 400 || a.body["msg"] != "Password is incorrect." ||
				a.body["api_key"] != nil):
				t.Errorf("%s, %s: %d %v", name, what, a.status, a.body)
			case !act.isKey && (a.status != 403 || a.body["code"] != "CONFIRMATION_REQUIRED" ||
				a.body["by_password"] != true):
				t.Errorf("%s, %s: %d %v", name, what, a.status, a.body)
			}
		}
		ask := s.oldLogin("olive@example.org")
		refused("old session", ask(act.method, act.path, act.form))
		for _, password := range []string{"", "a guess"} {
			if a := ask("POST", "users/me/confirmation", url.Values{"password": {password}}); a.status != 400 {
				t.Errorf("the password %q: %d %v", password, a.status, a.body)
			}
		}
		refused("after a wrong password", ask(act.method, act.path, act.form))
		if act.isKey {
			_, fresh := s.logIn("olive@example.org")
			refused("fresh session", fresh(act.method, act.path, act.form))
		}
		form := url.Values{}
		maps.Copy(form, act.form)
		if act.path == "fetch_api_key" { // as the protocol says, each time
			form.Set("password", matrixPassword)
		} else if a := ask("POST", "users/me/confirmation", url.Values{"password": {matrixPassword}}); a.status != 200 {
			t.Fatalf("the right password: %d %v", a.status, a.body)
		}
		if a := ask(act.method, act.path, form); a.status != 200 {
			t.Errorf("%s after the password: %d %v", name, a.status, a.body)
		}
		switch act.path {
		case "users/me": // Olive is deactivated; the server brings her back
			if _, err := realm.Execute(s.orgs, 1, realm.System, realm.ReactivateUser{User: s.olive()}); err != nil {
				t.Fatal(err)
			}
		case "realm/deactivate":
			return
		}
	}
	t.Error("the organization was not deactivated")
}

// olive returns the id of Olive, who cannot log in.
func (s *dangerScene) olive() (id realm.UserID) {
	s.t.Helper()
	_, err := s.orgs.View(1, realm.System, func(v realm.View) (any, error) {
		id = v.FindByEmail("olive@example.org").ID
		return nil, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// A recent login is enough, except for keys. Users are not asked about other acts, with an API key, or about acts that
// they may not do.
func TestFreshLoginIsNotAsked(t *testing.T) {
	s := newDangerScene(t)
	old := s.oldLogin("olive@example.org")
	for _, act := range usualActs(s.bo) {
		if a := old(act.method, act.path, act.form); a.status != 200 {
			t.Errorf("%s %s %v in an old session: %d %v", act.method, act.path, act.form, a.status, a.body)
		}
	}
	member := s.oldLogin("ann@example.org")
	s.call("olive@example.org", "POST", "export/realm", nil) // with an API key
	_, fresh := s.logIn("olive@example.org")
	for _, act := range dangerousActs(s.bo, s.boss) {
		if act.isKey {
			continue
		}
		if act.path == "users/me" {
			continue // it would end the session
		}
		if a := member(act.method, act.path, act.form); a.status != 400 || a.body["code"] == "CONFIRMATION_REQUIRED" {
			t.Errorf("%s %s of a user that may not: %d %v", act.method, act.path, a.status, a.body)
		}
		if a := fresh(act.method, act.path, act.form); a.status != 200 {
			t.Errorf("%s %s %v in a fresh session: %d %v", act.method, act.path, act.form, a.status, a.body)
		}
	}
}

// A user without a password logs in again; a login of the operator to help does no dangerous act.
func TestDangerousActsWithoutPassword(t *testing.T) {
	s := newDangerScene(t)
	old := s.oldLogin("boss@example.org")
	acts := slices.DeleteFunc(dangerousActs(s.bo, s.boss), func(x dangerousAct) bool {
		return x.form.Get("role") == "400" // Bo is a member already
	})
	for _, act := range acts {
		if a := old(act.method, act.path, act.form); a.status != 403 || a.body["code"] != "CONFIRMATION_REQUIRED" ||
			a.body["by_password"] != false {
			t.Errorf("%s %s in an old session: %d %v", act.method, act.path, a.status, a.body)
		}
	}
	if a := old("POST", "users/me/confirmation", url.Values{"password": {"x"}}); a.status != 403 {
		t.Errorf("a password that does not exist: %d %v", a.status, a.body)
	}
	help := s.helpLogin()
	for _, act := range acts {
		if a := help(act.method, act.path, act.form); a.status != 400 ||
			!strings.Contains(fmt.Sprint(a.body["msg"]), "A login to help") {
			t.Errorf("%s %s in a login to help: %d %v", act.method, act.path, a.status, a.body)
		}
	}
	if a := help("POST", "users/me/confirmation", url.Values{"password": {matrixPassword}}); a.status != 400 {
		t.Errorf("a login to help is confirmed: %d %v", a.status, a.body)
	}
}

// helpLogin is a login of the operator as Olive.
func (s *dangerScene) helpLogin() askAs {
	s.t.Helper()
	link, err := realm.Execute(s.orgs, 1, realm.Operator, realm.OpenHelpSession{User: s.olive(), Seconds: 3600,
		Reason: "a test"})
	if err != nil {
		s.t.Fatal(err)
	}
	caller := realm.Caller{User: link.User, Session: actors.HashKey(link.Secret)}
	opened, err := realm.Execute(s.orgs, 1, caller, realm.BeginHelpSession{Agent: "a browser"})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.asking(map[string]*http.Cookie{"sessionid": {Name: "sessionid", Value: opened.Secret}, "csrftoken": {
		Name: "csrftoken", Value: wire.CSRFToken(s.tools, 1, opened.User, opened.ID)}})
}
