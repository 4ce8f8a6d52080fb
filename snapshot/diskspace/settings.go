package diskspace

import (
	"parley/actors/registry"
)

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "disk-min-free", Default: "256", Group: registry.Limits, Value: &s.DiskMinFree,
			Meaning: "MiB of free disk space below which no files are stored (uploads, exports, thumbnails, " +
				"backups); " +
				"messages are still stored",
		},
		{
			Name: "disk-min-free-percent", Default: "1", Group: registry.Limits, Value: &s.DiskMinFreePercent,
			Meaning: "the same as a percentage of the file system; the larger of both counts",
		},
		{
			Name: "disk-read-only", Default: "64", Group: registry.Limits, Value: &s.DiskReadOnly,
			Meaning: "MiB of free disk space below which every change is refused with status 507, or 503 by a core " +
				"of " +
				"several, until there is space; reads and polls continue; 0: only after a write has found no space",
		},
		{
			Name: "disk-ballast", Default: "32", Group: registry.Limits, Value: &s.DiskBallast,
			Meaning: "MiB of a file that is removed when the disk is full, so that writes in progress can finish; " +
				"0: none",
		},
	}
}
