package logs

import (
	"parley/actors/registry"
)

// Settings are the settings of the log.
type Settings struct {
	LogLevel string
	LogJSON  bool
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "log-level", Default: "info", Group: registry.Log, Value: &s.LogLevel,
			Meaning: "debug, info, warn or error",
		},
		{
			Name: "log-json", Default: "false", Group: registry.Log, Value: &s.LogJSON,
			Meaning: "write the log as JSON lines",
		},
	}
}
