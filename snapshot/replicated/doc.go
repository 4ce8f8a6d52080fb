// Package replicated is the journal of a cluster. Every core node has a copy of all organizations. Only the leader, one
// of the core nodes, changes them. The package combines package snapshot with HashiCorp's Raft and its write-ahead log,
// raft-wal.
//
//	Append --> log entries --> Raft: log of the leader, synced --> logs of the others, synced --> quorum
//	                                                                                               |
//	           result <-- state machine <----------------------------------------------------------+
//	                          |
//	                          +--> snapshot.Store, without a sync, with the index of the entry in the same batch
//
// An append returns when a majority of the voters have synced it and the leader's store contains it. The store is not
// synced with each entry, so a crash may lose its last entries; a start applies them again from the log. A Raft
// snapshot is therefore only a small file with the index up to which the store is synced. Log entries up to this index
// can be deleted. A node that needs deleted entries receives a backup of the leader's store.
//
// Applying an entry has the same result on every node. A node stops if the hash of its journal differs from the
// leader's, or if its log or a received entry is damaged. The error names the damaged place.
package replicated
