package pollbench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Server parks every GET request until Publish answers them all.
type Server interface {
	Serve(net.Listener) error
	Waiting() int                // requests parked now
	Publish(body []byte) (n int) // answers all of them and returns how many clients took it
}

// Servers are the kinds that Measure knows. Add others before RunRole.
var Servers = map[string]func() Server{
	"epoll":         newEpollServer,
	"blocking":      func() Server { return newBlockingServer(false) },
	"blocking-lean": func() Server { return newBlockingServer(true) },
}

// Plan is one measurement.
type Plan struct {
	Kind   string
	N      int // connections, each with one poll; each takes one file in both processes
	Rounds int // events published; each one goes to all N polls, after all have polled again
	Body   int // bytes of an answer's body
}

// Report is the result of a measurement. It covers the server's process alone.
type Report struct {
	Plan       Plan
	Goroutines int     // while N polls are parked
	FirstPark  float64 // bytes of resident memory per poll after the first park, without a forced collection
	Steady     float64 // the same after all rounds, collected and returned to the system
	Heap       float64 // bytes of heap per parked poll, part of Steady
	Stack      float64 // bytes of stacks per parked poll, part of Steady
	CPU        float64 // microseconds of processor time per delivery, including the client's next request
	Rate       float64 // deliveries per second
	Allocs     float64 // objects allocated per delivery
	Lost       int     // answers that could not be delivered
}

// String returns the report as one line of text.
func (r Report) String() string {
	return fmt.Sprintf("%-12s N=%d: %.2f kB/poll parked, %.2f steady (heap %.2f, stack %.2f), %d goroutines; "+
		"%.1f us CPU/delivery, %.0f deliveries/s, %.1f allocs", r.Plan.Kind, r.Plan.N, r.FirstPark/1000,
		r.Steady/1000, r.Heap/1000,
		r.Stack/1000, r.Goroutines, r.CPU, r.Rate, r.Allocs)
}

const roleEnv = "PARLEY_FLOOR_ROLE"

// RunRole runs the server or the clients of a measurement if this process was started for that; then it does not
// return. Otherwise it does nothing.
func RunRole() {
	var err error
	switch role, arg, _ := strings.Cut(os.Getenv(roleEnv), " "); role {
	case "":
		return
	case "server":
		err = runServer(arg)
	case "clients":
		err = runClients(arg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Measure runs one measurement.
func Measure(p Plan) (r Report, err error) {
	plan, err := json.Marshal(p)
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), roleEnv+"=server "+string(plan))
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return r, err
	}
	in, err := server.StdinPipe() // closing it ends the server
	if err != nil {
		return r, err
	}
	if err := server.Start(); err != nil {
		return r, err
	}
	defer server.Wait()
	defer in.Close()
	lines := bufio.NewReader(out)
	addr, err := lines.ReadString('\n')
	if err != nil {
		return r, fmt.Errorf("measure %s: server: %w", p.Kind, err)
	}
	clients := exec.Command(self)
	clients.Env = append(os.Environ(), roleEnv+"=clients "+strconv.Itoa(p.N)+" "+strings.TrimSpace(addr))
	clients.Stderr = os.Stderr
	if err := clients.Start(); err != nil {
		return r, err
	}
	defer clients.Wait()
	defer clients.Process.Kill()
	if err := json.NewDecoder(lines).Decode(&r); err != nil {
		return r, fmt.Errorf("measure %s: report: %w", p.Kind, err)
	}
	return r, nil
}

// runServer serves, publishes and reports.
func runServer(arg string) error {
	var p Plan
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	newServer, ok := Servers[p.Kind]
	if !ok {
		return fmt.Errorf("unknown server kind %q", p.Kind)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := newServer()
	go s.Serve(ln)
	runtime.GC()
	debug.FreeOSMemory()
	before := resident()
	fmt.Println(ln.Addr())

	r, n := Report{Plan: p}, float64(p.N)
	waitParked(s, p.N)
	r.FirstPark = float64(resident()-before) / n
	r.Goroutines = runtime.NumGoroutine()
	body := append([]byte(`{"result":"success","msg":"","events":["`), bytes.Repeat([]byte("x"), max(0, p.Body-45))...)
	body = append(body, "\"]}\n"...)
	for range 2 { // warm up
		s.Publish(body)
		waitParked(s, p.N)
	}
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	cpu, began := processorTime(), time.Now()
	for range p.Rounds {
		r.Lost += p.N - s.Publish(body)
		waitParked(s, p.N)
	}
	deliveries := float64(p.N * p.Rounds)
	r.CPU = float64((processorTime()-cpu)/time.Nanosecond) / 1000 / deliveries
	r.Rate = deliveries / time.Since(began).Seconds()
	runtime.ReadMemStats(&m1)
	r.Allocs = float64(m1.Mallocs-m0.Mallocs) / deliveries
	runtime.GC()
	debug.FreeOSMemory()
	r.Steady = float64(resident()-before) / n
	runtime.ReadMemStats(&m1)
	r.Heap, r.Stack = float64(m1.HeapInuse)/n, float64(m1.StackInuse)/n
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	select {} // until the clients are gone; see above
}

// waitParked waits until n polls are parked. It checks seldom, so that the cost does not count.
func waitParked(s Server, n int) {
	for s.Waiting() < n {
		time.Sleep(500 * time.Microsecond)
	}
}

// resident returns the resident memory of this process in bytes.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, rss int64
	fmt.Sscan(string(b), &size, &rss)
	return rss * int64(os.Getpagesize())
}

// blockingServer is an ordinary server: a poll blocks its handler.
type blockingServer struct {
	fasthttp.Server
	waiting atomic.Int64
	mu      sync.Mutex
	waiters []chan []byte
}

func newBlockingServer(lean bool) Server {
	s := &blockingServer{}
	s.Server.Handler = s.handle
	s.Server.ReduceMemoryUsage = lean
	return s
}

func (s *blockingServer) handle(ctx *fasthttp.RequestCtx) {
	c := make(chan []byte, 1)
	s.mu.Lock()
	s.waiters = append(s.waiters, c)
	s.mu.Unlock()
	s.waiting.Add(1)
	body := <-c
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

func (s *blockingServer) Waiting() int { return int(s.waiting.Load()) }

func (s *blockingServer) Publish(body []byte) int {
	s.mu.Lock()
	waiters := s.waiters
	s.waiters = nil
	s.mu.Unlock()
	for _, c := range waiters {
		s.waiting.Add(-1)
		c <- body
	}
	return len(waiters)
}
