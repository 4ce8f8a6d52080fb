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

	"parley/cmd/internal/orgfiles"
	"parley/snapshot/files/s3/s3test"
)

// startImportCores starts a cluster whose files are in a bucket. Clients reach its organizations at chat.test.
func startImportCores(t *testing.T, names ...string) *runningCores {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	bucket := s3test.Start(t)
	list := newCores(t, t.TempDir(), names, "--url", "http://chat.test")
	list[0].args = append(list[0].args, "--files", bucket.URL("files")) // the others get it when they join
	return startCluster(t, list...)
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
	importCopy(t, all, x.at, messages)
	leader = all.leader(x.at)
	leader.program.kill()
	if out, code := runParley("import", "slack", dir, "--data", leader.data, "--realm", "x"); code == 0 ||
		!strings.Contains(out, "which is a core of a cluster: start it, or run the command at a running node") {
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

// importCopy exports the organization "moved" at a core that does not lead and imports it there under another name.
// Then every core has it with all messages and the file.
func importCopy(t *testing.T, all *runningCores, at *runningCore, messages int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "moved.jsonl")
	if out, code := runParley("export", file, "--realm", "moved", "--data", at.data); code != 0 {
		t.Fatal(out)
	}
	for what, args := range map[string][]string{"exists already": nil, "API keys": {"--realm", "copy"}} {
		out, code := runParley(append([]string{"import", file, "--data", at.data}, args...)...)
		if code == 0 || !strings.Contains(out, what) {
			t.Errorf("%s: code %d: %s", what, code, out)
		}
	}
	out, code := runParley("import", file, "--data", at.data, "--realm", "copy", "--new-keys")
	if code != 0 {
		t.Fatal(out)
	}
	digest := strings.TrimSpace(out)
	digest = digest[strings.LastIndex(digest, "\n")+1:] // the lines before are the progress
	out, code = runParley("cluster", "verify", "--data", at.data)
	if code != 0 || strings.Count(out, "equal=true") != 3 || !strings.Contains(out, digest) {
		t.Errorf("imported\n%s, but the cores have\n%s", digest, out)
	}
	out, _ = runParley("user", "api-key", "--email", "ann@x.example", "--realm", "copy", "--data", at.data)
	key := regexp.MustCompile(`api_key: (\S+)`).FindStringSubmatch(out)
	if key == nil {
		t.Fatal(out)
	}
	ann := &account{url: "http://copy.chat.test", email: "ann@x.example", key: key[1]}
	for _, c := range all.list {
		all.retry("accept the new key at core "+c.name, func() error {
			_, err := ann.callWith(clientOf(c), "GET", "users/me", nil)
			return err
		})
		checkImported(t, c, ann, messages, "the notes")
	}
}

// A cluster without a bucket has files only on the core that led when they were uploaded. The operator is told so by
// cluster init and by a backup of another core. Exports and imports are refused there with the name of the leader, and
// everything that needs a disk is refused at an edge.
func TestClusterWithoutBucket(t *testing.T) {
	all := startCores(t, "a", "b")
	dir := t.TempDir()
	leader := all.leader(all.list[1])
	other := all.other(leader)
	out, code := runParley("cluster", "init", "--data", filepath.Join(dir, "x"), "--node", "x", "--peer-listen",
		"127.0.0.1:1")
	if code != 0 || !strings.Contains(out, "warning: uploaded files will be only on the core that leads") {
		t.Errorf("cluster init without a bucket: %s", out)
	}
	out, code = runParley("cluster", "init", "--data", filepath.Join(dir, "y"), "--node", "y", "--peer-listen",
		"127.0.0.1:1", "--files", "s3://bucket/folder?endpoint=http://127.0.0.1:1")
	place, err := orgfiles.ReadPlace(filepath.Join(dir, "y"))
	if code != 0 || err != nil || strings.Contains(out, "warning") || !strings.Contains(place.Files, "bucket/folder") {
		t.Errorf("cluster init with a bucket: %s; it is in %v: %v", out, place, err)
	}
	token, code := runParley("cluster", "token", "--data", leader.data, "--role", "edge")
	if code != 0 {
		t.Fatal(token)
	}
	edge := filepath.Join(dir, "edge")
	edgeProgram := startProgram(t, parleyCommand("serve", "--data", edge, "--node", "edge", "--listen",
		freeAddress(t), "--peer-listen", freeAddress(t), "--join", strings.TrimSpace(token)))
	edgeProgram.serving()
	demoAccount(t, "http://"+other.listen, "ann@example.org").uploadText(t, "notes.txt", "the notes")
	export, slack := filepath.Join(dir, "export"), writeSlackExport(t, 10)
	if out, code := runParley("export", export, "--data", leader.data); code != 0 {
		t.Fatal(out)
	}
	notes := addSlackFile(t, slack, "the notes")
	leads := "node " + leader.name + " at " + leader.peer
	for _, args := range [][]string{
		{"export", filepath.Join(dir, "none")},
		{"export", filepath.Join(dir, "none"), "--format", "zulip"},
		{"import", export, "--realm", "copy", "--new-keys"},
		{"import", "slack", slack, "--files", notes, "--realm", "slack"},
	} {
		at := []string{edge} // every core exports
		if args[0] == "import" {
			at = append(at, other.data)
		}
		for _, data := range at {
			out, code := runParley(append(args, "--data", data)...)
			if code == 0 || !strings.Contains(out, leads) || data == edge && !strings.Contains(out, "an edge") {
				t.Errorf("parley %s in %s: code %d: %s", args, filepath.Base(data), code, out)
			}
		}
	}
	if out, code := runParley("backup", filepath.Join(dir, "none"), "--data", edge); code == 0 ||
		!strings.Contains(out, leads) {
		t.Errorf("a backup of an edge: code %d: %s", code, out)
	}
	if list, err := filepath.Glob(filepath.Join(dir, "none*")); err != nil || len(list) > 0 {
		t.Errorf("refused commands left %v", list)
	}
	if out, code := runParley("backup", filepath.Join(dir, "backup"), "--data", other.data); code != 0 {
		t.Errorf("a backup of a core that does not lead: code %d: %s", code, out)
	}
	if out, _ := runParley("realm", "list", "--data", leader.data); strings.Count(out, "id=") != 1 {
		t.Errorf("refused imports left organizations: %s", out)
	}
	out, code = runParley("import", export, "--data", leader.data, "--realm", "copy", "--new-keys")
	if code != 0 {
		t.Errorf("an import at the leader: %s", out)
	}
	if out, code := runParley("cluster", "verify", "--data", other.data); code != 0 || strings.Count(out,
		"equal=true") != 2 {
		t.Errorf("the cores differ: %s", out)
	}
	other.program.kill()
	edgeProgram.kill()
	for _, c := range []struct{ what, data, says string }{
		{"a stopped core", other.data, "Start the cores that have the files"},
		{"a stopped edge", edge, "an edge stores nothing"},
		{"a directory without data", dir, "is not the data directory of a server"},
	} {
		for _, command := range []string{"backup", "export"} {
			if command == "export" && c.data == other.data {
				continue // the organization that it exports lacks no file there
			}
			out, code := runParley(command, filepath.Join(dir, "none"), "--data", c.data)
			if !strings.Contains(out, c.says) || code == 0 {
				t.Errorf("%s of %s: code %d: %s", command, c.what, code, out)
			}
		}
	}
	for _, command := range []string{"backup", "export"} {
		out, code := runParley(command, filepath.Join(dir, "stopped "+command), "--incomplete", "--data", other.data)
		if !strings.Contains(out, "warning: this core is not running, so it may lack the newest changes") || code != 0 {
			t.Errorf("%s of a stopped core, incomplete: code %d: %s", command, code, out)
		}
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

// Two cores import exports with the same API keys at the same moment, under different names. One of them is refused
// with the remedy, and nothing of it is left.
func TestClusterImportsWithSameKeys(t *testing.T) {
	dir := t.TempDir()
	source, export := filepath.Join(dir, "source"), filepath.Join(dir, "export")
	// So many that both imports have begun before one of them ends.
	if out, code := runParley("import", "slack", writeSlackExport(t, 5000), "--data", source); code != 0 {
		t.Fatal(out)
	}
	p := startProgram(t, parleyCommand("serve", "--data", source, "--listen", "127.0.0.1:0"))
	p.serving()
	out, _ := runParley("user", "api-key", "--email", "ann@x.example", "--data", source)
	key := regexp.MustCompile(`api_key: (\S+)`).FindStringSubmatch(out)
	if key == nil {
		t.Fatal(out)
	}
	p.stop()
	if out, code := runParley("export", export, "--data", source); code != 0 {
		t.Fatal(out)
	}
	all := startImportCores(t, "a", "b", "c")
	type result struct {
		out  string
		code int
	}
	results := map[string]chan result{}
	for i, name := range []string{"first", "second"} {
		c := make(chan result, 1)
		results[name] = c
		go func() {
			out, code := runParley("import", export, "--realm", name, "--data", all.list[i].data)
			c <- result{out, code}
		}()
	}
	refused := 0
	for name, c := range results {
		r := <-c
		ann := &account{url: "http://" + name + ".chat.test", email: "ann@x.example", key: key[1]}
		if r.code == 0 {
			all.retry("accept the key in "+name, func() error {
				_, err := ann.callWith(clientOf(all.list[2]), "GET", "users/me", nil)
				return err
			})
			continue
		}
		if refused++; !strings.Contains(r.out, "API keys") || !strings.Contains(r.out, "--new-keys") {
			t.Errorf("%s was refused with: %s", name, r.out)
		}
		if _, err := ann.callWith(clientOf(all.list[2]), "GET", "users/me", nil); err == nil {
			t.Errorf("%s was refused, but the API key is valid there", name)
		}
	}
	if refused != 1 {
		t.Errorf("%d of two imports with the same API keys were refused", refused)
	}
	if out, _ := runParley("realm", "list", "--data", all.list[2].data); strings.Count(out, "id=") != 2 {
		t.Errorf("the cluster has not the demo and one import: %s", out)
	}
	out, code := runParley("cluster", "verify", "--data", all.list[0].data)
	if code != 0 || strings.Count(out, "equal=true") != 2 {
		t.Errorf("the cores differ: %s", out)
	}
	for _, c := range all.list {
		if left, _ := filepath.Glob(filepath.Join(c.data, "imports", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}
