package migration

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// expected reads the counts of the samples of a format.
func expected(t testing.TB, format string, to any) {
	t.Helper()
	data, err := os.ReadFile(sample(t, format+"/expected.json"))
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// droppedAs returns how many things of a kind were dropped with a reason.
func droppedAs(r *Report, kind, reason string) (n int) {
	for _, d := range r.Dropped {
		if d.Kind == kind && strings.Contains(d.Reason, reason) {
			n += d.Count
		}
	}
	return n
}

func total(m map[string]int) (n int) {
	for _, c := range m {
		n += c
	}
	return n
}

// The samples of Slack import with the counts of expected.json.
func TestSlackSamples(t *testing.T) {
	var all map[string]struct {
		Channels     int            `json:"public_channels"`
		Private      int            `json:"private_channels"`
		Memberships  int            `json:"channel_memberships"`
		Raw          int            `json:"raw_messages"`
		Messages     int            `json:"imported_messages"`
		PerChannel   map[string]int `json:"imported_by_channel"`
		Senders      int            `json:"distinct_senders"`
		Reactions    int            `json:"imported_reactions_skin_tones_merged_known_users"`
		Threads      int            `json:"threads"`
		ThreadShares int            `json:"thread_messages"`
		Files        int            `json:"of_these_hosted_at_files_slack_com"`
		Senderless   int            `json:"without_sender"`
		Tombstones   int            `json:"tombstone_files"`
	}
	expected(t, "slack", &all)
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			p := openPlace(t, t.TempDir())
			defer p.store.Close()
			o := p.options("slack", sample(t, "slack/"+name))
			o.Threads = true
			reports, err := Run(context.Background(), o, p.target)
			if err != nil {
				t.Fatal(err)
			}
			r := reports[0]
			expectCounts(t, []count{
				{"channels", r.Channels, want.Channels + want.Private}, {"subscriptions", r.Subscriptions,
					want.Memberships},
				{"messages", r.Messages, want.Messages}, {"senders", len(r.PerAuthor), want.Senders},
				{"all messages", r.Messages + droppedAs(r, "messages", ""), want.Raw},
				{"reactions", r.Reactions + droppedAs(r, "reactions", "unknown emoji"), want.Reactions},
				{"threads", len(r.PerThread), want.Threads}, {"messages of threads", total(r.PerThread),
					want.ThreadShares},
				{"files without content", droppedAs(r, "attachments", "not in the archive"), want.Files},
				{"messages without sender", droppedAs(r, "messages", "without a sender"), want.Senderless},
				{"deleted files", droppedAs(r, "attachments", "deleted"), want.Tombstones},
			})
			direct := 0
			for channel, n := range want.PerChannel {
				if strings.HasPrefix(channel, "D0") || strings.HasPrefix(channel, "mpdm-") {
					direct += n
				} else if r.PerChannel[channel] != n {
					t.Errorf("%d messages in %s, want %d", r.PerChannel[channel], channel, n)
				}
			}
			if r.DirectMessages != direct {
				t.Errorf("%d direct messages, want %d", r.DirectMessages, direct)
			}
			if t.Failed() {
				t.Logf("dropped: %v", r.Dropped)
			}
		})
	}
}

// slackZip writes an export with more files; those replace the ones that it has.
func slackZip(t *testing.T, more map[string]string) string {
	t.Helper()
	all := map[string]string{"users.json": `[{"id":"U1","name":"ann","profile":{"email":"ann@x.example"}}]`,
		"channels.json":           `[{"id":"C1","name":"general","members":["U1"]}]`,
		"general/2020-01-01.json": `[{"user":"U1","text":"hi","ts":"1577836800.000100"}]`}
	for name, content := range more {
		all[name] = content
	}
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, content := range all {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	file := filepath.Join(t.TempDir(), "export.zip")
	if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An archive that Slack does not write is refused and leaves nothing.
func TestHostileSlackArchives(t *testing.T) {
	for _, c := range []struct {
		want string
		more map[string]string
	}{
		{"not a Slack export", map[string]string{"users.json": "x", "channels.json": `{"a":1}`}},
		{"refused", map[string]string{"general/../../x.json": "[]"}},
		{"refused", map[string]string{"/etc/x.json": "[]"}},
	} {
		p := openPlace(t, t.TempDir())
		_, err := Run(context.Background(), p.options("slack", slackZip(t, c.more)), p.target)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.more, err, c.want)
		}
		if left, _ := filepath.Glob(filepath.Join(p.dir, "imports", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		p.store.Close()
	}
}

// Missing references of Slack are dropped with their counts, or become placeholders.
func TestSlackReferences(t *testing.T) {
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	o := p.options("slack", slackZip(t, map[string]string{
		"general/2020-01-02.json": `[{"user":"U9","text":"x","ts":"1577923200.000100"},{"user":"U1","ts":"1577923201.1"},
			{"user":"U1","text":"late","ts":"99999999999999.1"},{"user":"U1","text":"again","ts":"1577836800.000100"},
			{"user":"U1","text":"f","ts":"1577923202.1","files":[{"id":"F1","name":"a.txt","title":"A",
				"url_private":"https://files.slack.com/x/a.txt?t=xoxe-1"}]}]`,
		"lost/2020-01-01.json": `[]`}))
	o.Files = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.Files, "F1"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	reports, err := Run(context.Background(), o, p.target)
	if err != nil {
		t.Fatal(err)
	}
	r := reports[0]
	if r.Messages != 3 || r.Users != 2 || r.Attachments != 1 {
		t.Errorf("%d messages, %d users, %d attachments", r.Messages, r.Users, r.Attachments)
	}
	for _, want := range [][2]string{{"messages", "without a text"}, {"messages", "time is impossible"},
		{"messages", "same id"}, {"files", "conversation is not in the export"}} {
		if droppedAs(r, want[0], want[1]) != 1 {
			t.Errorf("no %v in %v", want, r.Dropped)
		}
	}
}

// round is a fake transport.
type round func(*http.Request) (*http.Response, error)

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Files are fetched only from Slack's host, and a page instead of a file is a missing file.
func TestFetch(t *testing.T) {
	asked := 0
	fetch := fetcher(round(func(r *http.Request) (*http.Response, error) {
		asked++
		if r.Header.Get("Authorization") != "Bearer token" || r.URL.Host != fetchHosts["slack"] {
			t.Errorf("asked %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		a := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("content"))}
		switch r.URL.Path {
		case "/page":
			a.Header.Set("Content-Type", "text/html; charset=utf-8")
		case "/gone":
			a.StatusCode = 404
		case "/away":
			a.StatusCode = 302
			a.Header.Set("Location", "https://other.example/file")
		}
		return a, nil
	}), fetchHosts["slack"])
	for _, address := range []string{"http://files.slack.com/a", "https://files.slack.com.evil.example/a",
		"https://127.0.0.1/a", "file:///etc/passwd", "https://files.slack.com/page", "https://files.slack.com/gone",
		"https://files.slack.com/away"} {
		if _, err := fetch(address, "token"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v, want that the file does not exist", address, err)
		}
	}
	if asked != 3 {
		t.Errorf("%d requests, want 3", asked)
	}
	f, err := fetch("https://files.slack.com/a", "token")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != "content" {
		t.Errorf("content %q, err %v", data, err)
	}
	f.Close()
}

// The lists of channels and conversations in the samples import without messages: memberships, the archived channel,
// notes to oneself.
func TestSlackLists(t *testing.T) {
	more := map[string]string{"users.json": `[{"id":"U061A1R2R","name":"a","profile":{"email":"a@x.example"}},
		{"id":"U061A5N1G","name":"b","profile":{"email":"b@x.example"}},
		{"id":"U064KUGRJ","name":"c","profile":{"email":"c@x.example"}}]`,
		"DRS3PSLDK/2020-01-01.json":                   `[{"user":"U064KUGRJ","text":"own","ts":"1577836800.000100"}]`,
		"DJ47BL849/2020-01-01.json":                   `[{"user":"U061A1R2R","text":"to b","ts":"1577836801.000100"}]`,
		"mpdm-user9--user2--user10-1/2020-01-01.json": `[{"user":"U061A1R2R","text":"all","ts":"1577836802.000100"}]`,
		"general/2020-01-01.json":                     `[]`}
	for _, name := range []string{"channels.json", "dms.json", "mpims.json"} {
		data, err := os.ReadFile(sample(t, "slack/lists/"+name))
		if err != nil {
			t.Fatal(err)
		}
		more[name] = string(data)
	}
	_, reports := importAll(t, "slack", slackZip(t, more))
	if r := reports[0]; r.Channels != 4 || r.Subscriptions != 8 || r.DirectMessages != 3 || r.Messages != 3 {
		t.Errorf(
			"%d channels, %d subscriptions, %d messages, %d of them direct; dropped %v",
			r.Channels,
			r.Subscriptions,
			r.Messages,
			r.DirectMessages,
			r.Dropped,
		)
	}
}

// An archive that unpacks to more than ten times its size, and to more than a gibibyte, is no archive of Slack. The
// names of directories are UTF-8, though the archive does not say so.
func TestSlackArchiveSizesAndNames(t *testing.T) {
	write := func(claimed uint64) string {
		file := filepath.Join(t.TempDir(), "export.zip")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z := zip.NewWriter(f)
		for name, content := range map[string]string{
			"users.json":            `[{"id":"U1","name":"ann","profile":{"email":"ann@x.example"}}]`,
			"channels.json":         `[{"id":"C1","name":"チャネル","members":["U1"]}]`,
			"チャネル/2020-01-01.json":  `[{"user":"U1","text":"hi","ts":"1577836800.000100"}]`,
			"integration_logs.json": "[" + strings.Repeat(" ", 20<<20) + "]"} {
			w, err := z.CreateHeader(&zip.FileHeader{Name: name, NonUTF8: true, Method: zip.Store})
			if err == nil {
				_, err = w.Write([]byte(content))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w, err := z.CreateRaw(&zip.FileHeader{Name: "canvases.json", Method: zip.Deflate, CompressedSize64: 4,
			UncompressedSize64: claimed})
		if err == nil {
			_, err = w.Write([]byte("none"))
		}
		if err := errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		return file
	}
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	if _, err := Run(context.Background(), p.options("slack", write(1200<<20)), p.target); err == nil ||
		!strings.Contains(err.Error(), "10 times its size") {
		t.Errorf("sixty times its size: %v", err)
	}
	reports, err := Run(context.Background(), p.options("slack", write(100<<20)), p.target)
	if err != nil || reports[0].PerChannel["チャネル"] != 1 {
		t.Errorf("five times its size: %v, %+v", err, reports)
	}
}
