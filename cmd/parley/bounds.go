package main

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"parley/actors"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire/dispatch"
	"parley/wire/form"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
)

// metricsCollector is what the meters look at.
type metricsCollector struct {
	turnLatency *prometheus.HistogramVec
	house       *actors.Server
	store       *snapshot.Store
	server      *httpd.Server
	library     *search.Service
	passwords   *httpd.Passwords
	exports     *exporter
	dispatcher  *dispatch.Dispatcher
	files       *files.Store
	log         *messageCounts
}

// bound is the limit of something that could grow: a mailbox, a queue, a cache, what a client sends.
type bound struct {
	name     string // also the label among the meters
	unit     string // what is counted, in which unit
	overflow string // what happens beyond it
	// limit, used and hits read it. used is nil where a client's single request is bounded, hits where nothing is
	// counted.
	limit, used, hits func(r *metricReading) int64
}

// metricReading is one look at everything.
type metricReading struct {
	w     *metricsCollector
	house *actors.Metrics
	park  park.Config
	http  park.Stats
	realm actors.RealmMetrics
	store snapshot.Metrics
}

func fixed(n int64) func(*metricReading) int64 { return func(*metricReading) int64 { return n } }

// outboxWaiting is how many newDispatcher of a kind wait.
func outboxWaiting(kind realm.OutboxJobKind) func(*metricReading) int64 {
	return func(r *metricReading) int64 { return r.w.dispatcher.Waiting()[kind] }
}

func largest[K comparable](m map[K]int64) int64 {
	return slices.Max(append(slices.Collect(maps.Values(m)), 0))
}

// bounds is every bound of the process. The README shows the same rows: TestBoundsPage.
var bounds = []bound{
	{"connections", "open connections", "503 and closed", func(r *metricReading) int64 { return int64(r.park.MaxConns) }, func(r *metricReading) int64 { return int64(r.http.Open) }, func(r *metricReading) int64 { return r.http.Refused["conns"] }},
	{"requests", "requests in handlers", "503", func(r *metricReading) int64 { return int64(r.park.MaxActive) }, func(r *metricReading) int64 { return int64(r.http.Active) }, func(r *metricReading) int64 { return r.http.Refused["active"] }},
	{"slow_clients", "requests held up by a slow sender or reader", "503", func(r *metricReading) int64 { return int64(r.park.MaxSlow) }, func(r *metricReading) int64 { return int64(r.http.Slow) }, func(r *metricReading) int64 { return r.http.Refused["slow_clients"] }},
	{"header_bytes", "bytes of a request's line and headers", "431", func(r *metricReading) int64 { return int64(r.park.MaxHeader) }, nil, func(r *metricReading) int64 { return r.http.Refused["header_size"] }},
	{"body_bytes", "bytes of a request's body, some endpoints apart", "413", func(r *metricReading) int64 { return int64(r.park.MaxBody) }, nil, func(r *metricReading) int64 { return r.http.Refused["body_size"] }},
	{"all_body_bytes", "bytes of all bodies in memory; those in parts are there twice", "503", func(r *metricReading) int64 { return int64(r.park.MaxBodies) }, func(r *metricReading) int64 { return int64(r.http.Bodies) }, func(r *metricReading) int64 { return r.http.Refused["bodies"] }},
	{"uploads", "uploads under way", "503", func(r *metricReading) int64 { return int64(r.park.MaxStreams) }, func(r *metricReading) int64 { return int64(r.http.Streams) }, func(r *metricReading) int64 { return r.http.Refused["streams"] }},
	{"unfinished_uploads", "uploads in pieces that are not finished, or were lately; one user may have 40 unfinished", "the one finished the longest time ago is forgotten, else 429", fixed(files.MaxPartialUploads), func(r *metricReading) int64 { return r.w.files.PartialUploads() }, nil},
	{"pictures", "requests that have a picture decoded or wait for it", "503", fixed(files.MaxDecodeRequests), func(r *metricReading) int64 { return r.w.files.DecodeRequests() }, nil},
	{"thumbnail_bytes", "bytes of thumbnails on the disk", "the ones not wanted for longest go", fixed(files.MaxThumbnailBytes), func(r *metricReading) int64 { return r.w.files.ThumbnailBytes() }, nil},
	{"drawings", "requests that have a picture of a name drawn or wait for it", "503", fixed(httpd.MaxIdenticonsPending), func(r *metricReading) int64 { return r.w.server.IdenticonsPending() }, nil},
	{"drawn_pictures", "pictures of names that are kept, about 2 kB each", "all are forgotten, and drawn again", fixed(httpd.MaxIdenticonsCached), func(r *metricReading) int64 { return r.w.server.IdenticonsCached() }, nil},
	{"chained_bytes", "bytes of short pieces of answers, compressed behind others", "all are forgotten, and compressed again", fixed(httpd.MaxChainedBytes), func(r *metricReading) int64 { return r.w.server.ChainedBytes() }, nil},
	{"unsent_bytes", "bytes of events that sockets did not take at once", "the connection is dropped", func(r *metricReading) int64 { return int64(r.park.MaxPending) }, func(r *metricReading) int64 { return int64(r.http.Pending) }, func(r *metricReading) int64 { return r.http.Refused["pending"] }},
	{"parameters", "parameters of a request", "400", fixed(form.MaxParams), nil, nil},
	{"json_depth", "lists and objects inside each other in a parameter", "400", fixed(form.MaxJSONDepth), nil, nil},
	{"json_values", "JSON values in a parameter", "400", fixed(form.MaxJSONValues), nil, nil},
	{"heavy_requests", "requests with bodies over 64 kB being handled", "they wait", fixed(httpd.MaxLargeBodies), func(r *metricReading) int64 { return r.w.server.LargeBodies() }, nil},
	{"heavy_waiting", "such requests waiting for it", "503", fixed(httpd.MaxLargeBodiesWaiting), func(r *metricReading) int64 { n, _ := r.w.server.LargeBodiesWaiting(); return n }, func(r *metricReading) int64 { _, n := r.w.server.LargeBodiesWaiting(); return n }},
	{"callers", "callers whose rate is remembered, of each kind", "the oldest, then any, are forgotten", fixed(httpd.MaxTracked), func(r *metricReading) int64 { return r.w.server.Tracked() }, nil},
	{"passwords", "passwords being hashed or waiting for it", "429", fixed(httpd.MaxPasswords), func(r *metricReading) int64 { return r.w.passwords.Waiting() }, nil},
	{"commands", "commands and reads waiting in the fullest organization's mailbox or for the disk", "503", fixed(actors.MaxInFlight), func(r *metricReading) int64 { return largest(r.realm.InFlight) }, func(r *metricReading) int64 { return r.w.house.Metrics.Busy.Load() }},
	{"undelivered", "recipients of events waiting in the sessions' mailboxes", "commands get 503", fixed(actors.MaxUndelivered), func(r *metricReading) int64 { return r.w.house.Metrics.Undelivered.Load() }, func(r *metricReading) int64 { return r.w.house.Metrics.Busy.Load() }},
	{"queues_of_a_user", "event queues of one account", "429", fixed(realm.MaxQueues), nil, nil},
	{"subscriptions_asked", "subscriptions one request makes or ends: users times channels", "400", fixed(realm.MaxSubscriptionsPerRequest), nil, nil},
	{"subscription_properties_asked", "settings of channels one request changes", "400", fixed(realm.MaxPropertiesPerRequest), nil, nil},
	{"works", "requests of one organization that take several turns, not yet done", "503", fixed(realm.MaxJobs), nil, nil},
	{"tellings", "messages of one organization for very many, whose mails and notifications are not yet made out", "dropped and logged", fixed(realm.MaxNotifyJobs), nil, nil},
	{"queue_events", "events a queue holds", "the queue ends: BAD_EVENT_QUEUE_ID", fixed(queue.MaxUnacked), nil, func(r *metricReading) int64 {
		return r.w.house.Metrics.QueuesEvicted.Load() - r.w.house.Metrics.QueuesEvictedForMemory.Load()
	}},
	{"kept_bytes", "bytes of events kept for all organizations' queues; one may keep half of it", "the queues farthest behind end: BAD_EVENT_QUEUE_ID", fixed(actors.MaxUnackedTotal), func(r *metricReading) int64 { return r.w.house.Metrics.UnackedBytes.Load() }, func(r *metricReading) int64 { return r.w.house.Metrics.QueuesEvictedForMemory.Load() }},
	{"text_cache_bytes", "bytes of message texts in memory", "the ones not read for longest leave", fixed(actors.TextCacheBytes), func(r *metricReading) int64 { return r.w.house.TextCacheSize() }, nil},
	{"journal_bytes", "bytes of the longest journal behind its snapshot", "a snapshot is written, while it grows on; in the first seconds after an opening not before it is four times as long", fixed(actors.SnapshotBytes), func(r *metricReading) int64 { return largest(r.store.Journal) }, func(r *metricReading) int64 { return r.w.house.Metrics.Snapshots.Load() }},
	{"store_cache_bytes", "bytes of the store's blocks in memory", "the ones not read for longest leave", fixed(snapshot.DefaultCache), func(r *metricReading) int64 { return r.store.Cache }, nil},
	{"search_queue", "texts of one organization waiting to be indexed", "dropped, and found again by comparing with the disk", fixed(search.MaxQueued), func(r *metricReading) int64 { return r.w.library.Queued() }, nil},
	{"letters", "letters of one organization waiting to be sent", "dropped and logged", fixed(realm.MaxEmails), outboxWaiting(realm.OutboxEmail), nil},
	{"service_calls", "calls of one organization's bots' services waiting; one bot may have a tenth", "dropped and logged", fixed(realm.MaxWebhookCalls), outboxWaiting(realm.OutboxWebhook), nil},
	{"missed_messages", "messages of one organization that may have to be mailed", "not mailed, and logged", fixed(realm.MaxMissedMessages), outboxWaiting(realm.OutboxMissedMessage), nil},
	{"pushes", "notifications of one organization's users waiting for their devices", "dropped and logged", fixed(realm.MaxPushes), outboxWaiting(realm.OutboxPush), nil},
	{"registrations", "devices of one organization's users that the push bouncer is to hear of; one user may have 32", "dropped and logged, or 503", fixed(realm.MaxDeviceRegistrations), outboxWaiting(realm.OutboxRegistration), nil},
	{"previews", "messages of one organization whose links' pages are to be fetched; one user may have 50", "a message goes without, and logged", fixed(realm.MaxPreviews), outboxWaiting(realm.OutboxPreview), nil},
	{"exports", "data exports waiting", "the export fails", fixed(maxWaitingExports), func(r *metricReading) int64 { return int64(len(r.w.exports.jobs)) }, nil},
	{"mail_connections", "connections that bring mail for channels", "they wait", fixed(mail.MaxConnections), nil, nil},
	{"log_lines", "lines a minute of one text of warnings and errors in the log", "left out and counted: `unsaid`", fixed(maxLinesPerMinute), nil, func(r *metricReading) int64 { return r.w.log.suppressed.Load() }},
}
