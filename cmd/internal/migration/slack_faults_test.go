package migration

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/snapshot"
)

// A bad value, row or file of Slack costs itself. The report names its place.
func TestSlackFaults(t *testing.T) {
	place := "general/2020-01-02.json"
	for _, c := range []struct {
		name                string
		more                map[string]string
		messages            int
		kind, reason, where string
	}{
		{"time as number", map[string]string{place: `[{"user":"U1","text":"a","ts":1577923203.0001}]`}, 2, "", "", ""},
		{"text as number", map[string]string{place: `[{"user":"U1","text":12345,"ts":"1577923203"}]`}, 2, "", "", ""},
		{"thread as number", map[string]string{place: `[{"user":"U1","text":"a","ts":"1577923203.1",
			"thread_ts":1577923203.1}]`}, 2, "", "", ""},
		{"bad thread", map[string]string{place: `[{"user":"U1","text":"a","ts":"1577923203.1","thread_ts":"x"}]`}, 2,
			"values", "the time is impossible", place + ", index 0, thread_ts"},
		{"bad time", map[string]string{place: `[{"user":"U1","text":"a","ts":[1]}]`}, 1, "values", "not a text",
			place + ", index 0, ts"},
		{"bad row", map[string]string{place: `[5,null,{"user":"U1","text":"a","ts":"1577923203"}]`}, 2, "rows",
			"not an object", place + ", index 1"},
		{"sender as number", map[string]string{place: `[{"user":1,"text":"a","ts":"1577923203"}]`}, 2, "", "", ""},
		{"not a list", map[string]string{place: `{"a":1}`}, 1, "files", "not a list", place},
		{"cut off", map[string]string{place: `[{"user":"U1","text":"a","ts":"1577923203"},{"user`}, 2, "files",
			"damaged", place + ", byte 44"},
		{"empty file", map[string]string{place: ""}, 1, "files", "damaged", place + ", byte 0"},
		{"deep", map[string]string{place: strings.Repeat("[", 20_000)}, 1, "files", "damaged", place + ", byte 1"},
		{"no users", map[string]string{"users.json": "null"}, 1, "", "", ""},
		{"users are no list", map[string]string{"users.json": `{"a":1}`}, 1, "files", "not a list", "users.json"},
		{"two users", map[string]string{"users.json": `[{"id":"U1"},{"id":"U1"}]`}, 1, "users", "the id of another",
			"users.json, index 1"},
		{"bad address", map[string]string{"users.json": `[{"id":"U1","profile":{"email":"a b"}}]`}, 1, "values",
			"not an email address", `user U1, email "a b"`},
		{"two names", map[string]string{"groups.json": `[{"id":"G1","name":"general"}]`}, 1, "channels",
			"the same name", "groups.json, index 0"},
		{"lists are null", map[string]string{"groups.json": "null", "dms.json": "null", "mpims.json": "null"}, 1,
			"", "", ""},
		{"channel without a name", map[string]string{"channels.json": `[{"id":"C1","name":null,"members":["U1"]}]`}, 1,
			"channels", "the name of its folder", "general"},
		{"no channels", map[string]string{"channels.json": "[]"}, 1, "channels", "a private channel", "general"},
		{"other files", map[string]string{"general/deep/2020-01-02.json": "[]", "general/run.sh": "x"}, 1, "files",
			"not a part of an export", "general/run.sh"},
		{"canvas", map[string]string{"general/canvas_in_the_conversation.json": `[{"id":"F1"}]`}, 1, "canvases",
			"no counterpart", "general/canvas_in_the_conversation.json, index 0"},
		{"canvases", map[string]string{"canvases.json": `[{"id":"F1"},{"id":"F2"}]`}, 1, "canvases", "no counterpart",
			"canvases.json, index 0"},
		{"lists", map[string]string{"lists.json": `[{"id":"F3"}]`}, 1, "lists", "no counterpart",
			"lists.json, index 0"},
		{"bookmarks", map[string]string{"general/bookmarks.json": `[{"id":"B1"}]`}, 1, "bookmarks", "no counterpart",
			"general/bookmarks.json, index 0"},
		{"left out with reactions", map[string]string{place: `[{"subtype":"channel_join","user":"U1","text":"x",
			"ts":"1577923203","reactions":[{"name":"wave","users":["U1","U2"]}]}]`}, 1, "reactions", "left out", ""},
		{"file without address", map[string]string{place: `[{"user":"U1","text":"a","ts":"1577923203",
			"files":[{"id":"F1","name":"a.txt"}]}]`}, 2, "attachments", "no address", place + ", index 0"},
		{"group without members", map[string]string{"mpims.json": `[{"id":"G1","name":"mpdm-a"}]`,
			"mpdm-a/2020-01-02.json": `[{"user":"U1","text":"a","ts":"1577923203"}]`}, 2, "values",
			"the members are missing", "mpims.json, index 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPlace(t, t.TempDir())
			defer p.store.Close()
			o := p.options("slack", slackZip(t, c.more))
			o.Threads = true
			reports, err := Run(context.Background(), o, p.target)
			if err != nil {
				t.Fatal(err)
			}
			r := reports[0]
			if r.Messages != c.messages {
				t.Errorf("%d messages, want %d", r.Messages, c.messages)
			}
			if c.kind != "" && !slices.ContainsFunc(r.Dropped, func(d Count) bool {
				return d.Kind == c.kind && strings.Contains(d.Reason, c.reason) &&
					(c.where == "" || slices.Contains(d.Places, c.where))
			}) {
				t.Errorf("no %s with %q at %q", c.kind, c.reason, c.where)
			}
			if t.Failed() || c.kind == "" && len(r.Dropped) > 0 {
				t.Errorf("dropped: %+v", r.Dropped)
			}
		})
	}
}

// writePacked writes an export that another program has packed again: below a folder, with the files of operating
// systems, with entries for folders, with backslashes, byte order marks and line ends of Windows.
func writePacked(t *testing.T, folder, separator string, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	add := func(name, content string) {
		w, err := z.Create(strings.ReplaceAll(name, "/", separator))
		if err == nil && content != "" {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if folder != "" {
		add(folder, "")
	}
	for name, content := range files {
		add(folder+name, content)
	}
	for _, name := range []string{"__MACOSX/" + folder + "._users.json", folder + ".DS_Store",
		folder + "general/Thumbs.db", folder + "general/desktop.ini", folder + "._users.json"} {
		add(name, "\x00\x05\x16\x07")
	}
	if _, ok := files["general/2020-01-01.json"]; ok {
		add(folder+"general/._2020-01-01.json", "\x00\x05\x16\x07")
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "again.zip")
	if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An export that was packed again is found, and nothing is counted as left out. Its files are read in it.
func TestPackedAgain(t *testing.T) {
	const users, channels = `[{"id":"U1","name":"ann","profile":{"email":"ann@x.example"}}]`,
		`[{"id":"C1","name":"general","members":["U1"]}]`
	row := func(text string) string {
		return `[{"user":"U1","text":"` + text + `","ts":"1577836800.0001","files":[
			{"id":"F1","name":"pic.txt","title":"Picture","url_private":"https://files.slack.com/F1/pic.txt?t=x"},
			{"id":"F2","name":"note.txt","url_private":"attachments/F2-note.txt"},{"id":"F3","name":"own.txt"}]}]`
	}
	files := map[string]string{"users.json": "\ufeff" + users,
		"channels.json":           strings.ReplaceAll(channels, ",", ",\r\n"),
		"general/2020-01-01.json": row("hi"), "__uploads/F1/pic.txt": "first",
		"general/attachments/F2-note.txt": "second",
		"general/attachments/own.txt":     "third"}
	for name, pack := range map[string]func() string{
		"top":         func() string { return writePacked(t, "", "/", files) },
		"folder":      func() string { return writePacked(t, "My export/", "/", files) },
		"two folders": func() string { return writePacked(t, "a/b/", "/", files) },
		"dot":         func() string { return writePacked(t, "./", "/", files) },
		"backslashes": func() string { return writePacked(t, "My export/", `\`, files) },
		"tar.gz":      func() string { return packTar(t, files) },
		"zip in zip": func() string {
			inside, err := os.ReadFile(writePacked(t, "x/", "/", files))
			if err != nil {
				t.Fatal(err)
			}
			return writePacked(t, "", "/", map[string]string{"export.zip": string(inside)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, reports := importAll(t, "slack", pack())
			r := reports[0]
			expectCounts(t, []count{{"messages", r.Messages, 1}, {"attachments", r.Attachments, 3},
				{"things left out", len(r.Dropped), 0}})
			x, err := snapshot.Recover(p.disk, 1)
			if err != nil {
				t.Fatal(err)
			}
			for file, want := range map[string]string{"pic.txt": "first", "note.txt": "second", "own.txt": "third"} {
				checkRocketFile(t, p, x.Realm, file, want)
			}
			if t.Failed() {
				t.Logf("dropped: %+v", r.Dropped)
			}
		})
	}
}

// packTar packs an export as a tar.gz file below a folder.
func packTar(t *testing.T, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for name, content := range files {
		putTar(w, "My export/"+name, tar.TypeReg, content)
	}
	putTar(w, "My export/general/.DS_Store", tar.TypeReg, "x")
	putTar(w, "My export/._users.json", tar.TypeReg, "x")
	w.Close()
	z.Close()
	file := filepath.Join(t.TempDir(), "again.tar.gz")
	if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A line of Mattermost that cannot be read costs itself. It may have been the row of a channel or team, so the messages
// of one that no row names arrive in a private channel.
func TestMattermostDamagedLines(t *testing.T) {
	const head, team, channel = `{"type":"version","version":1}`, `{"type":"team","team":{"name":"a"}}`,
		`{"type":"channel","channel":{"team":"a","name":"c","type":"O"}}`
	const post = `{"type":"post","post":{"team":"a","channel":"c","user":"x","message":"m","create_at":1000}}`
	for name, lines := range map[string][]string{
		"sound":     {head, team, channel, post},
		"line ends": {"\ufeff" + head + "\r", team + "\r", "", channel, post + "\r"},
		"no JSON":   {head, team, "{", channel, post}, "cut off": {head, team, channel, post, post[:20]},
		"version":   {"null", team, channel, post},
		"version 2": {`{"type":"version","version":"2"}`, team, channel, post},
		"team":      {head, `{"type":"team","team":{"name":[]}}`, channel, post}, "channel": {head, team, "7", post},
		"channel's team": {head, team, strings.Replace(channel, `"a"`, "null", 1), post},
		"post's team":    {head, team, channel, strings.Replace(post, `"a"`, `"b"`, 1)},
		"bad post":       {head, team, channel, post, strings.Replace(post, "1000", `"x"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPlace(t, t.TempDir())
			defer p.store.Close()
			file := filepath.Join(t.TempDir(), "export.jsonl")
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			reports, err := Run(context.Background(), p.options("mattermost", file), p.target)
			if err != nil {
				t.Fatal(err)
			}
			if r := reports[0]; r.Messages != 1 || r.PerChannel["c"] != 1 {
				t.Errorf("%d messages: %v, dropped %+v", r.Messages, r.PerChannel, r.Dropped)
			}
		})
	}
}

// Of two files with the same name in a zip file, the later one is read, and the other one is counted. A damaged file
// is counted, too.
func TestZipEntries(t *testing.T) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, e := range [][2]string{{"users.json", `[{"id":"U1","name":"ann"}]`}, {"channels.json", "[]"},
		{"channels.json", `[{"id":"C1","name":"general","members":["U1"]}]`},
		{"users.json", `[{"id":"U1","name":"ann"}]`},
		{"general", ""}, {"general/2020-01-01.json", `[{"user":"U1","text":"one","ts":"1577836800"}]`},
		{"general/2020-01-02.json", `[{"user":"U1","text":"two","ts":"1577923200"}, "damaged"]`}} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: e[0], Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(w, e[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	file := filepath.Join(t.TempDir(), "export.zip")
	damaged := bytes.Replace(buf.Bytes(), []byte(`"damaged"`), []byte(`"DAMAGED"`), 1)
	if err := os.WriteFile(file, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	_, reports := importAll(t, "slack", file)
	r := reports[0]
	expectCounts(t, []count{{"messages", r.Messages, 2}, {"channels", r.Channels, 1},
		{"replaced files", droppedAs(r, "files", "another file with the same name"), 1},
		{"damaged files", droppedAs(r, "files", "damaged"), 1}})
	if t.Failed() {
		t.Logf("dropped: %+v", r.Dropped)
	}
}

// A private group that has the name of a channel keeps its messages private: both are in the same folder.
func TestSlackNameOfTwo(t *testing.T) {
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	if _, err := Run(context.Background(), p.options("slack", slackZip(t, map[string]string{
		"groups.json": `[{"id":"G1","name":"general"}]`})), p.target); err != nil {
		t.Fatal(err)
	}
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c := x.Realm.ViewAs(realm.Caller{}, 0).FindChannelByName("general"); c == nil || !c.Private || c.History {
		t.Errorf("the channel is %+v", c)
	}
}
