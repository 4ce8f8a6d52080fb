package park

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Backlog takes connections before there is a server for them. While a process loads its data, the clients of its
// predecessor, who all come at once, would fill the socket's backlog (the kernel's 4,096), and whoever finds it full
// tries again only after a second, then three. In a room each costs a file descriptor and nothing else, and what it has
// sent waits in the kernel. Make one with CollectBacklog, and hand it to Admit.
type Backlog struct {
	max     int
	files   []*os.File // the listeners, once more
	running sync.WaitGroup

	mu    sync.Mutex
	conns []acceptedConn
}

type acceptedConn struct {
	fd       int
	from     unix.Sockaddr
	state    byte   // what a predecessor said of it, 0 without one
	received []byte // by a predecessor
}

// CollectBacklog takes the connections of listeners, those that are TCP, up to max (0: the process's file limit less 1/16); the
// others wait in the backlog.
func CollectBacklog(max int, listeners ...net.Listener) (*Backlog, error) {
	c := Config{MaxConns: max}.WithDefaults()
	r := &Backlog{max: c.MaxConns}
	for _, ln := range listeners {
		tcp, ok := ln.(*net.TCPListener)
		if !ok {
			continue
		}
		f, err := tcp.File()
		if err != nil {
			r.close()
			return nil, err
		}
		r.files = append(r.files, f)
		r.running.Add(1)
		go r.acceptAll(f)
	}
	return r, nil
}

func (r *Backlog) acceptAll(f *os.File) {
	defer r.running.Done()
	raw, err := f.SyscallConn()
	if err != nil {
		return // they wait in the backlog
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
		if !r.add(acceptedConn{fd: fd, from: from}) {
			return
		}
	}
}

func (r *Backlog) add(a acceptedConn) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, a)
	return len(r.conns) < r.max
}

// ReceiveHandoff takes what a predecessor passes too, until it closes its end of the passage or ends, for which Admit waits: it
// comes before the predecessor lets go of what its successor needs.
func (r *Backlog) ReceiveHandoff(p *Handoff) {
	if p == nil {
		return
	}
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		defer p.Close()
		p.receive(func(a acceptedConn) { r.add(a) }) // beyond the room's bound too: it was the predecessor's
	}()
}

// close ends the taking and returns who is there.
func (r *Backlog) close() []acceptedConn {
	if r == nil {
		return nil
	}
	for _, f := range r.files {
		f.SetReadDeadline(time.Unix(1, 0))
	}
	r.running.Wait()
	for _, f := range r.files {
		f.Close()
	}
	r.files = nil
	held := r.conns
	r.conns = nil
	return held
}

// Len is how many connections wait.
func (r *Backlog) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

// maxBacklogActive is how many requests may be in handlers while those who waited are let in: enough for every processor,
// few enough that each of them is answered soon after it was let in.
const maxBacklogActive = 256

// ServeBacklog serves who waits in a room, in the order of their arrival and at the server's own pace. It returns when all are
// in but those who are going to wait anyway, who follow; connections of the listeners are for Serve.
func (s *Server) ServeBacklog(r *Backlog) error {
	held := r.close()
	if s.cfg.TLS != nil {
		for _, a := range held {
			f := os.NewFile(uintptr(a.fd), "")
			conn, err := net.FileConn(f)
			f.Close()
			if err == nil {
				s.serveBlocking(conn)
			}
		}
		return nil
	}
	if err := s.startLoops(); err != nil {
		return err
	}
	s.adoptAll(held, func(a acceptedConn) bool { return a.state != handoffParked })
	s.accepting.Add(1) // a Shutdown waits until they are all in
	go func() {
		defer s.accepting.Add(-1)
		s.adoptAll(held, func(a acceptedConn) bool { return a.state == handoffParked })
	}()
	return nil
}

func (s *Server) adoptAll(held []acceptedConn, these func(acceptedConn) bool) {
	for _, a := range held {
		if !these(a) {
			continue
		}
		for s.active.Load() > maxBacklogActive && !s.draining.Load() {
			time.Sleep(time.Millisecond)
		}
		s.accepted.Add(1)
		s.setOptions(a.fd)
		s.adopt(a)
	}
}
