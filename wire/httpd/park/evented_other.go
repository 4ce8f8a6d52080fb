//go:build !linux

package park

import (
	"errors"
	"net"
)

// Without epoll, every connection has its own goroutine.

const canEvent = false

type evented struct{}

type eventConn struct{}

// Park is never called: without epoll, no fast path gets requests.
func (q *FastRequest) Park(*Parked, Gone, []byte)       { panic("BUG: fast path without epoll") }
func (q *FastRequest) ParkStream(*Parked, Gone, []byte) { panic("BUG: fast path without epoll") }
func (q *FastRequest) Remember(*Memo, int, int)         { panic("BUG: fast path without epoll") }

// ParkBriefly is never called, likewise.
func (q *FastRequest) ParkBriefly(*Parked, []byte) { panic("BUG: fast path without epoll") }

func (s *Server) acceptEvented(ln *net.TCPListener) error { return s.acceptBlocking(ln) }
func (s *Server) sweepEvented(int64)                      {}
func (s *Server) closeIdleEvented()                       {}
func (s *Server) dropParkedEvented()                      {}
func (s *Server) abortEvented()                           {}
func (s *Server) closeEvented()                           {}

// isTemporary treats every error as temporary, except that of a closed listener.
func isTemporary(err error) bool { return !errors.Is(err, net.ErrClosed) }

// openFileLimit is a guess; set MaxConns for another value.
func openFileLimit() int { return 10_240 }
