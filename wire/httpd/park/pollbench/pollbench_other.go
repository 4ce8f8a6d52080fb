//go:build !linux

package pollbench

import (
	"errors"
	"net"
	"time"
)

var errLinux = errors.New("measurements need Linux: they use /proc and epoll")

func processorTime() time.Duration { return 0 }

func runClients(string) error { return errLinux }

type unsupported struct{}

func newEpollServer() Server { return unsupported{} }

func (unsupported) Serve(net.Listener) error { return errLinux }
func (unsupported) Waiting() int             { return 0 }
func (unsupported) Publish([]byte) int       { return 0 }
