package realm

import "fmt"

// RefusalKind of a refusal; the wire gives each its HTTP status.
type RefusalKind uint8

const (
	Invalid         RefusalKind = iota // 400
	Unauthenticated                    // 401
	Forbidden                          // 403
	NotFound                           // 404
	TooMany                            // 429
	Busy                               // 503: a full mailbox or queue; the caller may try again
	TooLarge                           // 413
	BadGateway                         // 502: another service failed us
)

// Refusal is an error that the caller brought about and may read.
type Refusal struct {
	Kind      RefusalKind
	Code, Msg string
	Data      map[string]any // further fields of the error answer
}

func (r *Refusal) Error() string { return r.Msg }

// Refuse makes a refusal.
func Refuse(k RefusalKind, code, msg string) *Refusal { return &Refusal{Kind: k, Code: code, Msg: msg} }

// With adds a field to the error answer.
func (r *Refusal) With(key string, value any) *Refusal {
	if r.Data == nil {
		r.Data = map[string]any{}
	}
	r.Data[key] = value
	return r
}

// BadRequest is the protocol's ordinary refusal: 400, BAD_REQUEST.
func BadRequest(format string, args ...any) *Refusal {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return Refuse(Invalid, "BAD_REQUEST", format)
}

// Missing is a refusal of the kind drafts and scheduled messages use: 404 with code BAD_REQUEST.
func Missing(msg string) *Refusal { return Refuse(NotFound, "BAD_REQUEST", msg) }

// The refusals that many commands share.
func errPermission() *Refusal  { return BadRequest("Insufficient permission") }
func errNoUser() *Refusal      { return BadRequest("No such user") }
func errDeactivated() *Refusal { return BadRequest("User is deactivated") }
func errNoLongerActive(u *User) *Refusal {
	return BadRequest("'%s' is no longer using Zulip.", u.Email)
}
func errInvalidChannel() *Refusal   { return BadRequest("Invalid channel ID") }
func errInvalidMessage() *Refusal   { return BadRequest("Invalid message(s)") }
func errGuestsNotAllowed() *Refusal { return BadRequest("Not allowed for guest users") }
func errBotsNotAllowed() *Refusal   { return BadRequest("This endpoint does not accept bot requests.") }
func errNothingToChange() *Refusal  { return BadRequest("Nothing to change") }
func errNotAdmin() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization administrator")
}
func errNotOwner() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization owner")
}
func errNotMember() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization member")
}
