package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// Components writes the list of components of a program in the CycloneDX format: the modules that the program itself
// names (go version -m), the Go standard library and the packages of the client in the browser.
func (r *Release) Components(arch, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	list := []cyclonedx.Component{golangComponent("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, golangComponent(m.Path, m.Version, m.Sum))
	}
	packages, err := clientPackages(r.Source)
	if err != nil {
		return err
	}
	list = append(list, packages...)
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "" // random ones differ between two builds
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.Time.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{BOMRef: "parley", Type: cyclonedx.ComponentTypeApplication, Name: "parley",
			Version: r.Version, Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256,
				Value: fmt.Sprintf("%x", sha256.Sum256(data))}}},
	}
	bom.Components = &list
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(r.path(fmt.Sprintf("parley_%s_linux_%s.cdx.json", r.number(), arch)), out.Bytes(), 0o644)
}

// golangComponent returns a module of Go. sum is the digest of its files as go.sum has it, or "".
func golangComponent(path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: url}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(raw) > 0 {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", raw)}}
	}
	return c
}

// clientPackages returns the packages of the client in the browser, which its build lists.
func clientPackages(source string) ([]cyclonedx.Component, error) {
	data, err := os.ReadFile(filepath.Join(source, "wire/web/dist/licenses.json"))
	if err != nil {
		return nil, err
	}
	var list []struct{ Name string }
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read the packages of the client: %w", err)
	}
	var out []cyclonedx.Component
	for _, p := range list {
		name, rest, _ := strings.Cut(p.Name, " ") // name 1.2.3 (npm)
		version, _, _ := strings.Cut(rest, " ")
		url := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + version
		out = append(out, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: name,
			Version: version, PackageURL: url})
	}
	return out, nil
}
