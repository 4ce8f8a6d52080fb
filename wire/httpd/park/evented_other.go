//go:build !linux

package park

import (
	"errors"
	"net"
)

// Where there is no epoll every connection has its blocked goroutine.

const canEvent = false

type evented struct{}

type eventConn struct{}

// Park is never called: there is nobody to offer a quick request.
func (q *FastRequest) Park(*Parked, Gone, []byte) { panic("BUG: quick request without an epoll") }
func (q *FastRequest) Remember(*Memo, int, int)   { panic("BUG: quick request without an epoll") }

// Hold is never called either.
func (q *FastRequest) ParkBriefly(*Parked, []byte) { panic("BUG: quick request without an epoll") }

func (s *Server) acceptEvented(ln *net.TCPListener) error { return s.acceptBlocking(ln) }
func (s *Server) sweepEvented(int64)                      {}
func (s *Server) closeIdleEvented()                       {}
func (s *Server) dropParkedEvented()                      {}
func (s *Server) abortEvented()                             {}
func (s *Server) closeEvented()                           {}

// temporary guesses: a listener that is closed says so, everything else is tried again.
func isTemporary(err error) bool { return !errors.Is(err, net.ErrClosed) }

// fileLimit is a guess too; set MaxConns.
func openFileLimit() int { return 10_240 }
