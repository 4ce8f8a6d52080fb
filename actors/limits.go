package actors

import "time"

// Limits of the house; each protects the process from one busy part.
const (
	// Shards is how many session actors there are: enough that two cores never wait for one, few enough that a
	// notice to everybody is a handful of sends.
	Shards = 16
	// MaxInFlight is how many commands and views may wait for one realm before more are refused as busy: at 50,000
	// turns a second a full mailbox is a fifth of a second.
	MaxInFlight = 10000
	// MaxUndelivered is how many recipients of notices may wait for the sessions before commands are refused as busy: 8
	// bytes each, and some seconds of work. Without it a realm could tell faster than anybody can hear.
	MaxUndelivered = 4 << 20
	// SnapshotBytes and snapshotAge: the changed rows are written when the journal behind them has so many bytes, or when
	// the last snapshot is so old. So many bytes are about 45,000 messages, which are replayed in an eighth of a second
	// after a crash.
	SnapshotBytes = 4 << 20
	snapshotAge   = 5 * time.Minute
	// snapshotDelay is for how many seconds after a realm was opened no snapshot begins, unless its journal gets snapshotDelayBytes long: those
	// who all come back at once need the processors. What was replayed counts, so a server that is killed every few seconds
	// writes one too.
	snapshotDelay      = 5
	snapshotDelayBytes = 4 * SnapshotBytes
	// MaxFrozenBytes is how much of a realm's journal gathers while a successor reads the rows: enough for what is sent
	// meanwhile, little enough to be replayed in a moment. Past it rows are written, and the successor reads them again.
	MaxFrozenBytes = 8 * SnapshotBytes
	// TextCacheBytes bounds the message texts kept in memory.
	TextCacheBytes = 64 << 20
)
