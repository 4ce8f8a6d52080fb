// Package calls lets users talk in rooms of a LiveKit server.
//
//	browser ─▶ wire: start a call ──▶ a message with the link (one turn with the row of the call)
//	browser ─▶ wire: a token ───────▶ Service.Join: make the room, sign the token
//	browser ═══════ token ══════════▶ LiveKit
//	Service, every two seconds ─────▶ LiveKit: the people in the room?
//	                                  ├─▶ remove those that may not be there any more
//	                                  └─▶ realm.SetCallPeople
//
// The service of the owner of an organization asks LiveKit; it needs no requests of LiveKit, which could be lost or
// forged. A token is valid for five minutes, for one room and one user. LiveKit gives clients that are connected new
// ones, so a user that lost the access can come back with one until it expires: the next look removes the user again.
package calls
