package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An operator at an edge sees the status of the cluster, and can change and read nothing else.
func TestClusterCommandsAtEdge(t *testing.T) {
	c := startEdges(t, 1)
	edge := c.edges[0]
	export := filepath.Join(c.dir, "export.jsonl")
	for _, command := range []string{
		"cluster token --role core", "cluster token --role edge", "cluster remove b", "cluster remove a",
		"cluster verify", "cluster level", "cluster move-leader",
		"realm list", "realm digest", "realm create --realm x --name X", "realm close", "realm reopen", "realm slowest",
		"user list", "user create --email x@example.org --name X --role owner", "user keys --email ann@example.org",
		"user keys --email ann@example.org --add x", "user api-key --email ann@example.org",
		"user password --email ann@example.org --password correct-horse-battery",
		"user grant --email ann@example.org", "user sessions --email ann@example.org",
		"retention list", "retention hold list", "push status",
		"backup " + filepath.Join(c.dir, "backup.tar"), "export " + export,
	} {
		out, code := runParley(append(strings.Fields(command), "--data", edge.data)...)
		if code == 0 || !strings.Contains(out, "edge") {
			t.Errorf("parley %s at an edge: code %d: %s", command, code, out)
		}
	}
	if out, code := statusLines(edge.data); code != 0 || !strings.Contains(out, "node") {
		t.Errorf("the status at an edge: code %d: %s", code, out)
	}
	if out := mustRun(t, "user", "list", "--data", c.core.data); strings.Contains(out, "x@example.org") {
		t.Errorf("the edge has created a user: %s", out)
	}
	if _, err := os.Stat(export); err == nil {
		t.Error("the edge has written an export")
	}
	mustRun(t, "cluster", "remove", "b", "--data", c.core.data)
	eventually(t, "the removed edge loses its link", func() bool {
		out, code := statusLines(edge.data)
		return code != 0 && strings.Contains(out, "was removed")
	})
}

// Hundreds of connections to the address for nodes that send nothing keep no core out that starts again.
func TestClusterIdleConnections(t *testing.T) {
	all := startCores(t, "a", "b")
	leader := all.leader(all.list[0])
	other := all.other(leader)
	status := mustStatusLines(t, leader.data)
	for i := range 2 {
		for _, address := range peerAddresses(status) {
			for range 400 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
		}
		if i == 0 {
			other.program.kill()
			other.start(t)
			other.program.serving()
		}
	}
	ann := demoAccount(t, "http://"+other.listen, "ann@example.org")
	all.retry("send at the core that has started again", func() error {
		_, err := ann.send("hello")
		return err
	})
}

// peerAddresses returns the addresses for nodes in a status.
func peerAddresses(status string) (list []string) {
	for _, field := range strings.Fields(status) {
		field = strings.TrimPrefix(field, "address=")
		if host, _, err := net.SplitHostPort(field); err == nil && net.ParseIP(host) != nil {
			list = append(list, field)
		}
	}
	return list
}
