package server

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
)

// Refusals of whole classes of callers.
const (
	noBots       = "This endpoint does not accept bot requests."
	noGuests     = "Not allowed for guest users"
	adminsOnly   = "Must be an organization administrator"
	ownersOnly   = "Must be an organization owner"
	noPermission = "Insufficient permission"
)

// expectedError returns the error that a user gets from an endpoint used correctly, or "" if it is allowed.
type expectedError func(p *matrixUser) string

func humans(p *matrixUser) string {
	if p.name == "bot" {
		return noBots
	}
	return ""
}

func members(p *matrixUser) string {
	if p.isGuest() {
		return noGuests
	}
	return humans(p)
}

// inviters: members; guests lack the permission.
func inviters(p *matrixUser) string {
	if p.isGuest() {
		return noPermission
	}
	return humans(p)
}

func admins(p *matrixUser) string {
	if p.isAdmin() {
		return ""
	}
	return adminsOnly
}

func owners(p *matrixUser) string {
	if p.name == "owner" {
		return ""
	}
	return ownersOnly
}

func matrixRoles(t *testing.T, l *coverage) {
	table := readRoleTable(t)
	s := newMatrixStage(t, l)
	s.targetChannel()
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	all := append(s.people, s.outsiders()...)
	grant(s, s.by["owner"].id)
	n := 0
	for _, call := range roleCalls {
		for _, p := range all {
			if call.name == "POST /realm/deactivate" && p.name == "owner" {
				continue // askDisposable asks it at the end
			}
			n++
			method, path := call.request(s, n)
			want := loginError(p, false)
			if p.isVisitor() || want == "" {
				want = table.expected(t, call.name, p)
			}
			s.checkAnswer(call.name, s.call(p, method, path, call.params(s, n)...).msg(), want, "%s: %s", p.name,
				call.name)
		}
	}
	s.askWithSetup()
	s.askDisposable()
	s.summary()
}

// askWithSetup asks endpoints that need preparation, so that allowed callers succeed.
func (s *matrixStage) askWithSetup() {
	s.must(s.keeper, "POST", "/users/me/presence", "status", "active", "slim_presence", true)
	grant(s, s.keeper.id)
	m := s.must(s.keeper, "POST", "/messages", "type", "channel", "to", s.targetChannel(), "topic", "poll", "content",
		poll).int("id")
	for _, p := range s.people {
		if p.name == "gone" {
			continue
		}
		reactions := fmt.Sprintf("/messages/%d/reactions", m)
		s.check(s.call(p, "POST", reactions, "emoji_name", "wave").msg(), "", "%s: reacts", p.name)
		s.check(s.call(p, "DELETE", reactions, "emoji_name", "wave").msg(), "", "%s: takes a reaction back", p.name)
		s.check(s.call(p, "POST", "/submessage", "message_id", m, "msg_type", "widget", "content",
			vote).msg(), "", "%s: votes", p.name)
		s.check(s.call(p, "GET", fmt.Sprintf("/users/%d/presence", s.keeper.id)).msg(), "", "%s: asks for presence",
			p.name)
	}
	const password = "a good long one"
	s.check(s.call(s.keeper, "POST", "/users", "email", "made@a.example", "password", password, "full_name",
		"Made").msg(), "", "%s: makes an account", "keeper")
	s.check(s.call(s.by["visitor"], "POST", "/fetch_api_key", "username", "made@a.example", "password", password).msg(),
		"", "%s: logs in", "visitor")
}

// askDisposable asks endpoints that end an account or revoke a key. It uses copies of the users with the same rights.
func (s *matrixStage) askDisposable() {
	for i, p := range s.people {
		if p.name == "gone" {
			continue
		}
		role := map[string]realm.Role{"owner": realm.Owner, "admin": realm.Administrator, "moderator": realm.Moderator,
			"guest": realm.Guest}[p.name]
		if role == 0 {
			role = realm.Member
		}
		var bot realm.BotType
		if p.name == "bot" {
			bot = realm.GenericBot
		}
		double := s.join(ours, ourHost, fmt.Sprintf("double %d", i), role, bot, s.by["member"].id)
		old := *double
		old.name, double.name = "double of "+p.name, p.name
		old.session = nil
		r := s.call(double, "POST", "/users/me/api_key/regenerate")
		if s.login == byAdditionalKey {
			s.check(r.msg(), keyMakesNoKeys, "%s: a new key", p.name)
			s.check(s.call(&old, "GET", "/users/me").msg(), "", "%s: the old key", p.name)
		} else {
			s.check(r.msg(), "", "%s: a new key", p.name)
			s.check(s.call(&old, "GET", "/users/me").msg(), "Invalid API key", "%s: the old key", p.name)
			double.key, _ = r.body["api_key"].(string)
		}
		s.check(s.call(double, "DELETE", "/users/me").msg(), humans(p), "%s: deactivates the own account", p.name)
		if humans(p) == "" {
			s.check(s.call(double, "GET", "/users/me").msg(), "Account is deactivated",
				"%s: after deactivating the own account", p.name)
		}
	}
	// The end of an organization: only an owner may deactivate it, and afterwards no user is let in.
	const end = "POST /realm/deactivate"
	s.checkAnswer(end, s.call(s.by["owner"], "POST", "/realm/deactivate").msg(), "", "%s: %s", "owner", end)
	for _, p := range append([]*matrixUser{s.keeper, s.by["webhook bot"]}, s.people...) {
		want := "This organization has been deactivated"
		if p.name == "gone" && s.login == byAdditionalKey {
			want = loginError(p, false)
		}
		s.check(s.call(p, "GET", "/users/me").msg(), want, "%s: after the organization's end", p.name)
	}
	visitor := &matrixUser{name: "visitor", host: ourHost}
	for _, what := range []string{"GET /users", "POST /register"} {
		method, path, _ := strings.Cut(what, " ")
		s.check(s.call(visitor, method, path).msg(), "This organization has been deactivated",
			"visitor: %s after the organization's end", what)
	}
}

// grant lets a user create accounts.
func grant(s *matrixStage, user int64) {
	s.Helper()
	if _, err := realm.Execute(s.orgs, ours, realm.Caller{System: true, Client: "Internal"},
		realm.Grant{User: realm.UserID(user), CreateUsers: true}); err != nil {
		s.Fatal(err)
	}
}

// roleTable is testdata/matrix_roles.txt.
type roleTable struct {
	refusals map[string]string   // by word
	callers  []string            // the names of the columns
	cells    map[string][]string // by the name of the call
}

// readRoleTable reads the table and checks that it has the calls of roleCalls.
func readRoleTable(t *testing.T) roleTable {
	t.Helper()
	raw, err := os.ReadFile("testdata/matrix_roles.txt")
	if err != nil {
		t.Fatal(err)
	}
	x := roleTable{refusals: map[string]string{"yes": ""}, cells: map[string][]string{}}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		word, refusal, isWord := strings.Cut(line, " = ")
		fields := strings.Fields(line)
		switch at := len(fields) - len(x.callers); {
		case line == "" || line[0] == '#':
		case isWord:
			x.refusals[word] = refusal
		case x.callers == nil:
			x.callers = fields[1:]
		case at < 2:
			t.Fatalf("a row with too few columns: %s", line)
		default:
			x.cells[strings.Join(fields[:at], " ")] = fields[at:]
		}
	}
	for _, call := range roleCalls {
		if x.cells[call.name] == nil {
			t.Errorf("%s: no row in testdata/matrix_roles.txt", call.name)
		}
	}
	if len(x.cells) != len(roleCalls) {
		t.Errorf("%d rows in testdata/matrix_roles.txt, %d calls in roleCalls", len(x.cells), len(roleCalls))
	}
	return x
}

// expected returns the refusal that a caller gets, or "" if the call is allowed.
func (x roleTable) expected(t *testing.T, call string, p *matrixUser) string {
	t.Helper()
	name := p.name
	if p.isVisitor() {
		name = "visitor"
	}
	column := slices.Index(x.callers, name)
	if column < 0 || x.cells[call] == nil {
		t.Fatalf("%s: no cell for %s", call, name)
	}
	switch word := x.cells[call][column]; word {
	case "never":
		return neverAllowed[neverAllowedAt(call)].text
	case "session?", "confirm?":
		if p.session != nil {
			return ""
		}
		return x.refusals[word]
	case "first_key?":
		if p.firstKey == "" {
			return ""
		}
		return x.refusals[word]
	default:
		refusal, known := x.refusals[word]
		if !known {
			t.Fatalf("%s: the word %q has no meaning", call, word)
		}
		return refusal
	}
}

// request returns the method and the path of a call, with an object of its own.
func (c roleCall) request(s *matrixStage, n int) (method, path string) {
	method, path, _ = strings.Cut(c.name, " ")
	path, _, _ = strings.Cut(path, " ") // without the note
	if from, to := strings.Index(path, "{"), strings.LastIndex(path, "}"); from >= 0 {
		path = path[:from] + fmt.Sprint(c.at(s, n)) + path[to+1:]
	}
	return method, path
}
