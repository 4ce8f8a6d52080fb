// Package control is the control socket of a running server: a socket in its data directory that takes the operator's
// commands.
package control
