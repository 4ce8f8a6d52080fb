package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/url"
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
		"user role --email ann@example.org --role owner", "user rename --email ann@example.org --name X",
		"user deactivate --email ann@example.org", "user reactivate --email ann@example.org", "channel list",
		"channel archive --channel general", "mail test --to x@example.org", "audit list", "audit keep --days 3",
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

// The memory and the files of an edge have neither the server's secret nor a key of jwt-keys, whatever its clients do.
func TestEdgeHasNoSecret(t *testing.T) {
	const key = "a-key-of-login-tokens-that-no-edge-has"
	c := startEdgesOf(t, 1, "--jwt-keys", "="+key)
	edge := c.edges[0]
	secret, err := os.ReadFile(filepath.Join(c.core.data, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	ann := demoAccount(t, edge.url(), "ann@example.org")
	olive := demoAccount(t, edge.url(), "olive@example.org")
	for _, x := range []struct {
		as           *account
		method, path string
		params       url.Values
	}{
		{ann, "POST", "register", nil}, {ann, "GET", "users/me", nil}, {ann, "POST", "fetch_api_key", nil},
		{olive, "POST", "invites/multiuse", nil}, {olive, "GET", "invites", nil},
		{olive, "GET", "users/me/web_push", nil},
		{ann, "POST", "jwt/fetch_api_key", url.Values{"json_web_token": {"x"}}},
	} {
		a, err := x.as.call(x.method, x.path, x.params)
		if err != nil && !strings.Contains(x.path, "fetch_api_key") {
			t.Errorf("%s %s at the edge: %v", x.method, x.path, err)
		}
		if key := a["application_server_key"]; key == "" {
			t.Error("an edge has no key for notifications of browsers")
		}
	}
	if n := findInMemory(t, c.core.cmd.Process.Pid, secret); n == 0 {
		t.Error("the test does not find the secret in the core's memory")
	}
	for what, text := range map[string]string{"server's secret": string(secret), "key of login tokens": key} {
		if n := findInMemory(t, edge.cmd.Process.Pid, []byte(text)); n != 0 {
			t.Errorf("the %s is %d times in the memory of the edge", what, n)
		}
		err := filepath.WalkDir(edge.data, func(path string, x fs.DirEntry, err error) error {
			if err != nil || !x.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if strings.Contains(string(content), text) {
				t.Errorf("the %s is in %s", what, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// findInMemory returns how often a text is in the writable memory of a process that this test has started.
func findInMemory(t *testing.T, pid int, text []byte) (n int) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Skip("this machine does not allow to read the memory of a process: ", err)
	}
	defer memory.Close()
	for _, line := range strings.Split(string(maps), "\n") {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") {
			continue
		}
		const block = 1 << 20
		b := make([]byte, block+len(text)) // blocks overlap, for a text at their border
		for at := from; at < to; at += block {
			k, _ := memory.ReadAt(b[:min(int64(len(b)), to-at)], at) // parts without pages cannot be read
			n += bytes.Count(b[:k], text)
		}
	}
	return n
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
