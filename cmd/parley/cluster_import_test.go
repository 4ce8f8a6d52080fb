package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/snapshot/files/s3/s3test"
)

// startImportCores starts a cluster whose files are in a bucket. Clients reach its organizations at chat.test.
func startImportCores(t *testing.T, names ...string) *runningCores {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	bucket := s3test.Start(t)
	return startCluster(t, newCores(t, t.TempDir(), names, "--url", "http://chat.test", "--files",
		bucket.URL("files"))...)
}

// clientOf returns a client whose requests all go to one core.
func clientOf(c *runningCore) *http.Client {
	return &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", c.listen)
		}}}
}

// addSlackFile adds a message with a file to a Slack export, and returns the folder with the file.
func addSlackFile(t *testing.T, dir, text string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	writeFile(t, filepath.Join(folder, "F1.txt"), text)
	row, err := json.Marshal([]any{map[string]any{"user": "U1", "text": "with a file", "ts": "1500000000.000100",
		"files": []any{map[string]any{"id": "F1", "name": "notes.txt", "title": "notes.txt", "mimetype": "text/plain",
			"size": len(text), "url_private": "https://files.slack.com/files-pri/T1-F1/notes.txt"}}}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "general", "2017-07-14.json"), string(row))
	return folder
}

// checkImported checks at one core that an imported organization has its messages and its file.
func checkImported(t *testing.T, c *runningCore, ann *account, messages int, file string) {
	t.Helper()
	client := clientOf(c)
	ask := func(anchor string) (texts []string) {
		t.Helper()
		a, err := ann.callWith(client, "GET", "messages", url.Values{"anchor": {anchor}, "num_before": {"1"},
			"num_after": {"1"}, "narrow": {"[]"}})
		if err != nil {
			t.Fatalf("core %s: %v", c.name, err)
		}
		for _, m := range a["messages"].([]any) {
			texts = append(texts, m.(map[string]any)["content"].(string))
		}
		return texts
	}
	want := fmt.Sprintf("<p>message %d</p>", messages-1)
	if got := strings.Join(ask("newest"), " "); !strings.Contains(got, want) {
		t.Errorf("core %s: the newest messages are %s", c.name, got)
	}
	link := regexp.MustCompile(`/user_uploads/[^"]+`).FindString(strings.Join(ask("oldest"), " "))
	r, err := http.NewRequest("GET", ann.url+link, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(ann.email, ann.key)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || string(body) != file {
		t.Errorf("core %s: the file %s is answered %d with %q", c.name, link, resp.StatusCode, body)
	}
}

// An archive is imported at a core that does not lead. Then every core has the same state with all messages and the
// file, also when the leader is killed. With MESSAGES, which must be 9,000 or more, the import is stopped first and
// shows nothing; when it runs again the leader is killed, and it goes on at the next leader: make cluster-import.
func TestClusterImport(t *testing.T) {
	messages := environmentNumber("MESSAGES", 100)
	all := startImportCores(t, "a", "b", "c")
	dir := writeSlackExport(t, messages)
	leader := all.leader(all.list[0])
	x := &clusterImport{t: t, at: all.other(leader), args: []string{"import", "slack", dir, "--files",
		addSlackFile(t, dir, "the notes"), "--realm", "moved"}}
	if os.Getenv("MESSAGES") != "" {
		x.begin().kill()
		for _, c := range all.list {
			if out, code := runParley("realm", "list", "--data", c.data); code != 0 || strings.Contains(out, "moved") {
				t.Fatalf("an interrupted import is visible at %s: %s", c.name, out)
			}
		}
		p := x.begin()
		leader.program.kill()
		if code := p.end(); code != 0 {
			t.Fatalf("the leader was killed during the import: %s", p.output())
		}
		leader.start(t)
		leader.program.serving()
	} else if out, code := runParley(x.command()...); code != 0 {
		t.Fatal(out)
	}
	out, code := runParley("cluster", "verify", "--data", x.at.data)
	if code != 0 || strings.Count(out, "equal=true") != 2 || strings.Count(out, "nodes=3") != 2 {
		t.Errorf("the cores differ: %s", out)
	}
	out, _ = runParley("user", "api-key", "--email", "ann@x.example", "--realm", "moved", "--data", x.at.data)
	key := regexp.MustCompile(`api_key: (\S+)`).FindStringSubmatch(out)
	if key == nil {
		t.Fatal(out)
	}
	ann := &account{url: "http://moved.chat.test", email: "ann@x.example", key: key[1]}
	for _, c := range all.list {
		all.retry("accept the new key at core "+c.name, func() error {
			_, err := ann.callWith(clientOf(c), "GET", "users/me", nil)
			return err
		})
		checkImported(t, c, ann, messages, "the notes")
	}
	leader = all.leader(x.at)
	leader.program.kill()
	if out, code := runParley("import", "slack", dir, "--data", leader.data, "--realm", "x"); code == 0 ||
		!strings.Contains(out, "which is a core of a cluster: start it, or give the command at a running node") {
		t.Errorf("an import into the directory of a stopped core: %d %s", code, out)
	}
	for _, c := range all.list {
		if c != leader {
			checkImported(t, c, ann, messages, "the notes")
		}
	}
	if left, _ := filepath.Glob(filepath.Join(x.at.data, "imports", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// clusterImport is an import that is stopped and begun again.
type clusterImport struct {
	t      *testing.T
	at     *runningCore
	args   []string
	logged int64 // bytes of its log at the last begin
}

func (x *clusterImport) command() []string { return append(x.args, "--data", x.at.data) }

// begin starts the import and returns when it has stored more than before.
func (x *clusterImport) begin() *program {
	x.t.Helper()
	for end := time.Now().Add(binaryTimeout); ; {
		p := startProgram(x.t, parleyCommand(x.command()...))
		if grew := waitForLog(x.at.data, x.logged, p.exited); grew > x.logged {
			x.logged = grew
			return p
		}
		if !strings.Contains(p.output(), "another import is running") || time.Now().After(end) {
			x.t.Fatalf("the import has ended too early: %s", p.output())
		}
	}
}
