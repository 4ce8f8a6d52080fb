//go:build !linux

package park

import "net"

// Backlog takes connections before there is a server for them; here they wait in the socket's backlog.
type Backlog struct{}

// Hold takes nothing.
func CollectBacklog(int, ...net.Listener) (*Backlog, error) { return &Backlog{}, nil }

// Receive has nobody to take.
func (r *Backlog) ReceiveHandoff(*Handoff) {}

// Held is how many connections wait.
func (r *Backlog) Len() int { return 0 }

// Admit has nobody to serve.
func (s *Server) ServeBacklog(*Backlog) error { return nil }
