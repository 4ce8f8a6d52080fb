package park

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of a server with a configuration, counters and shares.
func Bounds(c Config, s Stats, shares func() Shares) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "connections",
			Of:       "open connections",
			Overflow: "answered 503 and closed",
			Reason:   "each connection needs a file, and files are limited per process",
			Limit:    func() int64 { return int64(c.MaxConns) },
			Used:     func() int64 { return int64(s.Open) },
			Hits:     func() int64 { return s.Refused["conns"] },
			Whole:    registry.NoNames + "; a network has its own limit",
		},
		{
			Name:     "connections_per_network",
			Of:       "open connections of one IPv4 address or IPv6 /64, trusted proxies apart",
			Overflow: "answered 503 and closed",
			Reason:   "one network must not use up the connections of all others; a large office fits",
			Limit:    func() int64 { return int64(c.MaxConnsPerIP) },
			Hits:     func() int64 { return s.Refused["conns_per_ip"] },
		},
		{
			Name:     "requests",
			Of:       "requests in handlers",
			Overflow: "503",
			Reason:   "each takes about 20 kB for its stack and buffers",
			Limit:    func() int64 { return int64(c.MaxActive) },
			Used:     func() int64 { return int64(s.Active) },
			Hits:     func() int64 { return s.Refused["active"] },
			Shares:   func() registry.Shares { return shares().Requests },
		},
		{
			Name:     "slow_requests",
			Of:       "requests that wait for a slow sender or receiver",
			Overflow: "503",
			Reason:   "each takes about 20 kB, and 64 kB while a large answer is sent",
			Limit:    func() int64 { return int64(c.MaxSlow) },
			Used:     func() int64 { return int64(s.Slow) },
			Hits:     func() int64 { return s.Refused["slow_clients"] },
			Shares:   func() registry.Shares { return shares().Slow },
		},
		{
			Name:     "handshakes",
			Of:       "TLS handshakes that are not complete",
			Overflow: "the connection is closed",
			Reason:   "each takes about 30 kB for its stack and keys",
			Limit:    func() int64 { return int64(c.MaxHandshakes) },
			Used:     func() int64 { return int64(s.Handshakes) },
			Hits:     func() int64 { return s.Refused["handshakes"] },
			Whole:    registry.NoNames,
		},
		{
			Name:     "http2_connections",
			Of:       "open connections with HTTP/2",
			Overflow: "the client gets HTTP/1.1",
			Reason:   "each takes about 60 kB, and each of its waiting requests 20 kB",
			Limit:    func() int64 { return int64(c.MaxHTTP2) },
			Used:     func() int64 { return int64(s.HTTP2) },
			Hits:     func() int64 { return s.HTTP2Full },
			Whole:    "clients beyond it are served with HTTP/1.1",
		},
		{
			Name:     "http2_streams",
			Of:       "requests of one connection with HTTP/2 at a time",
			Overflow: "the request is refused, and the client may repeat it",
			Reason:   "ten tabs of a browser that load pictures need no more",
			Limit:    registry.Constant(maxStreams),
		},
		{
			Name:     "header_bytes",
			Of:       "bytes of a request line and its headers",
			Overflow: "431",
			Reason:   "a long narrow in a URL with cookies fits twice",
			Limit:    func() int64 { return int64(c.MaxHeader) },
			Hits:     func() int64 { return s.Refused["header_size"] },
		},
		{
			Name:     "body_bytes",
			Of:       "bytes of a request body; uploads and some other endpoints accept more",
			Overflow: "413",
			Reason:   "forms are small",
			Limit:    func() int64 { return int64(c.MaxBody) },
			Hits:     func() int64 { return s.Refused["body_size"] },
		},
		{
			Name:     "total_body_bytes",
			Of:       "bytes of all request bodies in memory; multipart bodies count twice",
			Overflow: "503",
			Reason:   "memory for an announced body is allocated before it arrives",
			Limit:    func() int64 { return int64(c.MaxBodies) },
			Used:     func() int64 { return int64(s.Bodies) },
			Hits:     func() int64 { return s.Refused["bodies"] },
			Shares:   func() registry.Shares { return shares().Bodies },
		},
		{
			Name:     "uploads",
			Of:       "uploads in progress",
			Overflow: "503",
			Reason:   "each takes about 150 kB of buffers and a file",
			Limit:    func() int64 { return int64(c.MaxStreams) },
			Used:     func() int64 { return int64(s.Streams) },
			Hits:     func() int64 { return s.Refused["streams"] },
			Shares:   func() registry.Shares { return shares().Uploads },
		},
		{
			Name: "unsent_bytes",
			Of: "bytes of events that sockets did not accept at once; one account, with its bots, can " +
				"have an eighth, one organization half",
			Overflow: "the connection is closed",
			Reason:   "clients that do not read must not fill the memory",
			Limit:    func() int64 { return int64(c.MaxPending) },
			Used:     func() int64 { return int64(s.Pending) },
			Hits:     func() int64 { return s.Refused["pending"] },
			Halved:   "wire/httpd/park TestAnswersOfOrganization",
		},
		{
			Name: "answer_bytes",
			Of: "bytes of all answers in memory, while they are built and until clients have received them; one " +
				"account, " +
				"with its bots, can use an eighth, one organization half",
			Overflow: "503: ANSWER_MEMORY_FULL",
			Reason:   "clients that do not read must not fill the memory",
			Limit:    func() int64 { return int64(c.MaxAnswers) },
			Used:     func() int64 { return int64(s.AnswerBytes) },
			Hits:     func() int64 { return s.AnswersRefused },
			Halved:   "wire/httpd/park TestAnswersOfOrganization",
		},
	}
}
