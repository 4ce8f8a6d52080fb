package delivery

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the delivery. waiting returns how many commands wait in the organization with the most,
// and refused how many commands were refused.
func Bounds(waiting, refused func() int64) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "waiting_commands",
			Of:       "commands that wait because events are delivered late, in the organization with the most",
			Overflow: "the newest command of the account with the most gets 503, a bot's first",
			Reason:   "each holds a connection, and up to 20 kB",
			Limit:    registry.Constant(MaxWaitingCommands),
			Used:     waiting,
			Hits:     refused,
			Whole:    registry.OfOne,
		},
		{
			Name:     "waiting_commands_per_account",
			Of:       "commands of one account, with its bots, that wait because events are delivered late",
			Overflow: "503",
			Reason:   "no client has as many requests in progress",
			Limit:    registry.Constant(MaxWaitingOfAccount),
		},
		{
			Name: "delivery_window",
			Of: "recipients of one organization's events in the mailboxes of its sessions; one event may " +
				"exceed it",
			Overflow: "further events wait",
			Reason:   "a mailbox full of events would delay the polls behind them",
			Limit:    registry.Constant(DeliveryWindow),
		},
		{
			Name:     "unacked_account_events",
			Of:       "unacknowledged events in all queues of one account and its bots",
			Overflow: "the oldest queues of the account are closed: BAD_EVENT_QUEUE_ID",
			Reason:   "16 bytes each; an account can have a thousand queues",
			Limit:    registry.Constant(MaxUnackedRefs),
		},
	}
}
