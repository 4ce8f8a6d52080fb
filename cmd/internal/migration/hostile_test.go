package migration

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/snapshot"
)

// Archives that are refused name the reason and leave nothing.
func TestHostileArchives(t *testing.T) {
	for _, c := range []struct {
		name, want string
		write      func(w *tar.Writer)
	}{
		{"path", "refused", func(w *tar.Writer) { putTar(w, "../../outside", tar.TypeReg, "x") }},
		{"absolute path", "refused", func(w *tar.Writer) { putTar(w, "/etc/outside", tar.TypeReg, "x") }},
		{"link", "refused", func(w *tar.Writer) { putTar(w, "x/realm.json", tar.TypeSymlink, "") }},
		{"hard link", "refused", func(w *tar.Writer) { putTar(w, "x/realm.json", tar.TypeLink, "") }},
		{"device", "refused", func(w *tar.Writer) { putTar(w, "x/null", tar.TypeChar, "") }},
		{"same file twice", "refused", func(w *tar.Writer) {
			putTar(w, "x/realm.json", tar.TypeReg, "{}")
			putTar(w, "x/realm.json", tar.TypeReg, "{}")
		}},
		{"nothing", "no realm.json", func(w *tar.Writer) { putTar(w, "x/other", tar.TypeReg, "{}") }},
		{"not JSON", "realm.json", func(w *tar.Writer) { putTar(w, "x/realm.json", tar.TypeReg, "\xff\xfe") }},
		{"deep", "nested too deeply", func(w *tar.Writer) {
			putTar(w, "x/realm.json", tar.TypeReg, `{"a":[`+strings.Repeat("[", 5000)+`]}`)
		}},
		{"no organization", "no organization", func(w *tar.Writer) { putTar(w, "x/realm.json", tar.TypeReg, "{}") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPlace(t, t.TempDir())
			defer p.store.Close()
			file := filepath.Join(t.TempDir(), "x.tar.gz")
			var buf bytes.Buffer
			z := gzip.NewWriter(&buf)
			w := tar.NewWriter(z)
			c.write(w)
			w.Close()
			z.Close()
			if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Run(context.Background(), p.options("zulip", file), p.target)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if _, last, _ := p.disk.Bounds(1); last != 0 {
				t.Error("a part of an organization is stored")
			}
			if left, _ := filepath.Glob(filepath.Join(p.dir, "imports", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func putTar(w *tar.Writer, name string, kind byte, content string) {
	h := &tar.Header{Name: name, Typeflag: kind, Mode: 0o600, Size: int64(len(content))}
	if kind == tar.TypeSymlink || kind == tar.TypeLink {
		h.Linkname = "/etc/passwd"
	}
	w.WriteHeader(h)
	w.Write([]byte(content))
}

// Records that refer to missing things are dropped and counted; the others are imported.
func TestMissingReferences(t *testing.T) {
	dir := t.TempDir()
	writeZulip(t, dir, 10)
	messages := obj{"zerver_message": []obj{
		{"id": 11, "sender": 99999, "recipient": 1, "content": "no sender"},
		{"id": 12, "sender": 10, "recipient": 99999, "content": "no recipient"},
		{"id": 13, "sender": 10, "recipient": 1, "content": "good \x00 \xff"},
		{"id": 13, "sender": 10, "recipient": 1, "content": "the id again"},
		{"id": 14, "sender": 10, "recipient": 1, "content": strings.Repeat("x", 20_000)},
		{"id": 15, "sender": 10, "recipient": 1, "content": "late", "date_sent": 1e15},
	}, "zerver_usermessage": []obj{{"user_profile": 99999, "message": 13}, {"user_profile": 10, "message": 99999}}}
	data, _ := json.Marshal(messages)
	if err := os.WriteFile(filepath.Join(dir, "messages-000002.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, reports := importAll(t, "zulip", dir)
	got := map[string]int{}
	for _, c := range append(reports[0].Dropped, reports[0].Changed...) {
		got[c.Kind+": "+c.Reason] = c.Count
	}
	for _, want := range []string{"messages: the sender is missing", "messages: the recipient is missing",
		"messages: a second message with the same id", "messages: the time is impossible",
		"messages: NUL bytes were removed", "messages: the text was cut at the limit",
		"flags: the user is missing or a system bot", "flags: the message is missing"} {
		if got[want] != 1 {
			t.Errorf("%d × %q, want 1; all: %v", got[want], want, got)
		}
	}
	if reports[0].Messages != 12 {
		t.Errorf("%d messages, want 12", reports[0].Messages)
	}
}

// Rows that contradict each other cost themselves: a second user with the same id, the address of another account, an
// address that is none, and groups in a circle.
func TestContradictingRows(t *testing.T) {
	dir := t.TempDir()
	data, _ := json.Marshal(obj{"zerver_realm": []obj{{"id": 1, "name": "X"}},
		"zerver_userprofile": []obj{
			{"id": 9, "delivery_email": "a@b.example", "full_name": "First", "is_active": true},
			{"id": 9, "delivery_email": "b@b.example", "full_name": "Again", "is_active": true},
			{"id": 10, "delivery_email": "A@b.example", "full_name": "Same", "is_active": true},
			{"id": 11, "delivery_email": "a b <c>", "full_name": "Bad", "is_active": true}},
		"zerver_namedusergroup": []obj{{"usergroup_ptr": 20, "name": "a"}, {"usergroup_ptr": 21, "name": "b"}},
		"zerver_groupgroupmembership": []obj{
			{"supergroup": 20, "subgroup": 21}, {"supergroup": 21, "subgroup": 20},
			{"supergroup": 21, "subgroup": 99}}})
	if err := os.WriteFile(filepath.Join(dir, "realm.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	p, reports := importAll(t, "zulip", dir)
	r := reports[0]
	expectCounts(t, []count{{"users", r.Users, 3}, {"groups", r.Groups, 2},
		{"second users", droppedAs(r, "users", "same id"), 1},
		{"second addresses", droppedAs(r, "values", "another account has the same address"), 1},
		{"bad addresses", droppedAs(r, "values", "not an email address"), 1},
		{"circles", droppedAs(r, "group members", "contains itself"), 1},
		{"missing groups", droppedAs(r, "group members", "the group is missing"), 1}})
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	v := x.Realm.ViewAs(realm.Caller{}, 0)
	if u := v.FindByEmail("a@b.example"); u == nil || u.Name != "First" {
		t.Errorf("the account of the address is %+v", u)
	}
	if u := v.Find(11); u == nil || u.Email != "user11@import.moved.invalid" {
		t.Errorf("the account without an address is %+v", u)
	}
}

// A zip with a path that leaves it, or that unpacks to far more than its size, is refused.
func TestHostileZip(t *testing.T) {
	for name, header := range map[string]*zip.FileHeader{
		"path": {Name: "../x.json"}, "backslash": {Name: `..\x.json`},
		"bomb": {Name: "x.json", UncompressedSize64: 1 << 40, CompressedSize64: 10, Method: zip.Store},
	} {
		file := filepath.Join(t.TempDir(), "x.zip")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		if _, err := z.CreateRaw(header); err != nil {
			t.Fatal(err)
		}
		z.Close()
		f.Close()
		if a, err := OpenArchive(file, t.TempDir()); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: error %v", name, err)
			if a != nil {
				a.Close()
			}
		}
	}
}
