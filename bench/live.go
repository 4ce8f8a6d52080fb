package bench

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

//go:embed live.html
var livePage []byte

// maxLivePoints bounds the seconds that the live page shows: an hour.
const maxLivePoints = 3600

// A livePoint is one second of a run.
type livePoint struct {
	Phase     string  `json:"phase"`
	Second    float64 `json:"second"` // of the phase
	Requests  int64   `json:"requests"`
	Delivered int64   `json:"delivered"`
	SeenP50   float64 `json:"seen_p50_ms"`
	SeenP99   float64 `json:"seen_p99_ms"`
	TookP99   float64 `json:"answered_p99_ms"`
	Generator float64 `json:"generator_percent"`
	Away      int     `json:"pollers_away"`
	Broken    int     `json:"broken"`
}

// A liveServer shows the seconds of a run while it lasts: a page, JSON and the text form of Prometheus.
type liveServer struct {
	mu     sync.Mutex
	points []livePoint
	srv    *http.Server
	addr   net.Addr
}

// startLive serves the live page on an address of this machine.
func startLive(listen string) (*liveServer, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("--live: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("--live must be an address of this machine, such as 127.0.0.1:9995")
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("--live: %w", err)
	}
	s := &liveServer{addr: l.Addr()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'")
		w.Write(livePage)
	})
	mux.HandleFunc("GET /live.json", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		b, _ := json.Marshal(s.points)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Write(b)
	})
	mux.HandleFunc("GET /metrics", s.metrics)
	s.srv = &http.Server{Handler: mux, ReadHeaderTimeout: settingsLimit}
	go s.srv.Serve(l)
	return s, nil
}

func (s *liveServer) close() { s.srv.Close() }

// add shows one more second. It does nothing for nil.
func (s *liveServer) add(p livePoint) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.points = append(s.points, p); len(s.points) > maxLivePoints {
		s.points = s.points[1:]
	}
}

// metrics writes the newest second in the text form of Prometheus.
func (s *liveServer) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	var p livePoint
	if n := len(s.points); n > 0 {
		p = s.points[n-1]
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"requests_per_second", "Answers in the last second.", float64(p.Requests)},
		{"deliveries_per_second", "Messages that pollers saw in the last second.", float64(p.Delivered)},
		{"seen_p50_milliseconds", "Median from the intended send to seen in the last second.", p.SeenP50},
		{"seen_p99_milliseconds", "99th percentile from the intended send to seen in the last second.", p.SeenP99},
		{"answered_p99_milliseconds", "99th percentile of answers in the last second.", p.TookP99},
		{"generator_percent", "CPU of the generator's thread in the last second.", p.Generator},
		{"pollers_away", "Pollers without connection.", float64(p.Away)},
		{"violations", "Violated guarantees so far.", float64(p.Broken)},
	} {
		fmt.Fprintf(w, "# HELP parley_bench_live_%s %s\n# TYPE parley_bench_live_%s "+
			"gauge\nparley_bench_live_%s{phase=%s} %g\n",
			m.name, m.help, m.name, m.name, label(p.Phase), m.value)
	}
}
