package pollbench

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// epollServer is the lower bound: one goroutine accepts and reads; Publish writes.
type epollServer struct {
	mu      sync.Mutex
	waiting []int32 // sockets
}

func newEpollServer() Server { return &epollServer{} }

func (s *epollServer) Serve(ln net.Listener) error {
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	go s.loop(epoll)
	for {
		var fd int
		var failed error
		if err := raw.Read(func(l uintptr) bool {
			fd, _, failed = unix.Accept4(int(l), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			return failed != unix.EAGAIN
		}); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return err
		}
	}
}

func (s *epollServer) loop(epoll int) {
	events := make([]unix.EpollEvent, 256)
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.EpollWait(epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			panic(fmt.Sprintf("epoll_wait: %v", err))
		}
		for _, ev := range events[:n] {
			k, err := unix.Read(int(ev.Fd), buf)
			if k <= 0 {
				if err != unix.EAGAIN {
					unix.Close(int(ev.Fd))
				}
				continue
			}
			if bytes.HasSuffix(buf[:k], []byte("\r\n\r\n")) {
				s.mu.Lock()
				s.waiting = append(s.waiting, ev.Fd)
				s.mu.Unlock()
			}
		}
	}
}

func (s *epollServer) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func (s *epollServer) Publish(body []byte) (n int) {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = make([]int32, 0, len(waiting))
	s.mu.Unlock()
	b := append([]byte("HTTP/1.1 200 OK\r\nServer: epoll\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"+
		"Content-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
	for _, fd := range waiting {
		if k, _ := unix.Write(int(fd), b); k == len(b) {
			n++
		}
	}
	return n
}

// pollRequest is the request of every client, similar to a real one.
const pollRequest = "GET /api/v1/events?queue_id=fb67bf8a-c031-47cc-84cf-ed80accacda8&last_event_id=1234 " +
	"HTTP/1.1\r\nHost: chat.example.com\r\n" +
	"User-Agent: ZulipMobile/27.1 (Android 12)\r\nAccept: */*\r\nAuthorization: Basic " +
	"aW9nb0BleGFtcGxlLmNvbTphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejEyMzQ1Ng==\r\n\r\n"

// runClients opens connections and polls on each forever, in one thread.
func runClients(arg string) error {
	var n int
	var addr string
	if _, err := fmt.Sscan(arg, &n, &addr); err != nil {
		return err
	}
	to, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	missing := make(map[int32]int, n) // bytes of the answer that are missing
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("clients: %w", err)
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}); err != nil {
			return fmt.Errorf("clients: connect: %w", err)
		}
		unix.SetNonblock(fd, true)
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return fmt.Errorf("clients: %w", err)
		}
		if _, err := unix.Write(fd, []byte(pollRequest)); err != nil {
			return fmt.Errorf("clients: poll: %w", err)
		}
	}
	events, buf := make([]unix.EpollEvent, 256), make([]byte, 64<<10)
	for {
		k, err := unix.EpollWait(epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("clients: %w", err)
		}
		for _, ev := range events[:k] {
			m, err := unix.Read(int(ev.Fd), buf)
			if err == unix.EAGAIN {
				continue
			}
			if m <= 0 {
				return fmt.Errorf("clients: connection lost: %v", err)
			}
			left := missing[ev.Fd] - m
			if missing[ev.Fd] == 0 {
				if left, err = remaining(buf[:m]); err != nil {
					return err
				}
			}
			missing[ev.Fd] = left
			if left == 0 {
				if _, err := unix.Write(int(ev.Fd), []byte(pollRequest)); err != nil {
					return fmt.Errorf("clients: poll: %w", err)
				}
			}
		}
	}
}

// remaining returns how many bytes of an answer are missing, given its beginning with the complete head.
func remaining(b []byte) (int, error) {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	_, value, found := bytes.Cut(head, []byte("Content-Length: "))
	value, _, _ = bytes.Cut(value, []byte("\r\n"))
	n, err := strconv.Atoi(string(value))
	if !ok || !found || err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 200 ")) || len(body) > n {
		return 0, fmt.Errorf("clients: unexpected answer %q", b)
	}
	return n - len(body), nil
}
