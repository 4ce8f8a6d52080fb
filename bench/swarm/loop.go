// Package swarm is a load client for very many HTTP/1.1 connections at once: one thread, one epoll, no goroutine and
// no buffer for a connection that waits.
//
// Everything of a Loop belongs to the goroutine that opened it: connections, timers, callbacks. Nothing is locked, and
// a scenario is written as plain callbacks that run between two system calls. A waiting long poll costs one Conn; a
// delivery costs one read, one write and the scan of its bytes.
//
// Only plain http is spoken, to IPv4 addresses: the tool measures servers, not TLS.
package swarm

import (
	"container/heap"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// batch is how many ready sockets one epoll_wait may report: large enough that its cost vanishes, small enough
	// that timers are looked at between two batches (a batch of answers takes about 5 ms).
	batch = 512
	// scratchBytes bounds one read. A read that fills it is followed by another.
	scratchBytes = 256 << 10
	// sweepEvery is how often deadlines are looked at; a deadline is late by at most this much.
	sweepEvery = 250 * time.Millisecond
)

// A Loop owns sockets and timers. Open it, use it and close it in one goroutine.
type Loop struct {
	ep      int
	start   time.Time
	conns   []*Conn // by file descriptor
	ready   [batch]unix.EpollEvent
	scratch []byte
	out     []byte
	timers  timers
	timerNo uint64
	gen     int32 // of the last socket opened
	wait2   bool  // the kernel has epoll_pwait2, so waits end on the microsecond

	// Counters since Open. BytesIn and BytesOut are what HTTP put on the wire, heads included.
	BytesIn, BytesOut   int64
	Dials, Closed, Open int64
}

// Open makes a loop and ties the calling goroutine to its thread, so that Busy speaks of the loop alone.
func Open() (*Loop, error) {
	runtime.LockOSThread()
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &Loop{ep: ep, start: time.Now(), scratch: make([]byte, scratchBytes), wait2: true}, nil
}

// Close drops every connection without telling anybody.
func (l *Loop) Close() {
	for _, c := range l.conns {
		if c != nil {
			c.drop()
		}
	}
	unix.Close(l.ep)
	runtime.UnlockOSThread()
}

// Now is the monotonic time since Open. All times of a loop are of this kind.
func (l *Loop) Now() time.Duration { return time.Since(l.start) }

// Wall says which wall clock time a time of the loop was.
func (l *Loop) Wall(t time.Duration) time.Time { return l.start.Add(t) }

// Busy is the CPU time this thread has used so far.
func (l *Loop) Busy() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// At runs f at the given time, or as soon as the loop comes round after it.
func (l *Loop) At(when time.Duration, f func()) {
	l.timerNo++
	heap.Push(&l.timers, timer{when, l.timerNo, f})
}

// Every runs f at a fixed rhythm until it answers false.
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

// Run serves sockets and timers until done answers true; done is asked after each batch.
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
				// The generation in Pad tells a socket from a later one under the same number.
				if c := l.conns[fd]; c.gen == e.Pad {
					c.wake(e.Events)
				}
			}
		}
	}
}

// RunFor serves for d, or until stop answers true.
func (l *Loop) RunFor(d time.Duration, stop func() bool) error {
	end := l.Now() + d
	l.At(end, func() {})
	return l.Run(func() bool { return l.Now() >= end || stop != nil && stop() })
}

// poll asks without waiting first: under load there is always something, and a raw call keeps the Go scheduler out.
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
	if l.wait2 {
		ts := unix.NsecToTimespec(int64(wait))
		n, _, e = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.ep), uintptr(unsafe.Pointer(&l.ready[0])), batch,
			uintptr(unsafe.Pointer(&ts)), 0, 0)
		if e == 0 {
			return int(n), nil
		}
		if e == unix.EINTR {
			return 0, nil
		}
		l.wait2 = false // older kernels: waits end on the millisecond
	}
	m, err := unix.EpollWait(l.ep, l.ready[:], int((wait+time.Millisecond-1)/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return m, err
}

// sweep fails the requests whose deadline has passed.
func (l *Loop) sweep(now time.Duration) {
	for _, c := range l.conns {
		if c != nil && c.h != nil && c.deadline != 0 && now >= c.deadline {
			c.fail(ErrTimeout)
		}
	}
}

type timer struct {
	when time.Duration
	no   uint64 // equal times fire in the order they were set
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
