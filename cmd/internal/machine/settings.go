package machine

import (
	"time"

	"parley/actors/registry"
)

// Settings are the settings of memory.
type Settings struct {
	MemoryLimit   int
	AnswerMemory  int
	UnackedMemory int
	ReplicaMemory int
	// AwakeOrganizations limits the organizations in memory; 0: by memory-limit. SleepAfter is how long one without
	// requests stays there; 0: for ever.
	AwakeOrganizations int
	SleepAfter         time.Duration
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "memory-limit", Default: "0", Group: registry.Limits, Value: &s.MemoryLimit,
			Meaning: "MiB of memory that the server tries not to exceed; 0: GOMEMLIMIT, or nine tenths of the " +
				"smallest " +
				"limit of its control groups and the machine's memory",
		},
		{
			Name: "answer-memory", Default: "0", Group: registry.Limits, Value: &s.AnswerMemory,
			Meaning: "MiB of memory for answers that are being built or that clients have not received; one account " +
				"can " +
				"use an eighth; 0: an eighth of memory-limit, at most 128",
		},
		{
			Name: "unacked-memory", Default: "0", Group: registry.Limits, Value: &s.UnackedMemory,
			Meaning: "MiB of memory for events that clients have not acknowledged; one organization can use half, " +
				"one account a sixteenth; 0: a quarter of memory-limit, at most 1024",
		},
		{
			Name: "sleep-after", Default: "15m", Group: registry.Limits, Value: &s.SleepAfter,
			Meaning: "time without requests after which an organization leaves memory, until it is needed again; 0: " +
				"never; in a cluster from rule level 5 on; edges have max-replicas",
		},
		{
			Name: "awake-organizations", Default: "0", Group: registry.Limits, Value: &s.AwakeOrganizations,
			Meaning: "organizations in memory beyond which those without requests leave it after half a minute; 0: " +
				"half of memory-limit, with 256 KiB for each",
		},
		{
			Name: "replica-memory", Default: "0", Group: registry.Cluster, Value: &s.ReplicaMemory,
			Meaning: "MiB of loaded rows of all organizations that an edge has in memory, beyond which it loads no " +
				"other " +
				"one; 0: a quarter of memory-limit",
		},
	}
}
