// Package presence is the presence of one organization's users as plain data: when each was last connected and active.
//
//	client's report ──► Report ──► Row ──► ChangedSince(update id), Get ──► answers
//	"appear offline" ─► Hide ───────┘ └──► TakeChanged ─► rows every 30 s, and snapshots ─► Restore
//
// Nothing is journaled: a crash may lose the reports of the last 30 seconds, and clients report again within a minute.
// The caller gives the time in Unix seconds.
package presence
