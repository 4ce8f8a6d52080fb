//go:build !linux

package park

// Handoff would give connections to a successor; here they end with their answers instead.
type Handoff struct{}

// InheritHandoff finds none.
func InheritHandoff() *Handoff { return nil }

// Close has nothing to end.
func (p *Handoff) Close() {}

func (p *Handoff) open() bool { return false }

func newHandoff() (*Handoff, int, error) { return nil, 0, nil }

func (s *Server) handoffTarget() *Handoff { return nil }
func (s *Server) handOffIdle()         {}
func (s *Server) handOffParked()      {}
func (s *Server) onlyUnsentAnswers() bool        { return false }
