package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// keycloakArtifact is the login provider that make login fetches with Maven; it needs Java.
const keycloakArtifact = "org.keycloak:keycloak-quarkus-dist:26.7.3:zip"

// keycloakWait is how long the provider may take to start: it prepares itself at the first time.
const keycloakWait = 4 * time.Minute

// keycloak is a running provider. token is that of its administrator.
type keycloak struct {
	*testing.T
	url, token string
}

// startKeycloak fetches and starts Keycloak with a database in memory.
func startKeycloak(t *testing.T) *keycloak {
	t.Helper()
	folder := filepath.Join(realServers(t), "keycloak")
	t.Logf("fetching %s into %s", keycloakArtifact, folder)
	script := filepath.Join(folder, "keycloak-26.7.3", "bin", "kc.sh")
	if _, err := os.Stat(script); err != nil {
		if out, err := exec.Command("mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack",
			"-Dartifact="+keycloakArtifact, "-DoutputDirectory="+folder).CombinedOutput(); err != nil {
			t.Skipf("%s cannot be installed, so logins at it are not tried: %v\n%s", keycloakArtifact, err, out)
		}
	}
	_, port, _ := strings.Cut(freeAddress(t), ":")
	var log bytes.Buffer
	server := exec.Command("bash", script, "start-dev", "--db=dev-mem", "--http-host=127.0.0.1", "--http-port="+port,
		"--http-management-port="+port[:len(port)-1]+"9")
	server.Env = append(os.Environ(), "KC_BOOTSTRAP_ADMIN_USERNAME=root", "KC_BOOTSTRAP_ADMIN_PASSWORD=root")
	server.Stdout, server.Stderr = &log, &log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the script starts Java
	if err := server.Start(); err != nil {
		t.Skipf("Keycloak does not run: %v", err)
	}
	t.Cleanup(func() {
		syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		server.Wait()
		if t.Failed() {
			t.Logf("output of Keycloak:\n%s", log.String())
		}
	})
	k := &keycloak{T: t, url: "http://127.0.0.1:" + port}
	for end := time.Now().Add(keycloakWait); ; time.Sleep(time.Second) {
		r, err := http.PostForm(k.url+"/realms/master/protocol/openid-connect/token", url.Values{
			"client_id": {"admin-cli"}, "grant_type": {"password"}, "username": {"root"}, "password": {"root"}})
		if err == nil {
			var answer struct {
				Token string `json:"access_token"`
			}
			err = json.NewDecoder(r.Body).Decode(&answer)
			r.Body.Close()
			if k.token = answer.Token; k.token != "" {
				return k
			}
		}
		if time.Now().After(end) {
			t.Fatalf("Keycloak does not answer: %v", err)
		}
	}
}

// admin sends a request to the administration of Keycloak, and returns the answer.
func (k *keycloak) admin(method, path string, body any) (answer any) {
	k.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		k.Fatal(err)
	}
	q, err := http.NewRequest(method, k.url+"/admin/realms"+path, bytes.NewReader(text))
	if err != nil {
		k.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+k.token)
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		k.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode >= 300 {
		k.Fatalf("%s %s: %d %v\n%s", method, path, r.StatusCode, err, got)
	}
	if len(got) > 0 {
		if err := json.Unmarshal(got, &answer); err != nil {
			k.Fatal(err)
		}
	}
	return answer
}

type attributes = map[string]any

// makeCompany makes the realm company with two people, and with Parley at an address as its client in both protocols.
func (k *keycloak) makeCompany(at string) {
	k.Helper()
	person := func(name string, verified bool, groups ...string) attributes {
		return attributes{"username": name, "email": name + "@example.net", "emailVerified": verified, "enabled": true,
			"firstName": "Real", "lastName": name, "groups": groups,
			"credentials": []any{attributes{"type": "password", "value": "of " + name}}}
	}
	mapper := func(protocol, kind, name string, config attributes) attributes {
		config["attribute.name"], config["claim.name"] = name, name
		return attributes{"name": name, "protocol": protocol, "protocolMapper": kind, "config": config}
	}
	k.admin("POST", "", attributes{"realm": "company", "enabled": true, "sslRequired": "none",
		"groups": []any{attributes{"name": "admins"}},
		"users":  []any{person("jane", true, "/admins"), person("joe", true), person("newcomer", false)},
		"clients": []any{
			attributes{"clientId": "parley", "secret": "real-secret", "protocol": "openid-connect",
				"standardFlowEnabled": true, "redirectUris": []string{at + "/complete/oidc/"},
				"protocolMappers": []any{mapper("openid-connect", "oidc-group-membership-mapper", "groups", attributes{
					"full.path": "false", "id.token.claim": "true", "access.token.claim": "true"})}},
			attributes{"clientId": at + "/saml/kcsaml/metadata.xml", "protocol": "saml",
				"redirectUris": []string{at + "/complete/saml/"},
				"attributes": attributes{"saml.assertion.signature": "true", "saml.server.signature": "true",
					"saml.client.signature": "false", "saml.authnstatement": "true", "saml.force.post.binding": "true",
					"saml.signature.algorithm": "RSA_SHA256", "saml_name_id_format": "persistent",
					"saml_force_name_id_format":        "true",
					"saml_assertion_consumer_url_post": at + "/complete/saml/"},
				"protocolMappers": []any{
					mapper("saml", "saml-user-property-mapper", "email", attributes{"user.attribute": "email"}),
					mapper("saml", "saml-user-property-mapper", "displayName", attributes{
						"user.attribute": "username"}),
					mapper("saml", "saml-group-membership-mapper", "groups", attributes{"full.path": "false",
						"single": "true"})}},
		}})
}

// plainJar has the cookies of Keycloak by their names. As browsers do on this computer, it sends those for TLS, too.
type plainJar map[string]*http.Cookie

func (j plainJar) SetCookies(_ *url.URL, list []*http.Cookie) {
	for _, c := range list {
		j[c.Name] = c
	}
}

func (j plainJar) Cookies(*url.URL) (list []*http.Cookie) {
	for _, c := range j {
		list = append(list, c)
	}
	return list
}

var keycloakForm = regexp.MustCompile(`(?s)<form[^>]*\baction="([^"]+)"`)

// enter fills in the login form of Keycloak, and returns its last answer. It follows no redirect to Parley.
func (k *keycloak) enter(address, name, password, stop string) (*http.Response, string) {
	k.Helper()
	c := &http.Client{Jar: plainJar{}, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	read := func(r *http.Response, err error) (*http.Response, string) {
		k.Helper()
		if err != nil {
			k.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			k.Fatal(err)
		}
		return r, string(text)
	}
	r, page := read(c.Get(address))
	action := keycloakForm.FindStringSubmatch(page)
	if action == nil {
		k.Fatalf("the provider shows %d\n%s", r.StatusCode, page)
	}
	return read(c.PostForm(html.UnescapeString(action[1]), url.Values{"username": {name}, "password": {password}}))
}

// logInAt logs in at Keycloak with a protocol, and returns the browser and the last answer of Parley; 0 if Keycloak has
// refused the person.
func (k *keycloak) logInAt(at, protocol, name, password string) (*browser, webAnswer) {
	k.Helper()
	b := newBrowser(k.T, at)
	begun := b.send("GET", "/accounts/login/social/"+protocol+"/", nil)
	r, page := k.enter(begun.header.Get("Location"), name, password, at+"/")
	if protocol == "saml/kcsaml" {
		form := url.Values{}
		for _, m := range samlField.FindAllStringSubmatch(page, -1) {
			form.Set(m[1], html.UnescapeString(m[2]))
		}
		if form.Get("SAMLResponse") == "" {
			return b, webAnswer{}
		}
		a := b.send("POST", "/complete/saml/", form)
		to, err := url.Parse(a.header.Get("Location"))
		if a.status != 302 || err != nil {
			k.Fatalf("the answer: %d %v\n%s", a.status, err, a.body)
		}
		return b, b.send("GET", to.RequestURI(), nil)
	}
	to, err := r.Location()
	if err != nil {
		return b, webAnswer{}
	}
	return b, b.send("GET", to.RequestURI(), nil)
}

var samlField = regexp.MustCompile(`(?i)name="(SAMLResponse|RelayState)"\s+value="([^"]*)"`)

// People log in at Keycloak with OpenID Connect and with SAML: a new account with a role, the same account again, a
// wrong password, an address that is not confirmed, a person whom Keycloak has deactivated, and a role that ends.
// Keycloak itself has no client of SCIM: the test sends its request, which ends key, queue and session at once.
func TestRealKeycloak(t *testing.T) {
	k := startKeycloak(t)
	listen := freeAddress(t)
	at := "http://" + listen
	k.makeCompany(at)
	folder, data := t.TempDir(), t.TempDir()
	file := filepath.Join(folder, "auth.toml")
	writeFile(t, filepath.Join(folder, "secret"), "real-secret\n")
	r, err := http.Get(k.url + "/realms/company/protocol/saml/descriptor")
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	writeFile(t, filepath.Join(folder, "idp.xml"), string(metadata))
	const rule = "[[provider.rule]]\nclaim = \"groups\"\nvalue = \"admins\"\nrole = \"administrator\"\n"
	writeFile(t, file, "[[provider]]\nname = \"kc\"\npreset = \"keycloak\"\nclient_id = \"parley\"\n"+
		"client_secret_file = \"secret\"\nallow_insecure = true\nissuer = \""+k.url+"/realms/company\"\n"+rule+
		"[[provider]]\nname = \"kcsaml\"\ntype = \"saml\"\nmetadata_file = \"idp.xml\"\nallow_insecure = true\n"+rule)
	for _, name := range []string{"kc", "kcsaml"} {
		t.Log(mustRun(t, "auth", "test", name, "--auth-config", file))
	}
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", listen, "--demo", "--auth-config", file))
	p.serving()
	setDemoPasswords(t, data, "olive@example.org")
	newBrowser(t, at).logIn("olive@example.org", browserPassword).must("PATCH", "realm",
		url.Values{"invite_required": {"false"}})

	const oidc, saml = "oidc/kc", "saml/kcsaml"
	jane, a := k.logInAt(at, oidc, "jane", "of jane")
	if a.status != 302 || !jane.loggedIn() {
		t.Fatalf("a new account: %d\n%s", a.status, a.body)
	}
	if me := jane.must("GET", "users/me", nil); me["full_name"] != "Real jane" || me["role"] != 200.0 {
		t.Errorf("the account: %v", me)
	}
	if again, _ := k.logInAt(at, oidc, "jane", "of jane"); again.userID() != jane.userID() {
		t.Error("the second login is another account")
	}
	joe, a := k.logInAt(at, saml, "joe", "of joe")
	if a.status != 302 || !joe.loggedIn() || joe.must("GET", "users/me", nil)["role"] != 400.0 {
		t.Fatalf("a new account by SAML: %d\n%s", a.status, a.body)
	}
	for _, protocol := range []string{oidc, saml} {
		if b, a := k.logInAt(at, protocol, "jane", "wrong"); a.status != 0 || b.loggedIn() {
			t.Errorf("%s with a wrong password: %d", protocol, a.status)
		}
	}
	if b, a := k.logInAt(at, oidc, "newcomer", "of newcomer"); a.status != 400 || b.loggedIn() {
		t.Errorf("an address that is not confirmed: %d\n%s", a.status, a.body)
	}
	k.deactivates(at, data, jane, "jane")
}

// deactivates takes a group from a person in Keycloak, then deactivates the person there and by SCIM.
func (k *keycloak) deactivates(at, data string, b *browser, name string) {
	k.Helper()
	list, _ := k.admin("GET", "/company/users?exact=true&username="+name, nil).([]any)
	path := "/company/users/" + fmt.Sprint(list[0].(attributes)["id"])
	groups, _ := k.admin("GET", path+"/groups", nil).([]any)
	for _, g := range groups {
		k.admin("DELETE", path+"/groups/"+fmt.Sprint(g.(attributes)["id"]), nil)
	}
	if b, _ := k.logInAt(at, "oidc/kc", name, "of "+name); b.must("GET", "users/me", nil)["role"] != 400.0 {
		k.Error("the role goes on without the group")
	}
	email := name + "@example.net"
	app := demoAccount(k.T, at, email)
	queue := fmt.Sprint(app.must(k.T, "POST", "register", nil)["queue_id"])
	c := scimToken(k.T, at, data)
	id := c.find("/Users", `userName eq "`+email+`"`)
	if len(id) != 1 {
		k.Fatalf("the account at SCIM: %v", id)
	}
	k.admin("PUT", path, attributes{"enabled": false})
	if b, a := k.logInAt(at, "oidc/kc", name, "of "+name); a.status != 0 || b.loggedIn() {
		k.Errorf("a deactivated person logs in: %d", a.status)
	}
	c.patch("/Users/"+id[0], `{"op":"replace","path":"active","value":false}`)
	for _, path := range []string{"users/me", "events?dont_block=true&last_event_id=-1&queue_id=" + queue} {
		if a, err := app.call("GET", path, nil); err == nil {
			k.Errorf("%s with the key: %v", path, a)
		}
	}
	if b.loggedIn() {
		k.Error("the session goes on")
	}
}
