package park

import (
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"parley/wire/httpd/park/pollbench"

	"github.com/valyala/fasthttp"
)

// parkServer is this package as the benchmark runs it: a handler that parks, and an owner that answers.
type parkServer struct {
	*Server
	mu    sync.Mutex
	polls []*Parked
}

func newParker() pollbench.Server {
	p := &parkServer{}
	p.Server = New(Config{Name: "Parley", Handler: func(ctx *fasthttp.RequestCtx) {
		q := p.Park(ctx, nil)
		p.mu.Lock()
		p.polls = append(p.polls, q)
		p.mu.Unlock()
	}})
	return p
}

func (p *parkServer) Serve(ln net.Listener) error { return p.Server.Serve(ln) }

func (p *parkServer) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.polls)
}

func (p *parkServer) Publish(body []byte) (n int) {
	p.mu.Lock()
	polls := p.polls
	p.polls = make([]*Parked, 0, len(polls))
	p.mu.Unlock()
	for _, q := range polls {
		if q.Answer(200, body) {
			n++
		}
	}
	return n
}

func TestMain(m *testing.M) {
	runSuccessor()
	pollbench.Servers["park"] = newParker
	pollbench.RunRole()
	os.Exit(m.Run())
}

// BenchmarkPolls measures parked polls and deliveries, alternating with the bare epoll loop and the blocking
// handlers. One operation is one delivery. The environment variable PARK_N sets the number of clients.
//
//	go test -run - -bench Polls -benchtime 50000x -count 3 ./wire/httpd/park
func BenchmarkPolls(b *testing.B) {
	n := 5000
	if v, err := strconv.Atoi(os.Getenv("PARK_N")); err == nil {
		n = v
	}
	for _, kind := range []string{"epoll", "park", "blocking", "blocking-lean"} {
		b.Run(kind, func(b *testing.B) {
			r, err := pollbench.Measure(pollbench.Plan{Kind: kind, N: n, Rounds: max(1, b.N/n), Body: 1000})
			if err != nil {
				b.Fatal(err)
			}
			if r.Lost > 0 {
				b.Errorf("%d answers lost", r.Lost)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(r.CPU, "us-cpu/delivery")
			b.ReportMetric(r.Rate, "deliveries/s")
			b.ReportMetric(r.Allocs, "allocs/delivery")
			b.ReportMetric(r.FirstPark, "B-parked")
			b.ReportMetric(r.Steady, "B-steady")
			b.ReportMetric(r.Heap, "B-heap")
			b.ReportMetric(r.Stack, "B-stack")
			b.ReportMetric(float64(r.Goroutines), "goroutines")
		})
	}
}

// TestMeasureWorks keeps the measurement itself working, and checks that parked polls hold no goroutines.
func TestMeasureWorks(t *testing.T) {
	if !canEvent {
		t.Skip("measurements need Linux")
	}
	for _, kind := range []string{"epoll", "park", "blocking"} {
		r, err := pollbench.Measure(pollbench.Plan{Kind: kind, N: 200, Rounds: 3, Body: 1000})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r)
		if r.Lost > 0 || r.CPU <= 0 || r.FirstPark <= 0 {
			t.Errorf("%+v", r)
		}
		if many := r.Goroutines > 100; many != (kind == "blocking") {
			t.Errorf("%s: %d goroutines for 200 parked polls", kind, r.Goroutines)
		}
	}
}
