package park

import (
	"strconv"
	"time"

	"parley/actors/registry"
)

// Settings are the settings of the connections.
type Settings struct {
	MaxConnections int
	MaxPerAddress  int
	MaxHTTP2       int
	ReadTimeout    time.Duration
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration
	MaxBody        int
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	defaults := Config{}.WithDefaults()
	return []registry.Setting{
		{
			Name: "max-connections", Default: "0", Group: registry.Network, Value: &s.MaxConnections,
			Meaning: "maximum number of open connections; 0: the process's limit of open files, less a reserve",
		},
		{
			Name: "max-address-connections", Default: "4096", Group: registry.Network, Value: &s.MaxPerAddress,
			Meaning: "maximum number of open connections from one IPv4 address or IPv6 /64, so that one client " +
				"cannot take all; 0: no limit. Loopback addresses and trusted-proxies are not limited",
		},
		{
			Name: "max-http2-connections", Default: "2048", Group: registry.Network, Value: &s.MaxHTTP2,
			Meaning: "maximum number of connections with HTTP/2, which TLS clients may choose; later ones get " +
				"HTTP/1.1; 0: HTTP/1.1 only",
		},
		{
			Name: "read-timeout", Default: registry.FormatDuration(defaults.ReadTimeout),
			Group: registry.Network, Value: &s.ReadTimeout,
			Meaning: "maximum time to receive a request's headers; a body may pause for twice as long",
		},
		{
			Name: "write-timeout", Default: registry.FormatDuration(defaults.WriteTimeout),
			Group: registry.Network, Value: &s.WriteTimeout,
			Meaning: "maximum time for a client to receive a response",
		},
		{
			Name: "idle-timeout", Default: registry.FormatDuration(defaults.IdleTimeout),
			Group: registry.Network, Value: &s.IdleTimeout,
			Meaning: "maximum time that a connection stays open between two requests",
		},
		{
			Name: "max-body", Default: strconv.Itoa(1 << 20), Group: registry.Limits, Value: &s.MaxBody,
			Meaning: "maximum bytes of one request body; uploads have limits of their own",
		},
	}
}
