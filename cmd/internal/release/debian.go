package release

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Debian writes the Debian package of an architecture. dpkg-deb packs it: it knows the format, and every machine that
// can test the package has it.
func (r *Release) Debian(arch, program string, man []File) error {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return errors.New("dpkg-deb is not installed (Debian package dpkg)")
	}
	dir, err := os.MkdirTemp("", "parley-deb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := r.debianFiles(program, man)
	if err != nil {
		return err
	}
	var size int
	var sums strings.Builder
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		if err := writeMode(filepath.Join(dir, f.Name), data, os.FileMode(f.Mode)); err != nil {
			return err
		}
		size += (len(data) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(data), f.Name) // dpkg --verify reads no other digest
	}
	control, err := os.ReadFile(r.deploy("debian/control"))
	if err != nil {
		return err
	}
	fields := strings.NewReplacer("@VERSION@", r.debianVersion(), "@ARCH@", arch, "@SIZE@", fmt.Sprint(size))
	parts := map[string]string{"control": fields.Replace(string(control)), "md5sums": sums.String(),
		"conffiles": "/etc/parley/parley.toml\n"}
	for name, text := range parts {
		if err := writeMode(filepath.Join(dir, "DEBIAN", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		text, err := os.ReadFile(r.deploy("debian/" + name))
		if err != nil {
			return err
		}
		if err := writeMode(filepath.Join(dir, "DEBIAN", name), text, 0o755); err != nil {
			return err
		}
	}
	// Folders too have modes that the umask does not change.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("parley_%s_%s.deb", r.number(), arch)
	_, err = run(dir, []string{fmt.Sprint("SOURCE_DATE_EPOCH=", r.Time.Unix())},
		"dpkg-deb", "--build", "--root-owner-group", "-Zgzip", dir, r.path(name))
	return err
}

// debianVersion returns the version in Debian's order: 1.2.3~rc.1 is before 1.2.3.
func (r *Release) debianVersion() string { return strings.Replace(r.number(), "-", "~", 1) }

func (r *Release) deploy(name string) string { return filepath.Join(r.Source, ".deploy", name) }

// debianFiles returns the files that the package installs, sorted by name.
func (r *Release) debianFiles(program string, man []File) ([]File, error) {
	files := []File{
		{Name: "usr/bin/parley", Source: program, Mode: 0o755},
		{Name: "etc/parley/parley.toml", Source: r.deploy("parley.toml"), Mode: 0o640},
		{Name: "usr/share/doc/parley/copyright", Source: filepath.Join(r.Source, "LICENSE"), Mode: 0o644},
		{Name: "usr/share/doc/parley/NOTICES", Data: r.Notices, Mode: 0o644},
		{Name: "usr/share/doc/parley/operating.md", Source: filepath.Join(r.Source, manual), Mode: 0o644},
	}
	// The manual names them in .deploy.
	for _, name := range []string{"parley-core.conf", "alerts.yml", "dashboard.json", "restore-drill.sh"} {
		files = append(files, File{Name: "usr/share/doc/parley/" + name, Source: r.deploy(name), Mode: modeOf(name)})
	}
	for _, unit := range []string{"parley.service", "parley.socket", "parley-backup.service"} {
		text, err := os.ReadFile(r.deploy(unit))
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: "usr/lib/systemd/system/" + unit, Mode: 0o644,
			Data: strings.ReplaceAll(string(text), "/usr/local/bin/", "/usr/bin/")})
	}
	changes, err := r.changes()
	if err != nil {
		return nil, err
	}
	zipped, err := zip(changes)
	if err != nil {
		return nil, err
	}
	files = append(files, File{Name: "usr/share/doc/parley/changelog.gz", Data: zipped, Mode: 0o644})
	for _, f := range man {
		if zipped, err = zip(f.Data); err != nil {
			return nil, err
		}
		files = append(files, File{Name: "usr/share/man/man1/" + f.Name + ".gz", Data: zipped, Mode: 0o644})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// modeOf returns the mode of a file of .deploy in archives and packages: scripts are executable.
func modeOf(name string) int64 {
	if strings.HasSuffix(name, ".sh") {
		return 0o755
	}
	return 0o644
}

// zip returns the text compressed without a time or name.
func zip(text string) (string, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return "", err
	}
	err = w.Close()
	return b.String(), err
}

// writeMode writes a file with a mode that the umask does not change, and creates the folders above it.
func writeMode(name string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name, data, mode); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}
