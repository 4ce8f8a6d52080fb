package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The users that were active before the leader was killed are active at the next leader, those of an edge too. With
// PRESENCE=all it is also so after all cores were killed at once: make kill-presence.
func TestClusterPresence(t *testing.T) {
	list, debug := newCores(t, t.TempDir(), []string{"a", "b", "c"}), freeAddress(t)
	list[0].args = append(list[0].args, "--debug-listen", debug)
	all := startCluster(t, list...)
	if leader := all.leader(list[1]); leader != list[0] {
		t.Fatalf("%s leads, not the first core", leader.name)
	}
	token, code := runParley("cluster", "token", "--data", list[0].data, "--role", "edge")
	if code != 0 {
		t.Fatal(token)
	}
	edge := startProgram(t, parleyCommand("serve", "--data", filepath.Join(t.TempDir(), "edge"), "--node", "edge",
		"--listen", freeAddress(t), "--peer-listen", freeAddress(t), "--join", strings.TrimSpace(token)))
	ann := demoAccount(t, "http://"+list[0].listen, "ann@example.org")
	bo := demoAccount(t, "http://"+list[1].listen, "bo@example.org")
	cy := demoAccount(t, edge.serving(), "cy@example.org")
	active := url.Values{"status": {"active"}}
	for _, a := range []*account{ann, bo, cy} {
		a.must(t, "POST", "users/me/presence", active)
	}
	want := regexp.MustCompile(`parley_cluster_presence_rows_sent_total ([6-9]|\d\d)`)
	all.retry("send the presence of three users to two cores", func() error {
		if _, text := getText(t, "http://"+debug+"/metrics"); !want.MatchString(text) {
			return fmt.Errorf("metrics: %s", regexp.MustCompile(`parley_cluster_presence.*`).FindAllString(text, -1))
		}
		return nil
	})
	list[0].program.kill()
	bo.url = "http://" + all.other(list[0]).listen
	expectActive(t, all, bo)
	if os.Getenv("PRESENCE") == "" {
		return
	}
	time.Sleep(31 * time.Second) // a crash of all cores may lose so much
	for _, c := range list[1:] {
		c.program.kill()
	}
	for _, c := range list {
		c.start(t)
	}
	for _, c := range list {
		c.program.serving()
	}
	expectActive(t, all, bo)
}

// expectActive requires that the three users of the test are active for one of them.
func expectActive(t *testing.T, all *runningCores, asks *account) {
	t.Helper()
	var presences map[string]any
	all.retry("get the presence", func() error {
		a, err := asks.call("GET", "realm/presence", nil)
		if err == nil {
			presences = a["presences"].(map[string]any)
		}
		return err
	})
	for _, email := range []string{"ann@example.org", "bo@example.org", "cy@example.org"} {
		p, is := presences[email].(map[string]any)
		if !is || p["aggregated"].(map[string]any)["status"] != "active" {
			t.Errorf("the presence of %s: %v", email, presences[email])
		}
	}
}
