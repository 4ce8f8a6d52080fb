package moving

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
)

const samples = "../../../../shared/imports/"

// place is a data directory for imports.
type place struct {
	dir    string
	store  *snapshot.Store
	target Target
}

func openPlace(t testing.TB, dir string) *place {
	t.Helper()
	store, err := snapshot.Open(dir, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(filepath.Join(dir, "uploads"))
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: dir, store: store}
	p.target = Target{Disk: snapshot.Disk{Store: store}, Files: f,
		Reserve: func(string, realm.ID) (realm.ID, error) { return 1, nil }}
	return p
}

func (p *place) options(format, file string) Options {
	return Options{Format: format, File: file, Realm: "moved", Dir: p.dir, Secret: []byte("secret of the tests"),
		Now:  func() time.Time { return time.Unix(1_800_000_000, 0) },
		Site: func(name string) realm.Site { return realm.Site{URL: "http://" + name + ".test", Host: name + ".test", Name: name} }}
}

func TestZulipSample(t *testing.T) {
	sample := samples + "zulip/zulip-export-a.tar.gz"
	if _, err := os.Stat(sample); err != nil {
		t.Skip("the samples are not there")
	}
	p := openPlace(t, t.TempDir())
	defer p.store.Close()
	reports, err := Run(context.Background(), p.options("zulip", sample), p.target)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.MarshalIndent(reports[0], "", " ")
	t.Logf("%s", data)
	x, err := snapshot.Recover(p.target.Disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(snapshot.StateDigest(x.Realm))
}
