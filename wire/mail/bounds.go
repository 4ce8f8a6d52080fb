package mail

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of incoming mail.
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
		{
			Name:     "mail_replies",
			Of:       "replies of one user by email in an hour",
			Overflow: "450, so the mail is sent again later",
			Reason:   "a program that answers emails must not make a loop",
			Limit:    registry.Constant(maxRepliesPerHour),
			Whole:    registry.OfOne,
		},
	}
}
