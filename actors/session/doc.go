// Package session has the event queues of users, as one session actor stores them, and the interface through which the
// actor uses the client protocol.
//
//	Table: index of a user ──► Session ──► queue.Queue ──► queue.Queue ──► nil
//
// A Session is one user's queues in the order of their registration. A Table finds sessions by a dense index, so
// looking up the recipients of a notice in the order of their ids reads memory in order.
//
// Protocol is the interface through which the session actor encodes events and answers polls; package wire implements
// it. Everything here is plain data of one actor: no locks, no goroutines.
package session
