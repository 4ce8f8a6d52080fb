package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/actors/registry"
	"parley/cmd/internal/metrics"
)

// Each bound says how organizations share it. Of those that are halved, each of several organizations gets half, at
// least one, and leaves the other half free; the only organization of a server gets all of it.
func TestEveryBoundIsShared(t *testing.T) {
	d := startDemo(t)
	budgets := map[string]registry.Shares{}
	limits := map[string]int64{}
	bounds := metrics.Read(d.parts()).Bounds()
	for i := range bounds {
		b := &bounds[i]
		kinds := countTrue(b.Shares != nil, b.Halved != "", b.Whole != "")
		if kinds != 1 && (kinds != 0 || b.Used != nil) {
			t.Errorf("%s: say in its row how organizations share it: each of several has half, or why one may have all",
				b.Name)
			continue
		}
		if b.Halved != "" {
			expectTest(t, b.Name, b.Halved)
		}
		if b.Shares == nil {
			continue
		}
		budgets[b.Name], limits[b.Name] = b.Shares(), b.Limit()
	}
	for name, s := range budgets {
		if !s.Take("a", 1) || !s.Take("a", limits[name]-1) {
			t.Errorf("%s: the only organization does not get all %d", name, limits[name])
		}
		s.Give("a", limits[name])
	}
	if _, err := d.orgs.CreateRealm("second", "Second"); err != nil {
		t.Fatal(err)
	}
	for name, s := range budgets {
		half := (limits[name] + 1) / 2
		for _, organization := range []string{"a", "b"} {
			if !s.Take(organization, 1) || half > 1 && !s.Take(organization, half-1) || s.Take(organization, 1) {
				t.Errorf("%s: organization %s has %d of %d, want %d", name, organization, s.Used(organization),
					limits[name], half)
			}
		}
	}
}

func countTrue(list ...bool) (n int) {
	for _, x := range list {
		if x {
			n++
		}
	}
	return n
}

// expectTest expects that a test exists. where is its package and its name.
func expectTest(t *testing.T, bound, where string) {
	t.Helper()
	dir, name, _ := strings.Cut(where, " ")
	list, err := filepath.Glob(filepath.Join("../../..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range list {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return
		}
	}
	t.Errorf("%s: there is no test %s", bound, where)
}
