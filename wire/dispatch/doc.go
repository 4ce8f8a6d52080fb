// Package dispatch runs outbox jobs: emails, outgoing webhooks, push notifications and link previews.
//
// A realm stores each job as a row until the job is finished. The Dispatcher gives it to the handler of its kind:
//
//	realm turn ─▶ journal ─▶ AddJobs ─▶ ordered queue ─▶ slot of the kind ─▶ Handler.Handle
//	    ▲                                  (one job at a time)                     │
//	    └──────────────────── FinishOutboxJobs ◀── finished or given up ◀──────────┤
//	                                               RetryAfter: wait, then again ◀──┘
//
// The contract:
//
//   - A job runs at least once. A crash between the attempt and the turn that finishes the job repeats it.
//   - Jobs of one recipient run one after the other in the order of their numbers: one bot's webhook calls, one user's
//     notifications, emails to one address. A queue waits for its first job to finish, or to be given up.
//   - Queues do not wait for each other. They share the slots of their kind (Options.Concurrency).
//   - The handler decides how often and after which pauses a job is tried, and when it is given up.
//   - Begin loads the jobs that the last process did not finish. Jobs that are added before then wait for them.
package dispatch
