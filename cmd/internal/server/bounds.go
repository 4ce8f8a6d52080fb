package server

import (
	"fmt"
	"maps"
	"slices"

	"parley/actors"
	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/logs"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/exports"
	"parley/wire/form"
	"parley/wire/httpd"
	"parley/wire/mail"
	"parley/wire/push"
	"parley/wire/thumbnails"
)

// Bound is the limit of something that could grow: a mailbox, a queue, a cache, a part of a request.
type Bound struct {
	Name     string // also the value of the label "of" in the metrics
	Of       string // the objects counted, with their unit
	Overflow string // the effect of reaching the limit
	Reason   string // the reason for the value, or for having a limit

	limit func(r *metricReading) int64
	used  func(r *metricReading) int64 // nil if a single request is bounded
	hits  func(r *metricReading) int64 // how often the limit was reached; nil if that is not counted
}

// AllBounds lists every bound of a server. The metrics parley_bound_* and the reference page are made from it.
var AllBounds = append([]Bound{
	{
		Name:     "connections",
		Of:       "open connections",
		Overflow: "answered 503 and closed",
		Reason:   "each connection needs a file, and files are limited per process",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxConns) },
		used:     func(r *metricReading) int64 { return int64(r.http.Open) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["conns"] },
	},
	{
		Name:     "connections_per_network",
		Of:       "open connections of one IPv4 address or IPv6 /64, trusted proxies apart",
		Overflow: "answered 503 and closed",
		Reason:   "one network must not use up the connections of all others; a large office fits",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxConnsPerIP) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["conns_per_ip"] },
	},
	{
		Name:     "requests",
		Of:       "requests in handlers",
		Overflow: "503",
		Reason:   "each takes about 20 kB for its stack and buffers",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxActive) },
		used:     func(r *metricReading) int64 { return int64(r.http.Active) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["active"] },
	},
	{
		Name:     "slow_requests",
		Of:       "requests that wait for a slow sender or receiver",
		Overflow: "503",
		Reason:   "each takes about 20 kB, and 64 kB while a large answer is sent",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxSlow) },
		used:     func(r *metricReading) int64 { return int64(r.http.Slow) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["slow_clients"] },
	},
	{
		Name:     "handshakes",
		Of:       "TLS handshakes that are not complete",
		Overflow: "the connection is closed",
		Reason:   "each takes about 30 kB for its stack and keys",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxHandshakes) },
		used:     func(r *metricReading) int64 { return int64(r.http.Handshakes) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["handshakes"] },
	},
	{
		Name:     "header_bytes",
		Of:       "bytes of a request line and its headers",
		Overflow: "431",
		Reason:   "a long narrow in a URL with cookies fits twice",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxHeader) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["header_size"] },
	},
	{
		Name:     "body_bytes",
		Of:       "bytes of a request body; uploads and some other endpoints accept more",
		Overflow: "413",
		Reason:   "forms are small",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxBody) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["body_size"] },
	},
	{
		Name:     "total_body_bytes",
		Of:       "bytes of all request bodies in memory; multipart bodies count twice",
		Overflow: "503",
		Reason:   "memory for an announced body is allocated before it arrives",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxBodies) },
		used:     func(r *metricReading) int64 { return int64(r.http.Bodies) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["bodies"] },
	},
	{
		Name:     "uploads",
		Of:       "uploads in progress",
		Overflow: "503",
		Reason:   "each takes about 150 kB of buffers and a file",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxStreams) },
		used:     func(r *metricReading) int64 { return int64(r.http.Streams) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["streams"] },
	},
	{
		Name: "unfinished_uploads",
		Of: "resumable uploads that are unfinished or were finished lately; at most 40 unfinished ones " +
			"per user",
		Overflow: "the upload finished longest ago is forgotten; if there is none, 429",
		Reason:   "each takes about 500 bytes of memory",
		limit:    constant(files.MaxPartialUploads),
		used:     func(r *metricReading) int64 { return r.server.files.PartialUploads() },
	},
	{
		Name:     "image_decodings",
		Of:       "requests that decode an image or wait for it",
		Overflow: "503",
		Reason:   "a decoded image takes up to 200 MB, so they are decoded one after the other",
		limit:    constant(files.MaxDecodeRequests),
		used:     func(r *metricReading) int64 { return r.server.files.DecodeRequests() },
	},
	{
		Name:     "bucket_uploads",
		Of:       "files that are being sent to the bucket of the files, if there is one",
		Overflow: "a request waits for 5 seconds, then 503",
		Reason:   "a slow bucket must not use up all requests; each has buffers of about 40 kB",
		limit:    constant(s3.MaxUploads),
		used:     func(r *metricReading) int64 { return r.bucket.Uploads },
		hits:     func(r *metricReading) int64 { return r.bucket.RefusedUploads },
	},
	{
		Name:     "bucket_downloads",
		Of:       "files that are being received from the bucket of the files, if there is one",
		Overflow: "a request waits for 5 seconds, then 503",
		Reason:   "a download lasts as long as its client takes; each has a connection and buffers of about 40 kB",
		limit:    constant(s3.MaxDownloads),
		used:     func(r *metricReading) int64 { return r.bucket.Downloads },
		hits:     func(r *metricReading) int64 { return r.bucket.RefusedDownloads },
	},
	{
		Name:     "file_fetches",
		Of:       "files that a core without a bucket is receiving from other cores",
		Overflow: "a request waits for 5 seconds, then 503",
		Reason:   "a slow core must not use up all requests; each has a connection and buffers of about 100 kB",
		limit:    constant(cluster.MaxFileFetches),
		used:     func(r *metricReading) int64 { return r.server.fetcher.Fetching() },
	},
	{
		Name:     "served_files",
		Of:       "files that a core without a bucket is sending to other cores",
		Overflow: "the other core tries the next one, or answers its request 503",
		Reason:   "each has a connection and buffers of about 70 kB",
		limit:    constant(cluster.MaxServedFiles),
		used:     func(r *metricReading) int64 { return servedFiles(r) },
	},
	{
		Name:     "waiting_thumbnails",
		Of:       "uploaded images whose thumbnails wait to be made",
		Overflow: "made on request, or after the next start",
		Reason:   "they are made one after the other",
		limit:    constant(thumbnails.MaxWaiting),
		used:     func(r *metricReading) int64 { return r.server.thumbnails.Waiting() },
	},
	{
		Name:     "thumbnail_bytes",
		Of:       "bytes of thumbnails on the disk",
		Overflow: "the least recently used ones are removed",
		Reason:   "thumbnails can be made again",
		limit:    constant(files.MaxThumbnailBytes),
		used:     func(r *metricReading) int64 { return r.server.files.ThumbnailBytes() },
	},
	{
		Name:     "presence_rows",
		Of:       "rows of presence that are stored at once between snapshots",
		Overflow: "the others follow 5 seconds later",
		Reason:   "they must not delay the journal",
		limit:    constant(owner.MaxPresenceRows),
	},
	{
		Name:     "avatar_drawings",
		Of:       "requests that draw a generated avatar or wait for it",
		Overflow: "503",
		Reason:   "drawing takes processor time",
		limit:    constant(httpd.MaxIdenticonsPending),
		used:     func(r *metricReading) int64 { return r.server.http.IdenticonsPending() },
	},
	{
		Name:     "avatars_drawn_per_minute",
		Of:       "generated avatars that one network has drawn in a minute; cached ones do not count",
		Overflow: "429",
		Reason:   "the users of a large organization fit; drawing more takes processor time from all users",
		limit:    constant(httpd.MaxDrawingsPerMinute),
	},
	{
		Name:     "cached_avatars",
		Of:       "generated avatars in memory, about 2 kB each",
		Overflow: "all are dropped and drawn again",
		Reason:   "they can be drawn again",
		limit:    constant(httpd.MaxIdenticonsCached),
		used:     func(r *metricReading) int64 { return r.server.http.IdenticonsCached() },
	},
	{
		Name:     "compressed_cache_bytes",
		Of:       "bytes of short compressed pieces of answers in memory",
		Overflow: "all are dropped and compressed again",
		Reason:   "they can be compressed again",
		limit:    constant(httpd.MaxChainedBytes),
		used:     func(r *metricReading) int64 { return r.server.http.ChainedBytes() },
	},
	{
		Name: "unsent_bytes",
		Of: "bytes of events that sockets did not accept at once; one account, with its bots, can " +
			"have an eighth, one organization half",
		Overflow: "the connection is closed",
		Reason:   "clients that do not read must not fill the memory",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxPending) },
		used:     func(r *metricReading) int64 { return int64(r.http.Pending) },
		hits:     func(r *metricReading) int64 { return r.http.Refused["pending"] },
	},
	{
		Name: "answer_bytes",
		Of: "bytes of all answers in memory, while they are built and until clients have received them; one account, " +
			"with its bots, can use an eighth, one organization half",
		Overflow: "503: ANSWER_MEMORY_FULL",
		Reason:   "clients that do not read must not fill the memory",
		limit:    func(r *metricReading) int64 { return int64(r.park.MaxAnswers) },
		used:     func(r *metricReading) int64 { return int64(r.http.AnswerBytes) },
		hits:     func(r *metricReading) int64 { return r.http.AnswersRefused },
	},
	{
		Name: "waiting_answers",
		Of: "requests that wait until their large answers can be built: one for two processors at a time; " +
			"one organization can have half of them",
		Overflow: "the newest request of the account with the most gets 503: ANSWER_MEMORY_FULL",
		Reason:   "each holds a connection, and up to 100 kB",
		limit:    constant(httpd.MaxWaitingBuilds),
		used:     func(r *metricReading) int64 { return waitingBuilds(r) },
		hits:     func(r *metricReading) int64 { return refusedBuilds(r) },
	},
	{
		Name:     "waiting_answers_per_account",
		Of:       "of these, requests of one account with its bots, or without login of one client network",
		Overflow: "503: ANSWER_MEMORY_FULL",
		Reason:   "no client has as many requests in progress",
		limit:    constant(httpd.MaxWaitingBuildsOfCaller),
	},
	{
		Name:     "page_bytes",
		Of:       "bytes of the messages in one answer, before they are encoded",
		Overflow: "the page is shorter; 413 where a list of messages is asked for",
		Reason:   "5,000 messages of usual length fit; the HTML of a message can take 20 times as much as its text",
		limit:    constant(wire.MaxPageBytes),
	},
	{
		Name:     "parameters",
		Of:       "parameters of a request",
		Overflow: "400",
		Reason:   "no endpoint has nearly as many",
		limit:    constant(form.MaxParams),
	},
	{
		Name:     "json_depth",
		Of:       "nested lists and objects in a parameter",
		Overflow: "400",
		Reason:   "each level takes stack while it is decoded",
		limit:    constant(form.MaxJSONDepth),
	},
	{
		Name:     "json_values",
		Of:       "JSON values in a parameter",
		Overflow: "400",
		Reason:   "so many values take about 60 MB while they are decoded",
		limit:    constant(form.MaxJSONValues),
	},
	{
		Name:     "large_requests",
		Of:       "requests with bodies over 64 kB in handlers",
		Overflow: "they wait",
		Reason:   "a decoded body takes a multiple of its size",
		limit:    constant(httpd.MaxLargeBodies),
		used:     func(r *metricReading) int64 { return r.server.http.LargeBodies() },
	},
	{
		Name:     "large_requests_waiting",
		Of:       "requests with bodies over 64 kB that wait for a handler",
		Overflow: "503",
		Reason:   "their bodies are in memory",
		limit:    constant(httpd.MaxLargeBodiesWaiting),
		used:     func(r *metricReading) int64 { return largeBodiesWaiting(r) },
		hits:     func(r *metricReading) int64 { return largeBodiesRefused(r) },
	},
	{
		Name:     "rate_limited_callers",
		Of:       "users and addresses whose request rate is counted, of each kind, by each node for itself",
		Overflow: "the oldest is forgotten, then any",
		Reason:   "every address that ever sent a request would take memory",
		limit:    constant(httpd.MaxTracked),
		used:     func(r *metricReading) int64 { return r.server.http.Tracked() },
	},
	{
		Name:     "email_forms_per_hour",
		Of:       "forms of pages that send an email, from one client network in an hour",
		Overflow: "429",
		Reason:   "the caller chooses the address; an office signs up together",
		limit:    constant(httpd.EmailFormsPerHour),
	},
	{
		Name:     "password_forms_per_hour",
		Of:       "forms of pages with a new password, from one client network in an hour",
		Overflow: "429",
		Reason:   "each hashes a password; an office signs up together",
		limit:    constant(httpd.PasswordFormsPerHour),
	},
	{
		Name: "emails_to_address_per_day",
		Of: "emails in 24 hours that forms send to one address, and that one account sends to change its " +
			"address",
		Overflow: "429",
		Reason:   "the receiver did not ask for them; in an hour at most 2",
		limit:    constant(httpd.AddressChangesPerDay),
	},
	{
		Name:     "login_tokens",
		Of:       "tokens with which desktop apps finish a login, about 200 bytes each",
		Overflow: "any other is forgotten: that user logs in again",
		Reason:   "a token is used within two minutes",
		limit:    constant(httpd.MaxLoginTokens),
		used:     func(r *metricReading) int64 { return r.server.http.LoginTokens() },
	},
	{
		Name: "confirmed_sessions",
		Of: "browser sessions whose users have just entered the password, so that they can make API keys; about 60 " +
			"bytes each",
		Overflow: "any other is forgotten: that user enters the password again",
		Reason:   "each is remembered for ten minutes",
		limit:    constant(httpd.MaxConfirmedSessions),
		used:     func(r *metricReading) int64 { return r.server.http.ConfirmedSessions() },
	},
	{
		Name:     "password_hashings",
		Of:       "passwords that are hashed or wait for it",
		Overflow: "429",
		Reason:   "a hash takes a processor and memory on purpose",
		limit:    constant(httpd.MaxPasswords),
		used:     func(r *metricReading) int64 { return r.server.passwords.Waiting() },
	},
	{
		Name:     "commands",
		Of:       "commands and views waiting in the fullest mailbox of an organization, or for the disk",
		Overflow: "503",
		Reason:   "at 50,000 turns a second a full mailbox takes a fifth of a second",
		limit:    constant(actors.MaxInFlight),
		used:     func(r *metricReading) int64 { return largest(r.realm.InFlight) },
		hits:     func(r *metricReading) int64 { return r.orgs.Busy.Load() },
	},
	{
		Name:     "undelivered_recipients",
		Of:       "recipients of events that wait in the mailboxes of sessions",
		Overflow: "commands get 503",
		Reason:   "8 bytes each, seconds of work in total; events must not be produced faster than delivered",
		limit:    constant(actors.MaxUndelivered),
		used:     func(r *metricReading) int64 { return r.orgs.Undelivered.Load() },
		hits:     func(r *metricReading) int64 { return r.orgs.Busy.Load() },
	},
	{
		Name:     "waiting_commands",
		Of:       "commands that wait because events are delivered late, in the organization with the most",
		Overflow: "the newest command of the account with the most gets 503, a bot's first",
		Reason:   "each holds a connection, and up to 20 kB",
		limit:    constant(delivery.MaxWaitingCommands),
		used:     func(r *metricReading) int64 { return largest(r.realm.Waiting) },
		hits:     func(r *metricReading) int64 { return r.orgs.CommandsRefused.Load() },
	},
	{
		Name:     "waiting_commands_per_account",
		Of:       "commands of one account, with its bots, that wait because events are delivered late",
		Overflow: "503",
		Reason:   "no client has as many requests in progress",
		limit:    constant(delivery.MaxWaitingOfAccount),
	},
	{
		Name:     "delivery_window",
		Of:       "recipients of one organization's events in the mailboxes of its sessions; one event may exceed it",
		Overflow: "further events wait",
		Reason:   "a mailbox full of events would delay the polls behind them",
		limit:    constant(delivery.DeliveryWindow),
	},
	{
		Name:     "queues_per_user",
		Of:       "event queues of one user and the user's bots",
		Overflow: "429",
		Reason:   "a client that leaks queues must not fill the server",
		limit:    constant(realm.MaxQueues),
	},
	{
		Name:     "sessions_per_user",
		Of:       "sessions of one user in browsers",
		Overflow: "the least recently used one ends",
		Reason:   "about 400 bytes each; more devices than one person uses",
		limit:    constant(realm.MaxBrowserSessions),
	},
	{
		Name:     "notified_browsers_per_user",
		Of:       "browsers of one user that get notifications while no page is open",
		Overflow: "the subscription that was made first is removed",
		Reason:   "users choose the addresses, and each notification connects to all of them",
		limit:    constant(realm.MaxWebPush),
	},
	{
		Name:     "notified_browsers_per_host",
		Of:       "of these, browsers whose push services have addresses in one domain",
		Overflow: "the subscription that was made first is removed",
		Reason:   "a message must not become many requests to the server of someone else",
		limit:    constant(realm.MaxWebPushOfHost),
	},
	{
		Name:     "subscriptions_per_request",
		Of:       "subscriptions that one request adds or removes: users times channels",
		Overflow: "400",
		Reason:   "they take a fifth of a second of the organization's turns",
		limit:    func(r *metricReading) int64 { return int64(r.limits.JoinsPerCall) },
	},
	{
		Name:     "channels",
		Of:       "channels of one organization, archived ones included",
		Overflow: "400",
		Reason:   "every registration contains all of them",
		limit:    func(r *metricReading) int64 { return int64(r.limits.Channels) },
	},
	{
		Name:     "channels_per_day",
		Of:       "channels that one user who is no administrator, with the user's bots, creates in 24 hours",
		Overflow: "400",
		Reason:   "one member must not fill the organization for the others",
		limit:    func(r *metricReading) int64 { return int64(r.limits.ChannelsPerDay) },
	},
	{
		Name:     "channels_per_request",
		Of:       "channels that one request creates",
		Overflow: "400",
		Reason:   "each is a fact, a message and events for all users",
		limit:    func(r *metricReading) int64 { return int64(r.limits.ChannelsPerCall) },
	},
	{
		Name:     "groups",
		Of:       "user groups of one organization, deactivated ones included",
		Overflow: "400",
		Reason:   "every registration contains all of them",
		limit:    func(r *metricReading) int64 { return int64(r.limits.Groups) },
	},
	{
		Name:     "groups_per_day",
		Of:       "user groups that one user who is no administrator creates in 24 hours",
		Overflow: "400",
		Reason:   "one member must not fill the organization for the others",
		limit:    func(r *metricReading) int64 { return int64(r.limits.GroupsPerDay) },
	},
	{
		Name:     "bots_per_user",
		Of:       "bots of one user, deactivated ones included",
		Overflow: "400",
		Reason:   "each can store ten million characters, and every registration contains all accounts",
		limit:    func(r *metricReading) int64 { return int64(r.limits.BotsPerUser) },
	},
	{
		Name: "registration_bytes",
		Of: "bytes of a registration that all users of an organization share: channels with their subscribers, " +
			"accounts, groups and the lists of administrators",
		Overflow: "400 for requests that would make it larger",
		Reason:   "every client downloads it at its start",
		limit:    func(r *metricReading) int64 { return int64(r.limits.RegistrationSize) },
	},
	{
		Name: "own_text_bytes",
		Of: "bytes of one user's drafts, and likewise of snippets, scheduled messages and reminders, with their " +
			"HTML",
		Overflow: "400",
		Reason:   "every registration of the user contains all of them",
		limit:    constant(realm.MaxOwnTexts),
	},
	{
		Name:     "topic_policies",
		Of:       "topics that one user has muted, followed or unmuted",
		Overflow: "400; topics are not followed automatically from nine tenths of it on",
		Reason:   "every registration of the user contains all of them",
		limit:    constant(realm.MaxTopicPolicies),
	},
	{
		Name:     "reactions_of_user",
		Of:       "reactions of one user to one message",
		Overflow: "400",
		Reason:   "every answer with the message contains all of them",
		limit:    constant(realm.MaxReactionsOfUser),
	},
	{
		Name:     "emoji_of_user",
		Of:       "custom emoji that one user who is no administrator adds, removed ones included",
		Overflow: "400",
		Reason:   "one member must not use up the 5,000 of the organization",
		limit:    constant(realm.MaxEmojiOfUser),
	},
	{
		Name:     "listed_topics",
		Of:       "topics of a channel in one answer",
		Overflow: "older topics are left out",
		Reason:   "about 3 MB; clients show some hundred",
		limit:    constant(wire.MaxListedTopics),
	},
	{
		Name:     "listed_uploads",
		Of:       "uploads of a user in one answer",
		Overflow: "older uploads are left out",
		Reason:   "about 5 MB",
		limit:    constant(wire.MaxListedUploads),
	},
	{
		Name:     "subscription_settings_per_request",
		Of:       "channel settings of a user that one request changes",
		Overflow: "400",
		Reason:   "each change is an event for the user's clients",
		limit:    constant(realm.MaxPropertiesPerRequest),
	},
	{
		Name:     "jobs",
		Of:       "unfinished requests of one organization that take several turns",
		Overflow: "503",
		Reason:   "each takes some kilobytes",
		limit:    constant(realm.MaxJobs),
	},
	{
		Name: "notification_jobs",
		Of: "messages of one organization to very many users whose emails and push notifications are " +
			"not prepared yet",
		Overflow: "dropped and logged",
		Reason:   "each takes some kilobytes",
		limit:    constant(realm.MaxNotifyJobs),
	},
	{
		Name:     "legal_holds",
		Of:       "legal holds of one organization",
		Overflow: "refused",
		Reason:   "all are read before messages are purged",
		limit:    constant(realm.MaxHolds),
	},
	{
		Name:     "queue_events",
		Of:       "unacknowledged events of a queue",
		Overflow: "the queue is closed: BAD_EVENT_QUEUE_ID",
		Reason:   "a very busy organization reaches it in about an hour after the client has disconnected",
		limit:    constant(queue.MaxUnacked),
		hits: func(r *metricReading) int64 {
			return r.orgs.QueuesEvicted.Load() - r.orgs.QueuesEvictedForMemory.Load() -
				r.orgs.QueuesEvictedForAccount.Load()
		},
	},
	{
		Name:     "cached_queue_options",
		Of:       "combinations of queue options that one session actor shares between queues",
		Overflow: "forgotten; queues that are opened later share new ones",
		Reason:   "there are few client programs, but clients can send any combination",
		limit:    constant(wire.MaxQueueOptions),
	},
	{
		Name: "unacked_bytes",
		Of: "bytes of unacknowledged events in memory, of all organizations; one organization can use " +
			"half of it",
		Overflow: "the slowest queues are closed: BAD_EVENT_QUEUE_ID",
		Reason:   "clients that do not acknowledge must not fill the memory",
		limit:    func(r *metricReading) int64 { return r.server.orgs.UnackedLimit() },
		used:     func(r *metricReading) int64 { return r.orgs.UnackedBytes.Load() },
		hits:     func(r *metricReading) int64 { return r.orgs.QueuesEvictedForMemory.Load() },
	},
	{
		Name: "unacked_account_bytes",
		Of: "bytes of events in memory because of one account and its bots; an event's bytes are divided between the accounts " +
			"that have not acknowledged it",
		Overflow: "the oldest queues of the account are closed: BAD_EVENT_QUEUE_ID; other accounts are not affected",
		Reason:   "one account must not use what an organization can use",
		limit:    func(r *metricReading) int64 { return r.server.orgs.AccountLimit() },
		used:     func(r *metricReading) int64 { return r.server.orgs.LargestAccountBytes() },
		hits:     func(r *metricReading) int64 { return r.orgs.QueuesEvictedForAccount.Load() },
	},
	{
		Name:     "unacked_account_events",
		Of:       "unacknowledged events in all queues of one account and its bots",
		Overflow: "the oldest queues of the account are closed: BAD_EVENT_QUEUE_ID",
		Reason:   "16 bytes each; an account can have a thousand queues",
		limit:    constant(delivery.MaxUnackedRefs),
	},
	{
		Name:     "text_cache_bytes",
		Of:       "bytes of message texts in memory",
		Overflow: "the least recently read ones are dropped",
		Reason:   "they can be read from the disk",
		limit:    constant(actors.TextCacheBytes),
		used:     func(r *metricReading) int64 { return r.server.orgs.TextCacheSize() },
	},
	{
		Name:     "event_encoding_bytes",
		Of:       "bytes of large encoded events that the queues of all users share",
		Overflow: "the oldest ones are dropped and encoded again when a queue needs them",
		Reason:   "queues that are behind must not hold large events in memory",
		limit:    constant(wire.MaxEncodingBytes),
		used:     func(r *metricReading) int64 { return r.server.encodings.Bytes() },
		hits:     func(r *metricReading) int64 { return r.server.encodings.Dropped() },
	},
	{
		Name:     "additional_api_keys",
		Of:       "additional API keys of an account, apart from expired ones",
		Overflow: "400",
		Reason:   "each is in the account's row and in the table of logins",
		limit:    constant(realm.MaxAdditionalKeys),
	},
	{
		Name:     "damaged_texts",
		Of:       "damaged message texts that the server counts for /health",
		Overflow: "further ones are refused and logged, but not counted",
		Reason:   "a lost file of the store can hold millions of texts",
		limit:    constant(actors.MaxDamagedTexts),
		used:     func(r *metricReading) int64 { return r.server.orgs.DamagedTexts() },
	},
	{
		Name:     "journal_bytes",
		Of:       "bytes of the longest journal since its snapshot",
		Overflow: "a snapshot is written; in the first seconds after a start only at four times the limit",
		Reason:   "about 45,000 messages, which a start after a crash replays in an eighth of a second",
		limit:    constant(owner.SnapshotBytes),
		used:     func(r *metricReading) int64 { return largest(r.store.Journal) },
		hits:     func(r *metricReading) int64 { return r.orgs.Snapshots.Load() },
	},
	{
		Name:     "store_cache_bytes",
		Of:       "bytes of the store's blocks in memory",
		Overflow: "the least recently read ones are dropped",
		Reason:   "keeps an idle server under 60 MB",
		limit:    constant(snapshot.DefaultCache),
		used:     func(r *metricReading) int64 { return r.store.Cache },
	},
	{
		Name:     "search_queue",
		Of:       "texts of one organization that wait to be indexed",
		Overflow: "the queue is dropped, and the index is compared with the disk",
		Reason:   "32 bytes each; a comparison takes a scan but no memory",
		limit:    constant(search.MaxQueued),
		used:     func(r *metricReading) int64 { return r.server.search.Queued() },
	},
	{
		Name:     "emails",
		Of:       "emails of one organization that wait to be sent",
		Overflow: "dropped and logged",
		Reason:   "a few hundred bytes each; a mail server that is down must not fill the memory",
		limit:    constant(realm.MaxEmails),
		used:     func(r *metricReading) int64 { return r.waiting(realm.OutboxEmail) },
	},
	{
		Name: "webhook_calls",
		Of: "outgoing webhook calls of one organization that wait; one bot can use a tenth, the bots of one " +
			"user a quarter",
		Overflow: "dropped and logged",
		Reason:   "a service that is down must not fill the memory",
		limit:    constant(realm.MaxWebhookCalls),
		used:     func(r *metricReading) int64 { return r.waiting(realm.OutboxWebhook) },
	},
	{
		Name:     "missed_messages",
		Of:       "messages of one organization that may have to be emailed",
		Overflow: "not emailed, and logged",
		Reason:   "about a hundred bytes each",
		limit:    constant(realm.MaxMissedMessages),
		used:     func(r *metricReading) int64 { return r.waiting(realm.OutboxMissedMessage) },
	},
	{
		Name:     "push_notifications",
		Of:       "push notifications of one organization that wait",
		Overflow: "dropped and logged",
		Reason:   "about a hundred bytes each",
		limit:    constant(realm.MaxPushes),
		used:     func(r *metricReading) int64 { return r.waiting(realm.OutboxPush) },
	},
	{
		Name:     "browser_notifications_per_second",
		Of:       "notifications of browsers a second to push services in one domain, by each node for itself",
		Overflow: "tried again later",
		Reason:   "users choose the addresses, so the server must not become a means to flood another one",
		limit:    constant(push.WebPerSecond),
	},
	{
		Name:     "counted_push_hosts",
		Of:       "domains of push services whose notifications are counted",
		Overflow: "those counted longest ago are forgotten",
		Reason:   "about 100 bytes each",
		limit:    constant(push.MaxWebHosts),
		used:     func(r *metricReading) int64 { return r.server.push.Pusher.CountedWebHosts() },
	},
	{
		Name:     "failing_browsers",
		Of:       "subscriptions of browsers whose failures are counted; they are removed after five in a row",
		Overflow: "those counted longest ago are forgotten",
		Reason:   "an address can have 4 kB",
		limit:    constant(push.MaxWebFailing),
		used:     func(r *metricReading) int64 { return r.server.push.Pusher.FailingBrowsers() },
	},
	{
		Name:     "push_registrations",
		Of:       "devices of one organization that wait to be registered at the push bouncer; one user can have 32",
		Overflow: "dropped and logged, or 503",
		Reason:   "half a kilobyte each; 25 kB each if a client misuses it",
		limit:    constant(realm.MaxDeviceRegistrations),
		used:     func(r *metricReading) int64 { return r.waiting(realm.OutboxRegistration) },
	},
	{
		Name:     "link_previews",
		Of:       "messages of one organization whose linked pages wait to be fetched; one user can have 50",
		Overflow: "the message gets no preview, and it is logged",
		Reason:   "a slow site must not fill the memory",
		limit:    constant(realm.MaxPreviews),
		used:     func(r *metricReading) int64 { return r.waiting(realm.OutboxPreview) },
	},
	{
		Name:     "listed_exports",
		Of:       "data exports of one organization in its list",
		Overflow: "the oldest deleted or failed one is forgotten; if there is none, 400",
		Reason:   "the list is in an event for each change of an export",
		limit:    constant(realm.MaxExports),
	},
	{
		Name:     "data_exports",
		Of:       "data exports that wait",
		Overflow: "the export fails",
		Reason:   "exports are written one after the other, and each organization may start five a week",
		limit:    constant(exports.MaxWaiting),
		used:     func(r *metricReading) int64 { return r.server.exports.Waiting() },
	},
	{
		Name:     "mail_connections",
		Of:       "connections that send email to channels",
		Overflow: "they wait",
		Reason:   "an email of up to 10 MiB is in memory while it is received",
		limit:    constant(mail.MaxConnections),
	},
	{
		Name:     "log_lines",
		Of:       "lines per minute of one text of warnings or errors in the log",
		Overflow: "suppressed and counted: attribute suppressed",
		Reason:   "an error for every message would fill the disk",
		limit:    constant(logs.MaxLinesPerMinute),
		hits:     func(r *metricReading) int64 { return logs.Suppressed(r.server.log) },
	},
}, clusterBounds...)

func constant(n int64) func(*metricReading) int64 { return func(*metricReading) int64 { return n } }

// waiting returns the largest number of outbox jobs of a kind that wait in one organization.
func (r *metricReading) waiting(kind realm.OutboxJobKind) int64 {
	return r.server.dispatcher.Waiting()[kind]
}

func largeBodiesWaiting(r *metricReading) int64 {
	n, _ := r.server.http.LargeBodiesWaiting()
	return n
}

func largeBodiesRefused(r *metricReading) int64 {
	_, n := r.server.http.LargeBodiesWaiting()
	return n
}

func servedFiles(r *metricReading) int64 {
	if r.server.core == nil {
		return 0
	}
	return r.server.core.ServedFiles()
}

func waitingBuilds(r *metricReading) int64 {
	n, _ := r.server.http.AnswerBuilds()
	return n
}

func refusedBuilds(r *metricReading) int64 {
	_, n := r.server.http.AnswerBuilds()
	return n
}

// largest returns the largest value of a map, or 0 if it is empty.
func largest[K comparable](m map[K]int64) int64 {
	return slices.Max(append(slices.Collect(maps.Values(m)), 0))
}

// limitSettings are the settings that give the limits of bounds, where the default depends on the machine.
var limitSettings = map[string]string{
	"connections":           "max-connections",
	"answer_bytes":          "answer-memory",
	"unacked_bytes":         "unacked-memory",
	"unacked_account_bytes": "unacked-memory / 16",
	"replicas":              "max-replicas",
	"replica_bytes":         "replica-memory",
}

// DefaultLimit returns the limit of a server with default settings, as the reference page shows it.
func (b *Bound) DefaultLimit() string {
	if setting := limitSettings[b.Name]; setting != "" {
		return "`" + setting + "`"
	}
	s := DefaultSettings()
	return fmt.Sprint(b.limit(&metricReading{park: s.parkConfig().WithDefaults(), limits: s.realmLimits()}))
}
