package diskspace

import (
	"parley/actors/registry"
)

// Metrics returns the metrics of the free space.
func (d *Watcher) Metrics() []registry.Metric {
	return []registry.Metric{
		{
			Name:    "parley_disk_free_bytes",
			Meaning: "Free space of the file system with the data directory.",
			Read:    d.Free,
		},
		{
			Name:    "parley_disk_low",
			Meaning: "1 while no files are stored because the disk is almost full (disk-min-free).",
			Read:    func() int64 { return registry.OneIf(d.IsLow()) },
		},
		{
			Name:    "parley_disk_read_only",
			Meaning: "1 while every change is refused because the disk is full (disk-read-only).",
			Read:    func() int64 { return registry.OneIf(d.IsReadOnly()) },
		},
		{
			Name: "parley_disk_refused_files_total", Counter: true,
			Meaning: "Files that were not stored because the disk is full or almost full.",
			Read:    d.RefusedFiles,
		},
	}
}
