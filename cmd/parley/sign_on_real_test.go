package main

import (
	"bufio"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// oidcProviderPackage is the provider with which make login tries logins: one that others have written.
const oidcProviderPackage = "oidc-provider@9.13.3"

// realServers skips a test that make login runs, and returns the folder in which it installs servers.
func realServers(t *testing.T) string {
	t.Helper()
	if os.Getenv("LOGIN") == "" {
		t.Skip("make login runs this test: it installs servers of others")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("there is no folder for servers of others: %v", err)
	}
	return filepath.Join(cache, "parley-login")
}

// startNodeProvider installs and starts the provider, and returns its address.
func startNodeProvider(t *testing.T, redirect string) string {
	t.Helper()
	folder := realServers(t)
	script, err := filepath.Abs("testdata/login/oidc_provider.mjs")
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installing %s into %s", oidcProviderPackage, folder)
	npm := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", oidcProviderPackage)
	npm.Dir = folder
	if out, err := npm.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be installed, so logins at it are not tried: %v\n%s", oidcProviderPackage, err, out)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "oidc_provider.mjs"), string(text))
	_, port, _ := strings.Cut(freeAddress(t), ":")
	node := exec.Command("node", "oidc_provider.mjs", port, redirect)
	node.Dir = folder
	out, err := node.StdoutPipe()
	if err == nil {
		err = node.Start()
	}
	if err != nil {
		t.Skipf("node does not run: %v", err)
	}
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "listening" {
			return "http://127.0.0.1:" + port
		}
	}
	t.Fatal("the provider has ended")
	return ""
}

var (
	formAction  = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	promptField = regexp.MustCompile(`name="prompt" value="([^"]+)"`)
)

// personAt fills in the forms of the provider as a person with a name, and returns the path to which it redirects at
// the end.
func personAt(t *testing.T, address, name string, stop string) string {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	c := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	r, err := c.Get(address)
	for range 5 {
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if to := r.Header.Get("Location"); strings.HasPrefix(to, stop) {
			return "/" + strings.SplitN(to, "/", 4)[3]
		}
		action, prompt := formAction.FindSubmatch(body), promptField.FindSubmatch(body)
		if action == nil || prompt == nil {
			t.Fatalf("the provider shows %d\n%s", r.StatusCode, body)
		}
		to, _ := r.Request.URL.Parse(html.UnescapeString(string(action[1])))
		r, err = c.PostForm(to.String(), url.Values{"prompt": {string(prompt[1])}, "login": {name}, "password": {"x"}})
	}
	t.Fatal("the provider does not redirect back")
	return ""
}

// People log in at the provider that others have written: a new account, the same account again, an account that
// exists, and an address that is not confirmed.
func TestRealOpenIDConnect(t *testing.T) {
	realServers(t)
	data, listen := t.TempDir(), freeAddress(t)
	at := "http://" + listen
	issuer := startNodeProvider(t, at+"/complete/oidc/")
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "secret"), "real-secret\n")
	file := filepath.Join(folder, "auth.toml")
	writeFile(t, file, "[[provider]]\nname = \"node\"\ntype = \"oidc\"\nclient_id = \"parley\"\n"+
		"allow_insecure = true\n"+
		"client_secret_file = \"secret\"\nissuer = \""+issuer+"\"\n")
	if out := mustRun(t, "auth", "test", "node", "--auth-config", file); !strings.Contains(out, "keys") {
		t.Errorf("parley auth test: %s", out)
	}
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", listen, "--demo", "--auth-config", file))
	p.serving()
	setDemoPasswords(t, data, "olive@example.org")
	newBrowser(t, at).logIn("olive@example.org", browserPassword).must("PATCH", "realm",
		url.Values{"invite_required": {"false"}})
	logIn := func(name string) (*browser, webAnswer) {
		t.Helper()
		b := newBrowser(t, at)
		a := b.send("GET", "/accounts/login/social/oidc/node/", nil)
		return b, b.send("GET", personAt(t, a.header.Get("Location"), name, at+"/"), nil)
	}
	jane, a := logIn("jane")
	if a.status != 302 || !jane.loggedIn() || jane.must("GET", "users/me", nil)["full_name"] != "Real jane" {
		t.Fatalf("a new account: %d\n%s", a.status, a.body)
	}
	if again, a := logIn("jane"); again.userID() != jane.userID() {
		t.Errorf("the second login: %d\n%s", a.status, a.body)
	}
	if b, a := logIn("newcomer"); a.status != 400 || b.loggedIn() || !strings.Contains(a.body, "has not confirmed") {
		t.Errorf("an address that is not confirmed: %d\n%s", a.status, a.body)
	}
	t.Log("oidc-provider: a new account, a second login and an address that is not confirmed: as expected")
}
