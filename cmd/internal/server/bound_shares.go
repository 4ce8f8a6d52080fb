package server

import (
	"parley/actors/admission"
	"parley/actors/registry"
)

// sharing says how organizations share a bound.
type sharing struct {
	// half returns the object that gives each of several organizations half of the budget.
	half func(s *Server) *admission.Shares
	// rule says which other code does that; a test with its name shows it.
	rule string
	// whole is the reason why one organization may use all of it.
	whole string
}

// Reasons why a bound needs no shares.
const (
	ofOne     = "it is the limit of one request, account, organization or client network"
	cached    = "what is dropped is made again"
	forgotten = "the oldest are forgotten, which refuses nothing"
	noNames   = "the organization is not known yet"
	ofCluster = "it is for messages between nodes, which carry those of all organizations together"
)

// boundSharing has an entry for each bound; a test fails for a bound without one. See admission.Shares.
var boundSharing = map[string]sharing{
	"requests":               {half: func(s *Server) *admission.Shares { return s.http.Shares().Requests }},
	"slow_requests":          {half: func(s *Server) *admission.Shares { return s.http.Shares().Slow }},
	"total_body_bytes":       {half: func(s *Server) *admission.Shares { return s.http.Shares().Bodies }},
	"uploads":                {half: func(s *Server) *admission.Shares { return s.http.Shares().Uploads }},
	"large_requests_waiting": {half: func(s *Server) *admission.Shares { return s.http.Shares().LargeBodies }},
	"avatar_drawings":        {half: func(s *Server) *admission.Shares { return s.http.Shares().Drawings }},
	"password_hashings":      {half: func(s *Server) *admission.Shares { return s.passwords.Shares() }},
	"image_decodings":        {half: func(s *Server) *admission.Shares { return s.fileShares.decodings }},
	"bucket_downloads":       {half: func(s *Server) *admission.Shares { return s.fileShares.downloads }},
	"file_fetches":           {half: func(s *Server) *admission.Shares { return s.fileShares.fetches }},
	"provider_calls":         {half: func(s *Server) *admission.Shares { return s.http.Shares().ProviderCalls }},
	"used_logins":            {whole: forgotten},
	"data_exports":           {half: func(s *Server) *admission.Shares { return s.exports.Shares() }},
	"confirmed_sessions":     {whole: "one that is forgotten only makes its user enter the password again"},
	"bucket_uploads":         {rule: "snapshot/files/s3 TestUploadsOfOneSpace"},
	"unfinished_uploads":     {rule: "snapshot/files TestPartialUploadsOfOneSpace"},
	"undelivered_recipients": {rule: "actors TestUndeliveredOfOneOrganization"},
	"answer_bytes":           {rule: "wire/httpd/park TestAnswersOfOrganization"},
	"unsent_bytes":           {rule: "wire/httpd/park TestAnswersOfOrganization"},
	"waiting_answers":        {rule: "actors/admission TestOrganizationLeavesPlaces"},
	"unacked_bytes":          {rule: "actors TestUnackedEventsAreBounded"},

	"large_requests":                   {whole: "they are served in order, and large_requests_waiting is shared"},
	"served_files":                     {whole: ofCluster},
	"failing_browsers":                 {whole: forgotten},
	"counted_push_hosts":               {whole: forgotten},
	"browser_notifications_per_second": {whole: "it protects a push service, and the others are sent later"},
	"handshakes":                       {whole: noNames},
	"connections":                      {whole: noNames + "; a network has its own limit"},
	"mail_connections":                 {whole: noNames},
	"login_tokens":                     {whole: "a token is used within two minutes, and needs a login"},
	"rate_limited_callers":             {whole: "callers are forgotten, which allows more and refuses no request"},
	"waiting_thumbnails":               {whole: cached},
	"thumbnail_bytes":                  {whole: cached},
	"presence_rows":                    {whole: "the others follow 5 seconds later"},
	"journal_bytes":                    {whole: "it starts a snapshot and refuses nothing"},
	"damaged_texts":                    {whole: "it counts for /health and refuses nothing"},
	"log_lines":                        {whole: "it limits the log and refuses nothing"},
}

func init() {
	for reason, names := range map[string][]string{
		cached: {"cached_avatars", "compressed_cache_bytes", "cached_queue_options", "text_cache_bytes",
			"event_encoding_bytes", "store_cache_bytes"},
		ofCluster: {"replicas", "replica_bytes", "unknown_names", "forwarded_polls", "catching_up", "forwarded_calls",
			"peer_handshakes", "link_queue_bytes", "owner_connections"},
		ofOne: {"notified_browsers_per_user", "notified_browsers_per_host", "connections_per_network",
			"header_bytes", "body_bytes", "avatars_drawn_per_minute",
			"waiting_answers_per_account", "page_bytes", "parameters", "json_depth", "json_values",
			"email_forms_per_hour", "password_forms_per_hour", "emails_to_address_per_day", "commands",
			"waiting_commands", "waiting_commands_per_account", "delivery_window", "queues_per_user",
			"sessions_per_user", "subscriptions_per_request", "channels", "channels_per_day", "channels_per_request",
			"groups", "groups_per_day", "bots_per_user", "registration_bytes", "own_text_bytes", "topic_policies",
			"reactions_of_user", "emoji_of_user", "listed_topics", "listed_uploads",
			"subscription_settings_per_request", "jobs", "notification_jobs", "legal_holds", "queue_events",
			"unacked_account_bytes", "unacked_account_events", "additional_api_keys", "search_queue", "emails",
			"webhook_calls", "missed_messages", "push_notifications", "push_registrations", "link_previews",
			"listed_exports"},
	} {
		for _, name := range names {
			boundSharing[name] = sharing{whole: reason}
		}
	}
}

// IsHalved reports whether each of several organizations has at most half of a bound.
func IsHalved(b *registry.Bound) bool { return boundSharing[b.Name].whole == "" }
