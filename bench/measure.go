package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the largest latency a histogram distinguishes; longer ones count as this. Latencies are stored in
// whole microseconds, with three exact digits.
const maxLatency = 2 * time.Minute

func newHist() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(maxLatency/time.Microsecond), 3)
}

func recordLatency(h *hdrhistogram.Histogram, d time.Duration) {
	us := int64(d / time.Microsecond)
	if us < 1 {
		us = 1
	}
	if us > int64(maxLatency/time.Microsecond) {
		us = int64(maxLatency / time.Microsecond)
	}
	h.RecordValue(us)
}

// Kinds of request, in the order of the reports. kindNames holds the names.
const (
	kindPoll = iota
	kindRegister
	kindSend
	kindPresence
	kindRead
	kindFlag
	kindTyping
	kindMessages
	kindReact
	kindEdit
	kindOther
	kindPing
	kindCount
)

var kindNames = [kindCount]string{"poll", "register", "send", "presence", "read", "flag", "typing", "messages", "react",
	"edit", "other", "ping"}

// A tally counts the requests of one kind during one phase.
type tally struct {
	n       int64
	status  map[int]int64 // count by status other than 200; 0 means no answer
	latency *hdrhistogram.Histogram
	bytes   int64
}

func (t *tally) count(status int, bytes int, took time.Duration) {
	t.n++
	t.bytes += int64(bytes)
	if status != 200 {
		if t.status == nil {
			t.status = map[int]int64{}
		}
		t.status[status]++
	}
	if took >= 0 {
		if t.latency == nil {
			t.latency = newHist()
		}
		recordLatency(t.latency, took)
	}
}

// A meter collects the measurements of one phase. Polls wait on purpose, so they have no latency. For them the meter
// records seen: the time from the intended start of a send until a poller has read the message.
type meter struct {
	name       string
	begin, end time.Duration
	kinds      [kindCount]tally
	seen       *hdrhistogram.Histogram
	lateness   *hdrhistogram.Histogram // delay of the generator behind its own schedule
	delivered  int64
	heartbeats int64
	eventBytes int64
	dials      int64
	held       int64 // requests that were not sent because their users are rate limited

	bytesIn, bytesOut int64
	serverCPU         time.Duration // of the server
	generatorBusy     time.Duration // of the generator's thread
	ownCPU            time.Duration // of the generator's process
	otherCPU          time.Duration // of all other processes on this machine, and of its host
	window            window
	windows           []window
}

// A window holds the measurements of one second of a phase.
type window struct {
	at        time.Duration
	requests  int64
	delivered int64
	seen      *hdrhistogram.Histogram
	took      *hdrhistogram.Histogram
}

func newMeter(name string) *meter {
	m := &meter{name: name, seen: newHist(), lateness: newHist()}
	m.window = window{seen: newHist(), took: newHist()}
	return m
}

func (m *meter) recordAnswer(kind, status, bytes int, took time.Duration) {
	m.kinds[kind].count(status, bytes, took)
	m.window.requests++
	if took >= 0 {
		recordLatency(m.window.took, took)
	}
}

// limited returns the number of answers that rejected a request because of a rate limit.
func (m *meter) limited() (n int64) {
	for k := range m.kinds {
		n += m.kinds[k].status[429]
	}
	return n
}

func (m *meter) recordSeen(took time.Duration) {
	m.delivered++
	m.window.delivered++
	recordLatency(m.seen, took)
	recordLatency(m.window.seen, took)
}

// roll closes the current window and opens the next.
func (m *meter) roll(now time.Duration) {
	w := m.window
	w.at = now
	m.windows = append(m.windows, w)
	m.window = window{seen: newHist(), took: newHist()}
}

// A process reads the resource use of a process from /proc.
type process struct {
	pid int
}

var clockTick = time.Second / 100 // USER_HZ is 100 on every Linux Go runs on

func (p process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0, err
	}
	// The process name, in parentheses, can contain spaces: count fields from the last parenthesis.
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is short", p.pid)
	}
	u, _ := strconv.ParseInt(f[11], 10, 64)
	s, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(u+s) * clockTick, nil
}

// rss returns the resident memory in bytes.
func (p process) rss() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "Rss:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no Rss in /proc/%d/smaps_rollup", p.pid)
}

func (p process) threads() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "Threads:" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}

// A sample is one measurement of the server process, and of its own metrics if it publishes them.
type sample struct {
	At         time.Time
	CPU        time.Duration
	RSS        int64
	Heap       int64 // bytes in use, 0 if the server does not publish it
	Goroutines int64 // 0 if the server does not publish it
	Others     time.Duration
}

// A sampler measures the server once a second in its own goroutine, since reading smaps can take milliseconds. It
// fetches the server's metrics only with every scrapeEvery-th sample: they cost the server up to 3 ms, which would
// count as server CPU.
type sampler struct {
	mu      sync.Mutex
	p       process
	metrics string // URL of Prometheus text, or empty
	all     []sample
	stop    chan struct{}
	done    chan struct{}
}

const scrapeEvery = 5

func startSampler(pid int, metrics string) *sampler {
	s := &sampler{p: process{pid}, metrics: metrics, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for n := 0; ; n++ {
			s.takeSample(n%scrapeEvery == 0)
			select {
			case <-t.C:
			case <-s.stop:
				return
			}
		}
	}()
	return s
}

// takeSample measures the server now. With scrape it also fetches the server's metrics.
func (s *sampler) takeSample(scrape bool) sample {
	s.mu.Lock()
	p, metrics := s.p, s.metrics
	s.mu.Unlock()
	x := sample{At: time.Now()}
	if p.pid != 0 {
		x.CPU, _ = p.cpu()
		x.RSS, _ = p.rss()
		x.Others = othersCPU()
	}
	if scrape && metrics != "" {
		x.Goroutines, x.Heap = readMetrics(metrics)
	}
	if x.RSS != 0 || x.Goroutines != 0 {
		s.mu.Lock()
		s.all = append(s.all, x)
		s.mu.Unlock()
	}
	return x
}

// setPID changes the process to measure, after a restart or upgrade.
func (s *sampler) setPID(pid int) {
	s.mu.Lock()
	s.p.pid = pid
	s.mu.Unlock()
}

func (s *sampler) samples() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sample(nil), s.all...)
}

func (s *sampler) close() {
	close(s.stop)
	<-s.done
}

// maxMetrics bounds the text of a server's metrics, in bytes. Parley's has some 100 kB.
const maxMetrics = 16 << 20

var metricsClient = &http.Client{Timeout: 2 * time.Second}

// readMetrics reads the usual metric names of a Go process from Prometheus text. It returns zeros on any error.
func readMetrics(url string) (goroutines, heap int64) {
	resp, err := metricsClient.Get(url)
	if err != nil {
		return 0, 0
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return 0, 0
	}
	sc := bufio.NewScanner(io.LimitReader(resp.Body, maxMetrics))
	for sc.Scan() {
		name, value, ok := strings.Cut(sc.Text(), " ")
		if !ok {
			continue
		}
		switch name {
		case "go_goroutines", "parley_goroutines":
			f, _ := strconv.ParseFloat(value, 64)
			goroutines = int64(f)
		case "go_memstats_heap_inuse_bytes", "parley_heap_bytes", "go_memory_classes_heap_objects_bytes":
			f, _ := strconv.ParseFloat(value, 64)
			heap = int64(f)
		}
	}
	return goroutines, heap
}

// othersCPU returns the busy CPU time of the machine so far, of all processes, plus the time its host took from it
// (steal). Steal makes a busy host visible to a guest.
func othersCPU() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	var busy int64
	for i, v := range f {
		// user nice system idle iowait irq softirq steal
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		busy += n
	}
	return time.Duration(busy) * clockTick
}
