// Package backup writes backups of a data directory: of a running server through its control socket, or of a stopped
// one.
package backup
