package server

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// emailedLink is a link that the server sends by email.
type emailedLink struct {
	name, path string
	until      int64 // the last second in which it is valid
	form       url.Values
}

// makeLinks returns one link of each kind, valid from now on.
func makeLinks(s *matrixStage) (links []emailedLink) {
	s.Helper()
	const password = "purple otter 42 lamp"
	member := s.by["member"]
	add := func(name string, until int64, email realm.Email, form url.Values) {
		path := strings.TrimPrefix(wire.EmailLink(email, ours, wire.Site{URL: "http://" + ourHost}, s.tools),
			"http://"+ourHost)
		if path == "" {
			s.Fatalf("%s has no link", name)
		}
		links = append(links, emailedLink{name, path, until, form})
	}
	now := s.now.Load()
	signUp := realm.EmailedLink{Kind: realm.SignUpLink, Email: "new@example.net", Until: now + realm.SignUpValidity}
	add("sign-up", signUp.Until, realm.Email{Confirm: &signUp},
		url.Values{"full_name": {"New Person"}, "password": {password}})
	change := realm.EmailChange{User: realm.UserID(member.id), From: member.email, To: "moved@example.net",
		Until: now + realm.EmailChangeValidity}
	add("new address", change.Until, realm.Email{Address: &change}, url.Values{})
	var reset realm.EmailedLink
	if _, err := realm.Execute(s.orgs, ours, realm.System, realm.RequestPasswordReset{Email: s.keeper.email,
		Compose: func(l realm.EmailedLink, _ realm.Letterhead) realm.Email { reset = l; return realm.Email{} }}); err != nil {
		s.Fatal(err)
	}
	add("reset", now+realm.PasswordResetValidity, realm.Email{Confirm: &reset},
		url.Values{"new_password1": {password}, "new_password2": {password}})
	minutes := int64(600)
	made, err := realm.Execute(s.orgs, ours, realm.Caller{User: realm.UserID(s.keeper.id)}, realm.InviteByMail{
		Emails: "invited@example.net", InviteOptions: realm.InviteOptions{Role: realm.Member, Minutes: &minutes}})
	if err != nil || len(made.Emails) != 1 {
		s.Fatalf("invitation: %v, %v", made, err)
	}
	join := url.Values{"full_name": {"New Guest"}, "password": {password}, "email": {"another@example.net"}}
	add("invitation", now+60*minutes-1, realm.Email{Link: made.Emails[0].Link}, join)
	multi := s.must(s.keeper, "POST", "/invites/multiuse", "invite_expires_in_minutes", minutes)
	at, err := url.Parse(multi.body["invite_link"].(string))
	if err != nil {
		s.Fatal(err)
	}
	links = append(
		links,
		emailedLink{"reusable invitation", strings.TrimSuffix(at.Path, "/"), now + 60*minutes - 1, join},
	)
	return links
}

// A link in an email is valid until its time is over, to the second, and only in the organization that sent it. An
// expired link changes nothing, also for a browser that has loaded its form before.
func TestLinksExpireAndBelongToOneOrganization(t *testing.T) {
	s := newMatrixStage(t, newCoverage(byKey))
	s.must(s.keeper, "PATCH", "/realm", "invite_required", false)
	s.must(s.outsider, "PATCH", "/realm", "invite_required", false)
	began := s.now.Load()
	users := func() string { return s.must(s.by["owner"], "GET", "/users").raw }
	links := makeLinks(s)
	before := users()
	for _, l := range links {
		s.now.Store(began)
		if status, _ := s.page(ourHost, "GET", l.path, nil); status != 200 {
			t.Errorf("%s: %d", l.name, status)
		}
		if status, _ := s.page(theirHost, "GET", l.path, nil); status != 404 {
			t.Errorf("%s at another organization: %d", l.name, status)
		}
		if status, _ := s.page(theirHost, "POST", l.path, l.form); status != 404 {
			t.Errorf("the form of %s at another organization: %d", l.name, status)
		}
		s.now.Store(l.until)
		if status, _ := s.page(ourHost, "GET", l.path, nil); status != 200 {
			t.Errorf("%s in its last second: %d", l.name, status)
		}
		s.now.Store(l.until + 1)
		if status, body := s.page(ourHost, "GET", l.path, nil); status != 404 || strings.Contains(body, "<form") {
			t.Errorf("%s after its time: %d", l.name, status)
		}
		if status, _ := s.page(ourHost, "POST", l.path, l.form); status != 404 {
			t.Errorf("the form of %s after its time: %d", l.name, status)
		}
	}
	s.now.Store(began)
	if users() != before {
		t.Error("a link that is not valid changed an account")
	}
	for _, l := range links {
		if status, body := s.page(ourHost, "POST", l.path, l.form); status != 302 && status != 200 {
			t.Errorf("the form of %s: %d\n%s", l.name, status, body)
		}
	}
	for _, email := range []string{"new@example.net", "moved@example.net", "invited@example.net",
		"another@example.net"} {
		if after := users(); !strings.Contains(after, fmt.Sprintf("%q", email)) {
			t.Errorf("no account has the address %s", email)
		}
	}
}
