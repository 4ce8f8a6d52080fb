package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A backup of any core, of a time, becomes a single server, and that the first core of a new cluster. A command in the
// directory of a core that is stopped is refused with the reason, and so is an import.
func TestClusterBackup(t *testing.T) {
	all := startCores(t, "a", "b")
	dir := t.TempDir()
	follower := all.other(all.leader(all.list[0]))
	ann := demoAccount(t, "http://"+follower.listen, "ann@example.org")
	if _, err := ann.send("kept"); err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(at.Add(time.Second))) // times of facts are whole seconds
	if _, err := ann.send("a mistake"); err != nil {
		t.Fatal(err)
	}
	file, restored := filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	if out, code := runParley("backup", file, "--data", follower.data); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("verify", file); code != 0 {
		t.Fatal(out)
	}
	for _, c := range all.list {
		c.program.kill()
	}
	out, code := runParley("realm", "list", "--data", follower.data)
	if code == 0 || !strings.Contains(out, "which is a core of a cluster") {
		t.Errorf("a command in the directory of a stopped core: %s", out)
	}
	export := filepath.Join(dir, "export")
	if out, code := runParley("restore", file, restored+"-whole"); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("export", export, "--data", restored+"-whole"); code != 0 {
		t.Fatal(out)
	}
	out, code = runParley("import", export, "--data", follower.data, "--realm", "x")
	if code == 0 || !strings.Contains(out, "which is a core of a cluster") {
		t.Errorf("an import into the directory of a stopped core: %s", out)
	}
	if out, code := runParley("restore", file, restored, "--at", at.Format(time.RFC3339)); code != 0 {
		t.Fatal(out)
	}
	first := &runningCore{name: "x", data: restored, listen: freeAddress(t)}
	again := joinCores(t, dir, first, "y")
	ann.url = "http://" + again.list[1].listen
	again.retry("send to the restored cluster", func() error {
		_, err := ann.send("after the restore")
		return err
	})
	newest, err := ann.call("GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"2"}, "num_after": {"0"},
		"apply_markdown": {"false"}})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range newest["messages"].([]any) {
		texts = append(texts, m.(map[string]any)["content"].(string))
	}
	if got := strings.Join(texts, ", "); got != "kept, after the restore" {
		t.Errorf("the restored cluster has %s", got)
	}
	if out, _ := statusLines(restored); strings.Contains(out, "node=a ") {
		t.Errorf("the restored cluster has members of the old one: %s", out)
	}
}
