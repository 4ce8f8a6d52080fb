package realm

import (
	"errors"
	"fmt"
)

// RefusalKind is the class of a refusal. Package wire gives each kind its HTTP status.
type RefusalKind uint8

const (
	Invalid         RefusalKind = iota // 400
	Unauthenticated                    // 401
	Forbidden                          // 403
	NotFound                           // 404
	TooMany                            // 429
	Busy                               // 503: a mailbox or queue is full; the caller may try again
	TooLarge                           // 413
	BadGateway                         // 502: another service failed
	NoSpace                            // 507: the disk of the server is full, or almost
	Damaged                            // 500: stored data cannot be read
)

// Refusal is an error caused by the caller and shown to the caller.
type Refusal struct {
	Kind      RefusalKind
	Code, Msg string
	Data      map[string]any // more fields of the error answer
}

func (r *Refusal) Error() string { return r.Msg }

// Refuse returns a refusal.
func Refuse(k RefusalKind, code, msg string) *Refusal { return &Refusal{Kind: k, Code: code, Msg: msg} }

// With adds a field to the error answer and returns the refusal.
func (r *Refusal) With(key string, value any) *Refusal {
	if r.Data == nil {
		r.Data = map[string]any{}
	}
	r.Data[key] = value
	return r
}

// BadRequest returns the protocol's ordinary refusal: 400, BAD_REQUEST. format is used as it is if there are no args.
func BadRequest(format string, args ...any) *Refusal {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return Refuse(Invalid, "BAD_REQUEST", format)
}

// ErrDamagedText returns the refusal of every request that needs the text of a message whose stored form is damaged.
func ErrDamagedText(id MessageID) *Refusal {
	const msg = "The text of a message is damaged on the server's disk."
	return Refuse(Damaged, "MESSAGE_TEXT_DAMAGED", msg).With("message_id", id)
}

// IsBusy reports whether an error is a refusal after which the caller may try again.
func IsBusy(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Kind == Busy
}

// Missing returns the refusal that drafts and scheduled messages use: status 404 with the code BAD_REQUEST.
func Missing(msg string) *Refusal { return Refuse(NotFound, "BAD_REQUEST", msg) }

// Refusals shared by many commands.
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

// ErrReadOnly returns the refusal of every change while the disk is full. A server of several is busy for its callers:
// another one takes over, unless the disks of all of them are full.
func ErrReadOnly(ofSeveral bool) *Refusal {
	if ofSeveral {
		return Refuse(Busy, "INSUFFICIENT_STORAGE",
			"The disk of this server is full. Another one takes over, or the operator makes space. Try again later.")
	}
	return Refuse(NoSpace, "INSUFFICIENT_STORAGE",
		"The server's disk is full. Nothing can be changed until its operator makes space.")
}

func errNotAdmin() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization administrator")
}
func errNotOwner() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization owner")
}
func errNotMember() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization member")
}
