package main

import (
	"bytes"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// activeDirectory is a running domain controller of Samba. Its LDAP server has the ports 389 and 636, which cannot be
// changed.
type activeDirectory struct {
	*testing.T
	folder, cert string
}

// startActiveDirectory makes a domain and starts its LDAP server.
func startActiveDirectory(t *testing.T) *activeDirectory {
	t.Helper()
	realServers(t)
	if _, err := exec.LookPath("samba-tool"); err != nil || os.Getuid() != 0 {
		t.Skip("samba is not installed, or the user is not root, so logins at Active Directory are not tried: " +
			"apt-get install samba samba-ad-provision samba-dsdb-modules winbind")
	}
	l, err := net.Listen("tcp", "127.0.0.1:389")
	if err != nil {
		t.Skipf("another program has the port of LDAP, so logins at Active Directory are not tried: %v", err)
	}
	l.Close()
	d := &activeDirectory{T: t, folder: t.TempDir()}
	d.cert = writeServerCertificate(t, d.folder)
	tls := "--option=tls certfile=" + d.cert
	out, err := exec.Command("/usr/bin/python3", "testdata/login/provision.py", "domain", "provision",
		"--realm=EXAMPLE.TEST", "--domain=EXAMPLE", "--server-role=dc", "--dns-backend=NONE",
		"--adminpass=Secret9!admin", "--targetdir="+d.folder, "--host-ip=127.0.0.1", "--host-name=dc1",
		"--option=server services=ldap",
		"--option=log file="+d.folder+"/log", tls, "--option=tls cafile="+d.cert,
		"--option=tls keyfile="+filepath.Join(d.folder, "key.pem")).CombinedOutput()
	if err != nil {
		t.Skipf("the domain cannot be made, so logins at Active Directory are not tried: %v\n%s", err, out)
	}
	if err := os.Chmod(filepath.Join(d.folder, "key.pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("samba", "-i", "-M", "single", "-s", filepath.Join(d.folder, "etc", "smb.conf"))
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	stdin, err := server.StdinPipe() // it ends with its standard input
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		server.Process.Kill()
		server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually(t, "the domain controller answers", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:636")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return d
}

// tool runs samba-tool with the database of the domain.
func (d *activeDirectory) tool(args ...string) {
	d.Helper()
	args = append(args, "-s", filepath.Join(d.folder, "etc", "smb.conf"), "-H",
		filepath.Join(d.folder, "private", "sam.ldb"))
	if out, err := exec.Command("samba-tool", args...).CombinedOutput(); err != nil {
		d.Fatalf("samba-tool %q: %v\n%s", args, err, out)
	}
}

// Users of Active Directory log in with their account name or address. They are identified by a binary objectGUID, so
// another account name is the same user. A disabled account ends here, too.
func TestRealActiveDirectory(t *testing.T) {
	d := startActiveDirectory(t)
	for _, name := range []string{"parley", "jane", "bob"} {
		d.tool("user", "create", name, "Secret9!"+name, "--mail-address="+name+"@example.test", "--surname="+name)
	}
	d.tool("group", "add", "chatadmins")
	d.tool("group", "addmembers", "chatadmins", "jane")
	file := filepath.Join(d.folder, "auth.toml")
	writeFile(t, filepath.Join(d.folder, "secret"), "Secret9!parley\n")
	writeFile(t, file, "[[provider]]\nname = \"ad\"\npreset = \"active-directory\"\nurls = [\"ldaps://127.0.0.1\"]\n"+
		"ca_file = \""+d.cert+"\"\nbase_dn = \"cn=users,dc=example,dc=test\"\nsync_every = \"2s\"\n"+
		"bind_dn = \"cn=parley,cn=users,dc=example,dc=test\"\nbind_password_file = \"secret\"\n"+
		"name_attribute = \"sn\"\n[[provider.rule]]\nclaim = \"memberOf\"\n"+
		"value = \"cn=chatadmins,cn=users,dc=example,dc=test\"\nrole = \"administrator\"\n")
	_, at, _ := browserDemo(t, "--auth-config", file)
	olive := demoAccount(t, at, "olive@example.org")
	olive.must(t, "PATCH", "realm", url.Values{"invite_required": {"false"}})
	keys := map[string]bool{}
	for _, name := range []string{"jane", "JANE", "jane@example.test"} {
		a := keyByPassword(t, at, name, "Secret9!jane")
		key, _ := a.json["api_key"].(string)
		keys[key] = true
		if len(keys) != 1 || key == "" {
			t.Fatalf("a login as %s: %d %s", name, a.status, a.body)
		}
	}
	jane := newBrowser(t, at)
	jane.logInAs("jane", "Secret9!jane")
	id := jane.userID()
	role := func() any { return olive.userWith(t, id)["role"] }
	if role() != 200.0 {
		t.Errorf("the role by the group is %v", role())
	}
	d.tool("group", "removemembers", "chatadmins", "jane")
	eventually(t, "the role ends", func() bool { return role() == 400.0 })
	d.tool("user", "rename", "jane", "--samaccountname=jane.doe")
	if b := newBrowser(t, at); b.logInAs("jane.doe", "Secret9!jane").status != 302 || b.userID() != id {
		t.Errorf("with another account name the person is user %d, want %d", b.userID(), id)
	}
	d.tool("user", "disable", "jane.doe")
	eventually(t, "the account ends", func() bool { return olive.userWith(t, id)["is_active"] == false })
	if jane.loggedIn() || keyByPassword(t, at, "jane.doe", "Secret9!jane").status < 400 {
		t.Error("a disabled account logs in")
	}
	d.tool("user", "enable", "jane.doe")
	eventually(t, "the account is back", func() bool { return olive.userWith(t, id)["is_active"] == true })
	if strings.Contains(newBrowser(t, at).logInAs("jane.doe", "").body, "sessionid") {
		t.Error("a login without a password")
	}
}

// userWith returns the fields of a user.
func (p *account) userWith(t *testing.T, id int) map[string]any {
	t.Helper()
	for _, x := range p.must(t, "GET", "users", nil)["members"].([]any) {
		if u := x.(map[string]any); u["user_id"] == float64(id) {
			return u
		}
	}
	t.Fatalf("there is no user %d", id)
	return nil
}
