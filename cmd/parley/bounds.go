package main

import (
	"maps"
	"slices"

	"parley/actors"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire/courier"
	"parley/wire/form"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
)

// watched is what the meters look at.
type watched struct {
	house     *actors.House
	store     *snapshot.Store
	server    *httpd.Server
	library   *search.Library
	passwords *httpd.Passwords
	exports   *exporter
	outside   *courier.Courier
	kept      *files.Store
	log       *texts
}

// bound is the limit of something that could grow: a mailbox, a queue, a cache, what a client sends.
type bound struct {
	name string // also the label among the meters
	of   string // what is counted, in which unit
	past string // what happens beyond it
	// limit, used and hits read it. used is nil where a client's single request is bounded, hits where nothing is
	// counted.
	limit, used, hits func(r *meterReading) int64
}

// meterReading is one look at everything.
type meterReading struct {
	w     *watched
	house *actors.Metrics
	park  park.Config
	http  park.Stats
	realm actors.RealmMeters
	store snapshot.Metrics
}

func fixed(n int64) func(*meterReading) int64 { return func(*meterReading) int64 { return n } }

// errandsOf is how many errands of a kind wait.
func errandsOf(kind realm.ErrandKind) func(*meterReading) int64 {
	return func(r *meterReading) int64 { return r.w.outside.Waiting()[kind] }
}

func largest[K comparable](m map[K]int64) int64 {
	return slices.Max(append(slices.Collect(maps.Values(m)), 0))
}

// bounds is every bound of the process. The README shows the same rows: TestREADMEShowsTheBounds.
var bounds = []bound{
	{"connections", "open connections", "503 and closed", func(r *meterReading) int64 { return int64(r.park.MaxConns) }, func(r *meterReading) int64 { return int64(r.http.Open) }, func(r *meterReading) int64 { return r.http.Refused["conns"] }},
	{"requests", "requests in handlers", "503", func(r *meterReading) int64 { return int64(r.park.MaxActive) }, func(r *meterReading) int64 { return int64(r.http.Active) }, func(r *meterReading) int64 { return r.http.Refused["active"] }},
	{"slow_clients", "requests held up by a slow sender or reader", "503", func(r *meterReading) int64 { return int64(r.park.MaxSlow) }, func(r *meterReading) int64 { return int64(r.http.Slow) }, func(r *meterReading) int64 { return r.http.Refused["slow_clients"] }},
	{"header_bytes", "bytes of a request's line and headers", "431", func(r *meterReading) int64 { return int64(r.park.MaxHeader) }, nil, func(r *meterReading) int64 { return r.http.Refused["header_size"] }},
	{"body_bytes", "bytes of a request's body, some endpoints apart", "413", func(r *meterReading) int64 { return int64(r.park.MaxBody) }, nil, func(r *meterReading) int64 { return r.http.Refused["body_size"] }},
	{"all_body_bytes", "bytes of all bodies in memory; those in parts are there twice", "503", func(r *meterReading) int64 { return int64(r.park.MaxBodies) }, func(r *meterReading) int64 { return int64(r.http.Bodies) }, func(r *meterReading) int64 { return r.http.Refused["bodies"] }},
	{"uploads", "uploads under way", "503", func(r *meterReading) int64 { return int64(r.park.MaxStreams) }, func(r *meterReading) int64 { return int64(r.http.Streams) }, func(r *meterReading) int64 { return r.http.Refused["streams"] }},
	{"unfinished_uploads", "uploads in pieces that are not finished, or were lately; one user may have 40 unfinished", "the one finished the longest time ago is forgotten, else 429", fixed(files.MaxUnfinished), func(r *meterReading) int64 { return r.w.kept.Begun() }, nil},
	{"pictures", "requests that have a picture decoded or wait for it", "503", fixed(files.MaxDecoding), func(r *meterReading) int64 { return r.w.kept.Decoding() }, nil},
	{"thumbnail_bytes", "bytes of thumbnails on the disk", "the ones not wanted for longest go", fixed(files.MaxThumbnails), func(r *meterReading) int64 { return r.w.kept.Shown() }, nil},
	{"drawings", "requests that have a picture of a name drawn or wait for it", "503", fixed(httpd.MaxDrawing), func(r *meterReading) int64 { return r.w.server.Drawing() }, nil},
	{"drawn_pictures", "pictures of names that are kept, about 2 kB each", "all are forgotten, and drawn again", fixed(httpd.MaxDrawn), func(r *meterReading) int64 { return r.w.server.Drawn() }, nil},
	{"chained_bytes", "bytes of short pieces of answers, compressed behind others", "all are forgotten, and compressed again", fixed(httpd.MaxChained), func(r *meterReading) int64 { return r.w.server.Chained() }, nil},
	{"unsent_bytes", "bytes of events that sockets did not take at once", "the connection is dropped", func(r *meterReading) int64 { return int64(r.park.MaxPending) }, func(r *meterReading) int64 { return int64(r.http.Pending) }, func(r *meterReading) int64 { return r.http.Refused["pending"] }},
	{"parameters", "parameters of a request", "400", fixed(form.MaxParams), nil, nil},
	{"json_depth", "lists and objects inside each other in a parameter", "400", fixed(form.MaxJSONDepth), nil, nil},
	{"json_values", "JSON values in a parameter", "400", fixed(form.MaxJSONValues), nil, nil},
	{"heavy_requests", "requests with bodies over 64 kB being handled", "they wait", fixed(httpd.MaxHeavy), func(r *meterReading) int64 { return r.w.server.Heavy() }, nil},
	{"heavy_waiting", "such requests waiting for it", "503", fixed(httpd.MaxHeavyWaiting), func(r *meterReading) int64 { n, _ := r.w.server.HeavyWaiting(); return n }, func(r *meterReading) int64 { _, n := r.w.server.HeavyWaiting(); return n }},
	{"callers", "callers whose rate is remembered, of each kind", "the oldest, then any, are forgotten", fixed(httpd.MaxTracked), func(r *meterReading) int64 { return r.w.server.Tracked() }, nil},
	{"passwords", "passwords being hashed or waiting for it", "429", fixed(httpd.MaxPasswords), func(r *meterReading) int64 { return r.w.passwords.Waiting() }, nil},
	{"commands", "commands and reads waiting in the fullest organization's mailbox or for the disk", "503", fixed(actors.MaxInFlight), func(r *meterReading) int64 { return largest(r.realm.InFlight) }, func(r *meterReading) int64 { return r.w.house.Metrics.Busy.Load() }},
	{"undelivered", "recipients of events waiting in the sessions' mailboxes", "commands get 503", fixed(actors.MaxUndelivered), func(r *meterReading) int64 { return r.w.house.Metrics.Undelivered.Load() }, func(r *meterReading) int64 { return r.w.house.Metrics.Busy.Load() }},
	{"queues_of_a_user", "event queues of one account", "429", fixed(realm.MaxQueues), nil, nil},
	{"subscriptions_asked", "subscriptions one request makes or ends: users times channels", "400", fixed(realm.MaxSubscriptionsAsked), nil, nil},
	{"subscription_properties_asked", "settings of channels one request changes", "400", fixed(realm.MaxPropertiesAsked), nil, nil},
	{"works", "requests of one organization that take several turns, not yet done", "503", fixed(realm.MaxWorks), nil, nil},
	{"tellings", "messages of one organization for very many, whose mails and notifications are not yet made out", "dropped and logged", fixed(realm.MaxTellWorks), nil, nil},
	{"queue_events", "events a queue holds", "the queue ends: BAD_EVENT_QUEUE_ID", fixed(queue.MaxHeld), nil, func(r *meterReading) int64 {
		return r.w.house.Metrics.GivenUp.Load() - r.w.house.Metrics.GivenUpBytes.Load()
	}},
	{"kept_bytes", "bytes of events kept for all organizations' queues; one may keep half of it", "the queues farthest behind end: BAD_EVENT_QUEUE_ID", fixed(actors.MaxKeptTotal), func(r *meterReading) int64 { return r.w.house.Metrics.KeptBytes.Load() }, func(r *meterReading) int64 { return r.w.house.Metrics.GivenUpBytes.Load() }},
	{"text_cache_bytes", "bytes of message texts in memory", "the ones not read for longest leave", fixed(actors.TextCacheBytes), func(r *meterReading) int64 { return r.w.house.CachedTexts() }, nil},
	{"journal_bytes", "bytes of the longest journal behind its snapshot", "a snapshot is written, while it grows on; in the first seconds after an opening not before it is four times as long", fixed(actors.SnapshotBytes), func(r *meterReading) int64 { return largest(r.store.Journal) }, func(r *meterReading) int64 { return r.w.house.Metrics.Snapshots.Load() }},
	{"store_cache_bytes", "bytes of the store's blocks in memory", "the ones not read for longest leave", fixed(snapshot.DefaultCache), func(r *meterReading) int64 { return r.store.Cache }, nil},
	{"search_queue", "texts of one organization waiting to be indexed", "dropped, and found again by comparing with the disk", fixed(search.MaxQueued), func(r *meterReading) int64 { return r.w.library.Queued() }, nil},
	{"letters", "letters of one organization waiting to be sent", "dropped and logged", fixed(realm.MaxLetters), errandsOf(realm.LetterErrand), nil},
	{"service_calls", "calls of one organization's bots' services waiting; one bot may have a tenth", "dropped and logged", fixed(realm.MaxServiceCalls), errandsOf(realm.ServiceErrand), nil},
	{"missed_messages", "messages of one organization that may have to be mailed", "not mailed, and logged", fixed(realm.MaxMissed), errandsOf(realm.MissedErrand), nil},
	{"pushes", "notifications of one organization's users waiting for their devices", "dropped and logged", fixed(realm.MaxPushes), errandsOf(realm.PushErrand), nil},
	{"registrations", "devices of one organization's users that the push bouncer is to hear of; one user may have 32", "dropped and logged, or 503", fixed(realm.MaxRegistrations), errandsOf(realm.RegisterErrand), nil},
	{"previews", "messages of one organization whose links' pages are to be fetched; one user may have 50", "a message goes without, and logged", fixed(realm.MaxPreviews), errandsOf(realm.PreviewErrand), nil},
	{"exports", "data exports waiting", "the export fails", fixed(maxWaitingExports), func(r *meterReading) int64 { return int64(len(r.w.exports.jobs)) }, nil},
	{"mail_connections", "connections that bring mail for channels", "they wait", fixed(mail.MaxConnections), nil, nil},
	{"log_lines", "lines a minute of one text of warnings and errors in the log", "left out and counted: `unsaid`", fixed(maxLinesOfText), nil, func(r *meterReading) int64 { return r.w.log.unsaid.Load() }},
}
