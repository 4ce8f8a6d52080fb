package form

// IncludeSubscribers selects how much a client gets to know about the subscribers of channels.
type IncludeSubscribers uint8

const (
	NoSubscribers IncludeSubscribers = iota
	AllSubscribers
	PartialSubscribers
)

// DecodeParam accepts the keywords with and without JSON quotes. In older clients they are JSON booleans.
func (s *IncludeSubscribers) DecodeParam(raw, _ string) *Error {
	if v, ok := JSON(raw); ok && v.kind == KindString {
		raw = v.text
	}
	switch raw {
	case "false":
		*s = NoSubscribers
	case "true":
		*s = AllSubscribers
	case "partial":
		*s = PartialSubscribers
	default:
		return notAllowed()
	}
	return nil
}

// ParamSchema returns the JSON schema for the API description.
func (s *IncludeSubscribers) ParamSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{"true", "false", "partial"}}
}
