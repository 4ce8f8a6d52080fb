// Package realmtest runs commands in an organization held in memory and checks which events each user gets.
//
// A test starts with New and runs commands with Do, or with ExpectRefusal if they must be refused. When the test ends,
// the scene checks recovery in three ways. A follower applies the encoded batch of each turn. An empty organization
// replays all batches. Another one loads the rows of the scene's snapshots. All must have the same rows and the same
// derived data as the scene, and facts must send the same events everywhere.
package realmtest
