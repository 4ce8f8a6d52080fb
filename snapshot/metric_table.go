package snapshot

import (
	"parley/actors/registry"
)

// Table returns the metrics of a store.
func (m Metrics) Table() []registry.Metric {
	return []registry.Metric{
		{
			Name: "parley_store_facts_total", Counter: true,
			Meaning: "Facts written to the journal.",
			Read:    func() int64 { return int64(m.Facts) },
		},
		{
			Name: "parley_store_written_bytes_total", Counter: true,
			Meaning: "Bytes of all committed batches.",
			Read:    func() int64 { return int64(m.Bytes) },
		},
		{
			Name:    "parley_store_disk_bytes",
			Meaning: "Size of the store's files.",
			Read:    func() int64 { return int64(m.Disk) },
		},
		{
			Name:    "parley_store_log_bytes",
			Meaning: "Size of the log that a start after a crash replays.",
			Read:    func() int64 { return int64(m.Log) },
		},
		{
			Name:    "parley_store_memtable_bytes",
			Meaning: "Size of the store's memtables.",
			Read:    func() int64 { return int64(m.MemTable) },
		},
		{
			Name:    "parley_store_cache_bytes",
			Meaning: "Size of the store's block cache.",
			Read:    func() int64 { return m.Cache },
		},
	}
}

// Labeled returns the metrics of a store that have a label.
func (m Metrics) Labeled() []registry.Labeled {
	return []registry.Labeled{{
		Name: "parley_realm_journal_bytes", Label: "realm",
		Meaning: "Bytes of the facts of an organization since its last snapshot.",
		Each:    registry.EachOf(m.Journal),
	}}
}
