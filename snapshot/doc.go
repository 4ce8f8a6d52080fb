// Package snapshot is the disk of Parley: the journal of facts, the rows of snapshots, and message bodies, in one
// Pebble store. It also makes backups, checkpoints for upgrades, and exports of organizations.
//
//	turn ─▶ Append ─▶ journal records (facts), bodies ─┐
//	         one synced batch for many entries         ├─▶ Pebble ─▶ failStopFS ─▶ disk
//	snapshot ─▶ Snapshot ─▶ rows; deletes old records ─┘
//	start ◀─ Claim, Rows (state at the last snapshot), Tail (facts after it)
//
// Store moves bytes and does not know what they mean. Disk is a Store with the types of package realm; package codec
// encodes them.
//
// The contract:
//
//   - A realm is claimed before it is written. Claim raises the realm's epoch. An Append or Snapshot with an older
//     epoch, or that does not follow the last number, is rejected as a whole with ErrMoved.
//   - Append returns nil for an entry only when its facts and bodies are on stable storage.
//   - A failed write or sync is final. The store has failed, every later write returns ErrFailed, and nothing is tried
//     again: after a failed sync it is unknown what the disk has. The process should end and recover by opening the
//     store. A write that finds no space is no failure: it waits for space (see space.go).
//   - Every journal record has a checksum and the hash of the record before it; every row and body has a checksum. All
//     are verified at every read. A mismatch is a *DamageError that names its place.
//   - A snapshot is visible completely or not at all, at whatever moment a crash happens.
//   - With Options.Kept, the newest facts stay in the journal although the rows include them, and the record at the
//     number of the rows must have the hash that the snapshot state names. Disk.Follow reads from any kept fact
//     and continues with the live stream.
//   - Slices given to callbacks are valid only during the call.
//
// A data directory contains LOCK (one process at a time), store (Pebble's files), ballast (space in reserve) and
// watermark, the durability manifest: what was durable at some moment, so that a store that lost its newest data is
// detected (see durability.go).
package snapshot
