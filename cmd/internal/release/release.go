package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Architectures are those for which a release has a program, in the words of Go and of Debian.
var Architectures = []string{"amd64", "arm64"}

// Release is one version of the program.
type Release struct {
	Version string    // such as v1.2.3
	Source  string    // directory of the working tree
	Out     string    // directory for the files of the release; its former content is removed
	Time    time.Time // of all files in archives: the time of the commit
	Notices string    // licenses of the third-party code
}

// versionForm is the form of versions: that of Go modules. Debian's order of versions is the same if a version before
// the release is written with a tilde.
var versionForm = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

// number returns the version without the leading v.
func (r *Release) number() string { return strings.TrimPrefix(r.Version, "v") }

// New returns the release of the working tree at source with the time of its last commit.
func New(version, source, out string) (*Release, error) {
	if !versionForm.MatchString(version) {
		return nil, fmt.Errorf("VERSION must have the form v1.2.3 or v1.2.3-rc.1, not %q", version)
	}
	text, err := run(source, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, fmt.Errorf("find the time of the commit: %w", err)
	}
	at, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("find the time of the commit: %w", err)
	}
	return &Release{Version: version, Source: source, Out: out, Time: time.Unix(at, 0).UTC()}, nil
}

// Build writes all files of the release to Out.
func (r *Release) Build() error {
	if err := os.RemoveAll(r.Out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return err
	}
	changes, err := r.changes()
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path("CHANGELOG.md"), []byte(changes), 0o644); err != nil {
		return err
	}
	programs := map[string]string{}
	for _, arch := range Architectures {
		if programs[arch], err = r.Program(arch); err != nil {
			return err
		}
	}
	host := programs[runtime.GOARCH]
	if host == "" {
		return fmt.Errorf("build a release on one of %v, not on %s", Architectures, runtime.GOARCH)
	}
	man, err := r.manPages(host)
	if err != nil {
		return err
	}
	for _, arch := range Architectures {
		if err := r.publish(arch, programs[arch], man); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	if err := r.Chart(); err != nil {
		return err
	}
	return r.checksums()
}

// publish writes the archive, the package and the list of components of one architecture, and removes the program
// itself.
func (r *Release) publish(arch, program string, man []File) error {
	if err := r.Archive(arch, program); err != nil {
		return err
	}
	if err := r.Debian(arch, program, man); err != nil {
		return err
	}
	if err := r.Components(arch, program); err != nil {
		return err
	}
	return os.Remove(program)
}

// Program builds the static program for an architecture and returns its path.
func (r *Release) Program(arch string) (string, error) {
	out := r.path("parley-" + arch)
	// The build id is a digest of the inputs; without it, linkers that differ only in their path write the same file.
	// Go finds the commit in a clone, but not in a linked worktree or an unpacked archive: the version names it.
	_, err := run(r.Source, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS=-trimpath"},
		"go", "build", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.Version, "-o", out,
		"./cmd/parley")
	if err != nil {
		return "", fmt.Errorf("build the program for %s: %w", arch, err)
	}
	return out, nil
}

// manual is the operator's manual in the source.
const manual = ".github/docs/operating.md"

// Archive writes the archive of an architecture: the program with its notices, manual, units and the container file.
func (r *Release) Archive(arch, program string) error {
	name := fmt.Sprintf("parley_%s_linux_%s", r.number(), arch)
	files := []File{{Name: "parley", Source: program, Mode: 0o755}, {Name: "NOTICES", Data: r.Notices}}
	for _, f := range []string{"LICENSE", "README.md", manual, ".deploy/parley.service", ".deploy/parley-core.conf",
		".deploy/parley.socket", ".deploy/parley-backup.service", ".deploy/parley.toml", ".deploy/Containerfile",
		".deploy/alerts.yml", ".deploy/dashboard.json", ".deploy/restore-drill.sh"} {
		if _, err := os.Stat(filepath.Join(r.Source, f)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		files = append(files, File{Name: filepath.Base(f), Source: filepath.Join(r.Source, f), Mode: modeOf(f)})
	}
	return r.writeArchive(name+".tar.gz", name, files)
}

// chartVersion replaces the version in the description of the chart.
var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// Chart writes the archive of the Helm chart, whose version is that of the program.
func (r *Release) Chart() error {
	root := filepath.Join(r.Source, ".deploy/chart")
	var files []File
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		files = append(files, File{Name: name, Source: path, Mode: 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	for i := range files {
		if files[i].Name == "Chart.yaml" {
			text, err := os.ReadFile(files[i].Source)
			if err != nil {
				return err
			}
			files[i].Data, files[i].Source = chartVersion.ReplaceAllString(string(text), "${1}: "+r.number()), ""
		}
	}
	return r.writeArchive(fmt.Sprintf("parley-chart-%s.tgz", r.number()), "parley", files)
}

// manPages returns the man pages that a program writes.
func (r *Release) manPages(program string) (files []File, err error) {
	dir, err := os.MkdirTemp("", "parley-man")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := run(dir, nil, program, "docs", "man", dir); err != nil {
		return nil, fmt.Errorf("write the man pages: %w", err)
	}
	pages, err := os.ReadDir(dir)
	for _, p := range pages {
		text, err := os.ReadFile(filepath.Join(dir, p.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: p.Name(), Data: string(text), Mode: 0o644})
	}
	return files, err
}

// changes returns the section of the changelog for the version; a version without one gets the unreleased changes.
func (r *Release) changes() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.Source, ".github/CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	return sectionOf(string(text), r.Version)
}

// sectionOf returns the section of a version in a changelog, or else the section "Unreleased" under the version's name.
func sectionOf(changelog, version string) (string, error) {
	for _, name := range []string{version, "Unreleased"} {
		_, rest, ok := strings.Cut(changelog, "\n## "+name+"\n")
		if !ok {
			continue
		}
		section, _, _ := strings.Cut(rest, "\n## ")
		return "# Parley " + version + "\n\n" + strings.TrimSpace(section) + "\n", nil
	}
	return "", fmt.Errorf("the changelog has neither a section %q nor one %q", version, "Unreleased")
}

// checksums writes SHA256SUMS for all files of the release, in the form that sha256sum -c reads.
func (r *Release) checksums() error {
	files, err := os.ReadDir(r.Out)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, f := range files {
		sum, err := fileSum(r.path(f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(r.path("SHA256SUMS"), []byte(out.String()), 0o644)
}

func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

func (r *Release) path(name string) string { return filepath.Join(r.Out, name) }

// run executes a command in a directory and returns its standard output. The error has its standard error.
func run(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, slices.Concat(os.Environ(), env)
	var failure strings.Builder
	c.Stderr = &failure
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(failure.String()))
	}
	return string(out), nil
}
