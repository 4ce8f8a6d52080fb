package park

import (
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// recv waits for bytes of the request's body.
func (c *eventConn) recv(p []byte) (int, error) {
	for {
		c.mu.Lock()
		c.readable = false
		c.mu.Unlock()
		n, err := c.read(p)
		switch {
		case n > 0:
			c.l.s.bytesIn.Add(int64(n))
			c.req.bodyReceived += int64(n)
			if n == len(p) {
				c.mu.Lock()
				c.readable = true
				c.mu.Unlock()
			}
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err != unix.EAGAIN:
			return 0, err
		}
		if err := c.wait(&c.readable, c.l.s.bodyDeadline(c.req)); err != nil {
			return 0, err
		}
	}
}

// maxSealed is how many bytes are encrypted at a time, into a buffer that is not much larger.
const maxSealed = 48 << 10

// send waits until the client's socket took all of p.
func (c *eventConn) send(p []byte) (done int, err error) {
	if c.secure == nil {
		done, err = c.sendBytes(p)
	}
	for c.secure != nil && done < len(p) && err == nil {
		piece := p[done:min(len(p), done+maxSealed)]
		var b *buffer
		if b, err = c.secure.seal(piece); err == nil {
			_, err = c.sendBytes(b.b)
			done += len(piece)
		}
		b.release()
	}
	c.l.s.bytesOut.Add(int64(done))
	return done, err
}

// sendBytes sends bytes as they are.
func (c *eventConn) sendBytes(p []byte) (int, error) {
	done := 0
	for {
		c.mu.Lock()
		c.writable = false
		c.mu.Unlock()
		n, err := write(c.fd, p[done:])
		done += n
		c.req.sent += int64(n)
		if done == len(p) {
			return done, nil
		}
		if err == nil {
			continue
		}
		if err != unix.EAGAIN {
			return done, err
		}
		if c.req.blockedSince == 0 {
			c.req.blockedSince = c.l.s.now()
		}
		c.mu.Lock()
		c.watchWritable()
		c.mu.Unlock()
		if err := c.wait(&c.writable, c.l.s.sendDeadline(c.req.blockedSince, c.req.sent)); err != nil {
			c.l.s.writeTimeouts.Add(1)
			return done, err
		}
	}
}

// watchWritable makes the epoll report EPOLLOUT, too. mu is held.
func (c *eventConn) watchWritable() {
	if c.watchesWritable {
		return
	}
	c.watchesWritable = true
	if err := c.watch(unix.EPOLL_CTL_MOD); err != nil {
		c.failure = err
	}
}

// wait blocks the serving goroutine until flag is set, the deadline passes or the connection fails. While it
// waits the request counts as slow, not as active.
func (c *eventConn) wait(flag *bool, deadline int64) error {
	s := c.l.s
	organization := c.req.organization
	if !s.shares.Slow.Take(organization, 1) {
		return refuseSlowClients
	}
	defer s.shares.Slow.Give(organization, 1)
	if s.slow.Add(1) > int64(s.cfg.MaxSlow) {
		s.slow.Add(-1)
		return refuseSlowClients
	}
	defer s.slow.Add(-1)
	s.active.Add(-1)
	defer s.active.Add(1)
	return c.block(flag, deadline)
}

// block is wait without counting.
func (c *eventConn) block(flag *bool, deadline int64) error {
	c.mu.Lock()
	for !*flag && c.failure == nil {
		if c.wake == nil {
			c.wake = make(chan struct{}, 1)
		}
		c.waiting, c.sending = true, flag == &c.writable
		c.deadline.Store(deadline)
		c.mu.Unlock()
		<-c.wake
		c.mu.Lock()
		c.deadline.Store(0)
	}
	err := c.failure
	c.mu.Unlock()
	return err
}

// maxRawCallBytes is the largest read or write, in bytes, that bypasses the Go runtime. The sockets do not block,
// but after an ordinary system call the runtime checks whether it took long. On a busy machine it would then give
// the goroutine's processor to another thread. Calls that may take longer than about 20 microseconds go through
// the runtime.
const maxRawCallBytes = 16 << 10

// read and write are recv and send, which do less than the system calls of these names: those also lock the file's
// position, check its mode and look for watchers of the file, in memory that is not in the processor's cache.
func read(fd int32, p []byte) (int, error) { return transfer(unix.SYS_RECVFROM, fd, p, 0) }
func write(fd int32, p []byte) (int, error) {
	return transfer(unix.SYS_SENDTO, fd, p, unix.MSG_NOSIGNAL)
}

func transfer(call uintptr, fd int32, p []byte, flags uintptr) (int, error) {
	for {
		var n uintptr
		var errno unix.Errno
		if first := unsafe.Pointer(unsafe.SliceData(p)); len(p) == 0 || len(p) > maxRawCallBytes {
			n, _, errno = unix.Syscall6(call, uintptr(fd), uintptr(first), uintptr(len(p)), flags, 0, 0)
		} else {
			n, _, errno = unix.RawSyscall6(call, uintptr(fd), uintptr(first), uintptr(len(p)), flags, 0, 0)
		}
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, unix.EAGAIN // converting errno would allocate
		default:
			return 0, errno
		}
	}
}
