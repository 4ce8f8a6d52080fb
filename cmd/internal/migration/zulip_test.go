package migration

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
)

const samples = "../../../../shared/imports/"

func sample(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(samples, name)
	if _, err := os.Stat(file); err != nil {
		t.Skip("the samples are not there")
	}
	return file
}

// place is a data directory for imports.
type place struct {
	dir    string
	store  *snapshot.Store
	disk   snapshot.Disk
	files  *files.Store
	target Target
}

func openPlace(t testing.TB, dir string) *place {
	t.Helper()
	store, err := snapshot.Open(dir, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(filepath.Join(dir, "uploads"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: dir, store: store, disk: snapshot.Disk{Store: store}, files: f}
	p.target = Target{Disk: p.disk, Files: f,
		Reserve: func(string, realm.ID) (realm.ID, error) { return 1, nil }}
	return p
}

// importAll imports an archive into a data directory of its own, which is closed when the test ends.
func importAll(t testing.TB, format, file string) (*place, []*Report) {
	t.Helper()
	p := openPlace(t, t.TempDir())
	t.Cleanup(func() { p.store.Close() })
	reports, err := Run(context.Background(), p.options(format, file), p.target)
	if err != nil {
		t.Fatal(err)
	}
	return p, reports
}

func (p *place) options(format, file string) Options {
	return Options{Format: format, File: file, Realm: "moved", Dir: p.dir, Secret: []byte("secret of the tests"),
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Site: func(name string) realm.Site {
			return realm.Site{URL: "http://" + name + ".test", Host: name + ".test", Name: name}
		}}
}

func (p *place) digest(t testing.TB) snapshot.Digest {
	t.Helper()
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.StateDigest(x.Realm)
}

// count is a number of a report and its right value.
type count struct {
	what      string
	got, want int
}

// expectCounts compares numbers of a report.
func expectCounts(t *testing.T, list []count) {
	t.Helper()
	for _, c := range list {
		if c.got != c.want {
			t.Errorf("%d %s, want %d", c.got, c.what, c.want)
		}
	}
}

// The sample of the reference server imports with the counts of its database.
func TestZulipSample(t *testing.T) {
	p, reports := importAll(t, "zulip", sample(t, "zulip/zulip-export-a.tar.gz"))
	r := reports[0]
	expectCounts(t, []count{
		{"users", r.Users, 23}, {"channels", r.Channels, 16}, {"subscriptions", r.Subscriptions, 160},
		{"messages", r.Messages, 3173}, {"direct messages", r.DirectMessages, 613 + 301},
		{"reactions", r.Reactions, 1000}, {"attachments", r.Attachments, 25}, {"edited", r.Edited, 544},
		{"starred", r.Starred, 361}, {"unread", r.Unread, 10382 - 19}, // 19 of a system bot are not in the export
		{"emoji", r.Emoji, 3}, {"groups", r.Groups, 5},
	})
	for _, d := range r.Dropped {
		if !strings.HasPrefix(d.Kind, "zerver_") {
			t.Errorf("dropped: %d %s: %s", d.Count, d.Kind, d.Reason)
		}
	}
	if x, err := snapshot.Recover(p.disk, 1); err != nil || x.Realm.LastMessageID() != 3173 {
		t.Errorf("the stored organization has messages up to %d, err %v", x.Realm.LastMessageID(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "imports", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// crashStep is how many writes later each run of TestResume crashes.
const crashStep = 6

var errCrash = errors.New("crash")

// An import that ends at any write continues to the same state as one without an interruption.
func TestResume(t *testing.T) {
	files := t.TempDir()
	rocketSample(t).write(t, files)
	t.Run("rocketchat with files", func(t *testing.T) { resume(t, "rocketchat", files) })
	chats := t.TempDir()
	teamsSample().write(t, chats)
	t.Run("teams with chats", func(t *testing.T) { resume(t, "teams", chats) })
	t.Run("zulip with files", func(t *testing.T) { resume(t, "zulip", sample(t, "zulip/zulip-export-a.tar.gz")) })
	for format, write := range generators {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, 10_000)
			resume(t, format, dir)
		})
	}
}

func resume(t *testing.T, format, archive string) {
	options := func(p *place) Options {
		o := p.options(format, archive)
		o.Team, o.Threads = "team", true
		return o
	}
	whole := openPlace(t, t.TempDir())
	defer whole.store.Close()
	writes := 0
	o := options(whole)
	o.writes = func() { writes++ }
	if _, err := Run(context.Background(), o, whole.target); err != nil {
		t.Fatal(err)
	}
	want := whole.digest(t)
	dir := t.TempDir()
	for at := 1; ; at += crashStep {
		p := openPlace(t, dir)
		o := options(p)
		n := 0
		o.writes = func() {
			if n++; n == at {
				panic(errCrash)
			}
		}
		_, err := Run(context.Background(), o, p.target)
		done := err == nil
		if done {
			if got := p.digest(t); got != want {
				t.Fatalf("after crashes the state is\n%s, without\n%s", got, want)
			}
		} else if !strings.Contains(err.Error(), errCrash.Error()) {
			t.Fatal(err)
		} else if _, last, _ := p.disk.Bounds(1); last != 0 {
			t.Fatal("a part of an organization is visible")
		}
		if err := p.store.Close(); err != nil {
			t.Fatal(err)
		}
		if done {
			t.Logf("%d writes without crashes, crashes at every %d", writes, crashStep)
			return
		}
	}
}
