package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// maxStatusWait is far less than the 15 s after which a forwarded command of the operator gives up.
const maxStatusWait = 6 * time.Second

// With two of three cores gone, parley cluster status prints at once how the last one sees the cluster, and fails.
func TestClusterStatusWithoutLeader(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	last := all.list[2]
	if out, code := runParley("cluster", "status", "--data", last.data); code != 0 ||
		!strings.Contains(out, "leader=true") || strings.Contains(out, "no_leader") {
		t.Errorf("with a leader: code %d: %s", code, out)
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
