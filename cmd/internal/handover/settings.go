package handover

import (
	"time"

	"parley/actors/registry"
)

// Settings are the settings of upgrades.
type Settings struct {
	UpgradeTimeout time.Duration
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "upgrade-timeout", Default: "30s", Group: registry.General, Value: &s.UpgradeTimeout,
			Meaning: "how long a new program may take, during an upgrade, until it sends its first request to the " +
				"running server; one that hangs is ended then, and the running server continues",
		},
	}
}
