package integrations

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// included are the services that every server knows.
//
//go:embed services
var included embed.FS

// maxFile bounds the size of one file, in bytes. The largest included one has a tenth.
const maxFile = 256 << 10

var serviceName = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// Set is the services of a server, by name.
type Set struct {
	byName map[string]*Service
	names  []string // sorted
}

// Included returns the services that are part of the program. A test compiles the templates of all.
func Included() (*Set, error) {
	files, err := fs.Sub(included, "services")
	if err != nil {
		return nil, err
	}
	return new(Set).with(files, false)
}

// With returns a set that also has the services of an operator's directory, which replace those of the same name. An
// error names the file, and the line where that is known.
func (s *Set) With(files fs.FS) (*Set, error) { return s.with(files, true) }

func (s *Set) with(files fs.FS, check bool) (*Set, error) {
	entries, err := fs.Glob(files, "*.toml")
	if err != nil {
		return nil, err
	}
	return s.add(files, entries, check)
}

// add returns a set that also has the services of some files. With check, an error in a template is found now; without
// it, templates are compiled when their service is first used, because most servers use few services.
func (s *Set) add(files fs.FS, entries []string, check bool) (*Set, error) {
	out := &Set{byName: map[string]*Service{}}
	for name, service := range s.byName {
		out.byName[name] = service
	}
	shared, err := sharedTemplates(files)
	if err != nil {
		return nil, err
	}
	for _, file := range entries {
		text, err := readFile(files, file)
		if err != nil {
			return nil, err
		}
		service, err := parseService(strings.TrimSuffix(file, ".toml"), text, shared)
		if err == nil && check {
			_, err = service.compile(shared)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out.byName[service.Name] = service
	}
	for name := range out.byName {
		out.names = append(out.names, name)
	}
	slices.Sort(out.names)
	return out, nil
}

// sharedTemplates returns a program with the templates of the .tmpl files: those of the program, and those of the
// directory, which replace files of the same name.
func sharedTemplates(files fs.FS) (*program, error) {
	own, err := fs.Sub(included, "services")
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, in := range []fs.FS{own, files} {
		names, err := fs.Glob(in, "*.tmpl")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if texts[name], err = readFile(in, name); err != nil {
				return nil, err
			}
		}
	}
	shared := newProgram()
	for name, text := range texts {
		if err := shared.add("shared "+name, text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return shared, nil
}

func readFile(files fs.FS, name string) (string, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s: the file has %d bytes; at most %d are allowed", name, info.Size(), maxFile)
	}
	text, err := fs.ReadFile(files, name)
	return string(text), err
}

// parseService reads a service from the text of its file. shared has the templates that it can use. Errors name the
// line, or the template and its line.
func parseService(name, text string, shared *program) (*Service, error) {
	if !serviceName.MatchString(name) {
		return nil, errors.New("the name of the file must have 1 to 40 small letters, digits and _, before .toml")
	}
	s := &Service{}
	meta, err := toml.Decode(text, s)
	if err != nil {
		return nil, tomlError(err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("unknown key %q", unknown[0])
	}
	s.Name = name
	s.Body = cmp.Or(s.Body, bodyJSON)
	s.Client = cmp.Or(s.Client, "Zulip"+capital(name)+"Webhook")
	s.Webhook = cmp.Or(s.Webhook, strings.TrimSuffix(strings.TrimPrefix(s.Client, "Zulip"), "Webhook"))
	s.Invalid = cmp.Or(s.Invalid, "Malformed JSON")
	switch {
	case s.Display == "":
		return nil, errors.New("display is missing")
	case !slices.Contains([]string{bodyJSON, bodyForm, bodyXML, bodyText}, s.Body):
		return nil, fmt.Errorf("body is %q; it must be json, form, xml or text", s.Body)
	case s.Parameter != "" && s.Body != bodyForm:
		return nil, errors.New(`parameter needs body = "form"`)
	case len(s.Events) == 0:
		return nil, errors.New("there is no [[events]]")
	}
	for _, o := range s.Options {
		if o.Key == "" || o.Type != "" && o.Type != "text" && o.Type != "checkbox" {
			return nil, fmt.Errorf("option %q: a key is needed, and the type must be text or checkbox", o.Key)
		}
	}
	if s.Signature != nil {
		if err := s.Signature.check(); err != nil {
			return nil, err
		}
	}
	if err := s.index(); err != nil {
		return nil, err
	}
	s.program = sync.OnceValue(func() *program {
		p, err := s.compile(shared)
		if err != nil {
			panic("BUG: a checked service does not compile: " + s.Name + ": " + err.Error())
		}
		return p
	})
	return s, nil
}

// tomlError returns an error of the TOML library with its line.
func tomlError(err error) error {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
	}
	return err
}

// One returns a set that also has the service of one file of a folder. The templates beside the file are available to
// it.
func (s *Set) One(files fs.FS, file string) (*Set, error) {
	return s.add(files, []string{file}, true)
}

// Names returns the names of all services, sorted.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Find returns a service, or nil.
func (s *Set) Find(name string) *Service { return s.byName[name] }
