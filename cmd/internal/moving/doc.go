// Package moving moves organizations of other chat servers into a data directory.
//
//	archive --> format (wire/imports/...) --> records --> messages sorted on disk --> rendered in batches
//	                                             |                                        |
//	                                             v                                        v
//	                                  rows of a realm.Import                 texts in the store, rows in a file
//	                                             +------------------ commit -------------+
//
// The organization becomes visible at one moment, with the commit of its rows. Before, its texts and files are stored
// under a number that no organization has. An import that is interrupted continues when the same command runs again:
// a log names the texts and files that are stored already, so only reading and sorting are repeated. The result is the
// same as without the interruption, because everything random is derived from the server's secret.
//
// Memory: the sorters share Options.Memory. Users, channels, subscriptions, topics and files (not their contents) are
// in memory, messages are not. A server that then serves the organization loads its rows like those of any other.
package moving
