// Command parley is a realtime team-chat server that speaks the Zulip REST and events API, with its tools.
//
// Each file defines a group of commands: serve.go the server, operator.go organizations, users and upgrades, backup.go
// and organization.go copies of data, log.go and search.go a stopped server's data, docs.go the reference pages.
package main
