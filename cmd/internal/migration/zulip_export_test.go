package migration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/codec"
)

// An imported organization that is exported and imported again has the same state.
func TestZulipOutAndIn(t *testing.T) {
	file := sample(t, "zulip/zulip-export-a.tar.gz")
	states := []*place{}
	for range 3 {
		p := openPlace(t, t.TempDir())
		defer p.store.Close()
		if _, err := Run(context.Background(), p.options("zulip", file), p.target); err != nil {
			t.Fatal(err)
		}
		states = append(states, p)
		file = filepath.Join(t.TempDir(), "out.tar.gz")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ExportZulip(p.disk, p.files, 1, nil, t.TempDir(), f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expectColumns(t, unpackJSON(t, file), unpackJSON(t, sample(t, "zulip/zulip-export-a.tar.gz")))
	rows := rowsOf(t, states[0])
	for i, p := range states[1:] {
		again := rowsOf(t, p)
		shown := 0
		for key, row := range rows {
			if again[key] != row {
				if shown++; shown < 12 {
					n := 0
					for n < min(len(row), len(again[key])) && row[n] == again[key][n] {
						n++
					}
					t.Errorf(
						"trip %d: row %s was\n…%s, is\n…%s",
						i+1,
						key,
						row[max(0, n-60):],
						again[key][max(0, n-60):],
					)
				}
			}
		}
		if len(again) != len(rows) {
			t.Errorf("trip %d: %d rows instead of %d", i+1, len(again), len(rows))
		}
	}
}

// expectColumns demands that the tables of an export have no columns that those of the reference server do not have:
// its importer refuses them.
func expectColumns(t *testing.T, files, reference map[string]map[string][]obj) {
	t.Helper()
	compared := 0
	for name, tables := range reference {
		for table, rows := range tables {
			known := map[string]bool{}
			for _, row := range rows {
				for column := range row {
					known[column] = true
				}
			}
			if len(rows) == 0 || len(files[name][table]) == 0 {
				continue
			}
			compared++
			for column := range files[name][table][0] {
				if !known[column] {
					t.Errorf("%s, %s: the reference server has no column %s", name, table, column)
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d tables were compared", compared)
	}
}

func rowsOf(t *testing.T, p *place) map[string]string {
	t.Helper()
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	x.Realm.EachRow(func(table uint16, key, row any) {
		switch v := row.(type) { // pictures are named by their original, which is not stored
		case *realm.User:
			v.AvatarFile = ""
		case *realm.Organization:
			v.IconFile, v.LogoFile, v.NightLogoFile = "", "", ""
			v.IconVersion, v.LogoVersion, v.NightLogoVersion = 0, 0, 0
		}
		value, err := codec.JSON(row)
		if err != nil {
			t.Fatal(err)
		}
		rows[fmt.Sprint(table, " ", key)] = string(value)
	})
	return rows
}
