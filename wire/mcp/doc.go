// Package mcp serves the Model Context Protocol (streamable HTTP): agents list and read channels, search, and with an
// API key that allows it send messages. It has no rules of its own.
//
//	POST /mcp ── JSON-RPC ── tool or resource ──► wire.Endpoint, as if the agent had sent that request
//	GET /mcp  ── event stream ──► queue.PollRequest of the session's event queue, parked like an event poll
//
// The contract:
//
//   - Each tool runs an endpoint of the API with the credentials of the request. So scopes, permissions and errors are
//     those of the API.
//   - A tool that changes something is off unless the key of the request has a scope with the right for it: a key with
//     all rights of an account was not made for an agent.
//   - Texts of users are marked as data. Results, sessions and subscriptions are bounded.
//   - The stream ends after one answer of the event queue, and its client opens it again. So a waiting agent costs
//     as much as a waiting event poll, and no state is lost with the connection.
//
// The official SDK for Go is built on net/http, where each stream has a goroutine and a connection of its own. The
// server parks waiting requests outside of goroutines, so this package is written from the text of the protocol.
package mcp
