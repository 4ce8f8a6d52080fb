package owner

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of owners. longestJournal returns the bytes of the longest journal, and snapshots how many
// were written.
func Bounds(longestJournal, snapshots func() int64) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "presence_rows",
			Of:       "rows of presence that are stored at once between snapshots",
			Overflow: "the others follow 5 seconds later",
			Reason:   "they must not delay the journal",
			Limit:    registry.Constant(MaxPresenceRows),
			Whole:    "the others follow 5 seconds later",
		},
		{
			Name:     "journal_bytes",
			Of:       "bytes of the longest journal since its snapshot",
			Overflow: "a snapshot is written; in the first seconds after a start only at four times the limit",
			Reason:   "about 45,000 messages, which a start after a crash replays in an eighth of a second",
			Limit:    registry.Constant(SnapshotBytes),
			Used:     longestJournal,
			Hits:     snapshots,
			Whole:    "it starts a snapshot and refuses nothing",
		},
	}
}
