package diskspace

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/wire"
)

// The states follow the free space: files are refused first, then every change, and each state ends by itself, with
// some space more than it began with.
func TestDiskSpaceStates(t *testing.T) {
	fs := vfs.NewMem()
	store, err := snapshot.Open("data", snapshot.Options{FS: fs, Ballast: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	orgs, err := actors.Open(snapshot.Disk{Store: store}, actors.Options{
		Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, Log: slog.New(slog.DiscardHandler),
		Site: func(string) realm.Site { return realm.Site{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer orgs.Close(t.Context())
	id, err := orgs.CreateRealm("", "Test")
	if err != nil {
		t.Fatal(err)
	}
	users := 0
	change := func() error {
		users++
		email := fmt.Sprintf("user%d@example.org", users)
		create := realm.CreateUser{Email: email, Name: "Ann Other", Role: realm.Member}
		_, err := realm.Execute(orgs, id, realm.System, create)
		return err
	}
	d := New("data", Settings{DiskMinFree: 100, DiskMinFreePercent: 20, DiskReadOnly: 40}, wire.ErrNoSpace,
		slog.New(slog.DiscardHandler))
	free := int64(0)
	d.measure = func(string) (int64, int64, error) { return free << 20, 1000 << 20, nil }
	d.store = store
	var refusing Organizations = orgs
	d.organizations.Store(&refusing)
	for _, c := range []struct {
		free     int64 // MiB
		state    string
		readOnly bool
		file     bool // of 10 MiB is stored
	}{
		{900, "", false, true},
		{211, "", false, true},
		{209, "", false, false}, // 20 % are 200 MiB
		{150, "almost full: files are refused", false, false},
		{40, "almost full: files are refused", false, false},
		{39, "full: every change is refused", true, false},
		{49, "full: every change is refused", true, false}, // a quarter of 40 MiB more is needed
		{50, "almost full: files are refused", false, false},
		{900, "", false, true},
	} {
		free = c.free
		d.check()
		if d.State() != c.state || d.IsReadOnly() != c.readOnly {
			t.Errorf("%d MiB free: state %q, read-only %t", c.free, d.State(), d.IsReadOnly())
		}
		err := d.CheckSpace(10 << 20)
		if (err == nil) != c.file || err != nil && !errors.Is(err, wire.ErrNoSpace) {
			t.Errorf("%d MiB free: a file of 10 MiB: %v", c.free, err)
		}
		var refusal *realm.Refusal
		err = change()
		if no := errors.As(err, &refusal) && refusal.Kind == realm.NoSpace; no != c.readOnly || !no && err != nil {
			t.Errorf("%d MiB free: change: %v", c.free, err)
		}
		if store.MissingBallast() != 0 {
			t.Errorf("%d MiB free: the ballast is missing", c.free)
		}
	}
	// Without a ballast, its space is needed too.
	if err := fs.Remove("data/ballast"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		free     int64
		readOnly bool
	}{{39, true}, {51, true}, {52, false}} {
		free = c.free
		d.check()
		if d.IsReadOnly() != c.readOnly {
			t.Errorf("%d MiB free without a ballast: read-only %t", c.free, d.IsReadOnly())
		}
	}
}
