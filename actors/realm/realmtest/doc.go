// Package realmtest runs commands in an organization held in memory and checks which events each user gets.
//
// A test starts with New and runs commands with Do, or with ExpectRefusal if they must be refused. When the test ends,
// the scene checks recovery in two ways. It replays its encoded facts into an empty organization. And it loads the rows
// of its snapshots into another one. Both must have the same rows and the same derived data as the scene, and replayed
// facts must send the same events as before.
package realmtest
