package directories

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
)

// fakeOrganizations has organizations of which some are asleep. A view loads them.
type fakeOrganizations struct {
	wire.Server
	asleep map[realm.ID]bool
	viewed map[realm.ID]bool
}

func (f *fakeOrganizations) Realms() map[string]realm.ID {
	return map[string]realm.ID{"awake": 1, "asleep": 2, "elsewhere": 3}
}

func (f *fakeOrganizations) IsAsleep(id realm.ID) bool { return f.asleep[id] }

func (f *fakeOrganizations) View(id realm.ID, _ realm.Caller, _ func(realm.View) (any, error)) (any, error) {
	f.viewed[id] = true
	return []realm.KnownPerson{{User: 10, Active: true}}, nil
}

// People of an organization that is asleep are compared as well: otherwise those that have left keep their keys. Nodes
// leave the organizations of other owners out.
func TestOrganizationsAsleepAreCompared(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "auth.toml")
	text := "[[provider]]\nname = \"staff\"\ntype = \"ldap\"\nurls = [\"ldap://127.0.0.1:1\"]\n" +
		"allow_insecure = true\nbase_dn = \"dc=example\"\nbind_dn = \"cn=p\"\nbind_password_file = \"secret\"\n"
	for name, content := range map[string]string{file: text, filepath.Join(dir, "secret"): "x\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	providers, err := signon.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	orgs := &fakeOrganizations{asleep: map[realm.ID]bool{2: true}, viewed: map[realm.ID]bool{}}
	s := &Syncer{orgs: orgs, signOn: providers, log: slog.New(slog.DiscardHandler), owned: map[realm.ID]bool{1: true}}
	c := comparison{Syncer: s, entry: providers.All()[0]}
	if got := c.accounts(); len(got) != 2 {
		t.Errorf("the accounts are %+v", got)
	}
	if got := slices.Sorted(maps.Keys(orgs.viewed)); !slices.Equal(got, []realm.ID{1, 2}) {
		t.Errorf("the organizations %v were asked", got)
	}
}
