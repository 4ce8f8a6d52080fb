package actors

import (
	"parley/actors/registry"
)

// MetricTable returns the metrics of the actors, with a reading of the organizations.
func (srv *Server) MetricTable(r RealmMetrics) []registry.Metric {
	return []registry.Metric{
		{
			Name: "parley_turns_total", Counter: true,
			Meaning: "Turns: commands that organizations have executed.",
			Read:    func() int64 { return srv.Metrics.Turns.Load() },
		},
		{
			Name: "parley_views_total", Counter: true,
			Meaning: "Views: requests that only read the state of an organization.",
			Read:    func() int64 { return srv.Metrics.Views.Load() },
		},
		{
			Name: "parley_busy_rejections_total", Counter: true,
			Meaning: "Commands and views rejected, because a mailbox of the organization or its sessions was full.",
			Read:    func() int64 { return srv.Metrics.Busy.Load() },
		},
		{
			Name: "parley_polls_total", Counter: true,
			Meaning: "Polls: requests for events.",
			Read:    func() int64 { return srv.Metrics.Polls.Load() },
		},
		{
			Name: "parley_deliveries_total", Counter: true,
			Meaning: "Answers to polls.",
			Read:    func() int64 { return srv.Metrics.Deliveries.Load() },
		},
		{
			Name: "parley_heartbeats_total", Counter: true,
			Meaning: "Heartbeat events added to queues.",
			Read:    func() int64 { return srv.Metrics.Heartbeats.Load() },
		},
		{
			Name: "parley_queues_evicted_total", Counter: true,
			Meaning: "Event queues closed because they had too many unacknowledged events.",
			Read:    func() int64 { return srv.Metrics.QueuesEvicted.Load() },
		},
		{
			Name: "parley_queues_evicted_of_account_total", Counter: true,
			Meaning: "Of these, queues closed because their account exceeded its share.",
			Read:    func() int64 { return srv.Metrics.QueuesEvictedForAccount.Load() },
		},
		{
			Name: "parley_snapshots_total", Counter: true,
			Meaning: "Snapshots of organizations written to disk.",
			Read:    func() int64 { return srv.Metrics.Snapshots.Load() },
		},
		{
			Name: "parley_ownerships_lost_total", Counter: true,
			Meaning: "Ownerships of organizations that this node lost, because the journal refused a batch or the " +
				"leader " +
				"changed.",
			Read: func() int64 { return srv.Metrics.OwnershipsLost.Load() },
		},
		{
			Name: "parley_queues_adopted_total", Counter: true,
			Meaning: "Event queues that a node has adopted from another node, because their clients poll it.",
			Read:    func() int64 { return srv.Metrics.QueuesAdopted.Load() },
		},
		{
			Name: "parley_requests_repeated_total", Counter: true,
			Meaning: "Repeated forwarded requests that were not executed again.",
			Read:    func() int64 { return srv.Metrics.RequestsRepeated.Load() },
		},
		{
			Name: "parley_messages_archived_total", Counter: true,
			Meaning: "Messages that users or retention policies deleted; they are moved to the archive.",
			Read:    func() int64 { return srv.Metrics.MessagesArchived.Load() },
		},
		{
			Name: "parley_messages_restored_total", Counter: true,
			Meaning: "Messages restored from the archive.",
			Read:    func() int64 { return srv.Metrics.MessagesRestored.Load() },
		},
		{
			Name: "parley_messages_purged_total", Counter: true,
			Meaning: "Archived messages deleted permanently after archive-days.",
			Read:    func() int64 { return srv.Metrics.MessagesPurged.Load() },
		},
		{
			Name: "parley_usage_messages",
			Meaning: "Messages of users in all organizations that this node owns, since their usage is counted. " +
				"Deleted messages stay counted.",
			Read: func() int64 { return int64(r.Usage.Messages) },
		},
		{
			Name:    "parley_usage_active_people",
			Meaning: "People that were active today (UTC) in the organizations that this node owns.",
			Read:    func() int64 { return int64(r.Usage.Active) },
		},
		{
			Name:    "parley_usage_file_bytes",
			Meaning: "Bytes of uploaded files of the organizations that this node owns.",
			Read:    func() int64 { return r.Usage.FileBytes },
		},
		{
			Name: "parley_damaged_texts",
			Meaning: "Message texts that could not be read since the start, without those that were read or erased " +
				"later.",
			Read: srv.DamagedTexts,
		},
		{
			Name:    "parley_queues",
			Meaning: "Open event queues.",
			Read:    func() int64 { return srv.Metrics.OpenQueues.Load() },
		},
		{
			Name:    "parley_polls_parked",
			Meaning: "Polls that wait for an event.",
			Read:    func() int64 { return srv.Metrics.ParkedPolls.Load() },
		},
		{
			Name:    "parley_unacked_events",
			Meaning: "Events in queues that clients have not acknowledged, counted once a second.",
			Read:    func() int64 { return srv.Metrics.UnackedEvents.Load() },
		},
		{
			Name:    "parley_unacked_facts",
			Meaning: "Facts with events in memory that some queue has not acknowledged.",
			Read:    func() int64 { return srv.Metrics.UnackedFacts.Load() },
		},
		{
			Name:    "parley_unacked_bytes",
			Meaning: "Estimated memory of these events, in bytes.",
			Read:    func() int64 { return srv.Metrics.UnackedBytes.Load() },
		},
		{
			Name:    "parley_undelivered_recipients",
			Meaning: "Recipients of events that wait in the mailboxes of sessions.",
			Read:    func() int64 { return srv.Metrics.Undelivered.Load() },
		},
		{
			Name:    "parley_delivery_lag_seconds",
			Meaning: "Expected seconds until new events are delivered to their queues, in the slowest organization.",
			Read:    func() int64 { return registry.Largest(r.DeliveryLag) },
			Scale:   1e-9,
		},
		{
			Name:    "parley_commands_waiting",
			Meaning: "Commands that wait because events are delivered late.",
			Read:    func() int64 { return srv.Metrics.CommandsWaiting.Load() },
		},
		{
			Name: "parley_commands_waited_total", Counter: true,
			Meaning: "Commands that had to wait because events were delivered late.",
			Read:    func() int64 { return srv.Metrics.CommandsWaited.Load() },
		},
		{
			Name: "parley_command_wait_seconds_total", Counter: true,
			Meaning: "Total time that these commands waited, in seconds.",
			Read:    func() int64 { return srv.Metrics.CommandWaitNanos.Load() },
			Scale:   1e-9,
		},
		{
			Name: "parley_commands_refused_total", Counter: true,
			Meaning: "Commands answered 503, because too many commands waited or they had waited too long.",
			Read:    func() int64 { return srv.Metrics.CommandsRefused.Load() },
		},
		{
			Name:    "parley_organizations_awake",
			Meaning: "Organizations in memory.",
			Read:    func() int64 { return r.Sleep.Awake },
		},
		{
			Name:    "parley_organizations_asleep",
			Meaning: "Organizations that are not in memory, because they have had no requests.",
			Read:    func() int64 { return r.Sleep.Asleep },
		},
		{
			Name:    "parley_organizations_waking",
			Meaning: "Organizations that are being loaded, because a request or a due time needs them.",
			Read:    func() int64 { return r.Sleep.Waking },
		},
		{
			Name: "parley_organization_wakes_total", Counter: true,
			Meaning: "Organizations that were loaded because they were needed.",
			Read:    func() int64 { return r.Sleep.Wakes },
		},
		{
			Name: "parley_organization_sleeps_total", Counter: true,
			Meaning: "Organizations that have left memory.",
			Read:    func() int64 { return r.Sleep.Sleeps },
		},
		{
			Name: "parley_organization_wakes_refused_total", Counter: true,
			Meaning: "Requests answered 503, because too many waited for organizations, or loading one took too long.",
			Read:    func() int64 { return r.Sleep.Refused },
		},
		{
			Name:    "parley_organizations_next_due_seconds",
			Meaning: "Time until the next organization that is asleep is due; 0: none is.",
			Read: func() int64 {
				if r.Sleep.NextDue == 0 {
					return 0
				}
				return max(1, r.Sleep.NextDue-srv.now().Unix())
			},
		},
		{
			Name:    "parley_organization_slowest_wake_seconds",
			Meaning: "The longest time that loading an organization took since the process started.",
			Read: func() int64 {
				if len(r.Sleep.Slowest) == 0 {
					return 0
				}
				return int64(r.Sleep.Slowest[0].Took)
			},
			Scale: 1e-9,
		},
	}
}

// Labeled returns the metrics of the actors that have a label.
func (srv *Server) Labeled(r RealmMetrics) []registry.Labeled {
	return []registry.Labeled{
		{
			Name: "parley_refusals_total", Counter: true, Label: "code",
			Meaning: "Commands and views refused, by the protocol's error code.",
			Each:    registry.EachOf(r.Refusals),
		},
		{
			Name: "parley_usage_messages_sent_total", Counter: true, Label: "client",
			Meaning: "Messages that users have sent through this node since its start, by client program; other: " +
				"programs with other names.",
			Each: srv.Metrics.eachSent,
		},
		{
			Name: "parley_realm_in_flight", Label: "realm",
			Meaning: "Commands and views that wait in the mailbox of an organization or for the disk.",
			Each:    registry.EachOf(r.InFlight),
		},
		{
			Name: "parley_realm_durable_facts", Label: "realm",
			Meaning: "Number of the last fact of an organization that is on disk.",
			Each:    registry.EachOf(r.DurableFacts),
		},
		{
			Name: "parley_realm_snapshot_age_seconds", Label: "realm",
			Meaning: "Time since the rows of an organization were written, or since it was opened.",
			Each:    registry.EachOf(r.SnapshotAgeSeconds),
		},
		{
			Name: "parley_realm_archived_messages", Label: "realm",
			Meaning: "Deleted messages of an organization that can be restored.",
			Each:    registry.EachOf(r.Archived),
		},
		{
			Name: "parley_realm_retention_lag_seconds", Label: "realm",
			Meaning: "How long the deletion of messages by the retention policies of an organization is overdue.",
			Each:    registry.EachOf(r.RetentionLag),
		},
		{
			Name: "parley_realm_turn_latency_max_seconds", Label: "kind",
			Meaning: "The longest turn or view of each kind.",
			Each: func(send func(string, float64)) {
				for _, h := range srv.TurnLatencies() {
					send(h.Kind, h.Max.Seconds())
				}
			},
		},
	}
}
