package wire

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"sync"

	"parley/actors/realm"
	"parley/wire/form"
)

// FeatureLevel is the protocol level of this server. Version is the server version that clients see.
const (
	FeatureLevel = 494
	Version      = "12.0"
)

// Protocol is the version of the protocol for people, beside that of the program.
var Protocol = fmt.Sprintf("Zulip API feature level %d (server version %s)", FeatureLevel, Version)

// bufferPool holds buffers for encoding.
var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// encode returns JSON as the protocol has it: no HTML escapes, no newline.
func encode(v any) []byte { return encodeWithSuffix(v, "") }

// encodeLine is encode with a newline.
func encodeLine(v any) []byte { return encodeWithSuffix(v, "\n") }

func encodeWithSuffix(v any, end string) []byte {
	b := bufferPool.Get().(*[]byte)
	*b = append(appendJSON((*b)[:0], v), end...)
	return takeBuffer(b)
}

// takeBuffer returns the content of a buffer and puts the buffer back.
func takeBuffer(b *[]byte) []byte {
	if cap(*b) > 1<<20 { // a rare large buffer must not stay in the pool
		return *b
	}
	out := bytes.Clone(*b)
	bufferPool.Put(b)
	return out
}

// Success returns the body of a success. ignored names the parameters that the endpoint does not know.
func Success(answer any, ignored []string) []byte { return successWithout(answer, ignored, ownField) }

// successWithout is Success without the fields of a kind, unless that is ownField.
func successWithout(answer any, ignored []string, without fieldKind) []byte {
	v := structOf(answer)
	b := bufferPool.Get().(*[]byte)
	*b = planOf(v.Type()).appendFields(append((*b)[:0], '{'), v, successFields(ignored), without)
	*b = append(*b, "}\n"...)
	return takeBuffer(b)
}

// Failure returns the status and body for an error. Form errors and refusals have their own; any other error is an
// internal server error, whose text is not sent.
func Failure(err error) (int, []byte) {
	var f *form.Error
	if errors.As(err, &f) {
		status := 400
		if f.RouteMiss {
			status = 404
		}
		return status, errorBody(f.Code, f.Msg, f.Fields)
	}
	var r *realm.Refusal
	if errors.As(err, &r) {
		return statusOfKind[r.Kind], errorBody(r.Code, r.Msg, r.Data)
	}
	return 500, []byte(`{"result":"error","msg":"Internal server error"}` + "\n")
}

// statusOfKind is the HTTP status of each kind of refusal.
var statusOfKind = map[realm.RefusalKind]int{realm.Invalid: 400, realm.Unauthenticated: 401, realm.Forbidden: 403,
	realm.NotFound: 404, realm.TooMany: 429, realm.Busy: 503, realm.TooLarge: 413, realm.BadGateway: 502,
	realm.NoSpace: 507, realm.Damaged: 500}

func errorBody(code, msg string, fields map[string]any) []byte {
	out := make(map[string]any, len(fields)+3)
	maps.Copy(out, fields)
	out["result"], out["msg"] = "error", msg
	if code != "" {
		out["code"] = code
	}
	return encodeLine(out)
}

// AnswerError answers a parked request with an error.
func AnswerError(r Reply, err error) {
	status, body := Failure(err)
	r.Answer(status, body)
}
