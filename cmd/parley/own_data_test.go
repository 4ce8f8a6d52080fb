package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fetch returns the answer of a server to a request for a file, with the credentials of an account; nil: without any.
func fetch(t *testing.T, at string, a *account, path string) (status int, header http.Header, body []byte) {
	t.Helper()
	req, err := http.NewRequest("GET", at+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a != nil {
		req.SetBasicAuth(a.email, a.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

// waitForOwnData waits until the newest file with the data of a user is complete, and returns its path.
func waitForOwnData(t *testing.T, a *account) (path string) {
	t.Helper()
	eventually(t, "the file is complete", func() bool {
		answer, err := a.call("GET", "users/me/data_exports", nil)
		if err != nil {
			return false
		}
		list := answer["exports"].([]any)
		newest := list[len(list)-1].(map[string]any)
		if newest["failed_timestamp"] != nil {
			t.Fatal("the export failed")
		}
		path, _ = newest["path"].(string)
		return path != ""
	})
	return path
}

// entriesOfBytes returns the contents of a zip file by name.
func entriesOfBytes(t *testing.T, data []byte) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "data.zip")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatalf("%v: %.200q", err, data)
	}
	return entriesOf(t, file)
}

// Users get a file with their own data, which equals that of the operator's command. It is for no other user, also by
// its name. A program that was killed meanwhile writes it after the next start.
func TestOwnData(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data, "--rate-limit", "0")
	ann := demoAccount(t, p.serving(), "ann@example.org")
	bo := demoAccount(t, ann.url, "bo@example.org")
	olive := demoAccount(t, ann.url, "olive@example.org")
	address := ann.uploadText(t, "notes.txt", "file of ann")
	if _, err := ann.send("text of ann, [notes](" + address + ")"); err != nil {
		t.Fatal(err)
	}
	for to, text := range map[string]string{"ann": "for ann", "olive": "hidden"} {
		bo.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {`["` + to + `@example.org"]`},
			"content": {text}})
	}
	ann.must(t, "POST", "users/me/data_exports", nil)
	p.kill()
	p = demo(t, data, "--rate-limit", "0")
	ann.url = p.serving()
	bo.url, olive.url = ann.url, ann.url
	path := waitForOwnData(t, ann)

	status, header, body := fetch(t, ann.url, ann, path)
	if status != 200 || header.Get("Content-Type") != "application/zip" ||
		header.Get("Cache-Control") != "private, no-store" ||
		!strings.HasPrefix(header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("the download: %d %v", status, header)
	}
	got := entriesOfBytes(t, body)
	if !strings.Contains(got["messages.jsonl"], "for ann") || strings.Contains(got["messages.jsonl"], "hidden") ||
		got["files/"+strings.TrimPrefix(address, "/user_uploads/")] != "file of ann" {
		t.Errorf("the file has %.2000q", got)
	}
	names, err := filepath.Glob(filepath.Join(data, "uploads", "exports", "own-*.zip"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files on disk: %v, %v", names, err)
	}
	for _, x := range []struct {
		name   string
		who    *account
		path   string
		status int
	}{
		{"another user", bo, path, 400}, {"an owner", olive, path, 400}, {"a visitor", nil, path, 404},
		{"another number", ann, path + "1", 400}, {"no number", ann, "/user_data/x", 400},
		{"the name of the file", ann, "/user_avatars/exports/" + filepath.Base(names[0]), 404},
	} {
		if status, _, body := fetch(t, ann.url, x.who, x.path); status != x.status {
			t.Errorf("%s: %d %.200s, want %d", x.name, status, body, x.status)
		}
	}

	file := filepath.Join(t.TempDir(), "ann.zip")
	if out, code := runParley("export", "person", "ann@example.org", "--data", data, "--out", file); code != 0 {
		t.Fatal(out)
	}
	for name, text := range entriesOf(t, file) {
		same := text == got[name]
		if name == "messages.jsonl" { // now with the message about the file
			same = strings.HasPrefix(text, got[name]) && got[name] != ""
		}
		if !same && name != "about.json" {
			t.Errorf("%s is %.500q, that of the command %.500q", name, got[name], text)
		}
	}
	ann.must(t, "DELETE", "users/me/data_exports/"+strings.TrimPrefix(path, "/user_data/"), nil)
	if status, _, _ := fetch(t, ann.url, ann, path); status != 400 {
		t.Errorf("the deleted file: %d", status)
	}
	if left, _ := filepath.Glob(names[0]); len(left) != 0 {
		t.Errorf("files that remain: %v", left)
	}
}

// In a cluster, each core serves the file, also after another core has become the leader, to which the file is copied.
func TestClusterOwnData(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	leader := all.leader(all.list[0])
	ann := demoAccount(t, "http://"+leader.listen, "ann@example.org")
	all.retry("ask for the data", func() error {
		_, err := ann.call("POST", "users/me/data_exports", nil)
		return err
	})
	path := waitForOwnData(t, ann)
	check := func(when string) {
		for _, c := range all.list {
			all.retry("download "+when, func() error {
				status, _, body := fetch(t, "http://"+c.listen, ann, path)
				if status != 200 {
					return fmt.Errorf("core %s: %d %.200s", c.name, status, body)
				}
				if got := entriesOfBytes(t, body); !strings.Contains(got["profile.json"], "ann@example.org") {
					t.Fatalf("core %s: %.500q", c.name, got)
				}
				return nil
			})
		}
	}
	check("at the first leader")
	all.moveLeader(all.other(leader).name, ann)
	check("at the next leader")
}
