//go:build !linux

package park

import "net"

// Room takes connections before there is a server for them; here they wait in the socket's backlog.
type Room struct{}

// Hold takes nothing.
func Hold(int, ...net.Listener) (*Room, error) { return &Room{}, nil }

// Receive has nobody to take.
func (r *Room) Receive(*Passage) {}

// Held is how many connections wait.
func (r *Room) Held() int { return 0 }

// Admit has nobody to serve.
func (s *Server) Admit(*Room) error { return nil }
