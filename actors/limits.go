package actors

import (
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
	// TextCacheBytes is the size of the cache of message texts, in bytes.
	TextCacheBytes = 64 << 20
)
