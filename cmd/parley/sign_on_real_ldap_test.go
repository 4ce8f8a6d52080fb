package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeServerCertificate writes a certificate for 127.0.0.1, which signs itself, and its key.
func writeServerCertificate(t *testing.T, folder string) (file string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, "cert.pem")
	writeFile(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, filepath.Join(folder, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: secret})))
	return file
}

// slapd is a running OpenLDAP server with its own folder.
type slapd struct {
	*testing.T
	url, cert string
}

// startSlapd starts an OpenLDAP server with the program that searches, which may read all.
func startSlapd(t *testing.T) *slapd {
	t.Helper()
	realServers(t)
	for _, program := range []string{"/usr/sbin/slapd", "ldapadd", "ldapmodify", "ldapdelete"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed, so logins at an LDAP directory are not tried: "+
				"apt-get install slapd ldap-utils", program)
		}
	}
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/login/slapd.conf")
	if err == nil {
		err = os.Mkdir(filepath.Join(folder, "data"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &slapd{t, "ldap://" + freeAddress(t), writeServerCertificate(t, folder)}
	file := filepath.Join(folder, "slapd.conf")
	writeFile(t, file, strings.ReplaceAll(string(text), "FOLDER", folder))
	var log bytes.Buffer
	server := exec.Command("/usr/sbin/slapd", "-d", "0", "-f", file, "-h", s.url)
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Skipf("slapd does not run: %v", err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	eventually(t, "slapd answers", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "ldap://"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	s.change("ldapadd", "dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: Example\n\n"+
		"dn: ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\n\n"+
		"dn: ou=groups,dc=example,dc=org\nobjectClass: organizationalUnit\n\n"+
		"dn: cn=parley,dc=example,dc=org\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\n"+
		"userPassword: directory secret\n")
	return s
}

// change runs a program of ldap-utils as the administrator of the directory.
func (s *slapd) change(program, input string, more ...string) {
	s.Helper()
	c := exec.Command(program, append([]string{"-x", "-H", s.url, "-D", "cn=root,dc=example,dc=org", "-w", "root"},
		more...)...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// pixel is a picture in PNG form with one pixel, in base64.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

func personLDIF(name, more string) string {
	return fmt.Sprintf("dn: uid=%s,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\ncn: Real %[1]s\nsn: x\n"+
		"mail: %[1]s@example.net\nuserPassword: of %[1]s\n%s\n", name, more)
}

// People of an OpenLDAP server log in over StartTLS; their groups, names, profile values and pictures come from it, and
// their accounts end and begin again with their entries.
func TestRealLDAP(t *testing.T) {
	s := startSlapd(t)
	var crowd strings.Builder
	for i := range 1500 {
		crowd.WriteString(personLDIF(fmt.Sprint("p", i), ""))
	}
	s.change("ldapadd", crowd.String()+personLDIF("jane", "telephoneNumber: +49 30\njpegPhoto:: "+pixel+"\n")+
		"dn: cn=admins,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\n"+
		"member: uid=jane,ou=people,dc=example,dc=org\n")
	file := directoryConfig(t, s.url, "start_tls = true\navatar_attribute = \"jpegPhoto\"\n"+
		"user_filter = \"(&(objectClass=person)(uid=%s)(!(employeeType=left)))\"\n"+
		"ca_file = \""+s.cert+"\"\ngroup_base_dn = \"ou=groups,dc=example,dc=org\"\n"+
		"group_filter = \"(&(objectClass=groupOfNames)(member=%s))\"\n"+
		"[provider.profile_fields]\n\"Phone number\" = \"telephoneNumber\"\n"+
		"[[provider.rule]]\nclaim = \"groups\"\nvalue = \"admins\"\nrole = \"administrator\"\n")
	if out := mustRun(t, "auth", "test", "staff", "--auth-config", file); !strings.Contains(out, "it has 1501 users") {
		t.Errorf("parley auth test: %s", out)
	}
	_, at, _ := browserDemo(t, "--auth-config", file)
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	olive.must("PATCH", "realm", url.Values{"invite_required": {"false"}})
	olive.must("POST", "realm/profile_fields", url.Values{"name": {"Phone number"}, "hint": {""}, "field_type": {"1"}})
	jane := newBrowser(t, at)
	if a := jane.logInAs("jane", "of jane"); !jane.loggedIn() {
		t.Fatalf("the login: %d\n%s", a.status, a.body)
	}
	for _, password := range []string{"", "wrong", "\x00"} {
		if b := newBrowser(t, at); b.logInAs("jane", password).status != 200 || b.loggedIn() {
			t.Errorf("a login with the password %q", password)
		}
	}
	id := jane.userID()
	profile := func() map[string]any {
		a := olive.must("GET", fmt.Sprintf("users/%d?include_custom_profile_fields=true", id), nil)
		u, _ := a["user"].(map[string]any)
		return u
	}
	if u := profile(); u["role"] != 200.0 || u["full_name"] != "Real jane" ||
		!strings.Contains(fmt.Sprint(u["profile_data"]), "+49 30") {
		t.Errorf("the account: %v", u)
	}
	eventually(t, "the picture", func() bool {
		return strings.Contains(fmt.Sprint(profile()["avatar_url"]), "user_avatars")
	})
	key := keyByPassword(t, at, "jane", "of jane")
	app := &account{url: at, email: "jane@example.net", key: fmt.Sprint(key.json["api_key"])}
	queue := fmt.Sprint(app.must(t, "POST", "register", nil)["queue_id"])
	s.change("ldapmodify", "dn: cn=admins,ou=groups,dc=example,dc=org\nchangetype: modify\nreplace: member\n"+
		"member: uid=p1,ou=people,dc=example,dc=org\n\n"+
		"dn: uid=jane,ou=people,dc=example,dc=org\nchangetype: modify\nreplace: cn\ncn: Jane Renamed\n")
	eventually(t, "the role ends, the name changes", func() bool {
		return profile()["role"] == 400.0 && profile()["full_name"] == "Jane Renamed"
	})
	s.change("ldapmodify", "dn: uid=jane,ou=people,dc=example,dc=org\nchangetype: modrdn\nnewrdn: uid=jane.doe\n"+
		"deleteoldrdn: 1\n")
	if b := newBrowser(t, at); b.logInAs("jane.doe", "of jane").status != 302 || b.userID() != id {
		t.Errorf("with another name the person is user %d, want %d", b.userID(), id)
	}
	began := time.Now()
	const janeNow = "dn: uid=jane.doe,ou=people,dc=example,dc=org\nchangetype: modify\n"
	s.change("ldapmodify", janeNow+"add: employeeType\nemployeeType: left\n")
	eventually(t, "the account ends", func() bool { return profile()["is_active"] == false })
	t.Logf("the account ended after %s, with a comparison each 2 seconds", time.Since(began).Round(time.Millisecond))
	for _, path := range []string{"users/me", "events?dont_block=true&last_event_id=-1&queue_id=" + queue} {
		if a, err := app.call("GET", path, nil); err == nil {
			t.Errorf("%s with the key: %v", path, a)
		}
	}
	if jane.loggedIn() {
		t.Error("the session goes on")
	}
	s.change("ldapmodify", janeNow+"delete: employeeType\n")
	eventually(t, "the account is back", func() bool { return profile()["is_active"] == true })
}
