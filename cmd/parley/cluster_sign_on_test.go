package main

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"parley/wire/signon/signontest"
)

// A login at a provider that begins at one core ends at another one, although the leader has changed meanwhile. An edge
// without the configuration shows the providers, and begins and ends logins.
func TestClusterSignOn(t *testing.T) {
	p := signontest.New(t)
	file := authConfig(t, p, "")
	all := startCluster(t, newCores(t, t.TempDir(), []string{"a", "b", "c"}, "--auth-config", file)...)
	first := all.leader(all.list[0])
	setDemoPasswords(t, first.data, "olive@example.org")
	newBrowser(t, "http://"+first.listen).logIn("olive@example.org", browserPassword).must("PATCH", "realm",
		url.Values{"invite_required": {"false"}})
	follower := all.other(first)
	begun := newBrowser(t, "http://"+follower.listen)
	answer := begun.toProvider(companyLogin)
	all.retry("another core leads", func() error {
		if next := all.leader(follower); next != first {
			return nil
		}
		out, _ := runParley("cluster", "move-leader", "--data", first.data)
		return errors.New(out)
	})
	var done *browser
	for _, c := range all.list {
		if c != first && c != follower {
			done = begun.copied()
			done.at = "http://" + c.listen
		}
	}
	if a := done.send("GET", answer, nil); a.status != 302 || !done.loggedIn() {
		t.Fatalf("the end of the login: %d\n%s", a.status, a.body)
	}
	want := done.userID()
	token := mustRun(t, "cluster", "token", "--data", first.data, "--role", "edge")
	edge := startProgram(t, parleyCommand("serve", "--data", t.TempDir()+"/edge", "--node", "edge", "--listen",
		freeAddress(t), "--join", token[:len(token)-1]))
	b := newBrowser(t, edge.serving())
	if got := fmt.Sprint(b.send("GET", "/api/v1/server_settings", nil).json["external_authentication_methods"]); got ==
		"[]" {
		t.Error("an edge does not name the provider")
	}
	if a := b.atCompany(); a.status != 302 || b.userID() != want {
		t.Errorf("a login at an edge: %d, user %d, want %d\n%s", a.status, b.userID(), want, a.body)
	}
}
