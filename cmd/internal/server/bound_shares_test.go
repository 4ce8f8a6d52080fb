package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/actors/admission"
)

// Each bound says how organizations share it. Of those that are halved, each of several organizations gets half, at
// least one, and leaves the other half free; the only organization of a server gets all of it.
func TestEveryBoundIsShared(t *testing.T) {
	d := startDemo(t)
	known := map[string]bool{}
	budgets := map[string]*admission.Shares{}
	limits := map[string]int64{}
	bounds := AllBounds()
	for i := range bounds {
		b := &bounds[i]
		known[b.Name] = true
		x, ok := boundSharing[b.Name]
		if kinds := countTrue(x.half != nil, x.rule != "", x.whole != ""); !ok || kinds != 1 {
			t.Errorf("%s: say in boundSharing how organizations share it: each of several has half, or why one may "+
				"have all", b.Name)
			continue
		}
		if x.rule != "" {
			expectTest(t, b.Name, x.rule)
		}
		if x.half == nil {
			continue
		}
		limit, err := strconv.ParseInt(DefaultLimit(b), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		budgets[b.Name], limits[b.Name] = x.half(d.Server), limit
	}
	for name := range boundSharing {
		if !known[name] {
			t.Errorf("boundSharing has %s, which is no bound", name)
		}
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
