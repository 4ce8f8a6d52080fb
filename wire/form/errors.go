package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const (
	badRequest = "BAD_REQUEST"
	missingVar = "REQUEST_VARIABLE_MISSING"
	invalidVar = "REQUEST_VARIABLE_INVALID"
	confusing  = "REQUEST_CONFUSING_VAR"
)

// Error is why a form was refused, as the client reads it. Its status is 400, or 404 when RouteMiss is set.
type Error struct {
	Code   string
	Msg    string
	Fields map[string]any // further keys of the answer, nil when there are none

	// RouteMiss: a piece of the path is not what the route takes, so there is no such route.
	RouteMiss bool

	// Until its variable is named, an error knows only what to say around the position, and the part of the position
	// below the variable.
	unnamed           bool
	before, at, after string
}

func (e *Error) Error() string { return e.Msg }

// Bad is an error with a message of its own.
func Bad(msg string) *Error { return &Error{Code: badRequest, Msg: msg} }

// At is an error whose message is before, the position of the value, after: At("", " is not a date").
// Whoever goes up through a value adds its place with Index and Key; the form adds the name of the parameter.
func At(before, after string) *Error {
	return &Error{Code: badRequest, Msg: before + after, before: before, after: after, unnamed: true}
}

// Invalid is the failure of a custom check, for a reason such as "Not a URL".
func Invalid(reason string) *Error { return At("Invalid ", ": Value error, "+reason) }

// Index puts the error at element i.
func (e *Error) Index(i int) *Error { return e.prefix("[" + strconv.Itoa(i) + "]") }

// Key puts the error at the value of a key.
func (e *Error) Key(key string) *Error { return e.prefix("[" + quote(key) + "]") }

func (e *Error) prefix(place string) *Error {
	if e.unnamed {
		e.at = place + e.at
		e.Msg = e.before + e.at + e.after
	}
	return e
}

// Named completes the message with the name of the parameter. It does nothing to an error that has one.
func (e *Error) Named(name string) *Error {
	if e.unnamed {
		e.Msg = e.before + name + e.at + e.after
		e.unnamed = false
	}
	return e
}

// Missing is the error of a required parameter that was not sent.
func Missing(name string) *Error {
	return &Error{Code: missingVar, Msg: "Missing '" + name + "' argument", Fields: map[string]any{"var_name": name}}
}

// Confusing is the error of a parameter sent under two names.
func Confusing(a, b string) *Error {
	return &Error{Code: confusing, Msg: "Can't decide between '" + a + "' and '" + b + "' arguments",
		Fields: map[string]any{"var_name1": a, "var_name2": b}}
}

// BadValue is the error of the few settings that name the value they refuse.
func BadValue(name string, value any) *Error {
	return &Error{Code: invalidVar, Msg: fmt.Sprintf("Bad value for '%s': %v", name, value),
		Fields: map[string]any{"var_name": name, "bad_value": value}}
}

// Unsupported is the error of parameters that do not go together.
func Unsupported(names ...string) *Error {
	list := strings.Join(names, ", ")
	return &Error{Code: badRequest, Msg: "Unsupported parameter combination: " + list,
		Fields: map[string]any{"parameters": list}}
}

func notJSON() *Error      { return At("", " is not valid JSON") }
func tooSmall() *Error     { return At("", " is too small") }
func tooLarge() *Error     { return At("", " is too large") }
func blank() *Error        { return At("", " cannot be blank") }
func tooShort() *Error     { return At("", " is too short.") }
func badFormat() *Error    { return At("", " has invalid format") }
func notAllowed() *Error   { return At("Invalid ", "") }
func notPossible() *Error  { return Invalid("Not in the list of possible values") }
func routeMiss() *Error    { return &Error{Code: badRequest, Msg: "Not found", RouteMiss: true} }
func fieldMissing() *Error { return At("", " field is missing: Field required") }

func unexpected(key string) *Error { return At(`Argument "`+key+`" at `, " is unexpected") }

func tooLong(limit int, of string) *Error {
	return At("", " is too long (limit: "+itoa(limit)+" "+of+")")
}

func isNot(what string) *Error { return At("", " is not "+what) }

func itoa(n int) string { return strconv.Itoa(n) }

// quote writes a key as JSON does, characters beyond ASCII as they are.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("BUG: a string without JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
