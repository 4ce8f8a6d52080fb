package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testNetwork is a network of hosts with one router, which this process is. Each host is a network namespace with a TUN
// device; the router passes IP packets between them, later or not at all. So the programs have real connections whose
// packets get lost. Host 0 is this process, for clients.
type testNetwork struct {
	t     *testing.T
	hosts []*testHost
	// queues have the packets from one host to another. A delay does not hold back packets of other hosts.
	queues map[[2]int]chan delayedPacket

	mu    sync.Mutex
	links map[[2]int]packetRule // from, to
}

// packetRule delays or drops packets in one direction.
type packetRule struct {
	cut   bool
	delay time.Duration
}

// testHost is one network namespace.
type testHost struct {
	device *os.File
	work   chan func() // runs in the namespace
}

type delayedPacket struct {
	at   time.Time
	data []byte
}

const (
	// maxPacket is how many bytes a packet has at most: the MTU of a TUN device is 1500.
	maxPacket = 2048
	// routerQueue is how many packets wait between two hosts. More are lost, as at a real router.
	routerQueue = 4096
)

// inNetworkNamespace is an environment variable that is set in a process that has its own network.
const inNetworkNamespace = "PARLEY_TEST_NETWORK"

// newTestNetwork makes a network with hosts 0 to n. If this process is not allowed to, the test is run again in a
// process that is, and the caller must return.
func newTestNetwork(t *testing.T, n int) (network *testNetwork, ok bool) {
	t.Helper()
	if os.Getenv(inNetworkNamespace) == "" {
		cmd := exec.Command("unshare", "-rn", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=30m")
		cmd.Env = append(os.Environ(), inNetworkNamespace+"=1")
		out, err := cmd.CombinedOutput()
		switch text := string(out); {
		case !strings.Contains(text, "=== RUN"):
			t.Skipf("no network can be made here: %v %s", err, out)
		case strings.Contains(text, "--- SKIP"):
			t.Skip(text)
		case err != nil:
			t.Errorf("%s", out)
		default:
			t.Log(text)
		}
		return nil, false
	}
	w := &testNetwork{t: t, links: map[[2]int]packetRule{}, queues: map[[2]int]chan delayedPacket{}}
	for i := range n + 1 {
		h, err := newTestHost(i)
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
			t.Skipf("this process cannot make a network device: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.hosts = append(w.hosts, h)
	}
	for from := range w.hosts {
		for to, h := range w.hosts {
			q := make(chan delayedPacket, routerQueue)
			w.queues[[2]int{from, to}] = q
			go h.deliver(q)
		}
	}
	for i, h := range w.hosts {
		go w.route(i)
		t.Cleanup(func() { h.device.Close() })
	}
	return w, true
}

// address returns the address of a host.
func address(host int) net.IP { return net.IPv4(10, 77, 0, byte(1+host)).To4() }

// newTestHost makes a host. Host 0 is in the namespace of this process.
func newTestHost(host int) (*testHost, error) {
	h := &testHost{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		var err error
		if host > 0 {
			err = unix.Unshare(unix.CLONE_NEWNET)
		}
		if err == nil {
			h.device, err = openDevice(address(host))
		}
		made <- err
		for work := range h.work {
			work()
		}
	}()
	return h, <-made
}

// openDevice makes a TUN device with an address in the namespace of this thread, and starts the loopback device.
func openDevice(ip net.IP) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a network device: %w", err)
	}
	r, _ := unix.NewIfreq("tun0") // the name is short enough
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return nil, fmt.Errorf("make a network device: %w", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	set := func(request uint, change func(*unix.Ifreq) error, name string) {
		r, _ := unix.NewIfreq(name)
		if err == nil {
			if err = change(r); err == nil {
				err = unix.IoctlIfreq(s, request, r)
			}
		}
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip) }, "tun0")
	set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }, "tun0")
	set(unix.SIOCSIFFLAGS, up, "tun0")
	set(unix.SIOCSIFFLAGS, up, "lo")
	if err != nil {
		return nil, fmt.Errorf("set up a network device: %w", err)
	}
	return os.NewFile(uintptr(fd), "tun0"), nil
}

// route passes the packets of a host.
func (w *testNetwork) route(from int) {
	for {
		data := make([]byte, maxPacket)
		n, err := w.hosts[from].device.Read(data)
		if err != nil {
			return
		}
		if n < 20 || data[0]>>4 != 4 || binary.BigEndian.Uint32(data[16:])>>8 != 10<<16|77<<8 {
			continue // not a packet of IPv4 to a host
		}
		to := int(data[19]) - 1
		if to < 0 || to >= len(w.hosts) {
			continue
		}
		w.mu.Lock()
		link := w.links[[2]int{from, to}]
		w.mu.Unlock()
		if link.cut {
			continue
		}
		select {
		case w.queues[[2]int{from, to}] <- delayedPacket{time.Now().Add(link.delay), data[:n]}:
		default:
		}
	}
}

// deliver sends packets to a host, in order.
func (h *testHost) deliver(queue chan delayedPacket) {
	for p := range queue {
		time.Sleep(time.Until(p.at))
		if _, err := h.device.Write(p.data); errors.Is(err, os.ErrClosed) {
			return
		}
	}
}

// set changes the links from one host to another.
func (w *testNetwork) set(from, to int, s packetRule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[[2]int{from, to}] = s
}

// heal makes all links good ones.
func (w *testNetwork) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.links)
}

// start starts a program at a host.
func (w *testNetwork) start(host int, cmd *exec.Cmd) (p *program) {
	w.t.Helper()
	done := make(chan struct{})
	w.hosts[host].work <- func() {
		defer close(done)
		p = startProgram(w.t, cmd) // the program gets the namespace of this thread
	}
	<-done
	return p
}
