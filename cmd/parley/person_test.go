package main

import (
	"archive/zip"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// entriesOf returns the contents of a zip file by name.
func entriesOf(t *testing.T, file string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(data)
	}
	return out
}

// The export of a user has everything of that user, and of other users only their direct messages with that user. It
// has no secrets. A running and a stopped server write the same.
func TestExportPerson(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	bo := demoAccount(t, ann.url, "bo@example.org")
	direct := func(a *account, to, text string) {
		a.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {`["` + to + `"]`}, "content": {text}})
	}
	address := ann.uploadText(t, "notes.txt", "file of ann")
	bo.uploadText(t, "notes.txt", "file of bo")
	if _, err := ann.send("text of ann, [notes](" + address + ")"); err != nil {
		t.Fatal(err)
	}
	bos := bo.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
		"content": {"text of bo"}})
	direct(ann, "bo@example.org", "direct of ann")
	direct(bo, "ann@example.org", "direct of bo")
	direct(bo, "olive@example.org", "hidden from ann")
	edited := ann.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
		"content": {"before the edit"}})
	ann.must(t, "PATCH", "messages/"+jsonID(edited["id"]), url.Values{"content": {"after the edit"}})
	deleted := ann.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
		"content": {"deleted by the owner"}})
	olive := demoAccount(t, ann.url, "olive@example.org")
	olive.must(t, "DELETE", "messages/"+jsonID(deleted["id"]), nil)
	ann.must(t, "POST", "messages/"+jsonID(bos["id"])+"/reactions", url.Values{"emoji_name": {"octopus"}})
	ann.must(t, "POST", "drafts", url.Values{"drafts": {`[{"type":"","to":[],"topic":"","content":"draft of ann"}]`}})
	bo.must(t, "POST", "drafts", url.Values{"drafts": {`[{"type":"","to":[],"topic":"","content":"draft of bo"}]`}})

	file, again := filepath.Join(dir, "ann.zip"), filepath.Join(dir, "again.zip")
	if out, code := runParley("export", "person", "ann@example.org", "--data", data, "--out", file); code != 0 {
		t.Fatal(out)
	}
	me := ann.must(t, "GET", "users/me", nil)
	p.stop()
	id := jsonID(me["user_id"])
	if out, code := runParley("export", "person", id, "--data", data, "--out", again); code != 0 {
		t.Fatal(out)
	}
	got, stopped := entriesOf(t, file), entriesOf(t, again)
	for name, text := range got {
		if stopped[name] != text {
			t.Errorf("%s is %q on a running server, %q on a stopped one", name, text, stopped[name])
		}
	}
	all := ""
	for _, text := range got {
		all += text
	}
	for _, want := range []string{"text of ann", "direct of ann", "direct of bo", "draft of ann", "file of ann",
		"before the edit", "after the edit", `"deleted_messages_left_out":1`, "octopus", "ann@example.org",
		`"twenty_four_hour_time"`, `"channel":"general"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the export lacks %s", want)
		}
	}
	for _, not := range []string{"text of bo", "hidden from ann", "draft of bo", "file of bo", "bo@example.org",
		ann.key, "deleted by the owner", "argon2"} {
		if strings.Contains(all, not) {
			t.Errorf("the export contains %s", not)
		}
	}
	if got["files/"+strings.TrimPrefix(address, "/user_uploads/")] != "file of ann" {
		t.Error("the file is not in the export under its path")
	}
	for _, args := range [][]string{{"nobody@example.org", "--out", file}, {"7000000", "--out", file}, {id},
		{"notification-bot@zulip.com", "--out", file}} {
		out, code := runParley(append([]string{"export", "person", "--data", data}, args...)...)
		if code != exitError {
			t.Errorf("%v: code %d, %s", args, code, out)
		}
	}
}

// jsonID returns the text of an id in an answer.
func jsonID(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
