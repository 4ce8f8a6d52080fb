//go:build !linux

package park

// Handoff would send connections to a successor. Without epoll connections end with their answers instead.
type Handoff struct{}

// InheritHandoff returns nil.
func InheritHandoff() *Handoff { return nil }

// Close does nothing.
func (p *Handoff) Close() {}

func (p *Handoff) open() bool { return false }

func newHandoff() (*Handoff, int, error) { return nil, 0, nil }

func (s *Server) handoffTarget() *Handoff { return nil }
func (s *Server) handOffIdle()            {}
func (s *Server) handOffParked()          {}
func (s *Server) onlyUnsentAnswers() bool { return false }
