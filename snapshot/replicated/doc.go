// Package replicated is the journal of several core nodes: each has a copy of all organizations, and one of them, the
// leader, may change them. It puts package snapshot on top of HashiCorp's Raft and its log, raft-wal.
//
//	Append --> log entries --> Raft: log of the leader, synced --> logs of the others, synced --> quorum
//	                                                                                               |
//	           result <-- state machine <----------------------------------------------------------+
//	                          |
//	                          +--> snapshot.Store, without a sync, with the index of the entry in the same batch
//
// An append is answered when a majority of the voters have synced it and the leader's store contains it. The store may
// lose its last entries in a crash: the log has them. So a Raft snapshot is only a note that the store has synced the
// log up to an index; the log up to there can be deleted. A node that needs older entries gets a backup of a store.
//
// Every node comes to the same result for an entry. A node whose journal has another hash than the leader's, or whose
// log or stream is damaged, stops and names the place.
package replicated
