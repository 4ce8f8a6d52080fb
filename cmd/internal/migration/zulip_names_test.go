package migration

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/snapshot"
)

const importedDay = 1_790_000_000 // when most messages of the archive were sent, Unix seconds

// writeNames writes an export with a deleted user, a renamed one and a deactivated one, with messages that mention
// them, that were moved and edited, and with a retention rule.
func writeNames(t *testing.T, dir string) {
	t.Helper()
	user := func(id int, name string, more obj) obj {
		u := obj{"id": id, "delivery_email": "u" + name[:1] + "@example.com", "email": "u" + name[:1] + "@example.com",
			"full_name": name, "is_active": true, "role": 400, "date_joined": 1.6e9}
		maps.Copy(u, more)
		return u
	}
	mention := func(id, name string) string {
		return `<span class="user-mention" data-user-id="` + id + `">@` + name + `</span>`
	}
	message := func(id int, text, html string, more obj) obj {
		m := obj{"id": id, "sender": 11, "recipient": 101, "subject": "tea", "content": text,
			"rendered_content": "<p>" + html + "</p>", "date_sent": importedDay + id, "sending_client": 1,
			"last_edit_time": nil, "edit_history": nil}
		maps.Copy(m, more)
		return m
	}
	rows := obj{
		"zerver_realm":  []obj{{"id": 1, "name": "Names", "date_created": 1.6e9, "message_retention_days": -1}},
		"zerver_client": []obj{{"id": 1, "name": "website"}},
		"zerver_userprofile": []obj{user(11, "Ann", nil), user(12, "Boris", nil),
			user(14, "Zed", obj{"is_active": false})},
		"zerver_userprofile_mirrordummy": []obj{user(13, "Deleted user 13", obj{"is_active": false,
			"is_mirror_dummy": true})},
		"zerver_stream": []obj{{"id": 1, "name": "short", "date_created": 1.6e9, "message_retention_days": 30},
			{"id": 2, "name": "long", "date_created": 1.6e9, "message_retention_days": nil}},
		"zerver_recipient": []obj{{"id": 101, "type": 2, "type_id": 1}, {"id": 102, "type": 2, "type_id": 2}},
		"zerver_subscription": []obj{{"id": 1, "user_profile": 11, "recipient": 101, "active": true},
			{"id": 2, "user_profile": 12, "recipient": 101, "active": false},
			{"id": 3, "user_profile": 12, "recipient": 102, "active": true}},
	}
	gone, bob := mention("13", "Gwen &amp; Co"), mention("12", "Bob")
	messages := []obj{
		message(1, "@**Gwen & Co** hi", gone+" hi", nil),
		message(2, "@**Gwen & Co|13** hi", gone+" hi", nil),
		message(3, "@_**Gwen & Co|13** hi",
			strings.NewReplacer("@", "", `mention"`, `mention silent"`).Replace(gone)+" hi", nil),
		message(4, "@**Bob** and @**bob** and @**Bob|12**", bob+" and "+bob+" and "+bob, nil),
		message(5, "@**Zed** and @**Nobody**", mention("14", "Zed")+" and @<strong>Nobody</strong>", nil),
		message(6, "`@**Gwen & Co**` @**Gwen|13**", "<code>@**Gwen &amp; Co**</code> @<strong>Gwen|13</strong>", nil),
		// moved, marked as resolved, edited, and edited before there was a history
		message(7, "x", "x", obj{"recipient": 102, "last_edit_time": importedDay + 100.5,
			"edit_history": `[{"user_id":11,"timestamp":1790000100,"prev_stream":1,"stream":2}]`}),
		message(8, "x", "x", obj{"subject": "✔ tea", "last_edit_time": importedDay + 200.5,
			"edit_history": `[{"user_id":11,"timestamp":1790000200,"prev_topic":"tea","topic":"✔ tea"}]`}),
		message(9, "x", "x", obj{"last_edit_time": importedDay + 300.5, "edit_history": `[{"user_id":11,` +
			`"timestamp":1790000300,"prev_content":"y","prev_rendered_content":"<p>y</p>"}]`}),
		message(10, "x", "x", obj{"last_edit_time": importedDay + 400.5}),
		message(11, "x", "x", obj{"date_sent": 1_799_999_000}), // not yet due
	}
	for name, content := range map[string]obj{"realm.json": rows,
		"messages-000001.json": {"zerver_message": messages, "zerver_usermessage": []obj{}}} {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormerNames imports mentions of users who have other names now: they remain mentions, as the source shows them.
// The report says that a retention rule deletes messages, and counts the active subscriptions.
func TestFormerNames(t *testing.T) {
	dir := t.TempDir()
	writeNames(t, dir)
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	dry := p.options("zulip", dir)
	dry.DryRun = true
	for _, o := range []Options{dry, p.options("zulip", dir)} {
		reports, err := Run(context.Background(), o, p.target)
		if err != nil {
			t.Fatal(err)
		}
		r := reports[0]
		if len(r.Rendering) > 0 || r.Compared != 11 || r.Subscriptions != 3 || r.Subscribed != 2 {
			t.Errorf("of %d texts differ: %v; %d of %d subscriptions are active", r.Compared, r.Rendering,
				r.Subscribed, r.Subscriptions)
		}
		want := []Retention{{Channel: "short", Days: 30, Messages: 10, Due: 9}}
		if !reflect.DeepEqual(r.Retention, want) {
			t.Errorf("retention: %+v, want %+v", r.Retention, want)
		}
	}
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	if u := x.Realm.Find(13); u == nil || !u.Deleted || u.Active || u.Name != "Deleted user 13" {
		t.Errorf("the deleted user is %+v", u)
	}
}

// TestExportKeepsRows compares rows of an export with those that were imported: the time of the last edit, whatever it
// changed, and the rows of deleted users.
func TestExportKeepsRows(t *testing.T) {
	dir := t.TempDir()
	writeNames(t, dir)
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	if _, err := Run(context.Background(), p.options("zulip", dir), p.target); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "out.tar.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ExportZulip(p.disk, p.files, 1, nil, t.TempDir(), out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	files := unpackJSON(t, file)
	edited := map[float64]any{}
	for _, m := range files["messages-000001.json"]["zerver_message"] {
		if m["last_edit_time"] != nil {
			edited[m["date_sent"].(float64)-importedDay] = m["last_edit_time"]
		}
	}
	want := map[float64]any{7: importedDay + 100.0, 8: importedDay + 200.0, 9: importedDay + 300.0,
		10: importedDay + 400.0}
	if !reflect.DeepEqual(edited, want) {
		t.Errorf("last edits: %v, want %v", edited, want)
	}
	for _, table := range []string{"zerver_userprofile", "zerver_userprofile_mirrordummy"} {
		for _, u := range files["realm.json"][table] {
			if dummy := u["is_mirror_dummy"].(bool); dummy != strings.HasSuffix(table, "dummy") || dummy &&
				(u["is_active"] != false || u["full_name"] != "Deleted user 13" || u["email"] != "uD@example.com") {
				t.Errorf("%s has %v", table, u)
			}
		}
	}
}

// unpackJSON returns the tables of the files of an export, by the names of the files.
func unpackJSON(t *testing.T, file string) map[string]map[string][]obj {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string][]obj{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		name := path.Base(h.Name)
		tables := map[string][]obj{}
		d := json.NewDecoder(r)
		if name == "realm.json" || strings.HasPrefix(name, "messages-") {
			if err := d.Decode(&tables); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all[name] = tables
		}
	}
}
