package form

// JSONText is any valid JSON, as it was sent.
type JSONText string

// DecodeParam accepts any valid JSON.
func (t *JSONText) DecodeParam(raw, _ string) *Error {
	if _, ok := JSON(raw); !ok {
		return notJSON()
	}
	*t = JSONText(raw)
	return nil
}

// ParamSchema returns the JSON schema for the API description.
func (t *JSONText) ParamSchema() map[string]any { return map[string]any{} }
