package server

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
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files/s3"
	"parley/snapshot/replicated"
	"parley/wire/httpd/park"
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
	orgs   *actors.Metrics
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
		orgs:   &s.orgs.Metrics,
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

// metric is a number without labels.
type metric struct {
	name    string
	kind    prometheus.ValueType
	meaning string
	read    func(r *metricReading) int64
	scale   float64 // the result of read is multiplied by it; 0: by 1
	desc    *prometheus.Desc
}

func (m *metric) value(r *metricReading) float64 {
	if m.scale != 0 {
		return float64(m.read(r)) * m.scale
	}
	return float64(m.read(r))
}

// allMetrics lists the metrics without labels.
var allMetrics = describe(append([]metric{
	{
		name: "parley_cluster_leader", kind: prometheus.GaugeValue,
		meaning: "1 while this core is the leader of its cluster.",
		read:    func(r *metricReading) int64 { return oneIf(r.raft.Leading) },
	},
	{
		name: "parley_cluster_term", kind: prometheus.GaugeValue,
		meaning: "Raft term that this core knows; it rises with every election.",
		read:    func(r *metricReading) int64 { return int64(r.raft.Term) },
	},
	{
		name: "parley_cluster_applied_index", kind: prometheus.GaugeValue,
		meaning: "Index of the last entry of the replicated log that the store of this core contains.",
		read:    func(r *metricReading) int64 { return int64(r.raft.Applied) },
	},
	{
		name: "parley_cluster_unapplied_entries", kind: prometheus.GaugeValue,
		meaning: "Committed entries of the replicated log that this core has not applied.",
		read: func(r *metricReading) int64 {
			return int64(r.raft.Commit - min(r.raft.Commit, r.raft.Applied))
		},
	},
	{
		name: "parley_cluster_log_entries", kind: prometheus.GaugeValue,
		meaning: "Entries of the replicated log after the last Raft snapshot; a start of this core reads them again.",
		read: func(r *metricReading) int64 {
			return int64(r.raft.Last - min(r.raft.Last, r.raft.SnapshotIndex))
		},
	},
	{
		name: "parley_cluster_leader_silence_seconds", kind: prometheus.GaugeValue, scale: 1e-3,
		meaning: "Time since the last message of the leader; 0 at the leader.",
		read:    func(r *metricReading) int64 { return r.raft.Contact.Milliseconds() },
	},
	{
		name: "parley_cluster_backups_installed_total", kind: prometheus.CounterValue,
		meaning: "Backups of the leader that this core has installed because it was too far behind.",
		read:    func(r *metricReading) int64 { return r.raft.Installs },
	},
	{
		name: "parley_cluster_logs_compared_total", kind: prometheus.CounterValue,
		meaning: "Comparisons of this core's log with the leader's that found no difference.",
		read:    func(r *metricReading) int64 { return r.raft.Verified },
	},
	{
		name: "parley_cluster_logs_wrong_sums_total", kind: prometheus.CounterValue,
		meaning: "Comparisons with a wrong sum in the log although every entry of this core is intact: an older " +
			"release has written it. A damaged entry stops the core.",
		read: func(r *metricReading) int64 { return r.raft.Differing },
	},
	{
		name: "parley_turns_total", kind: prometheus.CounterValue,
		meaning: "Turns: commands that organizations have executed.",
		read:    func(r *metricReading) int64 { return r.orgs.Turns.Load() },
	},
	{
		name: "parley_views_total", kind: prometheus.CounterValue,
		meaning: "Views: requests that only read the state of an organization.",
		read:    func(r *metricReading) int64 { return r.orgs.Views.Load() },
	},
	{
		name: "parley_busy_rejections_total", kind: prometheus.CounterValue,
		meaning: "Commands and views rejected, because a mailbox of the organization or its sessions was full.",
		read:    func(r *metricReading) int64 { return r.orgs.Busy.Load() },
	},
	{
		name: "parley_polls_total", kind: prometheus.CounterValue,
		meaning: "Polls: requests for events.",
		read:    func(r *metricReading) int64 { return r.orgs.Polls.Load() },
	},
	{
		name: "parley_deliveries_total", kind: prometheus.CounterValue,
		meaning: "Answers to polls.",
		read:    func(r *metricReading) int64 { return r.orgs.Deliveries.Load() },
	},
	{
		name: "parley_heartbeats_total", kind: prometheus.CounterValue,
		meaning: "Heartbeat events added to queues.",
		read:    func(r *metricReading) int64 { return r.orgs.Heartbeats.Load() },
	},
	{
		name: "parley_queues_evicted_total", kind: prometheus.CounterValue,
		meaning: "Event queues closed because they had too many unacknowledged events.",
		read:    func(r *metricReading) int64 { return r.orgs.QueuesEvicted.Load() },
	},
	{
		name: "parley_queues_evicted_of_account_total", kind: prometheus.CounterValue,
		meaning: "Of these, queues closed because their account exceeded its share.",
		read:    func(r *metricReading) int64 { return r.orgs.QueuesEvictedForAccount.Load() },
	},
	{
		name: "parley_snapshots_total", kind: prometheus.CounterValue,
		meaning: "Snapshots of organizations written to disk.",
		read:    func(r *metricReading) int64 { return r.orgs.Snapshots.Load() },
	},
	{
		name: "parley_ownerships_lost_total", kind: prometheus.CounterValue,
		meaning: "Ownerships of organizations that this node lost, because the journal refused a batch or the leader " +
			"changed.",
		read: func(r *metricReading) int64 { return r.orgs.OwnershipsLost.Load() },
	},
	{
		name: "parley_queues_adopted_total", kind: prometheus.CounterValue,
		meaning: "Event queues that a node has adopted from another node, because their clients poll it.",
		read:    func(r *metricReading) int64 { return r.orgs.QueuesAdopted.Load() },
	},
	{
		name: "parley_requests_repeated_total", kind: prometheus.CounterValue,
		meaning: "Repeated forwarded requests that were not executed again.",
		read:    func(r *metricReading) int64 { return r.orgs.RequestsRepeated.Load() },
	},
	{
		name: "parley_messages_archived_total", kind: prometheus.CounterValue,
		meaning: "Messages that users or retention policies deleted; they are moved to the archive.",
		read:    func(r *metricReading) int64 { return r.orgs.MessagesArchived.Load() },
	},
	{
		name: "parley_messages_restored_total", kind: prometheus.CounterValue,
		meaning: "Messages restored from the archive.",
		read:    func(r *metricReading) int64 { return r.orgs.MessagesRestored.Load() },
	},
	{
		name: "parley_messages_purged_total", kind: prometheus.CounterValue,
		meaning: "Archived messages deleted permanently after archive-days.",
		read:    func(r *metricReading) int64 { return r.orgs.MessagesPurged.Load() },
	},
	{
		name: "parley_damaged_texts", kind: prometheus.GaugeValue,
		meaning: "Message texts that could not be read since the start, without those that were read or erased later.",
		read:    func(r *metricReading) int64 { return r.server.orgs.DamagedTexts() },
	},
	{
		name: "parley_queues", kind: prometheus.GaugeValue,
		meaning: "Open event queues.",
		read:    func(r *metricReading) int64 { return r.orgs.OpenQueues.Load() },
	},
	{
		name: "parley_polls_parked", kind: prometheus.GaugeValue,
		meaning: "Polls that wait for an event.",
		read:    func(r *metricReading) int64 { return r.orgs.ParkedPolls.Load() },
	},
	{
		name: "parley_unacked_events", kind: prometheus.GaugeValue,
		meaning: "Events in queues that clients have not acknowledged, counted once a second.",
		read:    func(r *metricReading) int64 { return r.orgs.UnackedEvents.Load() },
	},
	{
		name: "parley_unacked_facts", kind: prometheus.GaugeValue,
		meaning: "Facts with events in memory that some queue has not acknowledged.",
		read:    func(r *metricReading) int64 { return r.orgs.UnackedFacts.Load() },
	},
	{
		name: "parley_unacked_bytes", kind: prometheus.GaugeValue,
		meaning: "Estimated memory of these events, in bytes.",
		read:    func(r *metricReading) int64 { return r.orgs.UnackedBytes.Load() },
	},
	{
		name: "parley_undelivered_recipients", kind: prometheus.GaugeValue,
		meaning: "Recipients of events that wait in the mailboxes of sessions.",
		read:    func(r *metricReading) int64 { return r.orgs.Undelivered.Load() },
	},
	{
		name: "parley_delivery_lag_seconds", kind: prometheus.GaugeValue,
		meaning: "Expected seconds until new events are delivered to their queues, in the slowest organization.",
		read:    func(r *metricReading) int64 { return largest(r.realm.DeliveryLag) },
		scale:   1e-9,
	},
	{
		name: "parley_commands_waiting", kind: prometheus.GaugeValue,
		meaning: "Commands that wait because events are delivered late.",
		read:    func(r *metricReading) int64 { return r.orgs.CommandsWaiting.Load() },
	},
	{
		name: "parley_commands_waited_total", kind: prometheus.CounterValue,
		meaning: "Commands that had to wait because events were delivered late.",
		read:    func(r *metricReading) int64 { return r.orgs.CommandsWaited.Load() },
	},
	{
		name: "parley_command_wait_seconds_total", kind: prometheus.CounterValue,
		meaning: "Total time that these commands waited, in seconds.",
		read:    func(r *metricReading) int64 { return r.orgs.CommandWaitNanos.Load() },
		scale:   1e-9,
	},
	{
		name: "parley_commands_refused_total", kind: prometheus.CounterValue,
		meaning: "Commands answered 503, because too many commands waited or they had waited too long.",
		read:    func(r *metricReading) int64 { return r.orgs.CommandsRefused.Load() },
	},
	{
		name: "parley_store_facts_total", kind: prometheus.CounterValue,
		meaning: "Facts written to the journal.",
		read:    func(r *metricReading) int64 { return int64(r.store.Facts) },
	},
	{
		name: "parley_store_written_bytes_total", kind: prometheus.CounterValue,
		meaning: "Bytes of all committed batches.",
		read:    func(r *metricReading) int64 { return int64(r.store.Bytes) },
	},
	{
		name: "parley_store_disk_bytes", kind: prometheus.GaugeValue,
		meaning: "Size of the store's files.",
		read:    func(r *metricReading) int64 { return int64(r.store.Disk) },
	},
	{
		name: "parley_store_log_bytes", kind: prometheus.GaugeValue,
		meaning: "Size of the log that a start after a crash replays.",
		read:    func(r *metricReading) int64 { return int64(r.store.Log) },
	},
	{
		name: "parley_store_memtable_bytes", kind: prometheus.GaugeValue,
		meaning: "Size of the store's memtables.",
		read:    func(r *metricReading) int64 { return int64(r.store.MemTable) },
	},
	{
		name: "parley_store_cache_bytes", kind: prometheus.GaugeValue,
		meaning: "Size of the store's block cache.",
		read:    func(r *metricReading) int64 { return r.store.Cache },
	},
	{
		name: "parley_disk_free_bytes", kind: prometheus.GaugeValue,
		meaning: "Free space of the file system with the data directory.",
		read:    func(r *metricReading) int64 { return r.server.space.Free() },
	},
	{
		name: "parley_disk_low", kind: prometheus.GaugeValue,
		meaning: "1 while no files are stored because the disk is almost full (disk-min-free).",
		read:    func(r *metricReading) int64 { return oneIf(r.server.space.IsLow()) },
	},
	{
		name: "parley_disk_read_only", kind: prometheus.GaugeValue,
		meaning: "1 while every change is refused because the disk is full (disk-read-only).",
		read:    func(r *metricReading) int64 { return oneIf(r.server.space.IsReadOnly()) },
	},
	{
		name: "parley_disk_refused_files_total", kind: prometheus.CounterValue,
		meaning: "Files that were not stored because the disk is full or almost full.",
		read:    func(r *metricReading) int64 { return r.server.space.RefusedFiles() },
	},
	{
		name: "parley_files_unreachable", kind: prometheus.GaugeValue,
		meaning: "1 while uploads and downloads are refused because the bucket of the files cannot be reached.",
		read:    func(r *metricReading) int64 { return oneIf(r.bucket.Down) },
	},
	{
		name: "parley_http_connections", kind: prometheus.GaugeValue,
		meaning: "Open connections.",
		read:    func(r *metricReading) int64 { return int64(r.http.Open) },
	},
	{
		name: "parley_http_parked_requests", kind: prometheus.GaugeValue,
		meaning: "Parked requests: they wait for their answer without a goroutine.",
		read:    func(r *metricReading) int64 { return int64(r.http.Parked) },
	},
	{
		name: "parley_http_active_requests", kind: prometheus.GaugeValue,
		meaning: "Requests in handlers, or being received or answered.",
		read:    func(r *metricReading) int64 { return int64(r.http.Active) },
	},
	{
		name: "parley_http_slow_requests", kind: prometheus.GaugeValue,
		meaning: "Requests that wait for their client to send or receive.",
		read:    func(r *metricReading) int64 { return int64(r.http.Slow) },
	},
	{
		name: "parley_http_body_bytes", kind: prometheus.GaugeValue,
		meaning: "Bytes of request bodies that are in memory or announced.",
		read:    func(r *metricReading) int64 { return int64(r.http.Bodies) },
	},
	{
		name: "parley_http_streamed_requests", kind: prometheus.GaugeValue,
		meaning: "Requests whose handlers read the body as it arrives.",
		read:    func(r *metricReading) int64 { return int64(r.http.Streams) },
	},
	{
		name: "parley_http_unsent_bytes", kind: prometheus.GaugeValue,
		meaning: "Bytes of answers to parked requests that sockets did not accept at once.",
		read:    func(r *metricReading) int64 { return int64(r.http.Pending) },
	},
	{
		name: "parley_http_answer_bytes", kind: prometheus.GaugeValue,
		meaning: "Bytes of answers that are being built or that clients have not received.",
		read:    func(r *metricReading) int64 { return int64(r.http.AnswerBytes) },
	},
	{
		name: "parley_http_answers_refused_total", kind: prometheus.CounterValue,
		meaning: "Large answers refused because answers took too much memory.",
		read:    func(r *metricReading) int64 { return r.http.AnswersRefused },
	},
	{
		name: "parley_http_connections_accepted_total", kind: prometheus.CounterValue,
		meaning: "Connections accepted.",
		read:    func(r *metricReading) int64 { return r.http.Accepted },
	},
	{
		name: "parley_http_requests_total", kind: prometheus.CounterValue,
		meaning: "Requests.",
		read:    func(r *metricReading) int64 { return r.http.Requests },
	},
	{
		name: "parley_http_fast_path_requests_total", kind: prometheus.CounterValue,
		meaning: "Requests answered on the event loop, without a goroutine.",
		read:    func(r *metricReading) int64 { return r.http.FastPath },
	},
	{
		name: "parley_http_parked_requests_total", kind: prometheus.CounterValue,
		meaning: "Requests that were parked.",
		read:    func(r *metricReading) int64 { return r.http.Parks },
	},
	{
		name: "parley_http_parked_answers_total", kind: prometheus.CounterValue,
		meaning: "Answers to parked requests.",
		read:    func(r *metricReading) int64 { return r.http.Answers },
	},
	{
		name: "parley_http_parked_disconnects_total", kind: prometheus.CounterValue,
		meaning: "Parked requests whose client disconnected.",
		read:    func(r *metricReading) int64 { return r.http.Gone },
	},
	{
		name: "parley_http_connections_handed_over_total", kind: prometheus.CounterValue,
		meaning: "Connections handed over to a successor.",
		read:    func(r *metricReading) int64 { return r.http.HandedOff },
	},
	{
		name: "parley_http_write_timeouts_total", kind: prometheus.CounterValue,
		meaning: "Connections closed because the client did not receive an answer in time.",
		read:    func(r *metricReading) int64 { return r.http.WriteTimeouts },
	},
	{
		name: "parley_http_panics_total", kind: prometheus.CounterValue,
		meaning: "Handlers that panicked.",
		read:    func(r *metricReading) int64 { return r.http.Panics },
	},
	{
		name: "parley_http_received_bytes_total", kind: prometheus.CounterValue,
		meaning: "Bytes received, without the overhead of TLS.",
		read:    func(r *metricReading) int64 { return r.http.BytesIn },
	},
	{
		name: "parley_http_sent_bytes_total", kind: prometheus.CounterValue,
		meaning: "Bytes sent, without the overhead of TLS.",
		read:    func(r *metricReading) int64 { return r.http.BytesOut },
	},
}, clusterMetrics...))

// oneIf returns 1 for true and 0 for false.
func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// describe makes the descriptions that the Prometheus client needs.
func describe(list []metric) []metric {
	for i := range list {
		list[i].desc = prometheus.NewDesc(list[i].name, list[i].meaning, nil, nil)
	}
	return list
}

// labeledMetric describes a metric with a label, or a histogram.
type labeledMetric struct {
	name    string
	kind    string // counter, gauge or histogram
	label   string // empty if it has none
	meaning string
	desc    *prometheus.Desc
}

func newLabeledMetric(m labeledMetric) *labeledMetric {
	var labels []string
	if m.label != "" {
		labels = []string{m.label}
	}
	m.desc = prometheus.NewDesc(m.name, m.meaning, labels, nil)
	return &m
}

// The metrics with a label, and the histograms.
var (
	refusals = newLabeledMetric(labeledMetric{
		name: "parley_refusals_total", kind: "counter", label: "code",
		meaning: "Commands and views refused, by the protocol's error code.",
	})
	httpRefusals = newLabeledMetric(labeledMetric{
		name: "parley_http_refusals_total", kind: "counter", label: "reason",
		meaning: "Requests and connections refused before any handler ran, by reason.",
	})
	filesRequests = newLabeledMetric(labeledMetric{
		name: "parley_files_requests_total", kind: "counter", label: "op",
		meaning: "Requests to the bucket of the files, by kind.",
	})
	filesFailures = newLabeledMetric(labeledMetric{
		name: "parley_files_failures_total", kind: "counter", label: "op",
		meaning: "Requests to the bucket of the files that failed, by kind.",
	})
	realmInFlight = newLabeledMetric(labeledMetric{
		name: "parley_realm_in_flight", kind: "gauge", label: "realm",
		meaning: "Commands and views that wait in the mailbox of an organization or for the disk.",
	})
	realmFacts = newLabeledMetric(labeledMetric{
		name: "parley_realm_durable_facts", kind: "gauge", label: "realm",
		meaning: "Number of the last fact of an organization that is on disk.",
	})
	realmAge = newLabeledMetric(labeledMetric{
		name: "parley_realm_snapshot_age_seconds", kind: "gauge", label: "realm",
		meaning: "Time since the rows of an organization were written, or since it was opened.",
	})
	realmJournal = newLabeledMetric(labeledMetric{
		name: "parley_realm_journal_bytes", kind: "gauge", label: "realm",
		meaning: "Bytes of the facts of an organization since its last snapshot.",
	})
	realmArchived = newLabeledMetric(labeledMetric{
		name: "parley_realm_archived_messages", kind: "gauge", label: "realm",
		meaning: "Deleted messages of an organization that can be restored.",
	})
	realmRetentionLag = newLabeledMetric(labeledMetric{
		name: "parley_realm_retention_lag_seconds", kind: "gauge", label: "realm",
		meaning: "How long the deletion of messages by the retention policies of an organization is overdue.",
	})
	turnLatency = newLabeledMetric(labeledMetric{
		name: "parley_realm_turn_latency_seconds", kind: "histogram", label: "kind",
		meaning: "How long each turn or view, by kind, has blocked its organization.",
	})
	turnLatencyMax = newLabeledMetric(labeledMetric{
		name: "parley_realm_turn_latency_max_seconds", kind: "gauge", label: "kind",
		meaning: "The longest turn or view of each kind.",
	})
	commitLatency = newLabeledMetric(labeledMetric{
		name: "parley_store_commit_seconds", kind: "histogram",
		meaning: "Duration of synced batch writes.",
	})
	commitLatencyMax = newLabeledMetric(labeledMetric{
		name: "parley_store_commit_max_seconds", kind: "gauge",
		meaning: "Longest duration of a synced batch write.",
	})
	boundLimit = newLabeledMetric(labeledMetric{
		name: "parley_bound_limit", kind: "gauge", label: "of",
		meaning: "Limit of a bound; bounds.md lists all bounds.",
	})
	boundUsed = newLabeledMetric(labeledMetric{
		name: "parley_bound_used", kind: "gauge", label: "of",
		meaning: "Current use of a bound.",
	})
	boundHits = newLabeledMetric(labeledMetric{
		name: "parley_bound_hits_total", kind: "counter", label: "of",
		meaning: "How often a bound was reached.",
	})
)

// labeledMetrics returns the metrics with a label and the histograms, in the order of the reference page.
func labeledMetrics() []*labeledMetric {
	return append([]*labeledMetric{
		refusals, httpRefusals, filesRequests, filesFailures, realmInFlight, realmFacts, realmAge, realmJournal,
		realmArchived,
		realmRetentionLag, turnLatency, turnLatencyMax,
		commitLatency, commitLatencyMax, boundLimit, boundUsed, boundHits,
	}, clusterLabeledMetrics()...)
}

// turnLatencyBuckets are the upper bounds of the buckets of turnLatency, in seconds. One of them is
// actors.MaxTurnLatency: turns that take longer are too slow.
var turnLatencyBuckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, actors.MaxTurnLatency.Seconds(), 0.01, 0.025, 0.1,
}

// newTurnLatency returns the histogram to which the actors report how long turns, views and other messages took.
func newTurnLatency() *prometheus.HistogramVec {
	o := prometheus.HistogramOpts{Name: turnLatency.name, Help: turnLatency.meaning, Buckets: turnLatencyBuckets}
	return prometheus.NewHistogramVec(o, []string{turnLatency.label})
}

// Describe sends the description of every metric that Collect sends.
func (c *metricsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range allMetrics {
		out <- m.desc
	}
	for _, m := range labeledMetrics() {
		out <- m.desc
	}
}

// Collect reads and sends every metric.
func (c *metricsCollector) Collect(out chan<- prometheus.Metric) {
	s := c.server
	r := s.readMetrics()
	send := func(m *labeledMetric, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.kind == "counter" {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(m.desc, kind, v, labels...)
	}
	for _, m := range allMetrics {
		s.ifPresent(func() { out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(r)) })
	}
	sendMap(send, refusals, r.realm.Refusals)
	sendMap(send, httpRefusals, r.http.Refused)
	for _, op := range s3.Ops() {
		send(filesRequests, float64(r.bucket.Requests[op]), op.String())
		send(filesFailures, float64(r.bucket.Failures[op]), op.String())
	}
	sendMap(send, realmInFlight, r.realm.InFlight)
	sendMap(send, realmFacts, r.realm.DurableFacts)
	sendMap(send, realmAge, r.realm.SnapshotAgeSeconds)
	sendMap(send, realmArchived, r.realm.Archived)
	sendMap(send, realmRetentionLag, r.realm.RetentionLag)
	sendMap(send, realmJournal, r.store.Journal)
	s.turnLatency.Collect(out)
	for _, h := range s.orgs.TurnLatencies() {
		send(turnLatencyMax, h.Max.Seconds(), h.Kind)
	}
	if s.store != nil {
		out <- prometheus.MustNewConstHistogram(commitLatency.desc, r.store.Commits, r.store.Total.Seconds(),
			r.store.Within)
		send(commitLatencyMax, r.store.Slowest.Seconds())
	}
	r.sendClusterMetrics(send)
	for i := range AllBounds {
		b := &AllBounds[i]
		s.ifPresent(func() { send(boundLimit, float64(b.limit(r)), b.Name) })
		if b.used != nil {
			s.ifPresent(func() { send(boundUsed, float64(b.used(r)), b.Name) })
		}
		if b.hits != nil {
			s.ifPresent(func() { send(boundHits, float64(b.hits(r)), b.Name) })
		}
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

// sendMap sends a metric once for each key of a map; the key is the label.
func sendMap[K comparable](send func(*labeledMetric, float64, ...string), m *labeledMetric, values map[K]int64) {
	for k, v := range values {
		send(m, float64(v), fmt.Sprint(k))
	}
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
	for _, m := range allMetrics {
		kind := "gauge"
		if m.kind == prometheus.CounterValue {
			kind = "counter"
		}
		list = append(list, MetricDescription{Name: m.name, Type: kind, Meaning: m.meaning})
	}
	for _, m := range labeledMetrics() {
		list = append(list, MetricDescription{m.name, m.kind, m.label, m.meaning})
	}
	return list
}
