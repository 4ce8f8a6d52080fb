package migration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/snapshot"
)

type mattermostTeam struct {
	Users        int      `json:"users"`
	Placeholders []string `json:"inactive_placeholder_users"`
	Owners       []string `json:"owners"`
	Guests       []string `json:"guests"`
	Channels     map[string]struct {
		Private bool     `json:"private"`
		Members []string `json:"members"`
	} `json:"channels"`
	Messages  int `json:"channel_messages"`
	OneToOne  int `json:"messages_1to1"`
	Group     int `json:"messages_group"`
	Reactions int `json:"reactions_by_known_users"`
}

// The samples of Mattermost import with the counts of expected.json, team by team. The pictures of its custom emoji are
// damaged, and are kept as they are.
func TestMattermostSamples(t *testing.T) {
	type sampleRow struct {
		Emoji       []string                  `json:"custom_emoji"`
		Attachments int                       `json:"attachments"`
		PerTeam     map[string]mattermostTeam `json:"per_team"`
	}
	var all struct {
		Export        sampleRow `json:"export"`
		DirectChannel sampleRow `json:"direct_channel"`
		Chunk         sampleRow `json:"chunk"`
	}
	expected(t, "mattermost", &all)
	for file, row := range map[string]sampleRow{"export": all.Export, "direct_channel/export.json": all.DirectChannel,
		"chunk": all.Chunk} {
		for team, want := range row.PerTeam {
			t.Run(team+" of "+filepath.Dir(file+"/"), func(t *testing.T) {
				p := openPlace(t, t.TempDir())
				defer p.store.Close()
				o := p.options("mattermost", sample(t, "mattermost/"+file))
				o.Team = team
				reports, err := Run(context.Background(), o, p.target)
				if err != nil {
					t.Fatal(err)
				}
				r := reports[0]
				members := 0
				for _, c := range want.Channels {
					members += len(c.Members)
				}
				expectCounts(t, []count{
					{"users", r.Users, want.Users + len(want.Placeholders)}, {"channels", r.Channels,
						len(want.Channels)},
					{"subscriptions", r.Subscriptions, members}, {"direct messages", r.DirectMessages,
						want.OneToOne + want.Group},
					{"channel messages", r.Messages - r.DirectMessages, want.Messages}, {"reactions",
						r.Reactions, want.Reactions},
					{"attachments", r.Attachments, row.Attachments}, {"emoji", r.Emoji, len(row.Emoji)},
				})
				checkMattermostTeam(t, p, &want)
				if t.Failed() {
					t.Logf("dropped: %v", r.Dropped)
				}
			})
		}
	}
}

// checkMattermostTeam checks the stored users and channels.
func checkMattermostTeam(t *testing.T, p *place, want *mattermostTeam) {
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	owners, guests, inactive := 0, 0, 0
	v := x.Realm.ViewAs(realm.Caller{}, 0)
	for id := realm.UserID(firstUserID); id < firstUserID+realm.UserID(want.Users+len(want.Placeholders)); id++ {
		switch u := v.Find(id); {
		case !u.Active:
			inactive++
		case u.Role == realm.Owner:
			owners++
		case u.Role == realm.Guest:
			guests++
		}
	}
	if owners != len(want.Owners) || guests != len(want.Guests) || inactive != len(want.Placeholders) {
		t.Errorf("%d owners, %d guests, %d inactive; want %d, %d, %d", owners, guests, inactive, len(want.Owners),
			len(want.Guests), len(want.Placeholders))
	}
}

// A file that leaves the export, or that is no export, is refused; missing things are counted.
func TestHostileMattermost(t *testing.T) {
	const head = `{"type":"version","version":1}
{"type":"team","team":{"name":"a","display_name":"A"}}
{"type":"channel","channel":{"team":"a","name":"c","type":"O"}}
`
	for _, c := range []struct{ lines, want string }{
		{"", "it is empty"}, {`{"type":"team","team":{"name":"a"}}`, "first line is the version"},
		{`{"type":"version","version":2}`, "first line is the version"}, {"{", "it is empty"},
		{`{"type":"version","version":1}`, "no team"},
		{head + `{"type":"post","post":{"team":"a","channel":"c","user":"x","attachments":[{"path":"../../secret"}]}}`,
			"leaves the export: refused"},
		{head + `{"type":"emoji","emoji":{"name":"e","image":"/etc/passwd"}}`, "leaves the export: refused"},
	} {
		p := openPlace(t, t.TempDir())
		file := filepath.Join(t.TempDir(), "export.jsonl")
		if err := os.WriteFile(file, []byte(c.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(context.Background(), p.options("mattermost", file), p.target); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.lines, err, c.want)
		}
		p.store.Close()
	}
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	file := filepath.Join(t.TempDir(), "export.jsonl")
	lines := head + `{"type":"other","x":1}
{"type":"version","version":1}
{"type":"user","user":{"username":"x","email":"a b","teams":[{"name":"a"}]}}
{"type":"post","post":{"team":"a","channel":"lost","user":"x","message":"m","create_at":1000}}
{"type":"post","post":{"team":"a","channel":"c","user":"x","message":"m","create_at":1000}}
{"type":"post","post":{"team":"a","channel":"c","user":"x","message":"m","create_at":1000}}
{"type":"direct_post","direct_post":{"channel_members":["x","y"],"user":"y","message":"m","create_at":3000}}
`
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	reports, err := Run(context.Background(), p.options("mattermost", file), p.target)
	if err != nil {
		t.Fatal(err)
	}
	r := reports[0]
	if r.Messages != 2 || r.Users != 2 || r.DirectMessages != 1 || r.Organization != "moved-a" {
		t.Errorf("report %+v", r)
	}
	for _, want := range []string{"unknown type", "channel is missing", "same id", "a second version",
		"not an email address"} {
		if !slices.ContainsFunc(r.Dropped, func(c Count) bool {
			return strings.Contains(c.Reason,
				want) && c.Count == 1
		}) {
			t.Errorf("no %q in %v", want, r.Dropped)
		}
	}
}
