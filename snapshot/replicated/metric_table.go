package replicated

import (
	"parley/actors/registry"
)

// Metrics returns the metrics of a core's log.
func (s Status) Metrics() []registry.Metric {
	return []registry.Metric{
		{
			Name:    "parley_cluster_leader",
			Meaning: "1 while this core is the leader of its cluster.",
			Read:    func() int64 { return registry.OneIf(s.Leading) },
		},
		{
			Name:    "parley_cluster_term",
			Meaning: "Raft term that this core knows; it rises with every election.",
			Read:    func() int64 { return int64(s.Term) },
		},
		{
			Name:    "parley_cluster_applied_index",
			Meaning: "Index of the last entry of the replicated log that the store of this core contains.",
			Read:    func() int64 { return int64(s.Applied) },
		},
		{
			Name:    "parley_cluster_unapplied_entries",
			Meaning: "Committed entries of the replicated log that this core has not applied.",
			Read: func() int64 {
				return int64(s.Commit - min(s.Commit, s.Applied))
			},
		},
		{
			Name: "parley_cluster_log_entries",
			Meaning: "Entries of the replicated log after the last Raft snapshot; a start of this core reads them " +
				"again.",
			Read: func() int64 {
				return int64(s.Last - min(s.Last, s.SnapshotIndex))
			},
		},
		{
			Name: "parley_cluster_leader_silence_seconds", Scale: 1e-3,
			Meaning: "Time since the last message of the leader; 0 at the leader.",
			Read:    func() int64 { return s.Contact.Milliseconds() },
		},
		{
			Name: "parley_cluster_backups_installed_total", Counter: true,
			Meaning: "Backups of the leader that this core has installed because it was too far behind.",
			Read:    func() int64 { return s.Installs },
		},
		{
			Name: "parley_cluster_logs_compared_total", Counter: true,
			Meaning: "Comparisons of this core's log with the leader's that found no difference.",
			Read:    func() int64 { return s.Verified },
		},
		{
			Name: "parley_cluster_logs_wrong_sums_total", Counter: true,
			Meaning: "Comparisons with a wrong sum in the log although every entry of this core is intact: an older " +
				"release has written it. A damaged entry stops the core.",
			Read: func() int64 { return s.Differing },
		},
	}
}
