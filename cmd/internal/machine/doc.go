// Package machine finds out what a server must know of its machine: how much memory it may use, and which process has a
// port.
package machine
