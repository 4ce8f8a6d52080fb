package logs

import (
	"log/slog"

	"parley/actors/registry"
)

// Bounds returns the bounds of a log that New has made.
func Bounds(log *slog.Logger) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "log_lines",
			Of:       "lines per minute of one text of warnings or errors in the log",
			Overflow: "suppressed and counted: attribute suppressed",
			Reason:   "an error for every message would fill the disk",
			Limit:    registry.Constant(MaxLinesPerMinute),
			Hits:     func() int64 { return Suppressed(log) },
			Whole:    "it limits the log and refuses nothing",
		},
	}
}
