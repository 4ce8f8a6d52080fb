package realm

import "fmt"

// Kind of a refusal; the wire gives each its HTTP status.
type Kind uint8

const (
	Invalid         Kind = iota // 400
	Unauthenticated             // 401
	Forbidden                   // 403
	NotFound                    // 404
	TooMany                     // 429
	Busy                        // 503: a full mailbox or queue; the caller may try again
	TooLarge                    // 413
	Gateway                     // 502: another service failed us
)

// Refusal is an error that the caller brought about and may read.
type Refusal struct {
	Kind      Kind
	Code, Msg string
	Data      map[string]any // further fields of the error answer
}

func (r *Refusal) Error() string { return r.Msg }

// Refuse makes a refusal.
func Refuse(k Kind, code, msg string) *Refusal { return &Refusal{Kind: k, Code: code, Msg: msg} }

// With adds a field to the error answer.
func (r *Refusal) With(key string, value any) *Refusal {
	if r.Data == nil {
		r.Data = map[string]any{}
	}
	r.Data[key] = value
	return r
}

// Bad is the protocol's ordinary refusal: 400, BAD_REQUEST.
func Bad(format string, args ...any) *Refusal {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return Refuse(Invalid, "BAD_REQUEST", format)
}

// Missing is a refusal of the kind drafts and scheduled messages use: 404 with code BAD_REQUEST.
func Missing(msg string) *Refusal { return Refuse(NotFound, "BAD_REQUEST", msg) }

// The refusals that many commands share.
func errPermission() *Refusal      { return Bad("Insufficient permission") }
func errNoUser() *Refusal          { return Bad("No such user") }
func errDeactivated() *Refusal     { return Bad("User is deactivated") }
func errGone(u *User) *Refusal     { return Bad("'%s' is no longer using Zulip.", u.Email) }
func errChannelID() *Refusal       { return Bad("Invalid channel ID") }
func errMessage() *Refusal         { return Bad("Invalid message(s)") }
func errGuest() *Refusal           { return Bad("Not allowed for guest users") }
func errBot() *Refusal             { return Bad("This endpoint does not accept bot requests.") }
func errNothingToChange() *Refusal { return Bad("Nothing to change") }
func errAdmin() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization administrator")
}
func errOwner() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization owner")
}
func errMember() *Refusal {
	return Refuse(Invalid, "UNAUTHORIZED_PRINCIPAL", "Must be an organization member")
}
