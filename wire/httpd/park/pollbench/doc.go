// Package pollbench measures a server of long polls against two others. The lower bound is a bare epoll loop that
// knows only where an HTTP request ends: nothing that speaks HTTP over TCP can cost less. The other is an ordinary
// server: a fasthttp handler that blocks until there is an answer.
//
//	Measure (test process)
//	   |  starts this binary again, twice
//	   +---> server process:  parks polls, publishes, measures itself ---> Report as JSON
//	   +---> client process:  N connections, each polls again after every answer
//
// Server and clients run in one process each, so that the memory and processor time of the server are its own. Both are
// the same binary started again: call RunRole first in main or TestMain. Compare only figures of one batch, measured
// alternately on one machine.
package pollbench
