package swarm

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

const (
	// batch is the largest number of ready sockets that one epoll_wait returns: large enough to make its cost
	// negligible, small enough to check timers in between (a batch of answers takes about 5 ms).
	batch = 512
	// scratchBytes is the size of one read. A read that fills the buffer is followed by another.
	scratchBytes = 256 << 10
	// sweepEvery is the interval of deadline checks; a timeout is late by at most this.
	sweepEvery = 250 * time.Millisecond
)

// A Loop owns sockets and timers. Open, use and close it in one goroutine.
type Loop struct {
	ep        int
	start     time.Time
	conns     []*Conn // by file descriptor
	ready     [batch]unix.EpollEvent
	scratch   []byte
	out       []byte
	sealed    []byte // records of the last request with TLS
	encoder   *hpack.Encoder
	encoded   bytes.Buffer // header block of the last request with HTTP/2
	timers    timers
	timerNo   uint64
	gen       int32 // of the last socket
	buffered  int   // bytes of the incomplete answers of all connections
	hasPwait2 bool  // the kernel has epoll_pwait2, so timeouts have microseconds

	// Counters since Open. BytesIn and BytesOut count HTTP heads and bodies.
	BytesIn, BytesOut   int64
	Dials, Closed, Open int64
}

// Open returns a loop and locks the calling goroutine to its thread, so that Busy counts the loop alone.
func Open() (*Loop, error) {
	runtime.LockOSThread()
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &Loop{ep: ep, start: time.Now(), scratch: make([]byte, scratchBytes), hasPwait2: true}, nil
}

// Close drops every connection without calling its handler.
func (l *Loop) Close() {
	for _, c := range l.conns {
		if c != nil {
			c.drop()
		}
	}
	unix.Close(l.ep)
	runtime.UnlockOSThread()
}

// Now returns the monotonic time since Open. All times of a loop are relative to Open.
func (l *Loop) Now() time.Duration { return time.Since(l.start) }

// Wall converts a time of the loop to wall clock time.
func (l *Loop) Wall(t time.Duration) time.Time { return l.start.Add(t) }

// Busy returns the CPU time of this thread so far.
func (l *Loop) Busy() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// At runs f at the given time, or as soon as possible after it.
func (l *Loop) At(when time.Duration, f func()) {
	l.timerNo++
	heap.Push(&l.timers, timer{when, l.timerNo, f})
}

// Every runs f with period d until it returns false.
func (l *Loop) Every(d time.Duration, f func() bool) {
	next := l.Now() + d
	var tick func()
	tick = func() {
		if !f() {
			return
		}
		next += d
		if now := l.Now(); next < now {
			next = now
		}
		l.At(next, tick)
	}
	l.At(next, tick)
}

// Run serves sockets and timers until done returns true; done is called after each batch.
func (l *Loop) Run(done func() bool) error {
	nextSweep := l.Now() + sweepEvery
	for {
		now := l.Now()
		for len(l.timers) > 0 && l.timers[0].when <= now {
			heap.Pop(&l.timers).(timer).f()
		}
		if done() {
			return nil
		}
		if now >= nextSweep {
			l.sweep(now)
			nextSweep = now + sweepEvery
		}
		wait := nextSweep - now
		if len(l.timers) > 0 && l.timers[0].when-now < wait {
			wait = l.timers[0].when - now
		}
		n, err := l.poll(wait)
		if err != nil {
			return err
		}
		for i := 0; i < n; i++ {
			e := &l.ready[i]
			if fd := int(e.Fd); fd < len(l.conns) && l.conns[fd] != nil {
				// The generation in Pad distinguishes a socket from a later one with the same number.
				if c := l.conns[fd]; c.gen == e.Pad {
					c.handleEvents(e.Events)
				}
			}
		}
	}
}

// RunFor serves for d, or until stop returns true.
func (l *Loop) RunFor(d time.Duration, stop func() bool) error {
	end := l.Now() + d
	l.At(end, func() {})
	return l.Run(func() bool { return l.Now() >= end || stop != nil && stop() })
}

// poll first asks without waiting: under load some socket is always ready, and a raw call avoids the Go scheduler.
func (l *Loop) poll(wait time.Duration) (int, error) {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(&l.ready[0])), batch, 0, 0,
		0)
	if e == 0 && n > 0 || wait <= 0 {
		if e != 0 && e != unix.EINTR {
			return 0, fmt.Errorf("epoll_wait: %w", e)
		}
		if e != 0 {
			return 0, nil
		}
		return int(n), nil
	}
	if l.hasPwait2 {
		ts := unix.NsecToTimespec(int64(wait))
		n, _, e = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.ep), uintptr(unsafe.Pointer(&l.ready[0])), batch,
			uintptr(unsafe.Pointer(&ts)), 0, 0)
		if e == 0 {
			return int(n), nil
		}
		if e == unix.EINTR {
			return 0, nil
		}
		l.hasPwait2 = false // older kernel: timeouts have milliseconds
	}
	m, err := unix.EpollWait(l.ep, l.ready[:], int((wait+time.Millisecond-1)/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return m, err
}

// sweep fails the requests after their deadline.
func (l *Loop) sweep(now time.Duration) {
	for _, c := range l.conns {
		if c != nil && c.handler != nil && c.deadline != 0 && now >= c.deadline {
			c.fail(ErrTimeout)
		}
	}
}

type timer struct {
	when time.Duration
	no   uint64 // timers of equal time fire in the order of creation
	f    func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].when < t[j].when || t[i].when == t[j].when && t[i].no < t[j].no
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	x := old[len(old)-1]
	old[len(old)-1] = timer{}
	*t = old[:len(old)-1]
	return x
}
