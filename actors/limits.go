package actors

import (
	"time"

	"parley/actors/delivery"
)

// SessionActors is delivery.SessionActors.
const SessionActors = delivery.SessionActors

// Limits of the server. Each one protects the process from one busy part.
const (
	// MaxInFlight is how many commands and views of one realm may be in progress. Further ones are rejected as busy. At
	// 50,000 turns a second a full mailbox is a fifth of a second of work.
	MaxInFlight = 10000
	// MaxUndelivered is how many recipients of notices may wait for the session actors before commands are rejected as
	// busy. A recipient takes 8 bytes; the limit is some seconds of work. Without it a realm could produce events
	// faster than they are delivered.
	MaxUndelivered = 4 << 20
	// SnapshotBytes is the journal size, in bytes, at which the changed rows are written. That is about 45,000
	// messages, which are replayed in an eighth of a second after a crash.
	SnapshotBytes = 4 << 20
	// snapshotAge is how old a snapshot gets before the next one, if there are new facts.
	snapshotAge = 5 * time.Minute
	// snapshotDelay is for how many seconds after a realm was opened no snapshot begins: the clients that reconnect
	// need the processors. A journal of snapshotDelayBytes ends the delay. Replayed facts count, so a server that is
	// killed every few seconds writes snapshots too.
	snapshotDelay      = 5
	snapshotDelayBytes = 4 * SnapshotBytes
	// MaxFrozenBytes is how large the journal of a realm may get while a successor process reads the rows. That is
	// enough for the messages of that time, and little enough to be replayed quickly. Beyond it the rows are written,
	// and the successor reads them again.
	MaxFrozenBytes = 8 * SnapshotBytes
	// presenceInterval is the age, in seconds, at which changed presence is stored between snapshots, without a sync.
	// It is checked every 5 s and on disk a second later, so a crash loses the presence of 31 s. Clients show a user
	// whose last contact is 140 s old as idle, so no user seems to have left.
	presenceInterval = 25
	// MaxPresenceRows is how many rows of presence are stored at once: half a megabyte. If more have changed, the next
	// ones follow 5 s later. An organization with more than 60,000 users online may lose older presence.
	MaxPresenceRows = 10_000
	// TextCacheBytes is the size of the cache of message texts, in bytes.
	TextCacheBytes = 64 << 20
)
