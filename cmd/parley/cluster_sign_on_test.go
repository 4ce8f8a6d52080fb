package main

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"parley/wire/signon/signontest"
)

// A provider of SCIM may reach any node: a core that follows makes an account, another core shows it as soon as it
// has the change, an edge deactivates it, and its key ends at all nodes. A revoked token ends at all nodes.
func TestClusterScim(t *testing.T) {
	all := startCluster(t, newCores(t, t.TempDir(), []string{"a", "b", "c"})...)
	leader := all.leader(all.list[0])
	join := mustRun(t, "cluster", "token", "--data", leader.data, "--role", "edge")
	edge := startProgram(t, parleyCommand("serve", "--data", t.TempDir()+"/edge", "--node", "edge", "--listen",
		freeAddress(t), "--join", join[:len(join)-1]))
	main := scimToken(t, "http://"+leader.listen, leader.data)
	var nodes []*scimClient
	for _, c := range all.list {
		nodes = append(nodes, &scimClient{t, "http://" + c.listen, main.token})
	}
	nodes = append(nodes, &scimClient{t, edge.serving(), main.token})
	for i, c := range nodes {
		name := fmt.Sprintf("dana%d@example.org", i)
		all.retry("the node knows the token", func() error {
			if status, answer := c.send("GET", "/ServiceProviderConfig", ""); status != 200 {
				return fmt.Errorf("%d %v", status, answer)
			}
			return nil
		})
		body := `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"` + name + `"}`
		id := fmt.Sprint(c.must(201, "POST", "/Users", body)["id"])
		c.must(409, "POST", "/Users", body)
		key := demoAccount(t, "http://"+leader.listen, name)
		other := nodes[(i+1)%len(nodes)]
		if ids := other.find("/Users", `userName eq "`+name+`"`); len(ids) != 1 || ids[0] != id {
			t.Errorf("node %d finds %v, want %s", (i+1)%len(nodes), ids, id)
		}
		other.patch("/Users/"+id, `{"op":"replace","path":"active","value":false}`)
		for j, n := range nodes {
			at := &account{url: n.at, email: key.email, key: key.key}
			all.retry(fmt.Sprintf("the key ends at node %d", j), func() error {
				if _, err := at.call("GET", "users/me", nil); err == nil {
					return errors.New("the key works")
				}
				return nil
			})
		}
	}
	mustRun(t, "scim", "token", "revoke", "--data", leader.data, "--id", "1")
	for i, c := range nodes {
		all.retry(fmt.Sprintf("the token ends at node %d", i), func() error {
			if status, _ := c.send("GET", "/Users", ""); status != 401 {
				return fmt.Errorf("status %d", status)
			}
			return nil
		})
	}
}

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
