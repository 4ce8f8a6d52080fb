package park

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Backlog accepts connections before there is a server for them. While a process loads its data, all clients of
// its predecessor reconnect at once. They would fill the kernel's backlog (4,096 connections), and a client that
// finds it full tries again only after one second, then after three. In a Backlog each connection costs one file
// descriptor, and its requests wait in the kernel. Create one with CollectBacklog and pass it to
// Server.ServeBacklog.
type Backlog struct {
	max     int
	files   []*os.File // duplicates of the listeners
	running sync.WaitGroup

	mu    sync.Mutex
	conns []acceptedConn
}

type acceptedConn struct {
	fd       int
	from     unix.Sockaddr
	state    byte   // as the predecessor sent it, such as handoffIdle; 0 without a predecessor
	received []byte // bytes that the predecessor has read
}

// CollectBacklog starts to accept connections of those listeners that are TCP, up to max; 0 means the process's
// file limit less 1/16. Further connections wait in the kernel's backlog.
func CollectBacklog(max int, listeners ...net.Listener) (*Backlog, error) {
	c := Config{MaxConns: max}.WithDefaults()
	b := &Backlog{max: c.MaxConns}
	for _, ln := range listeners {
		tcp, ok := ln.(*net.TCPListener)
		if !ok {
			continue
		}
		f, err := tcp.File()
		if err != nil {
			b.close()
			return nil, err
		}
		b.files = append(b.files, f)
		b.running.Add(1)
		go b.acceptAll(f)
	}
	return b, nil
}

func (b *Backlog) acceptAll(f *os.File) {
	defer b.running.Done()
	raw, err := f.SyscallConn()
	if err != nil {
		return // the connections wait in the kernel
	}
	var fd int
	var from unix.Sockaddr
	var failed error
	for {
		err := raw.Read(func(lfd uintptr) bool {
			fd, from, failed = unix.Accept4(int(lfd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			return failed != unix.EAGAIN
		})
		if err != nil || failed != nil && !isTemporary(failed) {
			return
		}
		if failed != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if !b.add(acceptedConn{fd: fd, from: from}) {
			return
		}
	}
}

func (b *Backlog) add(a acceptedConn) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, a)
	return len(b.conns) < b.max
}

// ReceiveHandoff also takes the connections that a predecessor hands off, until the predecessor closes its end or
// exits. ServeBacklog waits for that. The predecessor closes it before it releases the data directory and other
// resources that the successor needs.
func (b *Backlog) ReceiveHandoff(p *Handoff) {
	if p == nil {
		return
	}
	b.running.Add(1)
	go func() {
		defer b.running.Done()
		defer p.Close()
		p.receive(func(a acceptedConn) { b.add(a) }) // beyond the maximum, too: the predecessor's own limit applied
	}()
}

// close stops accepting and returns the connections.
func (b *Backlog) close() []acceptedConn {
	if b == nil {
		return nil
	}
	for _, f := range b.files {
		f.SetReadDeadline(time.Unix(1, 0))
	}
	b.running.Wait()
	for _, f := range b.files {
		f.Close()
	}
	b.files = nil
	conns := b.conns
	b.conns = nil
	return conns
}

// Len returns the number of waiting connections.
func (b *Backlog) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// maxBacklogActive is the number of requests in handlers above which ServeBacklog pauses: enough for every
// processor, few enough for prompt answers.
const maxBacklogActive = 256

// ServeBacklog serves the connections of a backlog, in the order of their arrival, and no faster than the server can
// answer. It returns when all are being served, except those with parked polls, which follow in the background. Call
// Serve for new connections of the listeners.
func (s *Server) ServeBacklog(b *Backlog) error {
	conns := b.close()
	if err := s.startLoops(); err != nil {
		return err
	}
	s.serveAccepted(conns, func(a acceptedConn) bool { return a.state != handoffParked })
	s.accepting.Add(1) // Shutdown waits until all connections are served
	go func() {
		defer s.accepting.Add(-1)
		s.serveAccepted(conns, func(a acceptedConn) bool { return a.state == handoffParked })
	}()
	return nil
}

func (s *Server) serveAccepted(conns []acceptedConn, selects func(acceptedConn) bool) {
	for _, a := range conns {
		if !selects(a) {
			continue
		}
		for s.active.Load() > maxBacklogActive && !s.draining.Load() {
			time.Sleep(time.Millisecond)
		}
		s.accepted.Add(1)
		s.setOptions(a.fd)
		s.serveEvented(a)
	}
}
