//go:build !linux

package pollbench

import (
	"errors"
	"net"
	"time"
)

var errLinux = errors.New("measurements need Linux: they read /proc and drive clients by epoll")

func processorTime() time.Duration { return 0 }

func playCrowd(string) error { return errLinux }

type nothing struct{}

func newBare() Server { return nothing{} }

func (nothing) Serve(net.Listener) error { return errLinux }
func (nothing) Waiting() int             { return 0 }
func (nothing) Publish([]byte) int       { return 0 }
