package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/BurntSushi/toml"

	"parley/cmd/internal/server"
)

// readSettings returns the settings of a server. They come from the defaults, then from the TOML file, then from
// environment variables, then from flags: the last source that has a value wins. file may be empty; flags has the
// values given on the command line by the name of the setting. given has the names of the settings that a source has.
func readSettings(file string, flags map[string]string) (s server.Settings, given map[string]bool, err error) {
	s, given = server.DefaultSettings(), map[string]bool{}
	if file != "" {
		if err := readFile(&s, file, given); err != nil {
			return s, given, err
		}
	}
	for _, x := range s.Table() {
		if text, ok := os.LookupEnv(x.Env()); ok {
			given[x.Name] = true
			if err := x.Set(text); err != nil {
				return s, given, fmt.Errorf("%s: %w", x.Env(), err)
			}
		}
		if text, ok := flags[x.Name]; ok {
			given[x.Name] = true
			if err := x.Set(text); err != nil {
				return s, given, fmt.Errorf("--%s: %w", x.Name, err)
			}
		}
	}
	return s, given, s.Check(func(name string) bool { return given[name] })
}

// readFile reads the settings of a TOML file into s and records their names in given.
func readFile(s *server.Settings, file string, given map[string]bool) error {
	var values map[string]toml.Primitive
	meta, err := toml.DecodeFile(file, &values)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	for _, x := range s.Table() {
		value, ok := values[x.Name]
		if !ok {
			continue
		}
		delete(values, x.Name)
		if err := meta.PrimitiveDecode(value, x.Value); err != nil {
			return fmt.Errorf("read configuration: %s: %s: %w", file, x.Name, err)
		}
		given[x.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		return fmt.Errorf("%s: unknown setting %q", file, name)
	}
	return nil
}
