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

// Error is a refusal of a form, with the text for the client. Its status is 400, or 404 if RouteMiss is set.
type Error struct {
	Code   string
	Msg    string
	Fields map[string]any // further members of the answer, or nil

	// RouteMiss says that a path parameter is malformed, so no route fits.
	RouteMiss bool

	// Until Named is called, the message is incomplete: it lacks the parameter's name between before and at.
	unnamed           bool
	before, at, after string
}

// Error returns the message for the client.
func (e *Error) Error() string { return e.Msg }

// Bad returns an error with a complete message.
func Bad(msg string) *Error { return &Error{Code: badRequest, Msg: msg} }

// At returns an error about a value. Its message is before, the position of the value, after: At("", " is not a
// date"). Code that decodes lists and objects adds the position with Index and Key. The form adds the name of the
// parameter.
func At(before, after string) *Error {
	return &Error{Code: badRequest, Msg: before + after, before: before, after: after, unnamed: true}
}

// Invalid returns the error of a failed custom check, with a reason such as "Not a URL".
func Invalid(reason string) *Error { return At("Invalid ", ": Value error, "+reason) }

// Index adds element i of a list to the position.
func (e *Error) Index(i int) *Error { return e.prefix("[" + strconv.Itoa(i) + "]") }

// Key adds the member of an object to the position.
func (e *Error) Key(key string) *Error { return e.prefix("[" + quote(key) + "]") }

func (e *Error) prefix(place string) *Error {
	if e.unnamed {
		e.at = place + e.at
		e.Msg = e.before + e.at + e.after
	}
	return e
}

// Named completes the message with the name of the parameter. A complete message does not change.
func (e *Error) Named(name string) *Error {
	if e.unnamed {
		e.Msg = e.before + name + e.at + e.after
		e.unnamed = false
	}
	return e
}

// Missing returns the error of a required parameter that was not sent.
func Missing(name string) *Error {
	return &Error{Code: missingVar, Msg: "Missing '" + name + "' argument", Fields: map[string]any{"var_name": name}}
}

// Confusing returns the error of a parameter that was sent under two names.
func Confusing(a, b string) *Error {
	return &Error{Code: confusing, Msg: "Can't decide between '" + a + "' and '" + b + "' arguments",
		Fields: map[string]any{"var_name1": a, "var_name2": b}}
}

// BadValue returns an error with the refused value as a member. Only a few settings use it.
func BadValue(name string, value any) *Error {
	return &Error{Code: invalidVar, Msg: fmt.Sprintf("Bad value for '%s': %v", name, value),
		Fields: map[string]any{"var_name": name, "bad_value": value}}
}

// Unsupported returns the error of parameters that exclude each other.
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

func isNot(noun string) *Error { return At("", " is not "+noun) }

func itoa(n int) string { return strconv.Itoa(n) }

// quote returns a key as a JSON string. Characters outside ASCII are not escaped.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("BUG: encode a key: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
