package main

import (
	"bufio"
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// samlPackage is the SAML server with which make login tries logins.
const samlPackage = "pysaml2==7.5.5"

// startSAML installs and starts a SAML server, and returns its address. Its files, with those of the test, are in
// folder.
func startSAML(t *testing.T, folder, ourMetadata string) string {
	t.Helper()
	cache := realServers(t)
	if _, err := exec.LookPath("xmlsec1"); err != nil {
		t.Skip("xmlsec1 is not installed, so logins at a SAML server are not tried: apt-get install xmlsec1")
	}
	python := filepath.Join(cache, "saml", "bin", "python3")
	t.Logf("installing %s into %s", samlPackage, cache)
	for _, c := range [][]string{{"python3", "-m", "venv", filepath.Join(cache, "saml")},
		{python, "-m", "pip", "install", "-q", samlPackage}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s cannot be installed, so logins at it are not tried: %v\n%s", samlPackage, err, out)
		}
	}
	_, port, _ := strings.Cut(freeAddress(t), ":")
	server := exec.Command(python, "testdata/login/saml_idp.py", port, folder, ourMetadata)
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "listening" {
			return "http://127.0.0.1:" + port
		}
	}
	t.Fatal("the SAML server has ended")
	return ""
}

var hiddenField = regexp.MustCompile(`name="(SAMLResponse|RelayState)" value="([^"]*)"`)

// atSAML logs in at the SAML server, and returns the fields of the form that it answers with.
func (b *browser) atSAML(more string) url.Values {
	b.Helper()
	a := b.send("GET", "/accounts/login/social/saml/idp/", nil)
	if a.status != 302 {
		b.Fatalf("beginning the login: %d\n%s", a.status, a.body)
	}
	r, err := http.Get(a.header.Get("Location") + more)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	form := url.Values{}
	for _, m := range hiddenField.FindAllSubmatch(body, -1) {
		form.Set(string(m[1]), html.UnescapeString(string(m[2])))
	}
	if err != nil || form.Get("SAMLResponse") == "" {
		b.Fatalf("the SAML server answers %d %v\n%s", r.StatusCode, err, body)
	}
	return form
}

// People log in at a SAML server that others have written, with assertions in the clear and encrypted. An answer works
// in the browser that has started the login, once.
func TestRealSAML(t *testing.T) {
	realServers(t)
	data, listen, folder := t.TempDir(), freeAddress(t), t.TempDir()
	at := "http://" + listen
	writeServerCertificate(t, folder)
	startSAML(t, folder, at+"/saml/idp/metadata.xml")
	file := filepath.Join(folder, "auth.toml")
	writeFile(t, file, "[[provider]]\nname = \"idp\"\ntype = \"saml\"\ndisplay_name = \"The Company\"\n"+
		"metadata_file = \"idp.xml\"\nallow_insecure = true\nkey_file = \"key.pem\"\ncertificate_file = \"cert.pem\"\n"+
		"[[provider.rule]]\nclaim = \"eduPersonAffiliation\"\nvalue = \"staff\"\nrole = \"moderator\"\n")
	if out := mustRun(t, "auth", "test", "idp", "--auth-config", file); !strings.Contains(out, "1 certificates") {
		t.Errorf("parley auth test: %s", out)
	}
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", listen, "--demo", "--auth-config", file))
	p.serving()
	demoAccount(t, at, "olive@example.org").must(t, "PATCH", "realm", url.Values{"invite_required": {"false"}})
	logIn := func(more string) *browser {
		t.Helper()
		b := newBrowser(t, at)
		form := b.atSAML(more)
		a := b.send("POST", "/complete/saml/", form)
		if a.status != 302 {
			t.Fatalf("the answer: %d\n%s", a.status, a.body)
		}
		address, _ := url.Parse(a.header.Get("Location"))
		other := newBrowser(t, at)
		if other.send("GET", address.RequestURI(), nil); other.loggedIn() {
			t.Error("the answer logs in another browser")
		}
		if a := b.send("GET", address.RequestURI(), nil); a.status != 302 || !b.loggedIn() {
			t.Fatalf("the login: %d\n%s", a.status, a.body)
		}
		if a := newBrowser(t, at).send("POST", "/complete/saml/", form); a.status != 400 {
			t.Errorf("the same answer again: %d", a.status)
		}
		return b
	}
	jane := logIn("")
	me := jane.must("GET", "users/me", nil)
	if me["full_name"] != "Real jane" || me["delivery_email"] != "jane@example.net" || me["role"] != 300.0 {
		t.Errorf("the account: %v", me)
	}
	if again := logIn("&encrypt=1"); again.userID() != jane.userID() {
		t.Errorf("an encrypted assertion is user %d, want %d", again.userID(), jane.userID())
	}
	t.Log("pysaml2: a new account with a role, an encrypted assertion, another browser, a replay: as expected")
}
