package webapp

import (
	"parley/actors/registry"
)

// Settings are the settings of the web app.
type Settings struct {
	WebDir         string
	WebDirAnyLevel bool
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "web-dir", Group: registry.General, Value: &s.WebDir,
			Meaning: "directory with an unpacked official release, whose web app is the start page of every " +
				"organization",
		},
		{
			Name: "web-dir-any-level", Default: "false", Group: registry.General, Value: &s.WebDirAnyLevel,
			Meaning: "serve the web app of web-dir even if this server does not know its feature level; it may not " +
				"load",
		},
	}
}
