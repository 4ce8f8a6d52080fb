package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/actors"
)

// serveMetrics answers /metrics (Prometheus text) and Go's profiles at an address of their own: they know no login, so
// they must not be where clients are.
func serveMetrics(addr string, of *metricsCollector) (func() error, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("debug-listen: %w", err)
	}
	all := prometheus.NewRegistry()
	all.MustRegister(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l)
	return func() error {
		if err := s.Close(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

// metric is a number the server counts anyway, read when /metrics is asked.
type metric struct {
	*prometheus.Desc
	kind prometheus.ValueType
	read func(r *metricReading) int64
}

func counter(name, help string, read func(r *metricReading) int64) metric {
	return metric{prometheus.NewDesc("parley_"+name+"_total", help, nil, nil), prometheus.CounterValue, read}
}

func gauge(name, help string, read func(r *metricReading) int64) metric {
	return metric{prometheus.NewDesc("parley_"+name, help, nil, nil), prometheus.GaugeValue, read}
}

var allMetrics = []metric{
	counter("turns", "Commands that organizations decided.", func(r *metricReading) int64 { return r.house.Turns.Load() }),
	counter("views", "Requests that only read an organization's state.", func(r *metricReading) int64 { return r.house.Views.Load() }),
	counter("busy", "Commands and views refused since an organization's mailbox or the sessions were full.", func(r *metricReading) int64 { return r.house.Busy.Load() }),
	counter("polls", "Requests for events.", func(r *metricReading) int64 { return r.house.Polls.Load() }),
	counter("deliveries", "Answers to polls.", func(r *metricReading) int64 { return r.house.Deliveries.Load() }),
	counter("heartbeats", "Heartbeat events put into queues.", func(r *metricReading) int64 { return r.house.Heartbeats.Load() }),
	counter("queues_given_up", "Queues ended since too many events were held for them.", func(r *metricReading) int64 { return r.house.QueuesEvicted.Load() }),
	counter("snapshots", "Snapshots written of organizations.", func(r *metricReading) int64 { return r.house.Snapshots.Load() }),
	gauge("queues", "Event queues.", func(r *metricReading) int64 { return r.house.OpenQueues.Load() }),
	gauge("polls_parked", "Polls waiting for an event.", func(r *metricReading) int64 { return r.house.ParkedPolls.Load() }),
	gauge("events_held", "Events in queues that their clients have not acknowledged, as of the last sweep.", func(r *metricReading) int64 { return r.house.UnackedEvents.Load() }),
	gauge("kept_facts", "Facts whose events are kept for queues.", func(r *metricReading) int64 { return r.house.UnackedFacts.Load() }),
	gauge("kept_bytes", "About what the kept events take in memory.", func(r *metricReading) int64 { return r.house.UnackedBytes.Load() }),
	gauge("undelivered", "Recipients of events on their way to sessions.", func(r *metricReading) int64 { return r.house.Undelivered.Load() }),

	counter("store_facts", "Facts written to the journal.", func(r *metricReading) int64 { return int64(r.store.Facts) }),
	counter("store_written_bytes", "Bytes of all committed batches.", func(r *metricReading) int64 { return int64(r.store.Bytes) }),
	gauge("store_disk_bytes", "Size of the store's files.", func(r *metricReading) int64 { return int64(r.store.Disk) }),
	gauge("store_log_bytes", "Size of the log to be replayed after a crash.", func(r *metricReading) int64 { return int64(r.store.Log) }),
	gauge("store_memtable_bytes", "Size of the store's memtables.", func(r *metricReading) int64 { return int64(r.store.MemTable) }),
	gauge("store_cache_bytes", "Size of the store's block cache.", func(r *metricReading) int64 { return r.store.Cache }),

	gauge("http_connections", "Open connections.", func(r *metricReading) int64 { return int64(r.http.Open) }),
	gauge("http_parked", "Requests whose answer comes later, without a goroutine.", func(r *metricReading) int64 { return int64(r.http.Parked) }),
	gauge("http_active", "Requests in handlers, or being read or written.", func(r *metricReading) int64 { return int64(r.http.Active) }),
	gauge("http_slow", "Requests held up by their client.", func(r *metricReading) int64 { return int64(r.http.Slow) }),
	gauge("http_body_bytes", "Bytes of request bodies held or announced.", func(r *metricReading) int64 { return int64(r.http.Bodies) }),
	gauge("http_streams", "Requests whose handlers read the body.", func(r *metricReading) int64 { return int64(r.http.Streams) }),
	gauge("http_pending_bytes", "Bytes of parked requests' answers that sockets did not take at once.", func(r *metricReading) int64 { return int64(r.http.Pending) }),
	counter("http_accepted", "Connections accepted.", func(r *metricReading) int64 { return r.http.Accepted }),
	counter("http_requests", "Requests.", func(r *metricReading) int64 { return r.http.Requests }),
	counter("http_quick_requests", "Requests answered where they were read, without a goroutine.", func(r *metricReading) int64 { return r.http.FastPath }),
	counter("http_parks", "Requests parked.", func(r *metricReading) int64 { return r.http.Parks }),
	counter("http_parked_answers", "Answers to parked requests.", func(r *metricReading) int64 { return r.http.Answers }),
	counter("http_gone", "Parked requests whose client left.", func(r *metricReading) int64 { return r.http.Gone }),
	counter("http_passed", "Connections given to a successor.", func(r *metricReading) int64 { return r.http.HandedOff }),
	counter("http_stuck", "Connections dropped since the client did not take an answer in time.", func(r *metricReading) int64 { return r.http.WriteTimeouts }),
	counter("http_panics", "Handlers that panicked.", func(r *metricReading) int64 { return r.http.Panics }),
	counter("http_received_bytes", "Bytes received; inside TLS, not its records.", func(r *metricReading) int64 { return r.http.BytesIn }),
	counter("http_sent_bytes", "Bytes sent; inside TLS, not its records.", func(r *metricReading) int64 { return r.http.BytesOut }),
}

var (
	refusalsDesc     = prometheus.NewDesc("parley_refusals_total", "Commands and views refused, by the protocol's code.", []string{"code"}, nil)
	httpRefusalsDesc = prometheus.NewDesc("parley_http_refusals_total", "Requests and connections refused before any handler.", []string{"reason"}, nil)

	realmInFlight = prometheus.NewDesc("parley_realm_in_flight", "Commands and views in an organization's mailbox or waiting for the disk.", []string{"realm"}, nil)
	realmFacts    = prometheus.NewDesc("parley_realm_durable_facts", "Number of an organization's last fact on disk.", []string{"realm"}, nil)
	realmAge      = prometheus.NewDesc("parley_realm_snapshot_age_seconds", "Time since an organization's rows were last written, or it was opened.", []string{"realm"}, nil)
	realmJournal  = prometheus.NewDesc("parley_realm_journal_bytes", "Bytes of an organization's facts behind its last snapshot.", []string{"realm"}, nil)

	turnLatencyMax = prometheus.NewDesc("parley_realm_held_max_seconds", "The longest of each kind.", []string{"kind"}, nil)

	commitLatency    = prometheus.NewDesc("parley_store_commit_seconds", "How long synced batches took.", nil, nil)
	commitLatencyMax = prometheus.NewDesc("parley_store_commit_max_seconds", "The longest of them.", nil, nil)

	boundLimit = prometheus.NewDesc("parley_bound_limit", "Limit of something that could grow.", []string{"of"}, nil)
	boundUsed  = prometheus.NewDesc("parley_bound_used", "How much of the limit is used.", []string{"of"}, nil)
	boundHits  = prometheus.NewDesc("parley_bound_hits_total", "How often the limit was hit.", []string{"of"}, nil)
)

// Describe tells the registry which metrics Collect sends.
func (w *metricsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range allMetrics {
		out <- m.Desc
	}
	w.turnLatency.Describe(out)
	for _, d := range []*prometheus.Desc{refusalsDesc, httpRefusalsDesc, realmInFlight, realmFacts, realmAge, realmJournal, turnLatencyMax,
		commitLatency, commitLatencyMax, boundLimit, boundUsed, boundHits} {
		out <- d
	}
}

// Collect reads everything once.
func (w *metricsCollector) Collect(out chan<- prometheus.Metric) {
	r := &metricReading{w: w, house: &w.house.Metrics, park: w.server.Bounds(), http: w.server.Stats(), realm: w.house.RealmMetrics(), store: w.store.Metrics()}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for _, m := range allMetrics {
		send(m.Desc, m.kind, float64(m.read(r)))
	}
	collectMap(send, refusalsDesc, prometheus.CounterValue, r.realm.Refusals)
	collectMap(send, httpRefusalsDesc, prometheus.CounterValue, r.http.Refused)
	collectMap(send, realmInFlight, prometheus.GaugeValue, r.realm.InFlight)
	collectMap(send, realmFacts, prometheus.GaugeValue, r.realm.DurableFacts)
	collectMap(send, realmAge, prometheus.GaugeValue, r.realm.SnapshotAgeSeconds)
	collectMap(send, realmJournal, prometheus.GaugeValue, r.store.Journal)
	w.turnLatency.Collect(out)
	for _, h := range w.house.TurnLatencies() {
		send(turnLatencyMax, prometheus.GaugeValue, h.Max.Seconds(), h.Kind)
	}
	out <- prometheus.MustNewConstHistogram(commitLatency, r.store.Commits, r.store.Total.Seconds(), r.store.Within)
	send(commitLatencyMax, prometheus.GaugeValue, r.store.Slowest.Seconds())
	for _, b := range bounds {
		send(boundLimit, prometheus.GaugeValue, float64(b.limit(r)), b.name)
		if b.used != nil {
			send(boundUsed, prometheus.GaugeValue, float64(b.used(r)), b.name)
		}
		if b.hits != nil {
			send(boundHits, prometheus.CounterValue, float64(b.hits(r)), b.name)
		}
	}
}

// turnLatencyBuckets are the upper bounds of the turn latency histogram, in seconds. actors.MaxTurnLatency is one of
// them: the turns above it are too slow.
var turnLatencyBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, actors.MaxTurnLatency.Seconds(), 0.01, 0.025, 0.1}

// newTurnLatency returns the histogram of how long turns, views and other messages took in the realm actors, by kind.
func newTurnLatency() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_realm_held_seconds", Help: "How long each kind of work held its organization.", Buckets: turnLatencyBuckets}, []string{"kind"})
}

func collectMap[K comparable](send func(*prometheus.Desc, prometheus.ValueType, float64, ...string), d *prometheus.Desc, kind prometheus.ValueType, values map[K]int64) {
	for k, v := range values {
		send(d, kind, float64(v), fmt.Sprint(k))
	}
}
