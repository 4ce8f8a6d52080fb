package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// uploadText uploads a file and returns its URL.
func (p *account) uploadText(t *testing.T, name, text string) string {
	t.Helper()
	status, a, err := p.upload(map[string]io.Reader{name: strings.NewReader(text)})
	if err != nil || status != 200 {
		t.Fatalf("upload: %d %v %v", status, a, err)
	}
	return a["url"].(string)
}

func (p *account) download(t *testing.T, path string) string {
	t.Helper()
	r, _ := http.NewRequest("GET", p.url+path, nil)
	r.SetBasicAuth(p.email, p.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %d %s", path, resp.StatusCode, data)
	}
	return string(data)
}

// An organization is exported while its server runs, and imported into a new directory. It has the same state and
// files, and its clients continue on the same event queue with the same key.
func TestExportAndImport(t *testing.T) {
	dir := t.TempDir()
	data, file, other := filepath.Join(dir, "data"), filepath.Join(dir, "org.jsonl"), filepath.Join(dir, "other")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	q, err := ann.call("POST", "register", url.Values{"event_types": {`["message"]`}, "idle_queue_timeout": {"604800"}})
	if err != nil {
		t.Fatal(err)
	}
	// more than one line of the export
	address := ann.uploadText(t, "notes.txt", strings.Repeat("what was uploaded ", 50_000))
	if _, err := ann.send("kept for later, [notes](" + address + ")"); err != nil {
		t.Fatal(err)
	}
	if out, code := runParley("export", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	live := digests(t, "realm", "digest", "--data", data)
	p.stop()

	out, code := runParley("import", file, "--data", other)
	if code != 0 || !strings.Contains(out, live) {
		t.Fatalf("code %d: imported\n%s, exported\n%s", code, out, live)
	}
	if out, code := runParley("log", "check", other); code != 0 {
		t.Error(out)
	}
	again := startProgram(t, parleyCommand("serve", "--data", other, "--listen", "127.0.0.1:0", "--demo"))
	ann.url = again.serving()
	a, err := ann.call("GET", "events", url.Values{"queue_id": {q["queue_id"].(string)}, "last_event_id": {"-1"},
		"dont_block": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(a["events"]); !strings.Contains(string(got), "kept for later") {
		t.Errorf("the queue does not continue: %s", got)
	}
	if got := ann.download(t, address); !strings.HasPrefix(got, "what was uploaded ") || len(got) != 18*50_000 {
		t.Errorf("the file has %d bytes", len(got))
	}
	if fresh := demoAccount(t, ann.url, "ann@example.org"); fresh.key == "" {
		t.Error("logging in failed")
	}
	if _, err := ann.send("after the move"); err != nil {
		t.Fatal(err)
	}
	again.stop()
	if out, code := runParley("log", "check", other); code != 0 {
		t.Error(out)
	}
}

// An organization is imported beside the original with another name. Its files have other names, and the original does
// not change.
func TestImportBesideOriginal(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "org.jsonl")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	ann.uploadText(t, "notes.txt", "what was uploaded")
	p.stop()
	if out, code := runParley("export", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	before := digests(t, "log", "replay", data)
	for what, args := range map[string][]string{"exists already": nil, "API keys": {"--realm", "copy"},
		"not a subdomain": {"--realm", "No Name"}} {
		if out, code := runParley(append([]string{"import", file, "--data", data}, args...)...); code != exitError ||
			!strings.Contains(out, what) {
			t.Errorf("%s: code %d: %s", what, code, out)
		}
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"incomplete": whole[:len(whole)*2/3],
		"damaged": bytes.Replace(whole, []byte(`"Ann`), []byte(`"Amy`), 1), "invalid line": append([]byte("[]\n"),
			whole...),
		"from a newer parley (data version 999": regexp.MustCompile(`"data_version":\d+`).ReplaceAll(whole,
			[]byte(`"data_version":999`)),
		"version 2": bytes.Replace(whole, []byte(`"version":1`), []byte(`"version":2`), 1)} {
		bad := filepath.Join(dir, "bad.jsonl")
		if err := os.WriteFile(bad, data, 0o600); err != nil {
			t.Fatal(err)
		}
		nowhere := filepath.Join(dir, "nowhere")
		if out, code := runParley("import", bad, "--data", nowhere); code != exitError || !strings.Contains(out, what) {
			t.Errorf("%s: code %d: %s", what, code, out)
		}
		if _, err := os.Stat(nowhere); err == nil {
			t.Errorf("%s: a rejected import left files", what)
		}
	}
	if after := digests(t, "log", "replay", data); after != before {
		t.Errorf("rejected imports changed the state:\n%s\n%s", before, after)
	}
	if out, code := runParley("import", file, "--data", data, "--realm", "copy", "--new-keys"); code != 0 ||
		!strings.Contains(out, "realm 2 at") {
		t.Fatalf("code %d: %s", code, out)
	}
	content, _ := filepath.Glob(filepath.Join(data, "uploads", "content", "*", "*"))
	if len(content) != 2 {
		t.Errorf("two organizations have %d files", len(content))
	}
	if got := digests(t, "log", "replay", data, "--realm", "1"); got != before {
		t.Errorf("the original changed:\n%s\n%s", before, got)
	}
	again := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
	ann.url = again.serving()
	if _, err := ann.send("the key is still the first one's"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		what string
		args []string
	}{
		{"exists already", []string{"--realm", "copy"}},
		{"API keys", []string{"--realm", "third"}},
		{"realm 3 at", []string{"--realm", "third", "--new-keys"}},
	} {
		out, code := runParley(append([]string{"import", file, "--data", data}, c.args...)...)
		if !strings.Contains(out, c.what) || (code == 0) != (c.what == "realm 3 at") {
			t.Errorf("into the running server: code %d: %s", code, out)
		}
	}
	if out, code := runParley("realm", "list", "--data", data); code != 0 || !strings.Contains(out, "subdomain=third") {
		t.Errorf("the running server has %s", out)
	}
}

// Exports in both formats, and the export of a person, say how many files they lack.
func TestExportsSayWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	for _, name := range []string{"one", "two"} {
		address := ann.uploadText(t, name+".txt", "the text of "+name)
		if _, err := ann.send("[" + name + "](" + address + ")"); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	commands := [][]string{
		{"export", filepath.Join(dir, "own.jsonl")},
		{"export", filepath.Join(dir, "zulip.tar.gz"), "--format", "zulip"},
		{"export", "person", "ann@example.org", "--out", filepath.Join(dir, "ann.zip")},
	}
	export := func(want string) {
		t.Helper()
		for _, args := range commands {
			out, code := runParley(append(args, "--data", data)...)
			if has := strings.Contains(out, "warning: files that are not in the export"); code != 0 ||
				has != (want != "") || !strings.Contains(out, want) {
				t.Errorf("parley %s: code %d: %s", args, code, out)
			}
		}
	}
	export("")
	err := filepath.WalkDir(filepath.Join(data, "uploads"), func(file string, _ os.DirEntry, err error) error {
		if text, _ := os.ReadFile(file); err == nil && strings.HasPrefix(string(text), "the text of ") {
			err = os.Remove(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	export("does not have them: 2.")
}
