package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/actors"
	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/registry"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/logs"
	"parley/snapshot"
	"parley/snapshot/files/s3"
	"parley/snapshot/replicated"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
	"parley/wire/mail"
	"parley/wire/push"
)

// metricsServer serves /metrics and Go's profiles; nil if there is none.
type metricsServer struct {
	listener net.Listener
	http     *http.Server
}

// openMetrics serves /metrics (Prometheus text) and Go's profiles at an address of their own, if the settings say so.
// They require no login, so they must not be reachable for clients.
func (s *Server) openMetrics() (*metricsServer, error) {
	if s.DebugListen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", s.DebugListen)
	if err != nil {
		return nil, fmt.Errorf("debug-listen: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&metricsCollector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s.addStatusPages(mux)
	m := &metricsServer{l, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go m.http.Serve(l)
	return m, nil
}

func (m *metricsServer) addr() string {
	if m == nil {
		return ""
	}
	return m.listener.Addr().String()
}

// Close stops serving metrics; it does not wait for requests.
func (m *metricsServer) Close() error {
	if m == nil {
		return nil
	}
	if err := m.http.Close(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// metricsCollector reads all metrics of a server when /metrics is requested.
type metricsCollector struct{ server *Server }

// metricReading is one reading of everything that metrics and bounds are computed from.
type metricReading struct {
	server *Server
	park   park.Config
	limits realm.Limits
	http   park.Stats
	realm  actors.RealmMetrics
	store  snapshot.Metrics
	raft   replicated.Status // zero unless this is a core of a cluster
	bucket s3.Stats          // zero if the files are in the data directory
}

// readMetrics reads the counters of every part of the server.
func (s *Server) readMetrics() *metricReading {
	var bucket s3.Stats
	if s.bucket != nil {
		bucket = s.bucket.Stats()
	}
	r := &metricReading{
		server: s,
		bucket: bucket,
		park:   s.http.Bounds(),
		limits: s.realmLimits(),
		http:   s.http.Stats(),
		realm:  s.orgs.RealmMetrics(),
	}
	if s.store != nil {
		r.store = s.store.Metrics()
	}
	if s.coreNode != nil {
		r.raft = s.coreNode.Status()
	}
	return r
}

// link returns the edge's link to the core, or that of a core to the leader; nil at a single node.
func (r *metricReading) link() *cluster.Follower {
	if r.server.edge != nil {
		return r.server.edge.Follower
	}
	return r.server.link
}

// metrics returns the metrics without labels, in the order of the reference page.
func (r *metricReading) metrics() []registry.Metric {
	s := r.server
	return slices.Concat(r.raft.Metrics(), s.orgs.MetricTable(r.realm), r.store.Table(), s.space.Metrics(),
		r.bucket.Metrics(), r.http.Metrics(), cluster.Metrics(s.core, r.link()))
}

// labeled returns the metrics with a label, in the order of the reference page.
func (r *metricReading) labeled() []registry.Labeled {
	return slices.Concat(r.server.orgs.Labeled(r.realm), r.store.Labeled(), r.http.Labeled(),
		r.server.http.EndpointMetrics(), r.bucket.Labeled(),
		cluster.Labeled(r.server.core, r.link()), r.boundMetrics())
}

// bounds returns all bounds, in the order of the reference page.
func (r *metricReading) bounds() []registry.Bound {
	s := r.server
	longest := func() int64 { return registry.Largest(r.store.Journal) }
	waiting := func(kind realm.OutboxJobKind) int64 { return s.dispatcher.Waiting()[kind] }
	return slices.Concat(park.Bounds(r.park, r.http), s.http.BoundTable(), s.passwords.Bounds(), form.Bounds(),
		wire.Bounds(s.encodings), s.files.Bounds(), r.bucket.Bounds(), s.fetcher.Bounds(), s.thumbnails.Bounds(),
		s.orgs.Bounds(r.realm), owner.Bounds(longest, func() int64 { return s.orgs.Metrics.Snapshots.Load() }),
		delivery.Bounds(func() int64 { return registry.Largest(r.realm.Waiting) },
			func() int64 { return s.orgs.Metrics.CommandsRefused.Load() }),
		queue.Bounds(func() int64 {
			m := &s.orgs.Metrics
			return m.QueuesEvicted.Load() - m.QueuesEvictedForMemory.Load() - m.QueuesEvictedForAccount.Load()
		}),
		r.limits.Bounds(waiting), r.store.Bounds(), s.search.Bounds(), s.pusher().Bounds(), s.exports.Bounds(),
		mail.Bounds(), logs.Bounds(s.log),
		cluster.Bounds(s.core, r.link(), s.MaxReplicas, int64(s.memory().Replicas(s.ReplicaMemory))))
}

// pusher returns the sender of push notifications; nil if there is none.
func (s *Server) pusher() *push.Pusher {
	if s.push == nil {
		return nil
	}
	return s.push.Pusher
}

// boundMetrics returns the metrics of the bounds. At an edge, those of parts that it does not have are left out.
func (r *metricReading) boundMetrics() []registry.Labeled {
	each := func(number func(*registry.Bound) func() int64) func(func(string, float64)) {
		return func(send func(string, float64)) {
			bounds := r.bounds()
			for i := range bounds {
				b := &bounds[i]
				if read := number(b); read != nil {
					r.server.ifPresent(func() { send(b.Name, float64(read())) })
				}
			}
		}
	}
	return []registry.Labeled{
		{
			Name: "parley_bound_limit", Label: "of",
			Meaning: "Limit of a bound; bounds.md lists all bounds.",
			Each:    each(func(b *registry.Bound) func() int64 { return b.Limit }),
		},
		{
			Name: "parley_bound_used", Label: "of",
			Meaning: "Current use of a bound.",
			Each:    each(func(b *registry.Bound) func() int64 { return b.Used }),
		},
		{
			Name: "parley_bound_hits_total", Counter: true, Label: "of",
			Meaning: "How often a bound was reached.",
			Each:    each(func(b *registry.Bound) func() int64 { return b.Hits }),
		},
	}
}

// emptyReading is the reading of a server that does not run. The tables of its bounds and metrics describe those of
// every server.
func emptyReading() *metricReading {
	s := DefaultSettings()
	return &metricReading{server: &Server{Settings: s, orgs: &actors.Server{}}, park: s.parkConfig().WithDefaults(),
		limits: s.realmLimits()}
}

// AllBounds returns every bound of a server with default settings, for the reference page.
func AllBounds() []registry.Bound { return emptyReading().bounds() }

// limitSettings are the settings that give the limits of bounds, where the default depends on the machine.
var limitSettings = map[string]string{
	"connections":           "max-connections",
	"answer_bytes":          "answer-memory",
	"unacked_bytes":         "unacked-memory",
	"unacked_account_bytes": "unacked-memory / 16",
	"replicas":              "max-replicas",
	"replica_bytes":         "replica-memory",
}

// DefaultLimit returns the limit of a bound of AllBounds as the reference page shows it.
func DefaultLimit(b *registry.Bound) string {
	if setting := limitSettings[b.Name]; setting != "" {
		return "`" + setting + "`"
	}
	return fmt.Sprint(b.Limit())
}

// The histograms.
var (
	turnLatency = prometheus.HistogramOpts{
		Name: "parley_realm_turn_latency_seconds",
		Help: "How long each turn or view, by kind, has blocked its organization.",
		// One of the upper bounds is actors.MaxTurnLatency: turns that take longer are too slow.
		Buckets: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, actors.MaxTurnLatency.Seconds(), 0.01, 0.025, 0.1},
	}
	commitLatency    = newDesc("parley_store_commit_seconds", "Duration of synced batch writes.")
	commitLatencyMax = newDesc("parley_store_commit_max_seconds", "Longest duration of a synced batch write.")
)

func newDesc(name, meaning string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, meaning, labels, nil)
}

// newTurnLatency returns the histogram to which the actors report how long turns, views and other messages took.
func newTurnLatency() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(turnLatency, []string{"kind"})
}

// Describe sends the description of every metric that Collect sends.
func (c *metricsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range AllMetrics() {
		labels := []string{m.Label}
		if m.Label == "" {
			labels = nil
		}
		out <- newDesc(m.Name, m.Meaning, labels...)
	}
}

// Collect reads and sends every metric.
func (c *metricsCollector) Collect(out chan<- prometheus.Metric) {
	s := c.server
	r := s.readMetrics()
	kind := func(counter bool) prometheus.ValueType {
		if counter {
			return prometheus.CounterValue
		}
		return prometheus.GaugeValue
	}
	metrics := r.metrics()
	for i := range metrics {
		m := &metrics[i]
		s.ifPresent(func() {
			out <- prometheus.MustNewConstMetric(newDesc(m.Name, m.Meaning), kind(m.Counter), m.Value())
		})
	}
	for _, m := range r.labeled() {
		desc := newDesc(m.Name, m.Meaning, m.Label)
		m.Each(func(label string, v float64) { out <- prometheus.MustNewConstMetric(desc, kind(m.Counter), v, label) })
	}
	s.turnLatency.Collect(out)
	if s.store != nil {
		out <- prometheus.MustNewConstHistogram(commitLatency, r.store.Commits, r.store.Total.Seconds(), r.store.Within)
		out <- prometheus.MustNewConstMetric(commitLatencyMax, prometheus.GaugeValue, r.store.Slowest.Seconds())
	}
}

// ifPresent reads a metric. An edge has no store, no files and no background work: it leaves out the metrics of these.
func (s *Server) ifPresent(read func()) {
	if s.store == nil {
		defer func() {
			if p := recover(); p != nil {
				s.log.Debug("metric left out", "err", p)
			}
		}()
	}
	read()
}

// MetricDescription describes a metric for the reference page.
type MetricDescription struct {
	Name    string
	Type    string // counter, gauge or histogram
	Label   string // empty if it has none
	Meaning string
}

// AllMetrics describes every metric of a server except those of Go and of the process.
func AllMetrics() (list []MetricDescription) {
	kind := map[bool]string{true: "counter", false: "gauge"}
	r := emptyReading()
	for _, m := range r.metrics() {
		list = append(list, MetricDescription{m.Name, kind[m.Counter], "", m.Meaning})
	}
	list = append(list,
		MetricDescription{turnLatency.Name, "histogram", "kind", turnLatency.Help},
		MetricDescription{"parley_store_commit_seconds", "histogram", "", "Duration of synced batch writes."},
		MetricDescription{"parley_store_commit_max_seconds", "gauge", "", "Longest duration of a synced batch write."})
	for _, m := range r.labeled() {
		list = append(list, MetricDescription{m.Name, kind[m.Counter], m.Label, m.Meaning})
	}
	return list
}
