package mail

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the SMTP server.
func Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "mail_connections",
			Of:       "connections that send email to channels",
			Overflow: "they wait",
			Reason:   "an email of up to 10 MiB is in memory while it is received",
			Limit:    registry.Constant(MaxConnections),
			Whole:    registry.NoNames,
		},
	}
}
