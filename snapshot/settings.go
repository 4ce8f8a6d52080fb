package snapshot

import (
	"parley/actors/registry"
)

// Settings are the settings of the store.
type Settings struct {
	NoSync         bool
	AcceptDataLoss bool
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "unsafe-no-sync", Default: "false", Group: registry.General, Value: &s.NoSync,
			Meaning: "acknowledge before data is on disk: A CRASH LOSES ACKNOWLEDGED MESSAGES; for measurements only",
		},
		{
			Name: "accept-data-loss", Default: "false", Group: registry.General, Value: &s.AcceptDataLoss,
			Meaning: "start although stored messages are missing; parley log check lists them, and a backup may " +
				"have them",
		},
	}
}
