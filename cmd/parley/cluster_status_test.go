package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/cmd/internal/cluster"
)

// maxStatusWait is far less than the 15 s after which a forwarded command of the operator gives up.
const maxStatusWait = 6 * time.Second

// With two of three cores gone, parley cluster status prints at once how the last one sees the cluster, and fails.
func TestClusterStatusWithoutLeader(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	last := all.list[2]
	if out, code := statusLines(last.data); code != 0 ||
		!strings.Contains(out, "leader=true") || strings.Contains(out, "no_leader") {
		t.Errorf("with a leader: code %d: %s", code, out)
	}
	if out, code := runParley("cluster", "status", "--data", last.data); code != 0 || strings.Count(out, "\n") != 4 ||
		!strings.HasPrefix(out, "NODE  ROLE  LEADER  VOTER  ") {
		t.Errorf("the table: code %d: %s", code, out)
	}
	for _, c := range all.list[:2] {
		c.program.kill()
	}
	all.retry("the core notices that there is no leader", func() error {
		began := time.Now()
		out, code := runParley("cluster", "status", "--data", last.data)
		if took := time.Since(began); took > maxStatusWait {
			t.Errorf("the answer took %v", took)
		}
		if code == 0 {
			return errNoLeader
		}
		for _, part := range []string{"no_leader: no core leads", "node: c", "state: ", "term: ", "leader_contact: ",
			"node=a ", "node=b ", "connection refused", "this is the view of this node"} {
			if !strings.Contains(out, part) {
				return fmt.Errorf("%q is missing in: %s", part, out)
			}
		}
		if strings.Count(out, "reachable=false") != 2 || strings.Count(out, "voter=true") != 2 {
			return fmt.Errorf("the other cores: %s", out)
		}
		return nil
	})
}

// statusLines returns the answer of parley cluster status --json with one line for each node, such as "leader=true
// node=a". Without a leader it returns the output of the command.
func statusLines(data string) (out string, code int) {
	out, code = runParley("cluster", "status", "--json", "--data", data)
	var answer map[string]any
	if json.Unmarshal([]byte(out), &answer) == nil {
		var lines bytes.Buffer
		printAnswer(&lines, answer)
		out = lines.String()
	}
	return out, code
}

func mustStatusLines(t *testing.T, data string) string {
	t.Helper()
	out, code := statusLines(data)
	if code != 0 {
		t.Fatalf("parley cluster status: %s", out)
	}
	return out
}

// The table of nodes is aligned, has no empty cell, and says for each node whether it leads and votes.
func TestClusterStatusTable(t *testing.T) {
	nodes := []any{}
	for _, n := range []cluster.NodeStatus{
		{Node: "a-long-name", Role: "core", Leader: true, Voter: true, Address: "10.0.0.1:9992", SentBytes: 12345678},
		{Node: "e", Role: "edge"},
	} {
		data, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if err := json.Unmarshal(data, &row); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"node", "role", "leader", "voter"} {
			if _, has := row[name]; !has {
				t.Errorf("node %s has no field %s: %s", n.Node, name, data)
			}
		}
		nodes = append(nodes, row)
	}
	var out strings.Builder
	if err := printNodes(&out, map[string]any{"nodes": nodes}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("not 3 lines:\n%s", out.String())
	}
	for _, line := range lines {
		if len(strings.Fields(line)) != len(nodeColumns) || strings.Index(line, strings.Fields(line)[1]) != 13 {
			t.Errorf("a line is not aligned:\n%s", out.String())
		}
	}
	if !strings.HasPrefix(lines[1], "a-long-name  core  yes     yes ") || !strings.HasPrefix(lines[2],
		"e            edge  no      no ") || !strings.Contains(lines[1], " 12345678 ") {
		t.Errorf("leader or voter is missing:\n%s", out.String())
	}
}
