package actors

import (
	"parley/actors/delivery"
	"parley/actors/owner"
)

// SessionActors is delivery.SessionActors.
const SessionActors = delivery.SessionActors

// Limits of the server. Each one protects the process from one busy part.
const (
	// MaxInFlight is owner.MaxInFlight.
	MaxInFlight = owner.MaxInFlight
	// MaxUndelivered is how many recipients of notices may wait for the session actors before commands are rejected as
	// busy. A recipient takes 8 bytes; the limit is some seconds of work. Without it a realm could produce events
	// faster than they are delivered.
	MaxUndelivered = 4 << 20
	// TextCacheBytes is the size of the cache of message texts, in bytes.
	TextCacheBytes = 64 << 20
)
