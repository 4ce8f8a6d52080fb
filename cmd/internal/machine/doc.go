// Package machine finds out the facts a server needs about its machine: how much memory it may use, and which process
// has a port.
package machine
