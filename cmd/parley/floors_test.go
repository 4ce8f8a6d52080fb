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

// allowedImports lists, for each package, which other packages of this module it may import. A package that is not
// listed has the row of its nearest parent. "x/*" allows every package below x. Permission for actors/realm includes
// actors/realm/ids. Every package may import actors/registry, which describes what it has for operators.
var allowedImports = map[string][]string{
	"actors/realm":           {"actors/realm/ids"},
	"actors/realm/ids":       {},
	"actors/realm/realmtest": {"actors/realm", "actors/realm/ids", "actors/calendar", "snapshot/codec"},
	"actors/calendar":        {"actors/realm"},
	"actors/admission":       {},
	"actors/registry":        {},
	"actors/queue":           {"actors/realm", "actors/realm/ids"},
	"actors/session":         {"actors/realm", "actors/realm/ids", "actors/queue"},
	"actors/presence":        {"actors/realm", "actors/realm/ids"},
	// The rooms: nothing but actors names both owner and delivery, and nobody names the cluster.
	"actors/mailbox": {},
	"actors/stream":  {"actors/realm"},
	"actors/owner":   {"actors/realm", "actors/stream", "actors/mailbox"},
	"actors/replica": {"actors/realm", "actors/stream", "actors/mailbox"},
	"actors/delivery": {"actors/realm", "actors/queue", "actors/session", "actors/admission", "actors/stream",
		"actors/mailbox"},
	"actors":        {"actors/*"}, // plain data only: faces and devices are interfaces that it declares
	"wire/form":     {},
	"wire/shape":    {},
	"wire/markdown": {"wire/markdown", "wire/markdown/*"},
	"wire": {"actors/realm", "actors/realm/ids", "actors/queue", "actors/session", "actors/presence", "wire/form",
		"wire/shape", "wire/markdown", "wire/markdown/*", "wire/contract", "wire/integrations"},
	"wire/integrations":       {},
	"wire/imports":            {},
	"wire/imports/zulip":      {"wire/imports"},
	"wire/imports/slack":      {"wire/imports"},
	"wire/imports/mattermost": {"wire/imports"},
	"wire/imports/rocketchat": {"wire/imports"},
	"wire/imports/teams":      {"wire/imports"},
	"wire/httpd": {"wire", "wire/*", "actors/realm", "actors/realm/ids", "actors/presence",
		"actors/admission"},
	"wire/httpd/park":   {"wire/httpd/park/*", "actors/admission"},
	"wire/dispatch":     {"wire", "actors/realm"},
	"wire/mcp":          {"wire", "wire/form", "actors/realm", "actors/admission"},
	"wire/assist":       {"wire", "actors/realm", "actors/admission"},
	"wire/gifs":         {"wire", "actors/realm", "actors/admission"},
	"wire/oauth":        {"actors/realm"},
	"wire/mail":         {"wire", "wire/dispatch", "actors/realm"},
	"wire/webhooks":     {"wire", "wire/dispatch", "actors/realm", "wire/markdown/preview"},
	"wire/push":         {"wire", "wire/dispatch", "actors/realm"},
	"wire/calls":        {"wire", "actors/realm", "actors/admission"},
	"wire/previews":     {"wire", "wire/dispatch", "wire/markdown", "actors/realm"},
	"wire/thumbnails":   {"wire", "actors/realm"},
	"wire/exports":      {"wire", "actors/realm", "actors/admission"},
	"wire/directories":  {"wire", "wire/signon", "actors/realm"},
	"wire/linkmarks":    {"wire", "actors/realm"},
	"wire/peer":         {},
	"wire/pictures":     {"actors/admission"},
	"wire/signon":       {"wire/markdown/preview", "actors/realm"},
	"wire/scim":         {"wire", "actors/realm"},
	"wire/web":          {},
	"wire/webapp":       {},
	"wire/contract":     {"wire", "wire/*"},
	"snapshot/codec":    {"actors/realm", "actors/presence"},
	"snapshot/search":   {"actors/realm", "actors/realm/ids"},
	"snapshot/meaning":  {"actors/realm", "actors/admission"},
	"snapshot/files":    {"actors/realm", "actors/admission"},
	"snapshot/files/s3": {"snapshot/files", "actors/admission"},
	// Background work on the store and the files. They are above package snapshot, which does not know them, and see
	// the organizations through small interfaces.
	"snapshot/files/sweep": {"snapshot/files", "actors/realm"},
	"snapshot/files/clamd": {"snapshot/files"},
	"snapshot/erase":       {"snapshot", "snapshot/search", "actors/realm"},
	"snapshot/diskspace":   {"snapshot"},
	// The replicated journal is made of stores, so it is above package snapshot, which does not know it.
	"snapshot/replicated": {"snapshot", "snapshot/codec", "actors/realm", "actors/presence"},
	"snapshot":            {"snapshot/*", "actors/realm", "actors/realm/ids", "actors/presence"},
	"bench":               {"bench/*", "wire", "wire/*"},
	"cmd":                 {"*"},
}

// libraryHomes lists the packages that may import a library. Tests may import any library.
var libraryHomes = map[string][]string{
	"github.com/asynkron/protoactor-go":   {"actors/mailbox"},
	"github.com/orcaman/concurrent-map":   {"actors/mailbox"}, // of protoactor
	"github.com/valyala/fastjson":         {"wire/mcp"},
	"github.com/valyala/fasthttp":         {"wire/httpd", "wire/httpd/park", "wire/httpd/park/pollbench"},
	"github.com/fasthttp/router":          {"wire/httpd"},
	"github.com/cockroachdb/pebble":       {"snapshot", "snapshot/replicated"}, // the latter: only its file system
	"github.com/hashicorp":                {"snapshot/replicated"},
	"github.com/vmihailenco/msgpack":      {"snapshot/codec"},
	"github.com/wneessen/go-mail":         {"wire/mail"},
	"github.com/sideshow/apns2":           {"wire/push"},
	"github.com/emersion/go-smtp":         {"wire/mail"},
	"github.com/emersion/go-msgauth":      {"wire/mail"},
	"github.com/emersion/go-imap":         {"wire/mail"},
	"github.com/RoaringBitmap/roaring/v2": {"actors/realm", "actors/realm/ids", "snapshot/search"},
	"github.com/blevesearch":              {"snapshot/search"},
	"github.com/minio/minio-go":           {"snapshot/files/s3"},
	"golang.org/x/crypto/acme":            {"cmd/internal/server", "cmd/internal/certificates"},
	"github.com/golang-jwt/jwt/v5":        {"wire", "wire/calls"},
	"golang.org/x/net/publicsuffix":       {"actors/realm", "wire/mail", "cmd/internal/doctor"},
	"golang.org/x/text":                   {"wire/web", "wire/imports/slack", "wire/mail", "wire/httpd"},
	"github.com/trustelem/zxcvbn":         {"wire/httpd"},
	"github.com/klauspost/compress":       {"wire/httpd"},
	"github.com/CycloneDX/cyclonedx-go":   {"cmd/internal/release"},
	"github.com/prometheus":               {"cmd/internal/metrics"},
	"github.com/spf13":                    {"cmd/parley"},
	"github.com/yuin/goldmark-emoji":      {"cmd/internal/migration"},
	"go.mongodb.org/mongo-driver":         {"wire/imports/rocketchat"},
	"github.com/BurntSushi/toml":          {"bench", "cmd/parley", "wire/integrations", "wire/signon"},
	"github.com/coreos/go-oidc":           {"wire/signon"},
	"github.com/pquerna/otp":              {"wire/signon"},
	"github.com/elimity-com/scim":         {"wire/scim"},
	"github.com/scim2/filter-parser":      {"wire/scim"},
	"github.com/go-webauthn/webauthn":     {"wire/signon"},
	"github.com/go-ldap/ldap":             {"wire/signon", "wire/signon/signontest"},
	"github.com/crewjam/saml":             {"wire/signon"},
	"github.com/russellhaering/goxmldsig": {"wire/signon"},
	"github.com/go-asn1-ber/asn1-ber":     {"wire/signon", "wire/signon/signontest"},
	"google.golang.org/grpc":              {"wire/peer"},
	"filippo.io/age":                      {"cmd/internal/offsite"},
}

// plainData packages start no goroutine, hold no mutex, read no clock, draw no random number and do no I/O.
var plainData = []string{"actors/realm", "actors/realm/ids", "actors/queue", "actors/session", "actors/presence",
	"actors/stream"}

// impure packages of the standard library must not be imported by plain data.
var impure = []string{"time", "sync", "os", "net", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog"}

// maxWiring limits the lines of Go, without tests, that make a server of its parts. The work of a part is beside it.
const maxWiring = 3000

// The import rules hold for every Go file of the module, and the wiring stays short.
func TestFloors(t *testing.T) {
	root, wiring := "../..", 0
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
		rel = filepath.ToSlash(rel)
		checkImports(t, rel, path)
		if strings.HasPrefix(rel, "cmd/internal/server/") && !strings.HasSuffix(rel, "_test.go") {
			text, err := os.ReadFile(path)
			wiring += strings.Count(string(text), "\n")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if wiring > maxWiring {
		t.Errorf("cmd/internal/server has %d lines, more than %d: move behaviour beside what it serves", wiring,
			maxWiring)
	}
}

// checkImports checks the imports of one file; rel is its path in the module.
func checkImports(t *testing.T, rel, path string) {
	pkg := rel[:max(0, strings.LastIndexByte(rel, '/'))]
	test := strings.HasSuffix(rel, "_test.go")
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", rel, err)
		return
	}
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		if own, ok := strings.CutPrefix(name, "parley/"); ok {
			if !test && !mayImport(allowedFor(pkg), own) {
				t.Errorf("%s imports %s; its package may import %v (table allowedImports in cmd/parley/floors_test.go)",
					rel, own, allowedFor(pkg))
			}
			continue
		}
		for lib, where := range libraryHomes {
			if !test && strings.HasPrefix(name, lib) && !slices.Contains(where, pkg) {
				t.Errorf("%s imports %s; only %v may import it (table libraryHomes in cmd/parley/floors_test.go)",
					rel, name, where)
			}
		}
		if !test && slices.Contains(plainData, pkg) && slices.Contains(impure, name) {
			t.Errorf("%s imports %s; plain data has no clock, lock, random number, log or I/O: pass it what it needs",
				rel, name)
		}
	}
}

// allowedFor returns the row of a package, or of its nearest parent that has one.
func allowedFor(pkg string) []string {
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

func mayImport(allowed []string, pkg string) bool {
	if pkg == "actors/registry" {
		return true
	}
	for _, a := range allowed {
		below, isTree := strings.CutSuffix(a, "*")
		switch {
		case a == "*", a == pkg, isTree && strings.HasPrefix(pkg, below):
			return true
		case a == "actors/realm" && pkg == "actors/realm/ids":
			return true
		}
	}
	return false
}

// The top of the repository has a fixed set of entries.
func TestTopLevel(t *testing.T) {
	fixed := []string{"cmd", "actors", "wire", "snapshot", "bench", "go.mod", "go.sum", "Makefile", "README.md",
		"LICENSE"}
	built := []string{"bin", "data"} // made by make, ignored by git
	list, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(fixed, e.Name()) && !slices.Contains(built, e.Name()) {
			t.Errorf("%s does not belong at the top of the repository", e.Name())
		}
	}
}
