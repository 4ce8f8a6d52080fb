package form

// StringList is a JSON list of strings. Options about texts hold for each.
type StringList []string

// IntList is a JSON list of integers. Options about numbers hold for each.
type IntList []int64

// JSONText is any valid JSON, kept as it was sent.
type JSONText string

func (t *JSONText) DecodeParam(raw, _ string) *Error {
	if _, ok := JSON(raw); !ok {
		return notJSON()
	}
	*t = JSONText(raw)
	return nil
}

func (t *JSONText) ParamSchema() map[string]any { return map[string]any{} }
