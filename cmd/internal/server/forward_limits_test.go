package server

import (
	"testing"

	"parley/actors/realm"
	"parley/wire/httpd"
)

// Each edge counts the requests of its clients itself. Failed logins are counted by the owner: a guesser does not get
// more guesses by asking several edges.
func TestLimitsThroughEdges(t *testing.T) {
	core := newMatrixServer(t, newCoverage(byKey))
	if _, err := core.orgs.CreateRealm("", "Ours"); err != nil {
		t.Fatal(err)
	}
	owner := core.join(ours, ourHost, "owner", realm.Owner, 0, 0)
	core.options.Limits = httpd.Limits{User: 4, Visitor: 100, Login: 3}
	first, link := newEdge(t, core)
	second, other := newEdge(t, core)
	other.owner = link.owner
	stranger := &matrixUser{host: ourHost}
	guess := func(at *matrixServer) int {
		return at.send(stranger, "POST", "/fetch_api_key", "username", owner.email, "password", "a guess").status
	}
	statuses := []int{guess(first), guess(second), guess(first), guess(second), guess(first)}
	for i, status := range statuses {
		if wrong := i < core.options.Limits.Login; wrong != (status == 401 || status == 403) || !wrong && status != 429 {
			t.Errorf("the answers to wrong passwords through two edges are %d", statuses)
			break
		}
	}
	ask := func(at *matrixServer, i int) int { // reads run at the edge, changes at the owner
		if i%2 == 0 {
			return at.send(owner, "GET", "/users/me").status
		}
		return at.send(owner, "POST", "/users/me/status", "status_text", "x").status
	}
	for name, at := range map[string]*matrixServer{"first": first, "second": second} {
		for i := range 5 {
			want := 200
			if i >= core.options.Limits.User {
				want = 429
			}
			if status := ask(at, i); status != want {
				t.Errorf("request %d at the %s edge is answered %d, want %d", i, name, status, want)
			}
		}
	}
}
