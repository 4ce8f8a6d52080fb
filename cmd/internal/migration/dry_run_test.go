package migration

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A dry run reports the numbers of the real run, in every format.
func TestDryRunNumbers(t *testing.T) {
	rocket := t.TempDir()
	rocketSample(t).write(t, rocket)
	teams := t.TempDir()
	teamsSample().write(t, teams)
	for _, c := range []struct{ format, file, team string }{
		{"teams", teams, ""},
		{"slack", sample(t, "slack/synthetic.zip"), ""}, {"slack", sample(t, "slack/test_slack_importer.zip"), ""},
		{"mattermost", sample(t, "mattermost/export"), "gryffindor"},
		{"mattermost", sample(t, "mattermost/direct_channel/export.json"), ""},
		{"zulip", sample(t, "zulip/zulip-export-a.tar.gz"), ""}, {"rocketchat", rocket, ""},
	} {
		t.Run(c.format+" "+filepath.Base(c.file), func(t *testing.T) {
			var texts [2]string
			for i := range texts {
				p := openPlace(t, t.TempDir())
				o := p.options(c.format, c.file)
				o.Team, o.DryRun = c.team, i == 1
				reports, err := Run(context.Background(), o, p.target)
				if err != nil {
					t.Fatal(err)
				}
				reports[0].DryRun = false
				data, err := json.Marshal(reports[0])
				if err != nil {
					t.Fatal(err)
				}
				texts[i] = string(data)
				p.store.Close()
			}
			if texts[0] != texts[1] {
				t.Errorf("the run reports\n%s\nthe dry run\n%s", texts[0], texts[1])
			}
		})
	}
}

// An export of Zulip in which one of the numbered files is missing is refused with its name.
func TestMissingNumber(t *testing.T) {
	dir := t.TempDir()
	writeZulip(t, dir, 10)
	for _, c := range []struct{ file, want string }{{"messages-000003.json", "messages-000002.json is missing"},
		{"messages-000002.json", ""}} {
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := openPlace(t, t.TempDir())
		_, err := Run(context.Background(), p.options("zulip", dir), p.target)
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
			t.Errorf("with %s: error %v, want %q", c.file, err, c.want)
		}
		p.store.Close()
	}
}

// A compressed dump of Rocket.Chat, and one inside of a zip file, import like the dump itself. So does a compressed
// file of Mattermost.
func TestCompressedFiles(t *testing.T) {
	plain, packed := t.TempDir(), t.TempDir()
	rocketSample(t).write(t, plain)
	files := map[string]string{}
	found, err := filepath.Glob(filepath.Join(plain, "*.bson"))
	if err != nil || len(found) == 0 {
		t.Fatal(err, found)
	}
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files["dump/rocketchat/"+filepath.Base(name)] = string(data)
		compress(t, filepath.Join(packed, filepath.Base(name)+".gz"), string(data))
	}
	line := filepath.Join(t.TempDir(), "export.jsonl.gz")
	compress(t, line, `{"type":"version","version":1}
{"type":"team","team":{"name":"a"}}
{"type":"channel","channel":{"team":"a","name":"c","type":"O"}}
{"type":"post","post":{"team":"a","channel":"c","user":"x","message":"m","create_at":1000}}`)
	for _, c := range []struct {
		format, file          string
		messages, attachments int
	}{{"rocketchat", packed, 43, 4}, {"rocketchat", writePacked(t, "again/", "/", files), 43, 4},
		{"mattermost", line, 1, 0}} {
		p := openPlace(t, t.TempDir())
		reports, err := Run(context.Background(), p.options(c.format, c.file), p.target)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
		} else if r := reports[0]; r.Messages != c.messages || r.Attachments != c.attachments {
			t.Errorf("%s: %d messages, %d attachments; dropped %+v", c.file, r.Messages, r.Attachments, r.Dropped)
		}
		p.store.Close()
	}
}

func compress(t *testing.T, file, content string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	if _, err := io.WriteString(z, content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
