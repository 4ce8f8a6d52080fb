package httpd

import (
	"parley/actors/registry"
	"parley/wire/mcp"
	"parley/wire/pictures"
	"parley/wire/signon"
)

// BoundTable returns the bounds of the server, besides those of its connections.
func (s *Server) BoundTable() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "avatar_drawings",
			Of:       "requests that draw a generated avatar or wait for it",
			Overflow: "503",
			Reason:   "drawing takes processor time",
			Limit:    registry.Constant(MaxIdenticonsPending),
			Used:     s.IdenticonsPending,
			Shares:   func() registry.Shares { return s.identicons.shares },
		},
		{
			Name:     "avatars_drawn_per_minute",
			Of:       "generated avatars that one network has drawn in a minute; cached ones do not count",
			Overflow: "429",
			Reason:   "the users of a large organization fit; drawing more takes processor time from all users",
			Limit:    registry.Constant(MaxDrawingsPerMinute),
		},
		{
			Name:     "fetched_pictures",
			Of:       "pictures of other sites that are being fetched",
			Overflow: "503",
			Reason:   "each takes up to 5 MB of memory, and up to ten seconds",
			Limit:    registry.Constant(pictures.MaxFetching),
			Used:     func() int64 { return s.options.Pictures.Fetching() },
			Shares:   func() registry.Shares { return s.options.Pictures.Shares() },
		},
		{
			Name:     "cached_pictures_bytes",
			Of:       "bytes of fetched pictures of other sites in memory",
			Overflow: "some are dropped and fetched again",
			Reason:   "they can be fetched again",
			Limit:    registry.Constant(pictures.MaxCacheBytes),
			Used:     func() int64 { return s.options.Pictures.Cached() },
			Whole:    registry.Cached,
		},
		{
			Name:     "cached_avatars",
			Of:       "generated avatars in memory, about 2 kB each",
			Overflow: "all are dropped and drawn again",
			Reason:   "they can be drawn again",
			Limit:    registry.Constant(MaxIdenticonsCached),
			Used:     s.IdenticonsCached,
			Whole:    registry.Cached,
		},
		{
			Name:     "compressed_cache_bytes",
			Of:       "bytes of short compressed pieces of answers in memory",
			Overflow: "all are dropped and compressed again",
			Reason:   "they can be compressed again",
			Limit:    registry.Constant(MaxChainedBytes),
			Used:     s.ChainedBytes,
			Whole:    registry.Cached,
		},
		{
			Name: "waiting_answers",
			Of: "requests that wait until their large answers can be built: one for two processors at a time; " +
				"one organization can have half of them",
			Overflow: "the newest request of the account with the most gets 503: ANSWER_MEMORY_FULL",
			Reason:   "each holds a connection, and up to 100 kB",
			Limit:    registry.Constant(MaxWaitingBuilds),
			Used:     func() int64 { n, _ := s.AnswerBuilds(); return n },
			Hits:     func() int64 { _, n := s.AnswerBuilds(); return n },
			Halved:   "actors/admission TestOrganizationLeavesPlaces",
		},
		{
			Name:     "waiting_answers_per_account",
			Of:       "of these, requests of one account with its bots, or without login of one client network",
			Overflow: "503: ANSWER_MEMORY_FULL",
			Reason:   "no client has as many requests in progress",
			Limit:    registry.Constant(MaxWaitingBuildsOfCaller),
		},
		{
			Name:     "large_requests",
			Of:       "requests with bodies over 64 kB in handlers",
			Overflow: "they wait",
			Reason:   "a decoded body takes a multiple of its size",
			Limit:    registry.Constant(MaxLargeBodies),
			Used:     s.LargeBodies,
			Whole:    "they are served in order, and large_requests_waiting is shared",
		},
		{
			Name:     "large_requests_waiting",
			Of:       "requests with bodies over 64 kB that wait for a handler",
			Overflow: "503",
			Reason:   "their bodies are in memory",
			Limit:    registry.Constant(MaxLargeBodiesWaiting),
			Used:     func() int64 { n, _ := s.LargeBodiesWaiting(); return n },
			Hits:     func() int64 { _, n := s.LargeBodiesWaiting(); return n },
			Shares:   func() registry.Shares { return s.largeBodyShares },
		},
		{
			Name:     "rate_limited_callers",
			Of:       "users and addresses whose request rate is counted, of each kind, by each node for itself",
			Overflow: "the oldest is forgotten, then any",
			Reason:   "every address that ever sent a request would take memory",
			Limit:    registry.Constant(MaxTracked),
			Used:     s.Tracked,
			Whole:    "callers are forgotten, which allows more and refuses no request",
		},
		{
			Name:     "email_forms_per_hour",
			Of:       "forms of pages that send an email, from one client network in an hour",
			Overflow: "429",
			Reason:   "the caller chooses the address; an office signs up together",
			Limit:    registry.Constant(EmailFormsPerHour),
		},
		{
			Name:     "password_forms_per_hour",
			Of:       "forms of pages with a new password, from one client network in an hour",
			Overflow: "429",
			Reason:   "each hashes a password; an office signs up together",
			Limit:    registry.Constant(PasswordFormsPerHour),
		},
		{
			Name: "emails_to_address_per_day",
			Of: "emails in 24 hours that forms send to one address, and that one account sends to change its " +
				"address",
			Overflow: "429",
			Reason:   "the receiver did not ask for them; in an hour at most 2",
			Limit:    registry.Constant(AddressChangesPerDay),
		},
		{
			Name:     "login_tokens",
			Of:       "tokens with which desktop apps finish a login, about 200 bytes each",
			Overflow: "any other is forgotten: that user logs in again",
			Reason:   "a token is used within two minutes",
			Limit:    registry.Constant(MaxLoginTokens),
			Used:     s.LoginTokens,
			Whole:    "a token is used within two minutes, and needs a login",
		},
		{
			Name:     "used_logins",
			Of:       "logins at providers whose answers were used, about 100 bytes each",
			Overflow: "any other is forgotten: the provider still accepts its code only once",
			Reason:   "each is remembered for ten minutes",
			Limit:    registry.Constant(MaxUsedFlows),
			Used:     s.UsedFlows,
			Whole:    registry.Forgotten,
		},
		{
			Name:     "provider_calls",
			Of:       "pages that wait for a login provider",
			Overflow: "503",
			Reason:   "a provider that is slow must not hold all connections",
			Limit:    registry.Constant(MaxProviderCalls),
			Used:     s.ProviderCalls,
			Shares:   func() registry.Shares { return s.providerShares },
		},
		{
			Name:     "mcp_sessions",
			Of:       "sessions of agents on a node, about 400 bytes each; an account with its bots has at most 200",
			Overflow: "a session of the account with the most ends; 503: SERVER_OVERLOADED if none has more",
			Reason:   "a session ends after a day without a request; its client begins another one",
			Limit:    registry.Constant(mcp.MaxSessions),
			Used:     func() int64 { n, _ := s.MCPSessions(); return n },
			Hits:     func() int64 { _, n := s.MCPSessions(); return n },
			Shares:   func() registry.Shares { return s.mcp.Shares() },
		},
		{
			Name: "mcp_subscriptions",
			Of: "resources on a node to which sessions of agents are subscribed, up to 1.5 kB each; a session has at most " +
				"100, an account with its bots 2,000",
			Overflow: "an error of the protocol",
			Reason:   "each session with a subscription has an event queue, and compares each event with all of them",
			Limit:    registry.Constant(mcp.MaxSubscriptionsOfNode),
			Used:     func() int64 { n, _ := s.mcp.Subscriptions(); return n },
			Hits:     func() int64 { _, n := s.mcp.Subscriptions(); return n },
			Shares:   func() registry.Shares { return s.mcp.SubscriptionShares() },
		},
		{
			Name:     "scim_requests_per_minute",
			Of:       "requests of one token of SCIM in a minute",
			Overflow: "429",
			Reason:   "10,000 accounts are sent within ten minutes, and users are served meanwhile",
			Limit:    registry.Constant(ScimPerMinute),
		},
		{
			Name:     "saml_messages",
			Of:       "messages of one SAML server that are remembered until they expire, about 100 bytes each",
			Overflow: "logins at this server are refused until some have expired",
			Reason:   "a message must not be used twice; they expire within some minutes",
			Limit:    registry.Constant(signon.MaxReplays),
			Whole:    "only messages that the server has signed are remembered",
		},
		{
			Name: "confirmed_sessions",
			Of: "browser sessions whose users have just entered the password, so that they can do dangerous acts; " +
				"about 60 bytes each",
			Overflow: "any other is forgotten: that user enters the password again",
			Reason:   "each is remembered for ten minutes",
			Limit:    registry.Constant(MaxConfirmedSessions),
			Used:     s.ConfirmedSessions,
			Whole:    "one that is forgotten only makes its user enter the password again",
		},
		{
			Name:     "forwarded_polls",
			Of:       "forwarded polls of a core that wait at the leader, because the core cannot host event queues",
			Overflow: "503; the client polls again, perhaps another node",
			Reason:   "each takes about 50 kB at both nodes; usually a node answers its polls itself",
			Limit:    registry.Constant(MaxForwardedPolls),
			Used:     func() int64 { n, _ := s.ForwardedPolls(); return n },
			Hits:     func() int64 { _, n := s.ForwardedPolls(); return n },
			Whole:    registry.OfCluster,
		},
		{
			Name:     "catching_up",
			Of:       "requests of a node that wait for the newest changes of the leader before they are refused",
			Overflow: "503 with Retry-After",
			Reason:   "each takes about 50 kB; usually they wait for milliseconds, and at most 2 seconds",
			Limit:    registry.Constant(MaxCatchingUp),
			Used:     func() int64 { n, _ := s.CatchingUp(); return n },
			Hits:     func() int64 { _, n := s.CatchingUp(); return n },
			Whole:    registry.OfCluster,
		},
		{
			Name:     "owner_connections",
			Of:       "connections of a node to the leader for files and large requests",
			Overflow: "a request waits for 10 seconds, then 503",
			Reason:   "a download lasts as long as its client takes",
			Limit:    registry.Constant(MaxOwnerConnections),
			Whole:    registry.OfCluster,
		},
	}
}

// Bounds returns the bounds of the passwords that are hashed.
func (p *Passwords) Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "password_hashings",
			Of:       "passwords that are hashed or wait for it",
			Overflow: "429",
			Reason:   "a hash takes a processor and memory on purpose",
			Limit:    registry.Constant(MaxPasswords),
			Used:     p.Waiting,
			Shares:   func() registry.Shares { return p.shares },
		},
	}
}
