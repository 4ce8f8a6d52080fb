package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/actors/realm"
)

// connecting are the functions and types of other packages with which a program opens connections, by the path of their
// package. "*": all of them, because such a package exists to connect.
var connecting = map[string][]string{
	"net": {"Dial", "DialTCP", "DialTimeout", "DialUDP", "DialUnix", "Dialer", "Resolver", "LookupAddr", "LookupCNAME",
		"LookupHost", "LookupIP", "LookupMX", "LookupTXT"},
	"crypto/tls": {"Dial", "DialWithDialer", "Dialer"},
	"net/http": {"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Transport",
		"NewRequest", "NewRequestWithContext"},
	"net/smtp": {"*"},
	"github.com/valyala/fasthttp": {"Client", "HostClient", "PipelineClient", "Do", "DoTimeout", "Get", "Post", "Dial",
		"DialTimeout"},
	"github.com/SherClockHolmes/webpush-go":     {"SendNotification", "SendNotificationWithContext"},
	"github.com/sideshow/apns2":                 {"NewClient", "NewTokenClient"},
	"github.com/wneessen/go-mail":               {"NewClient"},
	"github.com/emersion/go-imap/v2/imapclient": {"*"},
	"github.com/go-ldap/ldap/v3":                {"Dial", "DialURL", "NewConn"},
	"github.com/coreos/go-oidc/v3/oidc":         {"NewProvider", "NewRemoteKeySet"},
	"github.com/minio/minio-go/v7":              {"New"},
	"golang.org/x/crypto/acme":                  {"Client"},
	"golang.org/x/crypto/acme/autocert":         {"Manager"},
	"golang.org/x/oauth2":                       {"Config", "NewClient"},
	"golang.org/x/oauth2/google":                {"JWTConfigFromJSON"},
	"google.golang.org/grpc":                    {"NewClient", "Dial", "DialContext"},
}

// Reasons why a package connects without a place.
const (
	onlyHere  = "connects to this machine only"
	byCommand = "only operators start it, by a command"
)

// connectingPackages are the packages that open connections: with the places where the data of organizations goes, or
// the reason why none goes anywhere.
var connectingPackages = map[string]struct {
	places []realm.Place
	reason string
}{
	"wire/push":             {places: []realm.Place{realm.PlaceMobilePush, realm.PlaceBrowserPush}},
	"wire/markdown/preview": {places: []realm.Place{realm.PlaceLinkPreviews, realm.PlaceExternalPictures}},
	"wire/gifs":             {places: []realm.Place{realm.PlaceGIFs}},
	"wire/assist": {places: []realm.Place{realm.PlaceModels, realm.PlaceTranslations,
		realm.PlaceVectors}},
	"wire/mail": {places: []realm.Place{realm.PlaceMessageEmails, realm.PlaceMessageEmailContent,
		realm.PlaceAccountEmails, realm.PlaceIncomingEmail}},
	"wire/webhooks":             {places: []realm.Place{realm.PlaceOutgoingWebhooks}},
	"wire/calls":                {places: []realm.Place{realm.PlaceCallRooms}},
	"wire/signon":               {places: []realm.Place{realm.PlaceLoginProviders}},
	"snapshot/files/s3":         {places: []realm.Place{realm.PlaceFileBucket, realm.PlaceBackupBucket}},
	"snapshot/files/clamd":      {places: []realm.Place{realm.PlaceVirusScanner}},
	"wire/peer":                 {places: []realm.Place{realm.PlaceOtherNodes}},
	"cmd/internal/cluster":      {places: []realm.Place{realm.PlaceOtherNodes}},
	"wire/httpd":                {places: []realm.Place{realm.PlaceOtherNodes}},
	"cmd/internal/certificates": {places: []realm.Place{realm.PlaceCertificates}},
	"cmd/parley":                {reason: onlyHere},
	"cmd/internal/control":      {reason: onlyHere},
	"cmd/internal/doctor":       {reason: byCommand},
	"cmd/internal/migration":    {reason: byCommand},
}

// withoutConnections are places where the server connects to nothing: browsers do, or other servers connect to it.
var withoutConnections = []realm.Place{realm.PlaceProfilePictures, realm.PlaceJitsi, realm.PlaceUserDirectories}

// TestPlacesAreComplete holds that each package that opens connections is in the list above, and each place in it.
func TestPlacesAreComplete(t *testing.T) {
	found := map[string][]string{}
	for _, root := range []string{"actors", "cmd", "snapshot", "wire"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() && (e.Name() == "testdata" || e.Name() == "node_modules") {
				return err
			}
			dir, _ := filepath.Rel("../..", filepath.Dir(path))
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasSuffix(dir, "test") || strings.HasSuffix(dir, "bench") {
				return nil // helpers of tests
			}
			uses, err := connectionsIn(path)
			found[dir] = append(found[dir], uses...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	used := map[realm.Place]bool{}
	for _, p := range withoutConnections {
		used[p] = true
	}
	for dir, uses := range found {
		x, known := connectingPackages[dir]
		for _, p := range x.places {
			used[p] = true
		}
		if len(uses) > 0 && !known {
			t.Errorf("%s uses %s: add it to connectingPackages and its places to realm.Places, or a reason", dir, uses)
		}
		if len(uses) == 0 && known {
			t.Errorf("%s opens no connections any more: remove it from connectingPackages", dir)
		}
	}
	for _, p := range realm.Places {
		if !used[p.Place] {
			t.Errorf("no package connects to the place %s", p.Place)
		}
	}
}

// connectionsIn returns what a file uses of connecting.
func connectionsIn(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		return nil, err
	}
	names, found := map[string]string{}, map[string]bool{}
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if connecting[p] == nil {
			continue
		}
		parts := strings.Split(p, "/")
		name := parts[len(parts)-1]
		if strings.HasPrefix(name, "v") && len(parts) > 1 && len(name) == 2 {
			name = parts[len(parts)-2]
		}
		name = strings.TrimSuffix(strings.TrimPrefix(name, "go-"), "-go")
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		list := connecting[names[x.Name]]
		if slices.Contains(list, s.Sel.Name) || slices.Contains(list, "*") {
			found[names[x.Name]+"."+s.Sel.Name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(found)), nil
}
