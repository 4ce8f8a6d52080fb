// Package queue is one client's event queue as plain data: append, poll, acknowledge, heartbeat, expire.
//
//	events of a fact ──► Append ──► unacked events ──► TakePoll ──► answer
//	heartbeat, typing ─► AppendEphemeral    │  ▲
//	                                        │  │ Poll(last_event_id) removes the acknowledged ones,
//	                                        ▼  │ and waits if none is left
//	                                   AckedThrough ──► events that the realm may drop
//
// An event's id is (n - R) << 8 | k: n is the number of its fact, R the number of the registration, k the event's place
// among the events that the fact has for this queue. So ids rise along a queue. An event without a fact, such as a
// heartbeat, gets an id between the facts.
//
// A queue belongs to one session actor, which gives it the time and sends its answers. It starts no goroutine and has
// no lock. In memory it takes two cache lines, and delivering an event allocates nothing.
package queue
