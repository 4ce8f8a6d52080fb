// Package metrics collects the metrics and bounds of the parts of a server. It serves them as Prometheus text, together
// with Go's profiles and the page about the server.
package metrics

import (
	"errors"
	"fmt"
	"log/slog"
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
	"parley/cmd/internal/offsite"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/diskspace"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/snapshot/meaning"
	"parley/snapshot/replicated"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/assist"
	"parley/wire/calls"
	"parley/wire/directories"
	"parley/wire/dispatch"
	"parley/wire/exports"
	"parley/wire/form"
	"parley/wire/gifs"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
	"parley/wire/push"
	"parley/wire/thumbnails"
)

// Server serves /metrics and Go's profiles; nil if there is none.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Open serves /metrics (Prometheus text), Go's profiles and the page about the server at an address of their own, if
// the setting debug-listen is not empty. They require no login, so they must not be reachable for clients. parts is
// called at each reading.
func Open(listen string, parts func() *Parts, status *StatusReader) (*Server, error) {
	if listen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("debug-listen: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector(parts), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	status.addPages(mux)
	m := &Server{l, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go m.http.Serve(l)
	return m, nil
}

// Addr returns the address of the metrics, or "" if there are none.
func (m *Server) Addr() string {
	if m == nil {
		return ""
	}
	return m.listener.Addr().String()
}

// Close stops serving metrics; it does not wait for requests.
func (m *Server) Close() error {
	if m == nil {
		return nil
	}
	if err := m.http.Close(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Parts are the parts of a server that have metrics and bounds. Those that a server does not have are nil: an edge has
// no store, no files and no background work.
type Parts struct {
	Program     string // version
	Log         *slog.Logger
	Orgs        *actors.Server
	Limits      realm.Limits
	HTTP        *httpd.Server
	Passwords   *httpd.Passwords
	Encodings   *wire.EventEncodings
	TurnLatency TurnLatency
	Space       *diskspace.Watcher
	Store       *snapshot.Store
	Search      *search.Service
	Meaning     *meaning.Service // nil: there is no service for vectors
	Files       *files.Store
	Served      *orgfiles.Served
	Fetcher     *orgfiles.Fetcher
	Bucket      *s3.Bucket
	Thumbnails  *thumbnails.Worker
	Exports     *exports.Exporter
	Directories *directories.Syncer
	Assistant   *assist.Assistant
	GIFs        *gifs.Provider
	Calls       *calls.Service // nil: LiveKit is not configured
	Dispatcher  *dispatch.Dispatcher
	Pusher      *push.Pusher
	CoreNode    *cluster.CoreNode
	Leader      *cluster.Leader
	Follower    *cluster.Follower // an edge's link to the leader, or that of a core
	Backups     offsite.Status

	// MaxReplicas and ReplicaBytes limit the replicas of an edge.
	MaxReplicas  int
	ReplicaBytes int64
}

// Reading is one reading of everything that metrics and bounds are computed from.
type Reading struct {
	*Parts
	park   park.Config
	http   park.Stats
	realm  actors.RealmMetrics
	store  snapshot.Metrics
	raft   replicated.Status // zero unless this is a core of a cluster
	bucket s3.Stats          // zero if the files are in the data directory
}

// Read reads the counters of every part.
func Read(p *Parts) *Reading {
	r := &Reading{Parts: p, park: p.HTTP.Bounds(), http: p.HTTP.Stats(), realm: p.Orgs.RealmMetrics()}
	if p.Bucket != nil {
		r.bucket = p.Bucket.Stats()
	}
	if p.Store != nil {
		r.store = p.Store.Metrics()
	}
	if p.CoreNode != nil {
		r.raft = p.CoreNode.Status()
	}
	return r
}

// Empty returns the reading of a server that does not run, which has the limits of p. The tables of its bounds and
// metrics describe those of every server.
func Empty(p *Parts, c park.Config) *Reading { return &Reading{Parts: p, park: c.WithDefaults()} }

// metrics returns the metrics without labels, in the order of the reference page.
func (r *Reading) metrics() []registry.Metric {
	return slices.Concat(r.raft.Metrics(), r.Orgs.MetricTable(r.realm), r.store.Table(), r.Space.Metrics(),
		r.bucket.Metrics(), r.Backups.Metrics(), r.http.Metrics(), r.Assistant.Metrics(), r.Meaning.Metrics(),
		r.Calls.Metrics(),
		cluster.Metrics(r.Leader, r.Follower))
}

// labeled returns the metrics with a label, in the order of the reference page.
func (r *Reading) labeled() []registry.Labeled {
	return slices.Concat(r.Orgs.Labeled(r.realm), r.store.Labeled(), r.http.Labeled(), r.HTTP.EndpointMetrics(),
		r.bucket.Labeled(), r.Assistant.Labeled(), r.Calls.Labeled(),
		cluster.Labeled(r.Leader, r.Follower), r.boundMetrics())
}

// Bounds returns all bounds, in the order of the reference page.
func (r *Reading) Bounds() []registry.Bound {
	m := &r.Orgs.Metrics
	longest := func() int64 { return registry.Largest(r.store.Journal) }
	waiting := func(kind realm.OutboxJobKind) int64 { return r.Dispatcher.Waiting()[kind] }
	return slices.Concat(park.Bounds(r.park, r.http, r.HTTP.Shares), r.HTTP.BoundTable(), r.Passwords.Bounds(),
		form.Bounds(), wire.Bounds(r.Encodings), r.Files.Bounds(r.Served.Decodings),
		r.bucket.Bounds(r.Served.Downloads), r.Fetcher.Bounds(r.Served.Fetches), r.Thumbnails.Bounds(),
		r.Orgs.Bounds(r.realm), owner.Bounds(longest, m.Snapshots.Load),
		delivery.Bounds(func() int64 { return registry.Largest(r.realm.Waiting) }, m.CommandsRefused.Load),
		queue.Bounds(func() int64 {
			return m.QueuesEvicted.Load() - m.QueuesEvictedForMemory.Load() - m.QueuesEvictedForAccount.Load()
		}),
		r.Limits.Bounds(waiting), r.store.Bounds(), r.Search.Bounds(), r.Pusher.Bounds(), r.Exports.Bounds(),
		r.Directories.Bounds(), r.Assistant.Bounds(), r.Meaning.Bounds(), r.GIFs.Bounds(), r.Calls.Bounds(),
		mail.Bounds(), logs.Bounds(r.Log),
		cluster.Bounds(r.Leader, r.Follower, r.MaxReplicas, r.ReplicaBytes))
}

// boundMetrics returns the metrics of the bounds. At an edge, those of parts that it does not have are left out.
func (r *Reading) boundMetrics() []registry.Labeled {
	each := func(number func(*registry.Bound) func() int64) func(func(string, float64)) {
		return func(send func(string, float64)) {
			bounds := r.Bounds()
			for i := range bounds {
				b := &bounds[i]
				if read := number(b); read != nil {
					r.ifPresent(func() { send(b.Name, float64(read())) })
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

// limitSettings are the settings that give the limits of bounds, where the default depends on the machine.
var limitSettings = map[string]string{
	"connections":           "max-connections",
	"answer_bytes":          "answer-memory",
	"unacked_bytes":         "unacked-memory",
	"unacked_account_bytes": "unacked-memory / 16",
	"replicas":              "max-replicas",
	"assist_user_tokens":    "assist-user-tokens", "assist_organization_tokens": "assist-organization-tokens",
	"meaning_messages": "embed-messages", "meaning_organization_tokens": "embed-organization-tokens",
	"replica_bytes": "replica-memory",
}

// DefaultLimit returns the limit of a bound of a server with default settings as the reference page shows it.
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
	commitLatency    = newDesc(commitSeconds, commitMeaning)
	commitLatencyMax = newDesc(longestCommit, longestMeaning)
)

const (
	commitSeconds  = "parley_store_commit_seconds"
	commitMeaning  = "Duration of synced batch writes."
	longestCommit  = "parley_store_commit_max_seconds"
	longestMeaning = "Longest duration of a synced batch write."
)

func newDesc(name, meaning string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, meaning, labels, nil)
}

// TurnLatency is the histogram to which the actors report how long turns, views and other messages took.
type TurnLatency struct{ vec *prometheus.HistogramVec }

func NewTurnLatency() TurnLatency {
	return TurnLatency{prometheus.NewHistogramVec(turnLatency, []string{"kind"})}
}

// Observer returns the histogram of one kind of turn.
func (l TurnLatency) Observer(kind string) actors.Observer { return l.vec.WithLabelValues(kind) }

// collector reads all metrics of a server when /metrics is requested.
type collector func() *Parts

// Describe sends the description of every metric that Collect sends.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range Read(c()).Describe() {
		labels := []string{m.Label}
		if m.Label == "" {
			labels = nil
		}
		out <- newDesc(m.Name, m.Meaning, labels...)
	}
}

// Collect reads and sends every metric.
func (c collector) Collect(out chan<- prometheus.Metric) {
	r := Read(c())
	kind := func(counter bool) prometheus.ValueType {
		if counter {
			return prometheus.CounterValue
		}
		return prometheus.GaugeValue
	}
	metrics := r.metrics()
	for i := range metrics {
		m := &metrics[i]
		r.ifPresent(func() {
			out <- prometheus.MustNewConstMetric(newDesc(m.Name, m.Meaning), kind(m.Counter), m.Value())
		})
	}
	for _, m := range r.labeled() {
		desc := newDesc(m.Name, m.Meaning, m.Label)
		m.Each(func(label string, v float64) { out <- prometheus.MustNewConstMetric(desc, kind(m.Counter), v, label) })
	}
	r.TurnLatency.vec.Collect(out)
	if r.Store != nil {
		out <- prometheus.MustNewConstHistogram(commitLatency, r.store.Commits, r.store.Total.Seconds(), r.store.Within)
		out <- prometheus.MustNewConstMetric(commitLatencyMax, prometheus.GaugeValue, r.store.Slowest.Seconds())
	}
}

// ifPresent reads a metric. An edge has no store, no files and no background work: it leaves out the metrics of these.
func (r *Reading) ifPresent(read func()) {
	if r.Store == nil {
		defer func() {
			if p := recover(); p != nil {
				r.Log.Debug("metric left out", "err", p)
			}
		}()
	}
	read()
}

// Description describes a metric for the reference page.
type Description struct {
	Name    string
	Type    string // counter, gauge or histogram
	Label   string // empty if it has none
	Meaning string
}

// Describe describes every metric of a server except those of Go and of the process.
func (r *Reading) Describe() (list []Description) {
	kind := map[bool]string{true: "counter", false: "gauge"}
	for _, m := range r.metrics() {
		list = append(list, Description{m.Name, kind[m.Counter], "", m.Meaning})
	}
	list = append(list, Description{turnLatency.Name, "histogram", "kind", turnLatency.Help},
		Description{commitSeconds, "histogram", "", commitMeaning},
		Description{longestCommit, "gauge", "", longestMeaning})
	for _, m := range r.labeled() {
		list = append(list, Description{m.Name, kind[m.Counter], m.Label, m.Meaning})
	}
	return list
}
