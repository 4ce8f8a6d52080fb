// Command parley runs a realtime team-chat server that speaks the Zulip REST and events API, and the tools for its
// operators.
//
// Each file defines a group of commands: serve.go runs the server, operator.go manages organizations and users and
// upgrades the server, cluster.go manages a cluster, backup.go and organization.go back up, export and import data,
// log.go and search.go inspect the data of a stopped server, docs.go writes the reference pages.
package main
