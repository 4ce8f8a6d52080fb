// Package server builds a running chat server from its parts: the store, the actors of the organizations, the HTTP
// server, email, push notifications, the control socket and the metrics.
//
// Start takes a Config and returns a Server that accepts requests; Close stops it. Several servers can run in one
// process, each with its own data directory: the package has no global state. Concerns of the whole process (flags,
// signals, exit codes, the garbage collector) belong to cmd/parley.
//
// The order of a start matters:
//
//	listeners -> backlog (connections wait) -> store -> actors -> endpoints and background work -> HTTP server -> outbox
//
// Close stops the parts in the reverse order: first everything that accepts requests, then background work and actors,
// and last the store. A successor waits for the store.
package server
