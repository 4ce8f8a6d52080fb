package form

// NumberOrWord is a setting that is a JSON integer, or a JSON string such as "unlimited". The endpoint checks the
// value, and refuses a wrong one with BadValue.
type NumberOrWord struct {
	Number int64
	Word   string
	IsWord bool
	Set    bool
}

// DecodeValue accepts any 64-bit integer and any string.
func (n *NumberOrWord) DecodeValue(v Value) (err *Error) {
	n.Set = true
	if v.kind == KindString {
		n.Word, n.IsWord = v.text, true
		return nil
	}
	n.Number, err = v.Int()
	return err
}

// ParamSchema returns the JSON schema for the API description.
func (n *NumberOrWord) ParamSchema() map[string]any {
	return oneOf(map[string]any{"type": "integer"}, map[string]any{"type": "string"})
}
