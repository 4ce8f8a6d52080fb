// Package mirror keeps the state of a real client: the answer of a register, changed by every later event as the
// protocol documents it. It has no code in common with the server. A fresh register must answer the same state: a
// difference means that an event is missing or wrong, or that the client got too many.
//
// A Mirror stores at most the 300 newest messages. Diff, DiffMessages, DiffFetched and DiffHistory compare it with
// answers of the server. Parts that no event updates are listed in notFollowed, with the reason.
package mirror
