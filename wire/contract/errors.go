package contract

import (
	"fmt"

	"parley/wire/shape"
)

// errorFields are the fields that an error with a code may have beside result, msg and code. Strict clients fail
// on any other field.
var errorFields = map[string]string{
	"REQUEST_VARIABLE_MISSING": "{var_name: str}",
	"REQUEST_VARIABLE_INVALID": "{var_name: str, bad_value: any}",
	"REQUEST_CONFUSING_VAR":    "{var_name1: str, var_name2: str}",
	"STREAM_DOES_NOT_EXIST":    "{stream?: str, stream_id?: int}",
	"BAD_EVENT_QUEUE_ID":       "{queue_id: str}",
	"BAD_NARROW":               "{desc: str}",
	"CSRF_FAILED":              "{reason: str}",
	"RATE_LIMIT_HIT":           "{retry-after: num}",
	"INVITATION_FAILED": "{errors: [[str | bool]], sent_invitations: bool, daily_limit_reached: " +
		"bool, license_limit_reached: bool}",
	"CANNOT_DEACTIVATE_LAST_USER": "{entity: str, is_last_owner: bool}",
	"MOVE_MESSAGES_TIME_LIMIT_EXCEEDED": "{first_message_id_allowed_to_move: int, total_messages_in_topic: int, " +
		"total_messages_allowed_to_move: int}",
	"SYSTEM_GROUP_REQUIRED":          "{setting_name: str}",
	"CANNOT_DEACTIVATE_GROUP_IN_USE": "{objections: [any]}",
	"UNSUPPORTED_WEBHOOK_EVENT_TYPE": "{webhook_name: str, event_type: str}",
	"ANOMALOUS_WEBHOOK_PAYLOAD":      "{webhook_name: str}",
	// for parameter combinations; for linkifiers and playgrounds
	"BAD_REQUEST": "{parameters?: str, errors?: {*: [str]}}",
}

// errorShape returns the shape of an error answer. 500 has none in Zulip; the specification demands one of 405.
func errorShape(status int, code string) (*shape.Shape, error) {
	text := errorFields[code]
	if text == "" {
		text = "{}"
	}
	more, err := parse(text, nil)
	if err != nil {
		return nil, err
	}
	envelope := "{result: 'error', msg: str, code: str}"
	switch status {
	case 405:
		envelope = "{result: 'error', msg: str, code: str, allowed_methods: [str]}"
	case 500:
		envelope = "{result: 'error', msg: str, code?: str}"
	case 404:
		envelope = "{result: 'error', msg: str, code?: str}" // an unknown route may have no code
	}
	base, err := parse(envelope, nil)
	if err != nil {
		return nil, fmt.Errorf("BUG: %w", err)
	}
	return shape.Merge(base, more), nil
}
