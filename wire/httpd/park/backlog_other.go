//go:build !linux

package park

import "net"

// Backlog would accept connections before there is a server for them. Without epoll they wait in the kernel
// instead.
type Backlog struct{}

// CollectBacklog accepts nothing.
func CollectBacklog(int, ...net.Listener) (*Backlog, error) { return &Backlog{}, nil }

// ReceiveHandoff does nothing.
func (b *Backlog) ReceiveHandoff(*Handoff) {}

// Len returns 0.
func (b *Backlog) Len() int { return 0 }

// ServeBacklog does nothing.
func (s *Server) ServeBacklog(*Backlog) error { return nil }
