package wire

import (
	"slices"

	"parley/wire/shape"
)

// errorCode is an error code of the protocol: its possible statuses and its fields besides result, msg and code, in
// the notation of package shape.
type errorCode struct {
	name     string
	statuses []int
	fields   string
}

// errorCodes is every error code. Tests check the source code and every real refusal against it.
var errorCodes = []errorCode{
	{"ADMIN_ACTION_REQUIRED", []int{403}, "{}"},
	{"ANOMALOUS_WEBHOOK_PAYLOAD", []int{400}, "{webhook_name: str}"},
	{"ANSWER_MEMORY_FULL", []int{503}, "{retry-after: num}"},
	{"AUTHENTICATION_FAILED", []int{401}, "{}"},
	{"BAD_EVENT_QUEUE_ID", []int{400}, "{queue_id: str}"},
	{"BAD_IMAGE", []int{400}, "{}"},
	{"BAD_NARROW", []int{400}, "{desc: str}"},
	{"BAD_REQUEST", []int{400, 403, 404, 413, 417, 431, 501, 502, 503, 505}, "{parameters?: str, errors?: {*: [str]}}"},
	{"CANNOT_DEACTIVATE_GROUP_IN_USE", []int{400}, "{objections: [any]}"},
	{"CANNOT_DEACTIVATE_LAST_USER", []int{400}, "{entity: str, is_last_owner: bool}"},
	{"CSRF_FAILED", []int{403}, "{reason: str}"},
	{"EXPECTATION_MISMATCH", []int{400}, "{}"},
	{"FAILED_TO_CONNECT_BOUNCER", []int{502}, "{}"},
	{"FILES_UNAVAILABLE", []int{503}, "{}"},
	{"INSUFFICIENT_STORAGE", []int{503, 507}, "{}"},
	{"INTERNAL_SERVER_ERROR_ON_BOUNCER", []int{502}, "{}"},
	{"INVALID_API_KEY", []int{401}, "{}"},
	{"INVALID_JSON", []int{400}, "{}"},
	{"INVALID_PUSH_DEVICE_TOKEN", []int{400}, "{}"},
	{"INVALID_REMOTE_PUSH_DEVICE_TOKEN", []int{400}, "{}"},
	{"INVITATION_FAILED", []int{400},
		"{errors: [[str | bool]], sent_invitations: bool, daily_limit_reached: bool, license_limit_reached: bool}"},
	{"MESSAGE_TEXT_DAMAGED", []int{500}, "{message_id: int}"},
	{"MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", []int{400},
		"{first_message_id_allowed_to_move: int, total_messages_in_topic: int, total_messages_allowed_to_move: int}"},
	{"NO_ACTIVE_PUSH_DEVICE", []int{400}, "{}"},
	{"NONEXISTENT_SUBDOMAIN", []int{404}, "{}"},
	{"PASSWORD_AUTH_DISABLED", []int{401}, "{}"},
	{"PERMISSION_DENIED", []int{403}, "{}"},
	{"PUSH_SERVICE_NOT_CONFIGURED", []int{403, 503}, "{}"},
	{"RATE_LIMIT_HIT", []int{429}, "{retry-after: num}"},
	{"REACTION_ALREADY_EXISTS", []int{400}, "{}"},
	{"REACTION_DOES_NOT_EXIST", []int{400}, "{}"},
	{"REALM_DEACTIVATED", []int{401}, "{}"},
	{"REALM_UPLOAD_QUOTA", []int{400}, "{}"},
	{"REMOTE_SERVER_VERIFICATION_SECRET_NOT_PREPARED", []int{400}, "{}"},
	{"REQUEST_CONFUSING_VAR", []int{400}, "{var_name1: str, var_name2: str}"},
	{"REQUEST_VARIABLE_INVALID", []int{400}, "{var_name: str, bad_value: any}"},
	{"REQUEST_VARIABLE_MISSING", []int{400}, "{var_name: str}"},
	{"SERVER_OVERLOADED", []int{503}, "{}"},
	{"STREAM_DOES_NOT_EXIST", []int{400}, "{stream?: str, stream_id?: int}"},
	{"STREAM_WILDCARD_MENTION_NOT_ALLOWED", []int{400}, "{}"},
	{"SYSTEM_GROUP_REQUIRED", []int{400}, "{setting_name: str}"},
	{"TOPIC_WILDCARD_MENTION_NOT_ALLOWED", []int{400}, "{}"},
	{"UNAUTHORIZED", []int{401}, "{}"},
	{"UNAUTHORIZED_PRINCIPAL", []int{400}, "{}"},
	{"USER_DEACTIVATED", []int{401}, "{}"},
}

// tusErrorCodes are the statuses that only resumable uploads use.
var tusErrorCodes = []errorCode{
	{"BAD_REQUEST", []int{409, 412, 415, 423, 429}, "{}"},
	{"REALM_UPLOAD_QUOTA", []int{413}, "{}"},
}

// ErrorShape returns the shape of an error of this endpoint, nil if the endpoint has no such error.
func (e *Endpoint) ErrorShape(status int, name string) *shape.Shape {
	s := ErrorShape(status, name)
	if e.tus == nil {
		return s
	}
	i := slices.IndexFunc(tusErrorCodes, func(c errorCode) bool {
		return c.name == name && slices.Contains(c.statuses, status)
	})
	if s == nil && i >= 0 {
		s = shape.Merge(errorShapeWithCode(name), mustParseShape(tusErrorCodes[i].fields))
	}
	if s == nil {
		return nil
	}
	return withMessage(s)
}

// withMessage adds the field that tus clients read.
func withMessage(s *shape.Shape) *shape.Shape {
	return shape.Merge(s, mustParseShape("{message?: str}"))
}

// errorShapeWithCode returns the shape of an error without further fields.
func errorShapeWithCode(name string) *shape.Shape {
	return mustParseShape("{result: 'error', msg: str, code: '" + name + "'}")
}

// ErrorShape returns the shape of an error with a status and code, nil if there is no such error. Status 405
// lists the allowed methods. Status 500 has no code and no further fields.
func ErrorShape(status int, name string) *shape.Shape {
	switch {
	case status == 405 && name == "BAD_REQUEST":
		return mustParseShape("{result: 'error', msg: str, code: 'BAD_REQUEST', allowed_methods: [str]}")
	case status == 500 && name == "":
		return mustParseShape("{result: 'error', msg: str}")
	}
	i := slices.IndexFunc(errorCodes, func(c errorCode) bool {
		return c.name == name && slices.Contains(c.statuses, status)
	})
	if i < 0 {
		return nil
	}
	return shape.Merge(errorShapeWithCode(name), mustParseShape(errorCodes[i].fields))
}
