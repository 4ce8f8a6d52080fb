// Package migration imports organizations of other chat servers into a data directory, and exports organizations and
// the data of single users.
//
//	archive --> format (wire/imports/...) --> records --> messages sorted on disk --> rendered in batches
//	                                             |                                        |
//	                                             v                                        v
//	                                  rows of a realm.Import                 texts in the store, rows in a file
//	                                             +------------------ commit -------------+
//
// An import becomes visible at one moment, with the commit of its rows. Until then its texts and files are stored under
// a reserved realm number. An interrupted import continues when the same command runs again: a progress log lists the
// texts and files that are already stored, so only reading and sorting are repeated. The result is the same as without
// the interruption, because all random values are derived from the server's secret.
//
// The sorters share Options.Memory. The metadata of users, channels, subscriptions, topics and files is in memory;
// messages are not.
package migration
