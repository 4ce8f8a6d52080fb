package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowedImports says, for each package of the house, which other packages of ours it may stand on. A package that is not
// listed goes by its nearest parent. Plain data stands on nothing that lives.
var allowedImports = map[string][]string{
	"actors/realm":           {"actors/realm/ids"},
	"actors/realm/ids":       {},
	"actors/realm/realmtest": {"actors/realm", "actors/realm/ids", "snapshot/codec"},
	"actors/queue":           {"actors/realm", "actors/realm/ids"},
	"actors/session":         {"actors/realm", "actors/realm/ids", "actors/queue"},
	"actors/presence":        {"actors/realm", "actors/realm/ids"},
	"actors":                 {"actors/*"}, // plain data only: faces and devices are interfaces that it declares
	"wire/form":              {},
	"wire/shape":             {},
	"wire/markdown":          {"wire/markdown", "wire/markdown/*"},
	"wire":                   {"actors/realm", "actors/realm/ids", "actors/queue", "actors/session", "actors/presence", "wire/form", "wire/shape", "wire/markdown", "wire/markdown/*", "wire/contract"},
	"wire/httpd":             {"wire", "wire/*", "actors/realm", "actors/realm/ids", "actors/presence"},
	"wire/httpd/park":        {"wire/httpd/park/*"},
	"wire/dispatch":          {"wire", "actors/realm"},
	"wire/mail":              {"wire", "wire/dispatch", "actors/realm"},
	"wire/webhooks":          {"wire", "wire/dispatch", "actors/realm", "wire/markdown/preview"},
	"wire/push":              {"wire", "wire/dispatch", "actors/realm"},
	"wire/previews":          {"wire", "wire/dispatch", "wire/markdown", "actors/realm"},
	"wire/thumbnails":        {"wire", "actors/realm"},
	"wire/contract":          {"wire", "wire/*"},
	"snapshot/codec":         {"actors/realm", "actors/presence"},
	"snapshot/search":        {"actors/realm", "actors/realm/ids"},
	"snapshot/files":         {"actors/realm"},
	"snapshot":               {"snapshot/*", "actors/realm", "actors/realm/ids", "actors/presence"},
	"bench":                  {"bench/*", "wire", "wire/*"},
	"cmd/parley":             {"*"},
}

// libraryHomes says where each library that shapes a floor may be used; tests may use what they test against.
var libraryHomes = map[string][]string{
	"github.com/asynkron/protoactor-go":   {"actors"},
	"github.com/valyala/fasthttp":         {"wire/httpd", "wire/httpd/park", "wire/httpd/park/pollbench"},
	"github.com/fasthttp/router":          {"wire/httpd"},
	"github.com/cockroachdb/pebble":       {"snapshot"},
	"github.com/vmihailenco/msgpack":      {"snapshot/codec"},
	"github.com/wneessen/go-mail":         {"wire/mail"},
	"github.com/sideshow/apns2":           {"wire/push"},
	"github.com/emersion/go-smtp":         {"wire/mail"},
	"github.com/RoaringBitmap/roaring/v2": {"actors/realm", "actors/realm/ids", "snapshot/search"},
	"github.com/blevesearch":              {"snapshot/search"},
	"github.com/golang-jwt/jwt/v5":        {"wire"},
	"golang.org/x/crypto/acme":            {"cmd/parley"},
	"github.com/klauspost/compress":       {"wire/httpd"},
}

// plainData packages start no goroutine, hold no mutex, read no clock, roll no dice, do no I/O.
var plainData = []string{"actors/realm", "actors/queue", "actors/session", "actors/presence"}

func TestFloors(t *testing.T) {
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		checkFile(t, filepath.ToSlash(rel), path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, rel, path string) {
	pkg := rel[:strings.LastIndexByte(rel, '/')+1]
	pkg = strings.TrimSuffix(pkg, "/")
	test := strings.HasSuffix(rel, "_test.go")
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", rel, err)
		return
	}
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		if own, ok := strings.CutPrefix(name, "parley/"); ok {
			if !test && !allowed(floorOf(pkg), own) {
				t.Errorf("%s imports %s: its floor stands only on %v (the table is in cmd/parley/floors_test.go)", rel, own, floorOf(pkg))
			}
			continue
		}
		for lib, where := range libraryHomes {
			if !test && strings.HasPrefix(name, lib) && !slices.Contains(where, pkg) {
				t.Errorf("%s imports %s: its home is %v", rel, name, where)
			}
		}
		if !test && slices.Contains(plainData, pkg) && slices.Contains([]string{"time", "sync", "os", "net", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog"}, name) {
			t.Errorf("%s imports %s: plain data has no clock, lock, dice, log or disk; it is given what it needs", rel, name)
		}
	}
}

func floorOf(pkg string) []string {
	for p := pkg; p != ""; {
		if f, ok := allowedImports[p]; ok {
			return f
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return nil
}

func allowed(floor []string, pkg string) bool {
	for _, f := range floor {
		if f == "*" || f == pkg || strings.HasSuffix(f, "/*") && strings.HasPrefix(pkg, strings.TrimSuffix(f, "*")) {
			return true
		}
	}
	return false
}

// The user fixed what stands at the top.
func TestTopLevel(t *testing.T) {
	fixed := []string{"cmd", "actors", "wire", "snapshot", "bench", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE"}
	built := []string{"bin", "data"} // made by make, ignored by git
	list, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(fixed, e.Name()) && !slices.Contains(built, e.Name()) {
			t.Errorf("%s does not belong at the top of the tree", e.Name())
		}
	}
}
