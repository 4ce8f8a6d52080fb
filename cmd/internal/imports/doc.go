// Package imports runs the imports of package migration: at a running server through its control socket, into a cluster
// through the replicated log, or into the data directory of a stopped server.
package imports
