package park

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// idleWaiter waits for an epoll without occupying a processor of the Go runtime. A goroutine that waits in epoll_wait
// occupies one for 10 ms, and as long as not all processors are idle the runtime's monitor wakes up every 20
// microseconds: with 20 messages a second that was a third of the server's processor time.
//
// The runtime's poller cannot watch the epoll itself: it would wake a thread for each event, even while no goroutine
// waits. So it watches a second epoll, which watches the first one, once for each wait.
type idleWaiter struct {
	epoll int      // the first epoll, which has the connections
	file  *os.File // the second epoll
	conn  syscall.RawConn
	fd    int
	wake  func(uintptr) bool
	armed bool
	event [1]unix.EpollEvent
}

func newIdleWaiter(epoll int) (*idleWaiter, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	err = errors.Join(unix.SetNonblock(fd, true), // otherwise os.NewFile does not use the poller
		unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, epoll, &unix.EpollEvent{Events: unix.EPOLLONESHOT}))
	w := &idleWaiter{epoll: epoll, fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	w.wake = w.woken
	if err == nil {
		w.conn, err = w.file.SyscallConn()
	}
	if err != nil {
		w.file.Close()
		return nil, fmt.Errorf("watch epoll: %w", err)
	}
	return w, nil
}

// wait returns when the epoll has events.
func (w *idleWaiter) wait() error {
	w.armed = false
	return w.conn.Read(w.wake)
}

// woken arms the second epoll at the first call and reports whether it has fired since.
func (w *idleWaiter) woken(uintptr) bool {
	if !w.armed {
		w.armed = true
		unix.EpollCtl(w.fd, unix.EPOLL_CTL_MOD, w.epoll,
			&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(w.epoll)})
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.fd), uintptr(unsafe.Pointer(&w.event)), 1, 0, 0, 0)
	return errno != 0 && errno != unix.EINTR || int(n) > 0
}

func (w *idleWaiter) close() { w.file.Close() }
