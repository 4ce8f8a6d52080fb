package form

// IncludeSubscribers is how much clients want to know about the members of channels.
type IncludeSubscribers uint8

const (
	NoSubscribers IncludeSubscribers = iota
	AllSubscribers
	PartialSubscribers
)

// DecodeParam takes the words with and without JSON's quotes; they began as booleans.
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

func (s *IncludeSubscribers) ParamSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{"true", "false", "partial"}}
}
