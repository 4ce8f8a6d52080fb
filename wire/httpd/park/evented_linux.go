package park

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canEvent = true

// evented is the part of a server that watches sockets through epoll.
type evented struct {
	loops   []*loop         // created by the first evented listener, under the server's mu
	workers chan *eventConn // receives a connection if a pooled goroutine is idle
}

// pooledWorkers is the number of goroutines that wait for connections to serve, with up to 32 KB of stack each. A new
// goroutine for each request spent a tenth of the request's time on growing its stack.
const pooledWorkers = 32

// runWorker serves a connection in a pooled goroutine, or in a new one if all are busy.
func (s *Server) runWorker(c *eventConn) {
	select {
	case s.workers <- c:
	default:
		go c.run()
	}
}

func (s *Server) poolWorker() {
	for {
		select {
		case c := <-s.workers:
			c.run()
		case <-s.stop:
			return
		}
	}
}

// processorsPerLoop is the number of processors that share one epoll loop. On two processors a second loop gained
// nothing: the time goes into reading and writing, which other goroutines do.
const processorsPerLoop = 8

// pollBatch is how many connections that repeat a poll a loop reads before it looks for others: about a millisecond of
// work. After a message to a thousand users their polls arrive at once, and nobody waits for them. A message that is
// sent meanwhile must not wait for all of them.
const pollBatch = 64

// loop is an epoll of connections and the goroutine that waits on it. Connections that repeat a poll are in a second
// epoll, which the first one watches.
type loop struct {
	s     *Server
	epoll int
	polls int // the second epoll
	idle  *idleWaiter
	wake  int // an eventfd that ends the loop
	conns connTable
	ended chan struct{}

	events     [256]unix.EpollEvent
	fastPath   FastPath // nil without Config.NewFastPath
	buf        []byte
	request    FastRequest
	prefetched uint32

	bytesIn, handled, parks int64 // counts of the current batch; see flushCounters
	burst                   pollBurst
}

// pollBurst counts what happened since the loop last considered a pause.
type pollBurst struct {
	since         time.Time
	events, parks int64
	answers       int64 // Server.answers when the counts were reset
	due           int64 // clients that had been answered by then and had not polled again
}

// After a message to many users, their clients poll again one by one. Each poll would wake the loop, at the cost of
// the goroutines that send messages and write answers, although polls are not urgent. So the loop pauses before it
// looks for more, when many clients were answered, or polls arrive in quick succession. Other requests would wait with
// them, so it does not pause if too many events were something else.
const (
	minBurstEvents = 20                    // events from which there may be a burst
	minDue         = 12                    // answered clients from which there will be one
	maxPollGap     = 50 * time.Microsecond // average time between the events of a burst, at most
	burstPause     = time.Millisecond
	otherShare     = 8 // no pause if more than 1/otherShare of the events are not polls
)

// shouldPause resets the counts if there are enough events, and reports whether the loop should wait for more polls.
// answers is the number of all parked requests answered so far.
func (b *pollBurst) shouldPause(answers int64) bool {
	answered := answers - b.answers
	if b.events < minBurstEvents && answered < minDue {
		return false
	}
	now := time.Now()
	due := b.due + answered - b.parks
	dense := due < 0 && b.events >= minBurstEvents && now.Sub(b.since) < time.Duration(b.events)*maxPollGap
	pause := (answered >= minDue && due >= minDue || dense) && (b.events-b.parks)*otherShare <= b.events+max(due, 0)
	*b = pollBurst{since: now, answers: answers}
	if pause {
		b.due = max(due, 0) // after a pause without a burst they do not count: these clients have left
	}
	return pause
}

func (s *Server) startLoops() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops != nil {
		return nil
	}
	s.workers = make(chan *eventConn)
	for range pooledWorkers {
		go s.poolWorker()
	}
	for range 1 + runtime.GOMAXPROCS(0)/processorsPerLoop {
		l, err := newLoop(s)
		if err != nil {
			return err
		}
		s.loops = append(s.loops, l)
		go l.run()
	}
	return nil
}

func newLoop(s *Server) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	polls, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		unix.Close(epoll)
		unix.Close(wake)
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	l := &loop{s: s, epoll: epoll, polls: polls, wake: wake, ended: make(chan struct{})}
	if l.idle, err = newIdleWaiter(epoll); err != nil {
		l.close()
		return nil, err
	}
	if s.cfg.NewFastPath != nil {
		l.fastPath = s.cfg.NewFastPath()
	}
	if s.cfg.NewFastPath != nil || s.cfg.TLS != nil {
		l.buf = make([]byte, fastPathBuffer)
	}
	for _, fd := range []int{wake, polls} {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			l.close()
			return nil, fmt.Errorf("watch a descriptor of the loop: %w", err)
		}
	}
	return l, nil
}

// close closes the descriptors of a loop that does not run.
func (l *loop) close() {
	if l.idle != nil {
		l.idle.close()
	}
	unix.Close(l.epoll)
	unix.Close(l.polls)
	unix.Close(l.wake)
}

// run passes events to connections. After a batch it lets the goroutines it woke run, and looks again without
// waiting. It waits when there are no events.
func (l *loop) run() {
	defer close(l.ended)
	var gone []*Parked
	wait := true
	for {
		if wait && l.burst.shouldPause(l.s.answers.Load()) {
			time.Sleep(burstPause)
			wait = false
		}
		if wait {
			if err := l.idle.wait(); err != nil {
				panic(fmt.Sprintf("BUG: waiting for the epoll: %v", err))
			}
		}
		events, stopped := 0, false
		if events, gone, stopped = l.readBatch(gone); stopped {
			return
		}
		if events > 0 && l.fastPath != nil {
			l.flush()
			l.burst.events += int64(events)
		}
		if len(gone) > 0 {
			l.s.notifyGone(gone)
			gone = nil
		}
		if wait = events == 0; !wait {
			runtime.Gosched()
		}
	}
}

// readBatch passes the next events to their connections, at most some hundreds. After each pollBatch of repeated polls
// it looks for other events. It returns the number of events, and gone with the requests whose clients have left.
func (l *loop) readBatch(gone []*Parked) (events int, _ []*Parked, stopped bool) {
	for {
		n := l.ready(l.epoll, len(l.events))
		polls := false
		for i := range l.events[:n] {
			stopped = stopped || l.events[i].Fd == int32(l.wake)
			polls = polls || l.events[i].Fd == int32(l.polls)
		}
		if stopped {
			return 0, gone, true
		}
		gone = l.handle(n, gone)
		events += n
		if !polls {
			return events, gone, false
		}
		if events--; n > 1 && l.fastPath != nil {
			l.flush() // a message does not wait for the polls
		}
		n = l.ready(l.polls, pollBatch)
		gone = l.handle(n, gone)
		if events += n; n < pollBatch || events >= len(l.events) {
			return events, gone, false
		}
	}
}

// flush ends a batch of the fast path.
func (l *loop) flush() {
	l.fastPath.Flush()
	l.burst.parks += l.parks
	l.flushCounters()
}

// handle passes the first n events to their connections. It appends the requests whose clients have left to gone.
func (l *loop) handle(n int, gone []*Parked) []*Parked {
	for i := range l.events[:n] {
		if i%prefetchBatch == 0 {
			l.prefetch(l.events[i:min(i+prefetchBatch, n)])
		}
		ev := &l.events[i]
		if c := l.conns.get(int(ev.Fd)); c != nil && c.gen == uint32(ev.Pad) {
			if p := c.handleEvents(ev.Events); p != nil {
				gone = append(gone, p)
			}
		}
	}
	return gone
}

// ready stores at most limit events of an epoll in l.events, without waiting. The Go runtime is not involved: see
// maxRawCallBytes.
func (l *loop) ready(epoll, limit int) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&l.events)),
		uintptr(limit), 0, 0, 0)
	if errno == unix.EINTR {
		return 0
	}
	if errno != 0 {
		panic(fmt.Sprintf("BUG: epoll_wait: %v", errno))
	}
	return int(n)
}

// prefetchBatch is the number of connections prefetched at a time. A connection that rested is not in the
// processor's cache. Touching sixteen in a row, without dependencies between them, takes hardly longer than
// waiting for one.
const prefetchBatch = 16

// prefetch touches the memory that reading from these connections needs.
func (l *loop) prefetch(events []unix.EpollEvent) {
	var conns [prefetchBatch]*eventConn
	sum := uint32(0)
	for i := range events {
		if c := l.conns.get(int(events[i].Fd)); c != nil {
			conns[i] = c
			sum += c.prefetch()
		}
	}
	for _, c := range conns {
		if c != nil && c.memo != nil {
			sum += c.memo.prefetch()
		}
	}
	l.prefetched = sum
}

// prefetch reads a word of each cache line of the connection. None of these words ever changes.
func (c *eventConn) prefetch() uint32 {
	return c.gen + uint32(c.address[15])
}

// flushCounters adds the counts of the batch to the server's counters. Writing to counters shared by two
// processors for each request would cost more than the requests' other bookkeeping.
func (l *loop) flushCounters() {
	s := l.s
	s.bytesIn.Add(l.bytesIn)
	s.requests.Add(l.handled)
	s.counters.fastPath.Add(l.handled)
	s.parks.Add(l.parks)
	l.bytesIn, l.handled, l.parks = 0, 0, 0
}

func (s *Server) closeEvented() {
	for _, l := range s.loops {
		var one = [8]byte{1}
		if _, err := unix.Write(l.wake, one[:]); err != nil {
			panic(fmt.Sprintf("BUG: eventfd: %v", err))
		}
		<-l.ended
		l.close()
	}
}

// acceptEvented accepts connections without registering them with the Go runtime: they are in our epoll only.
func (s *Server) acceptEvented(ln *net.TCPListener) error {
	if err := s.startLoops(); err != nil {
		return err
	}
	file, err := ln.File() // another descriptor of the same socket: package net does not allow waiting on its own
	if err != nil {
		return err
	}
	defer s.trackListener(file)()
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var fd int
	var from unix.Sockaddr
	var failed error
	accept := func(lfd uintptr) bool {
		fd, from, failed = unix.Accept4(int(lfd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return failed != unix.EAGAIN
	}
	var pause time.Duration
	for {
		if err := raw.Read(accept); err != nil {
			return err
		}
		if failed != nil {
			if !s.acceptPause(failed, &pause) {
				return failed
			}
			continue
		}
		pause = 0
		s.accepted.Add(1)
		s.setOptions(fd)
		s.serveEvented(acceptedConn{fd: fd, from: from})
	}
}

// setOptions sets the options of an accepted socket and ignores errors. Options of the listener would save these
// calls. But sockets of multipath TCP (the default of package net) and connections accepted before Serve do not
// inherit them.
func (s *Server) setOptions(fd int) {
	secs := max(1, int(s.cfg.KeepAlive/time.Second))
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, secs)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(1, secs/4))
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4)
}

func isTemporary(err error) bool {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return false
	}
	switch e {
	case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, unix.EINTR, unix.EPERM, unix.EPROTO,
		unix.ENETDOWN, unix.ENOPROTOOPT, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EOPNOTSUPP:
		return true
	}
	return false
}

// serveEvented begins to watch an accepted connection, or refuses it.
func (s *Server) serveEvented(a acceptedConn) {
	fd := a.fd
	c := &eventConn{l: s.loops[fd%len(s.loops)], fd: int32(fd), fresh: a.state != handoffIdle &&
		a.state != handoffParked}
	ip, port := addressOf(a.from)
	c.address, c.port = ip.As16(), port
	ref := s.admitConn(ip)
	c.admitted = ref == nil
	timeout := s.cfg.ReadTimeout
	if !c.fresh {
		timeout = s.cfg.IdleTimeout
	}
	if s.cfg.TLS != nil {
		if c.secure = (&secureConn{c: c}); ref != nil || a.state != 0 {
			if ref != nil {
				s.refused[ref.reason].Add(1)
			}
			s.releaseConn(ip, c.admitted)
			unix.Close(fd) // an answer to a refused client would cost a handshake
			return
		}
	}
	switch {
	case a.state == handoffLingering:
		c.ending, c.lingering = true, true
		timeout = s.cfg.LingerTimeout
	case ref != nil:
		s.refused[ref.reason].Add(1)
		write(c.fd, s.appendRefusal(nil, ref)) // a new socket has room for this much
		unix.Shutdown(fd, unix.SHUT_WR)
		c.ending, c.lingering = true, true
		timeout = s.cfg.LingerTimeout
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.open.Load() > int64(s.cfg.MaxConns+maxRefusedOpen) || !c.l.conns.put(fd, c) {
		s.releaseConn(ip, c.admitted)
		unix.Close(fd)
		return
	}
	c.deadline.Store(s.now() + s.allowedMillis(timeout, 0))
	if err := c.watch(unix.EPOLL_CTL_ADD); err != nil {
		s.cfg.Log.Error("cannot watch connection", "err", err)
		c.closeLocked()
		return
	}
	if len(a.received) > 0 && !c.ending {
		c.req = takeRequest(c)
		c.req.copyIn(a.received)
		c.readable = true
		c.start()
	}
}

func addressOf(sa unix.Sockaddr) (netip.Addr, uint16) {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr), uint16(a.Port)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)
	}
	return netip.Addr{}, 0
}

func tcpAddr(ip netip.Addr, port uint16) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, port))
}

// watchedEvents are the events that epoll reports of every connection, edge-triggered: input and the client's end.
const watchedEvents = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// connTable finds connections by file descriptor without a lock. A descriptor is in use once at a time. The
// generation of a connection identifies late events of an earlier connection with the same descriptor.
type connTable struct {
	pages [tablePages]atomic.Pointer[page]
	gen   atomic.Uint32
}

const (
	pageSize   = 1024
	tablePages = 1024 // a million descriptors, the usual limit of the kernel for one process
)

type page [pageSize]atomic.Pointer[eventConn]

func (t *connTable) get(fd int) *eventConn {
	if p := t.pages[fd/pageSize].Load(); p != nil {
		return p[fd%pageSize].Load()
	}
	return nil
}

func (t *connTable) put(fd int, c *eventConn) bool {
	if fd >= pageSize*tablePages {
		return false
	}
	at := &t.pages[fd/pageSize]
	p := at.Load()
	for p == nil {
		at.CompareAndSwap(nil, new(page))
		p = at.Load()
	}
	c.gen = t.gen.Add(1)
	p[fd%pageSize].Store(c)
	return true
}

func (t *connTable) remove(fd int) { t.pages[fd/pageSize].Load()[fd%pageSize].Store(nil) }

func (t *connTable) each(visit func(*eventConn)) {
	for i := range t.pages {
		p := t.pages[i].Load()
		if p == nil {
			continue
		}
		for j := range p {
			if c := p[j].Load(); c != nil {
				visit(c)
			}
		}
	}
}

func (s *Server) eachEvented(visit func(*eventConn)) {
	s.mu.Lock()
	loops := s.loops
	s.mu.Unlock()
	for _, l := range loops {
		l.conns.each(visit)
	}
}

func (s *Server) sweepEvented(now int64) {
	s.eachEvented(func(c *eventConn) {
		if d := c.deadline.Load(); d != 0 && d <= now {
			c.expire(now)
		}
	})
}

func openFileLimit() int {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil || lim.Cur > pageSize*tablePages {
		return pageSize * tablePages
	}
	return int(lim.Cur)
}
