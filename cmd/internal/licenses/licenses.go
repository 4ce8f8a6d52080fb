// Package licenses has the notices of the third-party code in the program: modules, versions and license texts.
// The file notices.txt is made by `make licenses`; a test fails if the modules of the program have changed since.
package licenses

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Notices is the text that `parley licenses` prints.
//
//go:embed notices.txt
var Notices string

// licenseFile matches the names of files that a license or its notice is in.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// maxListBytes limits the list of packages that the go command prints.
const maxListBytes = 64 << 20

// Collect returns the notices of the modules that the package at a path is built from on Linux, and of Go itself.
// Equal texts are printed once. It runs the go command, which needs the modules' sources.
func Collect(dir, pkg string) (string, error) {
	modules, err := listModules(dir, pkg)
	if err != nil {
		return "", err
	}
	usedBy := map[string][]string{} // by text
	for _, m := range modules {
		if len(m.texts) == 0 {
			return "", fmt.Errorf("module %s has no license file in %s", m.name, m.dir)
		}
		for _, text := range m.texts {
			usedBy[text] = append(usedBy[text], m.name)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Parley contains code of %d other projects:\n\n", len(modules))
	for _, m := range modules {
		fmt.Fprintf(&out, "  %s\n", m.name)
	}
	texts := make([]string, 0, len(usedBy))
	for text := range usedBy {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return strings.Compare(usedBy[a][0]+"\n"+a, usedBy[b][0]+"\n"+b)
	})
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(usedBy[text], "\n"), text)
	}
	return out.String(), nil
}

// module is a module whose code is in the program.
type module struct {
	name  string // path and version
	dir   string
	texts []string // of its license files, each once
}

// listModules returns the modules of a package's dependencies by name, and Go itself.
func listModules(dir, pkg string) ([]*module, error) {
	c := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", pkg)
	c.Dir, c.Env = dir, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var failure bytes.Buffer
	c.Stderr = &failure
	list, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w: %s", pkg, err, failure.Bytes())
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go installation: %w", err)
	}
	goItself := &module{name: "The Go standard library", dir: strings.TrimSpace(string(root))}
	if err := goItself.addTexts(goItself.dir); err != nil {
		return nil, err
	}
	byPath := map[string]*module{}
	for d := json.NewDecoder(io.LimitReader(bytes.NewReader(list), maxListBytes)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := byPath[p.Module.Path]
		if m == nil {
			m = &module{name: p.Module.Path + " " + p.Module.Version, dir: p.Module.Dir}
			byPath[p.Module.Path] = m
		}
		if err := m.addTexts(p.Dir); err != nil {
			return nil, err
		}
	}
	modules, err := listPackages(dir)
	if err != nil {
		return nil, err
	}
	modules = append(modules, goItself)
	for _, m := range byPath {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.name, b.name) })
	return modules, nil
}

// clientLicenses is the file in which the build of the client in the browser lists the packages that it contains.
const clientLicenses = "wire/web/dist/licenses.json"

// listPackages returns the packages of the client in the browser.
func listPackages(dir string) (out []*module, err error) {
	data, err := os.ReadFile(filepath.Join(dir, clientLicenses))
	if err != nil {
		return nil, fmt.Errorf("list the packages of the client: %w", err)
	}
	var list []struct{ Name, Text string }
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("list the packages of the client: %s: %w", clientLicenses, err)
	}
	for _, p := range list {
		out = append(out, &module{name: p.Name, texts: []string{p.Text}})
	}
	return out, nil
}

// addTexts adds the license files in the directory of a package and in those above it in the module: code that a
// module has copied has its license beside it.
func (m *module) addTexts(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.IsDir() || !licenseFile.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return err
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if !slices.Contains(m.texts, text) {
				m.texts = append(m.texts, text)
			}
		}
		if dir == m.dir || len(dir) <= len(m.dir) {
			slices.Sort(m.texts)
			return nil
		}
	}
}
