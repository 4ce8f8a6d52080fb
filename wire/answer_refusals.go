package wire

import (
	"reflect"
	"slices"

	"parley/actors/realm"
	"parley/wire/shape"
)

// errorCode is an error code of the protocol: its possible statuses, and a struct with its fields besides result, msg
// and code. The struct is nil if there are none.
type errorCode struct {
	name     string
	statuses []int
	fields   any
}

// errorCodes is every error code. Tests check the source code and every real refusal against it.
var errorCodes = []errorCode{
	{"ADMIN_ACTION_REQUIRED", []int{403}, nil},
	{"ANOMALOUS_WEBHOOK_PAYLOAD", []int{400}, struct {
		Name string `json:"webhook_name"`
	}{}},
	{"API_KEY_SCOPE", []int{403}, nil},
	{"ANSWER_MEMORY_FULL", []int{503}, struct {
		Seconds float64 `json:"retry-after"`
	}{}},
	{"AUTHENTICATION_FAILED", []int{401}, nil},
	{"BAD_EVENT_QUEUE_ID", []int{400}, struct {
		ID string `json:"queue_id"`
	}{}},
	{"BAD_IMAGE", []int{400}, nil},
	{"BAD_NARROW", []int{400}, struct {
		Description string `json:"desc"`
	}{}},
	{"BAD_REQUEST", []int{400, 403, 404, 413, 417, 431, 501, 502, 503, 505}, parameterErrorFields{}},
	{"CANNOT_DEACTIVATE_GROUP_IN_USE", []int{400}, struct {
		Objections []any `json:"objections"`
	}{}},
	{"CANNOT_DEACTIVATE_LAST_USER", []int{400}, lastUserErrorFields{}},
	{"CONFIRMATION_REQUIRED", []int{403}, struct {
		ByPassword bool `json:"by_password"`
	}{}},
	{"CSRF_FAILED", []int{403}, struct {
		Reason string `json:"reason"`
	}{}},
	{"EXPECTATION_MISMATCH", []int{400}, nil},
	{"FAILED_TO_CONNECT_BOUNCER", []int{502}, nil},
	{"FILES_UNAVAILABLE", []int{503}, nil},
	{"INSUFFICIENT_STORAGE", []int{503, 507}, nil},
	{"INTERNAL_SERVER_ERROR_ON_BOUNCER", []int{502}, nil},
	{"INVALID_API_KEY", []int{401}, nil},
	{"INVALID_JSON", []int{400}, nil},
	{"INVALID_PUSH_DEVICE_TOKEN", []int{400}, nil},
	{"INVALID_REMOTE_PUSH_DEVICE_TOKEN", []int{400}, nil},
	{"INVITATION_FAILED", []int{400}, invitationErrorFields{}},
	{"MESSAGE_TEXT_DAMAGED", []int{500}, struct {
		ID realm.MessageID `json:"message_id"`
	}{}},
	{"MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", []int{400}, moveErrorFields{}},
	{"NO_ACTIVE_PUSH_DEVICE", []int{400}, nil},
	{"NONEXISTENT_SUBDOMAIN", []int{404}, nil},
	{"PASSWORD_AUTH_DISABLED", []int{401}, nil},
	{"PERMISSION_DENIED", []int{403}, nil},
	{"PUSH_SERVICE_NOT_CONFIGURED", []int{403, 503}, nil},
	{"RATE_LIMIT_HIT", []int{429}, struct {
		Seconds float64 `json:"retry-after"`
	}{}},
	{"REACTION_ALREADY_EXISTS", []int{400}, nil},
	{"REACTION_DOES_NOT_EXIST", []int{400}, nil},
	{"REALM_DEACTIVATED", []int{401}, nil},
	{"REALM_UPLOAD_QUOTA", []int{400}, nil},
	{"REMOTE_SERVER_VERIFICATION_SECRET_NOT_PREPARED", []int{400}, nil},
	{"REQUEST_CONFUSING_VAR", []int{400}, confusingErrorFields{}},
	{"REQUEST_VARIABLE_INVALID", []int{400}, invalidErrorFields{}},
	{"REQUEST_VARIABLE_MISSING", []int{400}, struct {
		Name string `json:"var_name"`
	}{}},
	{"SERVER_OVERLOADED", []int{503}, nil},
	{"STREAM_DOES_NOT_EXIST", []int{400}, channelErrorFields{}},
	{"STREAM_WILDCARD_MENTION_NOT_ALLOWED", []int{400}, nil},
	{"SYSTEM_GROUP_REQUIRED", []int{400}, struct {
		Name string `json:"setting_name"`
	}{}},
	{"TOPIC_WILDCARD_MENTION_NOT_ALLOWED", []int{400}, nil},
	{"UNAUTHORIZED", []int{401}, nil},
	{"UNAUTHORIZED_PRINCIPAL", []int{400}, nil},
	{"USER_DEACTIVATED", []int{401}, nil},
}

// The fields of error codes.
type (
	// parameterErrorFields has the parameters of a combination, or what is wrong with each field of an object.
	parameterErrorFields struct {
		Parameters string              `json:"parameters,omitzero"`
		Errors     map[string][]string `json:"errors,omitzero"`
	}
	lastUserErrorFields struct {
		Entity    string `json:"entity"`
		LastOwner bool   `json:"is_last_owner"`
	}
	// invitationErrorFields has the address, the text and whether the account is deactivated for each error.
	invitationErrorFields struct {
		Errors       [][]either[string, bool] `json:"errors"`
		Sent         bool                     `json:"sent_invitations"`
		DailyLimit   bool                     `json:"daily_limit_reached"`
		LicenseLimit bool                     `json:"license_limit_reached"`
	}
	moveErrorFields struct {
		First   realm.MessageID `json:"first_message_id_allowed_to_move"`
		Total   int             `json:"total_messages_in_topic"`
		Allowed int             `json:"total_messages_allowed_to_move"`
	}
	confusingErrorFields struct {
		First  string `json:"var_name1"`
		Second string `json:"var_name2"`
	}
	invalidErrorFields struct {
		Name  string `json:"var_name"`
		Value any    `json:"bad_value"`
	}
	channelErrorFields struct {
		Name string          `json:"stream,omitzero"`
		ID   realm.ChannelID `json:"stream_id,omitzero"`
	}
)

// tusErrorCodes are the statuses that only resumable uploads use.
var tusErrorCodes = []errorCode{
	{"BAD_REQUEST", []int{409, 412, 415, 423, 429}, nil},
	{"REALM_UPLOAD_QUOTA", []int{413}, nil},
}

// ErrorShape returns the shape of an error of this endpoint, nil if the endpoint has no such error.
func (e *Endpoint) ErrorShape(status int, name string) *shape.Shape {
	s := ErrorShape(status, name)
	if e.tus == nil {
		return s
	}
	if c := findErrorCode(tusErrorCodes, status, name); s == nil && c != nil {
		s = c.shape()
	}
	if s == nil {
		return nil
	}
	return withMessage(s)
}

func findErrorCode(list []errorCode, status int, name string) *errorCode {
	i := slices.IndexFunc(list, func(c errorCode) bool {
		return c.name == name && slices.Contains(c.statuses, status)
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

// withMessage adds the field that tus clients read.
func withMessage(s *shape.Shape) *shape.Shape {
	return shape.Merge(s, formOf[struct {
		Message string `json:"message,omitzero"`
	}]())
}

// anyError is the fields that every error has.
type anyError struct {
	_   struct{} `const:"result=error"`
	Msg string   `json:"msg"`
}

// methodError is the error of a path that supports other methods.
type methodError struct {
	_ struct{} `const:"code=BAD_REQUEST"`
	anyError
	Allowed []string `json:"allowed_methods"`
}

// shape returns the shape of the errors with a code.
func (c *errorCode) shape() *shape.Shape {
	s := errorShapeOf(c.name)
	if c.fields == nil {
		return s
	}
	return shape.Merge(s, shape.Of(reflect.TypeOf(c.fields)))
}

// errorShapeOf returns the shape of errors that have one of some codes and no further fields.
func errorShapeOf(codes ...string) *shape.Shape {
	code := shape.Field{Shape: &shape.Shape{Kind: "string", Enum: codes}, ListedRequired: true}
	return shape.Merge(formOf[anyError](), &shape.Shape{Fields: map[string]shape.Field{"code": code}})
}

// ErrorShape returns the shape of an error with a status and code, nil if there is no such error. Status 405
// lists the allowed methods. Status 500 has no code and no further fields.
func ErrorShape(status int, name string) *shape.Shape {
	switch {
	case status == 405 && name == "BAD_REQUEST":
		return formOf[methodError]()
	case status == 500 && name == "":
		return formOf[anyError]()
	}
	if c := findErrorCode(errorCodes, status, name); c != nil {
		return c.shape()
	}
	return nil
}
