package floor

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batch = 512
	// logSize bounds the messages that a late poller can still fetch; the harness has one or two under way.
	logSize = 4096
	// requestBytes bounds one request.
	requestBytes = 64 << 10
)

type message struct {
	channel int64
	content []byte
}

type queue struct {
	channels []int64
	conn     *conn // parked, or nil
}

// maxChannels bounds the channels, so that a request cannot make the table of members large.
const maxChannels = 4096

type conn struct {
	fd    int
	in    []byte // first part of an incomplete request
	out   []byte // part of an answer that is not written yet
	queue *queue
}

// A Server is one epoll loop. Weight is the size of an event answer in bytes, including the head: answers are padded
// to the size of the measured server's answers.
type Server struct {
	Weight int

	ep, ln  int
	conns   []*conn
	queues  []queue
	members [][]int // the queues of each channel
	log     [logSize]message
	newest  int64
	scratch []byte
	answer  []byte
	body    []byte
	ready   [batch]unix.EpollEvent
}

// Listen binds the address; port 0 chooses a free one, see Addr.
func Listen(addr netip.AddrPort, weight int) (*Server, error) {
	s := &Server{Weight: weight, scratch: make([]byte, requestBytes)}
	var err error
	if s.ln, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, err
	}
	unix.SetsockoptInt(s.ln, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := unix.Bind(s.ln, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		return nil, fmt.Errorf("bind %s: %w", addr, err)
	}
	if err := unix.Listen(s.ln, 4096); err != nil {
		return nil, err
	}
	if s.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.ln)}
	return s, unix.EpollCtl(s.ep, unix.EPOLL_CTL_ADD, s.ln, &ev)
}

// Addr returns the address of the listener.
func (s *Server) Addr() netip.AddrPort {
	sa, _ := unix.Getsockname(s.ln)
	in := sa.(*unix.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port))
}

// Serve serves until it fails, and returns the error.
func (s *Server) Serve() error {
	runtime.LockOSThread()
	for {
		n, err := unix.EpollWait(s.ep, s.ready[:], -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for i := 0; i < n; i++ {
			fd := int(s.ready[i].Fd)
			if fd == s.ln {
				s.accept()
				continue
			}
			if c := s.conns[fd]; c != nil {
				s.serve(c, s.ready[i].Events)
			}
		}
	}
}

func (s *Server) accept() {
	for {
		fd, _, err := unix.Accept4(s.ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		for len(s.conns) <= fd {
			s.conns = append(s.conns, nil)
		}
		s.conns[fd] = &conn{fd: fd}
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd)}
		unix.EpollCtl(s.ep, unix.EPOLL_CTL_ADD, fd, &ev)
	}
}

func (s *Server) drop(c *conn) {
	if c.queue != nil && c.queue.conn == c {
		c.queue.conn = nil
	}
	s.conns[c.fd] = nil
	unix.Close(c.fd)
}

func (s *Server) serve(c *conn, ev uint32) {
	if len(c.out) > 0 && ev&unix.EPOLLOUT != 0 {
		out := c.out
		c.out = nil
		s.write(c, out)
	}
	if ev&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
		return
	}
	for {
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&s.scratch[0])),
			uintptr(len(s.scratch)))
		if e == unix.EAGAIN {
			return
		}
		if e != 0 || n == 0 {
			s.drop(c)
			return
		}
		b := s.scratch[:n]
		if len(c.in) > 0 {
			c.in = append(c.in, b...)
			b = c.in
		}
		for len(b) > 0 {
			used := s.request(c, b)
			if used < 0 {
				s.drop(c)
				return
			}
			if used == 0 {
				break
			}
			b = b[used:]
		}
		if len(b) > 0 {
			c.in = append([]byte(nil), b...)
		} else {
			c.in = nil
		}
		if int(n) < len(s.scratch) && ev&(unix.EPOLLRDHUP|unix.EPOLLHUP) == 0 {
			return
		}
	}
}

func (s *Server) write(c *conn, b []byte) {
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if e != 0 {
		n = 0 // epoll reports a connection that has ended
	}
	if int(n) < len(b) {
		c.out = append(c.out, b[n:]...)
	}
}

var (
	getEvents     = []byte("GET /api/v1/events?")
	postMessage   = []byte("POST /api/v1/messages ")
	register      = []byte("POST /api/v1/register ")
	anyGet        = []byte("GET ")
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("Content-Length: ")
	success       = `{"result":"success","msg":"",`
)

// request handles one request and returns its length in bytes: 0 if it is incomplete, -1 if it is invalid.
func (s *Server) request(c *conn, b []byte) int {
	i := bytes.Index(b, headEnd)
	if i < 0 {
		if len(b) > requestBytes {
			return -1
		}
		return 0
	}
	if bytes.HasPrefix(b, getEvents) {
		s.poll(c, b[len(getEvents):i])
		return i + 4
	}
	if bytes.HasPrefix(b, anyGet) {
		s.reply(c, success+`"zulip_version":"floor","zulip_feature_level":0}`)
		return i + 4
	}
	n := 0
	if j := bytes.Index(b[:i], contentLength); j >= 0 {
		n = int(number(b[j+len(contentLength):]))
	}
	whole := i + 4 + n
	if len(b) < whole {
		return 0
	}
	body := b[i+4 : whole]
	switch {
	case bytes.HasPrefix(b, register):
		s.addQueue(param(body, "floor_channels="))
		s.reply(c, fmt.Sprintf(success+`"queue_id":"%d","last_event_id":%d}`, len(s.queues)-1, s.newest))
	case bytes.HasPrefix(b, postMessage):
		s.post(c, body)
	default:
		s.reply(c, success+`"ignored":true}`)
	}
	return whole
}

// addQueue adds a queue with channels, which are decimal numbers separated by points.
func (s *Server) addQueue(channels []byte) {
	var q queue
	for _, b := range bytes.Split(channels, []byte(".")) {
		ch := number(b)
		if len(b) == 0 || ch < 0 || ch >= maxChannels {
			continue
		}
		for int64(len(s.members)) <= ch {
			s.members = append(s.members, nil)
		}
		s.members[ch] = append(s.members[ch], len(s.queues))
		q.channels = append(q.channels, ch)
	}
	s.queues = append(s.queues, q)
}

func (s *Server) poll(c *conn, b []byte) {
	id, last := int(number(param(b, "queue_id="))), number(param(b, "last_event_id="))
	if id < 0 || id >= len(s.queues) {
		s.reply(c, `{"result":"error","msg":"Bad event queue ID","code":"BAD_EVENT_QUEUE_ID"}`)
		return
	}
	q := &s.queues[id]
	c.queue, q.conn = q, nil
	for n := max(last+1, s.newest-logSize+1); n <= s.newest; n++ {
		if slices.Contains(q.channels, s.log[n%logSize].channel) {
			s.deliver(c, n)
			return
		}
	}
	q.conn = c
}

func (s *Server) post(c *conn, body []byte) {
	s.newest++
	s.log[s.newest%logSize] = message{number(param(body, "to=")),
		append([]byte(nil), param(body, "content=")...)}
	s.reply(c, success+`"id":`+strconv.FormatInt(s.newest, 10)+"}")
	s.render(s.newest)
	ch := s.log[s.newest%logSize].channel
	if ch < 0 || ch >= int64(len(s.members)) {
		return
	}
	for _, i := range s.members[ch] {
		if q := &s.queues[i]; q.conn != nil {
			c := q.conn
			q.conn = nil
			s.write(c, s.answer)
		}
	}
}

func (s *Server) deliver(c *conn, n int64) {
	s.render(n)
	s.write(c, s.answer)
}

// render builds the answer with message n: the same bytes for each poller.
func (s *Server) render(n int64) {
	m := &s.log[n%logSize]
	b := append(s.body[:0], success...)
	b = append(b, `"events":[{"type":"message","flags":[],"message":{"id":`...)
	b = strconv.AppendInt(b, n, 10)
	b = append(b, `,"sender_id":1,"stream_id":`...)
	b = strconv.AppendInt(b, int64(m.channel), 10)
	b = append(b, `,"type":"stream","content":"<p>`...)
	b = append(b, m.content...)
	b = append(b, `</p>","padding":"`...)
	for len(b) < s.Weight-150 {
		b = append(b, '.')
	}
	b = append(b, `"},"id":`...)
	b = strconv.AppendInt(b, n, 10)
	b = append(b, "}]}\n"...)
	s.body = b
	s.answer = head(s.answer[:0], len(b))
	s.answer = append(s.answer, b...)
}

func head(b []byte, n int) []byte {
	b = append(b, "HTTP/1.1 200 OK\r\nServer: floor\r\nContent-Type: application/json\r\nCache-Control: "+
		"no-store\r\nVary: Accept-Language\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n\r\n"...)
}

func (s *Server) reply(c *conn, body string) {
	s.write(c, append(head(nil, len(body)), body...))
}

// param returns a value of a query or form without decoding it; the values that matter here contain no escapes.
func param(b []byte, name string) []byte {
	i := bytes.Index(b, []byte(name))
	if i < 0 {
		return nil
	}
	b = b[i+len(name):]
	for i, c := range b {
		if c == '&' || c == ' ' {
			return b[:i]
		}
	}
	return b
}

func number(b []byte) int64 {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		return -n
	}
	return n
}
