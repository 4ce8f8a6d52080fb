package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/cmd/internal/release"
)

// cleanRoot is a file system with a shell but without a C library, in which a package is installed.
type cleanRoot struct {
	t   *testing.T
	dir string
	at  string // address at which the server listens
}

// systemctl executes the commands of the unit as systemd would: as the user parley, when the data directory exists.
const systemctl = `#!/bin/sh
unit=/usr/lib/systemd/system/parley.service
echo "$*" >>/run/systemctl.log
line() { grep "^$1=" $unit | cut -d= -f2-; }
as() { su -s /bin/sh parley -c "exec $*"; }
case "$*" in
"disable --now parley.service")
  here=$(stat -c %d:%i /)
  servers() { # the names of the links are those of other mount namespaces
    for p in /proc/[0-9]*; do
      [ "$(stat -Lc %d:%i $p/root 2>/dev/null)" = $here ] && case "$(readlink $p/exe)" in
        */usr/bin/parley*) echo ${p#/proc/};; esac
    done
  }
  kill $(servers) 2>/dev/null
  for i in $(seq 900); do # TimeoutStopSec
    [ -z "$(servers)" ] && exit 0
    usleep 100000
  done
  exit 1;;
"enable --now parley.service")
  mkdir -p -m 0700 /var/lib/parley && chown parley:parley /var/lib/parley
  (exec >/run/parley.log 2>&1 && as "$(line ExecStart)") & # no copy of the standard output remains open
  for i in $(seq 600); do
    grep -q msg=serving /run/parley.log && exit 0
    usleep 100000
  done
  cat /run/parley.log; exit 1;;
reload*) as "$(line ExecReload)";;
esac
`

// useradd replaces the command of Debian's package passwd, which busybox lacks.
const useradd = `#!/bin/sh
echo "parley:x:990:990::/var/lib/parley:/bin/false" >>/etc/passwd
echo "parley:x:990:" >>/etc/group
`

func newCleanRoot(t *testing.T) *cleanRoot {
	t.Helper()
	box, err := exec.LookPath("busybox")
	if err != nil || os.Getuid() != 0 || exec.Command("dpkg-deb", "--version").Run() != nil ||
		exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Skip("needs root, namespaces, dpkg and the Debian package busybox-static")
	}
	x := &cleanRoot{t: t, dir: filepath.Join(t.TempDir(), "root"), at: freeAddress(t)}
	for _, dir := range []string{"bin", "etc/parley", "proc", "dev", "tmp", "run/systemd/system",
		"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(x.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(box)
	if err != nil {
		t.Fatal(err)
	}
	x.write("bin/busybox", string(program), 0o755)
	if out, err := x.run("", "/bin/busybox", "--install", "-s", "/bin").CombinedOutput(); err != nil {
		t.Skipf("busybox is not static: %s", out)
	}
	x.write("bin/systemctl", systemctl, 0o755)
	x.write("bin/useradd", useradd, 0o755)
	x.write("etc/passwd", "root:x:0:0::/:/bin/sh\n", 0o644)
	x.write("etc/group", "root:x:0:\n", 0o644)
	x.write("etc/shadow", "", 0o600)
	x.write("var/lib/dpkg/status", "", 0o644)
	x.writeSettings()
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(x.dir, "run/parley.log"))
			t.Logf("log of the server:\n%s", log)
		}
	})
	return x
}

// writeSettings writes settings of the server, because the port of the package may be in use where the test runs.
func (x *cleanRoot) writeSettings() {
	x.t.Helper()
	if err := os.MkdirAll(filepath.Join(x.dir, "etc/parley"), 0o755); err != nil {
		x.t.Fatal(err)
	}
	x.write("etc/parley/parley.toml", fmt.Sprintf("listen = %q\nrate-limit = 0\n", x.at), 0o644)
}

func (x *cleanRoot) write(name, text string, mode os.FileMode) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.dir, name), []byte(text), mode); err != nil {
		x.t.Fatal(err)
	}
}

// run returns a command that runs in the root, with processes of its own view. A dpkg command runs outside and changes
// the root.
func (x *cleanRoot) run(env, name string, args ...string) *exec.Cmd {
	inner := append([]string{"chroot", x.dir, name}, args...)
	if name == "dpkg" {
		inner = append([]string{"dpkg", "--root=" + x.dir, "--force-confold"}, args...)
	}
	script := "mount -t proc proc " + x.dir + `/proc; mount --bind /dev ` + x.dir + `/dev; exec "$@"`
	c := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "-"}, inner...)...)
	c.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", env)
	return c
}

func (x *cleanRoot) must(env, name string, args ...string) string {
	x.t.Helper()
	out, err := x.run(env, name, args...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

// buildPackage builds the Debian package of a version.
func buildPackage(t *testing.T, dir, version string) string {
	t.Helper()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release.Release{Version: version, Source: source, Out: dir, Time: time.Unix(1767225600, 0)}
	program, err := r.Program("amd64")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Debian("amd64", program, nil); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "parley_"+version[1:]+"_amd64.deb")
}

// readmeCommands returns the commands of the README that follow a text.
func readmeCommands(t *testing.T, after string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), after)
	if !ok {
		t.Fatalf("the README lacks %q", after)
	}
	_, rest, _ = strings.Cut(rest, "```\n")
	block, _, _ := strings.Cut(rest, "```")
	return strings.Split(strings.TrimSpace(block), "\n")
}

// A package is installed in a root without a C library, and the README's two commands lead to the first message. Then a
// newer package replaces the program under load, and a purge keeps the data unless the operator says otherwise.
func TestPackageFromInstallToPurge(t *testing.T) {
	if os.Getenv("RELEASE") == "" {
		t.Skip("installs packages in a root of its own for minutes; make release-check runs it")
	}
	x := newCleanRoot(t)
	debs := t.TempDir()
	old, next := buildPackage(t, debs, "v0.8.0"), buildPackage(t, debs, "v0.9.0")
	commands := readmeCommands(t, "## Install")
	if len(commands) != 2 || commands[0] != "dpkg -i parley_0.9.0_amd64.deb" {
		t.Fatalf("the README does not have two commands: %q", commands)
	}
	began := time.Now()
	x.must("", "dpkg", "-i", old)
	t.Cleanup(func() { x.run("", "systemctl", "disable", "--now", "parley.service").Run() })
	out := x.must("", "sh", "-c", commands[1])
	_, curl, ok := strings.Cut(out, "first_message: ")
	if !ok {
		t.Fatalf("no command for the first message: %s", out)
	}
	sent, err := exec.Command("sh", "-c", strings.Split(curl, "\n")[0]).CombinedOutput()
	if err != nil || !strings.Contains(string(sent), `"result":"success"`) {
		t.Fatalf("the first message: %v: %s", err, sent)
	}
	t.Logf("first message %.1f s after the start of dpkg -i", time.Since(began).Seconds())
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the first message took %v", took)
	}
	owner := &account{url: "http://" + x.at, email: answerField(out, "email"), key: answerField(out, "api_key")}
	x.upgradeUnderLoad(owner, next)
	x.remove()
	store := filepath.Join(x.dir, "var/lib/parley/store")
	if out := x.must("", "dpkg", "--purge", "parley"); !strings.Contains(out, "the data remain") {
		t.Errorf("purge: %s", out)
	}
	if _, err := os.Stat(store); err != nil {
		t.Errorf("a purge removed the data: %v", err)
	}
	x.writeSettings() // a purge removes them
	x.must("", "dpkg", "-i", next)
	if _, err := owner.send("again"); err != nil {
		t.Errorf("the data of the purged package: %v", err)
	}
	x.remove()
	x.must("PARLEY_PURGE_DATA=yes", "dpkg", "--purge", "parley")
	if _, err := os.Stat(filepath.Dir(store)); err == nil {
		t.Error("a purge with PARLEY_PURGE_DATA=yes kept the data")
	}
}

// upgradeUnderLoad installs a newer package while a client polls and another one sends. No request fails and no
// message is lost.
func (x *cleanRoot) upgradeUnderLoad(owner *account, deb string) {
	x.t.Helper()
	l, err := owner.newPoller()
	if err != nil {
		x.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.pollUntil("the end"); err != nil {
			x.t.Errorf("poll during the upgrade: %v", err)
		}
	})
	stop, sent := make(chan struct{}), 0
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond): // a steady load that leaves time for dpkg
			}
			if _, err := owner.send(fmt.Sprint(sent)); err != nil {
				x.t.Errorf("send during the upgrade: %v", err)
				return
			}
			sent++
		}
	})
	x.must("", "dpkg", "-i", deb)
	close(stop)
	sending.Wait()
	if _, err := owner.send("the end"); err != nil {
		x.t.Error(err)
	}
	wg.Wait()
	for i, text := range l.texts {
		if text != fmt.Sprint(i) {
			x.t.Fatalf("message %d is %q", i, text)
		}
	}
	if len(l.texts) != sent || sent == 0 {
		x.t.Errorf("%d messages of %d arrived", len(l.texts), sent)
	}
	log, _ := os.ReadFile(filepath.Join(x.dir, "run/parley.log"))
	if !strings.Contains(string(log), "version=v0.9.0") {
		x.t.Errorf("the new program does not serve:\n%s", log)
	}
	config, _ := os.ReadFile(filepath.Join(x.dir, "etc/parley/parley.toml"))
	if !strings.Contains(string(config), x.at) {
		x.t.Errorf("the upgrade replaced the settings: %s", config)
	}
}

// remove removes the package, which stops the server.
func (x *cleanRoot) remove() {
	x.t.Helper()
	x.must("", "dpkg", "--remove", "parley")
	if c, err := net.Dial("tcp", x.at); err == nil {
		c.Close()
		x.t.Error("the server runs after its package was removed")
	}
}

// answerField returns a field of the answer to an operator's command.
func answerField(out, name string) string {
	for line := range strings.Lines(out) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
