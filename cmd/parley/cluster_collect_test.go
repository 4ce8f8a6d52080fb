package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Three cores without a bucket. Core a led while two files and an avatar were uploaded, then b leads. While a is down,
// nothing is silently left out: backups and exports of every kind are refused and name the files, those that the
// operator takes with --incomplete name them, and so does parley verify; a download says that it is temporary. When a
// is up, any core collects the files for a backup, and downloads fetch them.
func TestClusterCollectsFiles(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	a, b, c := all.list[0], all.list[1], all.list[2]
	dir := t.TempDir()
	parley := func(ok bool, says []string, args ...string) {
		t.Helper()
		out, code := runParley(args...)
		if (code == 0) != ok {
			t.Fatalf("parley %s: code %d: %s", strings.Join(args, " "), code, out)
		}
		for _, text := range says {
			if !strings.Contains(out, text) {
				t.Errorf("parley %s does not say %q:\n%s", strings.Join(args, " "), text, out)
			}
		}
	}
	ann := demoAccount(t, "http://"+a.listen, "ann@example.org")
	all.moveLeader("a", ann)
	first, second := ann.uploadText(t, "first.txt", "under a"), ann.uploadText(t, "second.txt", "also under a")
	status, body, err := ann.uploadTo("users/me/avatar", map[string]io.Reader{"a.png": pngOf(t, 60, 60)})
	if err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	avatar := body["avatar_url"].(string)
	all.moveLeader("b", ann)
	at := func(c *runningCore) *account {
		return &account{email: ann.email, key: ann.key, url: "http://" + c.listen}
	}
	third := at(b).uploadText(t, "third.txt", "under b")

	a.program.kill()
	all.retry("find the leader again", func() error {
		if leader := all.leader(b); leader == a {
			return fmt.Errorf("it is %s", leader.name)
		}
		return nil
	})
	all.moveLeaderOfTwo(b, c)
	for _, path := range []string{first, avatar, strings.Replace(avatar, ".png", "-medium.png", 1)} {
		all.expectFileElsewhere(at(b), path)
	}
	if text := at(b).download(t, third); text != "under b" {
		t.Error(text)
	}
	if _, health := getText(t, at(b).url+"/health"); !strings.Contains(health, "downloads were refused") {
		t.Errorf("/health says %s", health)
	}
	backup := filepath.Join(dir, "backup")
	named := []string{"3 files are missing", "missing: content/", "missing: pictures/", "core a", "--incomplete"}
	parley(false, named, "backup", backup, "--data", b.data)
	parley(false, named, "backup", "-", "--data", b.data)
	parley(true, named[:4], "backup", backup, "--data", b.data, "--incomplete")
	parley(false, []string{"missing: content/", "missing: pictures/", "lacks 3 files"}, "verify", backup)
	person := []string{"export", "person", "ann@example.org"}
	parley(false, named, "export", filepath.Join(dir, "org"), "--data", b.data)
	parley(false, named, "export", filepath.Join(dir, "zulip"), "--data", b.data, "--format", "zulip")
	parley(false, named, append(person, "--out", filepath.Join(dir, "ann"), "--data", b.data)...)
	parley(true, []string{"content/", "pictures/"}, "export", filepath.Join(dir, "org"), "--data", b.data,
		"--incomplete")
	parley(true, []string{first, second, "pictures/"}, "export", filepath.Join(dir, "zulip"), "--data", b.data,
		"--format", "zulip", "--incomplete")
	parley(true, []string{first, second, "pictures/"},
		append(person, "--out", filepath.Join(dir, "ann"), "--data", b.data, "--incomplete")...)

	a.start(t)
	a.program.serving()
	all.retry("collect the files", func() error {
		if out, code := runParley("backup", backup, "--data", c.data); code != 0 { // c has never led
			return fmt.Errorf("backup: %s", out)
		}
		return nil
	})
	parley(true, nil, "verify", backup)
	restored := filepath.Join(dir, "restored")
	parley(true, nil, "restore", backup, restored)
	parley(true, nil, "export", filepath.Join(dir, "org"), "--data", b.data)
	parley(true, nil, "export", filepath.Join(dir, "zulip"), "--data", b.data, "--format", "zulip")
	parley(true, nil, append(person, "--out", filepath.Join(dir, "ann"), "--data", b.data)...)
	single := demo(t, restored)
	list := []*account{at(a), at(b), at(c), {email: ann.email, key: ann.key, url: single.serving()}}
	for _, from := range list {
		for path, want := range map[string]string{first: "under a", second: "also under a", third: "under b"} {
			if text := from.download(t, path); text != want {
				t.Errorf("%s at %s is %q", path, from.url, text)
			}
		}
		from.download(t, avatar)
	}
}

// moveLeaderOfTwo makes the first of two cores the leader, where the third one does not run.
func (all *runningCores) moveLeaderOfTwo(to, other *runningCore) {
	all.t.Helper()
	all.retry("make "+to.name+" the leader", func() error {
		if all.leader(to) == to {
			return nil
		}
		out, _ := runParley("cluster", "move-leader", "--data", other.data)
		return fmt.Errorf("it is not: %s", out)
	})
}

// expectFileElsewhere expects that a download is refused for a while.
func (all *runningCores) expectFileElsewhere(from *account, path string) {
	all.t.Helper()
	r, _ := http.NewRequest("GET", from.url+path, nil)
	r.SetBasicAuth(from.email, from.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		all.t.Fatal(err)
	}
	defer answer.Body.Close()
	var body struct{ Code, Msg string }
	err = json.NewDecoder(answer.Body).Decode(&body)
	if err != nil || answer.StatusCode != 503 || body.Code != "FILES_UNAVAILABLE" ||
		!strings.Contains(body.Msg, "another server") || answer.Header.Get("Retry-After") == "" {
		all.t.Errorf("%s: %d %+v %v %v", path, answer.StatusCode, body, answer.Header, err)
	}
}
