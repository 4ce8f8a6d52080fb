// Package conform checks servers and clients of the Zulip protocol, not only Parley.
//
// Run sends requests to a server as three ordinary users and compares answers, events and refusals with statements of
// the public API documentation. It needs nothing but the public API, creates only messages and one private channel, and
// skips statements that are newer than the feature level of the server.
//
// A Script is the other side: a small server that follows a script and records the reaction of a client to each answer:
// whether it acknowledges events, keeps to a requested wait, backs off, registers again, and ignores old event ids.
package conform
