package release

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newTestRelease returns a release of this working tree in a new directory.
func newTestRelease(t *testing.T, version string) *Release {
	t.Helper()
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return &Release{Version: version, Source: source, Out: t.TempDir(), Time: time.Unix(1767225600, 0).UTC(),
		Notices: "notices"}
}

// smallProgram builds the release tool itself, in place of the program: it too has modules.
func smallProgram(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	if _, err := run(".", nil, "go", "build", "-buildvcs=false", "-o", out, "./build"); err != nil {
		t.Fatal(err)
	}
	return out
}

// pack writes everything of a release of a program for one architecture.
func (r *Release) pack(t *testing.T, program string) {
	t.Helper()
	man := []File{{Name: "parley.1", Data: ".TH PARLEY", Mode: 0o644}}
	for _, err := range []error{r.Archive("amd64", program), r.Debian("amd64", program, man), r.Chart(),
		r.Components("amd64", program), r.checksums()} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// needDpkg skips a test on machines that are not Debian's.
func needDpkg(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
}

// Two builds write the same bytes, whatever the umask of the process is.
func TestSameBytesTwice(t *testing.T) {
	needDpkg(t)
	first, second := newTestRelease(t, "v0.9.0"), newTestRelease(t, "v0.9.0")
	program := smallProgram(t)
	first.pack(t, program)
	old := syscall.Umask(0o077)
	second.pack(t, program)
	syscall.Umask(old)
	compare(t, first.Out, second.Out)
}

// compare compares all files of two directories.
func compare(t *testing.T, a, b string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(a, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(filepath.Join(b, "SHA256SUMS")); string(again) != string(sums) {
		t.Errorf("two builds differ:\n%s\n%s", sums, again)
	}
	c := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	c.Dir = b
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("the checksums are wrong: %s", out)
	}
	files, err := os.ReadDir(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "SHA256SUMS" && !strings.Contains(string(sums), "  "+f.Name()+"\n") {
			t.Errorf("%s has no checksum", f.Name())
		}
	}
}

// A package says its version in Debian's order and asks before it replaces the settings.
func TestDebianFields(t *testing.T) {
	needDpkg(t)
	r := newTestRelease(t, "v0.9.0-rc.1")
	r.pack(t, smallProgram(t))
	deb := r.path("parley_0.9.0-rc.1_amd64.deb")
	for field, want := range map[string]string{"Version": "0.9.0~rc.1", "Architecture": "amd64", "Package": "parley"} {
		if out, err := run(".", nil, "dpkg-deb", "--field", deb, field); err != nil || strings.TrimSpace(out) != want {
			t.Errorf("%s is %q, %v; want %s", field, out, err, want)
		}
	}
	if out, err := run(".", nil, "dpkg", "--compare-versions", "0.9.0~rc.1", "lt", "0.9.0"); err != nil {
		t.Errorf("the candidate is not before the release: %s %v", out, err)
	}
	list, err := run(".", nil, "dpkg-deb", "--contents", deb)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-rwxr-xr-x root/root", "./usr/bin/parley", "./etc/parley/parley.toml",
		"./usr/lib/systemd/system/parley.service", "./usr/share/man/man1/parley.1.gz", "-rw-r----- root/root"} {
		if !strings.Contains(list, want) {
			t.Errorf("the package lacks %s:\n%s", want, list)
		}
	}
}

// Files of .deploy that the manual tells operators to use are in the archive and in the package.
func TestReleaseHasTheFilesOfTheManual(t *testing.T) {
	needDpkg(t)
	r := newTestRelease(t, "v0.9.0")
	r.pack(t, smallProgram(t))
	archive, err := run(".", nil, "tar", "-tzf", r.path("parley_0.9.0_linux_amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	contents, err := run(".", nil, "dpkg-deb", "--contents", r.path("parley_0.9.0_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Source, manual))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\.deploy/([a-z-]+\.[a-z]+)|(parley-backup\.service)`)
	names := named.FindAllStringSubmatch(string(text), -1)
	if len(names) < 5 {
		t.Fatalf("the manual names only %v", names)
	}
	for _, m := range append(names, []string{"", "operating.md", ""}) {
		name := m[1] + m[2]
		if name == "compose.yml" {
			continue // it builds the program from the source
		}
		if !strings.Contains(archive, "/"+name+"\n") {
			t.Errorf("the archive lacks %s:\n%s", name, archive)
		}
		if !strings.Contains(contents, "/"+name+"\n") {
			t.Errorf("the package lacks %s:\n%s", name, contents)
		}
	}
	if !regexp.MustCompile(`-rwxr-xr-x .*/restore-drill\.sh\n`).MatchString(contents) {
		t.Errorf("the drill cannot be executed:\n%s", contents)
	}
}

// The list of components has the modules that go version -m prints, and no others of Go.
func TestComponentsAreThoseOfTheProgram(t *testing.T) {
	r, program := newTestRelease(t, "v0.9.0"), smallProgram(t)
	if err := r.Components("amd64", program); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(r.path("parley_0.9.0_linux_amd64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(data, &list); err != nil || list.BOMFormat != "CycloneDX" {
		t.Fatalf("%v: %s", err, data)
	}
	var got, want []string
	npm := 0
	for _, c := range list.Components {
		switch {
		case strings.HasPrefix(c.Purl, "pkg:npm/"):
			npm++
			if c.Version == "" || strings.Contains(c.Version, " ") {
				t.Errorf("package %s has the version %q", c.Name, c.Version)
			}
		case c.Name != "std":
			got = append(got, c.Name+" "+c.Version)
		}
	}
	out, err := run(".", nil, "go", "version", "-m", program)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
			want = append(want, f[1]+" "+f[2])
		}
	}
	if slices.Sort(got); len(want) == 0 || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("components %v\nmodules %v", got, want)
	}
	if npm == 0 {
		t.Error("the packages of the client are missing")
	}
}

// A version without a section of the changelog gets the unreleased changes.
func TestChangelogOfVersion(t *testing.T) {
	text := "# Changelog\n\n## Unreleased\n\n- new\n\n## v1.0.0\n\n- old\n\n## v0.9.0\n\n- older\n"
	for version, want := range map[string]string{"v1.0.0": "- old", "v0.9.0": "- older", "v1.1.0": "- new"} {
		got, err := sectionOf(text, version)
		if err != nil || got != "# Parley "+version+"\n\n"+want+"\n" {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
	if _, err := sectionOf("# Changelog\n", "v1.0.0"); err == nil {
		t.Error("a changelog without sections is accepted")
	}
}

// Bad versions are refused before anything is written.
func TestVersionForm(t *testing.T) {
	for _, version := range []string{"", "1.0.0", "v1", "v1.0", "v1.0.0 ", "v1.0.0-", "v1.0.0/x", "latest"} {
		if _, err := New(version, ".", t.TempDir()); err == nil || !strings.Contains(err.Error(), "v1.2.3") {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// The whole release is built twice from two directories; the program for arm64 runs under qemu-user.
func TestWholeRelease(t *testing.T) {
	if os.Getenv("RELEASE") == "" {
		t.Skip("builds every program twice; make release-check runs it")
	}
	first, second := newTestRelease(t, "v0.9.0"), newTestRelease(t, "v0.9.0")
	if err := first.Build(); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "elsewhere")
	if _, err := run(second.Source, nil, "git", "clone", "--quiet", ".", copied); err != nil {
		t.Fatal(err)
	}
	second.Source = copied
	if second.Build() != nil {
		t.Fatal("the build in a clone failed")
	}
	compare(t, first.Out, second.Out)
	arm := t.TempDir()
	if _, err := run(arm, nil, "tar", "-xzf", first.path("parley_0.9.0_linux_arm64.tar.gz"),
		"--strip-components=1"); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(arm, "parley")
	if info, err := buildinfo.ReadFile(program); err != nil || !strings.HasPrefix(info.GoVersion, "go1.") {
		t.Errorf("build information of the program: %v, %v", info, err)
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("qemu-aarch64-static is not installed (Debian package qemu-user-static): the arm64 program did not run")
	}
	data := filepath.Join(arm, "data")
	for _, c := range []struct{ args, want string }{
		{"version", "parley v0.9.0\nZulip API feature level "},
		{"realm create --name Example --owner o@example.org --data " + data, "first_message: curl "},
		{"user list --data " + data, "email=o@example.org"},
		{"backup " + filepath.Join(arm, "copy") + " --data " + data, ""},
		{"verify " + filepath.Join(arm, "copy"), ""},
	} {
		out, err := run(arm, nil, qemu, append([]string{program}, strings.Fields(c.args)...)...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("parley %s: %q, %v", c.args, out, err)
		}
	}
}
