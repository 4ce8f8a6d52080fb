// Package realm holds one organization as plain data: its rows, its rules, and the events that clients get.
//
// A client's request becomes a command. The realm runs each command in a turn, with exclusive access:
//
//	form (wire)
//	    |
//	    v
//	command.Decide --> refusal to the caller, nothing recorded
//	    |
//	    v  Turn.Record, Turn.recordWithVisibility
//	facts, numbered --> journal (on disk before anything is sent)
//	    |
//	    +-- apply: changes rows and indexes
//	    +-- notices: events with their audiences --> event queues --> clients
//
// The contract:
//
//   - Decide first checks everything, then records facts. A refusal after the first fact is a bug.
//   - Only apply changes the realm. It runs at once, so the rest of the turn sees the change. It does not fail.
//   - notices runs right after apply and resolves the audience at that moment.
//   - Facts are stored, commands are not. Recovery loads the rows of the last snapshot and replays the facts after it
//     with Replay, which uses the same apply and notices.
//   - The package starts no goroutine, holds no lock, reads no clock, draws no random numbers and does no I/O. The time
//     and random tokens of a turn come from TurnEnv. A Realm belongs to one goroutine at a time.
//   - Rows belong to the realm. Everything that leaves a view or a turn is copied.
//
// # Visibility
//
// A fact may show or hide something for users that the fact is not about. Their clients need events about it. These
// events come from additional facts, which change no rows. Each command records them explicitly:
//
//   - Users: if guests are limited, a guest sees only users that share a channel or a direct conversation. A command
//     records facts that may change this with Turn.recordWithVisibility. That step also records PeopleSeen: users that
//     the guest will see before the fact, all other differences after it. Record rejects such facts.
//   - Channels: a change of group members may show or hide private channels. The command makes it inside
//     Turn.trackChannelVisibility, which then records ChannelVisibilityChanged for the channels concerned. A command
//     that changes a role records ChannelsShown after it.
//   - Settings: after an account was deactivated or reactivated, the command calls Turn.recordValuesShown for the
//     permission settings and groups that name the account.
//
// The terms used here (realm, turn, view, command, fact, notice, form, refusal, journal, row, seq, caps) are defined in
// .github/docs/glossary.md.
package realm
