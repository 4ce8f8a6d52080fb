package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/wire"
	"parley/wire/peer"
	"parley/wire/pictures"
)

// clusterOfTwo is a core with a demo organization and an edge, both in this process.
type clusterOfTwo struct {
	*demoServer // the core
	edge        *Server
	edgeData    string
}

// freePort returns an address of this machine that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

const testJWTKey = "a-key-of-an-organization-for-its-login-tokens"

func startCoreAndEdge(t *testing.T, change ...func(*Settings)) *clusterOfTwo {
	t.Helper()
	c := &clusterOfTwo{}
	c.demoServer = startDemo(t, append(change, func(s *Settings) {
		if err := cluster.Init(s.Data, "a", freePort(t)); err != nil {
			t.Fatal(err)
		}
	})...)
	token, err := c.node.NewToken(peer.Edge, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSettings()
	s.Data, s.Listen, s.DebugListen = filepath.Join(t.TempDir(), "b"), "127.0.0.1:0", "127.0.0.1:0"
	s.Node, s.Join = "b", token
	if err := s.Check(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	c.edgeData = s.Data
	if c.edge, err = Start(Config{Settings: s, Log: slog.New(slog.DiscardHandler), Output: io.Discard}); err != nil {
		t.Fatal(err)
	}
	return c
}

// stolenToken is a kind of token that the server makes with a key, and accepts later.
type stolenToken struct {
	name string
	// made and checked are the functions of package wire that make and check such tokens.
	made, checked string
	// forge makes one with a key, and reports whether the server at an address accepts it.
	forge func(key []byte, at string) bool
}

// forgery makes tokens in the name of others.
type forgery struct {
	t       *testing.T
	core    *demoServer
	id      realm.ID
	ann     realm.UserID
	session realm.OpenedBrowserSession // of Ann's browser, which an attacker sends a page
	upload  string                     // path of a file that Ann has uploaded
	invite  int64                      // id of an invitation link
	until   time.Time
}

// get reports whether the server answers 200 to a page or file.
func (f *forgery) get(at, path string) bool {
	f.t.Helper()
	return f.status("GET", at+path, nil, nil) == http.StatusOK
}

func (f *forgery) status(method, target string, form url.Values, header http.Header) int {
	f.t.Helper()
	r, err := http.NewRequest(method, target, strings.NewReader(form.Encode()))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := (&http.Client{Timeout: eventTimeout}).Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return answer.StatusCode
}

// mail reports whether the server accepts the link of an email that is signed with a key.
func (f *forgery) mail(key []byte, at string, email realm.Email) bool {
	tools := &wire.Tools{Sign: datadir.NewSigner(key), LinkToken: func(id realm.ID, link int64) string {
		return actors.LinkToken(key, id, link)
	}}
	if email.Unsubscribe != nil {
		return f.get(at, wire.UnsubscribeURL(email, f.id, wire.Site{}, tools))
	}
	return f.get(at, wire.EmailLink(email, f.id, wire.Site{}, tools))
}

func (f *forgery) link(key []byte, at string, l realm.EmailedLink) bool {
	l.Until = f.until.Unix()
	return f.mail(key, at, realm.Email{Confirm: &l})
}

// derivedKey is the API key that a server with a secret gives to an account.
func derivedKey(secret []byte, id realm.ID, u realm.UserID) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "api key %d %d 0", id, u)
	n, b, rest := new(big.Int).SetBytes(mac.Sum(nil)), make([]byte, 32), new(big.Int)
	for i := range b {
		n.DivMod(n, big.NewInt(int64(len(letters))), rest)
		b[i] = letters[rest.Int64()]
	}
	return string(b)
}

// tokens are all kinds of tokens that a server makes with a key.
func (f *forgery) tokens() []stolenToken {
	return []stolenToken{
		{"invitation", "getInvites EmailLink", "", func(key []byte, at string) bool {
			return f.mail(key, at, realm.Email{Link: f.invite})
		}},
		{"API key", "", "", func(key []byte, at string) bool {
			r, _ := http.NewRequest("GET", at, nil)
			r.SetBasicAuth("ann@example.org", derivedKey(key, f.id, f.ann))
			return f.status("GET", at+"/api/v1/users/me", nil, r.Header) == http.StatusOK
		}},
		{"login token", "", "fetchKeyByJWT otherLogin", func(key []byte, at string) bool {
			claims := jwt.MapClaims{"email": "ann@example.org", "exp": f.until.Unix()}
			text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key)
			if err != nil {
				return false // an empty key
			}
			return f.status("POST", at+"/api/v1/jwt/fetch_api_key", url.Values{"json_web_token": {text}},
				nil) == http.StatusOK
		}},
		{"password reset", "emailedLinkToken", "findEmailedLink", func(key []byte, at string) bool {
			l, err := f.core.orgs.View(f.id, realm.System, func(v realm.View) (any, error) {
				return v.CurrentReset(f.ann, f.until.Unix())
			})
			if err != nil {
				f.t.Fatal(err)
			}
			return f.link(key, at, l.(realm.EmailedLink))
		}},
		{"new account", "emailedLinkToken", "findEmailedLink", func(key []byte, at string) bool {
			return f.link(key, at, realm.EmailedLink{Kind: realm.SignUpLink, Email: "new@example.org"})
		}},
		{"new organization", "emailedLinkToken", "findEmailedLink", func(key []byte, at string) bool {
			return f.link(key, at, realm.EmailedLink{Kind: realm.OrganizationLink, Email: "new@example.org",
				Subdomain: "dolphins", Org: "New"})
		}},
		{"email address", "addressToken", "FindAddressChange", func(key []byte, at string) bool {
			return f.mail(key, at, realm.Email{Address: &realm.EmailChange{User: f.ann, From: "ann@example.org",
				To: "mallory@example.org", Until: f.until.Unix()}})
		}},
		{"unsubscription", "UnsubscribeURL", "FindUnsubscription", func(key []byte, at string) bool {
			return f.mail(key, at, realm.Email{Unsubscribe: &realm.Unsubscription{User: f.ann,
				Topic: realm.LoginEmails}})
		}},
		{"download", "SignUploadToken", "VerifyUploadToken", func(key []byte, at string) bool {
			token := wire.SignUploadToken(&wire.Tools{Sign: datadir.NewSigner(key)}, f.id, f.upload, f.until)
			return f.get(at, "/user_uploads/temporary/"+token+"/x")
		}},
		{"form of another site", "CSRFToken", "", func(key []byte, at string) bool {
			token := wire.CSRFToken(&wire.Tools{Sign: datadir.NewSigner(key)}, f.id, f.ann, f.session.ID)
			header := http.Header{"Cookie": {"sessionid=" + f.session.Secret + "; csrftoken=" + token}}
			return f.status("POST", at+"/json/users/me/status", url.Values{"status_text": {"x"},
				"csrfmiddlewaretoken": {token}}, header) == http.StatusOK
		}},
		{"person whom a provider has identified", "sealCipher", "", f.identified},
		{"reply to an email", "signature", "FindReply", f.replies},
		{"picture of another site", "serveExternalPicture", "", func(key []byte, at string) bool {
			return f.get(at, pictures.Address(datadir.NewSigner(key), at+"/api/v1/server_settings"))
		}},
	}
}

// testAuthConfig returns the path of a file with one login provider, which is never asked.
func testAuthConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "auth.toml")
	text := fmt.Sprintf("[[provider]]\nname = \"company\"\ntype = \"oidc\"\nissuer = \"https://x.example.org\"\n"+
		"client_id = \"parley\"\nclient_secret_file = %q\n", secret)
	for path, content := range map[string]string{secret: "of the provider", file: text} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// replies reports whether the server knows a reply address that is signed with a key. Replies come by SMTP, which no
// edge takes, so the same is asked at both.
func (f *forgery) replies(key []byte, _ string) bool {
	address := func(key []byte) *wire.Tools {
		return &wire.Tools{Sign: datadir.NewSigner(key), ChannelMailPattern: "%s@chat.example.org"}
	}
	reply := wire.ReplyAddress(address(key), wire.MailReply{Realm: f.id, EmailReply: realm.EmailReply{User: f.ann,
		Message: 1}, Until: f.until.Unix()})
	_, err := wire.FindReply(address(f.core.secret), reply, time.Now())
	return err == nil
}

// identified asks for the page that connects a login at a provider with an account, with a cookie that the test seals.
// It reports whether the server believes the cookie.
func (f *forgery) identified(key []byte, at string) bool {
	const name = "parley_identity"
	text := fmt.Sprintf(`{"t":%d,"v":{"Issuer":"https://x.example.org","Subject":"1","Email":"ann@example.org","Type":"oidc","Name":"company"}}`,
		f.until.Unix())
	tools := &wire.Tools{Sign: datadir.NewSigner(key)}
	r, err := http.NewRequest("GET", at+"/accounts/login/finish", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: name, Value: tools.Seal(fmt.Sprint(name, " of ", f.id), []byte(text))})
	answer, err := http.DefaultTransport.RoundTrip(r) // redirects mean that it does not
	if err != nil {
		f.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// newForgery makes the accounts, files and links that tokens are about.
func newForgery(t *testing.T, core *demoServer) *forgery {
	t.Helper()
	f := &forgery{t: t, core: core, until: time.Now().Add(time.Hour)}
	f.id, _, _ = core.orgs.RealmByName("")
	core.call("olive@example.org", "PATCH", "realm", url.Values{"invite_required": {"false"}})
	f.ann = realm.UserID(core.call("ann@example.org", "GET", "users/me", nil)["user_id"].(float64))
	core.call("olive@example.org", "POST", "invites/multiuse", nil)
	invites := core.call("olive@example.org", "GET", "invites", nil)["invites"].([]any)
	f.invite = int64(invites[0].(map[string]any)["id"].(float64))
	var err error
	if f.session, err = realm.Execute(core.orgs, f.id, realm.System, realm.OpenBrowserSession{
		LogIn: realm.LogIn{User: f.ann}}); err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	body.WriteString("--xxx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nx\r\n--xxx--\r\n")
	r, err := http.NewRequest("POST", core.BaseURL()+"/api/v1/user_uploads", &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "multipart/form-data; boundary=xxx")
	r.SetBasicAuth("ann@example.org", core.keys["ann@example.org"])
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	found := regexp.MustCompile(`/user_uploads/([^"]+)"`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("upload: %s", text)
	}
	f.upload = string(found[1])
	return f
}

// Tokens that the server made are accepted at the core and at an edge. With everything that an edge gets from its core
// and stores, nobody can make one: no invitation, login, account, password, address, key, download or form.
func TestStolenEdgeForgesNothing(t *testing.T) {
	c := startCoreAndEdge(t, func(s *Settings) {
		s.JWTKeys, s.OpenOrganizations, s.AuthConfig = "="+testJWTKey, true, testAuthConfig(t)
	})
	f := newForgery(t, c.demoServer)
	for _, kind := range f.tokens() {
		key := c.secret
		if kind.name == "login token" {
			key = []byte(testJWTKey)
		}
		for _, at := range []string{c.BaseURL(), c.edge.BaseURL()} {
			if !kind.forge(key, at) {
				t.Errorf("%s: the server's own is refused at %s", kind.name, at)
			}
		}
	}
	if err := c.edge.Close(); err != nil {
		t.Fatal(err)
	}
	stolen := edgeMaterial(t, c.edgeData)
	maps.DeleteFunc(stolen, func(text, _ string) bool { return len(text) < minStolenKey })
	if len(stolen) < 10 {
		t.Errorf("the edge has only %d texts", len(stolen))
	}
	for _, kind := range f.tokens() {
		for text, where := range stolen {
			if kind.forge([]byte(text), c.BaseURL()) {
				t.Errorf("%s: forged with %s", kind.name, where)
			}
		}
	}
}

// An edge refuses a browser's request whose token is not that of its cookie. If an attacker has planted a cookie with
// the same token, the core refuses the request. Reports of presence, which no core sees, need a token that matches as
// well.
func TestFormsOfOtherSitesAtEdge(t *testing.T) {
	c := startCoreAndEdge(t)
	defer c.edge.Close()
	f := newForgery(t, c.demoServer)
	own := wire.CSRFToken(c.tools, f.id, f.ann, f.session.ID)
	planted := strings.Repeat("1", len(own))
	post := func(path, cookie, token string, form url.Values) int {
		form.Set("csrfmiddlewaretoken", token)
		cookies := []string{"sessionid=" + f.session.Secret + "; csrftoken=" + cookie}
		return f.status("POST", c.edge.BaseURL()+path, form, http.Header{"Cookie": cookies})
	}
	for path, form := range map[string]url.Values{
		"/json/register":          {"event_types": {`["message"]`}},
		"/json/users/me/presence": {"status": {"active"}},
		"/json/users/me/status":   {"status_text": {"x"}},
		"/accounts/logout/":       {},
	} {
		for _, x := range []struct{ cookie, token string }{{own, planted}, {planted, own}, {"", own}, {own, ""}} {
			if status := post(path, x.cookie, x.token, form); status != http.StatusForbidden {
				t.Errorf("%s with the cookie %q and the token %q: %d", path, x.cookie, x.token, status)
			}
		}
		if status := post(path, planted, planted, form); status != 403 && path != "/json/users/me/presence" {
			t.Errorf("%s with a planted cookie: %d", path, status)
		}
	}
	for _, path := range []string{"/json/register", "/json/users/me/presence", "/json/users/me/status"} {
		form := url.Values{"status": {"active"}, "status_text": {"x"}, "event_types": {`["message"]`}}
		if status := post(path, own, own, form); status != http.StatusOK {
			t.Errorf("%s with the own token: %d", path, status)
		}
	}
}

// The tests of edges in this package have the tools that a real edge has.
func TestToolsOfEdge(t *testing.T) {
	c := startCoreAndEdge(t, func(s *Settings) { s.JWTKeys, s.OpenOrganizations = "="+testJWTKey, true })
	defer c.edge.Close()
	full := *c.tools
	full.CheckSpace = func(int64) error { return nil }
	full.HostnameProof = func(string) (string, bool) { return "", false }
	real, ours := reflect.ValueOf(*c.edge.tools), toolsOfEdge(full)
	for i := range real.NumField() {
		if name := real.Type().Field(i).Name; real.Field(i).IsZero() && !reflect.ValueOf(ours).Field(i).IsZero() {
			t.Errorf("an edge has no %s", name)
		}
	}
}

// minStolenKey is the length below which a text is no key, in bytes.
const minStolenKey = 8

// edgeMaterial returns the texts that an edge has, whole and in parts: its files, and the answer of the core to its
// greeting. The values say where they are from.
func edgeMaterial(t *testing.T, data string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(data, func(path string, x fs.DirEntry, err error) error {
		if err != nil || !x.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all[string(content)] = x.Name()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := cluster.OpenDirectory(data)
	if err != nil {
		t.Fatal(err)
	}
	e, err := cluster.NewFollower(cluster.FollowerOptions{Directory: d, Program: "1",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	g, err := e.Greet(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	collectTexts(reflect.ValueOf(g), "greeting", all, map[any]bool{})
	for text, where := range maps.Clone(all) {
		for _, part := range regexp.MustCompile(`[^\s",:={}\[\]]+`).FindAllString(text, -1) {
			if all[part] == "" {
				all[part] = "a part of " + where
			}
		}
	}
	return all
}

// collectTexts adds the texts that a value has.
func collectTexts(v reflect.Value, where string, all map[string]string, seen map[any]bool) {
	switch v.Kind() {
	case reflect.String:
		all[v.String()] = where
	case reflect.Pointer, reflect.Interface:
		if v.Kind() == reflect.Pointer {
			if seen[v.Pointer()] {
				return
			}
			seen[v.Pointer()] = true
		}
		if !v.IsNil() {
			collectTexts(v.Elem(), where, all, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			collectTexts(v.Field(i), where+"."+v.Type().Field(i).Name, all, seen)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			collectTexts(k, where, all, seen)
			collectTexts(v.MapIndex(k), where+"."+k.String(), all, seen)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			all[string(v.Bytes())] = where
			return
		}
		for i := range v.Len() {
			collectTexts(v.Index(i), where, all, seen)
		}
	}
}

// keyedTools are the fields of wire.Tools that need a key of the server.
var keyedTools = []string{"Sign", "VerifySignature", "LinkToken", "JWTKeys"}

// All functions that make or check tokens with a key of the server belong to a kind that TestStolenEdgeForgesNothing
// forges.
func TestKindsOfTokens(t *testing.T) {
	known := map[string]bool{}
	for _, kind := range (&forgery{}).tokens() {
		for _, name := range strings.Fields(kind.made + " " + kind.checked) {
			known[name] = true
		}
	}
	found := map[string]bool{}
	for _, pattern := range []string{"../../../wire/*.go", "../../../wire/httpd/*.go", "../../../wire/mail/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "settings.go" { // a table of settings
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(f, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					keyed := ok && slices.Contains(keyedTools, s.Sel.Name)
					if x, isName := selected(s); keyed && isName && x != "jwt" && x != "dkim" &&
						f.Name.Name != "csrfToken" &&
						f.Name.Name != "checkCSRF" { // these only ask whether the node has the secret
						found[f.Name.Name] = true
					}
					return true
				})
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(known)); !slices.Equal(got, want) {
		t.Errorf("the functions that use a key are\n%v, the test knows\n%v", got, want)
	}
}

// selected returns the last name before the selected one.
func selected(s *ast.SelectorExpr) (string, bool) {
	if s == nil {
		return "", false
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return x.Name, true
	case *ast.SelectorExpr:
		return x.Sel.Name, true
	}
	return "", false
}
