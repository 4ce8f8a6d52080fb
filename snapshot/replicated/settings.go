package replicated

import (
	"time"

	"parley/actors/registry"
)

// Settings are the settings of the replicated log.
type Settings struct {
	ElectionTimeout    time.Duration
	CheckpointInterval time.Duration
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "election-timeout", Default: DefaultElectionTimeout.String(),
			Group: registry.Cluster, Value: &s.ElectionTimeout,
			Meaning: "how long a core waits for the leader before it asks for votes; longer if hosts or links are slow",
		},
		{
			Name: "checkpoint-interval", Default: DefaultCheckpointInterval.String(),
			Group: registry.Cluster, Value: &s.CheckpointInterval,
			Meaning: "time between two comparisons of the logs of all cores",
		},
	}
}
